// Loop templates for lane functions, and the types that registers hold.
#pragma once

#include <complex>
#include <cstdint>
#include <limits>

#include "ir/table/families.h"
#include "replay/host/lanes.h"

namespace fusebox::host {

// A complex number as it lies in memory, with operators of our own: std::complex's are the library's.
template <class T>
struct Complex {
  T re, im;
};

template <class T>
inline T canonical(T x) {
  return x == x ? x : std::numeric_limits<T>::quiet_NaN();
}
template <class T>
inline Complex<T> canonical(Complex<T> z) {
  return {canonical(z.re), canonical(z.im)};
}

template <class R, class T, R (*F)(T)>
void unary_lanes(LaneCall& c) {
  R* __restrict to = static_cast<R*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  for (int32_t l = c.begin; l < c.end; ++l) to[l] = F(a[l]);
}

// Calls f for each lane, with a loop of its own for each operand that all lanes share.
template <class R, class T, class F>
inline void for_pairs(LaneCall& c, F&& f) {
  R* __restrict to = static_cast<R*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  const T* __restrict b = static_cast<const T*>(c.from[1]);
  if (c.end == 1) {  // most calls are uniform
    to[0] = f(a[0], b[0]);
  } else if (c.stride[0] == c.stride[1]) {
    for (int32_t l = c.begin; l < c.end; ++l) to[l] = f(a[l], b[l]);
  } else if (c.stride[0] != 0) {
    const T y = b[0];
    for (int32_t l = c.begin; l < c.end; ++l) to[l] = f(a[l], y);
  } else {
    const T x = a[0];
    for (int32_t l = c.begin; l < c.end; ++l) to[l] = f(x, b[l]);
  }
}

template <class R, class T, R (*F)(T, T)>
void binary_lanes(LaneCall& c) {
  for_pairs<R, T>(c, [](T x, T y) { return F(x, y); });
}

template <class T, T (*F)(T, T, T)>
void ternary_lanes(LaneCall& c) {
  T* __restrict to = static_cast<T*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  const T* __restrict b = static_cast<const T*>(c.from[1]);
  const T* __restrict d = static_cast<const T*>(c.from[2]);
  const ptrdiff_t sa = c.stride[0], sb = c.stride[1], sd = c.stride[2];
  for (int32_t l = c.begin; l < c.end; ++l) to[l] = F(a[l * sa], b[l * sb], d[l * sd]);
}

template <class T, T (*F)(T, T, T, T)>
void quaternary_lanes(LaneCall& c) {
  T* __restrict to = static_cast<T*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  const T* __restrict b = static_cast<const T*>(c.from[1]);
  const T* __restrict d = static_cast<const T*>(c.from[2]);
  const T* __restrict e = static_cast<const T*>(c.from[3]);
  const ptrdiff_t sa = c.stride[0], sb = c.stride[1], sd = c.stride[2], se = c.stride[3];
  for (int32_t l = c.begin; l < c.end; ++l) to[l] = F(a[l * sa], b[l * sb], d[l * sd], e[l * se]);
}

// where: a condition and two values.
template <class T>
void select_lanes(LaneCall& c) {
  T* __restrict to = static_cast<T*>(c.to);
  const uint8_t* __restrict p = static_cast<const uint8_t*>(c.from[0]);
  const T* __restrict a = static_cast<const T*>(c.from[1]);
  const T* __restrict b = static_cast<const T*>(c.from[2]);
  const ptrdiff_t sp = c.stride[0], sa = c.stride[1], sb = c.stride[2];
  for (int32_t l = c.begin; l < c.end; ++l) to[l] = p[l * sp] != 0 ? a[l * sa] : b[l * sb];
}

// Comparisons and where have one form for every type that has the operators.
template <class T>
inline uint8_t equal(T a, T b) {
  return a == b;
}
template <class T>
inline uint8_t not_equal(T a, T b) {
  return !(a == b);
}
template <class T>
inline uint8_t less(T a, T b) {
  return a < b;
}
template <class T>
inline uint8_t less_equal(T a, T b) {
  return a <= b;
}
template <class T>
inline uint8_t greater(T a, T b) {
  return a > b;
}
template <class T>
inline uint8_t greater_equal(T a, T b) {
  return a >= b;
}

// Null if the op is no comparison.
template <class T>
LaneFunction find_comparison(OpKind kind) {
  switch (kind) {
    case OpKind::kEq:
      return binary_lanes<uint8_t, T, equal<T>>;
    case OpKind::kNe:
      return binary_lanes<uint8_t, T, not_equal<T>>;
    case OpKind::kLt:
      return binary_lanes<uint8_t, T, less<T>>;
    case OpKind::kLe:
      return binary_lanes<uint8_t, T, less_equal<T>>;
    case OpKind::kGt:
      return binary_lanes<uint8_t, T, greater<T>>;
    case OpKind::kGe:
      return binary_lanes<uint8_t, T, greater_equal<T>>;
    case OpKind::kWhere:
      return select_lanes<T>;
    case OpKind::kCast:
    case FUSEBOX_REAL_OPS:
    case FUSEBOX_COPY_OPS:
    case FUSEBOX_INTEGER_OPS:
    case FUSEBOX_LOGICAL_OPS:
    case FUSEBOX_TEST_OPS:
    case FUSEBOX_PART_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;  // the caller looks further
  }
  return nullptr;
}

}  // namespace fusebox::host
