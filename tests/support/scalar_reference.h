// What a scalar op must give, by the rules of the op table: for integers and truth values the bits, for floats a number
// and how many units in the last place a right implementation may be away.
//
//   Expected e = scalar_reference({OpKind::kAdd, Dtype::kInt8, 2}, Dtype::kInt8, {from_int64(Dtype::kInt8, 127),
//   from_int64(Dtype::kInt8, 1)}, false); matches(e, Dtype::kInt8, from_int64(Dtype::kInt8, -128))
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <numeric>
#include <tuple>

#include "ir/numeric.h"
#include "tests/support/kernel_cases.h"

namespace fusebox::testing {

struct Expected {
  std::complex<long double> value = 0;
  ConstantBits bits = {};  // of integers and truth values
  bool is_bits = false;
  double ulps = 0;       // of the result's dtype; for complex numbers relative to the modulus
  bool is_known = true;  // false: the reference has no answer here
};

using Operands = std::array<ConstantBits, 4>;

inline Expected expect_bits(Dtype dtype, ConstantBits bits) {
  return {.bits = canonical_bits(dtype, bits), .is_bits = true};
}
inline Expected expect_truth(bool value) { return {.bits = {value, 0}, .is_bits = true}; }

inline double ulp_of(Dtype dtype, double value) {
  int digits = 53, lowest = -1074;
  switch (real_of(dtype)) {
    case Dtype::kHalf:
      digits = 11, lowest = -24;
      break;
    case Dtype::kBfloat16:
      digits = 8, lowest = -133;
      break;
    case Dtype::kFloat8E4m3:
      digits = 4, lowest = -9;
      break;
    case Dtype::kFloat8E5m2:
      digits = 3, lowest = -16;
      break;
    case Dtype::kFloat:
      digits = 24, lowest = -149;
      break;
    default:
      break;
  }
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, value == 0 ? lowest : std::max(exponent - digits, lowest));
}

inline bool matches(const Expected& e, Dtype dtype, ConstantBits got) {
  if (!e.is_known) return true;
  if (e.is_bits) return canonical_bits(dtype, got) == e.bits;
  const auto near = [&](long double want, double is, double size) {
    if (std::isnan(want)) return std::isnan(is);
    const ConstantBits rounded = from_double(real_of(dtype), static_cast<double>(want));
    const double best = to_double(real_of(dtype), rounded);
    if (is == best || (std::isnan(best) && std::isnan(is))) return true;  // what overflows a float8 e4m3 is NaN
    if (std::isnan(is) || std::isinf(is)) return false;
    return std::abs(static_cast<long double>(is) - want) <= e.ulps * ulp_of(dtype, size);
  };
  if (!is_complex(dtype)) return near(e.value.real(), to_double(dtype, got), static_cast<double>(e.value.real()));
  const std::complex<double> is = to_complex(dtype, got);
  const double size = static_cast<double>(std::abs(e.value));
  return near(e.value.real(), is.real(), size) && near(e.value.imag(), is.imag(), size);
}

// -- integers, in 128 bits
using Wide = __int128;

inline Wide wide_of(Dtype d, ConstantBits b) {
  return is_signed(d) ? static_cast<Wide>(static_cast<int64_t>(b.low)) : static_cast<Wide>(b.low);
}

