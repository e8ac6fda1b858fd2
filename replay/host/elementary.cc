#include "replay/host/elementary.h"

#include <cmath>
#include <limits>
#include <sleef.h>

namespace fusebox::host {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kTwoOverRootPi = 1.1283791670955126;
constexpr double kHalfRootPi = 0.88622692545275801;
constexpr double kLogRootPi = 0.57236494292470009;

// S. Winitzki's approximation of erfinv(1 − q) from log(q (2 − q)), right to about 1/500.
double first_guess(double log_of_product) {
  constexpr double kA = 0.147;
  const double t = 2 / (M_PI * kA) + log_of_product / 2;
  return std::sqrt(std::sqrt(t * t - log_of_product / kA) - t);
}

// One step of Halley's method for erf or erfc, given the error there. The second derivative is −2y times the first.
double halley(double y, double error) {
  const double u = error / (kTwoOverRootPi * Sleef_cinz_expd1_u10purec(-y * y));
  return y - u / (1 + y * u);
}

// log erfc(y) by its asymptotic series, for y above 20.
double log_erfc(double y) {
  const double v = 1 / (2 * y * y);
  const double series = v * (-1 + v * (3 + v * (-15 + v * (105 + v * (-945 + v * 10395)))));
  return -y * y - Sleef_cinz_logd1_u10purec(y) - kLogRootPi + Sleef_cinz_log1pd1_u10purec(series);
}

// The y with erfc(y) = q, for q in (0, 0.5].
double upper_tail(double q) {
  const double log_q = Sleef_cinz_logd1_u10purec(q);
  double y = first_guess(log_q + Sleef_cinz_logd1_u10purec(2 - q));
  if (q < 1e-200) {
    for (int i = 0; i < 4; ++i) y += (log_erfc(y) - log_q) / (2 * y + 1 / y);
    return y;
  }
  for (int i = 0; i < 3; ++i) y = halley(y, q - Sleef_cinz_erfcd1_u15purec(y));
  return y;
}

}  // namespace

double elementary_hypot(double x, double y) { return Sleef_cinz_hypotd1_u05purec(x, y); }

double elementary_erfinv(double x) {
  const double magnitude = std::abs(x);
  if (!(magnitude <= 1)) return kNan;
  if (magnitude == 1) return std::copysign(kInfinity, x);
  if (magnitude > 0.5) return std::copysign(upper_tail(1 - magnitude), x);
  if (magnitude < 1e-9) return x * kHalfRootPi;
  double y = magnitude < 0.1 ? magnitude * kHalfRootPi : first_guess(Sleef_cinz_log1pd1_u10purec(-x * x));
  for (int i = 0; i < 3; ++i) y = halley(y, Sleef_cinz_erfd1_u10purec(y) - magnitude);
  return std::copysign(y, x);
}

double elementary_erfcinv(double q) {
  if (!(q >= 0 && q <= 2)) return kNan;
  if (q == 0) return kInfinity;
  if (q == 2) return -kInfinity;
  if (q <= 0.5) return upper_tail(q);
  if (q >= 1.5) return -upper_tail(2 - q);
  return elementary_erfinv(1 - q);
}

}  // namespace fusebox::host
