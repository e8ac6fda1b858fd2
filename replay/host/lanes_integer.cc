// Integer and bool arithmetic. All results wrap. Division by zero gives 0. A shift by the width or more, or by a
// negative number, moves every bit out.
#include <bit>
#include <type_traits>

#include "ir/table/families.h"
#include "replay/host/lane_loops.h"

namespace fusebox::host {
namespace {

// A type so wide that no promotion to int makes an operation signed.
template <class T>
using Wrap = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class T>
inline T add(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
}
template <class T>
inline T sub(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
}
template <class T>
inline T mul(T a, T b) {
  return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
}
template <class T>
inline T neg(T a) {
  return static_cast<T>(Wrap<T>{0} - static_cast<Wrap<T>>(a));
}
template <class T>
inline T absolute(T a) {
  return a < T{0} ? neg(a) : a;
}
template <class T>
inline T divide(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return neg(a);
  return static_cast<T>(a / b);
}
template <class T>
inline T modulo(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}
// Python's %: the result has the divisor's sign.
template <class T>
inline T remainder(T a, T b) {
  const T r = modulo(a, b);
  return r != 0 && ((r < 0) != (b < 0)) ? add(r, b) : r;
}
// Euclidean: 0 ≤ a − b·q < |b|.
template <class T>
inline T floor_modulo(T a, T b) {
  const T r = modulo(a, b);
  return r < 0 ? (b < 0 ? sub(r, b) : add(r, b)) : r;
}
template <class T>
inline T floor_divide(T a, T b) {
  const T q = divide(a, b);
  return b != 0 && modulo(a, b) < 0 ? (b < 0 ? add(q, T{1}) : sub(q, T{1})) : q;
}
template <class T>
inline T ceil_divide(T a, T b) {
  // -floor_divide(-a, b). For an inexact quotient it is floor_divide(a, b) and one more, or one less if b is negative.
  const T q = floor_divide(a, b);
  return b == 0 || modulo(a, b) == 0 ? q : b < 0 ? sub(q, T{1}) : add(q, T{1});
}
template <class T>
inline T minimum(T a, T b) {
  return b < a ? b : a;
}
template <class T>
inline T maximum(T a, T b) {
  return a < b ? b : a;
}
template <class T>
inline T sign(T a) {
  return static_cast<T>((a > T{0}) - (a < T{0}));
}
template <class T>
inline T relu(T a) {
  return a > T{0} ? a : T{0};
}
template <class T>
inline T same(T a) {
  return a;
}
template <class T>
inline T bit_not(T a) {
  return static_cast<T>(~a);
}
template <class T>
inline T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
inline T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
inline T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T>
inline bool is_wide_shift(T by) {
  return by < T{0} || static_cast<uint64_t>(by) >= sizeof(T) * 8;
}
template <class T>
inline T shift_left(T a, T by) {
  return is_wide_shift(by) ? T{0} : static_cast<T>(static_cast<Wrap<T>>(a) << by);
}
template <class T>
inline T shift_right(T a, T by) {
  if (is_wide_shift(by)) return a < T{0} ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> by);
}
template <class T>
inline T shift_right_logical(T a, T by) {
  return is_wide_shift(by) ? T{0} : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) >> by);
}
template <class T>
inline T greatest_common_divisor(T a, T b) {
  auto x = static_cast<std::make_unsigned_t<T>>(absolute(a));
  auto y = static_cast<std::make_unsigned_t<T>>(absolute(b));
  while (y != 0) {
    const auto r = static_cast<std::make_unsigned_t<T>>(x % y);
    x = y;
    y = r;
  }
  return static_cast<T>(x);
}
// Squares repeatedly. A negative exponent gives 0 except for the bases 1 and −1, as in ATen.
template <class T>
inline T power(T base, T exponent) {
  if (exponent < T{0}) {
    if (base == T{1}) return 1;
    if (base == static_cast<T>(-1)) return (exponent & 1) != 0 ? base : T{1};
    return 0;
  }
  T result = 1;
  for (; exponent != 0; exponent = static_cast<T>(exponent >> 1)) {
    if ((exponent & 1) != 0) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}
template <class T>
inline T clamp(T x, T low, T high) {
  return minimum(maximum(x, low), high);
}
template <class T>
inline T threshold(T x, T limit, T value) {
  return x <= limit ? value : x;
}
template <class T>
inline T addcmul(T x, T y, T z, T alpha) {
  return add(x, mul(mul(alpha, y), z));
}
template <class T>
inline uint8_t is_negative(T a) {
  return a < T{0};
}
template <class T>
inline uint8_t always(T) {
  return 1;
}
template <class T>
inline uint8_t never(T) {
  return 0;
}

template <class T>
LaneFunction find_in(OpKind kind) {
  if (const LaneFunction f = find_comparison<T>(kind)) return f;
  switch (kind) {
    case OpKind::kAdd:
      return binary_lanes<T, T, add<T>>;
    case OpKind::kSub:
      return binary_lanes<T, T, sub<T>>;
    case OpKind::kMul:
      return binary_lanes<T, T, mul<T>>;
    case OpKind::kDiv:
      return binary_lanes<T, T, divide<T>>;
    case OpKind::kMod:
    case OpKind::kFmod:
      return binary_lanes<T, T, modulo<T>>;
    case OpKind::kRemainder:
      return binary_lanes<T, T, remainder<T>>;
    case OpKind::kFloorDiv:
      return binary_lanes<T, T, floor_divide<T>>;
    case OpKind::kFloorMod:
      return binary_lanes<T, T, floor_modulo<T>>;
    case OpKind::kCeilDiv:
      return binary_lanes<T, T, ceil_divide<T>>;
    case OpKind::kMinimum:
      return binary_lanes<T, T, minimum<T>>;
    case OpKind::kMaximum:
      return binary_lanes<T, T, maximum<T>>;
    case OpKind::kBitwiseAnd:
      return binary_lanes<T, T, bit_and<T>>;
    case OpKind::kBitwiseOr:
      return binary_lanes<T, T, bit_or<T>>;
    case OpKind::kBitwiseXor:
      return binary_lanes<T, T, bit_xor<T>>;
    case OpKind::kBitwiseLeftShift:
      return binary_lanes<T, T, shift_left<T>>;
    case OpKind::kBitwiseRightShift:
      return binary_lanes<T, T, shift_right<T>>;
    case OpKind::kLogicalRightShift:
      return binary_lanes<T, T, shift_right_logical<T>>;
    case OpKind::kGcd:
      return binary_lanes<T, T, greatest_common_divisor<T>>;
    case OpKind::kPow:
      return binary_lanes<T, T, power<T>>;
    case OpKind::kNeg:
      return unary_lanes<T, T, neg<T>>;
    case OpKind::kAbs:
      return unary_lanes<T, T, absolute<T>>;
    case OpKind::kSign:
      return unary_lanes<T, T, sign<T>>;
    case OpKind::kRelu:
      return unary_lanes<T, T, relu<T>>;
    case OpKind::kBitwiseNot:
      return unary_lanes<T, T, bit_not<T>>;
    case FUSEBOX_ROUNDING_OPS:
    case OpKind::kReal:
      return unary_lanes<T, T, same<T>>;
    case OpKind::kSignbit:
      return unary_lanes<uint8_t, T, is_negative<T>>;
    case FUSEBOX_TRUE_OF_INTEGERS_OPS:
      return unary_lanes<uint8_t, T, always<T>>;
    case FUSEBOX_FALSE_OF_INTEGERS_OPS:
      return unary_lanes<uint8_t, T, never<T>>;
    case OpKind::kClamp:
      return ternary_lanes<T, clamp<T>>;
    case OpKind::kThreshold:
      return ternary_lanes<T, threshold<T>>;
    case OpKind::kAddcmul:
      return quaternary_lanes<T, addcmul<T>>;
    case FUSEBOX_CHOICE_OPS:
    case OpKind::kImag:
    case OpKind::kComplex:
    case FUSEBOX_ELEMENTARY_OPS:
    case FUSEBOX_FRACTION_OPS:
    case FUSEBOX_COMPARISON_OPS:
    case FUSEBOX_LOGICAL_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;  // found above, or not of integers
  }
  return nullptr;
}

// -- bool: logic on bytes that are 0 or 1
inline uint8_t logical_not(uint8_t a) { return a == 0; }
inline uint8_t logical_and(uint8_t a, uint8_t b) { return (a != 0) & (b != 0); }
inline uint8_t logical_or(uint8_t a, uint8_t b) { return (a | b) != 0; }
inline uint8_t logical_xor(uint8_t a, uint8_t b) { return (a != 0) != (b != 0); }

LaneFunction find_in_bool(OpKind kind) {
  if (const LaneFunction f = find_comparison<uint8_t>(kind)) return f;
  switch (kind) {
    case OpKind::kLogicalNot:
    case OpKind::kBitwiseNot:
      return unary_lanes<uint8_t, uint8_t, logical_not>;
    case OpKind::kLogicalAnd:
    case OpKind::kBitwiseAnd:
      return binary_lanes<uint8_t, uint8_t, logical_and>;
    case OpKind::kLogicalOr:
    case OpKind::kBitwiseOr:
      return binary_lanes<uint8_t, uint8_t, logical_or>;
    case OpKind::kBitwiseXor:
      return binary_lanes<uint8_t, uint8_t, logical_xor>;
    case FUSEBOX_TRUE_OF_INTEGERS_OPS:
      return unary_lanes<uint8_t, uint8_t, always<uint8_t>>;
    case OpKind::kSignbit:
    case FUSEBOX_FALSE_OF_INTEGERS_OPS:
      return unary_lanes<uint8_t, uint8_t, never<uint8_t>>;
    case FUSEBOX_CHOICE_OPS:
    case FUSEBOX_REAL_OPS:
    case FUSEBOX_WHOLE_OPS:
    case FUSEBOX_SHIFT_OPS:
    case FUSEBOX_COMPARISON_OPS:
    case FUSEBOX_PART_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;  // found above, or not of bool
  }
  return nullptr;
}

// -- index: add, sub and mul report a result that leaves the index type
struct Sum {
  static int64_t of(int64_t a, int64_t b) { return add(a, b); }
  static uint64_t overflow(int64_t a, int64_t b, int64_t r) { return static_cast<uint64_t>((a ^ r) & (b ^ r)) >> 63; }
};
struct Difference {
  static int64_t of(int64_t a, int64_t b) { return sub(a, b); }
  static uint64_t overflow(int64_t a, int64_t b, int64_t r) { return static_cast<uint64_t>((a ^ b) & (a ^ r)) >> 63; }
};
struct Product {
  static int64_t of(int64_t a, int64_t b) { return mul(a, b); }
  static uint64_t overflow(int64_t a, int64_t b, int64_t) {
    int64_t r;
    return __builtin_mul_overflow(a, b, &r);
  }
};

template <class Op, int bits>
void index_lanes(LaneCall& c) {
  uint64_t bad = 0;
  for_pairs<int64_t, int64_t>(c, [&](int64_t x, int64_t y) {
    const int64_t r = Op::of(x, y);
    // Operands of 32 bits cannot overflow 64.
    bad |= bits == 32 ? (static_cast<uint64_t>(r) + 0x80000000u) >> 32 : Op::overflow(x, y, r);
    return r;
  });
  c.bad = bad;
}

// Quotients or remainders by one divisor. For dividends below 2^31 and 2^s ≥ b, the formula
// q = a · ceil(2^(31+s) / b) >> (31+s) is exact.
template <bool is_quotient, int64_t (*F)(int64_t, int64_t)>
void index_divide_lanes(LaneCall& c) {
  const int64_t* __restrict a = static_cast<const int64_t*>(c.from[0]);
  const int64_t* b = static_cast<const int64_t*>(c.from[1]);
  uint64_t all = 0;
  if (c.stride[0] != 0 && c.stride[1] == 0 && b[0] > 0 && b[0] < (int64_t{1} << 31))
    for (int32_t l = c.begin; l < c.end; ++l) all |= static_cast<uint64_t>(a[l]);
  else
    all = ~uint64_t{0};
  if (all >> 31 != 0) return binary_lanes<int64_t, int64_t, F>(c);
  const auto divisor = static_cast<uint64_t>(b[0]);
  const int shift = 31 + std::bit_width(divisor - 1);
  const uint64_t factor = (uint64_t{1} << shift) / divisor + 1;
  int64_t* __restrict to = static_cast<int64_t*>(c.to);
  for (int32_t l = c.begin; l < c.end; ++l) {
    const uint64_t q = static_cast<uint64_t>(a[l]) * factor >> shift;
    to[l] = static_cast<int64_t>(is_quotient ? q : static_cast<uint64_t>(a[l]) - q * divisor);
  }
}

LaneFunction find_in_index(OpKind kind, int index_bits) {
  switch (kind) {
    case OpKind::kAdd:
      return index_bits == 32 ? index_lanes<Sum, 32> : index_lanes<Sum, 64>;
    case OpKind::kSub:
      return index_bits == 32 ? index_lanes<Difference, 32> : index_lanes<Difference, 64>;
    case OpKind::kMul:
      return index_bits == 32 ? index_lanes<Product, 32> : index_lanes<Product, 64>;
    case OpKind::kDiv:
      return index_divide_lanes<true, divide<int64_t>>;
    case OpKind::kMod:
    case OpKind::kFmod:
      return index_divide_lanes<false, modulo<int64_t>>;
    case OpKind::kFloorDiv:
      return index_divide_lanes<true, floor_divide<int64_t>>;
    case OpKind::kFloorMod:
      return index_divide_lanes<false, floor_modulo<int64_t>>;
    case FUSEBOX_CHOICE_OPS:
    case OpKind::kPow:
    case OpKind::kRemainder:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case FUSEBOX_ONE_OR_THREE_OPERAND_OPS:
    case OpKind::kGcd:
    case OpKind::kCeilDiv:
    case FUSEBOX_ELEMENTARY_OPS:
    case FUSEBOX_FRACTION_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_SHIFT_OPS:
    case FUSEBOX_BITWISE_OPS:
    case FUSEBOX_TRUTH_OPS:
    case FUSEBOX_PART_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;  // as of any other integers
  }
  return find_in<int64_t>(kind);
}

}  // namespace