inline Expected integer_reference(OpKind kind, Dtype d, const Operands& operands) {
  const Wide a = wide_of(d, operands[0]), b = wide_of(d, operands[1]), c = wide_of(d, operands[2]),
             e = wide_of(d, operands[3]);
  const int width = bits(d);
  const bool out = b < 0 || b >= width;
  const auto wrapped = [&](Wide v) { return expect_bits(d, {static_cast<uint64_t>(v), 0}); };
  const auto multiplied = [](Wide x, Wide y) {
    return static_cast<Wide>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
  };
  const Wide quotient = b == 0 ? 0 : a / b, rest = b == 0 ? 0 : a % b;
  const Wide euclid_rest = rest < 0 ? rest + (b < 0 ? -b : b) : rest;
  switch (kind) {
    case OpKind::kSet:
    case OpKind::kCeil:
    case OpKind::kFloor:
    case OpKind::kRound:
    case OpKind::kTrunc:
    case OpKind::kReal:
      return wrapped(a);
    case OpKind::kAbs:
      return wrapped(a < 0 ? -a : a);
    case OpKind::kNeg:
      return wrapped(-a);
    case OpKind::kBitwiseNot:
      return wrapped(~a);
    case OpKind::kRelu:
      return wrapped(a < 0 ? 0 : a);
    case OpKind::kSign:
      return wrapped((a > 0) - (a < 0));
    case OpKind::kAdd:
      return wrapped(a + b);
    case OpKind::kSub:
      return wrapped(a - b);
    case OpKind::kMul:
      return wrapped(multiplied(a, b));
    case OpKind::kDiv:
      return wrapped(quotient);
    case OpKind::kFmod:
    case OpKind::kMod:
      return wrapped(rest);
    case OpKind::kRemainder:
      return wrapped(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    case OpKind::kFloorMod:
      return wrapped(euclid_rest);
    case OpKind::kFloorDiv:
      return wrapped(b == 0 ? 0 : (a - euclid_rest) / b);
    case OpKind::kCeilDiv:
      // Only the extents of programs are divided so.
      if (b <= 0 || a == (d == Dtype::kInt64 || d == Dtype::kIndex ? Wide{INT64_MIN} : -(Wide{1} << (width - 1))) ||
          !is_signed(d))
        return {.is_known = false};
      return wrapped((a - euclid_rest) / b + (euclid_rest != 0));
    case OpKind::kMinimum:
      return wrapped(std::min(a, b));
    case OpKind::kMaximum:
      return wrapped(std::max(a, b));
    case OpKind::kClamp:
      return wrapped(std::min(std::max(a, b), c));
    case OpKind::kThreshold:
      return wrapped(a <= b ? c : a);
    case OpKind::kAddcmul:
      return wrapped(a + multiplied(multiplied(e, b), c));
    case OpKind::kBitwiseAnd:
      return wrapped(a & b);
    case OpKind::kBitwiseOr:
      return wrapped(a | b);
    case OpKind::kBitwiseXor:
      return wrapped(a ^ b);
    case OpKind::kBitwiseLeftShift:
      return wrapped(out ? 0 : multiplied(a, Wide{1} << static_cast<int>(b)));
    case OpKind::kBitwiseRightShift:
      return wrapped(out ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b));
    case OpKind::kLogicalRightShift:
      return wrapped(out ? 0 : (a & ((Wide{1} << width) - 1)) >> static_cast<int>(b));
    case OpKind::kGcd: {
      Wide x = a < 0 ? -a : a, y = b < 0 ? -b : b;
      while (y != 0) std::tie(x, y) = std::pair(y, x % y);
      return wrapped(x);
    }
    case OpKind::kPow: {
      if (b < 0) return wrapped(a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
      Wide result = 1, base = a;
      for (Wide rest_of = b; rest_of != 0; rest_of /= 2) {
        if (rest_of % 2 != 0) result = static_cast<int64_t>(multiplied(result, base));
        base = static_cast<int64_t>(multiplied(base, base));
      }
      return wrapped(result);
    }
    case OpKind::kSignbit:
      return expect_truth(a < 0);
    default:
      return {.is_known = false};
  }
}

// The y for which f(y) = target, for f rising from 0 on; as close as long doubles get.
template <class F>
long double solve(F f, long double target, long double high) {
  long double low = 0;
  for (;;) {
    const long double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return middle;
    (f(middle) < target ? low : high) = middle;
  }
}
inline long double inverse_erfc(long double q) {
  if (!(q >= 0 && q <= 2)) return NAN;
  if (q == 0 || q == 2) return q == 0 ? HUGE_VALL : -HUGE_VALL;
  if (q > 1) return -inverse_erfc(2 - q);
  return solve([](long double y) { return -std::erfc(y); }, -q, 120.0L);
}
inline long double inverse_erf(long double x) {
  if (std::abs(x) < 1e-10L) return x * 0.886226925452758013649083741670572591L;  // sqrt(π) / 2
  if (std::abs(x) > 0.5L) return x < 0 ? -inverse_erfc(1 + x) : inverse_erfc(1 - x);
  const long double y = solve([](long double v) { return std::erf(v); }, std::abs(x), 1.0L);
  return x < 0 ? -y : y;
}

// -- floats: T is the computation dtype's type; what has one rounding is computed in it
template <class T>
Expected float_reference(OpKind kind, Dtype result, T a, T b, T c, T d) {
  using L = long double;
  const auto exactly = [](T v) { return Expected{.value = static_cast<L>(v)}; };
  // CUDA's functions are within 9 units, most within 2; a narrower result is rounded from there.
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
      // Relative precision is lost around its zeros: 1 and 2, and those at negative numbers.
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
      return about(x / (1 + std::exp(-x)), x < -80 ? 150 : 9);  // x times a subnormal
    case OpKind::kSignbit:
      return expect_truth(std::signbit(a));
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
    default:
      return {.is_known = false};
  }
}

template <class R>
Expected complex_reference(OpKind kind, std::complex<R> a, std::complex<R> b, std::complex<R> c, std::complex<R> d) {
  using L = std::complex<long double>;
  // Smith's division, scaled products and Kahan's formulas: a few roundings each.
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
    default:
      return {.is_known = false};
  }
}

