// The text of a schedule that was refused: its graphs as far as steps made them, with the error beside what it names.
//
//   loop [i0 grid.x, i1 block.x]  // E0312 at %b.i1: consumer %c reads a value of another thread …
//
// What is added is a comment, so the text parses as the graphs alone do.
#pragma once

#include <string>

#include "passes/pipeline/pipeline.h"

namespace fusebox::cli {

// With the error beside the line of the domain, or of the tensor, that its place names; above the graph in which it was
// found where it names none of them. A graph whose steps were not all applied says which one was not.
std::string print_refused(const CompileAttempt& attempt);

}  // namespace fusebox::cli
