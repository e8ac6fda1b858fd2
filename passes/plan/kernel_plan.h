// The kernel plan: everything that lowering decides between the scheduled graph and the kernel. It is a value. Each
// stage (plan_stages.h) takes a plan and returns it with its own members filled in; emission (passes/lower) turns a
// complete plan into a kernel and a launch, and cannot refuse anything.
//
// Invariants: every id is one of `graph`, which must outlive the plan; a form belongs to the algebra of the view that
// its statement has (statement_view.h); `conditions`, `reads` and `writes` are set once plan_statements has run.
//
//   KernelPlan plan = plan_kernel(g);   // throws where the schedule is not legal
//   emit_kernel(plan).kernel
//
// The plan of y = exp x, i0 split by 128 → o on grid.x, t on block.x (print_plan.h writes it):
//
//   loop 0 grid.x %y.o, loop 1 block.x %y.t in 0
//   statement %y main in [0, 1]: read %x at 128*o + t, write %y at 128*o + t, if 128*o + t < n: split input %y.i0
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"
#include "ir/table/defect.h"
#include "passes/nest/check_reason.h"
#include "passes/nest/domain_values.h"
#include "passes/nest/nest.h"
#include "passes/nest/statement.h"
#include "passes/nest/symbols.h"

namespace fusebox {

struct PlanOptions {
  Defects defects = {};  // seeded
  Bindings sizes = {};   // sizes of one run: only a seeded defect reads them
};

// A parameter of the kernel beside its tensors: a scalar of the graph, or a stride of a tensor.
struct ScalarParameter {
  ValueId scalar;     // or
  ValueId stride_of;  // a tensor, and
  uint32_t axis = 0;  // its allocation axis
  auto operator<=>(const ScalarParameter&) const = default;
};

// Where a tensor is kept.
struct Buffer {
  ValueId value;    // of the graph
  ValueId storage;  // the tensor whose layout and memory it has: itself, or the input that it overwrites
  MemoryType memory = MemoryType::kLocal;
  std::vector<DomainId> places;       // local, shared: the domains that it is laid out by, outermost first
  uint32_t home = LoopNode::kNoNode;  // the innermost loop around its life
  bool is_parameter = false;
  uint32_t slot = 0;     // shared: buffers of one slot lie on one another
  int64_t elements = 0;  // local: of one thread
};

// A condition says what a check is for: a domain that must stay in its extent, a thread loop that the launch may
// exceed, a thread dimension that no loop tells apart.
enum class CheckKind : uint8_t { kDomain, kLoopExtent, kThread };
std::string_view text(CheckKind k);

// What must hold for a statement to run at a loop point: `value compare bound`.
struct Condition {
  OpKind compare;  // kLt, kGe, kEq, kNe
  Form value, bound;
  std::optional<ParallelType> guard;  // the compared value is the thread's index along this dimension
  CheckKind kind = CheckKind::kDomain;
  DomainId domain;  // the checked domain, or the thread loop whose launch may be larger
  CheckReason reason = CheckReason::kSplitInput;
  auto operator<=>(const Condition&) const = default;
};

// One operand that a statement reads, or one result that it writes.
struct Access {
  ValueId value;                  // none: a scalar or no operand
  Form index;                     // of the element, in its buffer
  std::optional<Form> position;   // cat: the place along the axis, counted from the operand's first element
  std::vector<Condition> inside;  // pad, cat: the element is there only where these hold
};

// A copy of several elements at once.
struct VectorCopy {
  int64_t width = 1;  // elements
  Form source, target;
};

struct StatementPlan {
  std::vector<Condition> conditions;
  std::vector<Access> reads;   // by operand
  std::vector<Access> writes;  // by result
  std::optional<VectorCopy> vector;
};

enum class SyncScope : uint8_t { kBlock, kGrid };

// A barrier before a child of a loop's body.
struct SyncPoint {
  uint32_t node;  // kNoNode: the top
  size_t before;  // the child
  SyncScope scope = SyncScope::kBlock;
  auto operator<=>(const SyncPoint&) const = default;
};

// Where a reduction keeps what it has added up: in a thread, for each point of these loops.
struct Accumulator {
  std::vector<size_t> places;  // positions in the loop domain of the op's first result
  int64_t elements = 1;
};

constexpr int64_t kCascadeStrip = 16;  // elements of a strip, and sums of a level

// Partial sums of a long serial sum (plan_cascades.cc).
struct Cascade {
  size_t position = 0;  // of the loop that runs in strips
  int64_t inside = 1;   // elements of an iteration, at most
  int levels = 0;       // partial sums beyond the accumulator
};

// A combination of a reduction's results across threads.
struct Exchange {
  std::vector<ParallelType> threads;  // ascending
  bool is_grid = false;
};

// A condition of a statement, taken at the last point of a loop that is unswitched: where all of them hold, the body
// runs without them.
struct Hoisted {
  uint32_t statement = 0;
  size_t condition = 0;
  Condition at_last_point;
};

// What the launch must check before a vectorized access: the divisor divides the product.
struct Divisibility {
  int64_t divisor;
  std::vector<ScalarParameter> product;
  auto operator<=>(const Divisibility&) const = default;
};

// What the loops of one nest, with a path for a statement's loops, say of the domains: the algebra that the forms of
// the statement belong to, and the values of the domains of its first result. It only grows.
struct ViewState {
  std::vector<uint32_t> path;
  IndexAlgebra algebra;
  DomainValues::Knowledge own;
  bool is_ready = false;  // the loops are declared
};

// How the loops of the op that makes an operand correspond to its reader's, by position (correspondence.h).
struct Correspondence {
  std::vector<bool> shared;          // the loop is the reader's at this position, of one extent
  std::vector<bool> thread;          // the loop is the reader's loop of its thread dimension
  std::vector<bool> at_every_point;  // the reader runs the shared loop in its holes too, as the loop is replicated
};

struct KernelPlan {
  explicit KernelPlan(const Graph& g, const PlanOptions& o = {})
      : graph(&g),
        options(o),
        nest_plan(plan_nests(g, o.defects)),
        classes(g, o.defects, o.sizes),
        views(std::make_shared<Views>(g.ops.size())) {
    tree.nodes = nest_plan.nodes;
  }

