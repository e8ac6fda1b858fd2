// Numbers of every dtype, in software: the same bits on every machine. The functions read and make constants, convert
// them between dtypes, and convert elements of narrow floats fast.
//
// Invariants:
// - A conversion to a float rounds once, to nearest, ties to even. It gives the bits that PyTorch's scalar types give.
// - An integer that does not fit wraps. A float that does not fit an integer saturates, and NaN gives 0. Every value
//   but zero gives true.
// - float8 e4m3 has no infinity: what is beyond its largest number gives that number. float8 e8m0 has no sign and no
//   zero, and a tie goes up. float4 e2m1 has neither infinity nor NaN: it saturates at 6, and NaN gives 6.
//
//   from_double(Dtype::kHalf, 1.5).low == 0x3e00;  to_double(Dtype::kHalf, {0x3e00}) == 1.5
//   float_to_bfloat16(1.0f) == 0x3f80;  is_exact(Dtype::kHalf, 0.1) == false;  saturate<int8_t>(300.0) == 127
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ir/graph/graph.h"
#include "ir/table/dtype.h"

namespace fusebox {

// -- one constant. to_double and to_int64 take the real part of a complex number. The packed pair has no value: the
// conversions throw kUnsupportedDtype.
double to_double(Dtype dtype, ConstantBits bits);
std::complex<double> to_complex(Dtype dtype, ConstantBits bits);
int64_t to_int64(Dtype dtype, ConstantBits bits);  // uint64 keeps its bits
bool to_bool(Dtype dtype, ConstantBits bits);
ConstantBits from_double(Dtype dtype, double value);
ConstantBits from_int64(Dtype dtype, int64_t value);
ConstantBits from_uint64(Dtype dtype, uint64_t value);
ConstantBits from_complex(Dtype dtype, std::complex<double> value);  // a real dtype takes the real part
// Converts as the op `cast` does.
ConstantBits convert(Dtype from, ConstantBits bits, Dtype to);
// Whether the dtype holds this value; NaN counts as one value.
bool is_exact(Dtype dtype, double value);
// Whether the bits are as `ConstantBits` describes: extended, with nothing beyond the dtype's width.
bool is_canonical(Dtype dtype, ConstantBits bits);
ConstantBits canonical_bits(Dtype dtype, ConstantBits bits);

inline ConstantBits constant_bits(Dtype dtype, bool value) { return from_int64(dtype, value); }
inline ConstantBits constant_bits(Dtype dtype, int value) { return from_int64(dtype, value); }
inline ConstantBits constant_bits(Dtype dtype, int64_t value) { return from_int64(dtype, value); }
inline ConstantBits constant_bits(Dtype dtype, uint64_t value) { return from_uint64(dtype, value); }
inline ConstantBits constant_bits(Dtype dtype, double value) { return from_double(dtype, value); }
inline ConstantBits constant_bits(Dtype dtype, std::complex<double> value) { return from_complex(dtype, value); }

// -- float to integer
template <class Integer, class Float>
constexpr Integer saturate(Float value) {
  static_assert(std::is_integral_v<Integer> && std::is_floating_point_v<Float>);
  using Limits = std::numeric_limits<Integer>;
  // The largest value plus 1: a power of two, which any float with at least 8 exponent bits holds.
  constexpr Float above = static_cast<Float>(Limits::max() / 2 + 1) * Float(2);
  if (value != value) return 0;
  if (value >= above) return Limits::max();
  if constexpr (Limits::is_signed) {
    if (value < -above) return Limits::min();
  } else {
    if (value <= Float(-1)) return 0;
  }
  return static_cast<Integer>(value);
}

// -- half
inline float half_to_float(uint16_t half) {
  const uint32_t w = static_cast<uint32_t>(half) << 16;
  const uint32_t sign = w & 0x80000000u;
  const uint32_t two_w = w + w;
  // A normal number, infinity or NaN: move the exponent, then scale. A subnormal: a float subtraction normalises it.
  const uint32_t exponent_offset = 0xe0u << 23;
  const float normal = std::bit_cast<float>((two_w >> 4) + exponent_offset) * 0x1.0p-112f;
  const float subnormal = std::bit_cast<float>((two_w >> 17) | (126u << 23)) - 0.5f;
  const uint32_t bits = two_w < (1u << 27) ? std::bit_cast<uint32_t>(subnormal) : std::bit_cast<uint32_t>(normal);
  return std::bit_cast<float>(sign | bits);
}

inline uint16_t float_to_half(float value) {
  const uint32_t w = std::bit_cast<uint32_t>(value);
  const uint32_t shifted = w + w;
  const uint32_t sign = w & 0x80000000u;
  // Scaling up and down turns a number that is too large into infinity. Adding a bias aligned to the result rounds it.
  float base = (std::bit_cast<float>(w & 0x7fffffffu) * 0x1.0p+112f) * 0x1.0p-110f;
  uint32_t bias = shifted & 0xff000000u;
  if (bias < 0x71000000u) bias = 0x71000000u;
  base = std::bit_cast<float>((bias >> 1) + 0x07800000u) + base;
  const uint32_t bits = std::bit_cast<uint32_t>(base);
  const uint32_t nonsign = ((bits >> 13) & 0x7c00u) + (bits & 0x0fffu);
  return static_cast<uint16_t>((sign >> 16) | (shifted > 0xff000000u ? 0x7e00u : nonsign));
}

// -- bfloat16
inline float bfloat16_to_float(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

inline uint16_t float_to_bfloat16(float value) {
  if (value != value) return 0x7fc0;
  const uint32_t w = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((w + 0x7fffu + ((w >> 16) & 1)) >> 16);
}

// -- float8 e4m3 (fn): 4 exponent bits with bias 7, largest 448 (0x7e), NaN 0x7f
inline float float8_e4m3_to_float(uint8_t value) {
  const uint32_t magnitude = value & 0x7fu;
  const uint32_t sign = static_cast<uint32_t>(value & 0x80u) << 24;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7ff00000u);
  if (magnitude < 8)
    return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1.0p-9f) | sign);
  return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
}

