// The text of a refused schedule: its graphs as far as the steps made them, with the error beside the line it names.
//
//   loop [i0 grid.x, i1 block.x]  // E0312 at %b.i1: consumer %c reads a value of another thread …
//
// The error is a comment, so the text parses as the graphs alone do.
#pragma once

#include <string>

#include "passes/pipeline/pipeline.h"

namespace fusebox::cli {

// The error stands beside the line of the domain, or of the tensor, that its place names. If it names neither, the
// error stands above the graph in which it was found. A graph with steps left to apply names the next one.
std::string print_refused(const CompileAttempt& attempt);

}  // namespace fusebox::cli
