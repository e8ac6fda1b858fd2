// `Heuristics`: the choices of a scheduler as words and integers. A person reads them, a bundle keeps them, and the steps
// follow from them alone.
//
//   Heuristics h{.scheduler = "pointwise"};
//   h.set("vector", 8);
//   text(h)   // "pointwise vector 8"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox {

struct Heuristic {
  std::string key;
  int64_t number = 0;
  std::string word;  // not empty: the value is this word
  bool operator==(const Heuristic&) const = default;
};

// How the key of a choice begins that states a multiple of a size, which it names.
inline constexpr std::string_view kMultiple = "multiple %";

struct Heuristics {
  std::string scheduler;
  std::vector<Heuristic> choices;  // in the order in which they were made

  void set(std::string_view key, int64_t number) { choices.push_back({std::string(key), number, {}}); }
  void set(std::string_view key, std::string_view word) { choices.push_back({std::string(key), 0, std::string(word)}); }
  bool has(std::string_view key) const;
  // Throws kInternal for a key that was not set.
  int64_t number(std::string_view key) const;
  // The same, but `otherwise` for such a key.
  int64_t number_or(std::string_view key, int64_t otherwise) const;
  const std::string& word(std::string_view key) const;
  bool operator==(const Heuristics&) const = default;
};

// One line: the scheduler, then each key with its value. A key or a word that is no plain run of characters, or a word
// that looks like a number, stands in quotes.
std::string text(const Heuristics& h);
// Reads what `text` prints. Throws kSyntax for anything else.
Heuristics parse_heuristics(std::string_view text);

}  // namespace fusebox
