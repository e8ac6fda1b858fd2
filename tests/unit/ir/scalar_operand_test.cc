#include "ir/infer/scalar_operand.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <tuple>

#include "ir/build/builder.h"
#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"
#include "ir/table/type_rule.h"
#include "ir/verify/verify.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

struct Taken {
  OpKind kind;
  Dtype tensor, scalar;
  std::optional<Dtype> as;
};

// The dtype that PyTorch computes in: the tensor's, unless the scalar's class is higher. f16 and bf16 are computed in
// f32. A comparison is computed in the tensor's own dtype, a division of integers in f32.
constexpr Taken kTaken[] = {
    {OpKind::kLogicalRightShift, Dtype::kInt8, Dtype::kInt64, Dtype::kInt8},
    {OpKind::kBitwiseLeftShift, Dtype::kInt32, Dtype::kIndex, Dtype::kInt32},
    {OpKind::kAdd, Dtype::kUint8, Dtype::kInt64, Dtype::kUint8},
    {OpKind::kAdd, Dtype::kUint64, Dtype::kInt8, Dtype::kUint64},
    {OpKind::kAdd, Dtype::kBool, Dtype::kInt16, Dtype::kInt16},
    {OpKind::kMul, Dtype::kFloat, Dtype::kDouble, Dtype::kFloat},
    {OpKind::kMul, Dtype::kHalf, Dtype::kDouble, Dtype::kFloat},
    {OpKind::kMul, Dtype::kInt32, Dtype::kDouble, Dtype::kDouble},
    {OpKind::kMul, Dtype::kFloat, Dtype::kComplexDouble, Dtype::kComplexFloat},
    {OpKind::kMul, Dtype::kDouble, Dtype::kComplexFloat, Dtype::kComplexDouble},
    {OpKind::kMul, Dtype::kComplexFloat, Dtype::kDouble, Dtype::kComplexFloat},
    {OpKind::kLt, Dtype::kInt32, Dtype::kInt64, Dtype::kInt32},
    {OpKind::kLt, Dtype::kBfloat16, Dtype::kDouble, Dtype::kBfloat16},
    {OpKind::kEq, Dtype::kHalf, Dtype::kInt64, Dtype::kHalf},
    {OpKind::kTruediv, Dtype::kInt8, Dtype::kInt64, Dtype::kFloat},
    {OpKind::kAtan2, Dtype::kInt32, Dtype::kInt64, Dtype::kFloat},
    {OpKind::kLogicalAnd, Dtype::kInt8, Dtype::kInt64, Dtype::kInt8},
    {OpKind::kLogicalOr, Dtype::kHalf, Dtype::kDouble, Dtype::kHalf},
};

TEST(ScalarOperand, TakesTheDtypeThatTheOpComputesIn) {
  for (const Taken& t : kTaken) {
    const OperandType tensor{t.tensor}, scalar{t.scalar, true};
    const OperandType first[] = {scalar, tensor}, second[] = {tensor, scalar};
    EXPECT_EQ(scalar_dtype(t.kind, second, 1), t.as) << row_of(t.kind).text << " " << text(t.tensor);
    EXPECT_EQ(scalar_dtype(t.kind, first, 0), t.as) << row_of(t.kind).text << " " << text(t.tensor);
    EXPECT_EQ(scalar_dtype(t.kind, second, 0), std::nullopt);  // a tensor is not converted
  }
  // Scalars without a tensor are equals; a condition is not converted.
  const OperandType scalars[] = {{Dtype::kInt8, true}, {Dtype::kInt64, true}};
  EXPECT_EQ(scalar_dtype(OpKind::kAdd, scalars, 1), std::nullopt);
  const OperandType choice[] = {{Dtype::kBool, true}, {Dtype::kHalf}, {Dtype::kDouble, true}};
  EXPECT_EQ(scalar_dtype(OpKind::kWhere, choice, 0), std::nullopt);
  EXPECT_EQ(scalar_dtype(OpKind::kWhere, choice, 2), Dtype::kHalf);
}

struct Held {
  Dtype to, from;
  double value;
  bool is_held;
};

