// Evaluates scalars: one op on constants, or a scalar of a graph through the ops that define it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

// Euclidean remainder for any signs: it is in [0, |b|).
int64_t euclidean_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1 || b == 1) return 0;
  const int64_t r = a % b;
  return r >= 0 ? r : b > 0 ? r + b : r - b;
}

uint64_t wrap(int64_t v) { return static_cast<uint64_t>(v); }

int64_t euclidean_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - wrap(a));
  const int64_t q = a / b, r = a % b;
  return r >= 0 ? q : b > 0 ? q - 1 : q + 1;
}

int64_t int_pow(int64_t base, int64_t exponent, bool exponent_is_signed) {
  if (exponent_is_signed && exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0;
  uint64_t result = 1, b = wrap(base);
  for (uint64_t e = wrap(exponent); e != 0; e >>= 1, b *= b)
    if ((e & 1) != 0) result *= b;
  return static_cast<int64_t>(result);
}

uint64_t unsigned_gcd(uint64_t a, uint64_t b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

// Both operands have `dtype` and are extended to 64 bits. The caller wraps the result to the dtype.
std::optional<int64_t> integer_binary(OpKind kind, Dtype dtype, int64_t a, int64_t b) {
  const bool is_unsigned = row_of(dtype).kind == DtypeKind::kUnsigned;
  const uint64_t ua = wrap(a), ub = wrap(b);
  const uint64_t width = static_cast<uint64_t>(bits(dtype));
  const auto less = [&](int64_t x, int64_t y) { return is_unsigned ? wrap(x) < wrap(y) : x < y; };
  switch (kind) {
    case OpKind::kAdd:
      return static_cast<int64_t>(ua + ub);
    case OpKind::kSub:
      return static_cast<int64_t>(ua - ub);
    case OpKind::kMul:
      return static_cast<int64_t>(ua * ub);
    case OpKind::kDiv:
      if (b == 0) return 0;
      if (is_unsigned) return static_cast<int64_t>(ua / ub);
      return b == -1 ? static_cast<int64_t>(0 - ua) : a / b;
    case OpKind::kMod:
    case OpKind::kFmod:
      if (b == 0) return 0;
      if (is_unsigned) return static_cast<int64_t>(ua % ub);
      return b == -1 ? 0 : a % b;
    case OpKind::kRemainder: {
      if (b == 0) return 0;
      if (is_unsigned) return static_cast<int64_t>(ua % ub);
      if (b == -1) return 0;
      const int64_t r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case OpKind::kFloorDiv:
      return is_unsigned ? static_cast<int64_t>(ub == 0 ? 0 : ua / ub) : euclidean_div(a, b);
    case OpKind::kFloorMod:
      return is_unsigned ? static_cast<int64_t>(ub == 0 ? 0 : ua % ub) : euclidean_mod(a, b);
    case OpKind::kCeilDiv:
      if (b == 0) return 0;
      if (is_unsigned) return static_cast<int64_t>(ua / ub + (ua % ub != 0 ? 1 : 0));
      // −(−a / b) would be wrong for the least number, because its negative is itself.
      return euclidean_mod(a, b) == 0 ? euclidean_div(a, b) : euclidean_div(a, b) + (b > 0 ? 1 : -1);
    case OpKind::kMinimum:
      return less(b, a) ? b : a;
    case OpKind::kMaximum:
      return less(a, b) ? b : a;
    case OpKind::kEq:
      return a == b;
    case OpKind::kNe:
      return a != b;
    case OpKind::kLt:
      return less(a, b);
    case OpKind::kLe:
      return !less(b, a);
    case OpKind::kGt:
      return less(b, a);
    case OpKind::kGe:
      return !less(a, b);
    case OpKind::kLogicalAnd:
      return a != 0 && b != 0;
    case OpKind::kLogicalOr:
      return a != 0 || b != 0;
    case OpKind::kBitwiseAnd:
      return static_cast<int64_t>(ua & ub);
    case OpKind::kBitwiseOr:
      return static_cast<int64_t>(ua | ub);
    case OpKind::kBitwiseXor:
      return static_cast<int64_t>(ua ^ ub);
    case OpKind::kBitwiseLeftShift:
      return ub >= width ? 0 : static_cast<int64_t>(ua << ub);
    case OpKind::kBitwiseRightShift:
      if (is_unsigned) return ub >= width ? 0 : static_cast<int64_t>(ua >> ub);
      return ub >= width ? (a < 0 ? -1 : 0) : a >> ub;
    case OpKind::kLogicalRightShift: {
      const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
      return ub >= width ? 0 : static_cast<int64_t>((ua & mask) >> ub);
    }
    case OpKind::kGcd: {
      const auto magnitude = [&](int64_t x) { return !is_unsigned && x < 0 ? 0 - wrap(x) : wrap(x); };
      return static_cast<int64_t>(unsigned_gcd(magnitude(a), magnitude(b)));
    }
    case OpKind::kPow:
      return int_pow(a, b, !is_unsigned);
    case FUSEBOX_CHOICE_OPS:
    case FUSEBOX_ONE_OR_THREE_OPERAND_OPS:
    case OpKind::kLogicalNot:
    case OpKind::kBitwiseNot:
    case FUSEBOX_ELEMENTARY_OPS:
    case FUSEBOX_FRACTION_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_TEST_OPS:
    case FUSEBOX_PART_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;  // no op of two integers
  }
  return std::nullopt;
}

std::optional<int64_t> integer_unary(OpKind kind, Dtype dtype, int64_t a) {
  const bool is_unsigned = row_of(dtype).kind == DtypeKind::kUnsigned || is_boolean(dtype);
  const bool negative = !is_unsigned && a < 0;
  switch (kind) {
    case FUSEBOX_COPY_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case OpKind::kReal:
      return a;
    case OpKind::kAbs:
      return negative ? static_cast<int64_t>(0 - wrap(a)) : a;
    case OpKind::kNeg:
      return static_cast<int64_t>(0 - wrap(a));
    case OpKind::kRelu:
      return negative ? 0 : a;
    case OpKind::kSign:
      return negative ? -1 : a != 0;
    case OpKind::kSignbit:
      return negative;
    case OpKind::kLogicalNot:
      return a == 0;
    case OpKind::kBitwiseNot:
      return is_boolean(dtype) ? a == 0 : ~a;
    case FUSEBOX_TRUE_OF_INTEGERS_OPS:
      return 1;
    case FUSEBOX_FALSE_OF_INTEGERS_OPS:
      return 0;
    case OpKind::kCast:
    case OpKind::kWhere:
    case OpKind::kPow:
    case FUSEBOX_TWO_OPERAND_OPS:
    case OpKind::kClamp:
    case OpKind::kThreshold:
    case OpKind::kAddcmul:
    case OpKind::kLogicalAnd:
    case OpKind::kLogicalOr:
    case OpKind::kBitwiseAnd:
    case OpKind::kBitwiseOr:
    case OpKind::kBitwiseXor:
    case OpKind::kImag:
    case OpKind::kComplex:
    case FUSEBOX_ELEMENTARY_OPS:
    case FUSEBOX_FRACTION_OPS:
    case FUSEBOX_WHOLE_OPS:
    case FUSEBOX_SHIFT_OPS:
    case FUSEBOX_COMPARISON_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;  // no op of one integer
  }
  return std::nullopt;
}

template <class Float>
std::optional<Float> float_binary(OpKind kind, Float a, Float b) {
  switch (kind) {
    case OpKind::kAdd:
      return a + b;
    case OpKind::kSub:
      return a - b;
    case OpKind::kMul:
      return a * b;
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return a / b;
    case OpKind::kMinimum:
      return a != a || b != b ? std::numeric_limits<Float>::quiet_NaN() : b < a ? b : a;
    case OpKind::kMaximum:
      return a != a || b != b ? std::numeric_limits<Float>::quiet_NaN() : a < b ? b : a;
    default:  // any other: its value is unknown before the program runs, and that is never wrong
      return std::nullopt;
  }
}

std::optional<bool> float_comparison(OpKind kind, double a, double b) {
  switch (kind) {
    case OpKind::kEq:
      return a == b;
    case OpKind::kNe:
      return a != b;
    case OpKind::kLt:
      return a < b;
    case OpKind::kLe:
      return a <= b;
    case OpKind::kGt:
      return a > b;
    case OpKind::kGe:
      return a >= b;
    case OpKind::kLogicalAnd:
      return a != 0 && b != 0;
    case OpKind::kLogicalOr:
      return a != 0 || b != 0;
    default:  // any other: no comparison, and float_binary is asked next
      return std::nullopt;
  }
}

std::optional<bool> float_test(OpKind kind, double a) {
  switch (kind) {
    case OpKind::kLogicalNot:
      return a == 0;
    case OpKind::kIsfinite:
      return std::isfinite(a);
    case OpKind::kIsinf:
      return std::isinf(a);
    case OpKind::kIsnan:
      return std::isnan(a);
    case OpKind::kIsneginf:
      return std::isinf(a) && a < 0;
    case OpKind::kIsposinf:
      return std::isinf(a) && a > 0;
    case OpKind::kIsreal:
      return true;
    case OpKind::kSignbit:
      return a == a && std::signbit(a);
    default:  // any other: no test, and float_unary is asked next
      return std::nullopt;
  }
}

// Computes in double for every float dtype: a double holds every float, and each of these ops is exact or rounds once.
// A quotient that is rounded to double and then to float equals the quotient rounded to float at once, because double
// has more than twice the digits of a float.
std::optional<double> float_unary(OpKind kind, double a) {
  switch (kind) {
    case FUSEBOX_COPY_OPS:
    case OpKind::kReal:
      return a;
    case OpKind::kAbs:
      return std::fabs(a);
    case OpKind::kNeg:
      return -a;
    case OpKind::kCeil:
      return std::ceil(a);
    case OpKind::kFloor:
      return std::floor(a);
    case OpKind::kTrunc:
      return std::trunc(a);
    case OpKind::kReciprocal:
      return 1 / a;
    default:  // any other: its value is unknown before the program runs, and that is never wrong
      return std::nullopt;
  }
}

}  // namespace

std::optional<ConstantBits> evaluate_op(OpKind kind, Dtype result, std::span<const TypedBits> v) {
  if (v.empty() || is_storage_only(result)) return std::nullopt;
  for (const TypedBits& o : v)
    if (is_storage_only(o.dtype)) return std::nullopt;
  if (kind == OpKind::kCast) return convert(v[0].dtype, v[0].bits, result);
  if (kind == OpKind::kWhere) {
    if (v.size() != 3) return std::nullopt;
    const TypedBits& chosen = to_bool(v[0].dtype, v[0].bits) ? v[1] : v[2];
    return convert(chosen.dtype, chosen.bits, result);
  }
  if (v.size() > 2) return std::nullopt;
  Dtype computed = v[0].dtype;
  if (v.size() == 2) {
    const bool refused =
        (computed == Dtype::kUint64 && is_signed(v[1].dtype)) || (v[1].dtype == Dtype::kUint64 && is_signed(computed));
    if (refused) return std::nullopt;
    computed = promote(computed, v[1].dtype);
  }
  const bool divides = kind == OpKind::kTruediv || kind == OpKind::kReciprocal;
  if (divides && (is_integer(computed) || is_boolean(computed))) computed = Dtype::kFloat;
  computed = compute_dtype(computed);
  if (is_complex(computed)) return std::nullopt;
  const ConstantBits a = convert(v[0].dtype, v[0].bits, computed);
  const ConstantBits b = v.size() == 2 ? convert(v[1].dtype, v[1].bits, computed) : ConstantBits{};
  if (is_integer(computed) || is_boolean(computed)) {
    const auto r = v.size() == 2 ? integer_binary(kind, computed, to_int64(computed, a), to_int64(computed, b))
                                 : integer_unary(kind, computed, to_int64(computed, a));
    if (!r) return std::nullopt;
    // A truth value is not wrapped at the operands' width. Bool arithmetic gives whether its result is not 0.
    if (result == Dtype::kBool) return from_int64(Dtype::kBool, *r != 0);
    if (is_boolean(computed)) return from_int64(result, *r != 0);
    return convert(computed, from_int64(computed, *r), result);
  }
  const double x = to_double(computed, a), y = to_double(computed, b);
  if (v.size() == 2) {
    if (const auto truth = float_comparison(kind, x, y))
      return convert(Dtype::kBool, constant_bits(Dtype::kBool, *truth), result);
    if (computed == Dtype::kFloat) {
      const auto r = float_binary(kind, static_cast<float>(x), static_cast<float>(y));
      if (!r) return std::nullopt;
      return convert(computed, from_double(computed, static_cast<double>(*r)), result);
    }
    const auto r = float_binary(kind, x, y);
    if (!r) return std::nullopt;
    return convert(computed, from_double(computed, *r), result);
  }
  if (const auto truth = float_test(kind, x)) return convert(Dtype::kBool, constant_bits(Dtype::kBool, *truth), result);
  const auto r = float_unary(kind, x);
  if (!r) return std::nullopt;
  return convert(computed, from_double(computed, *r), result);
}

namespace {

// A scalar's value if no op has to be computed for it.
std::optional<ConstantBits> given(const Graph& g, ValueId v, const Bindings& bindings) {
  if (g[v].constant) return g[v].constant;
  return v.index < bindings.size() ? bindings[v.index] : std::nullopt;
}

// The op that makes a scalar, or null if it is not evaluated here.
const Op* evaluated_op(const Graph& g, ValueId v) {
  if (!g[v].def || g[v].kind != ValueKind::kScalar) return nullptr;
  const Op& op = g[g[v].def];
  return demands(op.kind, kPointwise) && op.results.size() == 1 && op.operands.size() <= 4 ? &op : nullptr;
}

// `budget` bounds the walk, because there may be many more paths to a scalar than ops.
std::optional<ConstantBits> evaluate_by_paths(const Graph& g, ValueId id, const Bindings& bindings, int& budget) {
  if (!id || --budget < 0) return std::nullopt;
  if (const auto known = given(g, id, bindings)) return known;
  const Op* op = evaluated_op(g, id);
  if (!op) return std::nullopt;
  TypedBits operands[4];
  for (size_t i = 0; i < op->operands.size(); ++i) {
    const auto bits = evaluate_by_paths(g, op->operands[i], bindings, budget);
    if (!bits) return std::nullopt;
    operands[i] = {g[op->operands[i]].dtype, *bits};
  }
  return evaluate_op(op->kind, g[id].dtype, {operands, op->operands.size()});
}

// The same with each op computed once, however deep the scalar is.
std::optional<ConstantBits> evaluate_by_ops(const Graph& g, ValueId root, const Bindings& bindings) {
  std::unordered_map<uint32_t, ConstantBits> known;
  std::vector<ValueId> open = {root};
  while (!open.empty()) {
    const ValueId v = open.back();
    // The walk is deeper than the number of values if scalars of an unverified graph define each other.
    if (!v || open.size() > g.values.size()) return std::nullopt;
    if (known.contains(v.index)) {
      open.pop_back();
      continue;
    }
    if (const auto bits = given(g, v, bindings)) {
      known.emplace(v.index, *bits);
      continue;
    }
    const Op* op = evaluated_op(g, v);
    if (!op) return std::nullopt;
    const auto missing = std::find_if(op->operands.begin(), op->operands.end(),
                                      [&](ValueId operand) { return !operand || !known.contains(operand.index); });
    if (missing != op->operands.end()) {
      open.push_back(*missing);
      continue;
    }
    TypedBits operands[4];
    for (size_t i = 0; i < op->operands.size(); ++i)
      operands[i] = {g[op->operands[i]].dtype, known.at(op->operands[i].index)};
    const auto bits = evaluate_op(op->kind, g[v].dtype, {operands, op->operands.size()});
    if (!bits) return std::nullopt;
    known.emplace(v.index, *bits);
  }
  return known.at(root.index);
}

}  // namespace

std::optional<ConstantBits> evaluate(const Graph& g, ValueId v, const Bindings& bindings) {
  // Few ops make nearly every scalar, and then a table costs more than it saves.
  constexpr int kFewVisits = 64;
  int budget = kFewVisits;
  const auto value = evaluate_by_paths(g, v, bindings, budget);
  return value || budget >= 0 ? value : evaluate_by_ops(g, v, bindings);
}

std::optional<int64_t> evaluate_integer(const Graph& g, ValueId v, const Bindings& bindings) {
  const auto bits = evaluate(g, v, bindings);
  if (!bits || !(is_integer(g[v].dtype) || is_boolean(g[v].dtype))) return std::nullopt;
  return static_cast<int64_t>(bits->low);
}

}  // namespace fusebox
