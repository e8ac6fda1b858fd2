// Arithmetic of float and double that IEEE defines or the C library does exactly (fmod, floor, …), so that the bits are
// the same everywhere.
#include <bit>
#include <cmath>
#include <type_traits>

#include "ir/table/families.h"
#include "replay/host/lane_loops.h"

namespace fusebox::host {
namespace {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
inline T add(T a, T b) {
  return canonical(a + b);
}
template <class T>
inline T sub(T a, T b) {
  return canonical(a - b);
}
template <class T>
inline T mul(T a, T b) {
  return canonical(a * b);
}
template <class T>
inline T divide(T a, T b) {
  return canonical(a / b);
}
template <class T>
inline T reciprocal(T a) {
  return canonical(T{1} / a);
}
template <class T>
inline T square_root(T a) {
  return canonical(std::sqrt(a));
}
template <class T>
inline T reciprocal_root(T a) {
  return canonical(T{1} / std::sqrt(a));
}
template <class T>
inline T modulo(T a, T b) {
  return canonical(std::fmod(a, b));
}
// Python's %: the result has the divisor's sign.
template <class T>
inline T remainder(T a, T b) {
  T r = std::fmod(a, b);
  if (r != T{0} && (r < T{0}) != (b < T{0})) r += b;
  return canonical(r);
}
template <class T>
inline T minimum(T a, T b) {
  const T r = b < a ? b : a;
  return a == a && b == b ? r : std::numeric_limits<T>::quiet_NaN();
}
template <class T>
inline T maximum(T a, T b) {
  const T r = a < b ? b : a;
  return a == a && b == b ? r : std::numeric_limits<T>::quiet_NaN();
}
template <class T>
inline T neg(T a) {
  return std::bit_cast<T>(static_cast<Bits<T>>(std::bit_cast<Bits<T>>(a) ^ (Bits<T>{1} << (sizeof(T) * 8 - 1))));
}
template <class T>
inline T absolute(T a) {
  return std::bit_cast<T>(static_cast<Bits<T>>(std::bit_cast<Bits<T>>(a) & ~(Bits<T>{1} << (sizeof(T) * 8 - 1))));
}
template <class T>
inline T relu(T a) {
  return a < T{0} ? T{0} : a;  // NaN and -0 stay
}
// ATen's sign: 0 for NaN.
template <class T>
inline T sign(T a) {
  return static_cast<T>((T{0} < a) - (a < T{0}));
}
template <class T>
inline T ceiling(T a) {
  return canonical(std::ceil(a));
}
template <class T>
inline T floor_of(T a) {
  return canonical(std::floor(a));
}
template <class T>
inline T truncate(T a) {
  return canonical(std::trunc(a));
}
template <class T>
inline T round_even(T a) {
  return canonical(std::nearbyint(a));
}
template <class T>
inline T fraction(T a) {
  return canonical(a - std::trunc(a));
}
template <class T>
inline T same(T a) {
  return a;
}
template <class T>
inline T next_after(T from, T to) {
  if (from != from || to != to) return std::numeric_limits<T>::quiet_NaN();
  if (from == to) return to;
  if (from == T{0}) return to > T{0} ? std::numeric_limits<T>::denorm_min() : -std::numeric_limits<T>::denorm_min();
  const Bits<T> bits = std::bit_cast<Bits<T>>(from);
  return std::bit_cast<T>((from < to) == (from > T{0}) ? bits + 1 : bits - 1);
}
template <class T>
inline uint8_t is_finite(T a) {
  return absolute(a) <= std::numeric_limits<T>::max();
}
template <class T>
inline uint8_t is_infinite(T a) {
  return absolute(a) == std::numeric_limits<T>::infinity();
}
template <class T>
inline uint8_t is_nan(T a) {
  return a != a;
}
template <class T>
inline uint8_t is_negative_infinity(T a) {
  return a == -std::numeric_limits<T>::infinity();
}
template <class T>
inline uint8_t is_positive_infinity(T a) {
  return a == std::numeric_limits<T>::infinity();
}
// False of a NaN: processors give the NaN of 0 / 0 different signs.
template <class T>
inline uint8_t sign_bit(T a) {
  return static_cast<uint8_t>(std::bit_cast<Bits<T>>(a) >> (sizeof(T) * 8 - 1) & (a == a));
}
template <class T>
inline uint8_t always(T) {
  return 1;
}
template <class T>
inline T lerp(T a, T b, T w) {
  return canonical(a + w * (b - a));
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
  return canonical(x + alpha * y * z);
}
template <class T>
inline Complex<T> pair(T re, T im) {
  return {re, im};
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
    case OpKind::kTruediv:
      return binary_lanes<T, T, divide<T>>;
    case OpKind::kFmod:
      return binary_lanes<T, T, modulo<T>>;
    case OpKind::kRemainder:
      return binary_lanes<T, T, remainder<T>>;
    case OpKind::kMinimum:
      return binary_lanes<T, T, minimum<T>>;
    case OpKind::kMaximum:
      return binary_lanes<T, T, maximum<T>>;
    case OpKind::kNextafter:
      return binary_lanes<T, T, next_after<T>>;
    case OpKind::kComplex:
      return binary_lanes<Complex<T>, T, pair<T>>;
    case OpKind::kReciprocal:
      return unary_lanes<T, T, reciprocal<T>>;
    case OpKind::kSqrt:
      return unary_lanes<T, T, square_root<T>>;
    case OpKind::kRsqrt:
      return unary_lanes<T, T, reciprocal_root<T>>;
    case OpKind::kNeg:
      return unary_lanes<T, T, neg<T>>;
    case OpKind::kAbs:
      return unary_lanes<T, T, absolute<T>>;
    case OpKind::kRelu:
      return unary_lanes<T, T, relu<T>>;
    case OpKind::kSign:
      return unary_lanes<T, T, sign<T>>;
    case OpKind::kCeil:
      return unary_lanes<T, T, ceiling<T>>;
    case OpKind::kFloor:
      return unary_lanes<T, T, floor_of<T>>;
    case OpKind::kTrunc:
      return unary_lanes<T, T, truncate<T>>;
    case OpKind::kRound:
      return unary_lanes<T, T, round_even<T>>;
    case OpKind::kFrac:
      return unary_lanes<T, T, fraction<T>>;
    case OpKind::kReal:
      return unary_lanes<T, T, same<T>>;
    case OpKind::kIsfinite:
      return unary_lanes<uint8_t, T, is_finite<T>>;
    case OpKind::kIsinf:
      return unary_lanes<uint8_t, T, is_infinite<T>>;
    case OpKind::kIsnan:
      return unary_lanes<uint8_t, T, is_nan<T>>;
    case OpKind::kIsneginf:
      return unary_lanes<uint8_t, T, is_negative_infinity<T>>;
    case OpKind::kIsposinf:
      return unary_lanes<uint8_t, T, is_positive_infinity<T>>;
    case OpKind::kIsreal:
      return unary_lanes<uint8_t, T, always<T>>;
    case OpKind::kSignbit:
      return unary_lanes<uint8_t, T, sign_bit<T>>;
    case OpKind::kLerp:
      return ternary_lanes<T, lerp<T>>;
    case OpKind::kClamp:
      return ternary_lanes<T, clamp<T>>;
    case OpKind::kThreshold:
      return ternary_lanes<T, threshold<T>>;
    case OpKind::kAddcmul:
      return quaternary_lanes<T, addcmul<T>>;
    case FUSEBOX_CHOICE_OPS:
    case OpKind::kPow:
    case OpKind::kImag:
    case FUSEBOX_ELEMENTARY_OPS:
    case FUSEBOX_INTEGER_OPS:
    case FUSEBOX_COMPARISON_OPS:
    case FUSEBOX_LOGICAL_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;  // found above, or by find_elementary_math, or not of floats
  }
  return nullptr;
}

int64_t sum_of_counts(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
T sum_of_counts(T a, T b) {
  return canonical(a + b);
}

// (avg, m2, n) of two disjoint sets of elements. If one set is empty, the result is the other; if both are, it is
// empty. Counts have type N, which holds every integer count exactly.
template <class T, class N>
void welford_lanes(WelfordCall& c) {
  const T* from[6];
  T* to[2];
  for (int k = 0; k < 6; ++k) from[k] = static_cast<const T*>(c.from[k]);
  for (int k = 0; k < 2; ++k) to[k] = static_cast<T*>(c.to[k]);
  const auto *counts1 = static_cast<const N*>(c.from[2]), *counts2 = static_cast<const N*>(c.from[5]);
  auto* counts = static_cast<N*>(c.to[2]);
  for (ptrdiff_t l = c.begin; l < c.end; ++l) {
    const T avg1 = from[0][l * c.stride[0]], m1 = from[1][l * c.stride[1]];
    const T avg2 = from[3][l * c.stride[3]], m2 = from[4][l * c.stride[4]];
    const N n1 = counts1[l * c.stride[2]], n2 = counts2[l * c.stride[5]];
    const N n = sum_of_counts(n1, n2);
    const T share = static_cast<T>(n2) / static_cast<T>(n);
    const T delta = avg2 - avg1;
    const T avg = canonical(avg1 + delta * share);
    const T squares = canonical(m1 + m2 + delta * delta * static_cast<T>(n1) * share);
    const bool is_first = n2 == N{0}, is_second = n1 == N{0}, is_empty = is_first && is_second;
    to[0][l] = is_empty ? T{0} : is_first ? avg1 : is_second ? avg2 : avg;
    to[1][l] = is_empty ? T{0} : is_first ? m1 : is_second ? m2 : squares;
    counts[l] = n;
  }
}

}  // namespace

LaneFunction find_floating_math(OpKind kind, Dtype compute) {
  const LaneFunction exact = compute == Dtype::kFloat    ? find_in<float>(kind)
                             : compute == Dtype::kDouble ? find_in<double>(kind)
                                                         : nullptr;
  return exact ? exact : find_elementary_math(kind, compute);
}

WelfordFunction find_welford(Dtype compute, Dtype count) {
  const bool is_integer = count == Dtype::kInt64;
  if (!is_integer && count != compute) return nullptr;
  if (compute == Dtype::kFloat) return is_integer ? welford_lanes<float, int64_t> : welford_lanes<float, float>;
  if (compute == Dtype::kDouble) return is_integer ? welford_lanes<double, int64_t> : welford_lanes<double, double>;
  return nullptr;
}

LaneFunction find_math(OpKind kind, Dtype compute, int index_bits) {
  if (is_storage_only(compute)) return kind == OpKind::kWhere ? select_lanes<uint8_t> : nullptr;
  if (is_complex(compute)) return find_complex_math(kind, compute);
  if (is_floating(compute)) return find_floating_math(kind, compute);
  return find_integer_math(kind, compute, index_bits);
}

}  // namespace fusebox::host
