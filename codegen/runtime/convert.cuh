// `cast<To>(value)`: the conversion of the op `cast`, between any two dtypes that have arithmetic. It rounds once, to
// nearest even; integers wrap; a float that does not fit an integer saturates, and NaN gives 0; anything but zero is
// true; a complex number gives its real part to a real dtype.
//
//   cast<int8_t>(300.0f) == 127;  cast<int8_t>(300) == 44;  cast<half_t>(2049.0) == half_t(2048.0f)
#ifndef FUSEBOX_CONVERT_CUH
#define FUSEBOX_CONVERT_CUH

#include "types.cuh"

// No compiler knows that it is zero: a host may set it.
__constant__ uint32_t opaque_zero = 0;

// The value, ready to be converted to 32 bits. ptxas (CUDA 13) takes two such conversions for one if it sees the same low
// words, as in 0.0 and 1.0, whatever the high words are. So the low word depends on the high one.
__device__ inline double apart(double value) {
  const int high = __double2hiint(value);
  return __hiloint2double(high, __double2loint(value) | (high & int(opaque_zero)));
}

template <class I, class F>
__device__ I saturate(F value) {
  constexpr I kMax = I(kIsSigned<I> ? (UnsignedOf<sizeof(I)>(-1) >> 1) : UnsignedOf<sizeof(I)>(-1));
  constexpr F kAbove = F(kMax / 2 + 1) * F(2);  // max + 1, exactly
  if (value != value) return I(0);
  if (value >= kAbove) return kMax;
  if constexpr (kIsSigned<I>) {
    if (value < -kAbove) return I(-kMax - 1);
  } else {
    if (value <= F(-1)) return I(0);
  }
  if constexpr (kSame<F, double> && sizeof(I) <= 4) return I(apart(value));
  return I(value);
}

// A wider number as a float on the way to a narrower one: towards zero with the lowest bit set where that was not
// exact, so that the second rounding gives what a single one would.
__device__ inline float round_to_odd(double value) {
  const float towards_zero = __double2float_rz(apart(value));
  if (double(towards_zero) == value || value != value) return towards_zero;
  return __uint_as_float(__float_as_uint(towards_zero) | 1u);
}
__device__ inline float round_to_odd(int64_t value) {
  const float towards_zero = __ll2float_rz(value);
  if (__float2ll_rz(towards_zero) == value) return towards_zero;
  return __uint_as_float(__float_as_uint(towards_zero) | 1u);
}
__device__ inline float round_to_odd(uint64_t value) {
  const float towards_zero = __ull2float_rz(value);
  if (__float2ull_rz(towards_zero) == value) return towards_zero;
  return __uint_as_float(__float_as_uint(towards_zero) | 1u);
}

template <class To, class From>
__device__ To cast(From value) {
  if constexpr (kSame<To, From>) {
    return value;
  } else if constexpr (kIsComplex<To> && kIsComplex<From>) {
    return To(cast<decltype(To::real)>(value.real), cast<decltype(To::real)>(value.imag));
  } else if constexpr (kIsComplex<To>) {
    return To(cast<decltype(To::real)>(value));
  } else if constexpr (kIsComplex<From> && kSame<To, bool>) {
    return value.real != 0 || value.imag != 0;
  } else if constexpr (kIsComplex<From>) {
    return cast<To>(value.real);
  } else if constexpr (kIsNarrowFloat<From>) {
    return cast<To>(float(value));
  } else if constexpr (kSame<To, bool>) {
    return value != From(0);
  } else if constexpr (kIsNarrowFloat<To>) {
    if constexpr (kSame<From, float>) {
      return To(value);
    } else if constexpr (kIsInteger<From> && sizeof(From) == 8) {
      return To(round_to_odd(value));
    } else {
      return To(round_to_odd(double(value)));  // at most 32 bits: exact in double
    }
  } else if constexpr (kIsInteger<To> && kIsFloat<From>) {
    return saturate<To>(value);
  } else if constexpr (kSame<From, double> && kSame<To, float>) {
    return float(apart(value));
  } else if constexpr (kIsInteger<To> && kIsInteger<From> && sizeof(To) == 2 && sizeof(From) > 2) {
    return low_bits<To>(uint32_t(value));
  } else {
    return To(value);
  }
}

#endif