inline uint8_t float_to_float8_e4m3(float value) {
  uint32_t w = std::bit_cast<uint32_t>(value);
  const uint32_t sign = w & 0x80000000u;
  w ^= sign;
  uint32_t result = 0x7f;
  if (w <= 0x7f800000u) {
    w = w < (1086u << 20) ? w : 1086u << 20;  // 448
    if (w < (121u << 23)) {
      const uint32_t align = 141u << 23;
      result = std::bit_cast<uint32_t>(std::bit_cast<float>(w) + std::bit_cast<float>(align)) - align;
    } else {
      result = (w - (120u << 23) + 0x7ffffu + ((w >> 20) & 1)) >> 20;
    }
  }
  return static_cast<uint8_t>(result | (sign >> 24));
}

// -- float8 e5m2: the upper byte of a half
inline float float8_e5m2_to_float(uint8_t value) { return half_to_float(static_cast<uint16_t>(value << 8)); }

inline uint8_t float_to_float8_e5m2(float value) {
  uint32_t w = std::bit_cast<uint32_t>(value);
  const uint32_t sign = w & 0x80000000u;
  w ^= sign;
  uint32_t result = 0;
  if (w >= (143u << 23)) {  // 65536
    result = w > 0x7f800000u ? 0x7f : 0x7c;
  } else if (w < (113u << 23)) {
    const uint32_t align = 134u << 23;
    result = std::bit_cast<uint32_t>(std::bit_cast<float>(w) + std::bit_cast<float>(align)) - align;
  } else {
    result = (w - (112u << 23) + 0xfffffu + ((w >> 21) & 1)) >> 21;
  }
  return static_cast<uint8_t>(result | (sign >> 24));
}

// -- float8 e8m0 (fnu): an exponent, 2^(value − 127); 255 is NaN
inline float float8_e8m0_to_float(uint8_t value) {
  if (value == 0) return 0x1.0p-127f;
  if (value == 0xff) return std::bit_cast<float>(0x7f800001u);
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 23);
}

