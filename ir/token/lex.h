// The words of the text form. A token points into the text (or into the lexer, where a name was quoted), with its
// place.
//
// Invariants: any bytes give tokens or a kSyntax Error with a place `line:column`; the last token is kEnd; a comment,
// `//` to the end of its line, is no token; several line ends in a row are one kNewline.
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

// Whether a name stands in the text as it is, after % or @; else it is quoted.
bool is_plain_name(std::string_view name);
// The same for a name without a mark, as of a domain: it does not start with a digit.
bool is_plain_word(std::string_view name);
std::string quoted(std::string_view text);

}  // namespace fusebox
