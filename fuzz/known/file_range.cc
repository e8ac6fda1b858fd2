// The file tests of the ranges of indices (file_kinds.h).
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <sstream>

#include "fuzz/known/file_kinds.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/host/index_range.h"

namespace fusebox::fuzz {
namespace {

bool fits(const std::string& input, const FileRequest& r) {
  const Module m = parse_module(input);
  const Graph& launch = m.graphs.at(1);
  Bindings known(launch.values.size());
  InputStrides strides;
  for (const std::string& option : r.options) {
    const size_t equal = option.find('=');
    int64_t size = 0;
    std::from_chars(option.data() + equal + 1, option.data() + option.size(), size);
    const auto v = find_value(launch, option.substr(0, equal));
    check_internal(v.has_value(), "the launch has no value of this name");
    if (launch.is_tensor(*v))
      strides[launch[*v].name] = {size};
    else
      known[v->index] = ConstantBits{static_cast<uint64_t>(size), 0};
  }
  return fits_in_32_bits(m.graphs[0], launch, known, strides);
}

// The largest number for which it holds; it holds for 0, and for all numbers up to the largest.
int64_t largest(const std::function<bool(int64_t)>& holds) {
  int64_t low = 0, high = int64_t{1} << 33;
  while (high - low > 1) (holds((low + high) / 2) ? low : high) = (low + high) / 2;
  return low;
}

}  // namespace

std::string range_text(const std::string& input, const FileRequest& r) {
  if (!fits(input, r)) return "does not fit\n";
  std::string out;
  std::istringstream lines(input);
  size_t end = 0;
  for (std::string line; std::getline(lines, line);) {
    end += line.size() + 1;
    if (line.starts_with("}")) break;
    const bool is_loop = line.find("{ index %") != std::string::npos;
    if (!is_loop && !line.ends_with(": index")) continue;
    const size_t at = is_loop ? line.find("{ index %") + 8 : line.find('%');
    const std::string name = line.substr(at, line.find(' ', at) - at);
    const auto with = [&](int64_t added) {
      std::string text = input;
      return fits(text.insert(end, fmt::format("%probe = add {}, {} : index\n", name, added)), r);
    };
    if (!with(0)) {
      out += name + " is unknown\n";
      continue;
    }
    const int64_t up = largest([&](int64_t n) { return with(n); }), down = largest([&](int64_t n) { return with(-n); });
    out += fmt::format("{} in {} .. {}\n", name, INT32_MIN + down, INT32_MAX - up);
  }
  return out;
}

}  // namespace fusebox::fuzz
