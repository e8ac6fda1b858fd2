// The text of a kernel with the reason of each check beside it. Above it stand the values that need no check, and why.
//
//   print_with_checks(kernel, scheduled, {})   // "…  %p3 = lt %i2, %s0 : bool   // %y.i1: nothing shows that …"
#pragma once

#include <string>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox::cli {

// `scheduled` is the graph that the kernel was lowered from. If it is null, the text has no reasons.
std::string print_with_checks(const Graph& kernel, const Graph* scheduled, const Defects& defects);

}  // namespace fusebox::cli
