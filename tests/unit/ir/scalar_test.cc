#include "ir/scalar/scalar.h"

#include <gtest/gtest.h>
#include <limits>

#include "ir/build/builder.h"
#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"
#include "tests/unit/ir/shape_text.h"

namespace fusebox {
namespace {

int64_t integers(OpKind kind, Dtype d, int64_t a, int64_t b, Dtype result) {
  const TypedBits v[] = {{d, from_int64(d, a)}, {d, from_int64(d, b)}};
  return to_int64(result, evaluate_op(kind, result, v).value());
}
int64_t index(OpKind kind, int64_t a, int64_t b) { return integers(kind, Dtype::kIndex, a, b, Dtype::kIndex); }
int64_t byte(OpKind kind, int64_t a, int64_t b) { return integers(kind, Dtype::kInt8, a, b, Dtype::kInt8); }

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

// All of these may compute sizes, and a host program can hold them.
TEST(EvaluateOp, WhatIsEvaluatedMayStandInAHostProgram) {
  size_t evaluated = 0;
  for (size_t i = 0; i < op_rows().size(); ++i) {
    const auto kind = static_cast<OpKind>(i);
    bool is_evaluated = false;
    for (Dtype d : {Dtype::kBool, Dtype::kIndex, Dtype::kInt8, Dtype::kUint64, Dtype::kFloat, Dtype::kDouble}) {
      const TypedBits one = {d, from_int64(d, 1)}, v[] = {one, one, one};
      for (size_t n = 1; n <= 3; ++n) is_evaluated |= evaluate_op(kind, d, {v, n}).has_value();
    }
    evaluated += is_evaluated;
    EXPECT_TRUE(!is_evaluated || row_of(kind).at(Level::kHost)) << row_of(kind).text;
  }
  EXPECT_GT(evaluated, 30u);
}

// 2^60 paths lead to the input, and a chain is deeper than a stack.
TEST(Evaluate, CostsAsMuchAsThereAreOps) {
  Graph g;
  const ValueId n = size(g, "n");
  ValueId doubled = n, deep = n;
  for (int i = 0; i < 60; ++i) doubled = add(g, doubled, doubled);
  for (int i = 0; i < 20000; ++i) deep = sub(g, n, deep);
  Bindings bindings(g.values.size());
  bindings[n.index] = ConstantBits{3, 0};
  EXPECT_EQ(evaluate_integer(g, doubled, bindings), int64_t{3} << 60);
  EXPECT_EQ(evaluate_integer(g, deep, bindings), 3);
  EXPECT_EQ(evaluate_integer(g, doubled), std::nullopt);
}

TEST(EvaluateOp, DivisionIsEuclideanOnIndices) {
  for (int64_t a : {-130, -129, -128, -7, -1, 0, 1, 7, 127, 128, 129})
    for (int64_t b : {-128, -3, -1, 1, 2, 3, 128}) {
      const int64_t q = index(OpKind::kFloorDiv, a, b), r = index(OpKind::kFloorMod, a, b);
      EXPECT_EQ(q * b + r, a);
      EXPECT_GE(r, 0);
      EXPECT_LT(r, std::abs(b));
      if (b > 0) {
        EXPECT_EQ(index(OpKind::kCeilDiv, a, b), index(OpKind::kFloorDiv, a + b - 1, b));
      }
    }
  for (OpKind kind :
       {OpKind::kFloorDiv, OpKind::kFloorMod, OpKind::kCeilDiv, OpKind::kDiv, OpKind::kMod, OpKind::kRemainder})
    EXPECT_EQ(index(kind, 5, 0), 0);
  EXPECT_EQ(index(OpKind::kDiv, kMin, -1), kMin);
  EXPECT_EQ(index(OpKind::kMod, kMin, -1), 0);
  EXPECT_EQ(index(OpKind::kFloorDiv, kMin, -1), kMin);
  EXPECT_EQ(byte(OpKind::kDiv, -128, -1), -128);
  EXPECT_EQ(index(OpKind::kDiv, -7, 2), -3);
  EXPECT_EQ(index(OpKind::kMod, -7, 2), -1);
  EXPECT_EQ(index(OpKind::kRemainder, -7, 2), 1);
  EXPECT_EQ(index(OpKind::kRemainder, 7, -2), -1);
}

TEST(EvaluateOp, IntegersWrapAndShiftsEnd) {
  EXPECT_EQ(byte(OpKind::kAdd, 127, 1), -128);
  EXPECT_EQ(byte(OpKind::kMul, 100, 3), 44);
  EXPECT_EQ(byte(OpKind::kBitwiseLeftShift, 1, 7), -128);
  EXPECT_EQ(byte(OpKind::kBitwiseLeftShift, 1, 8), 0);
  EXPECT_EQ(byte(OpKind::kBitwiseLeftShift, 1, -1), 0);
  EXPECT_EQ(byte(OpKind::kBitwiseRightShift, -128, 100), -1);
  EXPECT_EQ(byte(OpKind::kBitwiseRightShift, 127, -1), 0);
  EXPECT_EQ(byte(OpKind::kLogicalRightShift, -1, 1), 127);
  EXPECT_EQ(byte(OpKind::kLogicalRightShift, -1, 8), 0);
  EXPECT_EQ(integers(OpKind::kSub, Dtype::kUint8, 3, 5, Dtype::kUint8), 254);
  EXPECT_EQ(integers(OpKind::kLt, Dtype::kUint64, -1, 1, Dtype::kBool), 0);
  EXPECT_EQ(integers(OpKind::kMaximum, Dtype::kUint64, -1, 1, Dtype::kUint64), -1);
  EXPECT_EQ(integers(OpKind::kAdd, Dtype::kBool, 1, 1, Dtype::kBool), 1);
  EXPECT_EQ(index(OpKind::kGcd, -12, 18), 6);
  EXPECT_EQ(index(OpKind::kPow, -1, -3), -1);
  EXPECT_EQ(index(OpKind::kPow, 2, -3), 0);
  EXPECT_EQ(index(OpKind::kPow, 3, 4), 81);
}

TEST(EvaluateOp, FloatsRoundOnce) {
  const auto f = [](OpKind kind, Dtype d, double a, double b) {
    const TypedBits v[] = {{d, from_double(d, a)}, {d, from_double(d, b)}};
    return to_double(d, evaluate_op(kind, d, v).value());
  };
  EXPECT_EQ(f(OpKind::kAdd, Dtype::kBfloat16, 256, 1), 256);
  EXPECT_EQ(f(OpKind::kAdd, Dtype::kFloat, 16777216, 1), 16777216);
  EXPECT_EQ(f(OpKind::kTruediv, Dtype::kDouble, 1, 3), 1.0 / 3);
  EXPECT_TRUE(std::isnan(f(OpKind::kMaximum, Dtype::kFloat, std::nan(""), 1)));
  const TypedBits three[] = {{Dtype::kInt32, {3}}, {Dtype::kInt32, {2}}};
  EXPECT_EQ(to_double(Dtype::kFloat, *evaluate_op(OpKind::kTruediv, Dtype::kFloat, three)), 1.5);
  const TypedBits big[] = {{Dtype::kDouble, from_double(Dtype::kDouble, 1e30)}};
  EXPECT_EQ(to_int64(Dtype::kInt32, *evaluate_op(OpKind::kCast, Dtype::kInt32, big)), 2147483647);
  const TypedBits x[] = {{Dtype::kDouble, from_double(Dtype::kDouble, 0.5)}};
  EXPECT_FALSE(evaluate_op(OpKind::kExp, Dtype::kDouble, x));  // its bits depend on the library
}

TEST(MakeScalar, SimplifiesAndFolds) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n"), zero = constant_index(g, 0), one = constant_index(g, 1), two = constant_index(g, 2);
  const RegionId body = Graph::body();
  const size_t before = g.ops.size();
  EXPECT_EQ(scalar::add(g, body, n, zero), n);
  EXPECT_EQ(scalar::add(g, body, zero, n), n);
  EXPECT_EQ(scalar::sub(g, body, n, zero), n);
  EXPECT_EQ(scalar::sub(g, body, n, n), zero);
  EXPECT_EQ(scalar::mul(g, body, n, one), n);
  EXPECT_EQ(scalar::mul(g, body, zero, n), zero);
  EXPECT_EQ(scalar::ceil_div(g, body, n, one), n);
  EXPECT_EQ(scalar::floor_div(g, body, n, one), n);
  EXPECT_EQ(scalar::floor_mod(g, body, n, one), zero);
  EXPECT_EQ(scalar::add(g, body, one, one), two);
  EXPECT_EQ(scalar::minimum(g, body, n, n), n);
  const ValueId yes = constant(g, Dtype::kBool, {1, 0});
  EXPECT_EQ(scalar::le(g, body, n, n), yes);
  EXPECT_EQ(scalar::lt(g, body, one, two), yes);
  EXPECT_EQ(scalar::where(g, body, yes, n, zero), n);
  EXPECT_EQ(g.ops.size(), before);
  const ValueId p = scalar::lt(g, body, n, two);
  EXPECT_EQ(g.ops.size(), before + 1);
  EXPECT_EQ(scalar::logical_and(g, body, p, yes), p);
  EXPECT_EQ(scalar::logical_or(g, body, p, yes), yes);
  EXPECT_TRUE(g[g[scalar::floor_div(g, body, n, two, true)].def].attrs.flag(AttrKey::kNonNegative));
}

// Bytes may hold one constant under two ids; the text of that graph has it under one. Both must give the same scalars,
// else a type that the text leaves to inference is read back as another one.
TEST(MakeScalar, AConstantUnderTwoIdsIsOne) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n"), one = constant_index(g, 1), two = constant_index(g, 2);
  const RegionId body = Graph::body();
  const ValueId with_one = scalar::minimum(g, body, n, one), with_two = scalar::minimum(g, body, n, two);
  EXPECT_NE(with_one, with_two);
  g[two].constant = g[one].constant;
  EXPECT_EQ(scalar::minimum(g, body, n, two), with_one);
  const ValueId p = scalar::lt(g, body, n, with_one);
  EXPECT_EQ(scalar::where(g, body, p, one, two), one);
}

