#include "replay/cli/numbers.h"

#include <charconv>
#include <fmt/format.h>
#include <string>

namespace fusebox::cli {
namespace {

template <class Number>
bool is_within(const std::string& text, Number low, Number high, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  // Nan is neither above `low` nor below `high`.
  return error == std::errc() && at == end && value >= low && value <= high;
}

}  // namespace

CLI::Validator whole_number(uint64_t low, uint64_t high) {
  // A limit that only the number's type sets is no news to a reader of the help.
  const bool is_open = high >= kMostSigned;
  const auto read = [low, high](std::string& text) {
    uint64_t value = 0;
    if (!is_within(text, low, high, value))
      return fmt::format("`{}` does not fit; give a decimal whole number from {} to {}", text, low, high);
    text = std::to_string(value);
    return std::string();
  };
  return {read, is_open ? "" : fmt::format("in [{} - {}]", low, high)};
}

CLI::Validator real_number(double low, double high) {
  const auto read = [low, high](std::string& text) {
    double value = 0;
    return is_within(text, low, high, value)
               ? std::string()
               : fmt::format("`{}` does not fit; give a number from {} to {}", text, low, high);
  };
  return {read, fmt::format("in [{} - {}]", low, high)};
}

}  // namespace fusebox::cli