inline Expected scalar_reference(const ScalarOutput& out, Dtype dtype, const Operands& operands, bool truth) {
  const OpKind kind = out.kind;
  if (kind == OpKind::kCast) {
    if (is_integer(out.dtype) || is_boolean(out.dtype))
      return expect_bits(out.dtype, convert(dtype, operands[0], out.dtype));
    const ConstantBits b = convert(dtype, operands[0], out.dtype);
    return {.value = {to_complex(out.dtype, b).real(), to_complex(out.dtype, b).imag()}};
  }
  const auto as_double = [&](size_t i) { return to_double(dtype, operands[i]); };
  const auto whole = [&](size_t i) { return wide_of(dtype, operands[i]); };
  const bool is_whole = is_integer(dtype) || is_boolean(dtype);
  const auto compare = [&](auto&& f) {
    return expect_truth(is_whole ? f(whole(0), whole(1)) : f(as_double(0), as_double(1)));
  };
  const auto complex = [&](size_t i) { return to_complex(dtype, operands[i]); };
  switch (kind) {
    case OpKind::kWhere: {
      const ConstantBits b = operands[truth ? 0 : 1];
      return is_whole ? expect_bits(dtype, b)
                      : Expected{.value = {to_complex(dtype, b).real(), to_complex(dtype, b).imag()}};
    }
    case OpKind::kLogicalNot:
      return expect_truth(!to_bool(dtype, operands[0]));
    case OpKind::kLogicalAnd:
      return expect_truth(to_bool(dtype, operands[0]) && to_bool(dtype, operands[1]));
    case OpKind::kLogicalOr:
      return expect_truth(to_bool(dtype, operands[0]) || to_bool(dtype, operands[1]));
    case OpKind::kEq:
      return is_complex(dtype) ? expect_truth(complex(0) == complex(1))
                               : compare([](auto a, auto b) { return a == b; });
    case OpKind::kNe:
      return is_complex(dtype) ? expect_truth(complex(0) != complex(1))
                               : compare([](auto a, auto b) { return a != b; });
    case OpKind::kLt:
      return compare([](auto a, auto b) { return a < b; });
    case OpKind::kLe:
      return compare([](auto a, auto b) { return a <= b; });
    case OpKind::kGt:
      return compare([](auto a, auto b) { return a > b; });
    case OpKind::kGe:
      return compare([](auto a, auto b) { return a >= b; });
    case OpKind::kIsfinite:
      return expect_truth(std::isfinite(complex(0).real()) && std::isfinite(complex(0).imag()));
    case OpKind::kIsinf:
      return expect_truth(std::isinf(complex(0).real()) || std::isinf(complex(0).imag()));
    case OpKind::kIsnan:
      return expect_truth(std::isnan(complex(0).real()) || std::isnan(complex(0).imag()));
    case OpKind::kIsreal:
      if (!is_complex(dtype)) return expect_truth(true);
      break;
    case OpKind::kIsneginf:
    case OpKind::kIsposinf:
      if (is_whole) return expect_truth(false);
      break;
    case OpKind::kComplex:
      return {.value = {as_double(0), as_double(1)}};
    default:
      break;
  }
  if (is_complex(dtype)) {
    if (dtype == Dtype::kComplexDouble)
      return complex_reference<double>(kind, complex(0), complex(1), complex(2), complex(3));
    const auto narrow = [&](size_t i) { return std::complex<float>(complex(i)); };
    return complex_reference<float>(kind, narrow(0), narrow(1), narrow(2), narrow(3));
  }
  if (is_boolean(dtype)) {
    const bool a = operands[0].low != 0, b = operands[1].low != 0;
    switch (kind) {
      case OpKind::kAdd:
      case OpKind::kMaximum:
      case OpKind::kBitwiseOr:
        return expect_truth(a || b);
      case OpKind::kMul:
      case OpKind::kMinimum:
      case OpKind::kBitwiseAnd:
        return expect_truth(a && b);
      case OpKind::kBitwiseXor:
        return expect_truth(a != b);
      case OpKind::kBitwiseNot:
        return expect_truth(!a);
      case OpKind::kSet:
      case OpKind::kAbs:
      case OpKind::kReal:
      case OpKind::kSign:
        return expect_truth(a);
      case OpKind::kSignbit:
        return expect_truth(false);
      default:
        break;
    }
  }
  if (is_whole && !is_floating(out.dtype)) return integer_reference(kind, dtype, operands);
  // The neighbours of a narrow float are looked up.
  if (kind == OpKind::kNextafter && is_reduced_float(dtype)) {
    const double a = as_double(0), b = as_double(1);
    if (std::isnan(a) || std::isnan(b) || a == b) return {.value = a == b ? b : NAN};
    double best = b > a ? INFINITY : -INFINITY;
    for (uint64_t i = 0; i < (uint64_t{1} << bits(dtype)); ++i) {
      const double v = to_double(dtype, {i, 0});
      if (b > a ? v > a && v < best : v < a && v > best) best = v;
    }
    return {.value = std::isinf(best) && !has_infinity(dtype) ? NAN : best};
  }
  if (out.dtype == Dtype::kDouble || dtype == Dtype::kDouble)
    return float_reference<double>(kind, out.dtype, as_double(0), as_double(1), as_double(2), as_double(3));
  const auto single = [&](size_t i) {
    return is_whole ? static_cast<float>(whole(i)) : static_cast<float>(as_double(i));
  };
  return float_reference<float>(kind, out.dtype, single(0), single(1), single(2), single(3));
}

}  // namespace fusebox::testing
