// The law of swizzles: a copy through swizzled shared memory is a copy for any swizzle, dtype, rank and extents, even
// if most threads are on holes; the host executor reports nothing.
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/table/defect.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "replay/run/host_program.h"
#include "tests/support/swizzled_copy_cases.h"

namespace fusebox {
namespace {

struct Result {
  Compiled compiled;
  TensorData output;
};

Result run(const test::SwizzledCopyCase& c, std::span<const Argument> inputs, const Defects& defects = {}) {
  const Graph& g = c.module.graphs[0];
  Result r;
  r.compiled = compile(g, bind_sizes(g, bound_inputs(inputs)),
                       {.steps = find_steps(c.module, g.name)->steps, .defects = defects});
  const std::vector<NamedKernel> kernels = {{r.compiled.segmentation.segments[0].name, &r.compiled.kernels[0]}};
  r.output =
      contiguous_copy(run_host_program(r.compiled.host, kernels, *make_host_device(), inputs).outputs[0].value.tensor);
  return r;
}

TEST(SwizzledCopies, GiveTheirInput) {
  int runs = 0, swizzled = 0;
  const auto cases = test::swizzled_copy_cases();
  for (const test::SwizzledCopyCase& c : cases) {
    for (const InputSpec& x : c.inputs) {
      SCOPED_TRACE(c.name + ", " + print(x) + "\n" + print(c.module));
      const std::vector<Argument> inputs = {make_argument(x)};
      Result r;
      try {
        r = run(c, inputs);
      } catch (const Error& e) {
        FAIL() << code_text(e.code) << " " << e.place << ": " << e.what();
      }
      ASSERT_EQ(r.compiled.kernels.size(), 1u);
      const std::string kernel = print(r.compiled.kernels[0]);
      ASSERT_EQ(digest(r.output), digest(inputs[0].tensor)) << kernel;
      swizzled += kernel.find("bitwise_xor") != std::string::npos || kernel.find("floor_mod") != std::string::npos;
      ++runs;
    }
  }
  std::printf("  swizzled copies: %zu schedules, %d runs\n", cases.size(), runs);
  EXPECT_EQ(swizzled, runs);
}

// The law finds broken rules on which these copies depend.
TEST(SwizzledCopies, FindBrokenRules) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "built without seeded defects";
  const auto cases = test::swizzled_copy_cases();
  for (Defect defect : {Defect::kAlmostExactEqualExtent, Defect::kPredicateDropped, Defect::kPredicateOffByOne,
                        Defect::kExtentTruncated, Defect::kSplitSwapped, Defect::kSwizzleInverse}) {
    Defects defects;
    defects.add(defect);
    int tried = 0, found = 0;
    for (const test::SwizzledCopyCase& c : cases) {
      // In 1-D skip the largest; smaller ones show the holes.
      const std::vector<Argument> inputs = {
          make_argument(*(c.inputs.end() - (c.inputs.back().shape.size() == 1 ? 2 : 1)))};
      ++tried;
      try {
        found += !(digest(run(c, inputs, defects).output) == digest(inputs[0].tensor));
      } catch (const Error&) {
        ++found;
      }
    }
    std::printf("  %-26s found by %d of %d\n", std::string(text(defect)).c_str(), found, tried);
    EXPECT_GT(found, 0) << text(defect);
  }
}

}  // namespace
}  // namespace fusebox
