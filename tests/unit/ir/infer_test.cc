#include "ir/infer/infer.h"

#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/build/composite.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "ir/table/type_rule.h"
#include "tests/unit/ir/shape_text.h"

namespace fusebox {
namespace {

class Infer : public testing::Test, protected SizedFusion {
 protected:
  ValueId x = input(g, "x", Dtype::kFloat, {m, n});
  ValueId half = input(g, "half", Dtype::kHalf, {m, n});
  ValueId bf = input(g, "bf", Dtype::kBfloat16, {m, n});
  ValueId ints = input(g, "ints", Dtype::kInt32, {m, n});
  ValueId flags = input(g, "flags", Dtype::kBool, {m, n});
  ValueId row = input(g, "row", Dtype::kFloat, {1, n});
  ValueId vec = input(g, "vec", Dtype::kFloat, {n});
  ValueId c64 = input(g, "c64", Dtype::kComplexFloat, {m, n});
  ValueId alpha = input_scalar(g, "alpha", Dtype::kDouble);
  ValueId count = input_scalar(g, "count", Dtype::kInt64);

  std::string type(ValueId v) { return shape_text(g, v); }
};

TEST_F(Infer, PromotionFollowsAten) {
  EXPECT_EQ(type(add(g, half, bf)), "f32[%m, %n]");
  EXPECT_EQ(type(add(g, ints, flags)), "i32[%m, %n]");
  EXPECT_EQ(type(mul(g, ints, half)), "f16[%m, %n]");
  EXPECT_EQ(type(mul(g, x, c64)), "c64[%m, %n]");
  EXPECT_EQ(type(truediv(g, ints, ints)), "f32[%m, %n]");
  EXPECT_EQ(type(binary(g, OpKind::kDiv, ints, ints)), "i32[%m, %n]");
  EXPECT_EQ(type(binary(g, OpKind::kLt, ints, half)), "bool[%m, %n]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, ints)), "f32[%m, %n]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, bf)), "bf16[%m, %n]");
  EXPECT_EQ(type(unary(g, OpKind::kAbs, c64)), "f32[%m, %n]");
  EXPECT_EQ(type(unary(g, OpKind::kImag, c64)), "f32[%m, %n]");
  EXPECT_EQ(type(binary(g, OpKind::kComplex, x, x)), "c64[%m, %n]");
}

TEST_F(Infer, ScalarsOfALowerOrEqualClassAreWeak) {
  EXPECT_EQ(type(mul(g, bf, alpha)), "bf16[%m, %n]");
  EXPECT_EQ(type(mul(g, half, count)), "f16[%m, %n]");
  EXPECT_EQ(type(mul(g, ints, alpha)), "f64[%m, %n]");
  EXPECT_EQ(type(add(g, flags, count)), "i64[%m, %n]");
  EXPECT_EQ(type(where(g, flags, bf, alpha)), "bf16[%m, %n]");
  EXPECT_EQ(type(add(g, alpha, count)), "f64");
  EXPECT_EQ(type(binary(g, OpKind::kLt, count, alpha)), "bool");
  EXPECT_EQ(type(mul(g, m, n)), "index");
}

