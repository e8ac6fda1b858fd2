#include "passes/index_range.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "passes/pipeline.h"

namespace fusebox {
namespace {

// The index width of y = x + x over [n], n split as the steps say, for an input of this shape and these strides.
int width_of(const std::string& steps, std::vector<int64_t> shape, std::vector<int64_t> strides,
             const std::string& contiguity) {
  const std::string sizes = shape.size() == 1 ? "%n" : "%n, %m";
  const Module m = parse_module("fusion @f {\n  " + sizes + " = size\n  %x = input i8[" + sizes + "] " + contiguity +
                                "\n  %y = add %x, %x\n  output %y\n}\nsteps @f {\n" + steps + "}\n");
  const std::vector<BoundInput> inputs = {{.shape = shape, .strides = strides}};
  const Graph& g = main_graph(m);
  return compile(g, bind_sizes(g, inputs), {.steps = find_steps(m, "f")->steps, .inputs = inputs}).index_bits;
}

TEST(IndexRange, SmallProgramsTakeThirtyTwoBits) {
  EXPECT_EQ(width_of("split %y.i0 by 128 -> o, t\nparallelize %y.o on grid.x\nparallelize %y.t on block.x\n", {1000},
                     {1}, "contiguous"),
            32);
}

// 5 elements; holes reach beyond 2^31.
TEST(IndexRange, HolesCount) {
  EXPECT_EQ(width_of("split %y.i0 by 1073741824 -> o, a\nsplit %y.o by 4 -> p, q\n", {5}, {1}, "contiguous"), 64);
  EXPECT_EQ(width_of("split %y.i0 by 1073741824 -> o, a\n", {5}, {1}, "contiguous"), 32);
}

// Few elements, far apart.
TEST(IndexRange, StridesCount) {
  EXPECT_EQ(width_of("", {3, 2}, {int64_t{1} << 31, 1}, "contiguity [false, true]"), 64);
  EXPECT_EQ(width_of("", {3, 2}, {64, 1}, "contiguity [false, true]"), 32);
}

}  // namespace
}  // namespace fusebox
