// The difference of two texts, line by line, as people read it.
//
//   text_diff("a\nb\n", "a\nc\n")   // "  a\n- b\n+ c\n"
#pragma once

#include <string>
#include <string_view>

namespace fusebox {

// Lines that are in both begin with two blanks. Only those near a change (`context` lines) are shown, the rest as ` …`.
// Equal texts give an empty one. Beyond 4,000 differing lines a block is shown as removed and added whole.
std::string text_diff(std::string_view before, std::string_view after, size_t context = 3);

}  // namespace fusebox
