// A graph drawn by Graphviz: its ops and the values between them, or the domains of its tensors and the transforms
// between them.
//
//   ops_to_dot(g)      // digraph "f" { op3 [label="%y = exp …"]; op2 -> op3 [label="%x"]; … }
//   domains_to_dot(g)  // a cluster for each tensor: logical axes on top, what transforms make below, the loops marked
#pragma once

#include <string>

#include "ir/graph/graph.h"

namespace fusebox {

// One node an op; regions are nested boxes. An edge is an operand, labelled with the value; one that an op reads twice
// is one edge.
std::string ops_to_dot(const Graph& g);
// One box a tensor. Loop domains have a thick border and show their position and parallel type.
std::string domains_to_dot(const Graph& g);

}  // namespace fusebox
