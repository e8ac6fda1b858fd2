// Prints names, numbers and attributes.
#include <cmath>
#include <cstdlib>
#include <string>

#include "ir/scalar/numeric.h"
#include "ir/token/lex.h"
#include "ir/token/literal.h"
#include "ir/token/printer.h"

namespace fusebox {
namespace {

// Whether a number without a suffix may have this dtype.
bool is_default_dtype(Dtype dtype) { return dtype == Dtype::kIndex || dtype == Dtype::kDouble; }

}  // namespace

void Printer::add_name(char mark, std::string_view name) {
  add(mark);
  is_plain_name(name) ? add(name) : add(quoted(name));
}

void Printer::add_word(std::string_view name) { is_plain_word(name) ? add(name) : add(quoted(name)); }

void Printer::add_double(double value) {
  if (std::isnan(value)) return add("nan");
  if (std::isinf(value)) return add(value < 0 && !defects.has(Defect::kTextInfinity) ? "-inf" : "inf");
  if (value == 0 && std::signbit(value) && defects.has(Defect::kTextNegativeZero)) value = 0;
  char buffer[32];
  const char* end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  if (defects.has(Defect::kTextDigits))
    end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 6).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  add(text);
  if (text.find_first_of(".e") == std::string_view::npos) add(".0");
}

// Adds a float of this dtype, without a suffix. A narrow float is printed as the shortest text of its value as a float:
// the parser rounds this text to the same bits.
void Printer::add_number(Dtype dtype, uint64_t bits) {
  const ConstantBits constant{bits, 0};
  double value = to_double(dtype, constant);
  if (value == 0 && std::signbit(value) && defects.has(Defect::kTextNegativeZero)) value = 0;
  const bool has_bits = !std::isnan(value) || !defects.has(Defect::kTextNanBits);
  if (has_bits && std::isnan(value) && from_double(dtype, std::numeric_limits<double>::quiet_NaN()).low != bits) {
    char buffer[20] = {'0', 'x'};
    return add(std::string_view(
        buffer, static_cast<size_t>(std::to_chars(buffer + 2, buffer + sizeof buffer, bits, 16).ptr - buffer)));
  }
  if (std::isfinite(value) && fusebox::bits(dtype) == 64 && defects.has(Defect::kTextNineDigits)) {
    char digits[32];
    value = std::strtod(
        std::string(digits, std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 9).ptr)
            .c_str(),
        nullptr);
  }
  if (!std::isfinite(value) || fusebox::bits(dtype) == 64) return add_double(value);
  char buffer[32];
  const char* end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value)).ptr;
  if (defects.has(Defect::kTextDigits))
    end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value), std::chars_format::general, 6).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  add(text);
  if (text.find_first_of(".e") == std::string_view::npos) add(".0");
}

void Printer::add_literal(Dtype dtype, ConstantBits bits) {
  if (!is_canonical(dtype, bits) || row_of(dtype).kind == DtypeKind::kPacked) {
    char buffer[20] = {'0', 'x'};
    add(std::string_view(
        buffer, static_cast<size_t>(std::to_chars(buffer + 2, buffer + sizeof buffer, bits.low, 16).ptr - buffer)));
  } else {
    switch (row_of(dtype).kind) {
      case DtypeKind::kBoolean:
        return add(bits.low != 0 ? "true" : "false");
      case DtypeKind::kSigned:
        add_integer(static_cast<int64_t>(bits.low));
        break;
      case DtypeKind::kUnsigned:
        add_integer(bits.low);
        break;
      case DtypeKind::kComplex:
        add(text(dtype));
        add('(');
        add_number(real_of(dtype), bits.low);
        add(", ");
        add_number(real_of(dtype), bits.high);
        return add(')');
      case DtypeKind::kFloating:
      case DtypeKind::kPacked: {  // only floats come here: packed dtypes are printed above
        const size_t from = out.size();
        add_number(dtype, bits.low);
        if (dtype == Dtype::kDouble && out.compare(from, 2, "0x") != 0) return;
      }
    }
  }
  if (is_default_dtype(dtype) && is_integer(dtype)) return;
  add('_');
  add(text(dtype));
}

void Printer::add_attrs(const Attrs& attrs) {
  for (const Attr& a : attrs.list()) {
    if (&a == &attrs.list().back() && defects.has(Defect::kTextAttribute)) return;
    const AttrRow& row = row_of(a.key);
    add(' ');
    add(row.text);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&a.value)) {
      // Lists of enumerators are printed as their texts.
      const auto texts = a.key == AttrKey::kThreads      ? enum_texts<ParallelType>()
                         : a.key == AttrKey::kContiguity ? enum_texts<Contiguity>()
                                                         : std::span<const std::string_view>();
      add(" [");
      add_list(*list, [&](int64_t i) {
        i >= 0 && static_cast<uint64_t>(i) < texts.size() ? add(texts[static_cast<size_t>(i)]) : add_integer(i);
      });
      add(']');
    } else if (const auto* string = std::get_if<std::string>(&a.value)) {
      add(' ');
      add(quoted(*string));
    } else if (const auto* dtype = std::get_if<Dtype>(&a.value)) {
      add(' ');
      add(text(*dtype));
    } else {
      const int64_t value = std::get<int64_t>(a.value);
      const auto texts = enum_texts_of(row.kind);
      if (row.kind == AttrKind::kBool && value == 1) continue;
      add(' ');
      if (row.kind == AttrKind::kBool && value == 0) {
        add("false");
      } else if (value >= 0 && static_cast<uint64_t>(value) < texts.size()) {
        add(texts[static_cast<size_t>(value)]);
      } else {
        add_integer(value);
      }
    }
  }
}

void Printer::add_value(const Graph& g, ValueId value) {
  if (!value) return add('_');
  const Value& v = g[value];
  v.constant ? add_literal(v.dtype, *v.constant) : add_name('%', v.name);
}

std::string print_literal(Dtype dtype, ConstantBits bits) {
  Printer p;
  p.add_literal(dtype, bits);
  return std::move(p.out);
}

std::string print_value(const Graph& g, ValueId value) {
  Printer p;
  p.add_value(g, value);
  return std::move(p.out);
}

}  // namespace fusebox