TEST(MakeScalar, StandsBeforeTheOpItIsFor) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n"), x = input(g, "x", Dtype::kFloat, {n}), y = unary(g, OpKind::kExp, x);
  const ValueId twice = scalar::add(g, scalar::Place::before_op(g, g[y].def), n, n);
  const auto& ops = g[Graph::body()].ops;
  EXPECT_EQ(ops[2], g[twice].def);
  EXPECT_EQ(ops[3], g[y].def);
}

TEST(ScalarForm, SumsAndProducts) {
  Graph g = fusion("f");
  const ValueId m = size(g, "m"), n = size(g, "n");
  const auto body = Graph::body();
  const ValueId a = scalar::sub(g, body, scalar::add(g, body, m, n), m);
  EXPECT_EQ(form_of(g, a).as_atom(), n);
  const ValueId mn = scalar::mul(g, body, m, n), nm = scalar::mul(g, body, n, m);
  EXPECT_TRUE(form_of(g, mn).equals(form_of(g, nm)));
  EXPECT_FALSE(form_of(g, mn).equals(form_of(g, m)));
  EXPECT_EQ(emit_form(g, body, form_of(g, nm)), mn);  // the existing op
  EXPECT_EQ(divide_exactly(form_of(g, mn), form_of(g, m))->as_atom(), n);
  EXPECT_FALSE(divide_exactly(form_of(g, m), form_of(g, n)));
  EXPECT_FALSE(divide_exactly(form_of(g, m), ScalarForm::of(0)));
  // Doubling 200 times takes little time and space.
  ValueId v = m;
  for (int i = 0; i < 200; ++i) v = scalar::add(g, body, v, v);
  EXPECT_LE(form_of(g, v).terms.size(), 16u);
}

