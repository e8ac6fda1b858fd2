// Reads words, numbers, literals and attributes.
#include <algorithm>
#include <cmath>

#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "ir/text/parser.h"

namespace fusebox {
namespace {

std::string_view checked_size(std::string_view text) {
  if (text.size() > kMaxTextBytes)
    throw Error(ErrorCode::kTooLarge, "the text is longer than 256 MiB; split it", "1:1");
  return text;
}

std::string found(const Token& t) {
  switch (t.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kNewline:
      return "the end of the line";
    case TokenKind::kValue:
      return "`%" + std::string(t.text.substr(0, 60)) + "`";
    case TokenKind::kGraphName:
      return "`@" + std::string(t.text.substr(0, 60)) + "`";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kWord:
    case TokenKind::kNumber:
    case TokenKind::kPunctuation:
    case TokenKind::kArrow:
      break;
  }
  return "`" + std::string(t.text.substr(0, 60)) + "`";
}

// The parts of a number's text: `0x1f_i32` is hexadecimal, and has the digits 1f and the suffix i32.
struct NumberText {
  bool hexadecimal = false;
  std::string_view digits;  // with the sign, without 0x
  std::string_view suffix;
  bool is_real = false;
};

NumberText split_number(std::string_view text) {
  NumberText n;
  const size_t underscore = text.find('_');
  if (underscore != std::string_view::npos) n.suffix = text.substr(underscore + 1);
  n.digits = text.substr(0, underscore);
  n.hexadecimal = n.digits.size() > 1 && n.digits[0] == '0' && (n.digits[1] == 'x' || n.digits[1] == 'X');
  if (n.hexadecimal) n.digits.remove_prefix(2);
  n.is_real = !n.hexadecimal && n.digits.find_first_of(".einEIN") != std::string_view::npos;
  return n;
}

template <class Number, class... Base>
bool read(std::string_view digits, Number& number, Base... base) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base...);
  return error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
}

template <class Float>
bool read_real(std::string_view digits, double& value) {
  // Accepts inf and nan as they are printed, and no other spelling that from_chars knows.
  const std::string_view magnitude = digits.substr(!digits.empty() && digits[0] == '-' ? 1 : 0);
  if (magnitude.empty()) return false;
  if ((magnitude[0] < '0' || magnitude[0] > '9') && magnitude != "inf" && digits != "nan") return false;
  if (digits == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  Float narrow;
  if (!read(digits, narrow)) return false;
  value = static_cast<double>(narrow);
  return true;
}

}  // namespace

Parser::Parser(std::string_view text)
    : tokens_(checked_size(text)), most_bytes_(kParseMemoryFactor * text.size() + kParseMemoryBase) {}

void Parser::fail_expected(std::string_view what) const {
  fail(ErrorCode::kSyntax, peek(), "expected " + std::string(what) + ", found " + found(peek()));
}

void Parser::expect(char punctuation, std::string_view where) {
  if (!accept(punctuation)) fail_expected("`" + std::string(1, punctuation) + "` of " + std::string(where));
}

void Parser::end_statement() {
  if (peek().kind == TokenKind::kNewline || at_end())
    skip_newlines();
  else if (!peek().is('}'))
    fail_expected("the end of the line");
}

bool Parser::defines_later(std::string_view name) const {
  const auto& list = tokens_.list();
  for (size_t i = at_, depth = 0; i < list.size(); ++i) {
    if (list[i].is('}') && depth-- == 0) return false;
    if (list[i].is('{')) ++depth;
    if (!list[i].is('{') && list[i].kind != TokenKind::kNewline) continue;
    // Looks for `%a, %b = …`.
    bool is_named = false;
    size_t k = i + 1;
    for (; k < list.size() && list[k].kind == TokenKind::kValue && !list[k].has_domain; ++k) {
      is_named |= list[k].text == name;
      if (k + 1 < list.size() && list[k + 1].is(',')) ++k;
    }
    if (is_named && k < list.size() && list[k].is('=')) return true;
  }
  return false;
}

int64_t Parser::integer(std::string_view where) {
  int64_t value = 0;
  if (peek().kind != TokenKind::kNumber || !read(peek().text, value)) fail_expected(where);
  take();
  return value;
}

