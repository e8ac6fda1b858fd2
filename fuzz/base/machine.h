// Reads the size of the machine and chooses how many processes of a campaign it can hold.
//
//   const int jobs = default_jobs(this_machine(), {.on_gpu = true, .gpu_bytes = gpu.memory_bytes});
#pragma once

#include <cstdint>

namespace fusebox::fuzz {

struct Machine {
  int processors = 1;        // processors that this process may use
  int64_t memory_bytes = 0;  // free memory; 0: not known
};
Machine this_machine();

struct JobOptions {
  bool on_gpu = false;
  int64_t gpu_bytes = 0;  // 0: not known
};
// One process for each processor, if memory suffices. A GPU does not change that: kernels take longer to compile than
// to run.
int default_jobs(const Machine& machine, const JobOptions& options);

}  // namespace fusebox::fuzz
