// Random legal schedules and the whole corpus on a GPU: each schedule gives the host executor's bits. The families'
// inputs are integers, so the order of sums does not matter. corpus.py judges the corpus by the reference evaluator's
// bounds.
#include <cstdlib>
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "replay/run/run.h"
#include "tests/support/gpu_device.h"
#include "tests/support/run_compiled.h"
#include "tests/support/schedule_cases.h"

namespace fusebox {
namespace {

using testing::output_digests;

TEST(GpuSchedules, GiveTheBitsOfTheHostExecutor) {
  const auto gpu = testing::gpu_or_null();
  if (!gpu) GTEST_SKIP() << "no GPU";
  const char* wanted = std::getenv("FUSEBOX_GPU_SCHEDULES");
  const int count = wanted ? std::atoi(wanted) : 400;
  int ran = 0;
  for (uint64_t seed = 1; ran < count; ++seed) {
    const test::ScheduleCase c = test::make_schedule_case(seed);
    const Graph& g = c.module.graphs[0];
    std::vector<Argument> inputs;
    for (const InputSpec& s : c.module.input_specs[0].specs) inputs.push_back(make_argument(s));
    Compiled compiled;
    std::vector<Digest> expected;
    try {
      compiled = compile(g, bind_sizes(g, bound_inputs(inputs)), {.steps = c.steps});
      const auto host = make_host_device();
      expected = output_digests(compiled, *host, inputs);
    } catch (const Error&) {
      continue;  // the schedule law judges it
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + c.family + "\n" + print(c.module) + print_steps(c.steps) +
                 print(compiled.kernels[0]));
    std::vector<Digest> actual;
    try {
      actual = output_digests(compiled, *gpu, inputs);
    } catch (const Error& e) {
      // The device has no room for a cooperative grid.
      ASSERT_EQ(e.code, ErrorCode::kLaunchLimit) << e.what() << " " << e.place;
      continue;
    }
    ++ran;
    ASSERT_EQ(expected, actual);
  }
  std::printf("  schedules on the GPU: %d, all with the host executor's bits\n", ran);
}

}  // namespace
}  // namespace fusebox
