// Emission turns a complete plan into a kernel graph: the statements, in their loops, become regions. It decides
// nothing that the plan could say, and it refuses nothing. This header is internal to passes/lower.
//
// Invariants: `plan` is complete and outlives the emitter.
//
//   KernelEmitter emitter(plan, options);
//   emitter.run();
//   Graph launch = emit_launch(plan, emitter.signature()), kernel = emitter.finish();
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "passes/kernel/form_emitter.h"
#include "passes/kernel/kernel_builder.h"
#include "passes/lower/emit_launch.h"
#include "passes/lower/lower.h"
#include "passes/plan/kernel_plan.h"
#include "passes/plan/statement_view.h"

namespace fusebox {

// One statement while it is emitted.
struct Site {
  uint32_t statement;  // its index in the tree
  const Statement& place;
  const StatementPlan& plan;
  const Op& op;
  StatementView view;
};

class KernelEmitter {
 public:
  KernelEmitter(const KernelPlan& plan, const EmitOptions& options);

  void run();
  // After run(): what the launch must pass, what `show --why` prints, and the kernel. finish() comes last.
  const KernelSignature& signature() const { return signature_; }
  std::vector<CheckNote> check_notes();
  Graph finish() { return kernel_.finish(); }

 private:
  const Defects& defects() const { return plan_.defects(); }

  // kernel_emitter.cc: loops, conditions, memory
  void declare_parameters();
  int64_t parameter_bytes() const;
  void allocate_local(const Buffer& b);
  void allocate_shared();
  void emit_children(uint32_t node);
  // Allocates what lives in the loop: buffers of a thread and accumulators.
  void allocate_at(uint32_t node);
  // Whether a barrier stands before that child of the node.
  bool is_synchronized(uint32_t node, size_t child) const;
  void emit_node(uint32_t node);
  void emit_loop(uint32_t node, bool unroll);
  void emit_child(const TreeChild& child);
  void emit_unswitched(uint32_t node);
  void emit_statement(uint32_t statement);
  Site site_of(uint32_t statement);
  // A condition of a statement of `op`.
  ValueId emit_condition(IndexAlgebra& algebra, const Condition& c, OpId op);
  // Emits all conditions except those that an enclosing unswitch has settled. Conditions that let one thread store for
  // all are left out if no other thread sees the memory: all of them for local memory, those between blocks for shared.
  ValueId emit_conditions(Site& site, MemoryType stored = MemoryType::kGlobal);
  // Emits under `predicate`. If the neighbour's statements have the same predicate, they share its `if`.
  void guarded(ValueId predicate, const std::function<void()>& emit);
  // `loaded` stands for kLoadedSymbol.
  ValueId emit_form(IndexAlgebra& algebra, Form form, ValueId loaded = {});
  LaunchScalars launch_scalars_of();
  ValueId launch_scalar(IndexAlgebra& algebra, Form form, bool is_prepared);
  ValueId scalar(ValueId v);  // a scalar of the graph in the kernel
  ValueId scalar(ValueId v, const std::map<ValueId, ValueId>& known);
  ValueId parameter(const ScalarParameter& p);
  // A parameter with counters, and its place in the signature.
  struct Counters {
    ValueId parameter;
    size_t position = 0;
  };
  Counters& counters(KernelParameter::Kind kind);
  // A slot from `least` on that nothing else uses.
  int64_t take_slot(const Counters& c, int64_t least = 0);
  ValueId thread_index(ParallelType p);
  ValueId tensor(ValueId v) const { return tensors_[v.index]; }
  ValueId cast_to(ValueId v, Dtype dtype) {
    return kernel_.graph()[v].dtype == dtype ? v : kernel_.op(OpKind::kCast, {v}, dtype);
  }

  // emit_ops.cc: emits what an op computes at one point
  void emit_pointwise(Site& site);
  void emit_vector_copy(Site& site);
  ValueId compute(Site& site);
  ValueId compute_iota(Site& site);
  ValueId compute_pad(Site& site);
  ValueId compute_cat(Site& site);
  ValueId compute_select(Site& site);
  ValueId compute_scatter(Site& site);
  ValueId compute_triu(Site& site);
  // emit_random.cc
  ValueId compute_random(Site& site);
  // The cache operator that a copy gives to its accesses of global memory, one element at a time or several.
  Attrs hints(const Site& site, ValueId v) const;
  ValueId read(Site& site, size_t operand, ValueId predicate = {}, ValueId otherwise = {}, ValueId loaded = {});
  ValueId operand_value(Site& site, size_t operand);
  // Writes the results that are kept in memory `which`; unset: all results.
  void write(Site& site, const std::vector<ValueId>& values, MemoryType which = MemoryType::kUnset);
  // States that `index`, an integer from data, lies inside the axis that it indexes. The host executor checks it.
  // `from_end`: a negative index counts from the end of the axis.
  void emit_within(Site& site, ValueId index, bool from_end = false);

