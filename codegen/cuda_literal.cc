#include <bit>
#include <charconv>
#include <cmath>

#include "codegen/cuda_expression.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

std::string hex(uint64_t value) {
  char text[20];
  const auto end = std::to_chars(text, text + sizeof text, value, 16);
  return "0x" + std::string(text, end.ptr);
}

// The shortest text that reads back as the same number.
template <class Float>
std::string shortest(Float value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);
  std::string result(text, end.ptr);
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

std::string by_bits(float value) { return "__uint_as_float(" + hex(std::bit_cast<uint32_t>(value)) + "u)"; }
std::string by_bits(double value) { return "__longlong_as_double(" + hex(std::bit_cast<uint64_t>(value)) + ")"; }

std::string float_literal(float value) { return std::isfinite(value) ? shortest(value) + "f" : by_bits(value); }
std::string double_literal(double value) { return std::isfinite(value) ? shortest(value) : by_bits(value); }

std::string integer_literal(Dtype dtype, uint64_t bits, bool bare) {
  const int64_t value = static_cast<int64_t>(bits);
  const bool is_int = value > INT32_MIN && value <= INT32_MAX;
  if (is_int && (dtype == Dtype::kInt32 || (dtype == Dtype::kIndex && bare))) return std::to_string(value);
  std::string digits;
  if (!is_signed(dtype))
    digits = std::to_string(bits) + "u";
  else if (value == INT64_MIN)
    digits = "-9223372036854775807 - 1";  // C++ has no negative literals
  else
    digits = std::to_string(value);
  return std::string(cuda_type(dtype)) + "(" + digits + ")";
}

}  // namespace

std::string cuda_literal(Dtype dtype, ConstantBits bits, bool bare) {
  switch (row_of(dtype).kind) {
    case DtypeKind::kBoolean:
      return bits.low != 0 ? "true" : "false";
    case DtypeKind::kSigned:
    case DtypeKind::kUnsigned:
      return integer_literal(dtype, bits.low, bare);
    case DtypeKind::kFloating:
      if (dtype == Dtype::kFloat) return float_literal(std::bit_cast<float>(static_cast<uint32_t>(bits.low)));
      if (dtype == Dtype::kDouble) return double_literal(std::bit_cast<double>(bits.low));
      {
        const double value = to_double(dtype, bits);
        const std::string note = std::isfinite(value) ? " /* " + shortest(value) + " */" : "";
        return std::string(cuda_type(dtype)) + "::from_bits(" + hex(bits.low) + note + ")";
      }
    case DtypeKind::kComplex: {
      const bool is_float = dtype == Dtype::kComplexFloat;
      const auto part = [&](uint64_t b) {
        return is_float ? float_literal(std::bit_cast<float>(static_cast<uint32_t>(b)))
                        : double_literal(std::bit_cast<double>(b));
      };
      return std::string(cuda_type(dtype)) + "(" + part(bits.low) + ", " + part(bits.high) + ")";
    }
    case DtypeKind::kPacked:
      return std::string(cuda_type(dtype)) + "::from_bits(" + hex(bits.low) + ")";
  }
  throw Error(ErrorCode::kInternal, "a literal of an unknown dtype");
}

std::string cuda_convert(std::string text, Dtype from, Dtype to, CudaHeaders& headers) {
  if (from == to) return text;
  if (is_storage_only(from) || is_storage_only(to))
    throw Error(ErrorCode::kUnsupportedDtype, "no conversion from " + std::string(fusebox::text(from)) + " to " +
                                                  std::string(fusebox::text(to)) + " yet");
  const std::string call = std::string(cuda_type(to)) + "(" + text + ")";
  const bool from_narrow = is_reduced_float(from), to_narrow = is_reduced_float(to);
  const bool from_whole = is_integer(from) || is_boolean(from);
  const bool complex = is_complex(from) || is_complex(to);
  // C++'s own conversion does what `cast` says.
  const bool halves = from == Dtype::kDouble && to == Dtype::kFloat;  // see `apart` in convert.cuh
  if (!complex && !to_narrow && !from_narrow && !halves && (from_whole || is_floating(to) || is_boolean(to)))
    return call;
  if (from_narrow && to == Dtype::kFloat) return call;
  if (to_narrow && from == Dtype::kFloat) return call;
  headers.need(CudaHeader::kConvert);
  return "cast<" + std::string(cuda_type(to)) + ">(" + text + ")";
}

std::string cuda_term(const CudaTerm& term, Dtype to, CudaHeaders& headers, bool bare) {
  if (!term.constant) return cuda_convert(term.text, term.dtype, to, headers);
  return cuda_literal(to, convert(term.dtype, *term.constant, to), bare);
}

std::string cuda_divisor(const CudaTerm& term, Dtype to, CudaHeaders& headers) {
  if (term.constant) {
    const ConstantBits bits = convert(term.dtype, *term.constant, to);
    const float f = std::bit_cast<float>(static_cast<uint32_t>(bits.low));
    const double d = std::bit_cast<double>(bits.low);
    if (to == Dtype::kFloat && f == 0) return by_bits(f);
    if (to == Dtype::kDouble && d == 0) return by_bits(d);
  }
  return cuda_term(term, to, headers);
}

}  // namespace fusebox
