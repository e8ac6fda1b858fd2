// Scalar ops on real and complex numbers. Ops with one rounding are computed in the computation dtype's own type,
// functions in long double.
#pragma once

#include <algorithm>
#include <limits>

#include "ir/table/op.h"
#include "tests/support/expected.h"
#include "tests/support/inverse_error_functions.h"

namespace fusebox::testing {

// -- floats: T is the computation dtype's type; ops with one rounding are computed in it
template <class T>
Expected float_reference(OpKind kind, Dtype result, T a, T b, T c, T d) {
  using L = long double;
  const auto exactly = [](T v) { return Expected{.value = static_cast<L>(v)}; };
  // CUDA's functions are within 9 units, most within 2. A narrower result is rounded from there.
  const auto about = [&](L v, double ulps = 9) {
    return Expected{.value = v, .ulps = is_reduced_float(result) ? 1.0 : ulps};
  };
  const L x = a;
  switch (kind) {
    case OpKind::kSet:
    case OpKind::kReal:
      return exactly(a);
    case OpKind::kAbs:
      return exactly(std::abs(a));
    case OpKind::kAcos:
      return about(std::acos(x));
    case OpKind::kAcosh:
      return about(std::acosh(x));
    case OpKind::kAsin:
      return about(std::asin(x));
    case OpKind::kAsinh:
      return about(std::asinh(x));
    case OpKind::kAtan:
      return about(std::atan(x));
    case OpKind::kAtanh:
      return about(std::atanh(x));
    case OpKind::kCeil:
      return exactly(std::ceil(a));
    case OpKind::kCos:
      return about(std::cos(x));
    case OpKind::kCosh:
      return about(std::cosh(x));
    case OpKind::kExp:
      return about(std::exp(x));
    case OpKind::kExp2:
      return about(std::exp2(x));
    case OpKind::kExpm1:
      return about(std::expm1(x));
    case OpKind::kErf:
      return about(std::erf(x));
    case OpKind::kErfc:
      return about(std::erfc(x));
    case OpKind::kErfinv:
      return about(inverse_erf(x));
    case OpKind::kErfcinv:
      return about(inverse_erfc(x));
    case OpKind::kFloor:
      return exactly(std::floor(a));
    case OpKind::kFrac:
      return exactly(a - std::trunc(a));
    case OpKind::kLgamma: {
      Expected e = about(std::lgamma(x));
      // Relative precision is lost near its zeros: 1, 2, and those at negative numbers.
      if (x < 3) e.ulps = 1e4;
      return e;
    }
    case OpKind::kLog:
      return about(std::log(x));
    case OpKind::kLog10:
      return about(std::log10(x));
    case OpKind::kLog1p:
      return about(std::log1p(x));
    case OpKind::kLog2:
      return about(std::log2(x));
    case OpKind::kNeg:
      return exactly(-a);
    case OpKind::kRelu:
      return exactly(a < 0 ? T(0) : a);
    case OpKind::kReciprocal:
      return exactly(T(1) / a);
    case OpKind::kRound:
      return exactly(std::nearbyint(a));
    case OpKind::kRsqrt:
      return about(1 / std::sqrt(x));
    case OpKind::kSign:
      return exactly(T((a > 0) - (a < 0)));
    case OpKind::kSigmoid:
      return about(1 / (1 + std::exp(-x)));
    case OpKind::kSilu:
      return about(x / (1 + std::exp(-x)));
    case OpKind::kSignbit:
      return expect_truth(a == a && std::signbit(a));
    case OpKind::kSin:
      return about(std::sin(x));
    case OpKind::kSinh:
      return about(std::sinh(x));
    case OpKind::kSqrt:
      return exactly(std::sqrt(a));
    case OpKind::kTan:
      return about(std::tan(x));
    case OpKind::kTanh:
      return about(std::tanh(x));
    case OpKind::kTrunc:
      return exactly(std::trunc(a));
    case OpKind::kIsneginf:
      return expect_truth(std::isinf(a) && a < 0);
    case OpKind::kIsposinf:
      return expect_truth(std::isinf(a) && a > 0);
    case OpKind::kAdd:
      return exactly(a + b);
    case OpKind::kSub:
      return exactly(a - b);
    case OpKind::kMul:
      return exactly(a * b);
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return exactly(a / b);
    case OpKind::kAtan2:
      return about(std::atan2(x, static_cast<L>(b)));
    case OpKind::kFmod:
      return exactly(std::fmod(a, b));
    case OpKind::kRemainder: {
      const T r = std::fmod(a, b);
      return exactly(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    }
    case OpKind::kNextafter:
      return exactly(std::nextafter(a, b));
    case OpKind::kPow:
      return about(std::pow(x, static_cast<L>(b)));
    case OpKind::kMinimum:
      return exactly(std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b));
    case OpKind::kMaximum:
      return exactly(std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b));
    case OpKind::kLerp:
      return exactly(a + c * (b - a));
    case OpKind::kClamp:
      if (std::isnan(a) || std::isnan(b) || std::isnan(c))
        return exactly(a + b + c + std::numeric_limits<T>::quiet_NaN());
      return exactly(std::min(std::max(a, b), c));
    case OpKind::kThreshold:
      return exactly(a <= b ? c : a);
    case OpKind::kAddcmul:
      return exactly(a + d * b * c);
    default:  // any other: not known here; host_math_test has every scalar op
      return {.is_known = false};
  }
}

