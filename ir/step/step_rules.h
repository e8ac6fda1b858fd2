// The rules behind step.h: one function for each kind of step. Not for use outside ir/.
//
// A rule first checks, reading `c.g` alone, and throws the Error of a step that does not apply. Where `c.target` is set
// it is the same graph, to be changed; from then on a rule does not throw.
//
//   void step_merge(StepContext& c) {
//     const DomainId outer = c.loop_domain(0), inner = c.loop_domain(1);   // throw if there are none
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
  NameIndex& names;  // of g
  Graph* target = nullptr;
  Defects defects = {};

  // Throws; `place` is a value or domain as text.
  [[noreturn]] void refuse(const std::string& why, const std::string& place = {},
                           ErrorCode code = ErrorCode::kStepNotApplicable) const;

  // -- operands, by position in the step
  ValueId value(size_t i) const;    // of any kind
  TensorId tensor(size_t i) const;  // of a tensor
  DomainId domain(size_t i) const;
  // The tensor or domain as the step writes it.
  std::string place(size_t i) const;
  std::string place(TensorId t) const;
  std::string place(DomainId d) const;
  // The operands of a list slot, which starts at this position.
  std::vector<TensorId> tensors_from(size_t i) const;
  std::vector<DomainId> domains_from(size_t i) const;

  // -- checks
  // The tensor is made by an op of the program, not given to it.
  TensorId scheduled_tensor(size_t i) const;
  void require_scheduled(TensorId t) const;
  // A loop domain of such a tensor, its position not fixed by inlining.
  DomainId free_loop(size_t i) const;
  void require_free(DomainId d) const;
  // The same, not parallel yet.
  DomainId serial_loop(size_t i) const;
  // New names of domains are free in the tensor and all that its op makes.
  void require_free_names(TensorId t) const;
  // The scalar or integer of an operand, as it will be in the graph: the integer, or a scalar defined before the
  // tensor.
  void check_scalar(size_t i, TensorId user, int64_t least) const;
  // After the checks.
  ValueId scalar(size_t i) const;

  // The first scheduling of a math graph makes it a scheduled one.
  void begin() const {
    if (target->level == Level::kMath) target->level = Level::kScheduled;
  }
};

bool is_input(const Graph& g, TensorId t);
bool is_output(const Graph& g, ValueId v);
std::vector<OpId> readers(const Graph& g, ValueId v);  // ops, `output` not counted

// Checks names, attributes and operands against the step's row; throws.
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
// step_concretize.cc
void step_concretize(StepContext& c);
void step_concretize_reshape(StepContext& c);

}  // namespace fusebox
