#include "replay/aten/image.h"

#include <array>
#include <cmath>
#include <limits>

namespace fusebox::aten {
namespace {

struct Ulps {
  double in_float = 0, in_double = 0;
};
constexpr std::array<Ulps, kOpKinds> kUlps = [] {
  std::array<Ulps, kOpKinds> rows{};
#define FUSEBOX_ULPS(op, in_float, in_double, source) rows[static_cast<size_t>(OpKind::op)] = {in_float, in_double};
#include "ir/table/families.h"
#include "replay/aten/bounds_table.inc"
#undef FUSEBOX_ULPS
  return rows;
}();

constexpr std::array<Ulps, kOpKinds> kUlpsOfCuda = [] {
  std::array<Ulps, kOpKinds> rows{};
#define FUSEBOX_CUDA_ULPS(op, in_float, in_double) rows[static_cast<size_t>(OpKind::op)] = {in_float, in_double};
#include "replay/aten/cuda_table.inc"
#undef FUSEBOX_CUDA_ULPS
  return rows;
}();

double ulps_of(OpKind kind, Dtype compute, bool by_cuda = false) {
  Ulps u = kUlps[static_cast<size_t>(kind)];
  if (u.in_double == 0) return 0;
  if (by_cuda) {
    const Ulps& cuda = kUlpsOfCuda[static_cast<size_t>(kind)];
    u = {std::max(u.in_float, cuda.in_float), std::max(u.in_double, cuda.in_double)};
  }
  // In double the reference is computed with an error of its own.
  return compute == Dtype::kDouble ? u.in_double + 1 : u.in_float;
}

Image ordered(double a, double b, bool jumps = false) {
  if (a != a || b != b) return kAnything;
  return {std::min(a, b), std::max(a, b), jumps && a != b, false};
}

// The image of a monotone function: its values at the ends.
template <class F>
Image monotone(const Operand& x, F f) {
  return ordered(f(x.lo), f(x.hi));
}
template <class F>
Image steps(const Operand& x, F f) {
  return ordered(f(x.lo), f(x.hi), true);
}

double sign_of(double x) { return (x > 0) - (x < 0); }

Image with(Image image, double value) {
  return {std::min(image.lo, value), std::max(image.hi, value), image.jump, false};
}

// sin or cos: |f'| b + b²/2, within [−1, 1].
Image wave(double y, double slope, const Operand& x) {
  if (std::isinf(x.lo) || std::isinf(x.hi)) return kAnything;
  const double reach = std::abs(slope) * x.b + 0.5 * x.b * x.b;
  return {std::max(y - reach, -1.0), std::min(y + reach, 1.0)};
}

Image tangent(const Operand& x) {
  constexpr double kPi = 3.14159265358979323846;
  if (!(x.hi - x.lo < 3) || std::floor((x.lo - kPi / 2) / kPi) != std::floor((x.hi - kPi / 2) / kPi)) return kAnything;
  return monotone(x, [](double t) { return std::tan(t); });
}

Image log_gamma(double y, const Operand& x) {
  const auto f = [](double t) {
    int sign = 0;
    return ::lgamma_r(t, &sign);
  };
  constexpr double kMinimum = 1.4616321449683623;
  if (x.lo > 0) {
    const Image ends = with(monotone(x, f), y);
    return x.contains(kMinimum) ? with(ends, -0.12148629053584961) : ends;
  }
  // Between two poles lgamma is convex: its ends bound it from above, and it falls below them by at most their
  // difference.
  if (x.hi > 0 || std::floor(x.lo) != std::floor(x.hi) || std::floor(x.lo) == x.lo) return kAnything;
  const Image ends = with(monotone(x, f), y);
  return {ends.lo - (ends.hi - ends.lo), ends.hi};
}

// Derivative of erfinv and erfcinv: sqrt(π)/2 exp(y²).
Image inverse_erf(double y, const Operand& x) {
  if (std::isinf(y)) return kAnything;
  const double reach = 0.886226925452758 * std::exp(y * y) * x.b;
  if (!(reach * (1 + std::abs(y)) < 0.05)) return kAnything;
  return {y - 2 * reach, y + 2 * reach};
}

Image fraction(const Operand& x) {
  if (std::isinf(x.lo) || std::isinf(x.hi)) return kAnything;  // an infinity has no fraction
  const double t = std::trunc(x.lo);
  if (t == std::trunc(x.hi)) return {x.lo - t, x.hi - t};
  return {x.lo < 0 ? -1.0 : 0.0, x.hi > 0 ? 1.0 : 0.0, true};
}

bool is_outside(OpKind kind, const Operand& x) {
  switch (kind) {
    case OpKind::kAcos:
    case OpKind::kAsin:
    case OpKind::kAtanh:
    case OpKind::kErfinv:
      return x.lo > 1 || x.hi < -1;
    case OpKind::kAcosh:
      return x.hi < 1;
    case OpKind::kErfcinv:
      return x.lo > 2 || x.hi < 0;
    case OpKind::kLog1p:
      return x.hi < -1;
    case OpKind::kLog:
    case OpKind::kLog10:
    case OpKind::kLog2:
    case OpKind::kRsqrt:
    case OpKind::kSqrt:
      return x.hi < 0;
    case OpKind::kAsinh:
    case OpKind::kAtan:
    case OpKind::kAtan2:
    case OpKind::kCos:
    case OpKind::kCosh:
    case OpKind::kErf:
    case OpKind::kErfc:
    case OpKind::kExp:
    case OpKind::kExp2:
    case OpKind::kExpm1:
    case OpKind::kLgamma:
    case OpKind::kSigmoid:
    case OpKind::kSilu:
    case OpKind::kSin:
    case OpKind::kSinh:
    case OpKind::kTan:
    case OpKind::kTanh:
    case FUSEBOX_CHOICE_OPS:
    case OpKind::kPow:
    case OpKind::kTruediv:
    case OpKind::kReciprocal:
    case OpKind::kFrac:
    case OpKind::kNextafter:
    case OpKind::kLerp:
    case FUSEBOX_ARITHMETIC_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_INTEGER_OPS:
    case FUSEBOX_TRUTH_OPS:
    case FUSEBOX_PART_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;  // defined everywhere, or of no real number
  }
  return false;
}

Image unary(OpKind kind, double y, const Operand& x) {
  if (is_outside(kind, x)) return kOutside;
  switch (kind) {
    case OpKind::kAcos:
      return monotone(x, [](double t) { return std::acos(t); });
    case OpKind::kAcosh:
      return monotone(x, [](double t) { return std::acosh(t); });
    case OpKind::kAsin:
      return monotone(x, [](double t) { return std::asin(t); });
    case OpKind::kAsinh:
      return monotone(x, [](double t) { return std::asinh(t); });
    case OpKind::kAtan:
      return monotone(x, [](double t) { return std::atan(t); });
    case OpKind::kAtanh:
      return monotone(x, [](double t) { return std::atanh(t); });
    case OpKind::kExp:
      return monotone(x, [](double t) { return std::exp(t); });
    case OpKind::kExp2:
      return monotone(x, [](double t) { return std::exp2(t); });
    case OpKind::kExpm1:
      return monotone(x, [](double t) { return std::expm1(t); });
    case OpKind::kErf:
      return monotone(x, [](double t) { return std::erf(t); });
    case OpKind::kErfc:
      return monotone(x, [](double t) { return std::erfc(t); });
    case OpKind::kErfinv:
    case OpKind::kErfcinv:
      return inverse_erf(y, x);
    case OpKind::kLgamma:
      return log_gamma(y, x);
    case OpKind::kLog:
      return monotone(x, [](double t) { return std::log(t); });
    case OpKind::kLog10:
      return monotone(x, [](double t) { return std::log10(t); });
    case OpKind::kLog1p:
      return monotone(x, [](double t) { return std::log1p(t); });
    case OpKind::kLog2:
      return monotone(x, [](double t) { return std::log2(t); });
    case OpKind::kSigmoid:
      return monotone(x, [](double t) { return 1 / (1 + std::exp(-t)); });
    case OpKind::kSinh:
      return monotone(x, [](double t) { return std::sinh(t); });
    case OpKind::kTanh:
      return monotone(x, [](double t) { return std::tanh(t); });
    case OpKind::kSqrt:
      return monotone(x, [](double t) { return std::sqrt(t); });
    case OpKind::kRelu:
      return monotone(x, [](double t) { return t > 0 ? t : 0.0; });
    case OpKind::kNeg:
      return {-x.hi, -x.lo};
    case FUSEBOX_COPY_OPS:
    case OpKind::kCast:
    case OpKind::kReal:
      return {x.lo, x.hi};
    case OpKind::kAbs: {
      const Image ends = ordered(std::abs(x.lo), std::abs(x.hi));
      return x.contains(0) ? with(ends, 0) : ends;
    }
    case OpKind::kCosh: {
      const Image ends = monotone(x, [](double t) { return std::cosh(t); });
      return x.contains(0) ? with(ends, 1) : ends;
    }
    case OpKind::kSilu: {
      // −∞ / (1 + ∞) is NaN, which no interval holds.
      const Image ends = monotone(x, [](double t) { return t / (1 + std::exp(-t)); });
      return x.contains(-1.2784645427610738) ? with(ends, -0.27846454276107380) : ends;
    }
    case OpKind::kSin:
      return wave(y, std::cos(x.v), x);
    case OpKind::kCos:
      return wave(y, std::sin(x.v), x);
    case OpKind::kTan:
      return tangent(x);
    case OpKind::kReciprocal:
      return x.contains(0) ? kAnything : monotone(x, [](double t) { return 1 / t; });
    case OpKind::kRsqrt:
      return x.lo <= 0 ? kAnything : monotone(x, [](double t) { return 1 / std::sqrt(t); });
    case OpKind::kCeil:
      return steps(x, [](double t) { return std::ceil(t); });
    case OpKind::kFloor:
      return steps(x, [](double t) { return std::floor(t); });
    case OpKind::kRound:
      return steps(x, [](double t) { return std::nearbyint(t); });
    case OpKind::kTrunc:
      return steps(x, [](double t) { return std::trunc(t); });
    case OpKind::kSign:
      return steps(x, sign_of);
    case OpKind::kFrac:
      return fraction(x);
    case OpKind::kWhere:
    case OpKind::kPow:
    case OpKind::kAtan2:
    case FUSEBOX_TWO_OPERAND_OPS:
    case OpKind::kClamp:
    case OpKind::kThreshold:
    case OpKind::kAddcmul:
    case OpKind::kTruediv:
    case OpKind::kNextafter:
    case OpKind::kLerp:
    case OpKind::kImag:
    case OpKind::kComplex:
    case FUSEBOX_INTEGER_OPS:
    case FUSEBOX_TRUTH_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  not_in_family(kind, "has no image of one real number");
}

// The least and the largest value at the four corners.
template <class F>
Image corners(const Operand& a, const Operand& b, F f) {
  const double c[] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)};
  for (double v : c)
    if (v != v) return kAnything;
  return {std::min({c[0], c[1], c[2], c[3]}), std::max({c[0], c[1], c[2], c[3]})};
}

// a − b trunc(a/b), or with floor. It moves with its operands while the quotient's whole part stays the same.
Image modulus(const Operand& a, const Operand& b, bool floors) {
  if (b.contains(0) || std::isinf(a.lo) || std::isinf(a.hi)) return kAnything;
  // A quotient that underflows keeps its sign, which decides how it is floored.
  const Image quotient = corners(a, b, [](double x, double y) {
    const double q = x / y;
    return q == 0 && x != 0 ? std::copysign(std::numeric_limits<double>::denorm_min(), q) : q;
  });
  const auto whole = [&](double q) { return floors ? std::floor(q) : std::trunc(q); };
  const double q = whole(quotient.lo);
  const double most = std::max(std::abs(b.lo), std::abs(b.hi));
  const double low = floors ? (b.hi > 0 ? 0.0 : -most) : (a.lo < 0 ? -most : 0.0);
  const double high = floors ? (b.hi > 0 ? most : 0.0) : (a.hi > 0 ? most : 0.0);
  if (q != whole(quotient.hi) || !(std::abs(q) < 0x1p52)) return {low, high, true};
  if (q == 0 || (std::isinf(b.lo) && std::isinf(b.hi))) return {a.lo, a.hi};
  const Image moved = {a.lo - std::max(q * b.lo, q * b.hi), a.hi - std::min(q * b.lo, q * b.hi)};
  return {std::max(moved.lo, low), std::min(moved.hi, high)};
}

Image power(const Operand& a, const Operand& b, double y) {
  const auto f = [](double x, double t) { return std::pow(x, t); };
  if (a.lo > 0) return with(corners(a, b, f), y);
  if (!b.exact() || b.v != std::nearbyint(b.v)) return kAnything;
  if (a.contains(0)) {
    if (b.v < 0) return kAnything;
    return with(with(ordered(f(a.lo, b.v), f(a.hi, b.v)), b.v == 0 ? 1 : 0), y);
  }
  return with(ordered(f(a.lo, b.v), f(a.hi, b.v)), y);
}

bool may_be_infinite(const Operand& a) { return std::isinf(a.lo) || std::isinf(a.hi); }

// No interval holds the NaN that infinities of both signs add to. The same goes for an infinity times a zero.
Image sum(const Operand& a, const Operand& b) {
  const bool may_cancel = (a.hi == kInfinity && b.lo == -kInfinity) || (a.lo == -kInfinity && b.hi == kInfinity);
  return may_cancel ? kAnything : Image{a.lo + b.lo, a.hi + b.hi};
}

Image product(const Operand& a, const Operand& b) {
  if ((may_be_infinite(a) && b.contains(0)) || (may_be_infinite(b) && a.contains(0))) return kAnything;
  return corners(a, b, [](double s, double t) { return s * t; });
}

Operand with_interval(double lo, double hi) {
  Operand o;
  o.lo = lo;
  o.hi = hi;
  o.b = lo == hi ? 0 : 1;
  return o;
}

Operand negated(const Operand& a) { return with_interval(-a.hi, -a.lo); }

Image angle(const Operand& y, const Operand& x, double value) {
  if (y.contains(0) && x.contains(0)) return kAnything;
  // atan2 jumps along the negative axis.
  if (y.contains(0) && x.lo < 0 && !y.exact()) return {-3.1415926535897932, 3.1415926535897932, true};
  return with(corners(y, x, [](double s, double c) { return std::atan2(s, c); }), value);
}

Image binary(OpKind kind, double y, const Operand& a, const Operand& b) {
  switch (kind) {
    case OpKind::kAdd:
      return sum(a, b);
    case OpKind::kSub:
      return sum(a, negated(b));
    case OpKind::kMul:
      return product(a, b);
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return b.contains(0) ? kAnything : corners(a, b, [](double s, double t) { return s / t; });
    case OpKind::kMinimum:
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case OpKind::kMaximum:
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case OpKind::kFmod:
      return modulus(a, b, false);
    case OpKind::kRemainder:
      return modulus(a, b, true);
    case OpKind::kAtan2:
      return angle(a, b, y);
    case OpKind::kPow:
      return power(a, b, y);
    case OpKind::kNextafter:
      return {a.lo, a.hi};
    case FUSEBOX_CHOICE_OPS:
    case FUSEBOX_ONE_OR_THREE_OPERAND_OPS:
    case OpKind::kReciprocal:
    case OpKind::kSqrt:
    case OpKind::kRsqrt:
    case OpKind::kFrac:
    case OpKind::kLerp:
    case FUSEBOX_UNARY_ELEMENTARY_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_INTEGER_OPS:
    case FUSEBOX_TRUTH_OPS:
    case FUSEBOX_PART_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  not_in_family(kind, "has no image of two real numbers");
}

// a + b c
Image sum_of_product(const Operand& a, const Image& b, const Operand& c) {
  if (b.lo != b.lo || b.hi != b.hi) return kAnything;
  const Image step = product(with_interval(b.lo, b.hi), c);
  return step.lo != step.lo ? kAnything : sum(a, with_interval(step.lo, step.hi));
}

}  // namespace

Image image_of(OpKind kind, double y, std::span<const Operand> o) {
  const auto is_nan = [](const Operand& x) { return x.v != x.v; };
  if (std::ranges::any_of(o, is_nan)) {
    // A NaN beside numbers that are not exact makes NaN of all of them, but the power 0 of NaN is 1, and a threshold takes
    // its value only for operands up to it.
    bool is_certain = std::ranges::any_of(o, is_certain_nan) && y != y && kind != OpKind::kPow;
    if (kind == OpKind::kThreshold)
      is_certain =
          is_certain_nan(o[0]) || (is_certain_nan(o[2]) && !is_nan(o[0]) && !is_nan(o[1]) && o[0].hi <= o[1].lo);
    return is_certain ? kOutside : kAnything;
  }
  switch (kind) {
    case OpKind::kLerp:
      return sum_of_product(o[0], sum(o[1], negated(o[0])), o[2]);
    case OpKind::kAddcmul:
      return sum_of_product(o[0], product(o[3], o[1]), o[2]);
    case OpKind::kClamp:
      return {std::min(std::max(o[0].lo, o[1].lo), o[2].lo), std::min(std::max(o[0].hi, o[1].hi), o[2].hi)};
    case OpKind::kThreshold: {
      // The value up to the threshold, the operand above it.
      const bool may_replace = o[0].lo <= o[1].hi, may_keep = o[0].hi > o[1].lo;
      if (may_replace && may_keep) return {std::min(o[0].lo, o[2].lo), std::max(o[0].hi, o[2].hi), true};
      return may_replace ? Image{o[2].lo, o[2].hi} : Image{o[0].lo, o[0].hi};
    }
    default:  // any other: has one operand or two, and an image there or none at all
      return o.size() == 1 ? unary(kind, y, o[0]) : binary(kind, y, o[0], o[1]);
  }
}

bool has_own_error(OpKind kind) {
  return kind == OpKind::kLerp || kind == OpKind::kAddcmul || ulps_of(kind, Dtype::kFloat) > 0;
}

namespace {

// Whether a value that became infinite is at most a few last places above the largest double, which is then as good.
bool barely_overflows(OpKind kind, std::span<const Operand> o) {
  const auto value = [&]() -> long double {
    const long double x = o[0].v;
    switch (kind) {
      case OpKind::kExp:
      case OpKind::kExpm1:
        return std::exp(x);
      case OpKind::kExp2:
        return std::exp2(x);
      case OpKind::kCosh:
      case OpKind::kSinh:
        return std::cosh(x);
      case OpKind::kLgamma:
        return std::lgamma(x);
      case OpKind::kPow:
        return std::pow(x, static_cast<long double>(o[1].v));
      default:  // any other: is judged by the stricter rule
        return INFINITY;
    }
  };
  return std::abs(value()) < 0x1p1024L * (1 + 0x1p-40L);
}

bool exactly(std::span<const Operand> o) {
  return std::all_of(o.begin(), o.end(), [](const Operand& x) { return x.exact(); });
}

// Whether exact operands give NaN in every implementation, and not only because a step of one overflowed first.
bool is_nan_in_any_order(OpKind kind, std::span<const Operand> o) {
  if (std::any_of(o.begin(), o.end(), [](const Operand& x) { return x.v != x.v; })) return true;
  if (kind == OpKind::kAddcmul) {
    const auto factors = o.subspan(1);
    const auto any = [&](auto is) { return std::any_of(factors.begin(), factors.end(), is); };
    if (!any([](const Operand& x) { return std::isinf(x.v); })) return false;
    if (any([](const Operand& x) { return x.v == 0; })) return true;
    const bool is_negative = (std::signbit(o[1].v) != std::signbit(o[2].v)) != std::signbit(o[3].v);
    return std::isinf(o[0].v) && std::signbit(o[0].v) != is_negative;
  }
  // ATen computes from the nearer end.
  return o[2].v < 0.5 ? std::isinf(o[0].v) || std::isinf(o[1].v) || std::isinf(o[2].v) : std::isinf(o[1].v);
}

// Whether a step of this size may overflow, rounding included.
bool may_overflow(Dtype compute, double size) { return !(size * (1 + 0x1p-20) < overflow_of(compute)); }

// The last place of the largest value in the image.
double last_place(Dtype compute, double y, const Image& image) {
  const double most = std::max({std::abs(y), std::abs(image.lo), std::abs(image.hi)});
  return ulp_of(compute, most < overflow_of(compute) ? most : overflow_of(compute) / 2);
}

double reach(const Operand& x) { return std::max({std::abs(x.v), std::abs(x.lo), std::abs(x.hi)}); }

// a + w (b − a), or in ATen also b − (b − a)(1 − w). Each step rounds, in either order.
double lerp_error(Dtype compute, double y, const Image& image, std::span<const Operand> o) {
  const double difference =
      std::max({std::abs(o[1].v - o[0].v), std::abs(o[1].hi - o[0].lo), std::abs(o[1].lo - o[0].hi)});
  const double weight = std::max({reach(o[2]), std::abs(1 - o[2].v), std::abs(1 - o[2].lo), std::abs(1 - o[2].hi)});
  if (exactly(o) && o[2].v == 0 && !may_overflow(compute, difference)) return 0;
  if (may_overflow(compute, difference) || may_overflow(compute, difference * weight)) return kInfinity;
  return ulp_of(compute, difference) * weight + ulp_of(compute, weight) * difference +
         2 * ulp_of(compute, difference * weight) + last_place(compute, y, image);
}

// x + (value y) z, or x + value (y z). The first product rounds, and may overflow although the second brings it back.
double addcmul_error(Dtype compute, double y, const Image& image, std::span<const Operand> o) {
  const double left = reach(o[3]) * reach(o[1]), right = reach(o[1]) * reach(o[2]), all = left * reach(o[2]);
  if (may_overflow(compute, left) || may_overflow(compute, right) || may_overflow(compute, all)) return kInfinity;
  return ulp_of(compute, left) * reach(o[2]) + ulp_of(compute, right) * reach(o[3]) + ulp_of(compute, all) +
         last_place(compute, y, image);
}

}  // namespace

double own_error(OpKind kind, Dtype compute, double y, const Image& image, std::span<const Operand> o, bool by_cuda) {
  if (kind == OpKind::kLerp || kind == OpKind::kAddcmul) {
    if (y != y && exactly(o) && is_nan_in_any_order(kind, o)) return 0;
    return kind == OpKind::kLerp ? lerp_error(compute, y, image, o) : addcmul_error(compute, y, image, o);
  }
  const double ulps = ulps_of(kind, compute, by_cuda);
  if (ulps == 0) return 0;
  // ATen halves the operand first, which underflows.
  if (kind == OpKind::kErfcinv && o[0].v != 0 && std::abs(o[0].v) < 0x1p-1000) return kInfinity;
  const double most = std::max({std::abs(y), std::abs(image.lo), std::abs(image.hi)});
  if (!(most < kInfinity)) {
    if (std::isinf(y) && barely_overflows(kind, o)) return kInfinity;
    // The value is infinite or NaN, or near infinity: the ends of the image say the rest.
    return std::isfinite(y) ? ulps * ulp_of(compute, y) : 0;
  }
  double error = ulps * ulp_of(compute, most);
  if (kind == OpKind::kLgamma && o[0].lo < 0) error = 32 * ulp_of(compute, 1 + most);
  if (kind == OpKind::kSilu || kind == OpKind::kSigmoid) {
    // exp(−x) overflows before the quotient is too small for the dtype. The result may be 0, or the value by exp(x).
    const double limit = compute == Dtype::kDouble ? -709.0 : -88.0;
    // Two factors, because exp(x) itself has lost digits where it is subnormal.
    const double x = std::min(o[0].hi, limit), root = std::exp(x / 2);
    const double left = root * (kind == OpKind::kSilu ? -x : 1) * root;
    if (o[0].lo < limit) error = std::max({error, most, left + ulps * ulp_of(compute, left)});
  }
  return error;
}

bool depends_on_zero_sign(OpKind kind, std::span<const Operand> o) {
  const auto unsure = [](const Operand& x) { return x.v == 0 && !x.zero_sign; };
  switch (kind) {
    case OpKind::kReciprocal:
    case OpKind::kRsqrt:
      return unsure(o[0]);
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return unsure(o[1]);
    case OpKind::kPow:
      return unsure(o[0]) && o[1].v < 0;
    case OpKind::kAtan2:
      return (unsure(o[0]) && !(o[1].v > 0)) || (unsure(o[1]) && o[0].v == 0);
    case OpKind::kNextafter:
      return false;
    default:  // any other: a zero's sign changes a zero's sign only; were it more, correct results would fail
      return false;
  }
}

}  // namespace fusebox::aten