TEST_F(Infer, WrongDtypesAreRefusedAtTheOperand) {
  EXPECT_EQ(refusal([&] { unary(g, OpKind::kNeg, flags); }), "E0204 %flags");
  EXPECT_EQ(refusal([&] { binary(g, OpKind::kBitwiseAnd, x, ints); }), "E0204 %x");
  EXPECT_EQ(type(unary(g, OpKind::kExp, c64)), "c64[%m, %n]");
  EXPECT_EQ(type(triu(g, c64)), "c64[%m, %n]");
  EXPECT_EQ(refusal([&] { unary(g, OpKind::kErf, c64); }), "E0211 %c64");
  // No kernel has functions of complex numbers, so scalars have none.
  EXPECT_EQ(refusal([&] { unary(g, OpKind::kExp, input_scalar(g, "z", Dtype::kComplexFloat)); }), "E0211 %z");
  EXPECT_EQ(refusal([&] { unary(g, OpKind::kImag, x); }), "E0204 %x");
  EXPECT_EQ(refusal([&] { where(g, x, x, x); }), "E0204 %x");
  EXPECT_EQ(refusal([&] { ternary(g, OpKind::kLerp, ints, ints, ints); }), "E0204 %ints");
  EXPECT_EQ(refusal([&] { binary(g, OpKind::kNextafter, bf, bf); }), "E0211 %bf");
  const ValueId packed = input(g, "packed", Dtype::kFloat8E8m0, {m, n});
  EXPECT_EQ(refusal([&] { add(g, packed, packed); }), "E0211 %packed");
  EXPECT_EQ(type(unary(g, OpKind::kSet, packed)), "f8e8m0[%m, %n]");
  EXPECT_EQ(type(where(g, flags, packed, packed)), "f8e8m0[%m, %n]");
  EXPECT_EQ(refusal([&] { where(g, flags, packed, x); }), "E0211 %packed");
  EXPECT_EQ(refusal([&] { where(g, flags, alpha, packed); }), "E0211 %alpha");
  EXPECT_EQ(refusal([&] { binary(g, OpKind::kAtan2, x, packed); }), "E0211 %packed");
  const ValueId u64 = input(g, "u64", Dtype::kUint64, {m, n});
  EXPECT_EQ(refusal([&] { add(g, u64, ints); }), "E0204 %ints");
}

