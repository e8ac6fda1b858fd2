// The swizzled copies of the law for the host executor, on a GPU: the output equals the input, bit for bit.
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"
#include "tests/support/gpu_device.h"
#include "tests/support/swizzled_copy_cases.h"

namespace fusebox {
namespace {

TEST(GpuSwizzledCopies, GiveTheirInput) {
  const auto gpu = testing::gpu_or_null();
  if (!gpu) GTEST_SKIP() << "no GPU";
  int runs = 0;
  for (const test::SwizzledCopyCase& c : test::swizzled_copy_cases()) {
    const Graph& g = c.module.graphs[0];
    for (const InputSpec& x : c.inputs) {
      SCOPED_TRACE(c.name + ", " + print(x) + "\n" + print(c.module));
      const std::vector<Argument> inputs = {make_argument(x)};
      const Compiled compiled =
          compile(g, bind_sizes(g, bound_inputs(inputs)), {.steps = find_steps(c.module, g.name)->steps});
      const std::vector<NamedKernel> kernels = {{compiled.segmentation.segments[0].name, &compiled.kernels[0]}};
      const auto outputs = run_host_program(compiled.host, kernels, *gpu, inputs).outputs;
      ASSERT_EQ(outputs.size(), 1u);
      ASSERT_EQ(digest(contiguous_copy(outputs[0].value.tensor)), digest(inputs[0].tensor))
          << print(compiled.kernels[0]);
      ++runs;
    }
  }
  std::printf("  swizzled copies on the GPU: %d runs, each its input bit for bit\n", runs);
}

}  // namespace
}  // namespace fusebox
