// Times of programs as text and as JSON, for `run --time` and `bench`.
//
//   print_text(timing_text(timing));
#pragma once

#include <string>
#include <vector>

#include "replay/timing/time_program.h"
#include "replay/timing/tune_program.h"

namespace fusebox::cli {

std::string timing_text(const Timing& t);
// {"runs":20,"whole_us":{"median":…,"p10":…,"p90":…},…}; what was not measured is null.
std::string timing_json(const Timing& t);

// The changes that a search made, by segment, with the whole's times before and after.
std::string tuned_text(const Tuned& t);
std::string tuned_json(const Tuned& t);

// `268.4 MB`, in powers of ten; `128 bytes` below a kilobyte.
std::string bytes_text(double bytes);
// `100.2 µs`, or `1.234 ms`.
std::string time_text(double us);
// A bar of at most `cells` letters for a part between 0 and 1; other numbers give the nearest of them.
std::string bar(double part, size_t cells);

}  // namespace fusebox::cli
