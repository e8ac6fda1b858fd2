// Splits the text form into tokens. A token has its place. It points into the text, or into `Tokens` if it is a string
// with escapes.
//
// Invariants: any bytes give tokens or a kSyntax Error with a place `line:column`. The last token is kEnd. A comment
// (`//` to the end of its line) gives no token. Several line ends in a row give one kNewline.
//
//   %y = exp %x // why     ->  kValue y, kPunctuation =, kWord exp, kValue x, kNewline, kEnd
//   split %y.i1 by 128     ->  kWord split, kValue y with domain i1, kWord by, kNumber 128, kEnd
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox {

enum class TokenKind : uint8_t {
  kEnd,
  kNewline,
  kWord,         // a letter or _, then letters, digits, _ and .
  kValue,        // %name, %"any name", %name.domain
  kGraphName,    // @name
  kNumber,       // -12, 0x1f, 1.5e-3, -inf; each with a suffix such as _f32, or none
  kString,       // "text", unescaped
  kPunctuation,  // one of { } [ ] ( ) , = : * ?
  kArrow,        // ->
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool has_domain = false;
  uint32_t line = 1;
  uint32_t column = 1;
  std::string_view text;    // a name without its mark, a string without its quotes
  std::string_view domain;  // kValue with has_domain

  bool is(char punctuation) const { return kind == TokenKind::kPunctuation && text[0] == punctuation; }
  bool is_word(std::string_view word) const { return kind == TokenKind::kWord && text == word; }
};

// The text must outlive the tokens.
class Tokens {
 public:
  explicit Tokens(std::string_view text);
  Tokens(const Tokens&) = delete;
  Tokens& operator=(const Tokens&) = delete;

  const std::vector<Token>& list() const { return list_; }

 private:
  std::vector<Token> list_;
  std::deque<std::string> unescaped_;
  friend class Lexer;
};

// Whether a name may stand after % or @ without quotes.
bool is_plain_name(std::string_view name);
// The same for a name without a mark, such as a domain's. It must not start with a digit.
bool is_plain_word(std::string_view name);
std::string quoted(std::string_view text);

}  // namespace fusebox