uint64_t Parser::unsigned_integer(std::string_view where) {
  uint64_t value = 0;
  if (peek().kind != TokenKind::kNumber || !read(peek().text, value)) fail_expected(where);
  take();
  return value;
}

std::vector<int64_t> Parser::integers(std::string_view where) {
  std::vector<int64_t> result;
  list(where, [&] { result.push_back(integer(where)); });
  return result;
}

double Parser::real(std::string_view where) {
  double value = 0;
  const bool may = peek().kind == TokenKind::kNumber || peek().kind == TokenKind::kWord;
  if (!may || !read_real<double>(peek().text, value)) fail_expected(where);
  take();
  return value;
}

std::string Parser::word(std::string_view where) {
  if (peek().kind != TokenKind::kWord && peek().kind != TokenKind::kString) fail_expected(where);
  return std::string(take().text);
}

std::string Parser::graph_name() {
  return peek().kind == TokenKind::kGraphName ? std::string(take().text) : std::string();
}

std::string Parser::value_name(std::string_view where) {
  if (peek().kind != TokenKind::kValue || peek().has_domain) fail_expected(where);
  return std::string(take().text);
}

Dtype Parser::dtype(std::string_view where) {
  const std::optional<Dtype> found = parse_dtype(peek().kind == TokenKind::kWord ? peek().text : std::string_view());
  if (!found) fail_expected(where);
  take();
  return *found;
}

uint64_t Parser::number_bits(const Token& at, std::string_view digits, Dtype dtype) {
  const NumberText n = split_number(digits);
  const auto refuse = [&] {
    fail(ErrorCode::kBadLiteral, at,
         "dtype " + std::string(text(dtype)) + " does not hold `" + std::string(digits.substr(0, 60)) +
             "`; write a value that it holds");
  };
  uint64_t bits = 0;
  if (n.hexadecimal) {
    if (!read(n.digits, bits, 16) || !is_canonical(dtype, {bits, 0})) refuse();
    return bits;
  }
  if (is_integer(dtype) || is_boolean(dtype)) {
    int64_t value = 0;
    if (is_signed(dtype) ? !read(n.digits, value) : !read(n.digits, bits)) refuse();
    if (is_signed(dtype)) bits = static_cast<uint64_t>(value);
    if (is_boolean(dtype) || !is_canonical(dtype, {bits, 0})) refuse();
    return bits;
  }
  if (row_of(dtype).kind == DtypeKind::kPacked) refuse();
  double value = 0;
  if (!(fusebox::bits(dtype) == 64 ? read_real<double>(n.digits, value) : read_real<float>(n.digits, value))) refuse();
  bits = from_double(dtype, value).low;
  const double held = to_double(dtype, {bits, 0});
  // A finite value may be rounded, but not to infinity, to the largest value, or across zero.
  const bool fits = std::isfinite(held) && std::signbit(held) == std::signbit(value) && (value != 0 || held == 0) &&
                    (format_of(dtype).has(FloatFormat::kInfinity) || std::abs(value) <= format_of(dtype).largest);
  if (std::isfinite(value) ? !fits : !is_exact(dtype, value)) refuse();
  return bits;
}

uint64_t Parser::real_part(Dtype dtype) {
  if (peek().kind != TokenKind::kNumber && peek().kind != TokenKind::kWord) fail_expected("a number");
  const Token& t = take();
  if (!split_number(t.text).suffix.empty())
    fail(ErrorCode::kBadLiteral, t, "a part of a complex number has a suffix; remove it");
  return number_bits(t, t.text, dtype);
}

