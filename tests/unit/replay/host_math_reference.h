// Plain references for scalar ops: integers in 128 bits; floats in long double or, if a formula rounds at each step, in
// the computation dtype. If several results are right, a reference gives a bound in units in the last place.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

#include "ir/table/op.h"
#include "tests/support/inverse_error_functions.h"
#include "tests/support/reference_integer.h"

namespace fusebox::testing {

// A value, correct to `ulps` units in the last place of the result's dtype plus `absolute`.
struct FloatReference {
  long double value = 0;
  double ulps = 0;
  double absolute = 0;
};

// C: the computation type.
template <class C>
FloatReference float_reference(OpKind kind, C a, C b, C c, C d) {
  // The bounds of elementary functions are those of tests/property/elementary_bounds_test.cc.
  const auto exact = [](C x) { return FloatReference{static_cast<long double>(x), 0, 0}; };
  const auto near = [](long double x, double ulps, double absolute = 0) { return FloatReference{x, ulps, absolute}; };
  const long double x = a, y = b;
  const C nan = std::numeric_limits<C>::quiet_NaN();
  const bool any_nan = std::isnan(a) || std::isnan(b);
  switch (kind) {
    case OpKind::kSet:
    case OpKind::kReal:
      return exact(a);
    case OpKind::kAbs:
      return exact(std::fabs(a));
    case OpKind::kNeg:
      return exact(-a);
    case OpKind::kAdd:
      return exact(a + b);
    case OpKind::kSub:
      return exact(a - b);
    case OpKind::kMul:
      return exact(a * b);
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return exact(a / b);
    case OpKind::kReciprocal:
      return exact(C{1} / a);
    case OpKind::kSqrt:
      return exact(std::sqrt(a));
    case OpKind::kRsqrt:
      return near(1 / sqrtl(x), 1.5);
    case OpKind::kFmod:
      return exact(std::fmod(a, b));
    case OpKind::kRemainder: {
      const C r = std::fmod(a, b);
      return exact(r != 0 && std::signbit(r) != std::signbit(b) ? r + b : r);
    }
    case OpKind::kNextafter:
      return exact(std::nextafter(a, b));
    case OpKind::kMinimum:
      return exact(any_nan ? nan : std::fmin(a, b));
    case OpKind::kMaximum:
      return exact(any_nan ? nan : std::fmax(a, b));
    case OpKind::kCeil:
      return exact(std::ceil(a));
    case OpKind::kFloor:
      return exact(std::floor(a));
    case OpKind::kTrunc:
      return exact(std::trunc(a));
    case OpKind::kRound:
      return exact(std::rint(a));
    case OpKind::kFrac:
      return exact(a - std::trunc(a));
    case OpKind::kRelu:
      return exact(a < 0 ? C{0} : a);
    case OpKind::kSign:
      return exact(a > 0 ? C{1} : a < 0 ? C{-1} : C{0});
    case OpKind::kLerp:
      return exact(a + c * (b - a));
    case OpKind::kClamp:
      return exact(any_nan || std::isnan(c) ? nan : std::fmin(std::fmax(a, b), c));
    case OpKind::kThreshold:
      return exact(a <= b ? c : a);
    case OpKind::kAddcmul:
      return exact(a + d * b * c);
    case OpKind::kAcos:
      return near(acosl(x), 1.2);
    case OpKind::kAcosh:
      return near(acoshl(x), 2);
    case OpKind::kAsin:
      return near(asinl(x), 1.2);
    case OpKind::kAsinh:
      return near(asinhl(x), 1.9);
    case OpKind::kAtan:
      return near(atanl(x), 1.6);
    case OpKind::kAtanh:
      return near(atanhl(x), 1.9);
    case OpKind::kAtan2:
      return near(atan2l(x, y), 1.7);
    case OpKind::kCos:
      return near(cosl(x), 1.6);
    case OpKind::kCosh:
      return near(coshl(x), 1.6);
    case OpKind::kExp:
      return near(expl(x), 1.7);
    case OpKind::kExp2:
      return near(exp2l(x), 1.3);
    case OpKind::kExpm1:
      return near(expm1l(x), 1.9);
    case OpKind::kErf:
      return near(erfl(x), 1.3);
    case OpKind::kErfc:
      return near(erfcl(x), 2.2);
    case OpKind::kErfinv:
      return near(inverse_erf(x), 4);
    case OpKind::kErfcinv:
      return near(inverse_erfc(x), 4);
    case OpKind::kLgamma:
      // SLEEF gives an absolute bound for negative arguments.
      return near(lgammal(x), 1, a < 0 ? 1e-14 : 0);
    case OpKind::kLog:
      return near(logl(x), 1);
    case OpKind::kLog10:
      return near(log10l(x), 1);
    case OpKind::kLog1p:
      return near(log1pl(x), 1.5);
    case OpKind::kLog2:
      return near(log2l(x), 1.1);
    case OpKind::kSin:
      return near(sinl(x), 1.6);
    case OpKind::kSinh:
      return near(sinhl(x), 1.5);
    case OpKind::kTan:
      return near(tanl(x), 1);
    case OpKind::kTanh:
      return near(tanhl(x), 1.9);
    case OpKind::kPow:
      return near(powl(x, y), 1.1);
    case OpKind::kSigmoid:
      return near(1 / (1 + expl(-x)), 2);
    case OpKind::kSilu:
      return near(x / (1 + expl(-x)), 2.5);
    default:  // any other: a value without ulps, at which the test fails
      return near(std::nanl(""), -1);
  }
}

// Ops on two real operands of a common type that give bool.
template <class C>
bool truth_reference(OpKind kind, C a, C b) {
  const bool is_float = std::is_floating_point_v<C>;
  const auto x = static_cast<long double>(a);
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
    case OpKind::kLogicalNot:
      return a == 0;
    case OpKind::kLogicalAnd:
      return a != 0 && b != 0;
    case OpKind::kLogicalOr:
      return a != 0 || b != 0;
    case OpKind::kSignbit:
      return is_float ? x == x && std::signbit(x) : a < 0;
    case OpKind::kIsfinite:
      return !is_float || std::isfinite(x);
    case OpKind::kIsinf:
      return is_float && std::isinf(x);
    case OpKind::kIsnan:
      return is_float && std::isnan(x);
    case OpKind::kIsneginf:
      return is_float && std::isinf(x) && x < 0;
    case OpKind::kIsposinf:
      return is_float && std::isinf(x) && x > 0;
    case OpKind::kIsreal:
      return true;
    default:  // any other: fails
      ADD_FAILURE() << "no reference for a test by " << row_of(kind).text;
      return false;
  }
}

// The result before it wraps to `width` bits.
inline Wide integer_reference(OpKind kind, Wide a, Wide b, Wide c, Wide d, int width, bool is_signed) {
  const auto value = integer_value(kind, a, b, c, d, width, is_signed);
  if (!value) ADD_FAILURE() << "no reference for integers of " << row_of(kind).text;
  return value.value_or(0);
}

}  // namespace fusebox::testing