TEST_F(Infer, PointwiseAxes) {
  EXPECT_EQ(type(add(g, x, row)), "f32[%m, %n]");
  EXPECT_EQ(type(add(g, row, row)), "f32[1, %n]");
  EXPECT_EQ(type(add(g, x, vec)), "f32[%m, %n]");  // the builder aligns them
  const ValueId stretched = expand(g, row, {k, n});
  EXPECT_EQ(type(stretched), "f32[1*%k, %n]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, stretched)), "f32[1*%k, %n]");
  EXPECT_EQ(type(add(g, stretched, row)), "f32[1*%k, %n]");
  EXPECT_EQ(type(add(g, stretched, x)), "f32[%m, %n]");
  EXPECT_EQ(refusal([&] { add_op(g, Graph::body(), OpKind::kAdd, {x, vec}); }), "E0205 %vec");
  const ValueId a = input(g, "a", Dtype::kFloat, {4, 5}), b = input(g, "b", Dtype::kFloat, {4, 6});
  EXPECT_EQ(refusal([&] { add(g, a, b); }), "E0203 %b");
  const ValueId c = input(g, "c", Dtype::kFloat, {n, 5});
  EXPECT_EQ(type(add(g, a, c)), "f32[4, 5]");
  EXPECT_EQ(type(add(g, c, a)), "f32[%n, 5]");
}

TEST_F(Infer, Reductions) {
  EXPECT_EQ(type(sum(g, x, {1})), "f32[%m, reduce %n]");
  EXPECT_EQ(type(sum(g, ints, {-2})), "i64[reduce %m, %n]");
  EXPECT_EQ(type(sum(g, flags, {})), "i64[reduce %m, reduce %n]");
  EXPECT_EQ(type(sum(g, bf, {0}, {.dtype = Dtype::kDouble})), "f64[reduce %m, %n]");
  EXPECT_EQ(type(max(g, flags, {0})), "bool[reduce %m, %n]");
  EXPECT_EQ(type(sum(g, x, {1}, {.keepdim = true})), "f32[%m, 1]");
  EXPECT_EQ(type(sum(g, row, {0})), "f32[reduce 1, %n]");
  EXPECT_EQ(type(sum(g, expand(g, row, {k, n}), {0})), "f32[reduce %k, %n]");
  const ValueId s = sum(g, x, {0});
  EXPECT_EQ(type(unary(g, OpKind::kExp, s)), "f32[%n]");
  EXPECT_EQ(rank_of(g, sum(g, x, {})), 0u);
  EXPECT_EQ(refusal([&] { sum(g, x, {2}); }), "E0206 %x");
  EXPECT_EQ(refusal([&] { sum(g, x, {1, -1}); }), "E0206 %x");
  EXPECT_EQ(refusal([&] { max(g, c64, {1}); }), "E0204 %c64");
  const WelfordResult w = welford(g, x, {1});
  EXPECT_EQ(type(w.var_sum), "f32[%m, reduce %n]");
  EXPECT_EQ(type(w.n), "i64[%m, reduce %n]");
  Attrs over;
  over.set(AttrKey::kAxes, Axes{0});
  const OpId merged = add_op(g, Graph::body(), OpKind::kWelford, {w.avg, w.var_sum, w.n}, over);
  EXPECT_EQ(type(g[merged].results[2]), "i64[reduce %m]");
  EXPECT_EQ(refusal([&] { add_op(g, Graph::body(), OpKind::kWelford, {w.avg, w.n, w.var_sum}, over); }),
            "E0204 %" + g[w.n].name);
}

TEST_F(Infer, BroadcastAndExpand) {
  EXPECT_EQ(type(broadcast(g, x, {true, false, true, false})), "f32[1, %m, 1, %n]");
  EXPECT_EQ(refusal([&] { broadcast(g, x, {true, false}); }), "E0205 %x");
  EXPECT_EQ(refusal([&] { broadcast(g, x, {false, false, false}); }), "E0205 %x");
  EXPECT_EQ(type(broadcast_in_dim(g, x, {1, m, n}, {1, 2})), "f32[1, %m, %n]");
  EXPECT_EQ(type(broadcast_in_dim(g, x, {k, m, n}, {1, 2})), "f32[1*%k, %m, %n]");
  EXPECT_EQ(type(broadcast_in_dim(g, row, {m, n}, {0, 1})), "f32[1*%m, %n]");
  EXPECT_EQ(type(broadcast_in_dim(g, vec, {m, 4}, {1})), "f32[1*%m, ?4]");
  EXPECT_EQ(refusal([&] { broadcast_in_dim(g, x, {n, m}, {1, 0}); }), "E0206 %x");
  EXPECT_EQ(type(expand(g, x, {-1, n})), "f32[%m, %n]");
  EXPECT_EQ(type(expand(g, x, {k, -1})), "f32[?%k, %n]");
  EXPECT_EQ(type(expand(g, vec, {m, -1})), "f32[1*%m, %n]");
  const ValueId five = input(g, "five", Dtype::kFloat, {5});
  EXPECT_EQ(refusal([&] { expand(g, five, {6}); }), "E0203 %five");
  EXPECT_EQ(type(expand(g, five, {k})), "f32[%k]");  // 5 is not 1, so it can only be equal
  EXPECT_EQ(type(unary(g, OpKind::kExp, expand(g, x, {k, -1}))), "f32[?%k, %n]");
  EXPECT_EQ(type(add(g, expand(g, x, {k, -1}), x)), "f32[%m, %n]");
}

TEST_F(Infer, PermuteSqueezeStrideOrder) {
  EXPECT_EQ(type(permute(g, x, {1, 0})), "f32[%n, %m]");
  EXPECT_EQ(type(permute(g, row, {-1, 0})), "f32[%n, 1]");
  EXPECT_EQ(refusal([&] { permute(g, x, {0}); }), "E0206 %x");
  EXPECT_EQ(type(squeeze(g, row, {0})), "f32[%n]");
  EXPECT_EQ(type(squeeze(g, x, {0})), "f32[%n]");  // at run time it is checked that %m is 1
  EXPECT_EQ(refusal([&] { squeeze(g, input(g, "five", Dtype::kFloat, {5}), {0}); }), "E0203 %five");
  EXPECT_EQ(refusal([&] { squeeze(g, expand(g, row, {k, n}, "wide"), {0}); }), "E0203 %wide");
  EXPECT_EQ(type(squeeze(g, expand(g, row, {k, n}), {0}, {.squeeze_expanded = true})), "f32[%n]");
  const ValueId t = stride_order(g, x, {0, 1});
  EXPECT_EQ(g[g.tensor_of(t).allocation[0]].name, "i1");
  EXPECT_TRUE(g.tensor_of(stride_order(g, x, {1, 0})).allocation.empty());
}

TEST_F(Infer, Slices) {
  const ValueId a = input(g, "a", Dtype::kFloat, {10});
  const auto extent = [&](ValueId v) { return *evaluate_extent(g, g.tensor_of(v).logical[0]); };
  EXPECT_EQ(extent(slice(g, a, {2}, {7})), 5);
  EXPECT_EQ(extent(slice(g, a, {-3}, {100})), 3);
  EXPECT_EQ(extent(slice(g, a, {7}, {2})), 0);
  EXPECT_EQ(extent(slice(g, a, {-100}, {-9})), 1);
  EXPECT_EQ(type(slice(g, a, {2}, {7})), "f32[resize(r0 by -2,-3)]");
  EXPECT_EQ(type(slice(g, a, {0}, {10})), "f32[10]");
  EXPECT_EQ(type(slice(g, x, {0, 0}, {m, k})), "f32[%m, resize(r1 by 0,(%k-%n))]");
  // A consumer has the plain extent: stop − start.
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, x, {0, k}, {m, n}))), "f32[%m, (%n-%k)]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, x, {0, 0}, {m, k}))), "f32[%m, %k]");
  // An extent that cannot be exceeded stays as it is; another sum of sizes is clamped.
  const ValueId half = scalar::floor_div(g, Graph::body(), n, constant_index(g, 2));
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, vec, {0}, {half}))), "f32[floor_div(%n,2)]");
  const ValueId other_half = scalar::floor_div(g, Graph::body(), k, constant_index(g, 2));
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, vec, {0}, {other_half}))), "f32[minimum(floor_div(%k,2),%n)]");
  const ValueId longer = unary(g, OpKind::kExp, cat(g, {vec, input(g, "more", Dtype::kFloat, {k})}, 0));
  const ValueId sum = scalar::add(g, Graph::body(), n, k), wide = scalar::add(g, Graph::body(), n, m);
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, longer, {0}, {n}))), "f32[%n]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, longer, {n}, {sum}))), "f32[%k]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, longer, {0}, {wide}))), "f32[minimum((%n+%m),(%n+%k))]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, vec, {0}, {sum}))), "f32[minimum((%n+%k),%n)]");
  EXPECT_EQ(type(slice(g, expand(g, row, {n, n}), {0, 0}, {k, n})), "f32[1*minimum(%k,%n), %n]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, vec, {0}, {4}))), "f32[minimum(4,%n)]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, slice(g, vec, {-4}, {int64_t{1} << 62}))), "f32[(%n-maximum((%n-4),0))]");
  EXPECT_EQ(type(slice(g, expand(g, row, {k, n}), {1, 0}, {k, n})), "f32[1*(%k-minimum(1,%k)), %n]");
  EXPECT_EQ(type(slice(g, row, {0, 0}, {1, n})), "f32[1, %n]");
  EXPECT_EQ(refusal([&] { slice(g, vec, {0}, {n}, {2}); }), "E0212 %vec");
  EXPECT_EQ(refusal([&] { slice(g, x, {0}, {n}); }), "E0205 %x");
}

