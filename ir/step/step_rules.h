// The rules behind apply.h: one function for each kind of step. Not for use outside ir/.
//
// Invariants: a rule first checks the step. It only reads `c.g`, and throws an Error if the step does not apply. If
// `c.target` is set, it is the same graph as `c.g`, and the rule then changes it without throwing.
//
//   void step_merge(StepContext& c) {
//     const DomainId outer = c.serial_loop(0), inner = c.serial_loop(1);   // throw if they are no serial loops
//     …checks…
//     if (!c.target) return;
//     …changes…
//   }
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/graph/name_index.h"
#include "ir/module/step.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"

namespace fusebox {

struct StepContext {
  const Graph& g;
  const Step& step;
  NameIndex& names;  // the names of g
  Graph* target = nullptr;
  Defects defects = {};

  // Throws an Error. `place` is a value or domain as text.
  [[noreturn]] void refuse(const std::string& why, const std::string& place = {},
                           ErrorCode code = ErrorCode::kStepNotApplicable) const;

  // -- operands, by position in the step
  ValueId value(size_t i) const;  // a value of any kind
  TensorId tensor(size_t i) const;
  DomainId domain(size_t i) const;
  // The tensor or domain as the step writes it.
  std::string place(size_t i) const;
  std::string place(TensorId t) const;
  std::string place(DomainId d) const;
  // The operands of a list slot that starts at this position.
  std::vector<TensorId> tensors_from(size_t i) const;
  std::vector<DomainId> domains_from(size_t i) const;

  // -- checks
  // The tensor, if an op of the program makes it. Throws for an input.
  TensorId scheduled_tensor(size_t i) const;
  void require_scheduled(TensorId t) const;
  // A loop of such a tensor, if inlining has not fixed its position.
  DomainId free_loop(size_t i) const;
  void require_free(DomainId d) const;
  // The same, if the loop is serial.
  DomainId serial_loop(size_t i) const;
  // Throws if the tensor or a sibling has a domain with the name of a result of the step.
  void require_free_names(TensorId t) const;
  // Throws unless the operand is an integer from `least` to 2^31, or an index scalar that is defined before the tensor
  // `user`.
  void check_scalar(size_t i, TensorId user, int64_t least) const;
  // The operand as a value of `target`. Only for use after the checks.
  ValueId scalar(size_t i) const;

  // The first schedule step turns a math graph into a scheduled graph.
  void begin() const {
    if (target->level == Level::kMath) target->level = Level::kScheduled;
  }
};

bool is_input(const Graph& g, TensorId t);
bool is_output(const Graph& g, ValueId v);
std::vector<OpId> readers(const Graph& g, ValueId v);  // ops that read it, without `output`

// Throws unless names, attributes and operands fit the step's row.
void check_step_form(const StepContext& c);

// step_loop.cc
void step_split(StepContext& c);
void step_merge(StepContext& c);
void step_reorder(StepContext& c);
void step_swizzle(StepContext& c);
void step_resize(StepContext& c);
void step_parallelize(StepContext& c);
void step_loop_broadcast(StepContext& c);
// step_tensor.cc
void step_set_memory_type(StepContext& c);
void step_set_allocation(StepContext& c);
void step_set_mesh(StepContext& c);
void step_circular_buffer(StepContext& c);
// step_copy.cc
void step_cache_before(StepContext& c);
void step_cache_after(StepContext& c);
void step_cache_fork(StepContext& c);
void step_recompute(StepContext& c);
// step_rfactor.cc
void step_rfactor(StepContext& c);
// step_inline.cc
void step_inline_at(StepContext& c);
void step_inline_most(StepContext& c);
// step_like.cc
void step_set_loop_domain(StepContext& c);
void step_transform_like(StepContext& c);
void step_propagate(StepContext& c);
void step_parallelize_like(StepContext& c);
// step_precision.cc
void step_precision(StepContext& c);
// Whether ops of this dtype are computed in f32, which alone has fast forms.
bool has_fast_dtype(Dtype d);
// step_facts.cc
void step_assume(StepContext& c);
void step_bound_launch(StepContext& c);
void step_cluster(StepContext& c);
void step_dependent_launch(StepContext& c);
// step_concretize.cc
void step_concretize(StepContext& c);
void step_concretize_reshape(StepContext& c);

}  // namespace fusebox
