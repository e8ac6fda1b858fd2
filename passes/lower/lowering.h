// The state of one lowering, shared by the files lower_*.cc. Internal to passes.
//
// Order: plan (nests, promotion) → buffers (where each tensor lives and how it is addressed) → tree (statements in
// loops) → synchronisation → emission. `OpView` holds what one statement sees: the algebra over its loops, the values
// of the domains of its own tensor, and, through `feed`, those of the tensors that it reads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "passes/kernel/form_emitter.h"
#include "passes/kernel/kernel_builder.h"
#include "passes/lower/lower.h"
#include "passes/nest/domain_values.h"
#include "passes/nest/statement.h"

namespace fusebox::lowering {

// A parameter of the kernel beyond its tensors: a scalar of the graph, or a stride of a tensor.
struct ScalarParameter {
  ValueId scalar;     // or
  ValueId stride_of;  // a tensor, and
  uint32_t axis = 0;  // its allocation axis
  auto operator<=>(const ScalarParameter&) const = default;
};

// How a tensor is kept.
struct Buffer {
  ValueId value;    // of the scheduled graph
  ValueId storage;  // the tensor whose layout and memory it has: itself, or the input that it overwrites
  MemoryType memory = MemoryType::kLocal;
  std::vector<DomainId> places;       // local, shared: the domains that it is laid out by, outermost first
  uint32_t home = LoopNode::kNoNode;  // the innermost loop around its life
  bool is_parameter = false;
  uint32_t slot = 0;     // shared: buffers of one slot lie on one another
  ValueId kernel_value;  // of the kernel graph, once made
};

// How the loops of the op that makes an operand correspond to its reader's, by position: as shared if a loop is the
// reader's at this position, of one extent; as a thread's, if it is the reader's loop of its thread dimension
// (correspondence.h). At every point: the reader runs the shared loop in its holes too, as the loop is replicated.
struct Correspondence {
  std::vector<bool> shared, thread, at_every_point;
};

// Data of dtype index are 64-bit integers in a kernel: its own index type may be narrower, and is checked against
// overflow.
inline Dtype data_dtype(Dtype d) { return d == Dtype::kIndex ? Dtype::kInt64 : d; }

// Reduced floats are accumulated in float and rounded once, at the end; a float8 has no infinity to begin a minimum
// with either.
Dtype accumulator_dtype(Dtype d);

class Lowering;

class OpView {
 public:
  OpView(Lowering& lowering, const Statement& statement);

  IndexAlgebra& algebra;
  Symbols symbols;
  const Statement& statement;
  DomainValues own;

  // The values of an operand's domains, fed by this op. `at_axis`: the value at the axis that an indexed op chooses.
  DomainValues feed(size_t operand, std::optional<Form> at_axis = std::nullopt);
  // The linear index into a tensor's buffer.
  // Of the first result of the op that made `sibling`, whose values are given: by position.
  DomainValues values_of_leader(ValueId sibling, const DomainValues& values);
  Form index_of(const Buffer& buffer, DomainValues& values);
  Form loop(size_t position) const;  // of the op's loop domain
  // The index of the element of the result that is computed: 0 at a broadcast, promoted or not.
  Form place(DomainId d) const;
  // The loop of this nest with a parallel type, or none.
  std::optional<Form> thread_loop(ParallelType p) const;
  // A scalar that is loaded at run time, as a symbol.
  Form run_time_symbol(ValueId kernel_value);
  // The offset along the concatenated axis at which an operand of `cat` begins.
  Form cat_offset(size_t operand);

 private:
  void declare_loops();
  Form global_index(const Buffer& buffer, DomainValues& values);

  Lowering& l_;
};

class Lowering {
 public:
  Lowering(const Graph& g, const LowerOptions& options);
  Lowered run();

