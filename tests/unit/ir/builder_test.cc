#include "ir/build/builder.h"

#include <gtest/gtest.h>

#include "ir/build/composite.h"
#include "ir/table/error.h"
#include "ir/verify/verify.h"
#include "tests/unit/ir/shape_text.h"

namespace fusebox {
namespace {

TEST(Builder, RanksAreAlignedAsNumPyDoes) {
  Graph g = fusion("f");
  const auto s = sizes(g, {"b", "m", "n"});
  const ValueId x = input(g, "x", Dtype::kFloat, {s[0], s[1], s[2]}), v = input(g, "v", Dtype::kFloat, {s[2]});
  const ValueId column = input(g, "column", Dtype::kFloat, {s[1], 1}), point = sum(g, v, {});
  EXPECT_EQ(shape_text(g, add(g, x, v)), "f32[%b, %m, %n]");
  EXPECT_EQ(shape_text(g, add(g, v, column)), "f32[%m, %n]");
  EXPECT_EQ(shape_text(g, mul(g, point, v)), "f32[%n]");
  EXPECT_EQ(shape_text(g, where(g, binary(g, OpKind::kGt, x, v), column, constant_of(g, Dtype::kFloat, 0))),
            "f32[%b, %m, %n]");
  // An axis of extent 1 that a slice leaves is stretched like any other.
  const ValueId first = slice(g, input(g, "four", Dtype::kFloat, {4, s[2]}), {0, 0}, {1, s[2]});
  EXPECT_EQ(shape_text(g, add(g, first, column)), "f32[%m, %n]");
  verify(g);
}

TEST(Builder, InputsAndTheirLayouts) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n");
  const ValueId x =
      input(g, "x", Dtype::kHalf, {n, 1, 3},
            {.contiguity = {Contiguity::kFalse, Contiguity::kTrue, Contiguity::kTrue}, .allocation_order = {2, 0, 1}});
  const Tensor& t = g.tensor_of(x);
  EXPECT_EQ(t.allocation, (std::vector{t.logical[2], t.logical[0], t.logical[1]}));
  EXPECT_EQ(t.contiguity, (std::vector{Contiguity::kTrue, Contiguity::kFalse, Contiguity::kNone}));
  EXPECT_EQ(shape_text(g, x), "f16[%n, 1, 3]");
  EXPECT_EQ(shape_text(g, input(g, "e", Dtype::kHalf, {1, n}, {.expanded = {n, 1}})), "f16[1*%n, %n]");
  EXPECT_TRUE(g.tensor_of(input(g, "p", Dtype::kHalf, {n, n}, {.allocation_order = {0, 1}})).allocation.empty());
  verify(g);
  EXPECT_EQ(refusal([&] { input(g, "q", Dtype::kHalf, {n}, {.contiguity = {}, .allocation_order = {1}}); }),
            "E0207 %q");
  EXPECT_EQ(refusal([&] { input(g, "q", Dtype::kHalf, {-2}); }), "E0207 %q");
  EXPECT_EQ(refusal([&] { input(g, "q", Dtype::kHalf, {n}, {.expanded = {n}}); }), "E0207 %q");
  EXPECT_EQ(refusal([&] { input(g, "q", Dtype::kHalf, {input_scalar(g, "f", Dtype::kFloat)}); }), "E0204 %q");
  EXPECT_EQ(find_value(g, "q"), std::nullopt);
}

TEST(Builder, NamesAreGivenOrFresh) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {});
  EXPECT_EQ(g[unary(g, OpKind::kExp, x, "y")].name, "y");
  EXPECT_NE(g[unary(g, OpKind::kExp, x, "y")].name, "y");
  EXPECT_NE(g[unary(g, OpKind::kExp, x)].name, "");
  verify(g);
}

TEST(Builder, ScalarsAndSizes) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n"), x = input(g, "x", Dtype::kFloat, {n, 4}),
                row = input(g, "row", Dtype::kFloat, {1, 4});
  EXPECT_EQ(size_of(g, x, 0), n);
  EXPECT_EQ(constant_integer(g, size_of(g, x, -1)), 4);
  EXPECT_EQ(size_of(g, expand(g, row, {n, 4}), 0), n);
  EXPECT_EQ(refusal([&] { size_of(g, x, 2); }), "E0206 %x");
  EXPECT_EQ(expression_text(g, size_of(g, reshape(g, x, {-1}), 0)), "(%n*4)");
}

TEST(Builder, KeepdimAndNames) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {3, 4});
  const ValueId s = sum(g, x, {-1}, {.keepdim = true, .dtype = Dtype::kDouble, .name = "s"});
  EXPECT_EQ(shape_text(g, s), "f64[3, 1]");
  EXPECT_EQ(g[s].name, "s");
}

TEST(Composite, VarianceOfAProgramAsAWhole) {
  Graph g = fusion("f");
  const auto s = sizes(g, {"m", "n"});
  const ValueId x = input(g, "x", Dtype::kBfloat16, {s[0], s[1]});
  const VarMean r = var_mean(g, x, {1}, {.correction = 1, .keepdim = true, .name = "variance"});
  output(g, r.var);
  output(g, r.mean);
  verify(g);
  EXPECT_EQ(shape_text(g, r.var), "bf16[%m, 1]");
  EXPECT_EQ(g[r.var].name, "variance");
  EXPECT_EQ(refusal([&] { layer_norm(g, x, 3); }), "E0206 %x");
}

}  // namespace
}  // namespace fusebox