class Extents : public testing::Test {
 protected:
  Graph g = fusion("f");
  ValueId n = size(g, "n"), x = input(g, "x", Dtype::kFloat, {n});
  TensorId t = g[x].tensor;

  DomainId derived(Transform f) {
    const TransformId id(g.transforms.size());
    f.outputs.resize(f.kind == TransformKind::kSplit || f.kind == TransformKind::kSwizzle ? 2 : 1);
    for (DomainId& d : f.outputs) {
      IterDomain domain;
      domain.name = "t" + std::to_string(g.domains.size());
      domain.def = id;
      d = add_domain(g, t, domain);
    }
    g.transforms.push_back(f);
    return f.outputs[0];
  }
  int64_t at(DomainId d, int64_t size) {
    Bindings b(g.values.size());
    b[n.index] = ConstantBits{static_cast<uint64_t>(size), 0};
    return evaluate_extent(g, d, b).value();
  }
};

TEST_F(Extents, OfTransforms) {
  Transform split;
  split.inputs = {g[t].logical[0]};
  split.factor = constant_index(g, 128);
  const DomainId outer = derived(split), inner(outer.index + 1);
  for (auto [size, expected] : {std::pair<int64_t, int64_t>{0, 0}, {1, 1}, {127, 1}, {128, 1}, {129, 2}, {256, 2}}) {
    EXPECT_EQ(at(outer, size), expected);
    EXPECT_EQ(at(inner, size), 128);
  }
  split.inner_split = false;
  EXPECT_EQ(at(derived(split), 129), 128);
  EXPECT_EQ(at(DomainId(g.domains.size() - 1), 129), 2);
  Transform merge;
  merge.kind = TransformKind::kMerge;
  merge.inputs = {outer, inner};
  const DomainId merged = derived(merge);
  EXPECT_EQ(at(merged, 129), 256);
  Transform resize;
  resize.kind = TransformKind::kResize;
  resize.inputs = {g[t].logical[0]};
  resize.factor = constant_index(g, -2);
  resize.right = constant_index(g, 5);
  EXPECT_EQ(at(derived(resize), 10), 13);
  EXPECT_EQ(expression_text(g, emit_extent(g, Graph::body(), outer)), "ceil_div(%n,128)");
  EXPECT_EQ(expression_text(g, emit_extent(g, Graph::body(), merged)), "(ceil_div(%n,128)*128)");
  EXPECT_EQ(expression_text(g, emit_extent(g, Graph::body(), DomainId(g.domains.size() - 1))), "(%n+3)");
}

