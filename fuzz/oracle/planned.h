// What the oracles of automatic plans share: whether a plan's results are right, and whether its decisions keep their laws.
//
//   const Compiled c = compile(run.fusion(), larger, options);
//   check_decisions(run, "larger", c, larger, *options.device);
//   judge_planned(run, "larger", c, {.may_refuse = true});   // with the case's own inputs
#pragma once

#include <string_view>

#include "fuzz/oracle/oracle.h"
#include "ir/module/device_properties.h"
#include "passes/pipeline/pipeline.h"

namespace fusebox::fuzz {

struct PlannedRun {
  int64_t step_limit = 0;   // of each launch; 0: that of the case
  bool may_refuse = false;  // the launch may refuse the case's sizes, as the plan was made for others
};
// Runs a program that schedulers planned with the inputs of the case, and compares with the reference and the unfused run.
void judge_planned(OracleRun& run, std::string_view oracle, const Compiled& c, const PlannedRun& how = {});

// Whether two compilations made the same kernels and the same host program.
bool are_same_programs(const Compiled& a, const Compiled& b);

// The laws of the oracle `decisions` for a program that was planned for these sizes of the case's fusion and this device.
void check_decisions(OracleRun& run, std::string_view oracle, const Compiled& c, const Bindings& sizes,
                     const DeviceProperties& device);

}  // namespace fusebox::fuzz
