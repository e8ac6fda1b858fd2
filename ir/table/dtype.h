// Element dtypes: one row each in dtype_table.inc. `index` is the type of sizes, strides and loop indices: 64 bits in
// data, 32 or 64 in a kernel, chosen from the inputs when it is lowered.
//
// Limits, rounding, exact conversion and the text of numbers go by the row's float format, so that a new float needs its
// row and its two conversions (NumberOf, ir/scalar/numeric.h).
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

// What no op but set, metadata and copies takes yet exists as data only.
enum class DtypeUse : uint8_t { kArithmetic, kStorage };

// Bits of a float, from the top: a sign, an exponent with a bias, a mantissa behind a leading 1 that is not stored. With
// exponent 0 the leading digit is 0. A float without a sign has no zero, and its exponent 0 is one like any other.
struct FloatFormat {
  enum Besides : uint8_t { kSign = 1, kInfinity = 2, kNan = 4 };

  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  double largest = 0;  // finite
  uint8_t besides = 0;
  double overflow = 0;  // the power of two behind the largest number; the largest number itself of a double

  constexpr bool has(Besides what) const { return (besides & what) != 0; }
  constexpr bool is_none() const { return exponent_bits == 0; }
  // Significant bits of a normal number.
  constexpr int digits() const { return mantissa_bits + 1; }
  // The exponents of the smallest normal number, of the smallest bit, and of the largest number.
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
  FloatFormat format;  // of a float or of the parts of a complex number; is_none() for the others
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
// Bytes of one element in memory; float4 takes a whole byte when it stands alone.
inline int64_t size_bytes(Dtype d) { return (row_of(d).bits + 7) / 8; }
std::optional<Dtype> parse_dtype(std::string_view text);

inline bool is_boolean(Dtype d) { return d == Dtype::kBool; }
inline bool is_integer(Dtype d) {
  return row_of(d).kind == DtypeKind::kSigned || row_of(d).kind == DtypeKind::kUnsigned;
}
inline bool is_signed(Dtype d) { return row_of(d).kind == DtypeKind::kSigned; }
inline bool is_floating(Dtype d) { return row_of(d).kind == DtypeKind::kFloating; }
inline bool is_complex(Dtype d) { return row_of(d).kind == DtypeKind::kComplex; }
// Floating dtypes of at most 16 bits: computed in float and rounded to the declared dtype after each op.
inline bool is_reduced_float(Dtype d) { return is_floating(d) && bits(d) <= 16; }
inline bool is_storage_only(Dtype d) { return row_of(d).use == DtypeUse::kStorage; }
inline const FloatFormat& format_of(Dtype d) { return row_of(d).format; }
inline bool has_infinity(Dtype d) { return format_of(d).has(FloatFormat::kInfinity); }
inline bool has_nan(Dtype d) { return format_of(d).has(FloatFormat::kNan); }
// The real dtype of a complex one's parts; any other dtype is itself.
Dtype real_of(Dtype d);
// The dtype in which arithmetic on `d` is carried out: float for reduced floats, else `d`.
Dtype compute_dtype(Dtype d);
// Type promotion as ATen's for two tensors of equal rank class: bool < integers < floating < complex, the wider of a
// class, half with bfloat16 gives float, a float8 with another float gives the other, uint64 with a signed integer
// gives float as ATen refuses it: here kDtypeMismatch.
Dtype promote(Dtype a, Dtype b);

}  // namespace fusebox
