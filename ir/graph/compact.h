// `compacted` is `compact` for a graph that nobody needs afterwards: it moves the parts instead of copying them.
// `same_members` compares two graphs as they stand.
//
//   return compacted(std::move(made));
#pragma once

#include "ir/graph/graph.h"

namespace fusebox {

// Returns what compact(g) returns (graph.h). `g` must not be used afterwards.
Graph compacted(Graph&& g);

// Compares member by member. Ids and dead nodes count; `==` ignores them.
bool same_members(const Graph& a, const Graph& b);

}  // namespace fusebox