// -- binding

class BindSizes : public testing::Test {
 protected:
  Graph g = fusion("f");
  ValueId m = size(g, "m"), n = size(g, "n");
  ValueId x = input(g, "x", Dtype::kFloat, {m, n});

  static BoundInput tensor(std::vector<int64_t> shape, std::vector<int64_t> strides = {}) {
    BoundInput b;
    b.shape = std::move(shape);
    b.strides = std::move(strides);
    return b;
  }
  static BoundInput number(int64_t v) {
    BoundInput b;
    b.is_scalar = true;
    b.bits = {static_cast<uint64_t>(v), 0};
    return b;
  }
  std::string bound(std::vector<BoundInput> given) {
    return refusal([&] { bind_sizes(g, given); });
  }
};

TEST_F(BindSizes, SymbolsAndScalarsOfTheBody) {
  const ValueId half = scalar::ceil_div(g, Graph::body(), n, constant_index(g, 2));
  const ValueId k = input_scalar(g, "k", Dtype::kInt64), sum = add(g, half, k);
  const Bindings b = bind_sizes(g, std::vector{tensor({3, 5}), number(10)});
  EXPECT_EQ(evaluate_integer(g, m, b), 3);
  EXPECT_EQ(evaluate_integer(g, half, b), 3);
  EXPECT_EQ(evaluate_integer(g, sum, b), 13);
  EXPECT_EQ(evaluate_shape(g, x, b), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(bound({tensor({3, 5})}), "E0402 %k");
  EXPECT_EQ(bound({tensor({3, 5}), number(1), number(2)}), "E0401 ");
  EXPECT_EQ(bound({number(3), number(1)}), "E0401 %x");
  EXPECT_EQ(bound({tensor({3, 5}), tensor({})}), "E0401 %k");
}

TEST_F(BindSizes, RanksConstantsAndRepeatedSymbols) {
  const ValueId y = input(g, "y", Dtype::kFloat, {n, 4, 1});
  EXPECT_EQ(bound({tensor({2, 3}), tensor({3, 4, 1})}), "accepted");
  EXPECT_EQ(bound({tensor({2}), tensor({3, 4, 1})}), "E0401 %x");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 4, 1})}), "E0407 %y.i0");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({3, 5, 1})}), "E0401 %y.i1");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({3, 4, 2})}), "E0401 %y.i2");
  EXPECT_EQ(bound({tensor({-1, 3}), tensor({3, 4, 1})}), "E0401 %x.i0");
  EXPECT_EQ(bound({tensor({0, 3}), tensor({3, 4, 1})}), "accepted");
  size(g, "unused");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({3, 4, 1})}), "E0402 %unused");
  (void)y;
}

