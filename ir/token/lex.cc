#include "ir/token/lex.h"

#include <algorithm>

#include "ir/table/error.h"

namespace fusebox {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_letter(c) || is_digit(c); }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

class Lexer {
 public:
  Lexer(std::string_view text, Tokens& out) : text_(text), out_(out) {}

  void run() {
    out_.list_.reserve(most_tokens());
    while (true) {
      skip_blanks();
      start_ = at_;
      if (at_ == text_.size()) break;
      token();
    }
    add(TokenKind::kEnd, {});
  }

 private:
  // An upper bound of the number of tokens: no token begins inside a word. Reserving all of them at once saves memory,
  // because a list that grows may hold twice what it needs.
  size_t most_tokens() const {
    size_t count = 1;
    for (size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c != ' ' && (!is_name_char(c) || i == 0 || !is_name_char(text_[i - 1]))) ++count;
    }
    return count;
  }

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorCode::kSyntax, message, std::to_string(line_) + ":" + std::to_string(at_ - line_start_ + 1));
  }

  Token& add(TokenKind kind, std::string_view text) {
    Token t;
    t.kind = kind;
    t.line = line_;
    t.column = static_cast<uint32_t>(start_ - line_start_ + 1);
    t.text = text;
    out_.list_.push_back(t);
    return out_.list_.back();
  }

  template <class Predicate>
  std::string_view take_while(Predicate holds) {
    const size_t from = at_;
    while (at_ < text_.size() && holds(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  void token() {
    const char c = text_[at_];
    if (c == '\n') {
      if (!out_.list_.empty() && out_.list_.back().kind != TokenKind::kNewline) add(TokenKind::kNewline, {});
      ++at_;
      ++line_;
      line_start_ = at_;
    } else if (is_letter(c)) {
      add(TokenKind::kWord, take_while([](char x) { return is_name_char(x) || x == '.'; }));
    } else if (is_digit(c) || (c == '-' && (is_digit(peek(1)) || is_letter(peek(1))))) {
      number();
    } else if (c == '%') {
      ++at_;
      const std::string_view text = name();
      std::string_view domain;
      const bool has_domain = peek() == '.';
      if (has_domain) {
        ++at_;
        domain = name();
      }
      Token& t = add(TokenKind::kValue, text);
      t.has_domain = has_domain;
      t.domain = domain;
    } else if (c == '@') {
      ++at_;
      const std::string_view text = name();
      add(TokenKind::kGraphName, text);
    } else if (c == '"') {
      const std::string_view text = string();
      add(TokenKind::kString, text);
    } else if (c == '-' && peek(1) == '>') {
      at_ += 2;
      add(TokenKind::kArrow, text_.substr(start_, 2));
    } else if (std::string_view("{}[](),=:*?").find(c) != std::string_view::npos) {
      ++at_;
      add(TokenKind::kPunctuation, text_.substr(start_, 1));
    } else {
      fail("a character that starts no word; remove it or quote the name that it belongs to");
    }
  }

  void number() {
    if (peek() == '-') ++at_;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
      take_while([](char c) { return hex_digit(c) >= 0; });
    } else if (is_digit(peek())) {
      take_while(is_digit);
      if (peek() == '.') {
        ++at_;
        take_while(is_digit);
      }
      if ((peek() == 'e' || peek() == 'E') &&
          (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))) {
        at_ += 2;
        take_while(is_digit);
      }
    }
    take_while(is_name_char);  // a suffix, or the word of -inf
    add(TokenKind::kNumber, text_.substr(start_, at_ - start_));
  }

  std::string_view name() {
    if (peek() == '"') return string();
    const std::string_view text = take_while(is_name_char);
    if (text.empty()) fail("a name is missing here; write letters, digits or _, or quote it");
    return text;
  }

  std::string_view string() {
    ++at_;
    const size_t from = at_;
    while (peek() != '"' && peek() != '\\' && peek() != '\n' && at_ < text_.size()) ++at_;
    if (peek() == '"') return text_.substr(from, at_++ - from);
    std::string& out = out_.unescaped_.emplace_back(text_.substr(from, at_ - from));
    while (true) {
      if (at_ >= text_.size() || peek() == '\n') fail("a string has no closing quote on its line; add one");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      const char escape = peek();
      ++at_;
      if (escape == 'n') {
        out.push_back('\n');
      } else if (escape == 't') {
        out.push_back('\t');
      } else if (escape == '"' || escape == '\\') {
        out.push_back(escape);
      } else if (escape == 'x' && hex_digit(peek()) >= 0 && hex_digit(peek(1)) >= 0) {
        out.push_back(static_cast<char>(hex_digit(peek()) * 16 + hex_digit(peek(1))));
        at_ += 2;
      } else {
        fail("an escape in a string is none of \\n \\t \\\" \\\\ \\xHH; write one of them");
      }
    }
  }

  std::string_view text_;
  Tokens& out_;
  size_t at_ = 0;
  size_t start_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
};

Tokens::Tokens(std::string_view text) { Lexer(text, *this).run(); }

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_name_char);
}
bool is_plain_word(std::string_view name) { return is_plain_name(name) && is_letter(name[0]); }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\x";
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace fusebox
