// A program as one JSON object, for tools. The code is generic over the tables. Ids are positions in the lists, and
// names are those of the text form.
//
// Invariants: the result is valid JSON in UTF-8. If a byte of a name is not valid UTF-8, it is written as the code
// point of its value. Floats without a JSON number are the strings "nan", "inf" and "-inf". Constants are written as in
// the text form.
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
