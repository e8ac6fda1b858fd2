// Plain references for scalar ops: integers in 128 bits; floats in long double or, if a formula rounds at each step, in
// the computation dtype. If several results are right, a reference gives a bound in units in the last place.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

#include "ir/table/op.h"

namespace fusebox::testing {

// A value, correct to `ulps` units in the last place of the result's dtype plus `absolute`.
struct FloatReference {
  long double value = 0;
  double ulps = 0;
  double absolute = 0;
};

// Inverts f by bisection; f is monotonic over [low, high].
template <class Function>
long double inverse(Function f, long double target, long double low, long double high) {
  const bool grows = f(high) > f(low);
  for (int i = 0; i < 200; ++i) {
    const long double middle = (low + high) / 2;
    if ((f(middle) < target) == grows)
      low = middle;
    else
      high = middle;
  }
  return (low + high) / 2;
}

// erfc(y) = q for q in (0, 1).
inline long double upper_tail_reference(long double q) {
  return inverse([](long double y) { return erfcl(y); }, q, 0, 30);
}
inline long double erfinv_reference(long double x) {
  const long double magnitude = fabsl(x);
  if (!(magnitude <= 1)) return std::nanl("");
  if (magnitude == 1) return copysignl(std::numeric_limits<long double>::infinity(), x);
  if (magnitude > 0.5L) return copysignl(upper_tail_reference(1 - magnitude), x);
  if (magnitude < 1e-300L) return x * 0.88622692545275801364908374167057L;
  // Solving for the logarithm gives relative precision near 0.
  const long double y = inverse([](long double l) { return erfl(expl(l)); }, magnitude, -720, 1);
  return copysignl(expl(y), x);
}
inline long double erfcinv_reference(long double q) {
  if (!(q >= 0 && q <= 2)) return std::nanl("");
  if (q == 0 || q == 2) return copysignl(std::numeric_limits<long double>::infinity(), 1 - q);
  if (q < 0.5L) return upper_tail_reference(q);
  if (q > 1.5L) return -upper_tail_reference(2 - q);
  return erfinv_reference(1 - q);
}

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
      return exact(std::isnan(a) ? a : std::fmax(a, C{0}));
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
      return near(erfinv_reference(x), 4);
    case OpKind::kErfcinv:
      return near(erfcinv_reference(x), 4);
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

__extension__ using Wide = __int128;

// The result before it wraps to `bits` bits.
inline Wide integer_reference(OpKind kind, Wide a, Wide b, Wide c, Wide d, int bits, bool is_signed) {
  const auto absolute = [](Wide v) { return v < 0 ? -v : v; };
  const bool is_wide_shift = b < 0 || b >= bits;
  const Wide unsigned_a = a < 0 ? a + (Wide{1} << bits) : a;
  const Wide truncated = b == 0 ? 0 : a / b, rest = b == 0 ? 0 : a % b;
  const Wide euclidean = rest < 0 ? rest + absolute(b) : rest;
  switch (kind) {
    case OpKind::kSet:
    case OpKind::kReal:
    case OpKind::kCeil:
    case OpKind::kFloor:
    case OpKind::kRound:
    case OpKind::kTrunc:
      return a;
    case OpKind::kAbs:
      return absolute(a);
    case OpKind::kNeg:
      return -a;
    case OpKind::kBitwiseNot:
      return is_signed ? -a - 1 : (Wide{1} << bits) - 1 - a;
    case OpKind::kRelu:
      return a > 0 ? a : 0;
    case OpKind::kSign:
      return a > 0 ? 1 : a < 0 ? -1 : 0;
    case OpKind::kAdd:
      return a + b;
    case OpKind::kSub:
      return a - b;
    case OpKind::kMul:
      return static_cast<Wide>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case OpKind::kDiv:
      return truncated;
    case OpKind::kMod:
    case OpKind::kFmod:
      return rest;
    case OpKind::kRemainder:
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    case OpKind::kFloorDiv:
      return b == 0 ? 0 : (a - euclidean) / b;
    case OpKind::kFloorMod:
      return euclidean;
    case OpKind::kCeilDiv:
      // −floor_div(−a, b): rounds up for a positive divisor.
      return rest == 0 ? truncated : b > 0 ? truncated + (a > 0) : truncated - (a > 0);
    case OpKind::kMinimum:
      return a < b ? a : b;
    case OpKind::kMaximum:
      return a < b ? b : a;
    case OpKind::kBitwiseAnd:
      return a & b;
    case OpKind::kBitwiseOr:
      return a | b;
    case OpKind::kBitwiseXor:
      return a ^ b;
    case OpKind::kBitwiseLeftShift:
      return is_wide_shift ? 0 : a * (Wide{1} << static_cast<int>(b));
    case OpKind::kBitwiseRightShift:
      return is_wide_shift ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b);
    case OpKind::kLogicalRightShift:
      return is_wide_shift ? 0 : unsigned_a >> static_cast<int>(b);
    case OpKind::kGcd: {
      Wide x = absolute(a), y = absolute(b);
      while (y != 0) {
        const Wide r = x % y;
        x = y;
        y = r;
      }
      return x;
    }
    case OpKind::kPow: {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 != 0 ? -1 : 1) : 0;
      // By squaring, modulo 2^64, which is a multiple of every width's modulus.
      uint64_t result = 1, base = static_cast<uint64_t>(a);
      for (auto e = static_cast<uint64_t>(b); e != 0; e >>= 1) {
        if ((e & 1) != 0) result *= base;
        base *= base;
      }
      return static_cast<Wide>(result);
    }
    case OpKind::kClamp: {
      const Wide low = a < b ? b : a;
      return low < c ? low : c;
    }
    case OpKind::kThreshold:
      return a <= b ? c : a;
    case OpKind::kAddcmul:
      return static_cast<Wide>(static_cast<uint64_t>(a) +
                               static_cast<uint64_t>(d) * static_cast<uint64_t>(b) * static_cast<uint64_t>(c));
    default:  // any other: fails
      ADD_FAILURE() << "no reference for integers of " << row_of(kind).text;
      return 0;
  }
}

}  // namespace fusebox::testing
