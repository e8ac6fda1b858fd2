// erf and erfc of float.
#ifndef FUSEBOX_EXACT_ERROR_FLOAT_CUH
#define FUSEBOX_EXACT_ERROR_FLOAT_CUH

#include "exact_exponential_float.cuh"

namespace exact {

// erf(x) - x for |x| <= 9/8, over x
FUSEBOX_EXACT float erf_polynomial(float z) {
  float p = 0x1.2848cep-14f;
  p = fma(p, z, -0x1.972862p-11f);
  p = fma(p, z, 0x1.522ef0p-8f);
  p = fma(p, z, -0x1.b7bbdep-6f);
  p = fma(p, z, 0x1.ce2984p-4f);
  p = fma(p, z, -0x1.81272ep-2f);
  return fma(p, z, 0x1.06eba8p-3f);
}

// A polynomial in x² below 9/8, and 1 minus a polynomial in |x| - 5/2 above. It gives 1 at 3.9, and so everywhere beyond.
FUSEBOX_EXACT float erf(float x) {
  const float near = fma(erf_polynomial(x * x), x, x);
  const float y = at_most(magnitude(x), 3.9f) - 2.5f;
  float p = -0x1.0f7ddap-20f;
  p = fma(p, y, 0x1.455354p-17f);
  p = fma(p, y, -0x1.ec9cacp-17f);
  p = fma(p, y, -0x1.10fc54p-14f);
  p = fma(p, y, 0x1.145cd6p-12f);
  p = fma(p, y, -0x1.256e70p-12f);
  p = fma(p, y, -0x1.21c21ap-11f);
  p = fma(p, y, 0x1.708d1ep-9f);
  p = fma(p, y, -0x1.90a14ep-8f);
  p = fma(p, y, 0x1.1a6530p-7f);
  p = fma(p, y, -0x1.11a44cp-7f);
  p = fma(p, y, 0x1.64ecbcp-8f);
  p = fma(p, y, -0x1.1d8192p-9f);
  p = fma(p, y, 0x1.aab590p-12f);
  return canonical(magnitude(x) >= 1.125f ? flip(1.0f - p, x) : near);
}

// With q = (a - 4) / (a + 4) for a = |x|: erfc(a) = e^(-a²)·(1 - q)·P(q) (M. Shepherd and J. Laframboise, "Chebyshev
// Approximation of (1 + 2x) exp(x²) erfc x", 1981, have another factor). The rounding error of a² counts.
FUSEBOX_EXACT float erfc(float x) {
  const float near = fma(-x, erf_polynomial(x * x), 1.0f - x);
  const float a = at_most(magnitude(x), 10.25f);
  const float above = a - 4.0f, below = a + 4.0f, y = reciprocal_in_range(below), guess = above * y;
  const float above_lost = a - (above + 4.0f), below_lost = a - (below - 4.0f);
  const float residual = fma(-guess, below, above) + fma(-guess, below_lost, above_lost);
  const float q = fma(residual, y, guess), q_lost = fma(residual, y, guess - q);
  float p = 0x1.591a34p-15f;
  p = fma(p, q, 0x1.89d09ap-11f);
  p = fma(p, q, -0x1.b3f0c8p-9f);
  p = fma(p, q, 0x1.38d3fcp-7f);
  p = fma(p, q, -0x1.644fd6p-6f);
  p = fma(p, q, 0x1.52cb8ap-5f);
  p = fma(p, q, -0x1.14eaf2p-4f);
  p = fma(p, q, 0x1.8be1fcp-4f);
  // From here on with the rounding errors, in `lost`. 1 - q is 8 / (a + 4).
  const float slope = fma(p, q, -0x1.f3fe32p-4f), slope_lost = fma(p, q, -0x1.f3fe32p-4f - slope);
  const float sum = fma(slope, q, 0x1.18932cp-3f), rest = 8.0f * y, product = sum * rest;
  const float rest_lost = fma(-y, below_lost, fma(-y, below, 1.0f)) * rest;
  // The derivative of P is about `slope`.
  const float sum_lost = fma(slope_lost, q, fma(slope, q_lost, fma(slope, q, 0x1.18932cp-3f - sum)));
  const float lost = fma(sum_lost, rest, sum * rest_lost) + fma(sum, rest, -product);
  // e^(-square - low) = 2^n·(1 + e), with 2^n in two factors.
  const float square = a * a, low = fma(a, a, -square);
  constexpr float kRound = 12582912.0f + 254.0f;
  const float rounded = fma(square, -0x1.715476p+0f, kRound), n = rounded - kRound;
  const float first = fma(n, -0x1.62e430p-1f, -square);
  const float r = fma(n, 0x1.05c610p-29f, first), r_lost = fma(n, 0x1.05c610p-29f, first - r);
  const float e = expm1_polynomial(r);
  const uint32_t bits = bits_of(rounded) << 22;
  const float scale = from_bits(bits & 0x7f800000u), other = from_bits((bits + 0x00400000u) & 0x7f800000u);
  const float tail = (fma(product, e, fma(r_lost - low, fma(product, e, product), lost)) + product) * scale * other;
  const float far = bits_of(x) >> 31 != 0 ? 2.0f - tail : tail;
  return canonical(a > 0.859375f ? far : near);
}

}  // namespace exact

#endif
