// What a machine has, and how many processes of a campaign it takes.
//
//   const int jobs = default_jobs(this_machine(), {.on_gpu = true, .gpu_bytes = gpu.memory_bytes});
#pragma once

#include <cstdint>

namespace fusebox::fuzz {

struct Machine {
  int processors = 1;        // that this process may use
  int64_t memory_bytes = 0;  // that is free; 0: not known
};
Machine this_machine();

struct JobOptions {
  bool on_gpu = false;
  int64_t gpu_bytes = 0;  // 0: not known
};
// One for each processor, as far as memory goes: on a GPU too, where kernels take longer to compile than to run.
int default_jobs(const Machine& machine, const JobOptions& options);

}  // namespace fusebox::fuzz
