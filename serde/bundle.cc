#include "serde/bundle.h"

#include <algorithm>

namespace fusebox {
namespace {

constexpr std::string_view kStages[] = {
#define FUSEBOX_STAGE(name, text) text,
#include "serde/stage_table.inc"
#undef FUSEBOX_STAGE
};

}  // namespace

std::span<const std::string_view> stage_texts() { return kStages; }

const Module* find_stage(const Bundle& b, Stage stage) {
  const auto it = std::find_if(b.stages.begin(), b.stages.end(), [&](const auto& s) { return s.stage == stage; });
  return it == b.stages.end() ? nullptr : &it->module;
}

const Digest* find_digest(const Bundle& b, std::string_view name) {
  const auto it = std::find_if(b.digests.begin(), b.digests.end(), [&](const auto& d) { return d.name == name; });
  return it == b.digests.end() ? nullptr : &it->digest;
}

const std::string* find_value(const std::vector<KeyValue>& list, std::string_view key) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.key == key; });
  return it == list.end() ? nullptr : &it->value;
}

}  // namespace fusebox