  const Graph& g;
  LowerOptions options;
  NestPlan plan;
  ExtentClasses classes;
  LoopTree tree;
  IndexAlgebra algebra;
  KernelBuilder kernel;
  std::vector<Buffer> buffers;  // by value index; only tensors are meaningful
  std::set<ParallelType> used_threads;
  std::map<ParallelType, bool> exact_launch;      // every loop of the type has the launch's extent
  std::set<ParallelType> launched_empty;          // one thread at least, although every loop of the type may be empty
  std::map<int, ScalarParameter> stride_symbols;  // algebra symbol → stride
  std::map<int, ValueId> run_time_symbols;        // algebra symbol → kernel scalar
  std::map<ParallelType, std::optional<int64_t>> largest_launch;  // the launch, where it is constant
  std::map<ScalarParameter, ValueId> parameters;
  // What the launch must check before vectorized access: divisor, and the form's scalars, as host scalars need them.
  struct Divisibility {
    int64_t divisor;
    std::vector<ScalarParameter> product;
    auto operator<=>(const Divisibility&) const = default;
  };
  std::set<Divisibility> divisibilities;
  std::map<ValueId, int64_t> alignments;  // parameter tensor → bytes

  // lower_buffers.cc
  void plan_buffers();
  void plan_threads();
  void plan_empty_threads();
  void check_sharing();  // shared loops agree, exchanges go through shared memory
  std::vector<OrderConstraint> alias_order();
  // Compared once for each operand of each op.
  const Correspondence& correspondence(OpId consumer, size_t operand);
  std::map<std::pair<OpId, size_t>, Correspondence> correspondences;
  bool crosses_threads(OpId producer, OpId consumer, bool grid);

  // lower_replicas.cc
  void plan_replicas();
  std::set<DomainId> replicated;         // broadcast axes
  bool is_replicated(DomainId d) const;  // made of such axes alone
  // Whether every result is kept where the threads of a dimension share memory.
  bool has_place_for(const Nest& nest, ParallelType p) const;

  // What a view knows once it is made, by op: an op is looked at for each operand, each loop and each branch.
  struct KnownView {
    std::vector<uint32_t> path;
    IndexAlgebra algebra;
    DomainValues::Knowledge own;
  };
  std::vector<std::vector<KnownView>> known_views;

  // lower_shared.cc
  void plan_shared_slots();
  void allocate_shared();
  std::vector<std::vector<ValueId>> shared_slots;

  // lower_sync.cc
  struct SyncPoint {
    uint32_t node;  // the loop whose body it stands in; kNoNode: top
    size_t before;  // child
    bool grid;
    auto operator<=>(const SyncPoint&) const = default;
  };
  void plan_synchronisation();
  std::set<SyncPoint> sync_points;

  // lower_emit.cc
  void emit_children(uint32_t node);
  void emit_node(uint32_t node);
  void emit_loop(uint32_t node, bool unroll);
  bool is_promoted(DomainId domain) const;
  void emit_statement(const Statement& s);
  ValueId emit_form(Form form);
  // What must hold for a statement to run at a loop point.
  struct Condition {
    OpKind compare;  // kLt, kGe, kEq
    Form value, bound;
    std::optional<ParallelType> guard;  // the compared value is the thread's index along this dimension
    CheckKind kind = CheckKind::kDomain;
    DomainId domain;  // that is checked, or the thread loop whose launch may be larger
    CheckReason reason = CheckReason::kSplitInput;
    auto operator<=>(const Condition&) const = default;
  };
  // The checks of a tensor's domains, whose values are given as the view's op sees them.
  std::vector<DomainCheck> domain_checks(OpView& view, DomainValues& values) const;
  std::vector<Condition> conditions(OpView& view);
  ValueId emit_condition(const Condition& c);
  // But those that an unswitch has settled. For a result in local memory: without those that let one thread alone store
  // to memory that others see; in shared memory: without those between blocks.
  ValueId emit_conditions(OpView& view, MemoryType stored = MemoryType::kGlobal);

  // lower_notes.cc
  std::vector<CheckNote> check_notes();
  struct Emitted {
    ValueId predicate;
    bool settled = false;
  };
  std::map<std::pair<uint32_t, size_t>, Emitted> emitted;  // by statement and condition, where notes are wanted

