#include "ir/graph/name_index.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace fusebox {
namespace {

constexpr uint32_t kNoValue = ValueId::kNoneIndex;
constexpr size_t kFewValues = 32, kFewSearches = 4;

}  // namespace

std::optional<ValueId> NameIndex::find(std::string_view name) {
  if (first_.empty() && (g_.values.size() <= kFewValues || searches_ < kFewSearches)) {
    ++searches_;
    return find_value(g_, name);
  }
  if (name.empty()) return std::nullopt;
  add_new_values();
  const size_t hash = std::hash<std::string_view>{}(name);
  uint32_t found = kNoValue;
  // A bucket lists later values first, so the last match is the first value.
  for (uint32_t i = first_[hash & (first_.size() - 1)]; i != kNoValue; i = next_[i])
    if (hashes_[i] == hash && g_.values[i].name == name) found = i;
  return found == kNoValue ? std::nullopt : std::optional(ValueId(found));
}

void NameIndex::add_new_values() {
  const size_t count = g_.values.size();
  if (next_.size() == count) return;
  if (first_.size() < count) {
    first_.assign(std::bit_ceil(2 * count), kNoValue);
    next_.clear();
  }
  for (size_t i = next_.size(); i < count; ++i) {
    if (i == hashes_.size()) hashes_.push_back(std::hash<std::string_view>{}(g_.values[i].name));
    uint32_t& first = first_[hashes_[i] & (first_.size() - 1)];
    next_.push_back(first);
    first = static_cast<uint32_t>(i);
  }
}

ValueId add_scalar(Graph& g, NameIndex& names, Dtype dtype, std::string_view name) {
  if (name.empty() || names.find(name)) return add_scalar(g, dtype, name);
  Value v;
  v.dtype = dtype;
  v.name = name;
  g.values.push_back(std::move(v));
  return ValueId(g.values.size() - 1);
}

ValueId add_tensor(Graph& g, NameIndex& names, Dtype dtype, std::string_view name) {
  return with_tensor(g, add_scalar(g, names, dtype, name));
}

}  // namespace fusebox
