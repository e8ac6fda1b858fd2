// Lowering: a scheduled graph becomes a kernel program, and the host program that launches it.
//
// `lower` never fails on a graph that `legal` accepts: both run the same analysis, and `legal` returns what it would
// throw. The graph must verify and hold no symbolic domain; its level is math (every loop serial) or scheduled.
//
// The launch graph (level host) takes the graph's inputs, then a destination for each output that is not an alias, in
// order: it binds the sizes, checks what vectorized access relies on, allocates workspaces and launches the kernel.
// Work at index 0 alone:
//
//   y = exp x, i0 split by 128 → o on grid.x, t on block.x
//   kernel @k { … %p = lt %i, %n : bool   if %p { … } }        host @k.launch { … launch ceil_div(%n, 128), 1, 1, 128,
//   1, 1, 0 with […] name k }
#pragma once

#include <optional>

#include "ir/error.h"
#include "ir/graph.h"

namespace fusebox {

struct LowerOptions {
  int index_bits = 64;  // of dtype index in the kernel: 32 or 64
};

struct Lowered {
  Graph kernel;
  Graph launch;
};

Lowered lower(const Graph& scheduled, const LowerOptions& options = {});

// The first reason, by code and place, why a schedule cannot be lowered; nothing if it can.
std::optional<Error> legal(const Graph& scheduled);

}  // namespace fusebox
