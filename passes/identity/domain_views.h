// Views show the domains of other tensors from one tensor: from its elements, or from the points of its nest. A view
// follows the reads of the program, up to the tensors that the start is made from or down to those made from it. A
// tensor that is read along several ways has several views.
//
// Some values are not decided by the start: an axis that a reduction sums, that a broadcast makes or that data choose.
// Such a value is a variable of its own, and every value that depends on it counts as not decided.
//
//   %y = reshape %x to [%h, %d];   from the elements of %x, down:  %y.i0 = %x.i0 / d,   %y.i1 = %x.i0 % d
//                                  from those of %y, up:           %x.i0 = %y.i0*d + %y.i1
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/algebra/difference.h"
#include "passes/nest/domain_values.h"
#include "passes/nest/facts.h"

namespace fusebox {

enum class Start : uint8_t { kElements, kLoops };

class DomainViews {
 public:
  // `with_facts`: forms may use the divisibilities of the program's splits. For Start::kElements the plan must promote
  // no broadcast.
  DomainViews(const Graph& g, const NestPlan& plan, const ExtentClasses& extents, Start start, TensorId tensor,
              bool with_facts);
  DomainViews(const DomainViews&) = delete;  // values refer to the algebra
  DomainViews& operator=(const DomainViews&) = delete;

  void go_up();
  void go_down();

  // The values of a domain, one for each view that decides it.
  std::vector<Form> of(DomainId d);
  // Whether some views of the tensor were left out because there are too many.
  bool is_cut(TensorId t) const { return cut_.contains(t); }
  // The start's variables.
  const std::vector<LoopVariable>& variables() const { return variables_; }
  std::vector<std::pair<Form, Form>> divides();

  IndexAlgebra algebra;

 private:
  Form free_variable(DomainId d, DomainValues& values);
  void finish(TensorId t, DomainValues values, Start known_by = Start::kElements);
  DomainValues begin(TensorId t) { return {g_, plan_, symbols_, algebra, t}; }
  void take_facts(TensorId t);
  void down(OpId op, size_t operand, ValueId result, const DomainValues& from);
  void up(OpId op, size_t operand, size_t result, const DomainValues& from);

  const Graph& g_;
  const NestPlan& plan_;
  Symbols symbols_;
  int next_ = 0;  // loop id
  std::vector<LoopVariable> variables_;
  std::map<DomainId, int> free_;
  std::map<TensorId, std::vector<DomainValues>> views_;
  std::map<TensorId, bool> cut_;
};

}  // namespace fusebox
