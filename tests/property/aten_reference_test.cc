// Compares the reference of aten_api.h with plain computations of the same ops: every op on every dtype that it
// accepts, at boundary values. The bounds must pass a right implementation and fail one that is off by a few of them.
#include <cmath>
#include <complex>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <optional>

#include "ir/build/builder.h"
#include "ir/scalar/numeric.h"
#include "ir/step/apply.h"
#include "ir/table/type_rule.h"
#include "ir/text/parse.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/compare.h"
#include "tests/unit/replay/host_math_reference.h"

namespace fusebox {
namespace {

using testing::Wide;

constexpr Dtype kDtypes[] = {Dtype::kBool,   Dtype::kInt8,       Dtype::kInt16,      Dtype::kInt32,
                             Dtype::kInt64,  Dtype::kUint8,      Dtype::kUint16,     Dtype::kUint32,
                             Dtype::kUint64, Dtype::kHalf,       Dtype::kBfloat16,   Dtype::kFloat,
                             Dtype::kDouble, Dtype::kFloat8E4m3, Dtype::kFloat8E5m2, Dtype::kIndex};

#define NEED_ATEN() \
  if (find_aten() == nullptr) GTEST_SKIP() << "PyTorch is not there"

// `random(f32, {3, 4}, "uniform -1 1 seed 3")`
Argument random(Dtype d, const std::vector<int64_t>& shape, const std::string& generator) {
  std::string extents;
  for (int64_t e : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(e);
  return make_argument(parse_input_spec("x", std::string(text(d)) + "[" + extents + "] " + generator));
}

size_t operand_count(OpKind kind) {
  switch (row_of(kind).format->all().size()) {
    case 1:
      return 1;
    case 2:
      return 2;
    case 3:
      return 3;
    default:
      return 4;
  }
}

bool is_math(OpKind kind) {
  const std::string_view format = row_of(kind).format->name;
  // Index arithmetic takes only scalars.
  if (kind == OpKind::kFloorDiv || kind == OpKind::kFloorMod || kind == OpKind::kCeilDiv) return false;
  return demands(kind, kPointwise) && row_of(kind).at(Level::kMath) &&
         (format == "kUnary" || format == "kBinary" || format == "kTernary" || format == "kQuaternary");
}

// Operands of n elements: all pairs of boundary values, the others in a fixed mixture.
std::vector<TensorData> boundary_operands(Dtype d, size_t count) {
  const std::vector<ConstantBits> values = boundary_values(d);
  const size_t n = values.size() * (count > 1 ? values.size() : 1);
  std::vector<TensorData> operands;
  for (size_t k = 0; k < count; ++k) {
    TensorData t = allocate_tensor(d, {static_cast<int64_t>(n)});
    for (size_t i = 0; i < n; ++i) {
      const size_t a = i % values.size(), b = i / values.size();
      const size_t pick = k == 0 ? a : k == 1 ? b : (a * (2 * k + 1) + b * (3 * k + 1) + k) % values.size();
      store_element(t, static_cast<int64_t>(i), values[pick]);
    }
    operands.push_back(std::move(t));
  }
  return operands;
}

Evaluated evaluate_op(OpKind kind, std::span<const TensorData> operands) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n");
  std::vector<ValueId> values;
  std::vector<Argument> arguments;
  for (const TensorData& t : operands) {
    values.push_back(input(g, "x" + std::to_string(values.size()), t.dtype, {n}));
    arguments.push_back(Argument::of(t));
  }
  output(g, pointwise(g, kind, values, "y"));
  return find_aten()->evaluate(g, arguments).outputs.at(0);
}

// The result of a kernel for an element, in computation type C, before rounding to the result's dtype. Nothing if not
// known here.
template <class C>
std::optional<double> kernel_value(OpKind kind, const double* v) {
  const auto c = [&](int k) { return static_cast<C>(v[k]); };
  const auto r = testing::float_reference<C>(kind, c(0), c(1), c(2), c(3));
  if (r.ulps < 0) return std::nullopt;
  return static_cast<double>(static_cast<C>(r.value));
}

// The result of an op on an element, as bits of the result's dtype.
std::optional<ConstantBits> kernel_result(OpKind kind, Dtype d, Dtype result, std::span<const TensorData> operands,
                                          int64_t i) {
  ConstantBits b[4];
  double v[4] = {0, 0, 0, 0};
  for (size_t k = 0; k < operands.size(); ++k) {
    b[k] = load_element(operands[k], i);
    v[k] = to_double(d, b[k]);
  }
  const bool whole = is_integer(d) || is_boolean(d);
  if (result == Dtype::kBool && !is_boolean(d)) {
    if (whole && d != Dtype::kUint64)
      return constant_bits(result, testing::truth_reference<int64_t>(kind, to_int64(d, b[0]), to_int64(d, b[1])));
    if (whole) return constant_bits(result, testing::truth_reference<uint64_t>(kind, b[0].low, b[1].low));
    return constant_bits(result, testing::truth_reference<double>(kind, v[0], v[1]));
  }
  if (is_boolean(d)) return std::nullopt;
  if (whole && is_integer(result)) {
    Wide w[4];
    for (size_t k = 0; k < 4; ++k) w[k] = d == Dtype::kUint64 ? Wide{b[k].low} : Wide{static_cast<int64_t>(b[k].low)};
    const Wide r = testing::integer_reference(kind, w[0], w[1], w[2], w[3], bits(d), is_signed(d));
    return canonical_bits(result, {static_cast<uint64_t>(r), 0});
  }
  const Dtype compute = compute_dtype(result);
  if (whole)
    for (size_t k = 0; k < operands.size(); ++k) v[k] = to_double(compute, convert(d, b[k], compute));
  const auto r = compute == Dtype::kDouble ? kernel_value<double>(kind, v) : kernel_value<float>(kind, v);
  if (!r) return std::nullopt;
  return from_double(result, *r);
}

TEST(AtenReference, PointwiseOpsAgreeWithPlainOnes) {
  NEED_ATEN();
  int cases = 0;
  int64_t elements = 0, unconstrained = 0;
  for (const OpRow& row : op_rows()) {
    if (!is_math(row.kind) || row.kind == OpKind::kCast || row.kind == OpKind::kWhere || row.kind == OpKind::kComplex)
      continue;
    const OpKind plain = row.kind == OpKind::kSegmentSet ? OpKind::kSet : row.kind;
    for (Dtype d : kDtypes) {
      if (!accepts_dtype(row.kind, d)) continue;
      const std::vector<TensorData> operands = boundary_operands(d, operand_count(row.kind));
      const Evaluated e = evaluate_op(row.kind, operands);
      TensorData actual = allocate_tensor(e.dtype, e.reference.shape);
      bool known = true;
      for (int64_t i = 0; i < actual.shape[0] && known; ++i) {
        const auto r = kernel_result(plain, d, e.dtype, operands, i);
        known = r.has_value();
        if (known) store_element(actual, i, *r);
      }
      if (!known) continue;
      ++cases;
      const Comparison c = compare(actual, e);
      std::string at;
      if (!c.ok) {
        for (const TensorData& t : operands) at += " " + std::to_string(to_double(d, load_element(t, c.worst[0])));
      }
      EXPECT_TRUE(c.ok) << row.text << " " << text(d) << ": " << c.message("y") << " of" << at;
      elements += c.count;
      unconstrained += c.unconstrained;
      EXPECT_TRUE(e.is_exact() || !is_integer(d) || !is_integer(e.dtype)) << row.text << " " << text(d);
    }
  }
  EXPECT_GT(cases, 700);
  // Elements for which any value passes are rare.
  EXPECT_LT(unconstrained * 50, elements) << unconstrained << " of " << elements;
}

// Numbers whose products of two overflow or underflow the dtype, and whose products of three are in range again.
template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  const T most = Limits::max(), least = Limits::min(), large = std::sqrt(most), small = std::sqrt(least);
  return {0,
          1,
          T(0.3),
          most,
          -most,
          most / 2,
          large,
          -large,
          3 * large,
          least,
          Limits::denorm_min(),
          small,
          -small / 3,
          std::numeric_limits<T>::infinity()};
}

// Every choice of `count` of them; the k-th digit of i selects the number for element i.
template <class T>
std::vector<TensorData> edge_operands(Dtype d, size_t count) {
  const std::vector<T> values = edges<T>();
  int64_t n = 1;
  for (size_t k = 0; k < count; ++k) n *= static_cast<int64_t>(values.size());
  std::vector<TensorData> operands;
  size_t stride = 1;
  for (size_t k = 0; k < count; ++k, stride *= values.size()) {
    TensorData t = allocate_tensor(d, {n});
    for (int64_t i = 0; i < n; ++i)
      store_element(t, i, from_double(d, static_cast<double>(values[static_cast<size_t>(i) / stride % values.size()])));
    operands.push_back(std::move(t));
  }
  return operands;
}

template <class T>
void expect_every_order(Dtype d) {
  const auto check = [&](OpKind kind, size_t count, const char* way, auto f) {
    const std::vector<TensorData> operands = edge_operands<T>(d, count);
    const Evaluated e = evaluate_op(kind, operands);
    TensorData actual = allocate_tensor(d, e.reference.shape);
    for (int64_t i = 0; i < actual.shape[0]; ++i) {
      T v[4] = {};
      for (size_t k = 0; k < count; ++k) v[k] = static_cast<T>(to_double(d, load_element(operands[k], i)));
      store_element(actual, i, from_double(d, static_cast<double>(static_cast<T>(f(v)))));
    }
    const Comparison c = compare(actual, e);
    std::string at;
    if (!c.ok)
      for (const TensorData& t : operands) at += " " + std::to_string(to_double(d, load_element(t, c.worst[0])));
    EXPECT_TRUE(c.ok) << way << " " << text(d) << ": " << c.message("y") << " of" << at;
    // The bound is useful if no step overflows.
    EXPECT_LT(c.unconstrained * 4, c.count * 3) << way;
  };
  check(OpKind::kAddcmul, 4, "x + (value y) z", [](const T* v) { return v[0] + static_cast<T>(v[3] * v[1]) * v[2]; });
  check(OpKind::kAddcmul, 4, "x + value (y z)", [](const T* v) { return v[0] + v[3] * static_cast<T>(v[1] * v[2]); });
  check(OpKind::kLerp, 3, "a + w (b - a)", [](const T* v) { return v[0] + v[2] * static_cast<T>(v[1] - v[0]); });
  check(OpKind::kLerp, 3, "from the nearer end", [](const T* v) {
    const T difference = v[1] - v[0];
    return v[2] < T(0.5) ? v[0] + v[2] * difference : v[1] - difference * (1 - v[2]);
  });
}

TEST(AtenReference, CompositesMayTakeTheirStepsInAnyOrder) {
  NEED_ATEN();
  expect_every_order<float>(Dtype::kFloat);
  expect_every_order<double>(Dtype::kDouble);
}

// A cancelling sum may be far from the reference's, so a product with it may overflow.
TEST(AtenReference, ComplexProductsOfTheInexactMayOverflow) {
  NEED_ATEN();
  const auto one = [](double v) {
    TensorData t = allocate_tensor(Dtype::kComplexFloat, {1});
    store_element(t, 0, from_double(Dtype::kComplexFloat, v));
    return Argument::of(t);
  };
  const auto bound_of = [&](OpKind kind, bool is_scaled_first = false) {
    Graph g = fusion("f");
    const Dtype d = Dtype::kComplexFloat;
    const ValueId x = input(g, "x", d, {Scalar(3), Scalar(1)}), large = input(g, "large", d, {Scalar(1)}),
                  small = input(g, "small", d, {Scalar(1)}), sum = reduce(g, OpKind::kSum, x, {0});
    std::vector<ValueId> operands = {sum};
    if (kind == OpKind::kMul) operands = {sum, large};
    if (kind == OpKind::kAddcmul)
      operands = {small, sum, is_scaled_first ? small : large, is_scaled_first ? large : small};
    output(g, pointwise(g, kind, operands, "z"));
    TensorData t = allocate_tensor(d, {3, 1});
    for (int64_t i = 0; i < 3; ++i) store_element(t, i, from_double(d, i == 0 ? 1e38 : -0.5e38));
    const std::array<Argument, 3> arguments = {Argument::of(t), one(1e10), one(1e-20)};
    return to_double(Dtype::kDouble, load_element(find_aten()->evaluate(g, arguments).outputs.at(0).bound, 0));
  };
  EXPECT_LT(bound_of(OpKind::kNeg), 1e33);
  EXPECT_EQ(bound_of(OpKind::kMul), INFINITY);
  EXPECT_EQ(bound_of(OpKind::kAddcmul), INFINITY);
  EXPECT_EQ(bound_of(OpKind::kAddcmul, true), INFINITY);
}

TEST(AtenReference, BoundsAreAFewUnitsInTheLastPlace) {
  NEED_ATEN();
  for (const OpRow& row : op_rows()) {
    if (!is_math(row.kind) || operand_count(row.kind) != 1 || row.kind == OpKind::kCast) continue;
    for (Dtype d : {Dtype::kFloat, Dtype::kDouble, Dtype::kBfloat16, Dtype::kHalf}) {
      if (!accepts_dtype(row.kind, d)) continue;
      const Argument x =
          random(d, {500}, row.kind == OpKind::kAcosh ? "uniform 1.05 1.95 seed 5" : "uniform 0.05 0.95 seed 5");
      Evaluated e = evaluate_op(row.kind, std::array{x.tensor});
      if (!is_floating(e.dtype)) continue;
      TensorData off = result_of(e);
      ASSERT_TRUE(compare(off, e).ok) << row.text;
      if (e.is_exact()) continue;
      int64_t free = 0;
      for (int64_t i = 0; i < 500; ++i) {
        const double v = to_double(d, load_element(off, i)), b = to_double(Dtype::kDouble, load_element(e.bound, i));
        const double ulp = std::abs(to_double(d, {load_element(off, i).low + 1, 0}) - v);
        free += b == INFINITY;
        EXPECT_LE(b, (is_reduced_float(d) ? 1.5 : 14) * ulp) << row.text << " " << text(d) << " " << v;
        store_element(off, i, from_double(d, v + 4 * b + 2 * ulp));
      }
      EXPECT_EQ(free, 0) << row.text;
      const Comparison c = compare(off, e);
      EXPECT_EQ(c.failed, 500) << row.text << " " << text(d);
    }
  }
}

// A value with a bound: e^x · y in float, as a kernel computes it and as the reference does.
struct Inexact {
  Graph g = fusion("f");
  ValueId n = size(g, "n");
  std::vector<Argument> arguments;
  std::vector<float> values[2];
  ValueId value[2];

