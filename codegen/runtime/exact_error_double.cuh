// erf and erfc of double, as exact_error_float.cuh computes erfc.
#ifndef FUSEBOX_EXACT_ERROR_DOUBLE_CUH
#define FUSEBOX_EXACT_ERROR_DOUBLE_CUH

#include "exact_exponential_double.cuh"

namespace exact {

// erf(x) - x for |x| <= 1, over x
FUSEBOX_EXACT double erf_polynomial(double z) {
  double p = -0x1.a22f963223cdep-31;
  p = fma(p, z, 0x1.d3db21d9375bbp-27);
  p = fma(p, z, -0x1.5b8c4fc786f25p-23);
  p = fma(p, z, 0x1.b96b5a10f5b4ep-20);
  p = fma(p, z, -0x1.f4c82fb8846e1p-17);
  p = fma(p, z, 0x1.f9a296c369b9bp-14);
  p = fma(p, z, -0x1.c02daeb79fefbp-11);
  p = fma(p, z, 0x1.565bcceedd834p-8);
  p = fma(p, z, -0x1.b82ce311a98e4p-6);
  p = fma(p, z, 0x1.ce2f21a03f8bbp-4);
  p = fma(p, z, -0x1.812746b03799dp-2);
  p = fma(p, z, 0x1.06eba8214db68p-3);
  return p;
}

// erfc(|x|) for |x| > 0.84
FUSEBOX_EXACT double erfc_tail(double x) {
  const double a = at_most(magnitude(x), 27.5);
  const double above = a - 4.0, below = a + 4.0, y = 1.0 / below, guess = above * y;
  const double above_lost = a - (above + 4.0), below_lost = a - (below - 4.0);
  const double q = fma(fma(-guess, below, above) + fma(-guess, below_lost, above_lost), y, guess);
  double p = -0x1.74106e1ffcf7bp-30;
  p = fma(p, q, -0x1.d9ba0f1350a7dp-37);
  p = fma(p, q, 0x1.f6d891397f10dp-27);
  p = fma(p, q, -0x1.3aa933d33fa81p-27);
  p = fma(p, q, -0x1.c365e733b06f9p-24);
  p = fma(p, q, 0x1.7dc4f90d9c78ap-23);
  p = fma(p, q, 0x1.3ae07c7d82d9cp-21);
  p = fma(p, q, -0x1.3c6ae638ab249p-19);
  p = fma(p, q, -0x1.e7d18b555db6bp-22);
  p = fma(p, q, 0x1.72cd85fb9ddadp-16);
  p = fma(p, q, -0x1.dd284d9a03e76p-15);
  p = fma(p, q, -0x1.269b4f6d3f30dp-15);
  p = fma(p, q, 0x1.908f47329afa8p-11);
  p = fma(p, q, -0x1.b00c052d365a9p-9);
  p = fma(p, q, 0x1.38dbd2c8d4997p-7);
  p = fma(p, q, -0x1.645fd8a4ba88dp-6);
  p = fma(p, q, 0x1.52cac237102d8p-5);
  p = fma(p, q, -0x1.14eacb1ad035ap-4);
  p = fma(p, q, 0x1.8be202d26c704p-4);
  // From here on with the rounding errors, in `lost`. 1 - q is 8 / (a + 4).
  const double slope = fma(p, q, -0x1.f3fe31ecb49bfp-4),
               slope_lost = fma(p, q, -0x1.f3fe31ecb49bfp-4 - slope) - 0x1.11398a8167244p-59;
  const double sum = fma(slope, q, 0x1.18932bf08e154p-3), rest = 8.0 * y, product = sum * rest;
  const double sum_lost = fma(slope_lost, q, fma(slope, q, 0x1.18932bf08e154p-3 - sum)) + 0x1.0981aa12747cep-57;
  const double rest_lost = fma(-y, below_lost, fma(-y, below, 1.0)) * rest;
  const double lost = fma(sum_lost, rest, sum * rest_lost) + fma(sum, rest, -product);
  // e^(-square - low) = 2^n·(1 + e), with 2^n in two factors.
  const double square = a * a, low = fma(a, a, -square);
  const double rounded = fma(square, -0x1.71547652b82fep+0, round_twice());
  const double n = rounded - round_twice(), first = fma(n, -0x1.62e42fefa3800p-1, -square);
  const double r = fma(n, -0x1.ef35793c76730p-45, first), r_lost = fma(n, -0x1.ef35793c76730p-45, first - r);
  const double e = expm1_polynomial(r);
  const PowerDouble power = power_of_two(rounded);
  return (fma(product, e, fma(r_lost - low, fma(product, e, product), lost)) + product) * power.low * power.high;
}

FUSEBOX_EXACT double erf(double x) {
  const double near = fma(erf_polynomial(x * x), x, x);
  return canonical(magnitude(x) >= 1.0 ? flip(1.0 - erfc_tail(x), x) : near);
}
FUSEBOX_EXACT double erfc(double x) {
  const double near = fma(-x, erf_polynomial(x * x), 1.0 - x), tail = erfc_tail(x);
  const double far = bits_of(x) >> 63 != 0 ? 2.0 - tail : tail;
  return canonical(magnitude(x) > 0.875 ? far : near);
}

}  // namespace exact

#endif
