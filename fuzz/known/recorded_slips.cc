#include <array>
#include <fmt/format.h>
#include <vector>

#include "fuzz/known/outcome_list.h"
#include "fuzz/known/recorded.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"

namespace fusebox::fuzz {
namespace {

// What a token becomes: each token some of these, and its neighbours the others.
constexpr std::string_view kTokens[] = {"",   "%zz",     "7",    "-1",      "iter",  "[",  "]",     ",",
                                        "\n", "1.5_f16", "true", "block.x", "%x.i0", "as", "\"a\"", "@f"};
// What a character becomes. The last byte is no character of any token.
constexpr std::string_view kCharacters[] = {"", "\"", "\\", ".", "-", "A", "g", "0", " ", "\n", "/", "?", "\xc3"};

struct Piece {
  size_t begin, end;
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '%' || c == '@' || c == '-';
}

// Words with their marks, and single characters of punctuation.
std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (is_word(text[i]))
      while (end < text.size() && is_word(text[end])) ++end;
    if (text[i] != ' ') pieces.push_back({i, end});
    i = end;
  }
  return pieces;
}

}  // namespace

std::string recorded_slips(std::string_view text) {
  OutcomeList all;
  const auto judge = [&](std::string_view what, const Piece& piece, std::string_view instead) {
    std::string changed(text.substr(0, piece.begin));
    changed.append(instead).append(text.substr(piece.end));
    all.add(fmt::format("{} {}", what, piece.begin), [&] {
      const Module m = parse_module(changed);
      verify(m);
      return print(m);
    });
  };
  const std::vector<Piece> pieces = pieces_of(text);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [begin, end] = pieces[i];
    const std::string token(text.substr(begin, end - begin));
    for (size_t k = i % 3; k < std::size(kTokens); k += 3) judge(fmt::format("token {} at", k), pieces[i], kTokens[k]);
    judge("a token twice at", pieces[i], token + " " + token);
    if (i + 1 == pieces.size()) continue;
    const auto [next_begin, next_end] = pieces[i + 1];
    judge("tokens exchanged at", {begin, next_end},
          fmt::format("{} {}", text.substr(next_begin, next_end - next_begin), token));
  }
  for (size_t i = 0; i < text.size(); ++i)
    for (size_t k = i % 3; k < std::size(kCharacters); k += 3)
      judge(fmt::format("character {} at", k), {i, i + 1}, kCharacters[k]);
  for (size_t i = 0; i < pieces.size(); ++i) judge("cut off at", {pieces[i].begin, text.size()}, "");
  return all.text();
}

}  // namespace fusebox::fuzz
