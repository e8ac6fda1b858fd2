#include "fuzz/bytes/mutate_text.h"

#include <algorithm>

#include "ir/module/step.h"
#include "ir/table/attr.h"
#include "ir/table/dtype.h"
#include "ir/table/op.h"

namespace fusebox::fuzz {
namespace {

enum class PieceKind : uint8_t { kBlank, kNewline, kWord, kName, kNumber, kPunctuation };

PieceKind kind_of(char c) {
  if (c == '\n') return PieceKind::kNewline;
  if (c == ' ' || c == '\t' || c == '\r') return PieceKind::kBlank;
  if (c == '%' || c == '@') return PieceKind::kName;
  if ((c >= '0' && c <= '9') || c == '-') return PieceKind::kNumber;
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return PieceKind::kWord;
  return PieceKind::kPunctuation;
}

// Splits the text into words, names, numbers and single characters. Joined, the pieces are the text.
std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const PieceKind kind = kind_of(text[at]);
    size_t end = at + 1;
    if (kind == PieceKind::kWord || kind == PieceKind::kName || kind == PieceKind::kNumber)
      while (end < text.size() && (text[end] == '.' || (text[end] != '-' && kind_of(text[end]) == PieceKind::kNumber) ||
                                   kind_of(text[end]) == PieceKind::kWord))
        ++end;
    pieces.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text = text.substr(end);
  }
  return lines;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& p : parts) text += p;
  return text;
}

std::string number_like(RandomSource& random, const std::string& old) {
  static const char* const kNumbers[] = {"0",
                                         "1",
                                         "-1",
                                         "2",
                                         "3",
                                         "7",
                                         "8",
                                         "16",
                                         "17",
                                         "31",
                                         "33",
                                         "63",
                                         "64",
                                         "128",
                                         "255",
                                         "256",
                                         "1024",
                                         "65536",
                                         "2147483647",
                                         "2147483648",
                                         "-2147483649",
                                         "4294967296",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "9223372036854775808",
                                         "18446744073709551615",
                                         "1e308",
                                         "-0.0",
                                         "4.9e-324",
                                         "0x1",
                                         "0xffffffffffffffff",
                                         "1_f32",
                                         "0.1_bf16",
                                         "nan_f32",
                                         "-inf_f64"};
  if (random.one_in(2) || old.size() > 15) return random.pick(kNumbers);
  int64_t value = 0;
  for (char c : old)
    if (c >= '0' && c <= '9') value = value * 10 + (c - '0');
  return std::to_string(random.one_in(4) ? 2 * value : value + random.between(-1, 1));
}

std::string piece_like(RandomSource& random, const std::string& old, const std::vector<std::string>& known) {
  static const char* const kMarks[] = {"{", "}", "[", "]", "(", ")", ",", "=", ":", "*", "?", "->", "\"", "//", "\\"};
  const PieceKind kind = kind_of(old.empty() ? ' ' : old[0]);
  if (kind == PieceKind::kNumber && !random.one_in(4)) return number_like(random, old);
  if (kind == PieceKind::kWord && random.one_in(2)) return random.pick(table_words());
  if (kind == PieceKind::kPunctuation && random.one_in(2)) return random.pick(kMarks);
  for (int tries = 0; tries < 16 && !known.empty(); ++tries)
    if (const std::string& p = random.pick(known); kind_of(p[0]) == kind && p != old) return p;
  return random.pick(table_words());
}

void mutate_lines(RandomSource& random, std::vector<std::string>& lines, const std::vector<std::string>& others) {
  const size_t at = random.below(lines.size()), to = random.below(lines.size());
  const auto place = [&](size_t i) { return lines.begin() + static_cast<std::ptrdiff_t>(i); };
  switch (random.below(5)) {
    case 0:
      lines.erase(place(at));
      return;
    case 1:
      lines.insert(place(to), std::string(lines[at]));
      return;
    case 2:
      std::swap(lines[at], lines[to]);
      return;
    case 3:
      lines.erase(place(std::min(at, to)), place(std::max(at, to)));
      return;
    default:
      lines.insert(place(at), others.empty() ? std::string(lines[to]) : random.pick(others));
  }
}

void mutate_pieces(RandomSource& random, std::vector<std::string>& pieces, const std::vector<std::string>& others) {
  std::vector<size_t> solid;
  for (size_t i = 0; i < pieces.size(); ++i)
    if (kind_of(pieces[i][0]) > PieceKind::kNewline) solid.push_back(i);
  if (solid.empty()) {
    pieces.push_back(random.pick(table_words()));
    return;
  }
  const size_t at = random.pick(solid);
  const std::vector<std::string>& known = others.empty() || random.one_in(2) ? pieces : others;
  switch (random.below(8)) {
    case 0:
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    case 1:
      pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(at),
                    piece_like(random, pieces[at], known) + (random.one_in(2) ? " " : ""));
      return;
    case 2:
      std::swap(pieces[at], pieces[random.pick(solid)]);
      return;
    default: {
      std::string next = piece_like(random, pieces[at], known);
      pieces[at] = std::move(next);
    }
  }
}

}  // namespace

const std::vector<std::string>& table_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    const auto add = [&](std::string_view text) {
      if (!text.empty()) all.emplace_back(text);
    };
    for (const OpRow& row : op_rows()) add(row.text);
    for (const StepRow& row : step_rows()) add(row.text);
    for (const AttrRow& row : attr_rows()) add(row.text);
    for (const DtypeRow& row : dtype_rows()) add(row.text);
#define FUSEBOX_WORDS(type) \
  for (std::string_view text : enum_texts<type>()) add(text);
    FUSEBOX_ENUM_TYPES(FUSEBOX_WORDS)
#undef FUSEBOX_WORDS
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }();
  return words;
}

std::string mutate_text(RandomSource& random, std::string_view text, std::string_view other) {
  std::string result(text);
  for (size_t n = random.one_in(3) ? 3 : 1; n > 0; --n) {
    const size_t kind = random.below(16);
    if (result.empty() || kind > 5) {
      std::vector<std::string> pieces = pieces_of(result);
      mutate_pieces(random, pieces, pieces_of(other));
      result = joined(pieces);
    } else if (kind == 0) {
      result.resize(random.below(result.size()));
    } else if (kind == 1) {
      result[random.below(result.size())] = static_cast<char>(random.below(256));
    } else {
      std::vector<std::string> lines = lines_of(result);
      mutate_lines(random, lines, lines_of(other));
      result = joined(lines);
    }
  }
  return result;
}

std::string cross_text(RandomSource& random, std::string_view a, std::string_view b) {
  std::vector<std::string> first = lines_of(a), second = lines_of(b);
  if (first.empty() || second.empty()) return std::string(a) + std::string(b);
  first.resize(random.below(first.size() + 1));
  const size_t from = random.below(second.size());
  first.insert(first.end(), second.begin() + static_cast<std::ptrdiff_t>(from), second.end());
  return joined(first);
}

}  // namespace fusebox::fuzz