inline uint8_t float_to_float8_e8m0(float value) {
  const uint32_t w = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = (w >> 23) & 0xff;
  if (exponent == 0xff) return 0xff;
  const uint32_t mantissa = w & 0x7fffffu;
  // A tie goes up, except the tie between 0 and the smallest number.
  const bool up = mantissa > 0x400000u || (mantissa == 0x400000u && exponent > 0);
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

// -- float4 e2m1: 0 0.5 1 1.5 2 3 4 6, and a sign
inline float float4_e2m1_to_float(uint8_t value) {
  constexpr float kMagnitudes[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float magnitude = kMagnitudes[value & 7];
  return (value & 8) != 0 ? -magnitude : magnitude;
}

inline uint8_t float_to_float4_e2m1(float value) {
  const uint32_t w = std::bit_cast<uint32_t>(value);
  const float magnitude = std::bit_cast<float>(w & 0x7fffffffu);
  uint32_t result = 7;
  if (magnitude <= 0.25f)
    result = 0;
  else if (magnitude < 0.75f)
    result = 1;
  else if (magnitude <= 1.25f)
    result = 2;
  else if (magnitude < 1.75f)
    result = 3;
  else if (magnitude <= 2.5f)
    result = 4;
  else if (magnitude < 3.5f)
    result = 5;
  else if (magnitude <= 5.0f)
    result = 6;
  return static_cast<uint8_t>(result | (w >> 31 << 3));
}

// -- a wider number converted to a float on its way to a narrower one. It is rounded to odd, so that the second
// rounding gives the right bits.
inline float float_round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (value != value || static_cast<double>(nearest) == value) return nearest;
  uint32_t w = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --w;  // towards zero
  return std::bit_cast<float>(w | 1);
}

inline double double_round_to_odd(uint64_t value) {
  // Keep 53 bits and remember whether any lower one was set.
  const int excess = 11 - std::countl_zero(value | 1);
  if (excess <= 0) return static_cast<double>(value);
  const uint64_t kept = value >> excess << excess;
  return static_cast<double>(kept != value ? kept | (uint64_t{1} << excess) : kept);
}

inline double double_round_to_odd(int64_t value) {
  return value < 0 ? -double_round_to_odd(~static_cast<uint64_t>(value) + 1)
                   : double_round_to_odd(static_cast<uint64_t>(value));
}

inline uint16_t double_to_half(double value) { return float_to_half(float_round_to_odd(value)); }
inline uint16_t double_to_bfloat16(double value) { return float_to_bfloat16(float_round_to_odd(value)); }
inline uint8_t double_to_float8_e4m3(double value) { return float_to_float8_e4m3(float_round_to_odd(value)); }
inline uint8_t double_to_float8_e5m2(double value) { return float_to_float8_e5m2(float_round_to_odd(value)); }

// -- every dtype as a type: `Memory` holds an element. A float also has `value` (bits to number) and `bits` (number to
// bits). A complex dtype has those of its parts.
template <Dtype dtype>
struct NumberOf;

template <class T>
struct WholeNumber {
  using Memory = T;
};
template <class T, float (*to_float)(T), T (*from_float)(float)>
struct NarrowFloat {
  using Memory = T;
  static double value(T bits) { return to_float(bits); }
  static T bits(double value) { return from_float(float_round_to_odd(value)); }
};
template <class T, class Float>
struct NativeFloat {
  using Memory = T;
  static double value(T bits) { return std::bit_cast<Float>(bits); }
  static T bits(double value) { return std::bit_cast<T>(static_cast<Float>(value)); }
};

// clang-format off
template <> struct NumberOf<Dtype::kBool> : WholeNumber<uint8_t> {};
template <> struct NumberOf<Dtype::kInt8> : WholeNumber<int8_t> {};
template <> struct NumberOf<Dtype::kInt16> : WholeNumber<int16_t> {};
template <> struct NumberOf<Dtype::kInt32> : WholeNumber<int32_t> {};
template <> struct NumberOf<Dtype::kInt64> : WholeNumber<int64_t> {};
template <> struct NumberOf<Dtype::kIndex> : WholeNumber<int64_t> {};
template <> struct NumberOf<Dtype::kUint8> : WholeNumber<uint8_t> {};
template <> struct NumberOf<Dtype::kUint16> : WholeNumber<uint16_t> {};
template <> struct NumberOf<Dtype::kUint32> : WholeNumber<uint32_t> {};
template <> struct NumberOf<Dtype::kUint64> : WholeNumber<uint64_t> {};
template <> struct NumberOf<Dtype::kHalf> : NarrowFloat<uint16_t, half_to_float, float_to_half> {};
template <> struct NumberOf<Dtype::kBfloat16> : NarrowFloat<uint16_t, bfloat16_to_float, float_to_bfloat16> {};
template <> struct NumberOf<Dtype::kFloat> : NativeFloat<uint32_t, float> {};
template <> struct NumberOf<Dtype::kDouble> : NativeFloat<uint64_t, double> {};
template <> struct NumberOf<Dtype::kComplexFloat> : NumberOf<Dtype::kFloat> {};
template <> struct NumberOf<Dtype::kComplexDouble> : NumberOf<Dtype::kDouble> {};
template <> struct NumberOf<Dtype::kFloat8E4m3> : NarrowFloat<uint8_t, float8_e4m3_to_float, float_to_float8_e4m3> {};
template <> struct NumberOf<Dtype::kFloat8E5m2> : NarrowFloat<uint8_t, float8_e5m2_to_float, float_to_float8_e5m2> {};
template <> struct NumberOf<Dtype::kFloat8E8m0> : NarrowFloat<uint8_t, float8_e8m0_to_float, float_to_float8_e8m0> {};
template <> struct NumberOf<Dtype::kFloat4E2m1> : NarrowFloat<uint8_t, float4_e2m1_to_float, float_to_float4_e2m1> {};
template <> struct NumberOf<Dtype::kFloat4E2m1x2> : WholeNumber<uint8_t> {};
// clang-format on

// Whether NumberOf has `value` and `bits`.
template <Dtype dtype>
inline constexpr bool kIsFloatFormat = requires { NumberOf<dtype>::bits(0.0); };

// Calls `visit.operator()<dtype>()`.
template <class Visit>
decltype(auto) visit_dtype(Dtype dtype, Visit&& visit) {
  switch (dtype) {
#define FUSEBOX_DTYPE(name, text, bits, kind, use, cpp, aten, format) \
  case Dtype::name:                                                   \
    return visit.template operator()<Dtype::name>();
#include "ir/table/dtype_table.inc"
#undef FUSEBOX_DTYPE
  }
  return visit.template operator()<Dtype::kBool>();
}

// Rounds to the nearest number of a float dtype or of a complex dtype's parts. Other dtypes leave the value as it is.
inline double round_to(Dtype dtype, double value) {
  return visit_dtype(dtype, [&]<Dtype d>() -> double {
    if constexpr (kIsFloatFormat<d>)
      return NumberOf<d>::value(NumberOf<d>::bits(value));
    else
      return value;
  });
}

}  // namespace fusebox
