#include "passes/schedule/heuristics.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "ir/table/error.h"
#include "ir/token/lex.h"

namespace fusebox {

namespace {

const Heuristic& choice(const Heuristics& h, std::string_view key) {
  const auto it = std::ranges::find(h.choices, key, &Heuristic::key);
  if (it == h.choices.end())
    throw Error(ErrorCode::kInternal, "a schedule is made from a choice that its scheduler did not make",
                h.scheduler + " " + std::string(key));
  return *it;
}

std::optional<int64_t> number_of(std::string_view piece) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), n);
  if (error != std::errc() || end != piece.data() + piece.size()) return std::nullopt;
  return n;
}

std::string print(const std::string& piece, bool may_be_number) {
  const bool is_plain =
      !piece.empty() && std::ranges::all_of(piece, [](char c) { return c > ' ' && c != '"' && c < 0x7f; });
  return is_plain && (may_be_number || !number_of(piece)) ? piece : quoted(piece);
}

struct Piece {
  std::string text;
  bool is_quoted = false;
};

// Takes the next piece off the text; nothing at its end.
std::optional<Piece> take(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (text.empty()) return std::nullopt;
  size_t end = std::min(text.find(' '), text.size());
  const bool is_quoted = text[0] == '"';
  if (is_quoted) {
    for (end = 1; end < text.size() && text[end] != '"'; ++end)
      if (text[end] == '\\') ++end;
    end = std::min(end + 1, text.size());
  }
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(end);
  return Piece{is_quoted ? std::string(Tokens(piece).list()[0].text) : std::string(piece), is_quoted};
}

}  // namespace

int64_t Heuristics::number_or(std::string_view key, int64_t otherwise) const {
  const auto it = std::ranges::find(choices, key, &Heuristic::key);
  return it == choices.end() ? otherwise : it->number;
}

bool Heuristics::has(std::string_view key) const { return std::ranges::count(choices, key, &Heuristic::key) > 0; }

int64_t Heuristics::number(std::string_view key) const { return choice(*this, key).number; }
const std::string& Heuristics::word(std::string_view key) const { return choice(*this, key).word; }

std::string text(const Heuristics& h) {
  std::string result = h.scheduler;
  for (const Heuristic& c : h.choices)
    result += " " + print(c.key, true) + " " + (c.word.empty() ? std::to_string(c.number) : print(c.word, false));
  return result;
}

Heuristics parse_heuristics(std::string_view text) {
  Heuristics h;
  const auto scheduler = take(text);
  if (!scheduler) throw Error(ErrorCode::kSyntax, "heuristics begin with the name of a scheduler", "");
  h.scheduler = scheduler->text;
  while (const auto key = take(text)) {
    const auto value = take(text);
    if (!value) throw Error(ErrorCode::kSyntax, "a choice has a key and a value; give the key a value", key->text);
    const auto number = value->is_quoted ? std::nullopt : number_of(value->text);
    if (!number && value->text.empty())
      throw Error(ErrorCode::kSyntax, "a choice is a number or a word; an empty word is neither", key->text);
    h.choices.push_back({key->text, number.value_or(0), number ? std::string() : value->text});
  }
  return h;
}

}  // namespace fusebox
