// `Parser`: a cursor over tokens that reads literals, attributes and operand lists. The files of the parser share it.
//
// Invariants: a member throws an Error at the token that it does not expect. If it returns nothing or false, the cursor
// has not moved. The cursor stops at kEnd.
//
//   Parser p("by 128 -> o");
//   p.accept_word("by");          // true
//   p.integer("a factor");        // 128
//   p.expect(',', "a list");      // throws kSyntax at 1:8: expected `,` of a list, found `->`
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/module/step.h"
#include "ir/table/attr.h"
#include "ir/table/error.h"
#include "ir/table/op.h"
#include "ir/token/lex.h"

namespace fusebox {

// The memory that a text may take: a factor for each byte, plus a base. If types that are left to inference need more,
// the text is refused with kTooLarge.
inline constexpr size_t kParseMemoryFactor = 60;
inline constexpr size_t kParseMemoryBase = size_t{3} << 18;
inline constexpr size_t kMaxRank = 256;
inline constexpr size_t kMaxListed = 1024;  // operands, or elements of an attribute, of an op whose type is inferred

struct Literal {
  Dtype dtype = Dtype::kIndex;
  ConstantBits bits;
};

class Parser {
 public:
  explicit Parser(std::string_view text);

  const Token& peek(size_t ahead = 0) const {
    const auto& list = tokens_.list();
    return at_ + ahead < list.size() ? list[at_ + ahead] : list.back();
  }
  const Token& take() {
    const Token& t = peek();
    if (t.kind != TokenKind::kEnd) ++at_;
    return t;
  }
  // The bytes of the graphs that were read before, the bytes of the tokens, and the limit for all.
  size_t spent_bytes = 0;
  size_t token_bytes() const { return tokens_.list().capacity() * sizeof(Token); }
  size_t most_bytes() const { return most_bytes_; }

  bool at_end() const { return peek().kind == TokenKind::kEnd; }
  bool accept(char punctuation) {
    if (!peek().is(punctuation)) return false;
    ++at_;
    return true;
  }
  bool accept_word(std::string_view word) {
    if (!peek().is_word(word)) return false;
    ++at_;
    return true;
  }
  void expect(char punctuation, std::string_view where);
  void skip_newlines() {
    while (peek().kind == TokenKind::kNewline) ++at_;
  }
  // Throws unless the line or the block ends here. Takes the line ends.
  void end_statement();
  // Takes `{`, calls `statement()` for each line, and takes `}`.
  template <class Statement>
  void block(std::string_view where, Statement statement) {
    expect('{', where);
    for (skip_newlines(); !accept('}'); skip_newlines()) {
      statement();
      end_statement();
    }
  }
  // Calls `item()` for each item of a bracketed list. Line ends inside it do not count.
  template <class Item>
  void list(std::string_view where, Item item) {
    expect('[', where);
    skip_newlines();
    if (accept(']')) return;
    while (true) {
      item();
      skip_newlines();
      if (accept(']')) return;
      expect(',', where);
      skip_newlines();
    }
  }

  static std::string place_of(const Token& t) { return std::to_string(t.line) + ":" + std::to_string(t.column); }
  [[noreturn]] static void fail(ErrorCode code, const Token& at, const std::string& message) {
    throw Error(code, message, place_of(at));
  }
  // Throws kSyntax. The sentence names what was found instead.
  [[noreturn]] void fail_expected(std::string_view what) const;

  int64_t integer(std::string_view where);
  uint64_t unsigned_integer(std::string_view where);
  std::vector<int64_t> integers(std::string_view where);
  double real(std::string_view where);
  std::string word(std::string_view where);  // a word or a quoted string
  std::string graph_name();                  // empty if none stands here
  std::string value_name(std::string_view where);
  template <class E>
  E enumerator(std::string_view where) {
    const std::optional<E> found = parse_enum<E>(peek().kind == TokenKind::kWord ? peek().text : std::string_view());
    if (!found) fail_expected(where);
    take();
    return *found;
  }
  Dtype dtype(std::string_view where);
  template <class E>
  std::vector<E> enumerators(std::string_view where) {
    std::vector<E> result;
    list(where, [&] { result.push_back(enumerator<E>(where)); });
    return result;
  }

  // Whether a later line of this block defines a value of this name.
  bool defines_later(std::string_view name) const;

  // Returns nothing and takes nothing if no literal stands here.
  std::optional<Literal> literal();
  // Takes all attributes that stand here. `accepted` lists the keys that may. With `bare_enumerators`, the word before
  // the text of an enumerator may be left out.
  Attrs attrs(std::span<const AttrKey> accepted, std::string_view of, bool bare_enumerators);

  // Reads operands by the slots of a format. `operand(slot)` takes one, and `absent()` notes an absent one. Returns the
  // number of operands, absent ones included.
  template <class TakeOperand, class NoteAbsent>
  size_t operands(const FormatRow& format, std::string_view of, TakeOperand operand, NoteAbsent absent) {
    const Token start = peek();
    std::array<SlotRange, kMaxSlots> found{};
    uint32_t count = 0;
    bool first = true;     // no operand was written yet
    bool run_open = true;  // a slot without a keyword may follow
    for (int s = 0; s < format.slot_count; ++s) {
      const Slot& slot = format.slots[s];
      SlotRange& range = found[static_cast<size_t>(s)];
      range.begin = count;
      bool here;
      if (!slot.keyword.empty()) {
        here = accept_word(slot.keyword);
        if (here) run_open = true;
      } else {
        here = run_open && (first ? starts_operand() : accept(','));
        if (!here) run_open = false;
      }
      if (!here) {
        if (!slot.optional) fail(ErrorCode::kOperandCount, peek(), missing_operand(of, slot, s));
        absent();
        ++count;
      } else if (slot.list) {
        list("a list of operands", [&] {
          operand(slot);
          ++count;
        });
      } else if (slot.optional && accept_word("_")) {
        absent();
        ++count;
      } else {
        operand(slot);
        ++count;
      }
      if (here) first = false;
      range.count = count - range.begin;
    }
    const auto ranges = slot_ranges(format, count);
    for (int s = 0; s < format.slot_count; ++s) {
      const auto i = static_cast<size_t>(s);
      if (!ranges || (*ranges)[i].begin != found[i].begin || (*ranges)[i].count != found[i].count)
        fail(ErrorCode::kOperandCount, start,
             "the lists of `" + std::string(of) + "` differ in length; make them equal");
    }
    return count;
  }

  bool starts_literal() const;

 private:
  bool starts_operand() const;
  static std::string missing_operand(std::string_view of, const Slot& slot, int index);
  AttrValue attr_value(const AttrRow& row);
  uint64_t number_bits(const Token& at, std::string_view digits, Dtype dtype);
  uint64_t real_part(Dtype dtype);

  Tokens tokens_;
  size_t at_ = 0;
  size_t most_bytes_;
};

}  // namespace fusebox
