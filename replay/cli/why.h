// The text of a kernel with the reason of each check beside it, and above it what needs none, and why.
//
//   print_with_checks(kernel, scheduled, {})   // "…  %p3 = lt %i2, %s0 : bool   // %y.i1: nothing shows that …"
#pragma once

#include <string>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox::cli {

// `scheduled`: what the kernel was lowered from; without it (null) the text stands alone.
std::string print_with_checks(const Graph& kernel, const Graph* scheduled, const Defects& defects);

}  // namespace fusebox::cli
