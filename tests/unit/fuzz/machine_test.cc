// The number of processes that a campaign gets.
#include "fuzz/base/machine.h"

#include <gtest/gtest.h>

namespace fusebox::fuzz {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(Machine, AProcessForEachProcessorAsFarAsMemoryGoes) {
  EXPECT_EQ(default_jobs({.processors = 16, .memory_bytes = 128 * kGiB}, {}), 16);
  EXPECT_EQ(default_jobs({.processors = 16, .memory_bytes = 2 * kGiB}, {}), 4);
  EXPECT_EQ(default_jobs({.processors = 16}, {}), 16);
  EXPECT_EQ(default_jobs({.processors = 1, .memory_bytes = 1}, {}), 1);
}

TEST(Machine, AContextOnAGpuTakesMemoryOfBoth) {
  EXPECT_EQ(default_jobs({.processors = 16, .memory_bytes = 128 * kGiB}, {.on_gpu = true, .gpu_bytes = 141 * kGiB}),
            16);
  EXPECT_EQ(default_jobs({.processors = 16, .memory_bytes = 8 * kGiB}, {.on_gpu = true, .gpu_bytes = 141 * kGiB}), 8);
  EXPECT_EQ(default_jobs({.processors = 16, .memory_bytes = 128 * kGiB}, {.on_gpu = true, .gpu_bytes = 6 * kGiB}), 6);
  EXPECT_EQ(default_jobs({.processors = 16, .memory_bytes = 2 * kGiB}, {.on_gpu = false, .gpu_bytes = kGiB}), 4);
}

TEST(Machine, ThisOneHasAProcessor) {
  EXPECT_GE(this_machine().processors, 1);
  EXPECT_GT(this_machine().memory_bytes, 0);
}

}  // namespace
}  // namespace fusebox::fuzz
