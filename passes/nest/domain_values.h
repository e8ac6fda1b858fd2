// The values of one tensor's domains in a nest. Some values are given, by its loops or by a consumer. The others follow
// through the tensor's transforms, up or down, whichever side of a transform is known.
//
// Invariants: a value holds at every loop point, holes included, so none comes from an equivalence between domains. The
// first value of a domain stays.
//
//   i1 = split by 128 → o, t;  set(o, loop 0), set(t, loop 1), propagate()   →   value(i1) == 128*o + t
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/nest/check_reason.h"
#include "passes/nest/nest.h"
#include "passes/nest/symbols.h"

namespace fusebox {

// The check that a domain needs: `value < extent`, and also `0 <= value` if the value may be negative.
struct DomainCheck {
  DomainId domain;
  Form value;
  Form extent;
  bool lower = false;  // 0 <= value is needed too
};

// The verdict on one domain: whether it is checked, and the reason for either.
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

  // A domain with its value, and where the value came from.
  struct Known {
    DomainId domain;
    Form value;
    CheckReason origin;
  };
  // The knowledge of one DomainValues. Another one of the same tensor, over a copy of the algebra, can learn it.
  struct Knowledge {
    std::vector<Known> values;
    std::vector<std::pair<DomainId, Form>> extents;
    std::vector<std::pair<DomainId, TransformId>> climbed;  // split and resize inputs reached from their outputs
    std::vector<DomainId> descended;                        // resize outputs reached from their inputs
  };
  const Knowledge& knowledge() const { return known_; }
  void learn(const Knowledge& known) { known_ = known; }

  // The extent in this nest. A promoted broadcast has the extent of the domain that concretizes it; any other broadcast
  // has 1.
  Form extent(DomainId d);
  // The extent that a shape shows: the expanded extent of a broadcast, or else the extent.
  Form size(DomainId d);
  // The product of the extents: how many elements a buffer over these domains has. A kernel that assumes what contradicts
  // its sizes is never launched, and an extent may seem to be negative there; it counts as 0.
  Form elements(std::span<const DomainId> domains);
  void set(DomainId d, Form value, CheckReason origin = CheckReason::kLoop);
  bool known(DomainId d) const;
  // The value. A broadcast that nothing gave a value has value 0. For any other domain ask `known` first.
  Form value(DomainId d) const;
  // Follows the transforms until nothing new is known.
  void propagate();
  // The checks under which the values are those of an element. A check stands for each input of a split and each domain
  // of a resize, unless it is proved to stay in its extent. Call after `propagate`.
  std::vector<DomainCheck> checks();
  // How a domain got its value. If `checks` names the domain, that is also why it is checked.
  CheckReason reason(DomainId d) const;
  // The verdicts on all domains that have a value, in the order in which they got it. Call after `propagate`.
  std::vector<DomainVerdict> verdicts();

 private:
  void learn(DomainId d, Form value, CheckReason origin);
  const Known* find(DomainId d) const;
  bool is_op_resize(DomainId d) const;
  // Whether a split of the op makes the domain as its quotient, by a factor that is not constant or from another such
  // quotient.
  bool is_op_quotient(DomainId d) const;
  Form checked_value(DomainId d);
  // Whether d = outer·n + inner and n divides d's extent. Then d leaves its extent only if outer or inner leaves its
  // own.
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

// The axis that an op names. A negative axis counts from the end of the first operand or of the result, whichever has
// more axes.
size_t axis_of(const Graph& g, const Op& op);

// The offset at which an operand of `cat` begins along the concatenated axis of the result.
Form cat_offset(const Graph& g, const NestPlan& plan, Symbols& symbols, IndexAlgebra& algebra, const Op& op,
                size_t operand);

}  // namespace fusebox
