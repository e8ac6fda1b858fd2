// `compact` of a graph that nobody needs afterwards: its parts are moved, not copied. And graphs compared as they
// stand.
//
//   return compacted(std::move(made));
#pragma once

#include "ir/graph/graph.h"

namespace fusebox {

// What compact(g) gives (graph.h); g is left without meaning.
Graph compacted(Graph&& g);

// Ids and dead nodes included, which `==` leaves out.
bool same_members(const Graph& a, const Graph& b);

}  // namespace fusebox
