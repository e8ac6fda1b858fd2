// The view of one statement. It has the algebra over the statement's loops and the values of its own tensor's domains.
// Through `feed` it gives the domain values of the tensors that the statement reads.
//
// The algebra belongs to the plan (PathAlgebra), so making one view leaves the forms of another valid. Statements that
// have the same loops share an algebra.
//
//   StatementView view(plan, statement);
//   DomainValues values = view.feed(0);
//   Form at = view.index_of(plan.buffer_of(x), values);   // 128*o + t
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "passes/plan/kernel_plan.h"

namespace fusebox {

// The state of a new view. Without an algebra it gets one of its own.
ViewState view_state(const KernelPlan& plan, OpId op, const std::vector<uint32_t>& path,
                     std::shared_ptr<PathAlgebra> algebra = nullptr);

// The path of an op's nest without the loops that it reduces. The first value and the result of a reduction are stored
// around those, also where they do not run.
std::vector<uint32_t> path_around_reduction(const KernelPlan& plan, OpId op);

class StatementView {
 public:
  StatementView(const KernelPlan& plan, OpId op, const std::vector<uint32_t>& path);
  StatementView(const KernelPlan& plan, const Statement& s) : StatementView(plan, s.op, s.path) {}
  // The main statement of an op.
  StatementView(const KernelPlan& plan, OpId op) : StatementView(plan, op, plan.nest_of(op).path) {}
  // A view with an algebra of its own, for a caller that declares more loops than the statement has. Another statement
  // may have the same path, and must not learn that those loops run.
  StatementView(const KernelPlan& plan, OpId op, ViewState& state);

 private:
  const KernelPlan& plan_;
  ViewState& state_;

 public:
  IndexAlgebra& algebra;
  Symbols symbols;
  const OpId op;
  const std::vector<uint32_t>& path;
  DomainValues own;

  // The values of an operand's domains, fed by this op. `at_axis` is the value at the axis along which an index
  // chooses.
  DomainValues feed(size_t operand, std::optional<Form> at_axis = std::nullopt);
  // The values of the domains of an op's first result. They are passed on, by position, from `values`, those of its
  // result `sibling`.
  DomainValues values_of_leader(ValueId sibling, const DomainValues& values);
  // The linear index into a tensor's buffer.
  Form index_of(const Buffer& buffer, DomainValues& values);
  Form loop(size_t position) const { return algebra.loop(static_cast<int>(path[position])); }
  // The value of the result's domain at the computed element: 0 at a broadcast, promoted or not.
  Form place(DomainId d) const;
  // The loop of this nest that has a parallel type, or none.
  std::optional<Form> thread_loop(ParallelType p) const;
  // The symbol of the scalar that the kernel loads for this statement.
  Form loaded();
  // The offset along the concatenated axis at which an operand of `cat` begins.
  Form cat_offset(size_t operand);

 private:
  void set_loops();
  Form global_index(const Buffer& buffer, DomainValues& values);
};

// An algebra that knows nothing of any nest, for extents outside all loops. It has the facts that the schedule states.
class OpenExtents {
 public:
  explicit OpenExtents(const KernelPlan& plan)
      : plan_(plan), algebra(plan.defects()), symbols(*plan.graph, plan.classes, algebra) {
    assume(plan.facts, symbols, algebra, plan.defects());
  }

 private:
  const KernelPlan& plan_;

 public:
  IndexAlgebra algebra;
  Symbols symbols;

  DomainValues of(ValueId tensor) {
    return DomainValues(*plan_.graph, plan_.nest_plan, symbols, algebra, (*plan_.graph)[tensor].tensor);
  }
  // The number of elements of a local or shared buffer, in one thread or block.
  Form elements_of(const Buffer& buffer);
};

// The number of elements of a local or shared buffer, in the algebra of `symbols`.
Form elements_of(const KernelPlan& plan, Symbols& symbols, IndexAlgebra& algebra, const Buffer& buffer);

}  // namespace fusebox
