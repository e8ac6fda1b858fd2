// Elementary functions of float and double: SLEEF's deterministic ones (`cinz`), which give the same bits on every
// processor and for every vector width. They take several lanes at a time if there are vectors of 128 bits, which every
// x86-64 has.
//
// Near the ends of some domains SLEEF gives infinity or nothing useful. Functions that it lacks are composed of others.
#include <cmath>
#include <limits>
#include <sleef.h>

#include "ir/table/families.h"
#include "replay/host/elementary.h"
#include "replay/host/lane_loops.h"

namespace fusebox::host {
namespace {

#ifdef __SSE2__
using Floats = __m128;
using Doubles = __m128d;
constexpr int kFloats = 4, kDoubles = 2;
inline Floats load(const float* from) { return _mm_loadu_ps(from); }
inline Doubles load(const double* from) { return _mm_loadu_pd(from); }
inline void store(float* to, Floats v) { _mm_storeu_ps(to, v); }
inline void store(double* to, Doubles v) { _mm_storeu_pd(to, v); }
#define FUSEBOX_SLEEF(name, accuracy)                                                  \
  struct name {                                                                        \
    static Floats of(Floats x) { return Sleef_cinz_##name##f4_##accuracy##sse2(x); }   \
    static Doubles of(Doubles x) { return Sleef_cinz_##name##d2_##accuracy##sse2(x); } \
  }
#define FUSEBOX_SLEEF2(name, accuracy)                                                               \
  struct name {                                                                                      \
    static Floats of(Floats x, Floats y) { return Sleef_cinz_##name##f4_##accuracy##sse2(x, y); }    \
    static Doubles of(Doubles x, Doubles y) { return Sleef_cinz_##name##d2_##accuracy##sse2(x, y); } \
  }
#else
using Floats = float;
using Doubles = double;
constexpr int kFloats = 1, kDoubles = 1;
inline Floats load(const float* from) { return *from; }
inline Doubles load(const double* from) { return *from; }
inline void store(float* to, Floats v) { *to = v; }
inline void store(double* to, Doubles v) { *to = v; }
#define FUSEBOX_SLEEF(name, accuracy)                                                   \
  struct name {                                                                         \
    static Floats of(Floats x) { return Sleef_cinz_##name##f1_##accuracy##purec(x); }   \
    static Doubles of(Doubles x) { return Sleef_cinz_##name##d1_##accuracy##purec(x); } \
  }
#define FUSEBOX_SLEEF2(name, accuracy)                                                                \
  struct name {                                                                                       \
    static Floats of(Floats x, Floats y) { return Sleef_cinz_##name##f1_##accuracy##purec(x, y); }    \
    static Doubles of(Doubles x, Doubles y) { return Sleef_cinz_##name##d1_##accuracy##purec(x, y); } \
  }
#endif

namespace sleef {
FUSEBOX_SLEEF(exp, u10);
FUSEBOX_SLEEF(exp2, u10);
FUSEBOX_SLEEF(expm1, u10);
FUSEBOX_SLEEF(log, u10);
FUSEBOX_SLEEF(log2, u10);
FUSEBOX_SLEEF(log10, u10);
FUSEBOX_SLEEF(sin, u10);
FUSEBOX_SLEEF(cos, u10);
FUSEBOX_SLEEF(tan, u10);
FUSEBOX_SLEEF(asin, u10);
FUSEBOX_SLEEF(acos, u10);
FUSEBOX_SLEEF(atan, u10);
FUSEBOX_SLEEF(tanh, u10);
FUSEBOX_SLEEF(erf, u10);
FUSEBOX_SLEEF(erfc, u15);
FUSEBOX_SLEEF2(atan2, u10);
FUSEBOX_SLEEF2(pow, u10);
}  // namespace sleef
#undef FUSEBOX_SLEEF
#undef FUSEBOX_SLEEF2

template <class T>
constexpr int kWidth = sizeof(T) == 4 ? kFloats : kDoubles;

// Computes a whole vector at a time. The last lanes, fewer than a vector, go through a padded one.
template <class T, class F>
void vector_lanes(LaneCall& c) {
  constexpr int n = kWidth<T>;
  T* __restrict to = static_cast<T*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  int32_t l = c.begin;
  for (; l + n <= c.end; l += n) store(to + l, F::of(load(a + l)));
  if (l < c.end) {
    T in[n] = {}, out[n];
    for (int k = 0; k < c.end - l; ++k) in[k] = a[l + k];
    store(out, F::of(load(in)));
    for (int k = 0; k < c.end - l; ++k) to[l + k] = out[k];
  }
  for (l = c.begin; l < c.end; ++l) to[l] = canonical(to[l]);
}

template <class T>
T as_it_is(T, T, T result) {
  return result;
}

// `mend` takes the operands and the result of one lane.
template <class T, class F, T (*mend)(T, T, T) = as_it_is<T>>
void vector_lanes2(LaneCall& c) {
  constexpr int n = kWidth<T>;
  T* __restrict to = static_cast<T*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  const T* __restrict b = static_cast<const T*>(c.from[1]);
  const ptrdiff_t sa = c.stride[0], sb = c.stride[1];
  for (int32_t l = c.begin; l < c.end; l += n) {
    T x[n] = {}, y[n] = {}, out[n];
    const int count = c.end - l < n ? c.end - l : n;
    for (int k = 0; k < count; ++k) {
      x[k] = a[(l + k) * sa];
      y[k] = b[(l + k) * sb];
    }
    store(out, F::of(load(x), load(y)));
    for (int k = 0; k < count; ++k) to[l + k] = canonical(mend(x[k], y[k], out[k]));
  }
}

inline float scalar_pow(float x, float y) { return Sleef_cinz_powf1_u10purec(x, y); }
inline double scalar_pow(double x, double y) { return Sleef_cinz_powd1_u10purec(x, y); }

// SLEEF returns infinity a little below the largest number. There the power is the square of one with half the
// exponent.
template <class T>
T mended_pow(T x, T y, T r) {
  if (!std::isinf(r) || !std::isfinite(x) || !std::isfinite(y) || x == 0) return r;
  if (y == 1) return x;
  // Rounded up, the square may leave the range although the power does not.
  const T half = scalar_pow(std::abs(x), y / 2), square = half * half;
  return std::copysign(std::isinf(square) ? half * std::nextafter(half, T(0)) : square, r);
}

inline float scalar_exp(float x) { return Sleef_cinz_expf1_u10purec(x); }
inline double scalar_exp(double x) { return Sleef_cinz_expd1_u10purec(x); }

// Computes e^−|x|, then the logistic function, without overflow on either side. Where e^x has lost bits below the
// smallest normal number, silu is x·e^(x/2)·e^(x/2).
template <class T, bool times_x>
void sigmoid_lanes(LaneCall& c) {
  T* __restrict to = static_cast<T*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  constexpr int32_t kChunk = 64;
  T e[kChunk];
  for (int32_t at = c.begin; at < c.end; at += kChunk) {
    const int32_t count = c.end - at < kChunk ? c.end - at : kChunk;
    for (int32_t k = 0; k < count; ++k) to[at + k] = -std::abs(a[at + k]);
    LaneCall inner;
    inner.to = e;
    inner.from[0] = to + at;
    inner.end = count;
    vector_lanes<T, sleef::exp>(inner);
    for (int32_t k = 0; k < count; ++k) {
      const T x = a[at + k];
      const T s = (x >= T{0} ? T{1} : e[k]) / (T{1} + e[k]);
      to[at + k] = canonical(times_x ? x * s : s);
    }
    if constexpr (times_x)
      for (int32_t k = 0; k < count; ++k) {
        const T x = a[at + k];
        if (x >= (sizeof(T) == 4 ? T{-80} : T{-700}) || x != x) continue;
        const T half = scalar_exp(x / 2);
        to[at + k] = canonical(x * half * half);
      }
  }
}

// Computes in double, rounded once for float: functions that SLEEF lacks or gives for a smaller domain than IEEE's.
template <class T, double (*F)(double)>
inline T by_double(T x) {
  return canonical(static_cast<T>(F(x)));
}

inline double log1p(double x) { return x > 1e300 ? Sleef_cinz_logd1_u10purec(x) : Sleef_cinz_log1pd1_u10purec(x); }
// Two factors, which do not overflow unless the result does.
inline double half_exp(double x) {
  const double h = Sleef_cinz_expd1_u10purec(x / 2);
  return h / 2 * h;
}
inline double sinh(double x) {
  if (std::abs(x) > 700) return std::copysign(half_exp(std::abs(x)), x);
  return Sleef_cinz_sinhd1_u10purec(x);
}
inline double cosh(double x) { return std::abs(x) > 700 ? half_exp(std::abs(x)) : Sleef_cinz_coshd1_u10purec(x); }
constexpr double kLog2 = 0.69314718055994531;
inline double asinh(double x) {
  const double a = std::abs(x);
  if (a < 1e-8) return x;  // keeps the sign of zero
  if (a > 1e150) return std::copysign(Sleef_cinz_logd1_u10purec(a) + kLog2, x);
  return Sleef_cinz_asinhd1_u10purec(x);
}
inline double acosh(double x) {
  if (x > 1e150) return Sleef_cinz_logd1_u10purec(x) + kLog2;
  return Sleef_cinz_acoshd1_u10purec(x);
}
inline double atanh(double x) { return Sleef_cinz_atanhd1_u10purec(x); }
inline double lgamma(double x) { return Sleef_cinz_lgammad1_u10purec(x); }

template <class T>
LaneFunction find_in(OpKind kind) {
  switch (kind) {
    case OpKind::kExp:
      return vector_lanes<T, sleef::exp>;
    case OpKind::kExp2:
      return vector_lanes<T, sleef::exp2>;
    case OpKind::kExpm1:
      return vector_lanes<T, sleef::expm1>;
    case OpKind::kLog:
      return vector_lanes<T, sleef::log>;
    case OpKind::kLog2:
      return vector_lanes<T, sleef::log2>;
    case OpKind::kLog10:
      return vector_lanes<T, sleef::log10>;
    case OpKind::kSin:
      return vector_lanes<T, sleef::sin>;
    case OpKind::kCos:
      return vector_lanes<T, sleef::cos>;
    case OpKind::kTan:
      return vector_lanes<T, sleef::tan>;
    case OpKind::kAsin:
      return vector_lanes<T, sleef::asin>;
    case OpKind::kAcos:
      return vector_lanes<T, sleef::acos>;
    case OpKind::kAtan:
      return vector_lanes<T, sleef::atan>;
    case OpKind::kTanh:
      return vector_lanes<T, sleef::tanh>;
    case OpKind::kErf:
      return vector_lanes<T, sleef::erf>;
    case OpKind::kErfc:
      return vector_lanes<T, sleef::erfc>;
    case OpKind::kAtan2:
      return vector_lanes2<T, sleef::atan2>;
    case OpKind::kPow:
      return vector_lanes2<T, sleef::pow, mended_pow<T>>;
    case OpKind::kSigmoid:
      return sigmoid_lanes<T, false>;
    case OpKind::kSilu:
      return sigmoid_lanes<T, true>;
    case OpKind::kLog1p:
      return unary_lanes<T, T, by_double<T, log1p>>;
    case OpKind::kSinh:
      return unary_lanes<T, T, by_double<T, sinh>>;
    case OpKind::kCosh:
      return unary_lanes<T, T, by_double<T, cosh>>;
    case OpKind::kAsinh:
      return unary_lanes<T, T, by_double<T, asinh>>;
    case OpKind::kAcosh:
      return unary_lanes<T, T, by_double<T, acosh>>;
    case OpKind::kAtanh:
      return unary_lanes<T, T, by_double<T, atanh>>;
    case OpKind::kLgamma:
      return unary_lanes<T, T, by_double<T, lgamma>>;
    case OpKind::kErfinv:
      return unary_lanes<T, T, by_double<T, elementary_erfinv>>;
    case OpKind::kErfcinv:
      return unary_lanes<T, T, by_double<T, elementary_erfcinv>>;
    case FUSEBOX_COPY_OPS:
    case OpKind::kCast:
    case OpKind::kWhere:
    case FUSEBOX_ARITHMETIC_OPS:
    case FUSEBOX_FRACTION_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_WHOLE_OPS:
    case FUSEBOX_SHIFT_OPS:
    case FUSEBOX_BITWISE_OPS:
    case FUSEBOX_COMPARISON_OPS:
    case FUSEBOX_LOGICAL_OPS:
    case FUSEBOX_TEST_OPS:
    case FUSEBOX_PART_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  return nullptr;
}

}  // namespace

LaneFunction find_elementary_math(OpKind kind, Dtype compute) {
  if (compute == Dtype::kFloat) return find_in<float>(kind);
  if (compute == Dtype::kDouble) return find_in<double>(kind);
  return nullptr;
}

}  // namespace fusebox::host