constexpr Held kHeld[] = {
    {Dtype::kInt8, Dtype::kInt64, 127, true},
    {Dtype::kInt8, Dtype::kInt64, 128, false},
    {Dtype::kInt8, Dtype::kInt64, -128, true},
    {Dtype::kInt8, Dtype::kInt64, -129, false},
    {Dtype::kUint8, Dtype::kInt64, 255, true},
    {Dtype::kUint8, Dtype::kInt64, -1, false},
    {Dtype::kUint64, Dtype::kInt8, -1, false},
    {Dtype::kInt32, Dtype::kInt64, 0x1p40, false},
    {Dtype::kInt64, Dtype::kUint64, 0x1p63, false},
    {Dtype::kUint64, Dtype::kUint32, 0x1p31, true},
    {Dtype::kInt8, Dtype::kDouble, 127.5, true},
    {Dtype::kInt8, Dtype::kDouble, 128, false},
    {Dtype::kInt8, Dtype::kDouble, std::numeric_limits<double>::infinity(), false},
    {Dtype::kInt8, Dtype::kDouble, std::numeric_limits<double>::quiet_NaN(), false},
    {Dtype::kInt64, Dtype::kDouble, 0x1p63, false},
    {Dtype::kInt64, Dtype::kDouble, -0x1p63, true},
    {Dtype::kFloat, Dtype::kDouble, 0.1, true},
    {Dtype::kFloat, Dtype::kDouble, 1e300, false},
    {Dtype::kFloat, Dtype::kDouble, 1e-300, true},
    {Dtype::kFloat, Dtype::kDouble, -std::numeric_limits<double>::infinity(), true},
    {Dtype::kFloat, Dtype::kDouble, std::numeric_limits<double>::quiet_NaN(), true},
    {Dtype::kHalf, Dtype::kInt64, 70000, false},
    {Dtype::kHalf, Dtype::kInt64, 2049, true},
    {Dtype::kBool, Dtype::kInt64, 300, true},
    {Dtype::kComplexFloat, Dtype::kDouble, 1e300, false},
};

TEST(ScalarOperand, HoldsWhatStaysInRange) {
  for (const Held& h : kHeld)
    EXPECT_EQ(holds(h.to, h.from, from_double(h.from, h.value)), h.is_held)
        << text(h.to) << " of " << text(h.from) << " " << h.value;
  EXPECT_TRUE(holds(Dtype::kFloat, Dtype::kComplexDouble, from_complex(Dtype::kComplexDouble, {2, 0})));
  EXPECT_FALSE(holds(Dtype::kFloat, Dtype::kComplexDouble, from_complex(Dtype::kComplexDouble, {2, 1})));
}

class Constants : public ::testing::Test {
 protected:
  Graph g = fusion("f");
  ValueId n = size(g, "n");
  ValueId x = input(g, "x", Dtype::kInt8, {n}), u = input(g, "u", Dtype::kUint64, {n});
  ValueId f = input(g, "f", Dtype::kFloat, {n});
  ValueId s = input_scalar(g, "s", Dtype::kInt64);
  ValueId number(int64_t value) { return constant(g, Dtype::kInt64, from_int64(Dtype::kInt64, value)); }
  ValueId real(double value) { return constant_of(g, Dtype::kDouble, value); }
};

TEST_F(Constants, OutOfRangeAreRefused) {
  for (OpKind kind : {OpKind::kAdd, OpKind::kLt, OpKind::kBitwiseLeftShift, OpKind::kLogicalRightShift}) {
    testing::expect_error(ErrorCode::kConstantRange, "%x", [&] { binary(g, kind, x, number(300)); });
    testing::expect_error(ErrorCode::kConstantRange, "%x", [&] { binary(g, kind, number(-129), x); });
    EXPECT_NO_THROW(binary(g, kind, x, number(-128)));
    EXPECT_NO_THROW(binary(g, kind, x, s));
  }
  testing::expect_error(ErrorCode::kConstantRange, "%u", [&] { add(g, u, number(-1)); });
  testing::expect_error(ErrorCode::kConstantRange, "%f", [&] { mul(g, f, real(1e300)); });
  EXPECT_NO_THROW(mul(g, f, real(std::numeric_limits<double>::infinity())));
  // A value defined only by constants is as known as they are.
  const ValueId sum = add(g, number(200), number(100));
  testing::expect_error(ErrorCode::kConstantRange, "%" + g[sum].name, [&] { add(g, x, sum); });
  // A scalar of a higher class raises the tensor's dtype.
  EXPECT_NO_THROW(mul(g, x, real(1e300)));
  testing::expect_error(ErrorCode::kConstantRange, "", [&] { full(g, {n}, number(300), Dtype::kInt8); });
  testing::expect_error(ErrorCode::kConstantRange, "%x", [&] { pad(g, x, {1, 1}, number(300)); });
}

