// A program as JSON, for tools: one object, generic over the tables. Ids are the positions in the lists; names are as
// in the text form.
//
// Invariants: the text is valid JSON in UTF-8 (a byte of a name that is not is written as the code point of its value);
// floats that JSON has no number for stand as the strings "nan", "inf", "-inf"; constants stand as the text form writes
// them.
//
//   to_json(g)  // {"name":"f","level":"math","values":[{"name":"n","kind":"scalar","dtype":"index"},…],"ops":[…],…}
#pragma once

#include <string>
#include <string_view>

#include "ir/graph/graph.h"
#include "ir/module/module.h"

namespace fusebox {

std::string to_json(const Graph& g);
std::string to_json(const Module& m);
// `text` as a JSON string, quotes included.
std::string json_string(std::string_view text);

}  // namespace fusebox