std::optional<Literal> Parser::literal() {
  const Token& t = peek();
  Literal result;
  if (t.kind == TokenKind::kWord) {
    if (t.text == "true" || t.text == "false") {
      result.dtype = Dtype::kBool;
      result.bits.low = take().text == "true";
      return result;
    }
    if (const auto dtype = parse_dtype(t.text); dtype && is_complex(*dtype) && peek(1).is('(')) {
      take();
      take();
      result.dtype = *dtype;
      result.bits.low = real_part(real_of(*dtype));
      expect(',', "a complex number");
      result.bits.high = real_part(real_of(*dtype));
      expect(')', "a complex number");
      return result;
    }
    const std::string_view stem = t.text.substr(0, t.text.find('_'));
    if (stem != "inf" && stem != "nan") return std::nullopt;
  } else if (t.kind != TokenKind::kNumber) {
    return std::nullopt;
  }
  const NumberText n = split_number(t.text);
  result.dtype = n.is_real ? Dtype::kDouble : Dtype::kIndex;
  if (t.text.find('_') != std::string_view::npos) {
    const auto dtype = parse_dtype(n.suffix);
    if (!dtype || is_complex(*dtype))
      fail(ErrorCode::kBadLiteral, t, "a number's suffix is no dtype of one number; write one such as _f32");
    result.dtype = *dtype;
  }
  result.bits.low = number_bits(t, t.text, result.dtype);
  take();
  return result;
}

AttrValue Parser::attr_value(const AttrRow& row) {
  switch (row.kind) {
    case AttrKind::kInt:
      return integer("the integer of `" + std::string(row.text) + "`");
    case AttrKind::kBool:
      if (accept_word("false")) return int64_t{0};
      accept_word("true");
      return int64_t{1};
    case AttrKind::kDtype:
      return dtype("a dtype");
    case AttrKind::kString:
      return word("a string");
    case AttrKind::kInts: {
      std::vector<int64_t> result;
      list("a list of integers", [&] {
        if (row.key == AttrKey::kThreads && peek().kind == TokenKind::kWord)
          result.push_back(static_cast<int64_t>(enumerator<ParallelType>("a parallel type")));
        else if (row.key == AttrKey::kContiguity && peek().kind == TokenKind::kWord)
          result.push_back(static_cast<int64_t>(enumerator<Contiguity>("true, false or none")));
        else
          result.push_back(integer("an integer"));
      });
      return result;
    }
#define FUSEBOX_TYPE(type) case AttrKind::k##type:
      FUSEBOX_ENUM_TYPES(FUSEBOX_TYPE)
#undef FUSEBOX_TYPE
      break;
  }
  const auto texts = enum_texts_of(row.kind);
  const auto it = peek().kind == TokenKind::kWord ? std::find(texts.begin(), texts.end(), peek().text) : texts.end();
  if (it == texts.end()) {
    std::string what = "one of";
    for (std::string_view t : texts) what += " " + std::string(t);
    fail_expected(what);
  }
  take();
  return static_cast<int64_t>(it - texts.begin());
}

Attrs Parser::attrs(std::span<const AttrKey> accepted, std::string_view of, bool bare_enumerators) {
  Attrs result;
  while (peek().kind == TokenKind::kWord) {
    const Token& t = peek();
    const AttrRow* row = nullptr;
    for (AttrKey key : accepted)
      if (row_of(key).text == t.text) row = &row_of(key);
    if (row != nullptr) {
      take();
    } else {
      for (AttrKey key : accepted) {
        const auto texts = enum_texts_of(row_of(key).kind);
        if (bare_enumerators && std::find(texts.begin(), texts.end(), t.text) != texts.end()) row = &row_of(key);
      }
      if (row == nullptr)
        fail(ErrorCode::kBadAttribute, t,
             "`" + std::string(of) + "` takes no `" + std::string(t.text.substr(0, 60)) + "`; remove it");
    }
    if (result.has(row->key))
      fail(ErrorCode::kBadAttribute, t, "`" + std::string(row->text) + "` stands twice; remove one");
    result.set(row->key, attr_value(*row));
  }
  return result;
}

bool Parser::starts_literal() const {
  const Token& t = peek();
  if (t.kind != TokenKind::kWord) return t.kind == TokenKind::kNumber;
  const std::string_view stem = t.text.substr(0, t.text.find('_'));
  return t.text == "true" || t.text == "false" || stem == "inf" || stem == "nan" || peek(1).is('(');
}

bool Parser::starts_operand() const {
  return peek().kind == TokenKind::kValue || peek().is('[') || peek().is_word("_") || starts_literal();
}

std::string Parser::missing_operand(std::string_view of, const Slot& slot, int index) {
  const std::string name =
      slot.keyword.empty() ? "operand " + std::to_string(index + 1) : "`" + std::string(slot.keyword) + "`";
  return "`" + std::string(of) + "` lacks " + name + "; write it";
}

}  // namespace fusebox
