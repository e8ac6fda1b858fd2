// The statements of a kernel and the tree of loops that they stand in.
//
// A pointwise op is one statement. A reduction is three: `init` fills the accumulator, `main` accumulates, `final`
// combines across threads and stores. init and final stand before and after the outermost reduction loop, with loops of
// their own over what iterates inside it.
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "passes/nest/nest.h"

namespace fusebox {

enum class StatementKind : uint8_t { kInit, kMain, kFinal };

struct Statement {
  OpId op;
  StatementKind kind = StatementKind::kMain;
  std::vector<uint32_t> path;  // a node for each loop domain of the op's first result; kNoNode where it is left out
};

struct TreeChild {
  bool is_node = false;
  uint32_t index = 0;  // of a node or a statement
};

struct LoopTree {
  std::vector<LoopNode> nodes;  // those of the plan, then clones
  std::vector<Statement> statements;
  std::vector<std::vector<TreeChild>> children;  // by node
  std::vector<TreeChild> top;
};

// A loop that stands in the code: not a thread index, and not the vector of a vectorized copy.
bool is_real_loop(ParallelType p);
// A loop domain made from a reduction domain.
bool is_reduction(const Graph& g, DomainId d);

// The position of the outermost loop of a reduction's nest that stands in the code and reduces, or the nest's length:
// the loops before it hold init, main and final alike, so that an accumulator needs no place for them.
size_t first_reduction_loop(const Graph& g, const NestPlan& plan, const Nest& nest);

struct OrderConstraint {
  OpId before, after;
};

// Throws kIllegalOrder where no order of the loops lets every value be made before it is read.
LoopTree build_loop_tree(const Graph& g, const NestPlan& plan, const std::vector<OrderConstraint>& extra);

}  // namespace fusebox
