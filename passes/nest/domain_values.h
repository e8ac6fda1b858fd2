// The values of one tensor's domains in a nest: some are given (its loops, or what a consumer feeds it), the others
// follow through the tensor's transforms, in the direction in which each is met. Holes included: nothing is taken from
// an equivalence between domains.
//
//   i1 = split by 128 → o, t;  set(o, loop 0), set(t, loop 1), propagate()   →   value(i1) == 128*o + t
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/nest/check_reason.h"
#include "passes/nest/nest.h"
#include "passes/nest/symbols.h"

namespace fusebox {

// What a domain must be checked against, and why: `value < extent`, or `0 <= value < extent` where it may be negative.
struct DomainCheck {
  DomainId domain;
  Form value;
  Form extent;
  bool lower = false;  // 0 <= value is needed too
};

// Of one domain: whether it is checked, and why or why not.
struct DomainVerdict {
  DomainId domain;
  bool checked = false;
  CheckReason reason = CheckReason::kLoop;
};

class DomainValues {
 public:
  DomainValues(const Graph& g, const NestPlan& plan, Symbols& symbols, IndexAlgebra& algebra, TensorId tensor)
      : g_(g), plan_(plan), symbols_(symbols), algebra_(algebra), tensor_(tensor) {}
  TensorId tensor() const { return tensor_; }

  // How a domain got its value.
  struct Known {
    DomainId domain;
    Form value;
    CheckReason origin;
  };
  // What is known, for another of the same tensor over a copy of the algebra.
  struct Knowledge {
    std::vector<Known> values;
    std::vector<std::pair<DomainId, Form>> extents;
    std::vector<std::pair<DomainId, TransformId>> climbed;  // split and resize inputs reached from their outputs
    std::vector<DomainId> descended;                        // resize outputs reached from their inputs
  };
  const Knowledge& knowledge() const { return known_; }
  void learn(const Knowledge& known) { known_ = known; }

  // The extent in this nest: a promoted broadcast has that of the domain that concretizes it, any other broadcast 1.
  Form extent(DomainId d);
  // What a shape shows: the expanded extent of a broadcast, else the extent.
  Form size(DomainId d);
  void set(DomainId d, Form value, CheckReason origin = CheckReason::kLoop);
  bool known(DomainId d) const;
  // The value; the constant 0 for a broadcast domain that nothing gave a value.
  Form value(DomainId d) const;
  // Follows the transforms until nothing new is known.
  void propagate();
  // The checks that the values need so that they are an element's: one for each input of a split, and each domain of a
  // resize, that is not proved to stay in its extent. Call after `propagate`.
  std::vector<DomainCheck> checks();
  // How a domain got its value; of one that `checks` names, why it is checked.
  CheckReason reason(DomainId d) const;
  // Of every domain that has a value, in the order in which they got theirs. Call after `propagate`.
  std::vector<DomainVerdict> verdicts();

 private:
  void learn(DomainId d, Form value, CheckReason origin);
  const Known* find(DomainId d) const;
  bool is_op_resize(DomainId d) const;
  // Whether it is what a split of the op leaves by a factor that is no constant, or a part of such.
  bool is_op_quotient(DomainId d) const;
  Form checked_value(DomainId d);
  // d = outer·n + inner, and n divides its extent: it leaves its extent only where outer or inner leaves its own.
  bool is_divided(DomainId d);
  bool step(const Transform& t);
  bool up(const Transform& t);
  bool down(const Transform& t);
  Form inner_extent(const Transform& t);

  const Graph& g_;
  const NestPlan& plan_;
  Symbols& symbols_;
  IndexAlgebra& algebra_;
  TensorId tensor_;
  Knowledge known_;
};

// The axis that an op names, which may count from the end: of its first operand, or of its result where that has more.
size_t axis_of(const Graph& g, const Op& op);

// Where an operand of `cat` begins along the concatenated axis of the result.
Form cat_offset(const Graph& g, const NestPlan& plan, Symbols& symbols, IndexAlgebra& algebra, const Op& op,
                size_t operand);

}  // namespace fusebox
