// Complex arithmetic and functions with the branch cuts of the C library. Functions of a complex64_t are computed in
// double and rounded once; infinities and NaN go through the formulas, without the C standard's table of special cases.
//
//   complex64_t(1, 2) * complex64_t(3, 4) == complex64_t(-5, 10);  sqrt(complex128_t(-1, 0)) == complex128_t(0, 1)
#ifndef FUSEBOX_COMPLEX_CUH
#define FUSEBOX_COMPLEX_CUH

#include "types.cuh"

template <class R>
__device__ complex_t<R> operator-(complex_t<R> z) {
  return {-z.real, -z.imag};
}
template <class R>
__device__ complex_t<R> operator+(complex_t<R> a, complex_t<R> b) {
  return {a.real + b.real, a.imag + b.imag};
}
template <class R>
__device__ complex_t<R> operator-(complex_t<R> a, complex_t<R> b) {
  return {a.real - b.real, a.imag - b.imag};
}
template <class R>
__device__ complex_t<R> operator*(complex_t<R> a, complex_t<R> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
// Smith's method: scaled by the divisor's larger part, so that its square does not overflow.
template <class R>
__device__ complex_t<R> operator/(complex_t<R> a, complex_t<R> b) {
  const R x = b.real < 0 ? -b.real : b.real, y = b.imag < 0 ? -b.imag : b.imag;
  if (x >= y) {
    if (x == 0) return {a.real / x, a.imag / x};
    const R ratio = b.imag / b.real;
    const R scale = R(1) / (b.real + b.imag * ratio);
    return {(a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale};
  }
  const R ratio = b.real / b.imag;
  const R scale = R(1) / (b.real * ratio + b.imag);
  return {(a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale};
}
template <class R>
__device__ bool operator==(complex_t<R> a, complex_t<R> b) {
  return a.real == b.real && a.imag == b.imag;
}
template <class R>
__device__ bool operator!=(complex_t<R> a, complex_t<R> b) {
  return !(a == b);
}

template <class R>
__device__ complex_t<R> conj(complex_t<R> z) {
  return {z.real, -z.imag};
}
template <class R>
__device__ complex_t<R> times_i(complex_t<R> z) {
  return {-z.imag, z.real};
}
template <class R>
__device__ complex_t<R> lerp(complex_t<R> x, complex_t<R> y, complex_t<R> weight) {
  return x + weight * (y - x);
}
template <class R>
__device__ bool is_nan(complex_t<R> z) {
  return z.real != z.real || z.imag != z.imag;
}
template <class R>
__device__ bool is_inf(complex_t<R> z) {
  return isinf(z.real) || isinf(z.imag);
}
template <class R>
__device__ bool is_finite(complex_t<R> z) {
  return isfinite(z.real) && isfinite(z.imag);
}

__device__ inline double abs_of(complex128_t z) { return hypot(z.real, z.imag); }
__device__ inline float abs_of(complex64_t z) { return hypotf(z.real, z.imag); }
__device__ inline double arg_of(complex128_t z) { return atan2(z.imag, z.real); }

__device__ inline complex128_t exp(complex128_t z) {
  const double size = exp(z.real);
  if (z.imag == 0) return {size, z.imag};
  double s, c;
  sincos(z.imag, &s, &c);
  // Where the factor overflows alone, the product may not: apply it in two halves.
  if (isinf(size) && isfinite(z.real)) {
    const double half = exp(z.real * 0.5);
    return {half * c * half, half * s * half};
  }
  return {size * c, size * s};
}
__device__ inline complex128_t log(complex128_t z) {
  const double x = fabs(z.real), y = fabs(z.imag);
  const double high = fmax(x, y), low = fmin(x, y);
  // Near the unit circle the logarithm of the modulus cancels: log(x² + y²) = log1p((x − 1)(x + 1) + y²).
  double size;
  if (high > 0.5 && high < 2.0) {
    size = 0.5 * log1p((high - 1.0) * (high + 1.0) + low * low);
  } else if (high > 1.0e300) {
    size = log(hypot(x * 0.25, y * 0.25)) + 1.3862943611198906;  // the modulus itself may overflow
  } else {
    size = log(hypot(x, y));
  }
  return {size, arg_of(z)};
}
__device__ inline complex128_t sqrt(complex128_t z) {
  if (z.real == 0 && z.imag == 0) return {0.0, z.imag};
  if (isinf(z.imag)) return {fabs(z.imag), z.imag};
  if (isinf(z.real)) {
    return z.real > 0 ? complex128_t(z.real, copysign(0.0, z.imag)) : complex128_t(0.0, copysign(z.real, z.imag));
  }
  // Scaled by a power of 4 away from overflow and underflow of the modulus.
  const double scale = fmax(fabs(z.real), fabs(z.imag)) > 1.0e154 ? 0.0625 : 16.0;
  const double x = z.real * scale, y = z.imag * scale;
  const double back = scale > 1.0 ? 0.25 : 4.0;
  const double t = sqrt((fabs(x) + hypot(x, y)) * 0.5);
  const double other = y / (2.0 * t);
  return x >= 0 ? complex128_t(t * back, other * back) : complex128_t(fabs(other) * back, copysign(t * back, z.imag));
}

__device__ inline complex128_t sinh(complex128_t z) {
  double s, c;
  sincos(z.imag, &s, &c);
  return {sinh(z.real) * c, z.imag == 0 ? z.imag : cosh(z.real) * s};
}
__device__ inline complex128_t cosh(complex128_t z) {
  double s, c;
  sincos(z.imag, &s, &c);
  return {cosh(z.real) * c, z.imag == 0 || z.real == 0 ? z.real * z.imag : sinh(z.real) * s};
}
// The formulas of tanh, asin, acos, acosh, asinh and atanh are W. Kahan's, "Branch Cuts for Complex Elementary
// Functions", 1987.
__device__ inline complex128_t tanh(complex128_t z) {
  if (fabs(z.real) > 20.0) {
    double s, c;
    sincos(z.imag, &s, &c);
    return {copysign(1.0, z.real), 4.0 * s * c * exp(-2.0 * fabs(z.real))};
  }
  const double t = tan(z.imag), beta = 1.0 + t * t, s = sinh(z.real), rho = sqrt(1.0 + s * s);
  if (isinf(t)) return {rho / s, 1.0 / t};
  const double below = 1.0 + beta * s * s;
  return {beta * rho * s / below, t / below};
}
__device__ inline complex128_t asin(complex128_t z) {
  const complex128_t below = sqrt(complex128_t(1.0 - z.real, -z.imag)),
                     above = sqrt(complex128_t(1.0 + z.real, z.imag));
  return {atan2(z.real, (below * above).real), asinh((conj(below) * above).imag)};
}
__device__ inline complex128_t acos(complex128_t z) {
  const complex128_t below = sqrt(complex128_t(1.0 - z.real, -z.imag)),
                     above = sqrt(complex128_t(1.0 + z.real, z.imag));
  return {2.0 * atan2(below.real, above.real), asinh((conj(above) * below).imag)};
}
__device__ inline complex128_t acosh(complex128_t z) {
  const complex128_t below = sqrt(complex128_t(z.real - 1.0, z.imag)), above = sqrt(complex128_t(z.real + 1.0, z.imag));
  return {asinh((conj(below) * above).real), 2.0 * atan2(below.imag, above.real)};
}
__device__ inline complex128_t atanh(complex128_t z) {
  const double side = copysign(1.0, z.real), x = fabs(z.real), y = z.imag * side;
  if (x > 1.0e150 || fabs(y) > 1.0e150) {
    // 1/z, whose square would underflow, and the side of the cut.
    const double size = hypot(x * 0.5, y * 0.5);
    return {side * (x / size / size * 0.25), side * copysign(1.5707963267948966, y)};
  }
  const double near = 1.0 - x;
  return {side * (0.25 * log1p(4.0 * x / (near * near + y * y))),
          side * (0.5 * atan2(2.0 * y, near * (1.0 + x) - y * y))};
}

__device__ inline complex128_t sin(complex128_t z) {
  const complex128_t w = sinh(times_i(z));
  return {w.imag, -w.real};
}
__device__ inline complex128_t cos(complex128_t z) { return cosh(times_i(z)); }
__device__ inline complex128_t tan(complex128_t z) {
  const complex128_t w = tanh(times_i(z));
  return {w.imag, -w.real};
}
__device__ inline complex128_t asinh(complex128_t z) {
  const complex128_t w = asin(times_i(z));
  return {w.imag, -w.real};
}
__device__ inline complex128_t atan(complex128_t z) {
  const complex128_t w = atanh(times_i(z));
  return {w.imag, -w.real};
}

__device__ inline complex128_t exp2(complex128_t z) {
  return exp(complex128_t(z.real * 0.6931471805599453, z.imag * 0.6931471805599453));
}
// exp(x) cos y − 1 = expm1(x) cos y − 2 sin²(y/2)
__device__ inline complex128_t expm1(complex128_t z) {
  const double half = sin(z.imag * 0.5);
  return {expm1(z.real) * cos(z.imag) - 2.0 * half * half, exp(z.real) * sin(z.imag)};
}
__device__ inline complex128_t log2(complex128_t z) {
  const complex128_t w = log(z);
  return {w.real * 1.4426950408889634, w.imag * 1.4426950408889634};
}
__device__ inline complex128_t log10(complex128_t z) {
  const complex128_t w = log(z);
  return {w.real * 0.4342944819032518, w.imag * 0.4342944819032518};
}
__device__ inline complex128_t log1p(complex128_t z) {
  const double x = z.real, y = z.imag;
  if (fabs(x) > 0.5 || fabs(y) > 0.5) return log(complex128_t(1.0 + x, y));
  return {0.5 * log1p(x * (2.0 + x) + y * y), atan2(y, 1.0 + x)};
}
__device__ inline complex128_t reciprocal(complex128_t z) { return complex128_t(1.0) / z; }
__device__ inline complex128_t rsqrt(complex128_t z) { return complex128_t(1.0) / sqrt(z); }
__device__ inline complex128_t sigmoid(complex128_t z) { return complex128_t(1.0) / (complex128_t(1.0) + exp(-z)); }
__device__ inline complex128_t silu(complex128_t z) { return z / (complex128_t(1.0) + exp(-z)); }
__device__ inline complex128_t pow(complex128_t base, complex128_t exponent) {
  if (exponent == complex128_t(0.0)) return complex128_t(1.0);
  if (base == complex128_t(0.0)) {
    if (exponent.imag == 0 && exponent.real > 0) return complex128_t(0.0);
    return exponent.imag == 0 ? complex128_t(1.0) / base : complex128_t(__longlong_as_double(0x7ff8000000000000ll));
  }
  if (exponent == complex128_t(1.0)) return base;
  if (exponent == complex128_t(2.0)) return base * base;
  return exp(exponent * log(base));
}

__device__ inline complex128_t widen(complex64_t z) { return {double(z.real), double(z.imag)}; }
__device__ inline complex64_t narrow(complex128_t z) { return {float(z.real), float(z.imag)}; }

#define FUSEBOX_IN_DOUBLE(name) \
  __device__ inline complex64_t name(complex64_t z) { return narrow(name(widen(z))); }
FUSEBOX_IN_DOUBLE(exp)
FUSEBOX_IN_DOUBLE(exp2)
FUSEBOX_IN_DOUBLE(expm1)
FUSEBOX_IN_DOUBLE(log)
FUSEBOX_IN_DOUBLE(log2)
FUSEBOX_IN_DOUBLE(log10)
FUSEBOX_IN_DOUBLE(log1p)
FUSEBOX_IN_DOUBLE(sqrt)
FUSEBOX_IN_DOUBLE(rsqrt)
FUSEBOX_IN_DOUBLE(reciprocal)
FUSEBOX_IN_DOUBLE(sigmoid)
FUSEBOX_IN_DOUBLE(silu)
FUSEBOX_IN_DOUBLE(sin)
FUSEBOX_IN_DOUBLE(cos)
FUSEBOX_IN_DOUBLE(tan)
FUSEBOX_IN_DOUBLE(sinh)
FUSEBOX_IN_DOUBLE(cosh)
FUSEBOX_IN_DOUBLE(tanh)
FUSEBOX_IN_DOUBLE(asin)
FUSEBOX_IN_DOUBLE(acos)
FUSEBOX_IN_DOUBLE(atan)
FUSEBOX_IN_DOUBLE(asinh)
FUSEBOX_IN_DOUBLE(acosh)
FUSEBOX_IN_DOUBLE(atanh)
#undef FUSEBOX_IN_DOUBLE
__device__ inline complex64_t pow(complex64_t base, complex64_t exponent) {
  return narrow(pow(widen(base), widen(exponent)));
}

#endif
