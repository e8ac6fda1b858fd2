// Integer arithmetic that is defined for every operand: results wrap, division by zero gives 0, the smallest number
// divided by −1 gives itself, a shift by the width or more (or by a negative number) moves every bit out. The `floor_`
// and `ceil_` forms are for indices: Euclidean, the remainder is never negative.
//
//   divide(7, 0) == 0;  remainder_of(-7, 3) == -1;  python_remainder(-7, 3) == 2;  floor_div(-7, 3) == -3;
//   shift_left(1, 32) == 0
#ifndef FUSEBOX_INTEGER_CUH
#define FUSEBOX_INTEGER_CUH

#include "types.cuh"

// At least 32 bits wide, so that promotion to int does not bring a sign back.
template <class T>
using Wrapping = UnsignedOf<(sizeof(T) < 4 ? 4 : sizeof(T))>;

template <class T>
__device__ T wrapped(Wrapping<T> value) {
  if constexpr (sizeof(T) == 8)
    return T(value);
  else
    return low_bits<T>(value);
}

template <class T>
__device__ T wrapping_add(T a, T b) {
  return wrapped<T>(Wrapping<T>(a) + Wrapping<T>(b));
}
template <class T>
__device__ T wrapping_sub(T a, T b) {
  return wrapped<T>(Wrapping<T>(a) - Wrapping<T>(b));
}
template <class T>
__device__ T wrapping_mul(T a, T b) {
  return wrapped<T>(Wrapping<T>(a) * Wrapping<T>(b));
}
template <class T>
__device__ T wrapping_neg(T a) {
  return wrapped<T>(Wrapping<T>(0) - Wrapping<T>(a));
}
// |a|, where the least number is its own. The compiler must not see an absolute value: it takes the result for
// nonnegative, and widens the least 64-bit number to 2^63 where a float is made of it.
template <class T>
__device__ T wrapping_abs(T a) {
  Wrapping<T> sign = a < T(0) ? ~Wrapping<T>(0) : Wrapping<T>(0);
  if constexpr (sizeof(T) == 8)
    asm("" : "+l"(sign));
  else
    asm("" : "+r"(sign));
  return wrapped<T>((Wrapping<T>(a) ^ sign) - sign);
}

// A divisor that any number has a quotient by. Selects, no branches: compilers copy what follows a branch, and take
// minutes where loops around it are unrolled.
template <class T>
__device__ T safe_divisor(T b) {
  const bool is_special = b == T(0) || (kIsSigned<T> && b == T(-1));
  return is_special ? T(1) : b;
}
template <class T>
__device__ T divide(T a, T b) {
  const T sign = b == T(0) ? T(0) : kIsSigned<T> && b == T(-1) ? T(-1) : T(1);
  return wrapping_mul(T(a / safe_divisor(b)), sign);
}
template <class T>
__device__ T remainder_of(T a, T b) {
  return T(a % safe_divisor(b));
}
// The remainder has the divisor's sign.
template <class T>
__device__ T python_remainder(T a, T b) {
  const T r = remainder_of(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? wrapping_add(r, b) : r;
}

// a / b for 0 <= a < 2^31, where `prepared` is made of b before the launch: 2^32 shift + multiplier. By 0 it gives 0.
__device__ int32_t prepared_div(int32_t a, int64_t prepared) {
  const uint32_t high = uint32_t(uint64_t(uint32_t(a)) * uint32_t(prepared) >> 32);
  return int32_t((high + uint32_t(a)) >> uint32_t(prepared >> 32));
}
__device__ int64_t prepared_div(int64_t a, int64_t prepared) { return prepared_div(int32_t(a), prepared); }

// A negative remainder is moved up by |b|, its quotient away by one.
template <class T>
__device__ T floor_mod(T a, T b) {
  const T r = remainder_of(a, b);
  return wrapping_add(r, r < T(0) ? wrapping_abs(b) : T(0));
}
template <class T>
__device__ T floor_div(T a, T b) {
  const T away = remainder_of(a, b) < T(0) ? (b < T(0) ? T(-1) : T(1)) : T(0);
  return wrapping_sub(divide(a, b), away);
}
template <class T>
__device__ T ceil_div(T a, T b) {
  // Not by way of -a: the least number has no other, and no unsigned number has one.
  const T up = remainder_of(a, b) == T(0) ? T(0) : b < T(0) ? T(-1) : T(1);
  return wrapping_add(floor_div(a, b), up);
}

template <class T>
__device__ bool shifts_out(T count) {
  return count < T(0) || UnsignedOf<sizeof(T)>(count) >= 8 * sizeof(T);
}
template <class T>
__device__ T shift_left(T a, T count) {
  return shifts_out(count) ? T(0) : T(Wrapping<T>(a) << count);
}
template <class T>
__device__ T shift_right(T a, T count) {
  if (shifts_out(count)) return a < T(0) ? T(-1) : T(0);
  return T(a >> count);
}
template <class T>
__device__ T shift_right_logical(T a, T count) {
  return shifts_out(count) ? T(0) : T(UnsignedOf<sizeof(T)>(a) >> count);
}

template <class T>
__device__ T gcd(T a, T b) {
  UnsignedOf<sizeof(T)> x = wrapping_abs(a), y = wrapping_abs(b);
  while (y != 0) {
    const auto r = x % y;
    x = y;
    y = r;
  }
  return T(x);
}

// 0 to a negative power is 0, and so is any other base but 1 and −1.
template <class T>
__device__ T integer_pow(T base, T exponent) {
  if (exponent < T(0)) {
    if (base == T(1)) return T(1);
    if (kIsSigned<T> && base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
    return T(0);
  }
  T result = T(1);
  for (T rest = exponent; rest != T(0); rest = T(rest / 2)) {
    if (rest % 2 != 0) result = wrapping_mul(result, base);
    base = wrapping_mul(base, base);
  }
  return result;
}

#endif