TEST_F(Infer, PadAndCat) {
  EXPECT_EQ(type(pad(g, x, {1, 2})), "f32[%m, resize(r1 by 1,2)]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, pad(g, x, {1, 2}))), "f32[%m, (%n+3)]");
  EXPECT_EQ(type(pad(g, x, {0, 0, k, 0})), "f32[resize(r0 by %k,0), %n]");
  EXPECT_EQ(root_text(g, pad(g, row, {0, 0, 0, 2})), "r0:iter 1, i1:%n");
  const ValueId a = input(g, "a", Dtype::kFloat, {3});
  EXPECT_EQ(refusal([&] { pad(g, a, {-2, -2}); }), "E0207 %a");
  EXPECT_EQ(refusal([&] { pad(g, ints, {1, 1}, alpha); }), "E0204 %alpha");
  EXPECT_EQ(refusal([&] { pad(g, a, {1, 1, 1, 1}); }), "E0205 %a");
  EXPECT_EQ(type(cat(g, {x, x}, 0)), "f32[(%m*2), %n]");
  EXPECT_EQ(type(cat(g, {x, half, row}, -2)), "f32[((%m*2)+1), %n]");
  EXPECT_EQ(refusal([&] { cat(g, {x, row}, 1); }), "E0203 %row");
  EXPECT_EQ(refusal([&] { cat(g, {}, 0); }), "E0202 ");
  // The two halves of an axis give the whole again.
  const ValueId middle = scalar::floor_div(g, Graph::body(), n, constant_index(g, 2));
  EXPECT_EQ(type(cat(g, {slice(g, vec, {middle}, {n}), slice(g, vec, {0}, {middle})})), "f32[%n]");
}

TEST_F(Infer, Reshape) {
  const ValueId mn = mul(g, m, n);
  EXPECT_EQ(type(reshape(g, x, {mn})), "f32[merge(r0,r1)]");
  EXPECT_EQ(type(unary(g, OpKind::kExp, reshape(g, x, {mn}))), "f32[(%m*%n)]");
  EXPECT_EQ(type(reshape(g, x, {-1})), "f32[merge(r0,r1)]");
  const ValueId flat = input(g, "flat", Dtype::kFloat, {mn, k});
  EXPECT_EQ(type(reshape(g, flat, {m, n, k})), "f32[split(r0 by %n).outer, split(r0 by %n).inner, %k]");
  EXPECT_EQ(type(reshape(g, flat, {m, n, -1})), "f32[split(r0 by %n).outer, split(r0 by %n).inner, %k]");
  EXPECT_EQ(type(reshape(g, x, {n, m})), "f32[split(m0 by %m).outer, split(m0 by %m).inner]");
  EXPECT_EQ(type(reshape(g, x, {m, 1, n})), "f32[%m, 1, %n]");
  EXPECT_EQ(type(reshape(g, row, {n})), "f32[%n]");
  EXPECT_EQ(root_text(g, reshape(g, row, {n})), "r0:1, i0:%n");
  EXPECT_EQ(type(reshape(g, x, {k, -1})), "f32[?%k, ?floor_div((%m*%n),%k)]");
  const ValueId a = input(g, "a", Dtype::kFloat, {12, 5});
  EXPECT_EQ(type(reshape(g, a, {3, 4, 5})), "f32[split(r0 by 4).outer, split(r0 by 4).inner, 5]");
  EXPECT_EQ(type(reshape(g, a, {2, 3, -1, 5})),
            "f32[split(m0 by 3).outer, split(m0 by 3).inner, split(r0 by 2).inner, 5]");
  EXPECT_EQ(refusal([&] { reshape(g, a, {7, 9}); }), "E0203 %a");
  EXPECT_EQ(refusal([&] { reshape(g, a, {7, -1}); }), "E0203 %a");
  EXPECT_EQ(refusal([&] { reshape(g, a, {-1, -1}); }), "E0207 %a");
  const ValueId none = input(g, "none", Dtype::kFloat, {0, 3});
  EXPECT_EQ(evaluate_shape(g, reshape(g, none, {5, 0})), (std::vector<int64_t>{5, 0}));
  EXPECT_EQ(refusal([&] { reshape(g, none, {5, 2}); }), "E0203 %none");
  const ValueId point = sum(g, x, {});
  EXPECT_EQ(type(reshape(g, point, {1, 1})), "f32[1, 1]");
  EXPECT_EQ(rank_of(g, reshape(g, input(g, "unit", Dtype::kFloat, {1, 1}), {})), 0u);
  EXPECT_EQ(type(reshape(g, expand(g, row, {k, n}), {-1})), "f32[merge(r0,r1)]");
  EXPECT_EQ(root_text(g, reshape(g, expand(g, row, {k, n}), {-1})), "r0:%k, r1:%n");
}

TEST_F(Infer, FactoriesAndIndexing) {
  EXPECT_EQ(type(full(g, {m, 1, 4}, alpha, Dtype::kFloat)), "f32[%m, 1, 4]");
  EXPECT_EQ(type(iota(g, n)), "i64[%n]");
  EXPECT_EQ(type(iota(g, 1, {}, {}, Dtype::kFloat)), "f32[iter 1]");
  EXPECT_EQ(refusal([&] { iota(g, n, alpha); }), "E0204 %alpha");
  const ValueId index = input(g, "index", Dtype::kInt64, {k}), square = input(g, "square", Dtype::kInt64, {k, n});
  EXPECT_EQ(type(select(g, x, count, 0)), "f32[%n]");
  EXPECT_EQ(type(index_select(g, x, index, 1)), "f32[%m, %k]");
  EXPECT_EQ(type(gather(g, x, square, 0)), "f32[%k, %n]");
  // Expanding one index along an axis chooses an element at each place of the axis.
  EXPECT_EQ(type(gather(g, x, expand(g, input(g, "column", Dtype::kInt64, {k, 1}), {k, n}), 0)), "f32[%k, %n]");
  EXPECT_EQ(type(take_along_axis(g, x, square, 0)), "f32[%k, %n]");
  EXPECT_EQ(type(take_along_axis(g, row, input(g, "wide", Dtype::kInt32, {k, 3}), 1)), "f32[%k, 3]");
  EXPECT_EQ(type(scatter(g, x, square, x, 0)), "f32[%m, %n]");
  EXPECT_EQ(refusal([&] { index_select(g, x, vec, 0); }), "E0204 %vec");
  EXPECT_EQ(refusal([&] { index_select(g, x, square, 0); }), "E0205 %square");
  EXPECT_EQ(refusal([&] { index_select(g, x, count, 0); }), "E0215 %count");
  EXPECT_EQ(refusal([&] { scatter(g, x, square, half, 0); }), "E0204 %half");
  EXPECT_EQ(refusal([&] { gather(g, x, index, 0); }), "E0205 %index");
  EXPECT_EQ(type(triu(g, expand(g, row, {k, n}), 1)), "f32[%k, %n]");
  EXPECT_EQ(refusal([&] { triu(g, vec); }), "E0205 %vec");
}

TEST_F(Infer, OutputsAndAliases) {
  output(g, unary(g, OpKind::kExp, x), x);
  EXPECT_EQ(outputs(g)[0].alias, x);
  EXPECT_EQ(refusal([&] { output(g, cast(g, x, Dtype::kHalf), x); }), "E0213 %x");
  EXPECT_EQ(refusal([&] { output(g, x, unary(g, OpKind::kExp, x, "y")); }), "E0213 %y");
  EXPECT_EQ(refusal([&] { output(g, vec, x); }), "E0213 %x");
}

TEST_F(Infer, LevelsKindsCountsAndNames) {
  EXPECT_EQ(refusal([&] { add_op(g, Graph::body(), OpKind::kBarrier, {}); }), "E0208 ");
  EXPECT_EQ(refusal([&] { add_op(g, Graph::body(), OpKind::kSum, {m}); }), "E0215 %m");
  EXPECT_EQ(refusal([&] { add_op(g, Graph::body(), OpKind::kAdd, {m}); }), "E0202 %m");
  EXPECT_EQ(refusal([&] { add_op(g, Graph::body(), OpKind::kExp, {x}, {}, {"a", "b"}); }), "E0202 %a");
  Attrs wrong;
  wrong.set(AttrKey::kAxis, int64_t{0});
  EXPECT_EQ(refusal([&] { add_op(g, Graph::body(), OpKind::kExp, {x}, wrong); }), "E0207 %x");
  EXPECT_EQ(op_named("sum"), OpKind::kSum);
  EXPECT_EQ(refusal([&] { op_named("nv_block_quantize"); }), "E0212 nv_block_quantize");
  EXPECT_EQ(refusal([&] { op_named("frobnicate"); }), "E0201 frobnicate");
}

TEST_F(Infer, ExtentsAreEmittedOnceForEachValue) {
  const ValueId a = unary(g, OpKind::kExp, reshape(g, x, {-1}));
  const ValueId b = unary(g, OpKind::kExp, reshape(g, half, {-1}));
  EXPECT_EQ(g[g.tensor_of(a).logical[0]].extent, g[g.tensor_of(b).logical[0]].extent);
}

TEST_F(Infer, KernelScalarsRoundToTheDeclaredDtype) {
  Graph kernel;
  kernel.level = Level::kKernel;
  const ValueId buffer = input_buffer(kernel, "x", Dtype::kFloat);
  const ValueId a = input_scalar(kernel, "a", Dtype::kDouble), i = input_scalar(kernel, "i", Dtype::kIndex);
  const ValueId v = kernel[add_op(kernel, Graph::body(), OpKind::kLoad, {buffer, i})].results[0];
  EXPECT_EQ(shape_text(kernel, v), "f32");
  const OpId rounded = add_op(kernel, Graph::body(), OpKind::kMul, {v, a}, {}, {"y"}, Dtype::kFloat);
  EXPECT_EQ(shape_text(kernel, kernel[rounded].results[0]), "f32");
  EXPECT_EQ(refusal([&] { add_op(kernel, Graph::body(), OpKind::kAdd, {buffer, v}); }), "E0215 %x");
  EXPECT_EQ(refusal([&] { add_op(kernel, Graph::body(), OpKind::kStore, {buffer, i, a}); }), "E0204 %a");
  Attrs axis, before;
  axis.set(AttrKey::kAxis, 1);
  before.set(AttrKey::kAxis, -1);
  EXPECT_TRUE(add_op(kernel, Graph::body(), OpKind::kWithin, {i, i, {}}));
  EXPECT_TRUE(add_op(kernel, Graph::body(), OpKind::kWithin, {i, {}, buffer}, axis));
  EXPECT_EQ(refusal([&] { add_op(kernel, Graph::body(), OpKind::kWithin, {i, {}, buffer}, before); }), "E0206 %x");
  EXPECT_EQ(refusal([&] { add_op(kernel, Graph::body(), OpKind::kWithin, {i, i, buffer}, axis); }), "E0202 %i");
  EXPECT_EQ(refusal([&] { add_op(kernel, Graph::body(), OpKind::kWithin, {i, {}, {}}); }), "E0202 %i");
  EXPECT_EQ(refusal([&] { add_op(kernel, Graph::body(), OpKind::kWithin, {a, i, {}}); }), "E0204 %a");
  Attrs local;
  local.set_enum(AttrKey::kMemory, MemoryType::kLocal);
  EXPECT_EQ(refusal([&] { add_op(kernel, Graph::body(), OpKind::kAllocate, {i}, local, {"b"}, Dtype::kFloat); }),
            "E0207 %i");
  const OpId loop = add_op(kernel, Graph::body(), OpKind::kFor, {i, i, i});
  EXPECT_TRUE(kernel[kernel[loop].regions[0]].index);
}

TEST_F(Infer, Composites) {
  EXPECT_EQ(type(var(g, bf, {1}, {.keepdim = true})), "bf16[%m, 1]");
  EXPECT_EQ(type(var_mean(g, x, {}).mean), "f32[]");
  EXPECT_EQ(type(mean(g, half, {-1})), "f16[%m]");
  EXPECT_EQ(type(softmax(g, bf, -1)), "bf16[%m, %n]");
  EXPECT_EQ(type(layer_norm(g, bf, 1, {.weight = vec, .bias = vec})), "bf16[%m, %n]");
  EXPECT_EQ(type(rms_norm(g, x, 2)), "f32[%m, %n]");
  const ValueId ids = input(g, "ids", Dtype::kInt64, {4, k});
  EXPECT_EQ(type(unary(g, OpKind::kSet, embedding(g, ids, x))), "f32[4, %k, %n]");
  EXPECT_EQ(refusal([&] { var(g, ints, {1}); }), "E0204 %ints");
  const ValueId complex = input(g, "complex", Dtype::kComplexDouble, {m, n});
  EXPECT_EQ(type(var(g, complex, {1}, {.keepdim = true})), "f64[%m, 1]");
  EXPECT_EQ(type(var_mean(g, complex, {0}).mean), "c128[%n]");
}

// Every pointwise and reduction row gives a dtype or a coded refusal for every dtype, as accepts_dtype says.
TEST(TypeRule, EveryRowAnswersForEveryDtype) {
  int accepted = 0;
  for (const OpRow& row : op_rows()) {
    if ((row.demands & (kPointwise | kReduction)) == 0) continue;
    for (const DtypeRow& d : dtype_rows()) {
      const size_t count = row.format->slot_count == 0 ? 1 : static_cast<size_t>(row.format->slot_count);
      std::vector<OperandType> operands(count, OperandType{d.dtype});
      if (row.kind == OpKind::kWhere) operands[0].dtype = Dtype::kBool;
      try {
        result_dtype(row.kind, operands);
        EXPECT_TRUE(accepts_dtype(row.kind, d.dtype)) << row.text << " " << d.text;
        ++accepted;
      } catch (const Error& e) {
        EXPECT_FALSE(accepts_dtype(row.kind, d.dtype)) << row.text << " " << d.text;
        EXPECT_TRUE(e.code == ErrorCode::kDtypeMismatch || e.code == ErrorCode::kUnsupportedDtype) << row.text;
      }
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace fusebox