  // emit_reduction.cc
  void emit_reduction(Site& site);
  void emit_init(Site& site, Form place);
  void emit_accumulation(Site& site, Form place);
  void emit_result(Site& site, Form place);
  // The same for several final statements that stand next to each other: all threads' values, all exchanges, all results.
  void emit_results(std::span<const TreeChild> finals);
  // Whether it is a final statement that combines values of the threads of a block, and whether it combines one of each.
  bool reduces_in_block(const TreeChild& child) const;
  bool reduces_one_value(const TreeChild& child) const;
  // Writes the results of a reduction, under the conditions of each memory, in which `values_of` emits them.
  void write_result(Site& site, const std::function<std::vector<ValueId>()>& values_of);
  // The index into the reduction's accumulators.
  Form accumulator_place(Site& site) const;
  void allocate_accumulator(OpId op);
  // The sums of all levels of partial sums at an index into the accumulators.
  std::vector<ValueId> emit_totals(OpId op, ValueId at);
  // `at_once`: for how many values of a thread the workspaces have room.
  std::vector<ValueId> emit_block_reduce(const Op& op, const std::vector<ValueId>& values, const Exchange& exchange,
                                         int64_t at_once = 1);
  std::vector<ValueId> emit_warp_reduce(const Op& op, const std::vector<ValueId>& values, const Exchange& exchange);
  void emit_exchange(OpId op);
  void emit_cluster_exchange(OpId op);
  // Adds the partial sums of each element to its accumulator.
  void emit_all_totals(OpId op);
  // How threads combine the reduction's parts.
  ReduceOp exchange_op(const Op& op) const;
  // The attributes of an op that reduces across the exchange's threads.
  Attrs exchange_attrs(const Op& op, const Exchange& exchange);
  void allocate_block_workspaces();
  // The places for the parts of a cluster's blocks. Other blocks may store there from then on.
  void allocate_cluster_places();
  // Combines a and b once, in the dtypes of the reduction's accumulators.
  std::vector<ValueId> combine(const Op& op, const std::vector<ValueId>& a, const std::vector<ValueId>& b);
  // The neutral element of a result, in a dtype that holds it.
  ValueId neutral(const Op& op, size_t result, Dtype d);
  // The dtype of a result's accumulator.
  Dtype held_dtype(OpId op, size_t result) const;

  // emit_columns.cc: loops over columns of a thread, each of which the block reduces
  struct Columns {
    int64_t count = 0;  // of the loop's iterations
    size_t finals = 0;  // the first of its children that ends a reduction; the others follow
  };
  std::optional<Columns> columns_of(uint32_t node);
  // Whether there is such a loop.
  bool has_columns();
  void emit_columns(uint32_t node, const Columns& columns);
  // How many values of a thread fit a list of the workspaces.
  int64_t at_once(OpId op) const;
  // The loop's count of iterations, if it is a constant.
  std::optional<int64_t> constant_count(uint32_t node);

  // emit_ahead.cc: loads that run ahead of their loop (passes/plan/ahead.h)
  // Fills the buffers for the first iterations of a loop from 0 to `end`. Does nothing where no load runs ahead of it.
  void begin_ahead(uint32_t node, ValueId end);
  // At the start of an iteration: takes what was loaded for it, and starts the load for a later one.
  void emit_ahead(uint32_t node);
  // Fills the buffers with what the iteration `at` needs, if there is one.
  void fill_ahead(uint32_t node, const std::map<ValueId, ValueId>& buffers, ValueId at);
  void emit_children_ahead(uint32_t node);
  bool is_ahead(uint32_t node, size_t child) const;

  // emit_strips.cc
  // Emits a loop from 0 to `end` in strips, with its children.
  void emit_strips(uint32_t node, ValueId end, bool unroll);
  void settle_below(uint32_t node, uint32_t strips, int64_t end);
  // Emits what follows the strip that began at `first`.
  void end_strip(uint32_t node, ValueId first);
  // The buffers of a level of partial sums. Level 0 is the accumulator.
  const std::vector<ValueId>& partial(OpId op, size_t level) {
    return level == 0 ? accumulators_.at(op) : partials_.at(op)[level - 1];
  }
  void add_partial(OpId op, size_t level, ValueId at);
  // The same for a sum with an error term, and its total.
  void add_compensated(OpId op, ValueId at);
  ValueId compensated_total(OpId op, ValueId at);

  const KernelPlan& plan_;
  const Graph& g_;
  OpenExtents open_;  // for what the launch computes too
  EmitOptions options_;
  KernelBuilder kernel_;
  std::vector<ValueId> tensors_;  // by value of the graph: its parameter or buffer
  KernelSignature signature_;
  std::map<ScalarParameter, ValueId> scalars_;  // in the kernel
  std::map<KernelParameter::Kind, Counters> counters_;
  size_t grid_workspaces_ = 0;
  std::map<ValueId, std::array<ValueId, 2>> launched_;  // by value in `spelled`: its parameter, its prepared one
  std::map<OpId, std::vector<ValueId>> accumulators_;   // by result
  std::map<OpId, std::vector<std::vector<ValueId>>> partials_;  // by level, then result
  std::vector<ValueId> node_index_;                             // by node: the loop's scalar in the kernel
  std::map<std::pair<Dtype, int>, ValueId> block_workspaces_;   // by dtype and list
  std::map<std::pair<Dtype, int>, ValueId> cluster_parts_;      // the same
  std::map<OpId, ValueId> came_last_;                           // by grid reduction: whether this block has its result
  // The loads that run ahead of a loop from 0 to `end`. Stage k has, by tensor, the buffers for k + 1 iterations later.
  struct Ahead {
    ValueId end;
    std::vector<size_t> children;
    std::vector<std::map<ValueId, ValueId>> stages;
  };
  std::map<uint32_t, Ahead> ahead_;               // by node
  std::map<ValueId, ValueId> loaded_before_;      // by tensor: the buffer that is read in place of the input
  ValueId shared_end_;                            // the next free byte of the arena
  ValueId workspaces_begin_;                      // the first byte of the block's workspaces
  std::map<uint32_t, std::set<size_t>> settled_;  // by statement: conditions that hold in the branch being emitted
  struct Emitted {
    ValueId predicate;
    bool settled = false;
  };
  std::map<std::pair<uint32_t, size_t>, Emitted> emitted_;  // by statement and condition; kept for notes
};

}  // namespace fusebox