TEST_F(BindSizes, Strides) {
  EXPECT_EQ(bound({tensor({2, 3}, {3, 1})}), "accepted");
  EXPECT_EQ(bound({tensor({2, 3}, {4, 1})}), "E0401 %x.i0");
  EXPECT_EQ(bound({tensor({2, 3}, {1, 2})}), "E0401 %x.i1");
  EXPECT_EQ(bound({tensor({1, 3}, {77, 1})}), "accepted");  // never stepped over
  EXPECT_EQ(bound({tensor({0, 3}, {1, 1})}), "accepted");
  const ValueId p = input(g, "p", Dtype::kFloat, {m, n}, {.contiguity = {Contiguity::kFalse, Contiguity::kTrue}});
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 3}, {100, 1})}), "accepted");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 3}, {100, 2})}), "E0401 %p.i1");
  input(g, "q", Dtype::kFloat, {m, n}, {.allocation_order = {1, 0}});
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 3}), tensor({2, 3}, {1, 2})}), "accepted");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 3}), tensor({2, 3}, {3, 1})}), "E0401 %q.i0");
  input(g, "e", Dtype::kFloat, {1, n}, {.expanded = {m, 1}});
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 3}), tensor({2, 3}, {1, 2}), tensor({2, 3}, {0, 1})}), "accepted");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 3}), tensor({2, 3}, {1, 2}), tensor({2, 3}, {3, 1})}), "E0401 %e.i0");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 3}), tensor({2, 3}, {1, 2}), tensor({4, 3}, {0, 1})}), "E0407 %e.i0");
  (void)p;
}

TEST_F(BindSizes, OpsThatDoNotFit) {
  const ValueId k = size(g, "k"), y = input(g, "y", Dtype::kFloat, {m, k});
  const ValueId lo = input_scalar(g, "lo", Dtype::kIndex), w = input(g, "w", Dtype::kFloat, {size(g, "h")});
  // Scalars clamp; a size must lie inside the extent.
  output(g, slice(g, x, {0, lo}, {m, n}, {}, "cut"));
  output(g, slice(g, x, {0, 0}, {m, size_of(g, w, 0)}, {}, "part"));
  for (int64_t start : {3, 4, -1, -9})
    EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 9}), number(start), tensor({3})}), "accepted");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 9}), number(0), tensor({4})}), "E0401 %part.r1");
  output(g, reshape(g, x, {k}, "flat"));
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 6}), number(0), tensor({3})}), "accepted");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 7}), number(0), tensor({3})}), "E0407 %x");
  output(g, add(g, x, y, "z"));
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 6}), number(0), tensor({3})}), "E0407 %y.i1");
}

TEST_F(BindSizes, AliasesHaveTheShapeOfWhatTheyOverwrite) {
  const ValueId k = size(g, "k"), y = input(g, "y", Dtype::kFloat, {m, k});
  output(g, unary(g, OpKind::kExp, x), y);
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 3})}), "accepted");
  EXPECT_EQ(bound({tensor({2, 3}), tensor({2, 4})}), "E0407 %y.i1");
}

}  // namespace
}  // namespace fusebox
