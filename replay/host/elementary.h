// Elementary functions that the lane loops share: SLEEF's deterministic ones, and in double those that SLEEF lacks.
// None is from a C library.
#pragma once

namespace fusebox::host {

double elementary_hypot(double x, double y);
// NaN outside [−1, 1], infinite at the ends. Within 4 ulp of double.
double elementary_erfinv(double x);
// The y with erfc(y) = q, for q in (0, 2).
double elementary_erfcinv(double q);

}  // namespace fusebox::host
