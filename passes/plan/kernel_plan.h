// The kernel plan is a value: it holds everything that lowering decides between the scheduled graph and the kernel.
// Each stage (plan_stages.h) takes a plan and returns it with its own members filled in. Emission (passes/lower) turns
// a complete plan into a kernel and a launch, and refuses nothing.
//
// Invariants: every id belongs to `graph`, which must outlive the plan. A form belongs to the algebra of its
// statement's view (statement_view.h). `conditions`, `reads` and `writes` are set once plan_statements has run.
//
//   KernelPlan plan = plan_kernel(g);   // throws if the schedule is not legal
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
#include "passes/nest/facts.h"
#include "passes/nest/nest.h"
#include "passes/nest/statement.h"
#include "passes/nest/symbols.h"
#include "passes/plan/clusters.h"

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

// Describes the memory of a tensor.
struct Buffer {
  ValueId value;    // a tensor of the graph
  ValueId storage;  // the tensor whose layout and memory it has: itself, or the input that it overwrites
  MemoryType memory = MemoryType::kLocal;
  std::vector<DomainId> places;       // local, shared: the domains that it is laid out by, outermost first
  uint32_t home = LoopNode::kNoNode;  // the innermost loop around its life
  bool is_parameter = false;
  uint32_t slot = 0;     // shared: buffers of one slot lie on one another
  int64_t elements = 0;  // local: of one thread
};

// The kind of a check: a domain must stay in its extent, a thread must be inside a loop that the launch may exceed,
// only one thread along a dimension without a loop may run, or only the block that came last to an exchange.
enum class CheckKind : uint8_t { kDomain, kLoopExtent, kThread, kLastBlock };
std::string_view text(CheckKind k);

// A condition that must hold for a statement to run at a loop point: `value compare bound`.
struct Condition {
  OpKind compare;  // kLt, kGe, kEq, kNe
  Form value, bound;
  std::optional<ParallelType> guard;  // compared is the thread's index along it; last block: what the exchange combines
  CheckKind kind = CheckKind::kDomain;
  DomainId domain;  // the checked domain, or the thread loop whose launch may be larger
  CheckReason reason = CheckReason::kSplitInput;
  // It holds at the first iterations of a loop, whatever the others are: below `begins` of the loop at this node.
  uint32_t node = LoopNode::kNoNode;
  int64_t begins = 0;
  bool holds_before = false;  // it holds where a load that runs ahead of its loop stands before that loop
  auto operator<=>(const Condition&) const = default;
};

// One operand that a statement reads, or one result that it writes.
struct Access {
  ValueId value;                  // none: a scalar, or a missing operand
  Form index;                     // of the element, in its buffer
  std::optional<Form> position;   // cat: the index along the axis, counted from the operand's first element
  std::vector<Condition> inside;  // pad, cat: the element exists only if these hold
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

// The accumulators of a reduction in a thread: one for each point of the loops at `places`.
struct Accumulator {
  std::vector<size_t> places;  // positions in the loop domain of the op's first result
  int64_t elements = 1;
};

constexpr int64_t kCascadeStrip = 16;  // elements of a strip of a welford, and strips of a partial sum

// Partial sums of a long serial sum (plan_cascades.cc).
struct Cascade {
  size_t position = 0;          // of the loop that runs in strips
  int64_t inside = 1;           // elements of an iteration, at most
  int levels = 0;               // partial sums besides the accumulator
  bool is_compensated = false;  // the one partial sum has its rounding errors beside it
};

// Combines a reduction's results across threads. Across blocks, the parts of blocks go through global memory, and the
// block that comes last combines them in the order of block numbers. Either it alone has the results, and `readers`
// run in it alone, or the blocks wait for it (a barrier of the grid), and all have them (plan_exchanges.cc).
//
// The blocks of a cluster store their parts to one another's shared memory, and all of them have the results.
struct Exchange {
  std::vector<ParallelType> threads;  // ascending
  bool is_grid = false;
  bool is_cluster = false;         // the blocks are those of a cluster
  bool is_last = false;            // the last block alone has the results
  std::vector<OpId> readers = {};  // ascending: the ops that run in the last block, beside the reduction's `final`
  // So many lanes of a warp hold each row, and combine it without memory (warp_rows.h). 0: the block combines it.
  int64_t lanes = 0;
};

// A condition of a statement in an unswitched loop, taken at the last point of the loop. If all of them hold, the body
// runs without its checks.
struct Hoisted {
  uint32_t statement = 0;
  size_t condition = 0;
  Condition at_last_point;
};

// A fact that the launch must check before a vectorized access: the divisor divides the product.
struct Divisibility {
  int64_t divisor;
  std::vector<ScalarParameter> product;
  auto operator<=>(const Divisibility&) const = default;
};

// An algebra over the loops of a path, and what holds for them: the stated facts, the loops' extents and, if
// `knows_launch`, what the launch checks. Ops share it if their nests have the path and their loops the same extents.
struct PathAlgebra {
  PathAlgebra(const Defects& defects, bool launch) : algebra(defects), knows_launch(launch) {}

