// The statements of a kernel, and the tree of loops in which they stand.
//
// A pointwise op is one statement. A reduction is three: `init` fills the accumulator, `main` accumulates, `final`
// combines across the threads of a block and stores. init and final stand before and after the outermost reduction
// loop. Iteration loops inside that loop are cloned for them. A reduction across blocks has a fourth statement:
// `exchange`, between main and final, combines all elements of the accumulator at once, so it stands in none of the
// cloned loops.
//
// Invariant: the children of a node stand in an order in which every value is made before it is read.
//
//   y = sum x over [1], loops i0, i1   →   for i0 { init; for i1 { main }; final }
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "passes/nest/nest.h"

namespace fusebox {

enum class StatementKind : uint8_t { kInit, kMain, kExchange, kFinal };

struct Statement {
  OpId op;
  StatementKind kind = StatementKind::kMain;
  std::vector<uint32_t> path;  // one node for each loop domain of the op's first result; kNoNode: left out
};

struct TreeChild {
  bool is_node = false;
  uint32_t index = 0;  // of a node or a statement
};

struct LoopTree {
  std::vector<LoopNode> nodes;  // the nodes of the nest plan, then clones
  std::vector<Statement> statements;
  std::vector<std::vector<TreeChild>> children;  // by node
  std::vector<TreeChild> top;
};

// Whether a loop stands in the code: a thread index does not.
bool is_real_loop(ParallelType p);
// Whether a loop domain is made from a reduction domain.
bool is_reduction(const Graph& g, DomainId d);

// The position of the outermost reduction loop that stands in the code, or the nest's length. The loops before it
// contain init, main and final alike, so an accumulator needs no place for them.
size_t first_reduction_loop(const Graph& g, const NestPlan& plan, const Nest& nest);

// Whether the nest's op reduces along a dimension of the grid.
bool reduces_across_blocks(const Graph& g, const NestPlan& plan, const Nest& nest);

struct OrderConstraint {
  OpId before, after;
};

// Throws kIllegalOrder if no order of the loops makes every value before it is read.
LoopTree build_loop_tree(const Graph& g, const NestPlan& plan, const std::vector<OrderConstraint>& extra);

}  // namespace fusebox
