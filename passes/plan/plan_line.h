// One line of the text of a kernel plan, read from left to right. Each call that accepts or reads something skips the
// blanks behind it, unless it says otherwise. Throws kSyntax at `line N`.
//
//   PlanLine line("for 0 grid.x %y.o {", 7);
//   line.expect("for");
//   line.number();   // 0
//   line.rest();     // grid.x %y.o {
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/table/error.h"
#include "passes/plan/kernel_plan.h"

namespace fusebox {

class PlanLine {
 public:
  static constexpr uint32_t kMost = 1 << 20;  // loops and statements

  PlanLine(std::string_view text, size_t number) : text_(text), number_(number) { skip(); }

  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(ErrorCode::kSyntax,
                "expected " + expected +
                    (text_.empty() ? " before the end of the line" : " at `" + std::string(text_.substr(0, 24)) + "`"),
                "line " + std::to_string(number_));
  }
  bool at_end() const { return text_.empty(); }
  void end() const {
    if (!at_end()) fail("the end of the line");
  }
  bool accept(std::string_view what) {
    if (!text_.starts_with(what)) return false;
    if (is_word(what.back()) && what.size() < text_.size() && is_word(text_[what.size()])) return false;
    text_.remove_prefix(what.size());
    skip();
    return true;
  }
  // Whether the line closes a block.
  bool closes() {
    if (!accept("}")) return false;
    end();
    return true;
  }
  void expect(std::string_view what) {
    if (!accept(what)) fail("`" + std::string(what) + "`");
  }
  // Reads a word of a table: letters, digits, `_`, `.` and `-`.
  std::string_view word(std::string_view what) {
    size_t n = 0;
    while (n < text_.size() && (is_word(text_[n]) || text_[n] == '.' || text_[n] == '-')) ++n;
    if (n == 0) fail(std::string(what));
    return take(n);
  }
  int64_t integer() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) fail("an integer");
    take(static_cast<size_t>(end - text_.data()));
    return value;
  }
  bool starts_integer() const { return !text_.empty() && text_[0] >= '0' && text_[0] <= '9'; }
  std::string_view rest() const { return text_; }
  bool starts_loop() const {
    size_t n = 0;
    while (n < text_.size() && is_word(text_[n])) ++n;
    return n < text_.size() && text_[n] == '#';
  }
  bool starts_value() const { return text_.starts_with('%'); }
  uint32_t number() {
    const int64_t value = integer();
    if (value < 0 || value >= kMost) fail("a number from 0 to " + std::to_string(kMost - 1));
    return static_cast<uint32_t>(value);
  }
  uint32_t node() { return accept("_") ? LoopNode::kNoNode : number(); }
  // Reads a name, plain or in quotes. Blanks behind it are left to `skip`.
  std::string name() {
    std::string out;
    if (text_.starts_with('"')) {
      size_t i = 1;
      for (; i < text_.size() && text_[i] != '"'; ++i) {
        char c = text_[i];
        if (c == '\\' && i + 1 < text_.size()) {
          c = text_[++i];
          if (c == 'n') c = '\n';
          if (c == 't') c = '\t';
          if (c == 'x' && i + 2 < text_.size()) {
            int byte = 0;
            std::from_chars(text_.data() + i + 1, text_.data() + i + 3, byte, 16);
            c = static_cast<char>(byte);
            i += 2;
          }
        }
        out += c;
      }
      if (i >= text_.size()) fail("a closing quote");
      text_.remove_prefix(i + 1);
      return out;
    }
    size_t n = 0;
    while (n < text_.size() && is_word(text_[n])) ++n;
    if (n == 0) fail("a name");
    out = text_.substr(0, n);
    text_.remove_prefix(n);
    return out;
  }
  // Accepts a character and keeps the blanks behind it.
  bool accept_close(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void skip() {
    while (!text_.empty() && text_[0] == ' ') text_.remove_prefix(1);
  }
  // Calls `item` for each item of a list in brackets.
  template <class Item>
  void list(Item item) {
    expect("[");
    if (accept("]")) return;
    while (true) {
      item();
      if (accept("]")) return;
      expect(",");
    }
  }

 private:
  static bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  std::string_view take(size_t n) {
    const std::string_view taken = text_.substr(0, n);
    text_.remove_prefix(n);
    skip();
    return taken;
  }

  std::string_view text_;
  size_t number_;
};

}  // namespace fusebox
