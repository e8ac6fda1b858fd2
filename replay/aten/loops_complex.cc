// Loops over complex numbers. A bound is on the modulus of the difference. If a part is infinite or NaN, formulas for
// products, quotients and functions differ from each other and from the C standard's, so the result may be anything.
#include <cmath>
#include <complex>

#include "ir/table/families.h"
#include "replay/aten/complex_functions.h"
#include "replay/aten/loops.h"
#include "replay/aten/rounding.h"

namespace fusebox::aten {
namespace {

using Complex = std::complex<double>;

bool is_finite(const Complex& z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }
double largest(const Complex& z) { return std::max(std::abs(z.real()), std::abs(z.imag())); }
Complex rounded(Dtype dtype, const Complex& z) { return {round_to(dtype, z.real()), round_to(dtype, z.imag())}; }

struct Element {
  Complex z[4];
  double b[4];
};

// How far the exact result moves with its operands, in modulus.
double spread_of(OpKind kind, const Element& e) {
  const auto size = [&](int k) { return std::abs(e.z[k]); };
  const auto product = [&](double a, double da, double b, double db) { return a * db + b * da + da * db; };
  switch (kind) {
    case OpKind::kAdd:
    case OpKind::kSub:
      return e.b[0] + e.b[1];
    case OpKind::kMul:
      return product(size(0), e.b[0], size(1), e.b[1]);
    case OpKind::kDiv:
    case OpKind::kTruediv: {
      const double least = size(1) - e.b[1];
      if (!(least > 0)) return kInfinity;
      return (e.b[0] + size(0) / size(1) * e.b[1]) / least;
    }
    case OpKind::kReciprocal: {
      const double least = size(0) - e.b[0];
      // One factor after the other: their product may overflow.
      return least > 0 ? e.b[0] / size(0) / least : kInfinity;
    }
    case OpKind::kAddcmul: {
      const double scaled = size(3) * size(1), moved = product(size(3), e.b[3], size(1), e.b[1]);
      return e.b[0] + product(scaled, moved, size(2), e.b[2]);
    }
    case OpKind::kSet:
    case OpKind::kSegmentSet:
    case OpKind::kNeg:
    case OpKind::kCast:
      return e.b[0];
    case FUSEBOX_COMPLEX_FUNCTION_OPS:
      return complex_function_spread(kind, e.z[0], e.b[0]);
    default:  // any other: not of complex numbers here
      no_loop(kind, "a spread of complex numbers");
  }
}

// The formulas' own error in modulus; 0 if each part is rounded once.
double error_of(OpKind kind, Dtype compute, const Element& e, const Complex& y) {
  const double overflow = overflow_of(compute);
  const auto last = [&](double size) { return ulp_of(compute, size); };
  // Scaling by a divisor's parts loses digits if these or their reciprocals are subnormal.
  const auto extreme = [&](double size) { return !(size < overflow * 0x1p-4) || !(size > 0x1p4 / overflow); };
  // The largest part that an operand may have.
  const auto reach = [&](int k) { return largest(e.z[k]) + e.b[k]; };
  switch (kind) {
    case OpKind::kMul: {
      const double size = 2 * reach(0) * reach(1);
      return size < overflow ? 3 * last(size) : kInfinity;
    }
    case OpKind::kReciprocal:
      return extreme(reach(0)) || extreme(largest(e.z[0])) ? kInfinity : 8 * last(std::abs(y));
    case OpKind::kDiv:
    case OpKind::kTruediv: {
      const double a = reach(0), b = largest(e.z[1]) - e.b[1];
      if (extreme(reach(1)) || extreme(b) || !(2 * a < overflow) || !(2 * a / b < overflow)) return kInfinity;
      return 8 * last(2 * a / b) + last(0) * 2 / b;
    }
    case OpKind::kAddcmul: {
      // Either product may come first, and may overflow although the second brings it back.
      const double left = 2 * reach(3) * reach(1), right = 2 * reach(1) * reach(2), all = 2 * left * reach(2);
      if (!(left < overflow) || !(right < overflow) || !(all < overflow)) return kInfinity;
      return 3 * last(left) * 2 * reach(2) + 3 * last(right) * 2 * reach(3) + 3 * last(all) + 2 * last(largest(y));
    }
    case FUSEBOX_COMPLEX_FUNCTION_OPS:
      return complex_function_error(kind, e.z[0], y);
    default:  // any other: one rounding a part, the least that can be asked
      return 0;
  }
}

// How far the result moves if zeros of the operand have the other sign: a zero's sign chooses the side of a cut.
double spread_of_zeros(OpKind kind, const Complex& z, const Complex& y) {
  switch (kind) {
    case FUSEBOX_COMPLEX_FUNCTION_OPS:
      break;
    default:  // any other: has no cut
      return 0;
  }
  double spread = 0;
  for (double real : {z.real(), -z.real()})
    for (double imag : {z.imag(), -z.imag()})
      if (real == z.real() && imag == z.imag())
        spread = std::max(spread, std::abs(complex_function(kind, {real, imag}) - y));
  return spread;
}

// Whether implementations differ where a part is infinite or NaN.
bool differs_at_infinity(OpKind kind) {
  switch (kind) {
    case FUSEBOX_COMPLEX_FUNCTION_OPS:
      return true;
    default:  // any other: only if it multiplies
      break;
  }
  return kind == OpKind::kMul || kind == OpKind::kDiv || kind == OpKind::kTruediv || kind == OpKind::kReciprocal ||
         kind == OpKind::kAddcmul;
}

// The difference from the exact result, with the rounding of both parts.
double rounding_bound(Dtype declared, const Complex& y, double spread) {
  const double reach = largest(y) + spread;
  if (!(reach < overflow_of(declared))) return kInfinity;
  return spread + 2 * ulp_of(declared, reach);
}

}  // namespace

void complex_loop(const Loop& loop, const Row& row) {
  const size_t count = loop.operands.size();
  for (int64_t i = 0; i < row.n; ++i) {
    Complex& y = row.at<Complex>(0, i);
    double& bound = row.at<double>(1, i);
    Element e;
    bool exact = true, finite = true, free = false;
    for (size_t k = 0; k < count; ++k) {
      e.z[k] = row.at<const Complex>(static_cast<int>(2 * k + 2), i);
      e.b[k] = row.at<const double>(static_cast<int>(2 * k + 3), i);
      exact &= e.b[k] == 0;
      // A part that may be infinite in the operand's own dtype is no bounded step away in a wider one.
      free |= e.b[k] > 0 && !(largest(e.z[k]) + e.b[k] < overflow_of(real_of(loop.operands[k].dtype)));
      finite &= is_finite(e.z[k]);
    }
    const Complex before = y;
    y = rounded(loop.declared, y);
    if (free || (differs_at_infinity(loop.kind) && !finite)) {
      bound = kInfinity;
      continue;
    }
    double error = error_of(loop.kind, real_of(loop.compute), e, before);
    if (count == 1 && !loop.operands[0].zero_sign) error += spread_of_zeros(loop.kind, e.z[0], before);
    bound =
        exact && error == 0 ? 0 : rounding_bound(loop.declared, before, (exact ? 0 : spread_of(loop.kind, e)) + error);
  }
}

void complex_value_loop(const Loop& loop, const Row& row) {
  for (int64_t i = 0; i < row.n; ++i) row.at<Complex>(0, i) = complex_function(loop.kind, row.at<const Complex>(2, i));
}

void complex_round_loop(Dtype declared, const Row& row) {
  for (int64_t i = 0; i < row.n; ++i) {
    Complex& y = row.at<Complex>(0, i);
    y = rounded(declared, y);
  }
}

void complex_to_real_loop(const Loop& loop, const Row& row) {
  const double overflow = overflow_of(loop.declared);
  for (int64_t i = 0; i < row.n; ++i) {
    const Complex z = row.at<const Complex>(2, i);
    const double b = row.at<const double>(3, i);
    const bool is_abs = loop.kind == OpKind::kAbs;
    const double y = is_abs ? std::hypot(z.real(), z.imag()) : loop.kind == OpKind::kImag ? z.imag() : z.real();
    double& bound = row.at<double>(1, i);
    if (b == kInfinity) {
      row.at<double>(0, i) = round_to(loop.declared, y);
      bound = kInfinity;
      continue;
    }
    // CUDA's hypotf is within 3 ULP, hypot within 2, SLEEF's within 1.
    const Dtype compute = real_of(loop.compute);
    const double error = is_abs && std::isfinite(y) && z.imag() != 0 && z.real() != 0 ? 4 * ulp_of(compute, y) : 0;
    // An infinity may be a number by its bound.
    const Operand part = operand(y, b, overflow_of(real_of(loop.operands[0].dtype)), true);
    const Rounded r = finish(loop.declared, overflow, y, {part.lo, part.hi}, error, b == 0);
    row.at<double>(0, i) = r.value;
    bound = r.bound;
    const bool is_zero = r.value == 0 && r.bound == 0;
    if (is_zero && !is_abs && !part.exact() && part.contains(0) && loop.unsure_zero) *loop.unsure_zero = true;
  }
}

void complex_to_integer_loop(const Loop& loop, const Row& row) {
  const double overflow = overflow_of(real_of(loop.operands[0].dtype));
  int64_t ambiguous = 0;
  for (int64_t i = 0; i < row.n; ++i) {
    const Complex a = row.at<const Complex>(2, i);
    const double p = row.at<const double>(3, i);
    const bool two = loop.operands.size() > 1;
    const Complex b = two ? row.at<const Complex>(4, i) : Complex(0);
    const double q = two ? row.at<const double>(5, i) : 0;
    const auto standing = [&](const Complex& z) {
      return Complex(notional(z.real(), overflow), notional(z.imag(), overflow));
    };
    // `sure`: either all numbers within r of z are 0, or none is.
    const auto is_true = [](const Complex& z) { return z.real() != 0 || z.imag() != 0; };
    const auto sure = [&](const Complex& z, double r) {
      return r == 0 || (r < kInfinity && !(std::abs(standing(z)) <= r));
    };
    // Whether a part may be either a number or an infinity.
    const auto reaches = [&](double part) { return p > 0 && std::abs(part) + p >= overflow; };
    bool value = false, certain = true;
    switch (loop.kind) {
      case OpKind::kEq:
      case OpKind::kNe:
        value = (a == b) == (loop.kind == OpKind::kEq);
        certain = (p == 0 && q == 0) || std::abs(standing(a) - standing(b)) > p + q;
        break;
      case OpKind::kCast:
      case OpKind::kLogicalNot:
        value = is_true(a) != (loop.kind == OpKind::kLogicalNot);
        certain = sure(a, p);
        break;
      case OpKind::kLogicalAnd:
        value = is_true(a) && is_true(b);
        certain = (sure(a, p) && sure(b, q)) || (sure(a, p) && !is_true(a)) || (sure(b, q) && !is_true(b));
        break;
      case OpKind::kLogicalOr:
        value = is_true(a) || is_true(b);
        certain = (sure(a, p) && sure(b, q)) || (sure(a, p) && is_true(a)) || (sure(b, q) && is_true(b));
        break;
      case OpKind::kIsnan:
        value = a.real() != a.real() || a.imag() != a.imag();
        certain = p < kInfinity;
        break;
      case OpKind::kIsinf:
        value = std::isinf(a.real()) || std::isinf(a.imag());
        certain = p < kInfinity && !reaches(a.real()) && !reaches(a.imag());
        break;
      case OpKind::kIsfinite:
        value = is_finite(a);
        certain = p < kInfinity && ((!reaches(a.real()) && !reaches(a.imag())) || a != a);
        break;
      case OpKind::kIsreal:
        value = a.imag() == 0;
        certain = p == 0 || std::abs(notional(a.imag(), overflow)) > p;
        break;
      default:  // any other: not of complex numbers here
        no_loop(loop.kind, "a test of complex numbers");
    }
    row.at<int64_t>(0, i) = value;
    row.at<double>(1, i) = certain ? 0 : 1;
    ambiguous += !certain;
  }
  if (ambiguous > 0) *loop.ambiguous += ambiguous;
}

void where_complex_loop(const Loop& loop, const Row& row) {
  for (int64_t i = 0; i < row.n; ++i) {
    const bool condition = row.at<const int64_t>(2, i) != 0;
    const int chosen = condition ? 4 : 6, other = condition ? 6 : 4;
    const Complex v = row.at<const Complex>(chosen, i);
    row.at<Complex>(0, i) = v;
    double& bound = row.at<double>(1, i);
    bound = row.at<const double>(chosen + 1, i);
    if (row.at<const double>(3, i) == 0) continue;
    const Complex w = row.at<const Complex>(other, i);
    const double distance = std::abs(v - w), reach = (distance + row.at<const double>(other + 1, i)) * (1 + 0x1p-50);
    bound = distance == distance ? std::max(bound, reach) : kInfinity;
    const auto differ = [](double x, double y) { return x == 0 && y == 0 && std::signbit(x) != std::signbit(y); };
    if ((differ(v.real(), w.real()) || differ(v.imag(), w.imag())) && loop.unsure_zero) *loop.unsure_zero = true;
  }
}

}  // namespace fusebox::aten
