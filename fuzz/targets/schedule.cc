// fuzz_schedule: judges the run of a small fusion with its inputs and, above all, its schedule.
#include "fuzz/targets/shared/case_target.h"

using namespace fusebox;

fuzz::CaseOptions fuzz::target_options() { return {.fusion = {.max_ops = 5}, .steps = {.max_transforms = 8}}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::judge_bytes({data, size}, fuzz::target_options(), "host-checks,aten,schedules,relower", true);
  return 0;
}
