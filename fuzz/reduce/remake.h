// Makes a fusion again, op by op, with changes. Dtypes, extents and domains follow by inference, so that a change is
// given only once. The reductions (reduce_rules.h) are built on this.
//
// Invariants: remaining values keep their names, whatever names inference gives to new values; values that only a
// change leaves unread are dropped; ids in a change belong to the original graph.
//
//   FusionChange change;
//   change.cut.insert(op);                     // its results become inputs
//   Graph smaller = remake(fusion, change, sizes);
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/build/builder.h"
#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

namespace fusebox::fuzz {

// New operands and attributes for an op. A number is an index constant, kAbsent a missing operand.
inline constexpr int64_t kAbsent = INT64_MIN;
struct OpPatch {
  std::vector<Scalar> operands;
  Attrs attrs;
};

struct FusionChange {
  std::set<OpId> cut;
  std::map<OpId, ValueId> replaced;  // readers of the op's only result read this value; the op goes
  std::set<OpId> folded;             // scalar ops on constants that become constants
  std::set<OpId> dropped;            // outputs
  std::map<OpId, OpPatch> patched;
  std::map<ValueId, int64_t> constants;      // sizes that become numbers
  std::map<ValueId, ConstantBits> literals;  // other bits for a constant
  std::map<Dtype, Dtype> dtypes;             // of inputs, casts and constants
  std::set<ValueId> plain;                   // inputs that become contiguous, in the order of their axes
  // For inputs: axes that go, and new extents; a symbol stays a symbol.
  std::map<ValueId, std::set<size_t>> removed_axes;
  std::map<ValueId, std::map<size_t, int64_t>> extents;
  std::set<std::string> swept;  // values that nothing read before, to be removed now
};

// Throws what inference throws if the change does not fit. `sizes`: give the extents of cut values.
Graph remake(const Graph& from, const FusionChange& change, const Bindings& sizes);

// The names of values that no output needs.
std::set<std::string> unread_values(const Graph& g);

}  // namespace fusebox::fuzz
