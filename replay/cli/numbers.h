// Checks of options that take a number. CLI11 reads 010 as eight, takes the largest number for one that does not fit,
// and finds every range to hold nan. These checks refuse or correct that.
//
//   command.add_option("--jobs", jobs)->transform(whole_number(1, 1024));      // 010 is ten; 0x10 and 2000 are refused
//   command.add_option("--tolerance", t)->transform(real_number(0.0, 1000.0)); // nan and inf are refused
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

namespace fusebox::cli {

inline constexpr uint64_t kMostSigned = std::numeric_limits<int64_t>::max();
inline constexpr uint64_t kMostUnsigned = std::numeric_limits<uint64_t>::max();

// A decimal number within the bounds, both included. Give it to `transform`, because it removes zeros in front.
CLI::Validator whole_number(uint64_t low, uint64_t high);
// A finite decimal number within the bounds, both included.
CLI::Validator real_number(double low, double high);

}  // namespace fusebox::cli