TEST_F(Constants, OutOfRangeDoNotVerify) {
  const ValueId y = add(g, x, number(100));
  EXPECT_NO_THROW(verify(g));
  g[g[y].def].operands[1] = number(300);
  testing::expect_error(ErrorCode::kConstantRange, "%x", [&] { verify(g); });
}

TEST_F(Constants, ComplexFillOfARealTensor) {
  const auto fill = [&](double re, double im) {
    return constant(g, Dtype::kComplexDouble, from_complex(Dtype::kComplexDouble, {re, im}));
  };
  const ValueId y = pad(g, f, {1, 1}, fill(2, 0));
  EXPECT_EQ(to_double(Dtype::kDouble, *g[g[g[y].def].operands[1]].constant), 2);
  testing::expect_error(ErrorCode::kConstantRange, "%f", [&] { pad(g, f, {1, 1}, fill(2, 1)); });
  const ValueId unknown = input_scalar(g, "c", Dtype::kComplexFloat);
  testing::expect_error(ErrorCode::kDtypeMismatch, "%c", [&] { pad(g, f, {1, 1}, unknown); });
}

TEST_F(Constants, IotaCounts) {
  const auto refused = [&](double start, double step) {
    testing::expect_error(ErrorCode::kBadAttribute, "", [&] { iota(g, n, real(start), real(step), Dtype::kFloat); });
  };
  refused(0, 0);
  refused(0, -0.0);
  refused(0, 1e-300);  // 0 in f32
  refused(std::numeric_limits<double>::infinity(), 1);
  refused(0, std::numeric_limits<double>::quiet_NaN());
  testing::expect_error(ErrorCode::kBadAttribute, "", [&] { iota(g, n, number(1), number(0)); });
  EXPECT_NO_THROW(iota(g, n, real(0), real(1e-30), Dtype::kFloat));
  // Known only when the program runs.
  output(g, iota(g, n, {}, s, Dtype::kInt64, "i"));
  const auto bind = [&](int64_t step) {
    const BoundInput vector{.shape = {3}};
    bind_sizes(
        g, std::vector<BoundInput>{vector, vector, vector, {.is_scalar = true, .bits = {static_cast<uint64_t>(step)}}});
  };
  EXPECT_NO_THROW(bind(-2));
  testing::expect_error(ErrorCode::kBadInput, "%i", [&] { bind(0); });
}

// -- tensors without axes
TEST(ScalarTensors, LeaveTheDtypeOfTheOthers) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n");
  const auto met = [&](Dtype with_axes, Dtype without, OpKind kind = OpKind::kAdd) {
    const ValueId x = input(g, "", with_axes, {n}), y = input(g, "", without, {});
    const Dtype result = g[binary(g, kind, x, y)].dtype;
    EXPECT_EQ(g[binary(g, kind, y, x)].dtype, result);
    return result;
  };
  EXPECT_EQ(met(Dtype::kInt8, Dtype::kInt64), Dtype::kInt8);
  EXPECT_EQ(met(Dtype::kBfloat16, Dtype::kDouble), Dtype::kBfloat16);
  EXPECT_EQ(met(Dtype::kHalf, Dtype::kBfloat16), Dtype::kHalf);
  EXPECT_EQ(met(Dtype::kUint64, Dtype::kInt8), Dtype::kUint64);
  EXPECT_EQ(met(Dtype::kInt32, Dtype::kDouble), Dtype::kDouble);
  EXPECT_EQ(met(Dtype::kBool, Dtype::kInt8), Dtype::kInt8);
  EXPECT_EQ(met(Dtype::kFloat, Dtype::kComplexDouble), Dtype::kComplexFloat);
  EXPECT_EQ(met(Dtype::kInt8, Dtype::kInt64, OpKind::kTruediv), Dtype::kFloat);
  EXPECT_EQ(met(Dtype::kInt8, Dtype::kInt64, OpKind::kLt), Dtype::kBool);
}

// -- slices: bounds as numbers and as scalars, compared with ATen's rule
struct Cut {
  int64_t left, length;
};

Cut cut_by_aten(int64_t n, int64_t start, int64_t stop) {
  if (start < 0) start += n;
  if (stop < 0) stop += n;
  start = std::clamp<int64_t>(start, 0, n);
  stop = stop < start ? start : std::min(stop, n);
  return {start, stop - start};
}

