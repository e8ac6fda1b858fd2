// Mutations of the text form, word by word and line by line, so that what is asked is the parser and not the lexer.
//
// Invariants: any bytes may be mutated; the same choices give the same text; what comes back may be damaged in any way.
//
//   RandomSource random(seed);
//   std::string next = mutate_text(random, text, other);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/base/random_source.h"

namespace fusebox::fuzz {

// The words of the text form that stand in a table: ops, steps, attributes, dtypes and every enumerator. Sorted, each
// once.
const std::vector<std::string>& table_words();

// One to three mutations. `other`: a text that words and lines are taken from; may be empty.
std::string mutate_text(RandomSource& random, std::string_view text, std::string_view other = {});

// Lines of one text, then lines of the other.
std::string cross_text(RandomSource& random, std::string_view a, std::string_view b);

}  // namespace fusebox::fuzz