template <class R>
Expected complex_reference(OpKind kind, std::complex<R> a, std::complex<R> b, std::complex<R> c, std::complex<R> d) {
  using L = std::complex<long double>;
  // Smith's division, scaled products and Kahan's formulas each round a few times.
  const auto about = [](L v) { return Expected{.value = v, .ulps = 32}; };
  const L x = a, y = b, one = 1, z = c, w = d;
  switch (kind) {
    case OpKind::kSet:
      return about(x);
    case OpKind::kAbs:
      return about(std::abs(x));
    case OpKind::kNeg:
      return about(-x);
    case OpKind::kAdd:
      return about(x + y);
    case OpKind::kSub:
      return about(x - y);
    case OpKind::kMul:
      return about(x * y);
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return y == L(0) ? Expected{.is_known = false} : about(x / y);
    case OpKind::kReciprocal:
      return x == L(0) ? Expected{.is_known = false} : about(one / x);
    case OpKind::kReal:
      return about(x.real());
    case OpKind::kImag:
      return about(x.imag());
    case OpKind::kIsreal:
      return expect_truth(a.imag() == 0);
    case OpKind::kAddcmul: {
      Expected e = about(x + w * y * z);
      e.ulps *= 1 + static_cast<double>((std::abs(x) + std::abs(w * y * z)) /
                                        std::max(std::abs(e.value), 1e-30L));  // it may cancel
      return e;
    }
    case OpKind::kLerp: {
      Expected e = about(x + z * (y - x));
      e.ulps *= 1 + static_cast<double>((std::abs(x) + std::abs(z * (y - x))) / std::max(std::abs(e.value), 1e-30L));
      return e;
    }
    case OpKind::kAcos:
      return about(std::acos(x));
    case OpKind::kAcosh:
      return about(std::acosh(x));
    case OpKind::kAsin:
      return about(std::asin(x));
    case OpKind::kAsinh:
      return about(std::asinh(x));
    case OpKind::kAtan:
      return about(std::atan(x));
    case OpKind::kAtanh:
      return about(std::atanh(x));
    case OpKind::kCos:
      return about(std::cos(x));
    case OpKind::kCosh:
      return about(std::cosh(x));
    case OpKind::kExp:
      return about(std::exp(x));
    case OpKind::kExp2:
      return about(std::exp(x * std::log(2.0L)));
    case OpKind::kExpm1:
      return about(std::exp(x) - one);
    case OpKind::kLog:
      return x == L(0) ? Expected{.is_known = false} : about(std::log(x));
    case OpKind::kLog10:
      return x == L(0) ? Expected{.is_known = false} : about(std::log(x) / std::log(10.0L));
    case OpKind::kLog1p:
      return x == L(-1) ? Expected{.is_known = false} : about(std::log(one + x));
    case OpKind::kLog2:
      return x == L(0) ? Expected{.is_known = false} : about(std::log(x) / std::log(2.0L));
    case OpKind::kRsqrt:
      return x == L(0) ? Expected{.is_known = false} : about(one / std::sqrt(x));
    case OpKind::kSigmoid:
      return about(one / (one + std::exp(-x)));
    case OpKind::kSilu:
      return about(x / (one + std::exp(-x)));
    case OpKind::kSin:
      return about(std::sin(x));
    case OpKind::kSinh:
      return about(std::sinh(x));
    case OpKind::kSqrt:
      return about(std::sqrt(x));
    case OpKind::kTan:
      return about(std::tan(x));
    case OpKind::kTanh:
      return about(std::tanh(x));
    case OpKind::kPow: {
      if (x == L(0)) return {.is_known = false};
      Expected e = about(std::pow(x, y));
      e.ulps *= 1 + static_cast<double>(std::abs(y * std::log(x)));  // exp magnifies the logarithm's error
      return e;
    }
    default:  // any other: not known here; host_math_test has every scalar op
      return {.is_known = false};
  }
}

}  // namespace fusebox::testing
