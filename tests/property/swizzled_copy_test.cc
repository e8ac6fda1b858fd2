// Swizzle law: a copy through swizzled shared memory is a copy, whatever the swizzle, the dtype, the rank and the
// extents, most of the threads on holes; the host executor finds nothing to say of it.
#include <gtest/gtest.h>

#include "ir/print.h"
#include "passes/pipeline.h"
#include "replay/host_program.h"
#include "replay/input.h"
#include "tests/support/swizzled_copy_cases.h"

namespace fusebox {
namespace {

TEST(SwizzledCopies, GiveTheirInput) {
  int runs = 0, swizzled = 0;
  const auto cases = test::swizzled_copy_cases();
  for (const test::SwizzledCopyCase& c : cases) {
    const Graph& g = c.module.graphs[0];
    for (const InputSpec& x : c.inputs) {
      SCOPED_TRACE(c.name + ", " + print(x) + "\n" + print(c.module));
      const std::vector<Argument> inputs = {make_argument(x)};
      Compiled compiled;
      std::vector<ProgramOutput> outputs;
      try {
        compiled = compile(g, bind_sizes(g, bound_inputs(inputs)), {.steps = find_steps(c.module, g.name)->steps});
        const std::vector<NamedKernel> kernels = {{compiled.segmentation.segments[0].name, &compiled.kernels[0]}};
        outputs = run_host_program(compiled.host, kernels, *make_host_device(), inputs).outputs;
      } catch (const Error& e) {
        FAIL() << code_text(e.code) << " " << e.place << ": " << e.what()
               << (compiled.kernels.empty() ? "" : "\n" + print(compiled.kernels[0]));
      }
      ASSERT_EQ(compiled.kernels.size(), 1u);
      ASSERT_EQ(outputs.size(), 1u);
      ASSERT_EQ(digest(contiguous_copy(outputs[0].value.tensor)), digest(inputs[0].tensor))
          << print(compiled.kernels[0]);
      const std::string kernel = print(compiled.kernels[0]);
      swizzled += kernel.find("bitwise_xor") != std::string::npos || kernel.find("floor_mod") != std::string::npos;
      ++runs;
    }
  }
  std::printf("  swizzled copies: %zu schedules, %d runs\n", cases.size(), runs);
  EXPECT_EQ(swizzled, runs);
}

}  // namespace
}  // namespace fusebox