TEST(SliceBounds, AreThoseOfAten) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  int cases = 0;
  for (const bool static_extent : {true, false})
    for (const bool static_start : {true, false})
      for (const bool static_stop : {true, false})
        for (int64_t n = 0; n <= 3; ++n)
          for (int64_t start = -n - 2; start <= n + 2; ++start)
            for (int64_t stop = -n - 2; stop <= n + 3; ++stop) {
              const int64_t end = stop == n + 3 ? kEnd : stop;
              Graph g = fusion("f");
              const Scalar extent = static_extent ? Scalar(n) : Scalar(size(g, "n"));
              const ValueId x = input(g, "x", Dtype::kFloat, {extent});
              std::vector<BoundInput> given = {{.shape = {n}}};
              const auto bound = [&](bool is_static, int64_t value) {
                if (is_static) return Scalar(value);
                given.push_back({.is_scalar = true, .bits = {static_cast<uint64_t>(value)}});
                return Scalar(input_scalar(g, "", Dtype::kIndex));
              };
              const Scalar from = bound(static_start, start), to = bound(static_stop, end);
              const ValueId y = slice(g, x, {from}, {to});
              output(g, y);
              const Bindings sizes = bind_sizes(g, given);
              const Cut want = cut_by_aten(n, start, end);
              const auto shape = evaluate_shape(g, y, sizes);
              ASSERT_TRUE(shape.has_value());
              ASSERT_EQ((*shape)[0], want.length) << n << ": " << start << " to " << end << static_start << static_stop;
              ++cases;
            }
  EXPECT_GT(cases, 1000);
}

TEST(SliceBounds, OfSizesStaySumsWithinASum) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n"), k = size(g, "k");
  const ValueId x = input(g, "x", Dtype::kFloat, {n}), y = input(g, "y", Dtype::kFloat, {k});
  const ValueId z = slice(g, cat(g, {y, x, y}), {k}, {add(g, k, k)});
  const auto length = size_form(g, logical_without_reductions(g, g.tensor_of(z))[0]);
  ASSERT_TRUE(length && length->as_atom());
  EXPECT_EQ(*length->as_atom(), k);
  output(g, add(g, z, y));
  EXPECT_NO_THROW(bind_sizes(g, std::vector<BoundInput>{{.shape = {6}}, {.shape = {3}}}));
}

TEST(SliceBounds, OfOtherSumsClamp) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n"), k = size(g, "k"), m = size(g, "m");
  const ValueId x = input(g, "x", Dtype::kFloat, {n});
  input(g, "y", Dtype::kFloat, {k});
  input(g, "z", Dtype::kFloat, {m});
  const ValueId sum = add(g, k, m), by_sum = slice(g, x, {0}, {sum}), from_sum = slice(g, x, {sum}, {add(g, sum, m)});
  output(g, by_sum);
  output(g, from_sum);
  for (int64_t size_n = 0; size_n <= 4; ++size_n)
    for (int64_t size_k = 0; size_k <= 5; ++size_k)
      for (int64_t size_m = 0; size_m <= 5; ++size_m) {
        const Bindings sizes =
            bind_sizes(g, std::vector<BoundInput>{{.shape = {size_n}}, {.shape = {size_k}}, {.shape = {size_m}}});
        const int64_t bound = size_k + size_m;
        EXPECT_EQ((*evaluate_shape(g, by_sum, sizes))[0], cut_by_aten(size_n, 0, bound).length);
        EXPECT_EQ((*evaluate_shape(g, from_sum, sizes))[0], cut_by_aten(size_n, bound, bound + size_m).length);
      }
}

TEST(SliceBounds, ListsOfUnequalLength) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {4, 5});
  for (const auto& [starts, stops, steps] : std::vector<std::tuple<Shape, Shape, Shape>>{
           {{0}, {1, 1}, {1, 1, 1}}, {{0, 0}, {1}, {}}, {{0, 0, 0}, {1, 1, 1}, {}}, {{0, 0}, {1, 1}, {1}}})
    testing::expect_error(ErrorCode::kRankMismatch, "%x", [&] { slice(g, x, starts, stops, steps); });
}

TEST(Squeeze, OfNoAxesDropsNone) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {1, 5, 1});
  EXPECT_EQ(rank_of(g, squeeze(g, x, {})), 3u);
  EXPECT_EQ(rank_of(g, squeeze(g, x, {0, -1})), 1u);
}

TEST(Reduce, OfATensorWithoutAxesIsItsElement) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kInt8, {});
  EXPECT_EQ(g[sum(g, x, {})].dtype, Dtype::kInt64);
  EXPECT_EQ(g[max(g, x, {})].dtype, Dtype::kInt8);
  EXPECT_EQ(rank_of(g, sum(g, x, {}, {.keepdim = true})), 0u);
}

}  // namespace
}  // namespace fusebox
