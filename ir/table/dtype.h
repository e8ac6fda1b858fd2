// Element dtypes: one row each in dtype_table.inc. `index` is the dtype of sizes, strides and loop indices. It has 64
// bits in data. In a kernel it has 32 or 64: lowering chooses the width from the inputs.
//
// Invariants: limits, rounding, exact conversion and the text of numbers follow from the row's float format. A new
// float therefore needs only its row and its two conversions (NumberOf, ir/scalar/numeric.h).
//
//   bits(Dtype::kBfloat16) == 16;  text(Dtype::kBfloat16) == "bf16";  parse_dtype("bf16") == Dtype::kBfloat16
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fusebox {

enum class Dtype : uint8_t {
#define FUSEBOX_DTYPE(name, text, bits, kind, use, cpp, aten, format) name,
#include "ir/table/dtype_table.inc"
#undef FUSEBOX_DTYPE
};

enum class DtypeKind : uint8_t { kBoolean, kSigned, kUnsigned, kFloating, kComplex, kPacked };

// A kStorage dtype exists as data only: ops move its elements (set, reshape, gather, …), and none computes with them.
enum class DtypeUse : uint8_t { kArithmetic, kStorage };

// The bits of a float, from the top: sign, exponent, mantissa. The stored exponent is the exponent plus `bias`. The
// leading digit before the mantissa is not stored: it is 1, or 0 if the stored exponent is 0. A float without a sign
// has no zero, and its leading digit is always 1.
struct FloatFormat {
  enum Besides : uint8_t { kSign = 1, kInfinity = 2, kNan = 4 };

  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  double largest = 0;  // finite
  uint8_t besides = 0;
  double overflow = 0;  // the power of two above the largest number; for a double, the largest number itself

  constexpr bool has(Besides what) const { return (besides & what) != 0; }
  constexpr bool is_none() const { return exponent_bits == 0; }
  // Significant bits of a normal number.
  constexpr int digits() const { return mantissa_bits + 1; }
  // The exponents of the smallest normal number, of the lowest bit of a subnormal one, and of the largest number.
  constexpr int least_exponent() const { return (has(kSign) ? 1 : 0) - bias; }
  constexpr int lowest_bit() const { return least_exponent() - mantissa_bits; }
  int largest_exponent() const { return std::ilogb(largest); }
};

constexpr double overflow_behind(double largest) {
  double power = 1;
  while (power <= largest && power < 0x1p1023) power *= 2;
  return power > largest ? power : largest;
}

struct DtypeRow {
  Dtype dtype;
  std::string_view text;
  int bits;
  DtypeKind kind;
  DtypeUse use;
  std::string_view cpp;
  std::string_view aten;
  FloatFormat format;  // the format of a float, or of a complex number's parts; is_none() for other dtypes
};

#define NONE \
  FloatFormat {}
#define F(exponent, mantissa, bias, largest, besides) \
  FloatFormat { exponent, mantissa, bias, largest, besides, overflow_behind(largest) }
inline constexpr auto kDtypeRows = [] {
  using enum FloatFormat::Besides;
  return std::to_array<DtypeRow>({
#define FUSEBOX_DTYPE(name, text, bits, kind, use, cpp, aten, format) \
  {Dtype::name, text, bits, DtypeKind::kind, DtypeUse::use, cpp, aten, format},
#include "ir/table/dtype_table.inc"
#undef FUSEBOX_DTYPE
  });
}();
#undef NONE
#undef F

inline std::span<const DtypeRow> dtype_rows() { return kDtypeRows; }
inline const DtypeRow& row_of(Dtype d) { return kDtypeRows[static_cast<size_t>(d)]; }
inline std::string_view text(Dtype d) { return row_of(d).text; }
inline int bits(Dtype d) { return row_of(d).bits; }
// Bytes of one element in memory. A single float4 takes a whole byte.
inline int64_t size_bytes(Dtype d) { return (row_of(d).bits + 7) / 8; }
std::optional<Dtype> parse_dtype(std::string_view text);

inline bool is_boolean(Dtype d) { return d == Dtype::kBool; }
inline bool is_integer(Dtype d) {
  return row_of(d).kind == DtypeKind::kSigned || row_of(d).kind == DtypeKind::kUnsigned;
}
inline bool is_signed(Dtype d) { return row_of(d).kind == DtypeKind::kSigned; }
inline bool is_floating(Dtype d) { return row_of(d).kind == DtypeKind::kFloating; }
inline bool is_complex(Dtype d) { return row_of(d).kind == DtypeKind::kComplex; }
// Floating dtypes of at most 16 bits. An op computes them in float and rounds the result to its declared dtype.
inline bool is_reduced_float(Dtype d) { return is_floating(d) && bits(d) <= 16; }
inline bool is_storage_only(Dtype d) { return row_of(d).use == DtypeUse::kStorage; }
inline const FloatFormat& format_of(Dtype d) { return row_of(d).format; }
inline bool has_infinity(Dtype d) { return format_of(d).has(FloatFormat::kInfinity); }
inline bool has_nan(Dtype d) { return format_of(d).has(FloatFormat::kNan); }
// The dtype of a complex number's parts. Any other dtype is returned as it is.
Dtype real_of(Dtype d);
// The dtype in which ops on `d` compute: float for reduced floats, else `d`.
Dtype compute_dtype(Dtype d);
// The dtype in which two tensors meet, by ATen's rules. Classes are ordered bool < integers < floating < complex. The
// higher class wins; within a class the wider dtype wins, with these exceptions:
// - a signed and an unsigned integer give the narrowest signed integer that holds both;
// - half with bfloat16, and two different floats of at most 8 bits, give float;
// - complex64 with double gives complex128;
// - index counts as int64 beside another integer.
// Throws kDtypeMismatch if no dtype holds both: uint64 with a signed integer, or a packed dtype with another one.
Dtype promote(Dtype a, Dtype b);

}  // namespace fusebox