  // lower_unswitch.cc
  bool emit_unswitched(uint32_t node);
  std::map<uint32_t, std::set<size_t>> settled;  // by statement: conditions that hold in the branch being emitted
  uint32_t statement_index(const Statement& s) const { return static_cast<uint32_t>(&s - tree.statements.data()); }
  ValueId scalar(ValueId v);  // a scalar of the graph in the kernel
  ValueId scalar(ValueId v, std::map<ValueId, ValueId>& known);
  ValueId parameter(const ScalarParameter& p);
  ValueId thread_index(ParallelType p);
  ValueId buffer_of(ValueId v);
  void declare_parameters();
  void allocate_local(Buffer& b);
  Form elements_of(Symbols& symbols, const Buffer& b);
  // The statements between are emitted under `predicate`, together with the neighbour's where it is the same.
  void guarded(ValueId predicate, const std::function<void()>& emit);

  // lower_ops.cc
  void emit_pointwise(OpView& view);
  ValueId compute(OpView& view, const Op& op);
  ValueId read(OpView& view, size_t operand, ValueId predicate = {}, ValueId otherwise = {});
  ValueId operand_value(OpView& view, size_t operand);
  // The results in this memory; unset: all of them.
  void write(OpView& view, const std::vector<ValueId>& values, MemoryType which = MemoryType::kUnset);
  ValueId emit_scatter(OpView& view, const Op& op);
  // Says that `index`, an integer that data give, lies inside the axis of an operand that it chooses from. The host
  // executor checks it.
  void emit_within(OpView& view, ValueId index, bool from_end = false);
  ValueId cast_to(ValueId v, Dtype dtype) {
    return kernel.graph()[v].dtype == dtype ? v : kernel.op(OpKind::kCast, {v}, dtype);
  }

  // lower_vector.cc
  bool is_vector_copy(const Statement& s) const;
  void emit_vector_copy(OpView& view);

  // lower_reduce.cc
  void emit_reduction(OpView& view);
  void allocate_accumulator(OpId op);
  std::vector<ValueId> emit_collective(const Op& op, const std::vector<ValueId>& values,
                                       const std::vector<int64_t>& threads, bool grid);
  ValueId grid_workspace(Dtype dtype);
  ValueId block_workspace(Dtype dtype, int list);
  void plan_block_workspaces();
  // (a, b) of one combination of a reduction, in the dtypes of its accumulators.
  std::vector<ValueId> combine(const Op& op, const std::vector<ValueId>& a, const std::vector<ValueId>& b);
  // The positions of the loops by which an accumulator is laid out.
  std::vector<size_t> accumulator_places(const Nest& nest) const;
  std::map<OpId, std::vector<ValueId>> accumulators;

  // lower_cascade.cc
  struct Cascade {
    size_t position = 0;                        // of the loop that runs in strips
    int64_t inside = 1;                         // elements of an iteration, at most
    int levels = 0;                             // partial sums beyond the accumulator
    std::vector<std::vector<ValueId>> partial;  // by level, then result
  };
  void plan_cascades();
  // A loop from 0 to `end` in strips, with its children.
  void emit_strips(uint32_t node, ValueId end, bool unroll);
  // After a strip of the loop that began at `first`.
  void end_strip(uint32_t node, ValueId first);
  // Level 0 is the accumulator.
  const std::vector<ValueId>& partial(OpId op, size_t level) {
    return level == 0 ? accumulators.at(op) : cascades.at(op).partial[level - 1];
  }
  void add_partial(OpId op, size_t level, ValueId at);
  bool is_ordered_sum(const Op& op) const;
  std::map<OpId, Cascade> cascades;
  std::map<uint32_t, int64_t> strips;  // by node: iterations of a strip

  // lower_launch.cc
  Graph build_launch();

  std::string place_of(ValueId v) const { return "%" + g[v].name; }
  std::map<uint32_t, std::vector<OpId>> accumulators_at;
  std::map<uint32_t, std::vector<ValueId>> at_home;  // tensors that are allocated in a loop; shared ones at the top
  std::vector<ValueId> node_index;                   // by node: the loop's scalar in the kernel
  ValueId grid_counters;                             // the parameter, where the kernel has grid barriers or reductions
  int64_t grid_slots = 0;
  struct Workspace {
    ValueId parameter;
    Dtype dtype;
  };
  std::vector<Workspace> grid_workspaces;
  std::map<std::pair<Dtype, int>, ValueId> block_workspaces;  // by dtype and list
  int workspace_lists = 0;  // how many lists of 16-byte elements, one a thread, the largest collective needs
  ValueId shared_end;       // the next free byte of the arena
};

}  // namespace fusebox::lowering