  const Graph* graph;
  PlanOptions options;
  NestPlan nest_plan;  // the nest of each op
  ExtentClasses classes;

  // plan_threads
  std::set<ParallelType> used_threads;
  std::set<ParallelType> may_be_empty;                            // a loop of the type may have no iteration
  std::map<ParallelType, bool> exact_launch;                      // every loop of the type has the launch's extent
  std::map<ParallelType, std::optional<int64_t>> largest_launch;  // the launch, where it is constant

  // plan_buffers
  std::vector<Buffer> buffers;            // by value index; only tensors are meaningful
  std::set<ParallelType> launched_empty;  // one thread at least, although every loop of the type may be empty

  // plan_replicas
  std::set<DomainId> replicated;  // broadcast axes along which every thread computes the same

  // plan_loops
  LoopTree tree;

  // plan_shared
  std::vector<std::vector<ValueId>> shared_slots;

  // plan_syncs
  std::set<SyncPoint> sync_points;

  // plan_cascades
  std::map<OpId, Cascade> cascades;
  std::map<uint32_t, int64_t> strips;  // by node: iterations of a strip

  // plan_storage
  std::map<uint32_t, std::vector<ValueId>> at_home;       // by loop: tensors that live in it; shared ones at the top
  std::map<uint32_t, std::vector<OpId>> accumulators_at;  // by loop: reductions whose accumulators live in it
  std::map<OpId, Accumulator> accumulators;               // of reductions
  std::map<OpId, Exchange> exchanges;                     // of reductions over threads
  std::set<Divisibility> divisibilities;                  // that the launch checks
  std::map<ValueId, int64_t> alignments;                  // by storage: bytes

  // plan_storage sets which are vector copies, plan_statements the rest
  std::vector<StatementPlan> statements;  // by index in the tree

  // plan_statements
  std::map<uint32_t, std::vector<Hoisted>> unswitched;  // by node

  const Defects& defects() const { return options.defects; }
  bool has_nest(OpId op) const { return nest_plan.has_nest(op); }
  const Nest& nest_of(OpId op) const { return nest_plan.of(op); }
  const Buffer& buffer_of(ValueId v) const { return buffers[v.index]; }
  ParallelType parallel_of(uint32_t node) const { return tree.nodes[node].parallel; }
  const std::vector<DomainId>& loops_of(OpId op) const { return loop_of(graph->tensor_of((*graph)[op].results[0])); }
  // Whether the domain is made of replicated axes alone.
  bool is_replicated(DomainId d) const;
  // Whether the domain is, or is made from, a broadcast that a shared loop gives another extent.
  bool is_promoted(DomainId d) const;
  // Whether every result of the nest is kept where the threads of a dimension share memory.
  bool has_place_for(const Nest& nest, ParallelType p) const;
  std::string place_of(ValueId v) const { return "%" + (*graph)[v].name; }

  // Views by op, then path; copies of a plan share them.
  using Views = std::vector<std::vector<std::unique_ptr<ViewState>>>;
  std::shared_ptr<Views> views;
  // Kept for plan_replicas and what comes after: each pair is compared once.
  std::map<std::pair<OpId, size_t>, Correspondence> correspondences;
};

// -- symbols of a plan's algebras that are no scalar of the graph
constexpr int kStrideSymbols = 1 << 24;  // + a domain: the stride of the axis
constexpr int kLoadedSymbol = 1 << 28;   // a scalar that the kernel loads, one for each statement
// The parameter that a symbol stands for; nothing for kLoadedSymbol.
std::optional<ScalarParameter> parameter_of(const Graph& g, int symbol);

// The dtype of data in a kernel. Data of dtype index are 64-bit integers there: the kernel's own index type may be
// narrower, and is checked against overflow.
inline Dtype data_dtype(Dtype d) { return d == Dtype::kIndex ? Dtype::kInt64 : d; }

// Reduced floats are accumulated in float and rounded once, at the end; a float8 has no infinity to begin a minimum
// with either.
inline Dtype accumulator_dtype(Dtype d) { return compute_dtype(data_dtype(d)); }

}  // namespace fusebox
