// Draws a graph for Graphviz: its ops and the values between them, or the domains of its tensors and the transforms
// between them.
//
//   ops_to_dot(g)      // digraph "f" { op3 [label="%y = exp …"]; op2 -> op3 [label="%x"]; … }
//   domains_to_dot(g)  // a cluster for each tensor: logical axes on top, transformed domains below, loops marked
#pragma once

#include <string>

#include "ir/graph/graph.h"

namespace fusebox {

// Each op is a node, and each region a nested box. An edge is an operand, labelled with the value. A value that an op
// reads twice is one edge.
std::string ops_to_dot(const Graph& g);
// Each tensor is a box. Loop domains have a thick border and show their position and parallel type.
std::string domains_to_dot(const Graph& g);

}  // namespace fusebox
