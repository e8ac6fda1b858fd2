// `compact` of a graph that nobody needs afterwards: its parts are moved, not copied.
//
//   return compacted(std::move(made));
#pragma once

#include "ir/graph.h"

namespace fusebox {

// What compact(g) gives (graph.h); g is left without meaning.
Graph compacted(Graph&& g);

}  // namespace fusebox
