// Mutates the text form word by word and line by line. Most results pass the lexer, so the parser is tested.
//
// Invariants: any bytes may be mutated; the same choices give the same text; the result may be damaged in any way.
//
//   RandomSource random(seed);
//   std::string next = mutate_text(random, text, other);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/base/random_source.h"

namespace fusebox::fuzz {

// All words of the text form that a table lists: ops, steps, attributes, dtypes and enumerators. Sorted, each once.
const std::vector<std::string>& table_words();

// Makes one to three mutations. Words and lines may be taken from `other`, which may be empty.
std::string mutate_text(RandomSource& random, std::string_view text, std::string_view other = {});

// Lines of one text, then lines of the other.
std::string cross_text(RandomSource& random, std::string_view a, std::string_view b);

}  // namespace fusebox::fuzz
