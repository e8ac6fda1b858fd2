#include "ir/scalar/numeric.h"

#include "ir/table/error.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

[[noreturn]] void refuse(Dtype dtype) {
  throw Error(ErrorCode::kUnsupportedDtype,
              "an element of dtype " + std::string(text(dtype)) + " is not one number; use f4e2m1 for a single value");
}

uint64_t low_mask(int width) { return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

// Converts the bits of a float of this dtype to a double; `float_bits` converts back.
double float_value(Dtype dtype, uint64_t bits) {
  return visit_dtype(dtype, [&]<Dtype d>() -> double {
    if constexpr (kIsFloatFormat<d>)
      return NumberOf<d>::value(static_cast<typename NumberOf<d>::Memory>(bits));
    else
      refuse(d);
  });
}

uint64_t float_bits(Dtype dtype, double value) {
  return visit_dtype(dtype, [&]<Dtype d>() -> uint64_t {
    if constexpr (kIsFloatFormat<d>)
      return NumberOf<d>::bits(value);
    else
      refuse(d);
  });
}

// Wraps any 64-bit integer to an integer dtype.
uint64_t wrap(Dtype dtype, uint64_t value) {
  const int width = bits(dtype);
  value &= low_mask(width);
  if (is_signed(dtype) && width < 64 && (value >> (width - 1)) != 0) value |= ~low_mask(width);
  return value;
}

uint64_t saturate_to(Dtype dtype, double value) {
  return visit_dtype(dtype, [&]<Dtype d>() -> uint64_t {
    using Memory = typename NumberOf<d>::Memory;
    return static_cast<uint64_t>(saturate<Memory>(value));
  });
}

// A constant from an integer. For a float narrower than a double, the integer is first rounded to odd, because a second
// rounding follows.
template <class Integer>
ConstantBits from_integer(Dtype dtype, Integer value) {
  switch (row_of(dtype).kind) {
    case DtypeKind::kBoolean:
      return {value != 0, 0};
    case DtypeKind::kSigned:
    case DtypeKind::kUnsigned:
      return {wrap(dtype, static_cast<uint64_t>(value)), 0};
    case DtypeKind::kFloating:
    case DtypeKind::kComplex:
      return {bits(real_of(dtype)) == 64 ? float_bits(dtype, static_cast<double>(value))
                                         : float_bits(dtype, double_round_to_odd(value)),
              0};
    case DtypeKind::kPacked:
      break;
  }
  refuse(dtype);
}

}  // namespace

double to_double(Dtype dtype, ConstantBits bits) {
  switch (row_of(dtype).kind) {
    case DtypeKind::kBoolean:
    case DtypeKind::kUnsigned:
      return static_cast<double>(bits.low);
    case DtypeKind::kSigned:
      return static_cast<double>(static_cast<int64_t>(bits.low));
    case DtypeKind::kFloating:
    case DtypeKind::kComplex:
      return float_value(dtype, bits.low);
    case DtypeKind::kPacked:
      break;
  }
  refuse(dtype);
}

std::complex<double> to_complex(Dtype dtype, ConstantBits bits) {
  return {to_double(dtype, bits), is_complex(dtype) ? float_value(dtype, bits.high) : 0.0};
}

int64_t to_int64(Dtype dtype, ConstantBits bits) {
  if (is_boolean(dtype) || is_integer(dtype)) return static_cast<int64_t>(bits.low);
  return saturate<int64_t>(to_double(dtype, bits));
}

bool to_bool(Dtype dtype, ConstantBits bits) {
  if (is_boolean(dtype) || is_integer(dtype)) return bits.low != 0;
  return to_double(dtype, bits) != 0 || (is_complex(dtype) && float_value(dtype, bits.high) != 0);
}

ConstantBits from_double(Dtype dtype, double value) {
  switch (row_of(dtype).kind) {
    case DtypeKind::kBoolean:
      return {value != 0, 0};
    case DtypeKind::kSigned:
    case DtypeKind::kUnsigned:
      return {saturate_to(dtype, value), 0};
    case DtypeKind::kFloating:
    case DtypeKind::kComplex:
      return {float_bits(dtype, value), 0};
    case DtypeKind::kPacked:
      break;
  }
  refuse(dtype);
}

ConstantBits from_int64(Dtype dtype, int64_t value) { return from_integer(dtype, value); }
ConstantBits from_uint64(Dtype dtype, uint64_t value) { return from_integer(dtype, value); }

ConstantBits from_complex(Dtype dtype, std::complex<double> value) {
  if (is_boolean(dtype)) return {value.real() != 0 || value.imag() != 0, 0};
  ConstantBits result = from_double(dtype, value.real());
  if (is_complex(dtype)) result.high = float_bits(dtype, value.imag());
  return result;
}

ConstantBits convert(Dtype from, ConstantBits bits, Dtype to) {
  if (from == to) return bits;
  if (is_boolean(to)) return {to_bool(from, bits), 0};
  if (from == Dtype::kUint64) return from_uint64(to, bits.low);
  if (is_boolean(from) || is_integer(from)) return from_int64(to, static_cast<int64_t>(bits.low));
  if (is_complex(from)) return from_complex(to, to_complex(from, bits));
  return from_double(to, to_double(from, bits));
}

bool is_exact(Dtype dtype, double value) {
  if (value != value) return has_nan(dtype);
  // 2^63 (signed) or 2^64 (unsigned) saturates to the largest integer, and this integer converts back to the same
  // double: the comparison below would not notice.
  if (is_integer(dtype) && bits(dtype) == 64 && value >= (is_signed(dtype) ? 0x1.0p63 : 0x1.0p64)) return false;
  return to_double(dtype, from_double(dtype, value)) == value;
}

ConstantBits canonical_bits(Dtype dtype, ConstantBits b) {
  switch (row_of(dtype).kind) {
    case DtypeKind::kBoolean:
      return {b.low & 1, 0};
    case DtypeKind::kSigned:
    case DtypeKind::kUnsigned:
      return {wrap(dtype, b.low), 0};
    case DtypeKind::kFloating:
    case DtypeKind::kPacked:
      return {b.low & low_mask(bits(dtype)), 0};
    case DtypeKind::kComplex:
      return {b.low & low_mask(bits(dtype) / 2), b.high & low_mask(bits(dtype) / 2)};
  }
  return b;
}

bool is_canonical(Dtype dtype, ConstantBits bits) { return canonical_bits(dtype, bits) == bits; }

}  // namespace fusebox
