// The loop nests of a scheduled graph. Each op that makes a tensor has a nest: one loop node for each loop domain of
// its first result. `inline_at` makes a producer share the leading nodes of its consumers' nests, so the nodes form a
// forest.
//
// Invariants: the first `shared` nodes of a producer's path are the first nodes of every consumer's path; the children
// of a node are in an order in which every value is made before it is read; a node's members agree on its parallel
// type.
//
// A producer's broadcast domain that a shared loop is made from is *promoted*: it takes the extent of the domain that
// concretizes it, followed through the chain of sharers.
//
//   b = broadcast a [1, n];  y = x + b, b inlined at the loop merge(i0, i1) of y   →   promoted(b.i0) = extent of y.i0
//
// A loop broadcast of a producer takes the value of one domain of each reader: the domain that it stands for, the
// reader's own loop broadcast for that, or the reader's axis of the same class. It is no axis of the tensor, so every
// value below its extent reads the same element; that the loops are the same is proved of the values, as for any axis.
//
//   c = set w;  b = cast c;  a = broadcast b [m, n];  the loop broadcasts of b and c stand for a.i0   →   b feeds c.r
//   the value of its own loop broadcast, as a.i0 is no domain of b
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
  OpId op;  // the first member in op order, whose extent the loop takes
  DomainId domain;

  static constexpr uint32_t kNoNode = 0xffffffffu;
};

struct Nest {
  OpId op;
  std::vector<uint32_t> path;  // outermost first
  uint32_t shared = 0;         // leading nodes shared with every consumer
};

// How many outer loops two nests have in common: a producer's `shared` ones with its consumer, and more where a third
// tensor, inlined into both, brings them together.
inline size_t common_loops(const Nest& a, const Nest& b) {
  size_t i = 0;
  while (i < a.path.size() && i < b.path.size() && a.path[i] == b.path[i]) ++i;
  return i;
}

struct NestPlan {
  std::vector<LoopNode> nodes;
  std::vector<Nest> nests;               // of the tensor ops, in op order
  std::vector<uint32_t> nest_of;         // by op index; kNoNode where an op makes no tensor
  std::map<DomainId, ValueId> promoted;  // broadcast domains without a defining transform
  // A loop broadcast and a reader of its tensor → the domain of the reader's first result whose value it takes.
  std::map<std::pair<DomainId, OpId>, DomainId> stands_for;
  std::vector<std::vector<OpId>> readers;  // by value: tensor ops of the body that read it
  Defects defects = {};                    // seeded, for all that reads the plan

  const Nest& of(OpId op) const { return nests[nest_of[op.index]]; }
  // Of a loop broadcast; none where the reader has no such domain: it then reads at index 0.
  DomainId fed_by(DomainId loop_broadcast, OpId reader) const {
    const auto it = stands_for.find({loop_broadcast, reader});
    return it == stands_for.end() ? DomainId() : it->second;
  }
  bool has_nest(OpId op) const { return nest_of[op.index] != LoopNode::kNoNode; }
};

// Throws kIllegalInline or kIllegalParallel, naming the tensor, where the marks give no nest.
NestPlan plan_nests(const Graph& g, const Defects& defects = {});
// Throws kIllegalInline, naming the loop, where a resize may leave elements out that others read.
void check_coverage(const Graph& g, const NestPlan& plan);

}  // namespace fusebox
