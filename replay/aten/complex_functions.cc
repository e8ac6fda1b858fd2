#include "replay/aten/complex_functions.h"

#include <algorithm>
#include <cmath>

#include "ir/table/families.h"
#include "replay/aten/rounding.h"

namespace fusebox::aten {
namespace {

using Complex = std::complex<double>;

constexpr Complex kOne = 1.0;

// b times 1 over a number that is at least `least` in modulus.
double over(double b, double least) { return least > 0 ? b / least : kInfinity; }
// b times 1 over a product of two such numbers. The product itself may overflow.
double over(double b, double first, double second) { return first > 0 ? over(b / first, second) : kInfinity; }

// The distance to the cut (−∞, 0], and to the cuts (−∞, −1] and [1, ∞).
double to_negative_cut(const Complex& z) { return z.real() < 0 ? std::abs(z.imag()) : std::abs(z); }
double to_outer_cuts(const Complex& z) {
  return std::abs(z.real()) > 1 ? std::abs(z.imag()) : std::min(std::abs(z - kOne), std::abs(z + kOne));
}

// The derivatives of asin and atanh are 1/√(1−z²) and 1/(1−z²).
double inverse_spread(const Complex& z, double b, double distance, bool is_root) {
  if (!(b < distance)) return kInfinity;
  const double first = std::abs(z - kOne) - b, second = std::abs(z + kOne) - b;
  if (!(first > 0) || !(second > 0)) return kInfinity;
  return is_root ? over(b, std::sqrt(first), std::sqrt(second)) : over(b, first, second);
}

// |cosh w| is at least this for every w within b of z.
double least_cosh(const Complex& z, double b) { return std::abs(std::cosh(z)) - b * std::cosh(std::abs(z.real()) + b); }

Complex turned(const Complex& z) { return {-z.imag(), z.real()}; }

// Neither overflows nor divides infinities: the exponential is at most 1 in modulus.
Complex sigmoid(const Complex& z) {
  if (z.real() < 0) {
    const Complex e = std::exp(z);
    return e / (kOne + e);
  }
  return kOne / (kOne + std::exp(-z));
}

}  // namespace

Complex complex_function(OpKind kind, const Complex& z) {
  switch (kind) {
    case OpKind::kAcos:
      return std::acos(z);
    case OpKind::kAcosh:
      return std::acosh(z);
    case OpKind::kAsin:
      return std::asin(z);
    case OpKind::kAsinh:
      return std::asinh(z);
    case OpKind::kAtan:
      return std::atan(z);
    case OpKind::kAtanh:
      return std::atanh(z);
    case OpKind::kCos:
      return std::cos(z);
    case OpKind::kCosh:
      return std::cosh(z);
    case OpKind::kExp:
      return std::exp(z);
    case OpKind::kLog:
      return std::log(z);
    case OpKind::kRsqrt:
      return kOne / std::sqrt(z);
    case OpKind::kSigmoid:
      return sigmoid(z);
    case OpKind::kSin:
      return std::sin(z);
    case OpKind::kSinh:
      return std::sinh(z);
    case OpKind::kSqrt:
      return std::sqrt(z);
    case OpKind::kTan:
      return std::tan(z);
    case OpKind::kTanh:
      return std::tanh(z);
    default:  // any other: not in FUSEBOX_COMPLEX_FUNCTION_OPS
      not_in_family(kind, "is no function of complex numbers");
  }
}

double complex_function_spread(OpKind kind, const Complex& z, double b) {
  if (b == 0) return 0;
  switch (kind) {
    case OpKind::kExp:
      return std::exp(z.real()) * std::expm1(b);
    // The derivative is at most cosh of the real part, for sin and cos of the imaginary one.
    case OpKind::kCosh:
    case OpKind::kSinh:
      return b * std::cosh(std::abs(z.real()) + b);
    case OpKind::kCos:
    case OpKind::kSin:
      return b * std::cosh(std::abs(z.imag()) + b);
    case OpKind::kTanh: {
      const double least = least_cosh(z, b);
      return over(b, least, least);
    }
    case OpKind::kTan: {
      const double least = least_cosh(turned(z), b);
      return over(b, least, least);
    }
    case OpKind::kSigmoid: {
      const double least = least_cosh(z / 2.0, b / 2);
      return over(b / 4, least, least);
    }
    case OpKind::kLog:
      return b < to_negative_cut(z) ? over(b, std::abs(z) - b) : kInfinity;
    case OpKind::kSqrt:
      return b < to_negative_cut(z) ? over(b, 2 * std::sqrt(std::abs(z) - b)) : kInfinity;
    case OpKind::kRsqrt:
      return b < to_negative_cut(z) ? over(b / 2, std::abs(z) - b, std::sqrt(std::abs(z) - b)) : kInfinity;
    case OpKind::kAsin:
    case OpKind::kAcos:
      return inverse_spread(z, b, to_outer_cuts(z), true);
    case OpKind::kAsinh:
      return inverse_spread(turned(z), b, to_outer_cuts(turned(z)), true);
    case OpKind::kAcosh:
      // The cut is (−∞, 1].
      return inverse_spread(z, b, to_negative_cut(z - kOne), true);
    case OpKind::kAtanh:
      return inverse_spread(z, b, to_outer_cuts(z), false);
    case OpKind::kAtan:
      return inverse_spread(turned(z), b, to_outer_cuts(turned(z)), false);
    default:  // any other: not in FUSEBOX_COMPLEX_FUNCTION_OPS
      not_in_family(kind, "is no function of complex numbers");
  }
}

double complex_function_error(OpKind kind, const Complex& z, const Complex& y) {
  constexpr double kUnit = 0x1p-53, kFew = 16 * kUnit;
  const double size = std::abs(y), tiny = 4 * ulp_of(Dtype::kDouble, 0.0);
  // cosh overflows behind 710, and the modulus of z in the last binades.
  const auto is_far = [](double part) { return !(std::abs(part) < 708); };
  const bool is_extreme = !(std::abs(z) < 0x1p1020) || !(std::abs(z) > 0x1p-1020);
  switch (kind) {
    case OpKind::kExp:
      return is_far(z.real()) ? kInfinity : kFew * size + tiny;
    case OpKind::kCosh:
    case OpKind::kSinh:
      return is_far(z.real()) ? kInfinity : kFew * size + tiny;
    case OpKind::kCos:
    case OpKind::kSin:
      return is_far(z.imag()) ? kInfinity : kFew * size + tiny;
    // Beside a pole the formulas divide by a small difference.
    case OpKind::kTanh:
      return is_far(z.real()) ? 4 * kUnit : kFew * size * (1 + 1 / std::norm(std::cosh(z))) + tiny;
    case OpKind::kTan:
      return is_far(z.imag()) ? 4 * kUnit : kFew * size * (1 + 1 / std::norm(std::cos(z))) + tiny;
    case OpKind::kSigmoid: {
      const Complex e = std::exp(z.real() < 0 ? z : -z);
      return kFew * size * (1 + (1 + std::abs(e)) / std::abs(kOne + e)) + tiny;
    }
    // Beside 1 the logarithm of the modulus has the modulus' error.
    case OpKind::kLog:
      return is_extreme ? kInfinity : kFew * (size + 1);
    case OpKind::kSqrt:
    case OpKind::kRsqrt:
      return is_extreme ? kInfinity : kFew * size + tiny;
    case FUSEBOX_INVERSE_FUNCTION_OPS:
      return kFew * size + tiny;
    default:  // any other: not in FUSEBOX_COMPLEX_FUNCTION_OPS
      not_in_family(kind, "is no function of complex numbers");
  }
}

}  // namespace fusebox::aten
