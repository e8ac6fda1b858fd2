#include "ir/table/dtype.h"

#include <algorithm>
#include <string>

#include "ir/table/error.h"

namespace fusebox {
namespace {

// A float's fields fill its width. Other dtypes have no format.
constexpr bool is_consistent(const DtypeRow& row) {
  const FloatFormat& f = row.format;
  const int width = row.kind == DtypeKind::kComplex ? row.bits / 2 : row.bits;
  const bool is_float = row.kind == DtypeKind::kFloating || row.kind == DtypeKind::kComplex;
  if (!is_float) return f.exponent_bits == 0;
  return (f.besides & FloatFormat::kSign) + f.exponent_bits + f.mantissa_bits == width && f.largest > 0;
}
#define FUSEBOX_DTYPE(name, text, bits, kind, use, cpp, aten, format)        \
  static_assert(is_consistent(kDtypeRows[static_cast<size_t>(Dtype::name)]), \
                text ": the fields of its format miss its width");
#include "ir/table/dtype_table.inc"
#undef FUSEBOX_DTYPE

[[noreturn]] void refuse(Dtype a, Dtype b) {
  throw Error(ErrorCode::kDtypeMismatch, "no dtype holds both " + std::string(text(a)) + " and " +
                                             std::string(text(b)) + "; cast one of them first");
}

// bool < integers < floats < complex numbers < packed dtypes
int class_of(Dtype d) {
  switch (row_of(d).kind) {
    case DtypeKind::kBoolean:
      return 0;
    case DtypeKind::kSigned:
    case DtypeKind::kUnsigned:
      return 1;
    case DtypeKind::kFloating:
      return 2;
    case DtypeKind::kComplex:
      return 3;
    case DtypeKind::kPacked:
      return 4;
  }
  return 4;
}

Dtype signed_of_bits(int bits) {
  return bits <= 8 ? Dtype::kInt8 : bits <= 16 ? Dtype::kInt16 : bits <= 32 ? Dtype::kInt32 : Dtype::kInt64;
}

Dtype promote_integers(Dtype a, Dtype b) {
  if (a == Dtype::kIndex) a = Dtype::kInt64;
  if (b == Dtype::kIndex) b = Dtype::kInt64;
  if (is_signed(a) == is_signed(b)) return bits(a) >= bits(b) ? a : b;
  const Dtype with_sign = is_signed(a) ? a : b;
  const Dtype without = is_signed(a) ? b : a;
  if (bits(with_sign) > bits(without)) return with_sign;
  if (bits(without) == 64) refuse(a, b);
  return signed_of_bits(2 * bits(without));
}

Dtype promote_floats(Dtype a, Dtype b) {
  const int bits_a = bits(a), bits_b = bits(b);
  // Neither of two floats of one width holds the other; two floats of at most 8 bits count as such.
  if (bits_a == bits_b || (bits_a <= 8 && bits_b <= 8)) return Dtype::kFloat;
  return bits_a > bits_b ? a : b;
}

}  // namespace

std::optional<Dtype> parse_dtype(std::string_view text) {
  for (const DtypeRow& row : kDtypeRows)
    if (row.text == text) return row.dtype;
  return std::nullopt;
}

Dtype real_of(Dtype d) {
  if (d == Dtype::kComplexFloat) return Dtype::kFloat;
  if (d == Dtype::kComplexDouble) return Dtype::kDouble;
  return d;
}

Dtype compute_dtype(Dtype d) { return is_reduced_float(d) ? Dtype::kFloat : d; }

Dtype promote(Dtype a, Dtype b) {
  if (a == b) return a;
  const int class_a = class_of(a), class_b = class_of(b);
  if (class_a == 4 || class_b == 4) refuse(a, b);
  if (class_a == class_b) {
    if (class_a == 1) return promote_integers(a, b);
    if (class_a == 2) return promote_floats(a, b);
    return bits(a) >= bits(b) ? a : b;
  }
  const Dtype high = class_a > class_b ? a : b;
  const Dtype low = class_a > class_b ? b : a;
  // The higher class keeps its width, except that the parts of a complex number must hold a double.
  if (high == Dtype::kComplexFloat && low == Dtype::kDouble) return Dtype::kComplexDouble;
  return high;
}

}  // namespace fusebox
