// Element types of kernels: integers by width, and the floats that are narrower than 32 bits. A narrow float holds its
// bits and converts to and from `float`, explicitly; arithmetic is done in float.
//
//   const half_t h = half_t(1.5f);  float(h) == 1.5f;  half_t::from_bits(0x3e00)
#ifndef FUSEBOX_TYPES_CUH
#define FUSEBOX_TYPES_CUH

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
#if defined(__CUDACC_RTC__)
using int64_t = long long;
using uint64_t = unsigned long long;
#else
using int64_t = long;
using uint64_t = unsigned long;
#endif

// What the C++ library's type_traits and bit say, as far as kernels need it.
template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

template <class T>
inline constexpr bool kIsInteger = kSame<T, int8_t> || kSame<T, int16_t> || kSame<T, int32_t> || kSame<T, long> ||
                                   kSame<T, long long> || kSame<T, uint8_t> || kSame<T, uint16_t> ||
                                   kSame<T, uint32_t> || kSame<T, unsigned long> || kSame<T, unsigned long long>;
template <class T>
inline constexpr bool kIsSigned = T(-1) < T(0);

template <bool condition, class A, class B>
struct Select {
  using type = A;
};
template <class A, class B>
struct Select<false, A, B> {
  using type = B;
};
// The unsigned integer of as many bytes.
template <int bytes>
using UnsignedOf = typename Select<
    bytes == 1, uint8_t,
    typename Select<bytes == 2, uint16_t, typename Select<bytes == 4, uint32_t, uint64_t>::type>::type>::type;

// The integer of type T that has the low bits of `value`. ptxas 12.9 and 13.0 widen the negation of a 16-bit -32768 to
// 32768. NVRTC 13.0 leaves out the sign extension of an 8-bit sum or negation of the lower of two bytes that it has loaded
// together: log2(float(int8_t(-x))) of x = 2 was log2(510). So signed results of 8 and 16 bits are computed in 32, and the
// compiler must not see that fewer would do.
template <class T>
__device__ T low_bits(uint32_t value) {
  if constexpr (kIsSigned<T> && sizeof(T) < 4) asm("" : "+r"(value));
  return T(value);
}

struct half_t {
  uint16_t bits;

  half_t() = default;
  __device__ explicit half_t(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  __device__ explicit operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
  __device__ static half_t from_bits(uint16_t bits) {
    half_t h;
    h.bits = bits;
    return h;
  }
};

struct bfloat16_t {
  uint16_t bits;

  bfloat16_t() = default;
  __device__ explicit bfloat16_t(float value) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  __device__ explicit operator float() const { return __uint_as_float(uint32_t(bits) << 16); }
  __device__ static bfloat16_t from_bits(uint16_t bits) {
    bfloat16_t b;
    b.bits = bits;
    return b;
  }
};

// 4 exponent bits with bias 7, no infinity, NaN 0x7f; what overflows is 448.
struct float8_e4m3_t {
  uint8_t bits;

  float8_e4m3_t() = default;
  __device__ explicit float8_e4m3_t(float value) {
    const uint32_t word = __float_as_uint(value);
#if __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    const uint32_t result = pair;  // of a NaN without its sign
#else
    uint32_t magnitude = word & 0x7fffffffu;
    uint32_t result = 0x7f;
    if (magnitude <= 0x7f800000u) {
      magnitude = magnitude < (1086u << 20) ? magnitude : 1086u << 20;  // 448
      if (magnitude < (121u << 23)) {
        // Subnormal: adding 2^14 leaves the bits of the rounded value at the bottom.
        result = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - __float_as_uint(16384.0f);
      } else {
        result = (magnitude - (120u << 23) + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
      }
    }
#endif
    bits = uint8_t(result | (word >> 31 << 7));
  }
  __device__ explicit operator float() const {
    const uint32_t magnitude = bits & 0x7fu;
    const uint32_t sign = uint32_t(bits & 0x80u) << 24;
    // Exponents are 120 larger in a float. The product is exact, for a subnormal number too.
    const float value = __uint_as_float(sign | (magnitude << 20)) * 1.329227995784916e36f;  // 2^120
    return magnitude == 0x7fu ? __uint_as_float(sign | 0x7fc00000u) : value;
  }
  __device__ static float8_e4m3_t from_bits(uint8_t bits) {
    float8_e4m3_t f;
    f.bits = bits;
    return f;
  }
};

// The upper byte of a half.
struct float8_e5m2_t {
  uint8_t bits;

  float8_e5m2_t() = default;
  __device__ explicit float8_e5m2_t(float value) {
    const uint32_t word = __float_as_uint(value);
    const uint32_t magnitude = word & 0x7fffffffu;
    uint32_t result;
#if __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
    result = pair;
    // From 61440 on, half way to the next power of two, the instruction gives the largest finite number.
    if (magnitude >= 0x47700000u) result = magnitude > 0x7f800000u ? 0x7f : 0x7c;
#else
    if (magnitude > 0x7f800000u) {
      result = 0x7f;
    } else if (magnitude >= (143u << 23)) {  // 65536
      result = 0x7c;
    } else if (magnitude < (113u << 23)) {
      result = __float_as_uint(__uint_as_float(magnitude) + 128.0f) - __float_as_uint(128.0f);
    } else {
      result = (magnitude - (112u << 23) + 0xfffffu + ((magnitude >> 21) & 1u)) >> 21;
    }
#endif
    bits = uint8_t(result | (word >> 31 << 7));
  }
  __device__ explicit operator float() const { return float(half_t::from_bits(uint16_t(bits << 8))); }
  __device__ static float8_e5m2_t from_bits(uint8_t bits) {
    float8_e5m2_t f;
    f.bits = bits;
    return f;
  }
};

template <class T>
inline constexpr bool kIsNarrowFloat =
    kSame<T, half_t> || kSame<T, bfloat16_t> || kSame<T, float8_e4m3_t> || kSame<T, float8_e5m2_t>;
template <class T>
inline constexpr bool kIsFloat = kSame<T, float> || kSame<T, double> || kIsNarrowFloat<T>;

// Rows of data that no arithmetic takes: they are loaded, stored and copied.
struct float8_e8m0_t {
  uint8_t bits;
  __device__ static float8_e8m0_t from_bits(uint8_t bits) { return {bits}; }
};
struct float4_e2m1_t {
  uint8_t bits;
  __device__ static float4_e2m1_t from_bits(uint8_t bits) { return {bits}; }
};
struct float4_e2m1x2_t {
  uint8_t bits;
  __device__ static float4_e2m1x2_t from_bits(uint8_t bits) { return {bits}; }
};

template <class R>
struct alignas(2 * sizeof(R)) complex_t {
  R real, imag;

  complex_t() = default;
  __device__ constexpr complex_t(R real, R imag = R(0)) : real(real), imag(imag) {}
};
using complex64_t = complex_t<float>;
using complex128_t = complex_t<double>;

template <class T>
inline constexpr bool kIsComplex = false;
template <class R>
inline constexpr bool kIsComplex<complex_t<R>> = true;

#endif
