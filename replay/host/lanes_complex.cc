// Complex arithmetic: addition to division and the functions made of them, by ATen's formulas.
#include <cmath>

#include "ir/table/families.h"
#include "replay/host/elementary.h"
#include "replay/host/lane_loops.h"

namespace fusebox::host {
namespace {

template <class T>
inline Complex<T> add(Complex<T> a, Complex<T> b) {
  return canonical(Complex<T>{a.re + b.re, a.im + b.im});
}
template <class T>
inline Complex<T> sub(Complex<T> a, Complex<T> b) {
  return canonical(Complex<T>{a.re - b.re, a.im - b.im});
}
template <class T>
inline Complex<T> mul(Complex<T> a, Complex<T> b) {
  return canonical(Complex<T>{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re});
}
// Smith's division: it scales by the larger part of the divisor, so that no square overflows.
template <class T>
inline Complex<T> divide(Complex<T> a, Complex<T> b) {
  const T re = std::abs(b.re), im = std::abs(b.im);
  if (re >= im) {
    if (re == T{0} && im == T{0}) return canonical(Complex<T>{a.re / re, a.im / im});
    const T ratio = b.im / b.re;
    const T scale = T{1} / (b.re + b.im * ratio);
    return canonical(Complex<T>{(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale});
  }
  const T ratio = b.re / b.im;
  const T scale = T{1} / (b.re * ratio + b.im);
  return canonical(Complex<T>{(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale});
}
template <class T>
inline Complex<T> reciprocal(Complex<T> a) {
  return divide(Complex<T>{T{1}, T{0}}, a);
}
template <class T>
inline Complex<T> neg(Complex<T> a) {
  return {-a.re, -a.im};
}
inline float magnitude_of(float re, float im) { return static_cast<float>(elementary_hypot(re, im)); }
inline double magnitude_of(double re, double im) { return elementary_hypot(re, im); }
template <class T>
inline T magnitude(Complex<T> a) {
  return canonical(magnitude_of(a.re, a.im));
}
template <class T>
inline T real_part(Complex<T> a) {
  return a.re;
}
template <class T>
inline T imaginary_part(Complex<T> a) {
  return a.im;
}
template <class T>
inline uint8_t is_equal(Complex<T> a, Complex<T> b) {
  return a.re == b.re && a.im == b.im;
}
template <class T>
inline uint8_t is_unequal(Complex<T> a, Complex<T> b) {
  return !is_equal(a, b);
}
template <class T>
inline uint8_t is_finite(Complex<T> a) {
  return std::abs(a.re) <= std::numeric_limits<T>::max() && std::abs(a.im) <= std::numeric_limits<T>::max();
}
template <class T>
inline uint8_t is_infinite(Complex<T> a) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  return std::abs(a.re) == kInfinity || std::abs(a.im) == kInfinity;
}
template <class T>
inline uint8_t is_nan(Complex<T> a) {
  return a.re != a.re || a.im != a.im;
}
template <class T>
inline uint8_t is_real(Complex<T> a) {
  return a.im == T{0};
}
template <class T>
inline Complex<T> addcmul(Complex<T> x, Complex<T> y, Complex<T> z, Complex<T> alpha) {
  return add(x, mul(mul(alpha, y), z));
}

template <class T>
LaneFunction find_in(OpKind kind) {
  using C = Complex<T>;
  switch (kind) {
    case OpKind::kAdd:
      return binary_lanes<C, C, add<T>>;
    case OpKind::kSub:
      return binary_lanes<C, C, sub<T>>;
    case OpKind::kMul:
      return binary_lanes<C, C, mul<T>>;
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return binary_lanes<C, C, divide<T>>;
    case OpKind::kReciprocal:
      return unary_lanes<C, C, reciprocal<T>>;
    case OpKind::kNeg:
      return unary_lanes<C, C, neg<T>>;
    case OpKind::kAbs:
      return unary_lanes<T, C, magnitude<T>>;
    case OpKind::kReal:
      return unary_lanes<T, C, real_part<T>>;
    case OpKind::kImag:
      return unary_lanes<T, C, imaginary_part<T>>;
    case OpKind::kEq:
      return binary_lanes<uint8_t, C, is_equal<T>>;
    case OpKind::kNe:
      return binary_lanes<uint8_t, C, is_unequal<T>>;
    case OpKind::kIsfinite:
      return unary_lanes<uint8_t, C, is_finite<T>>;
    case OpKind::kIsinf:
      return unary_lanes<uint8_t, C, is_infinite<T>>;
    case OpKind::kIsnan:
      return unary_lanes<uint8_t, C, is_nan<T>>;
    case OpKind::kIsreal:
      return unary_lanes<uint8_t, C, is_real<T>>;
    case OpKind::kWhere:
      return select_lanes<C>;
    case OpKind::kAddcmul:
      return quaternary_lanes<C, addcmul<T>>;
    case FUSEBOX_COPY_OPS:
    case OpKind::kCast:
    case OpKind::kPow:
    case OpKind::kFmod:
    case OpKind::kRemainder:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case OpKind::kSign:
    case OpKind::kRelu:
    case OpKind::kClamp:
    case OpKind::kThreshold:
    case OpKind::kSqrt:
    case OpKind::kRsqrt:
    case OpKind::kFrac:
    case OpKind::kNextafter:
    case OpKind::kLerp:
    case OpKind::kLt:
    case OpKind::kLe:
    case OpKind::kGt:
    case OpKind::kGe:
    case OpKind::kSignbit:
    case OpKind::kIsneginf:
    case OpKind::kIsposinf:
    case OpKind::kComplex:
    case FUSEBOX_ELEMENTARY_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_INTEGER_OPS:
    case FUSEBOX_LOGICAL_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  return nullptr;
}

}  // namespace

LaneFunction find_complex_math(OpKind kind, Dtype compute) {
  return compute == Dtype::kComplexFloat ? find_in<float>(kind) : find_in<double>(kind);
}

}  // namespace fusebox::host
