// Loops over bool and integers. They are exact unless an operand depends on a real number near a jump.
#include <cmath>

#include "ir/table/families.h"
#include "replay/aten/loops.h"
#include "replay/aten/rounding.h"

namespace fusebox::aten {
namespace {

using U = uint64_t;
using Wide = __int128;

Wide widened(Dtype d, int64_t v) { return d == Dtype::kUint64 ? Wide{static_cast<U>(v)} : Wide{v}; }

Wide magnitude(Wide v) { return v < 0 ? -v : v; }

// Euclidean: 0 ≤ a − b q < |b|.
Wide euclidean_quotient(Wide a, Wide b) {
  Wide q = a / b;
  if (a - q * b < 0) q += b > 0 ? -1 : 1;
  return q;
}

Wide power(Wide base, Wide exponent, Dtype d) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  U result = 1;
  for (U b = static_cast<U>(base), e = static_cast<U>(exponent); e > 0; e /= 2) {
    if (e % 2 == 1) result *= b;
    b *= b;
  }
  return widened(d, static_cast<int64_t>(result));
}

// The exact value of an op on the mathematical values of one dtype; the caller wraps it.
Wide exact_value(OpKind kind, Dtype d, Wide a, Wide b) {
  const Wide width = bits(d);
  const bool out = b < 0 || b >= width;
  switch (kind) {
    case FUSEBOX_COPY_OPS:
    case OpKind::kCast:
    case OpKind::kReal:
    case FUSEBOX_ROUNDING_OPS:
      return a;
    case OpKind::kAbs:
      return magnitude(a);
    case OpKind::kNeg:
      return -a;
    case OpKind::kRelu:
      return a > 0 ? a : 0;
    case OpKind::kSign:
      return (a > 0) - (a < 0);
    case OpKind::kSignbit:
      return a < 0;
    case OpKind::kLogicalNot:
      return a == 0;
    case OpKind::kBitwiseNot:
      return is_boolean(d) ? Wide{a == 0} : -a - 1;
    case FUSEBOX_TRUE_OF_INTEGERS_OPS:
      return 1;
    case FUSEBOX_FALSE_OF_INTEGERS_OPS:
      return 0;
    case OpKind::kAdd:
      return a + b;
    case OpKind::kSub:
      return a - b;
    case OpKind::kMul:
      return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
    case OpKind::kDiv:
      return b == 0 ? 0 : a / b;
    case OpKind::kFmod:
    case OpKind::kMod:
      return b == 0 ? 0 : a % b;
    case OpKind::kRemainder: {
      if (b == 0) return 0;
      const Wide r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case OpKind::kFloorDiv:
      return b == 0 ? 0 : euclidean_quotient(a, b);
    case OpKind::kFloorMod:
      return b == 0 ? 0 : a - b * euclidean_quotient(a, b);
    case OpKind::kCeilDiv:
      return b == 0 ? 0 : -euclidean_quotient(-a, b);
    case OpKind::kPow:
      return power(a, b, d);
    case OpKind::kMinimum:
      return b < a ? b : a;
    case OpKind::kMaximum:
      return a < b ? b : a;
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
    case OpKind::kBitwiseAnd:
      return a & b;
    case OpKind::kBitwiseOr:
      return a | b;
    case OpKind::kBitwiseXor:
      return a ^ b;
    case OpKind::kBitwiseLeftShift:
      return out ? 0 : static_cast<Wide>(static_cast<unsigned __int128>(a) << static_cast<int>(b));
    case OpKind::kBitwiseRightShift:
      return out ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b);
    case OpKind::kLogicalRightShift:
      return out ? 0 : (a & ((Wide{1} << static_cast<int>(width)) - 1)) >> static_cast<int>(b);
    case OpKind::kGcd: {
      Wide x = magnitude(a), y = magnitude(b);
      while (y != 0) {
        const Wide r = x % y;
        x = y;
        y = r;
      }
      return x;
    }
    case OpKind::kWhere:
    case OpKind::kClamp:
    case OpKind::kThreshold:
    case OpKind::kAddcmul:
    case OpKind::kImag:
    case OpKind::kComplex:
    case FUSEBOX_ELEMENTARY_OPS:
    case FUSEBOX_FRACTION_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  no_loop(kind, "a value of one or two integers");
}

// Whether an integer within the bound of the value may be outside of the dtype's range.
bool leaves(Dtype dtype, double value, double bound) {
  const int width = bits(dtype) - (is_signed(dtype) ? 1 : 0);
  return (!is_signed(dtype) && value < bound) || std::abs(value) + bound >= std::ldexp(1.0, width);
}

// How far the result may move with its operands. The bound is sound but not tight, because the case is rare.
double carried_bound(const Loop& loop, Dtype d, const int64_t* v, const double* b, size_t count, int64_t result) {
  double sum = 0;
  for (size_t k = 0; k < count; ++k) sum += b[k];
  if (gives_truth(loop.kind) || is_boolean(loop.declared)) {
    // Whether the difference of the operands may be 0. It is found before it becomes a double, which does not tell the
    // largest integers apart. The factor allows for the rounding of distance and bounds beyond 2⁵³.
    const auto touches = [&](Wide difference) {
      return static_cast<double>(magnitude(difference)) <= sum * (1 + 0x1p-50);
    };
    switch (loop.kind) {
      case FUSEBOX_COMPARISON_OPS:
        return touches(widened(d, v[0]) - widened(d, v[1]));
      case OpKind::kLogicalAnd:
        return (b[0] > 0 || v[0] != 0) && (b[1] > 0 || v[1] != 0);
      case OpKind::kLogicalOr:
        return (b[0] > 0 || v[0] == 0) && (b[1] > 0 || v[1] == 0);
      case FUSEBOX_CLASS_TEST_OPS:
        return 0;
      case OpKind::kCast:
      case OpKind::kLogicalNot:
        return touches(widened(d, v[0]));
      default:  // any other: nothing is known of a truth, which is sound
        return 1;
    }
  }
  double bound = kInfinity;
  switch (loop.kind) {
    case FUSEBOX_COPY_OPS:
    case OpKind::kCast:
    case OpKind::kReal:
    case FUSEBOX_ROUNDING_OPS:
    case OpKind::kAbs:
    case OpKind::kNeg:
    case OpKind::kRelu:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case OpKind::kClamp:
      bound = sum;
      break;
    case OpKind::kSign:
      bound = 2;
      break;
    case OpKind::kMul:
      // A product has no bound if one factor may be anything: the other factor may not be 0.
      if (!(b[0] < kInfinity) || !(b[1] < kInfinity)) return kInfinity;
      bound = std::abs(static_cast<double>(v[0])) * b[1] + std::abs(static_cast<double>(v[1])) * b[0] + b[0] * b[1];
      break;
    default:  // any other: nothing is known, which is sound
      return kInfinity;
  }
  return leaves(loop.declared, static_cast<double>(result), bound) ? kInfinity : bound;
}

// Whether an integer that is not exact may wrap on its way to the dtype in which an op computes.
bool may_wrap(Dtype from, int64_t value, double bound, Dtype to) {
  return from != to && !is_boolean(to) && leaves(to, static_cast<double>(widened(from, value)), bound);
}

}  // namespace

Wrap::Wrap(Dtype dtype)
    : unused_(is_boolean(dtype) ? 63 : 64 - std::min(bits(dtype), 64)), is_signed_(is_signed(dtype)) {}

int64_t integer_op(OpKind kind, Dtype d, const int64_t* v) {
  if (kind == OpKind::kClamp) {
    const int64_t low[2] = {v[0], v[1]};
    const int64_t bounded[2] = {integer_op(OpKind::kMaximum, d, low), v[2]};
    return integer_op(OpKind::kMinimum, d, bounded);
  }
  if (kind == OpKind::kThreshold) return widened(d, v[0]) <= widened(d, v[1]) ? v[2] : v[0];
  if (kind == OpKind::kAddcmul) {
    // x + alpha·y·z
    return static_cast<int64_t>(static_cast<U>(v[0]) +
                                static_cast<U>(v[3]) * static_cast<U>(v[1]) * static_cast<U>(v[2]));
  }
  return static_cast<int64_t>(exact_value(kind, d, widened(d, v[0]), widened(d, v[1])));
}

void integer_loop(const Loop& loop, const Row& row) {
  const size_t count = loop.operands.size();
  const bool truth = gives_truth(loop.kind);
  // Logic and casts take each operand in its own dtype; other ops in the operands' common dtype.
  const bool as_it_is = loop.kind == OpKind::kLogicalAnd || loop.kind == OpKind::kLogicalOr ||
                        loop.kind == OpKind::kLogicalNot || loop.kind == OpKind::kCast;
  const Wrap computed(loop.compute), kept(loop.declared);
  const Dtype d = as_it_is ? loop.operands[0].dtype : loop.compute;
  const bool wraps_computed = !truth && !as_it_is && !is_boolean(loop.compute);
  const bool is_truth_kept = is_boolean(loop.declared);
  int64_t ambiguous = 0;
  for (int64_t i = 0; i < row.n; ++i) {
    int64_t v[4] = {0, 0, 0, 0};
    double b[4] = {0, 0, 0, 0};
    bool exact = true;
    for (size_t k = 0; k < count; ++k) {
      v[k] = row.at<const int64_t>(static_cast<int>(2 * k + 2), i);
      b[k] = row.at<const double>(static_cast<int>(2 * k + 3), i);
      exact &= b[k] == 0;
      if (as_it_is) continue;
      if (b[k] > 0 && may_wrap(loop.operands[k].dtype, v[k], b[k], loop.compute)) b[k] = kInfinity;
      v[k] = computed(v[k]);
    }
    int64_t r = integer_op(loop.kind, d, v);
    // Arithmetic wraps in the computation dtype, then in the declared one. As bool, any number but 0 is true.
    if (wraps_computed) r = computed(r);
    r = is_truth_kept ? r != 0 : kept(r);
    row.at<int64_t>(0, i) = r;
    double& bound = row.at<double>(1, i);
    bound = exact ? 0 : carried_bound(loop, d, v, b, count, r);
    ambiguous += !exact && truth && bound > 0;
  }
  if (ambiguous > 0) *loop.ambiguous += ambiguous;
}

void integer_to_real_loop(const Loop& loop, const Row& row) {
  const Dtype from = loop.operands[0].dtype;
  const Dtype to = real_of(loop.declared);
  const double overflow = overflow_of(to);
  for (int64_t i = 0; i < row.n; ++i) {
    const int64_t v = row.at<const int64_t>(2, i);
    const double b = row.at<const double>(3, i);
    const U bits = static_cast<U>(v);
    const auto low = from == Dtype::kUint64 ? from_uint64(to, bits) : from_int64(to, v);
    const double y = to_double(to, low);
    row.at<double>(0, i) = y;
    double& bound = row.at<double>(1, i);
    bound = b;
    if (b == 0 || b == kInfinity) continue;
    bound = finish(to, overflow, y, {y - b, y + b}, ulp_of(to, y), false).bound;
  }
}

void where_integer_loop(const Loop& loop, const Row& row) {
  int64_t ambiguous = 0;
  for (int64_t i = 0; i < row.n; ++i) {
    const bool condition = row.at<const int64_t>(2, i) != 0;
    const int chosen = condition ? 4 : 6, other = condition ? 6 : 4;
    const int64_t v = row.at<const int64_t>(chosen, i);
    row.at<int64_t>(0, i) = v;
    double& bound = row.at<double>(1, i);
    bound = row.at<const double>(chosen + 1, i);
    if (row.at<const double>(3, i) == 0) continue;
    const int64_t w = row.at<const int64_t>(other, i);
    const Wide distance = magnitude(widened(loop.declared, v) - widened(loop.declared, w));
    bound = std::max(bound, static_cast<double>(distance) + row.at<const double>(other + 1, i));
    if (is_boolean(loop.declared)) bound = bound > 0;
    if (is_storage_only(loop.declared) && v != w) bound = kInfinity;  // bytes have no distance
    ++ambiguous;
  }
  if (ambiguous > 0) *loop.ambiguous += ambiguous;
}

}  // namespace fusebox::aten
