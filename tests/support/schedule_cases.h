// Seeded random schedules for a few families of small programs, shared by the law of schedules and the GPU tests.
//
//   ScheduleCase c = make_schedule_case(seed);    // the same seed gives the same case on every machine
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/module/module.h"

namespace fusebox::test {

struct ScheduleCase {
  std::string family;
  Module module;            // one fusion and its inputs; their sums are exact in float
  std::vector<Step> steps;  // each applied when it was drawn
};

ScheduleCase make_schedule_case(uint64_t seed);

}  // namespace fusebox::test