  IndexAlgebra algebra;
  bool knows_launch = false;
  // The ops that share it, with the extents of their domains. All of them are made before the loops are declared, so
  // that they do not depend on which op is asked about first.
  std::map<OpId, DomainValues::Knowledge> members;
};

// The knowledge behind a statement's view: the algebra that the statement's forms belong to, and the values of the
// domains of its op's first result. `path` holds the statement's loops. The knowledge only grows.
struct ViewState {
  std::vector<uint32_t> path;
  std::shared_ptr<PathAlgebra> shared;
  DomainValues::Knowledge own;
  bool is_ready = false;  // whether `own` is complete
};

// Relates the loops of the op that makes an operand to the loops of its reader, by position (correspondence.h).
struct Correspondence {
  std::vector<bool> shared;          // equals the reader's loop at this position, extent included
  std::vector<bool> thread;          // equals the reader's loop of the same thread dimension
  std::vector<bool> at_every_point;  // the reader's loop is replicated, so it also runs in its holes
  std::vector<bool> if_any;          // the shared extents are only equal if the reader's loops run at all
};

struct KernelPlan {
  explicit KernelPlan(const Graph& g, const PlanOptions& o = {})
      : graph(&g),
        options(o),
        nest_plan(plan_nests(g, o.defects)),
        classes(g, o.defects, o.sizes),
        facts(stated_facts(g)),
        views(std::make_shared<Views>(g.ops.size())) {
    tree.nodes = nest_plan.nodes;
  }

  const Graph* graph;
  PlanOptions options;
  NestPlan nest_plan;  // the nest of each op
  ExtentClasses classes;
  std::vector<StatedFact> facts;  // that the schedule states and the launch checks

  // plan_threads
  std::set<ParallelType> used_threads;
  std::set<ParallelType> may_be_empty;                            // a loop of the type may have no iteration
  std::map<ParallelType, bool> exact_launch;                      // every loop of the type has one extent
  std::map<ParallelType, std::optional<int64_t>> largest_launch;  // the launch's extent if it is constant
  std::optional<Cluster> cluster;

  // plan_buffers
  std::vector<Buffer> buffers;            // by value index; meaningful for tensors
  std::set<ParallelType> launched_empty;  // launched with a thread even if every loop is empty

  // plan_replicas
  std::set<DomainId> replicated;  // broadcast axes along which every thread computes the same value

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
  std::map<uint32_t, std::vector<ValueId>> at_home;  // by loop: tensors that live in it; shared tensors live at the top
  std::map<uint32_t, std::vector<OpId>> accumulators_at;  // by loop: reductions whose accumulators live in it
  std::map<OpId, Accumulator> accumulators;               // of reductions
  std::map<OpId, Exchange> exchanges;                     // of reductions over threads; plan_exchanges completes them
  std::set<Divisibility> divisibilities;                  // facts that the launch checks
  std::map<ValueId, int64_t> alignments;                  // by storage: bytes

  // Set by plan_statements, when all facts are known that the launch checks: views made from then on rely on them.
  bool knows_launch = false;

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
  // Whether every axis that the domain is made from is replicated.
  bool is_replicated(DomainId d) const;
  // Whether the launch has the extent of every loop of the type.
  bool is_exact(ParallelType p) const { return exact_launch.at(p) && !launched_empty.contains(p); }
  // Whether the domain is, or is made from, a promoted broadcast: a shared loop gives that another extent.
  bool is_promoted(DomainId d) const;
  // Whether every result of the nest is in memory that the threads of a dimension share.
  bool has_place_for(const Nest& nest, ParallelType p) const;
  // How many lists of 16-byte elements, one a thread, the largest block collective needs in shared memory.
  int64_t block_workspaces() const;
  // The places that the largest exchange of a cluster needs. Without such an exchange, it has no lists.
  ClusterPlaces cluster_places() const;
  // The reduction whose last block runs the statements of an op, or none.
  OpId last_block_of(OpId op) const;
  std::string place_of(ValueId v) const { return "%" + (*graph)[v].name; }

  // Copies of a plan share the views.
  struct Views {
    explicit Views(size_t ops) : of_op(ops) {}
    std::vector<std::vector<std::unique_ptr<ViewState>>> of_op;  // then by path
    std::map<std::vector<uint32_t>, std::vector<OpId>> ops_at;   // by path of the nest
    std::map<std::pair<std::vector<uint32_t>, bool>, std::shared_ptr<PathAlgebra>>
        algebras;  // by path and knows_launch
  };
  std::shared_ptr<Views> views;
  // The comparisons that were made so far. Each operand is compared once.
  std::map<std::pair<OpId, size_t>, Correspondence> correspondences;
};

// -- symbols of a plan's algebras that are not scalars of the graph
constexpr int kStrideSymbols = 1 << 24;  // + a domain's index: the stride of that axis
constexpr int kLoadedSymbol = 1 << 28;   // a scalar that the kernel loads, one in each statement
// The parameter that a symbol stands for, or nothing for kLoadedSymbol.
std::optional<ScalarParameter> parameter_of(const Graph& g, int symbol);

// The dtype of data in a kernel. Data of dtype index are 64-bit integers there, because the kernel's own index type may
// be narrower and is checked for overflow.
inline Dtype data_dtype(Dtype d) { return d == Dtype::kIndex ? Dtype::kInt64 : d; }

// The dtype that a reduction accumulates in. Reduced floats are accumulated in float and rounded once, at the end. A
// float8 also has no infinity to begin a minimum with.
inline Dtype accumulator_dtype(Dtype d) { return compute_dtype(data_dtype(d)); }

}  // namespace fusebox