bool sets_bad(OpKind kind, Dtype compute) {
  return compute == Dtype::kIndex && (kind == OpKind::kAdd || kind == OpKind::kSub || kind == OpKind::kMul);
}

LaneFunction find_integer_math(OpKind kind, Dtype compute, int index_bits) {
  switch (compute) {
    case Dtype::kBool:
      return find_in_bool(kind);
    case Dtype::kInt8:
      return find_in<int8_t>(kind);
    case Dtype::kInt16:
      return find_in<int16_t>(kind);
    case Dtype::kInt32:
      return find_in<int32_t>(kind);
    case Dtype::kInt64:
      return find_in<int64_t>(kind);
    case Dtype::kUint8:
      return find_in<uint8_t>(kind);
    case Dtype::kUint16:
      return find_in<uint16_t>(kind);
    case Dtype::kUint32:
      return find_in<uint32_t>(kind);
    case Dtype::kUint64:
      return find_in<uint64_t>(kind);
    case Dtype::kIndex:
      return find_in_index(kind, index_bits);
    case FUSEBOX_FLOATING_DTYPES:
    case FUSEBOX_COMPLEX_DTYPES:
    case Dtype::kFloat4E2m1x2:
      break;
  }
  return nullptr;
}

}  // namespace fusebox::host
