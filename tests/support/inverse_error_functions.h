// Inverses of the error functions in long double, by bisection.
//
//   inverse_erf(0.5L)     // 0.4769362762044698734L
//   inverse_erfc(0.5L)    // the same
#pragma once

#include <cmath>

namespace fusebox::testing {

inline long double inverse_erf(long double x);

// The y for which f(y) = target, as close as long doubles get; f rises from 0 on.
template <class F>
long double solve(F f, long double target, long double high) {
  long double low = 0;
  for (;;) {
    const long double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return middle;
    (f(middle) < target ? low : high) = middle;
  }
}

// Near 1 the inverse of erf keeps more digits.
inline long double inverse_erfc(long double q) {
  if (!(q >= 0 && q <= 2)) return NAN;
  if (q == 0 || q == 2) return q == 0 ? HUGE_VALL : -HUGE_VALL;
  if (q >= 0.5L && q <= 1.5L) return inverse_erf(1 - q);
  if (q > 1) return -inverse_erfc(2 - q);
  return solve([](long double y) { return -std::erfc(y); }, -q, 120.0L);
}

inline long double inverse_erf(long double x) {
  if (!(std::abs(x) <= 1)) return NAN;
  if (std::abs(x) < 1e-10L) return x * 0.886226925452758013649083741670572591L;  // sqrt(π) / 2
  if (std::abs(x) > 0.5L) return x < 0 ? -inverse_erfc(1 + x) : inverse_erfc(1 - x);
  const long double y = solve([](long double v) { return std::erf(v); }, std::abs(x), 1.0L);
  return x < 0 ? -y : y;
}

}  // namespace fusebox::testing
