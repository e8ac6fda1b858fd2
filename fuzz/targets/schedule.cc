// fuzz_schedule: the bytes decide a small fusion, its inputs and above all its schedule; the run is judged.
#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fusebox::fuzz::judge_bytes(data, size, {.fusion = {.max_ops = 5}, .steps = {.max_transforms = 8}},
                             "host-checks,aten,schedules,relower", true);
  return 0;
}