  explicit Inexact(double scale) {
    for (int k = 0; k < 2; ++k) {
      const std::string name = k == 0 ? "x" : "y";
      arguments.push_back(
          random(Dtype::kFloat, {997}, "normal 0.0 " + std::to_string(scale) + " seed " + std::to_string(11 + k)));
      const ValueId x = input(g, name, Dtype::kFloat, {n});
      // y = tanh(x) · 3, z = exp(x)
      value[k] =
          k == 0 ? mul(g, unary(g, OpKind::kTanh, x), constant_of(g, Dtype::kFloat, 3.0)) : unary(g, OpKind::kExp, x);
      const auto* data = reinterpret_cast<const float*>(arguments.back().tensor.data());
      for (int i = 0; i < 997; ++i) values[k].push_back(k == 0 ? std::tanh(data[i]) * 3.0f : std::exp(data[i]));
    }
  }
};

TEST(AtenReference, BoundsAreCarriedThroughOps) {
  NEED_ATEN();
  for (const OpRow& row : op_rows()) {
    if (!is_math(row.kind) || !accepts_dtype(row.kind, Dtype::kFloat) || row.kind == OpKind::kCast ||
        row.kind == OpKind::kWhere || row.kind == OpKind::kComplex)
      continue;
    for (double scale : {0.3, 1.0, 4.0}) {
      Inexact x(scale);
      const size_t count = operand_count(row.kind);
      std::vector<ValueId> operands;
      for (size_t k = 0; k < count; ++k) operands.push_back(x.value[k % 2]);
      output(x.g, pointwise(x.g, row.kind, operands, "z"));
      const Evaluation all = find_aten()->evaluate(x.g, x.arguments);
      const Evaluated& e = all.outputs[0];
      TensorData actual = allocate_tensor(e.dtype, {997});
      bool known = true;
      for (int64_t i = 0; i < 997 && known; ++i) {
        const auto at = static_cast<size_t>(i);
        const double v[4] = {x.values[0][at], x.values[1][at], x.values[0][at], x.values[1][at]};
        if (e.dtype == Dtype::kBool) {
          store_element(
              actual, i,
              constant_bits(Dtype::kBool, testing::truth_reference<float>(row.kind, x.values[0][at], x.values[1][at])));
          continue;
        }
        const auto r = kernel_value<float>(row.kind, v);
        known = r.has_value();
        if (known) store_element(actual, i, from_double(e.dtype, *r));
      }
      if (!known) continue;
      const Comparison c = compare(actual, e);
      EXPECT_TRUE(c.ok) << row.text << " scale " << scale << ": " << c.message("z");
      const bool has_poles = row.kind == OpKind::kLgamma || row.kind == OpKind::kErfcinv || row.kind == OpKind::kPow;
      EXPECT_LE(c.unconstrained, has_poles ? 997 : 60) << row.text;
    }
  }
}

TEST(AtenReference, StraddledJumpsPassOnEitherSide) {
  NEED_ATEN();
  Graph g = fusion("f");
  const ValueId n = size(g, "n"), x = input(g, "x", Dtype::kFloat, {n});
  // log(exp(x)) is close to a whole number but need not equal it.
  const ValueId near = unary(g, OpKind::kLog, unary(g, OpKind::kExp, x));
  output(g, unary(g, OpKind::kFloor, near, "down"));
  output(g, cast(g, near, Dtype::kInt32, "whole"));
  output(g, binary(g, OpKind::kLt, near, x, "less"));
  output(g, where(g, binary(g, OpKind::kLt, near, x), constant_of(g, Dtype::kFloat, 10.0),
                  constant_of(g, Dtype::kFloat, 20.0), "chosen"));
  TensorData t = allocate_tensor(Dtype::kFloat, {3});
  for (int i = 0; i < 3; ++i) store_element(t, i, constant_bits(Dtype::kFloat, i == 2 ? 2.5 : i + 2.0));
  const std::array<Argument, 1> arguments = {Argument::of(t)};
  const Evaluation e = find_aten()->evaluate(g, arguments);
  EXPECT_GT(e.ambiguous, 0);
  const auto passes = [&](size_t output, int64_t i, double value) {
    TensorData actual = result_of(e.outputs[output]);
    store_element(actual, i, from_double(actual.dtype, value));
    return compare(actual, e.outputs[output]).ok;
  };
  EXPECT_TRUE(passes(0, 0, 2) && passes(0, 0, 1) && passes(1, 1, 3) && passes(1, 1, 2));
  EXPECT_TRUE(passes(0, 2, 2) && passes(1, 2, 2));
  EXPECT_FALSE(passes(0, 2, 1) || passes(1, 2, 3) || passes(0, 0, 4) || passes(1, 1, 5));
  EXPECT_TRUE(passes(2, 0, 0) && passes(2, 0, 1));
  EXPECT_TRUE(passes(3, 0, 10) && passes(3, 0, 20));
  EXPECT_FALSE(passes(3, 0, 31));
}

TEST(AtenReference, CastsOfEveryPairOfDtypes) {
  NEED_ATEN();
  for (Dtype from : kDtypes)
    for (Dtype to : kDtypes) {
      Graph g = fusion("f");
      const ValueId x = input(g, "x", from, {size(g, "n")});
      output(g, cast(g, x, to, "y"));
      const std::array<Argument, 1> arguments = {Argument::of(boundary_operands(from, 1)[0])};
      const Evaluated e = find_aten()->evaluate(g, arguments).outputs[0];
      EXPECT_TRUE(e.is_exact()) << text(from) << " to " << text(to);
      const Comparison c = compare(converted_copy(arguments[0].tensor, to), e);
      EXPECT_TRUE(c.ok) << text(from) << " to " << text(to) << ": " << c.message("y");
    }
}

TEST(AtenReference, ReductionsInAnyOrder) {
  NEED_ATEN();
  for (OpKind kind : {OpKind::kSum, OpKind::kProd, OpKind::kMax, OpKind::kMin})
    for (Dtype d : kDtypes)
      for (int64_t extent : {0, 1, 2, 33, 257}) {
        if (!accepts_dtype(kind, d)) continue;
        const bool wide = kind == OpKind::kProd && is_floating(d);
        const Argument x = random(d, {3, extent},
                                  is_integer(d) ? "boundary seed 3"
                                  : wide        ? "uniform 0.9 1.1 seed 3"
                                                : "uniform -1.0 1.0 seed 3");
        Graph g = fusion("f");
        const ValueId m = size(g, "m"), n = size(g, "n");
        output(g, reduce(g, kind, input(g, "x", d, {m, n}), {1}, {.name = "y"}));
        const std::array<Argument, 1> arguments = {x};
        const Evaluated e = find_aten()->evaluate(g, arguments).outputs[0];
        TensorData actual = allocate_tensor(e.dtype, {3});
        for (int64_t row = 0; row < 3; ++row) {
          float f = kind == OpKind::kProd ? 1 : kind == OpKind::kSum ? 0 : kind == OpKind::kMax ? -INFINITY : INFINITY;
          double full = f;
          int64_t whole = kind == OpKind::kProd || (kind == OpKind::kMin && is_boolean(d)) ? 1 : 0;
          bool first = true;
          for (int64_t i = 0; i < extent; ++i) {
            const ConstantBits b = load_element(x.tensor, row * extent + extent - 1 - i);
            const double v = to_double(d, b);
            const auto step = [&](auto a, auto c) {
              if (kind == OpKind::kSum) return static_cast<decltype(a)>(a + c);
              if (kind == OpKind::kProd) return static_cast<decltype(a)>(a * c);
              return (kind == OpKind::kMax) == (a < c) ? c : a;
            };
            if (is_integer(d) || is_boolean(d)) {
              if (kind == OpKind::kSum)
                whole = static_cast<int64_t>(static_cast<uint64_t>(whole) + b.low);
              else if (kind == OpKind::kProd)
                whole = static_cast<int64_t>(static_cast<uint64_t>(whole) * b.low);
              else if (first)
                whole = static_cast<int64_t>(b.low);
              else
                whole = d == Dtype::kUint64 ? static_cast<int64_t>(step(static_cast<uint64_t>(whole), b.low))
                                            : step(whole, static_cast<int64_t>(b.low));
              first = false;
            } else if (d == Dtype::kDouble) {
              full = step(full, v);
            } else {
              f = step(f, static_cast<float>(v));
            }
          }
          if (is_floating(d))
            store_element(actual, row, from_double(e.dtype, d == Dtype::kDouble ? full : static_cast<double>(f)));
          else if (extent == 0 && (kind == OpKind::kMax || kind == OpKind::kMin) && is_integer(d)) {
            const double limit = kind == OpKind::kMax ? -INFINITY : INFINITY;
            store_element(actual, row, from_double(d, limit));
          } else
            store_element(actual, row, canonical_bits(e.dtype, {static_cast<uint64_t>(whole), 0}));
        }
        const Comparison c = compare(actual, e);
        EXPECT_TRUE(c.ok) << row_of(kind).text << " " << text(d) << " " << extent << ": " << c.message("y");
        EXPECT_EQ(c.unconstrained, 0) << row_of(kind).text << " " << text(d) << " " << extent;
        for (int64_t row = 0; row < 3 && extent == 33 && is_floating(d) && !e.is_exact(); ++row)
          EXPECT_LT(to_double(Dtype::kDouble, load_element(e.bound, row)), 0.5) << row_of(kind).text << text(d);
      }
}

TEST(AtenReference, WelfordAsAKernelUpdates) {
  NEED_ATEN();
  for (Dtype d : {Dtype::kFloat, Dtype::kDouble, Dtype::kBfloat16})
    for (int64_t extent : {0, 1, 2, 100}) {
      const Argument x = random(d, {4, extent}, "normal 5.0 2.0 seed 9");
      Graph g = fusion("f");
      const ValueId m = size(g, "m"), n = size(g, "n");
      const WelfordResult w = welford(g, input(g, "x", d, {m, n}), {1});
      for (ValueId v : {w.avg, w.var_sum, w.n}) output(g, v);
      const std::array<Argument, 1> arguments = {x};
      const Evaluation e = find_aten()->evaluate(g, arguments);
      TensorData actual[3] = {allocate_tensor(d, {4}), allocate_tensor(d, {4}), allocate_tensor(Dtype::kInt64, {4})};
      for (int64_t row = 0; row < 4; ++row) {
        float avg = 0, m2 = 0;
        double wide_avg = 0, wide_m2 = 0;
        for (int64_t i = 0; i < extent; ++i) {
          const double v = to_double(d, load_element(x.tensor, row * extent + i));
          const float delta = static_cast<float>(v) - avg;
          avg += delta / static_cast<float>(i + 1);
          m2 += delta * (static_cast<float>(v) - avg);
          const double step = v - wide_avg;
          wide_avg += step / static_cast<double>(i + 1);
          wide_m2 += step * (v - wide_avg);
        }
        const bool wide = d == Dtype::kDouble;
        store_element(actual[0], row, from_double(d, wide ? wide_avg : static_cast<double>(avg)));
        store_element(actual[1], row, from_double(d, wide ? wide_m2 : static_cast<double>(m2)));
        store_element(actual[2], row, constant_bits(Dtype::kInt64, extent));
      }
      for (size_t k = 0; k < 3; ++k) {
        const Comparison c = compare(actual[k], e.outputs[k]);
        EXPECT_TRUE(c.ok) << text(d) << " " << extent << " " << k << ": " << c.message("y");
        EXPECT_EQ(c.unconstrained, 0);
        EXPECT_LT(c.bound, d == Dtype::kBfloat16 ? 8.0 : 0.1) << extent;
      }
    }
}

TEST(AtenReference, ComplexArithmetic) {
  NEED_ATEN();
  for (Dtype d : {Dtype::kComplexFloat, Dtype::kComplexDouble}) {
    const Argument a = random(d, {200}, "normal seed 1"), b = random(d, {200}, "normal seed 2");
    for (OpKind kind : {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kTruediv, OpKind::kAbs, OpKind::kReal,
                        OpKind::kImag, OpKind::kEq}) {
      std::vector<TensorData> operands = {a.tensor};
      if (operand_count(kind) == 2) operands.push_back(b.tensor);
      const Evaluated e = evaluate_op(kind, operands);
      TensorData actual = allocate_tensor(e.dtype, {200});
      for (int64_t i = 0; i < 200; ++i) {
        const std::complex<double> x = to_complex(d, load_element(a.tensor, i)),
                                   y = to_complex(d, load_element(b.tensor, i));
        const auto apply = [&](auto s, auto t) -> std::complex<double> {
          switch (kind) {
            case OpKind::kAdd:
              return std::complex<double>(s + t);
            case OpKind::kSub:
              return std::complex<double>(s - t);
            case OpKind::kMul:
              return std::complex<double>(s * t);
            case OpKind::kTruediv:
              return std::complex<double>(s / t);
            case OpKind::kAbs:
              return static_cast<double>(std::abs(s));
            case OpKind::kReal:
              return static_cast<double>(s.real());
            case OpKind::kImag:
              return static_cast<double>(s.imag());
            case OpKind::kEq:
              return s == t ? 1.0 : 0.0;
            default:  // any other: fails
              ADD_FAILURE() << "no reference for " << row_of(kind).text;
              return 0.0;
          }
        };
        const auto r = d == Dtype::kComplexFloat ? apply(std::complex<float>(x), std::complex<float>(y)) : apply(x, y);
        store_element(actual, i, from_complex(e.dtype, r));
      }
      const Comparison c = compare(actual, e);
      EXPECT_TRUE(c.ok) << row_of(kind).text << " " << text(d) << ": " << c.message("y");
      EXPECT_EQ(c.unconstrained, 0) << row_of(kind).text;
    }
  }
}

}  // namespace
}  // namespace fusebox
