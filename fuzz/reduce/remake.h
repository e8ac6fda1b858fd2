// A fusion made again, op by op, with changes: dtypes, extents and domains follow by inference, so that a change is
// said once. What reductions (reduce_rules.h) are made of.
//
// Invariants: names of values that stay are kept, whatever inference names what it adds; what a change leaves unread
// goes, but not what nothing read before; ids of a change are of the graph that it is made from.
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

// Operands and attributes instead of those that an op has. A number is an index constant, kAbsent no operand.
inline constexpr int64_t kAbsent = INT64_MIN;
struct OpPatch {
  std::vector<Scalar> operands;
  Attrs attrs;
};

struct FusionChange {
  std::set<OpId> cut;
  std::map<OpId, ValueId> replaced;  // what read the op's one result reads this; the op goes
  std::set<OpId> folded;             // scalars of constants that become constants
  std::set<OpId> dropped;            // outputs
  std::map<OpId, OpPatch> patched;
  std::map<ValueId, int64_t> constants;      // sizes that become numbers
  std::map<ValueId, ConstantBits> literals;  // other bits for a constant
  std::map<Dtype, Dtype> dtypes;             // of inputs, casts and constants
  std::set<ValueId> plain;                   // inputs in the order of their axes, contiguous
  // Of an input: axes that go, and other extents; one that is a symbol stays it here.
  std::map<ValueId, std::set<size_t>> removed_axes;
  std::map<ValueId, std::map<size_t, int64_t>> extents;
  std::set<std::string> swept;  // what nothing read before, and goes now
};

// Throws what inference throws where the change does not fit. `sizes`: the extents of what is cut.
Graph remake(const Graph& from, const FusionChange& change, const Bindings& sizes);

// Names of values that no output needs.
std::set<std::string> unread_values(const Graph& g);

}  // namespace fusebox::fuzz
