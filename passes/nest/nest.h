// The loop nests of a scheduled graph. Each op that makes a tensor has a nest: one loop node for each loop domain of
// its first result. `inline_at` makes a producer share the leading nodes of its consumers' nests, so the nodes form a
// forest.
//
// Invariants: the first `shared` nodes of a producer's path are the first nodes of every consumer's path. The members
// of a node agree on its parallel type.
//
// If a shared loop is made from a broadcast domain of a producer, the domain is *promoted*. It takes the extent of the
// domain that concretizes it. The chain of sharers leads to that domain. A reader of any result of an op promotes the
// domains at that position of all its results.
//
//   b = broadcast a [1, n];  y = x + b, b inlined at the loop merge(i0, i1) of y   →   promoted(b.i0) = extent of y.i0
//
// A loop broadcast of a producer takes the value of one domain of each reader: the domain that it stands for, the
// reader's own loop broadcast for that domain, or the reader's axis of the same class. A loop broadcast is not an axis
// of the tensor, so every value below its extent reads the same element. Proofs that two loops are the same use these
// values, as for any axis.
//
//   c = set w;  b = cast c;  a = broadcast b [m, n];  the loop broadcasts of b and c stand for a.i0   →   b feeds c.r
//   the value of its own loop broadcast, because a.i0 is not a domain of b
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"
#include "passes/nest/symbols.h"

namespace fusebox {

struct LoopNode {
  uint32_t parent = kNoNode;
  uint32_t depth = 0;
  ParallelType parallel = ParallelType::kSerial;
  OpId op;  // the first member in op order; the loop takes its extent, unless settle_counts chooses another
  DomainId domain;

  static constexpr uint32_t kNoNode = 0xffffffffu;
};

struct Nest {
  OpId op;
  std::vector<uint32_t> path;  // outermost first
  uint32_t shared = 0;         // leading nodes shared with every consumer
};

// The number of outer loops that two nests have in common. A producer and its consumer have the producer's `shared`
// loops in common. They have more if a third tensor is inlined into both.
inline size_t common_loops(const Nest& a, const Nest& b) {
  size_t i = 0;
  while (i < a.path.size() && i < b.path.size() && a.path[i] == b.path[i]) ++i;
  return i;
}

struct NestPlan {
  std::vector<LoopNode> nodes;
  std::vector<Nest> nests;               // of the tensor ops, in op order
  std::vector<uint32_t> nest_of;         // by op index; kNoNode if the op makes no tensor
  std::map<DomainId, ValueId> promoted;  // broadcast domains without a defining transform
  // A loop broadcast and a reader of its tensor → the domain of the reader's first result whose value it takes.
  std::map<std::pair<DomainId, OpId>, DomainId> stands_for;
  std::vector<std::vector<OpId>> readers;  // by value: tensor ops of the body that read it
  Defects defects = {};                    // seeded, for every reader of the plan

  const Nest& of(OpId op) const { return nests[nest_of[op.index]]; }
  // The extent that shared loops give to a broadcast, or none.
  ValueId promoted_extent(DomainId d) const {
    const auto it = promoted.find(d);
    return it == promoted.end() ? ValueId() : it->second;
  }
  // The reader's domain whose value a loop broadcast takes. None: the reader has no such domain and reads at index 0.
  DomainId fed_by(DomainId loop_broadcast, OpId reader) const {
    const auto it = stands_for.find({loop_broadcast, reader});
    return it == stands_for.end() ? DomainId() : it->second;
  }
  bool has_nest(OpId op) const { return nest_of[op.index] != LoopNode::kNoNode; }
};

// Throws kIllegalInline or kIllegalParallel, naming the tensor, if the marks give no nest.
NestPlan plan_nests(const Graph& g, const Defects& defects = {});
// Checks that loops reach every element, but for `cut_loops`. Throws kIllegalInline or kIllegalAllocation if a resize may
// leave any out, and kIllegalReduction if a later stage of a reduction does not loop over the axes of the first.
void check_coverage(const Graph& g, const NestPlan& plan);

}  // namespace fusebox
