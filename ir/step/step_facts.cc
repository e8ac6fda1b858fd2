// Steps that state facts: about sizes, which the launch checks and lowering relies on, and about the launch itself.
#include <algorithm>

#include "ir/scalar/scalar.h"
#include "ir/step/step_rules.h"

namespace fusebox {
namespace {

// The slots of `assume`, in the order of the step's table.
enum FactSlot : size_t { kProduct, kMultipleOf, kAtMost, kBelow, kEqual, kFactSlots };

bool is_size(const Graph& g, ValueId v) { return g[v].def && g[g[v].def].kind == OpKind::kSize; }

// Facts stand before the outputs.
void insert_fact(Graph& g, Op op) {
  const auto& body = g.regions[0].ops;
  const auto first = std::find_if(body.begin(), body.end(), [&](OpId id) { return g[id].kind == OpKind::kOutput; });
  if (first == body.end())
    append(g, Graph::body(), std::move(op));
  else
    insert_before(g, *first, std::move(op));
}

class Facts {
 public:
  explicit Facts(StepContext& c) : c_(c), ranges_(*slot_ranges(*row_of(c.step.kind).format, c.step.operands.size())) {}

  void run() {
    check();
    if (!c_.target) return;
    c_.begin();
    ValueId product;
    std::string name;
    for (uint32_t i = 0; i < ranges_[kProduct].count; ++i) {
      const ValueId v = c_.scalar(i);
      product = product ? add(OpKind::kMul, product, v, Dtype::kIndex) : v;
      name += (name.empty() ? "" : " * ") + c_.place(i);
    }
    for (size_t slot = kMultipleOf; slot < kFactSlots; ++slot) {
      if (!states(slot)) continue;
      const ValueId bound = c_.scalar(at(slot));
      Op op{OpKind::kAssume, {holds(slot, product, bound)}, {}, {}, {}};
      op.attrs.set(AttrKey::kWhy, name + std::string(kWords[slot]) + c_.place(at(slot)));
      append_before_outputs(std::move(op));
    }
  }

 private:
  static constexpr std::string_view kWords[] = {"", " is a multiple of ", " is at most ", " is below ", " is "};

  size_t at(size_t slot) const { return ranges_[slot].begin; }
  bool states(size_t slot) const { return c_.step.operands[at(slot)] != StepOperand{}; }

  void check() const {
    const auto count = ranges_[kProduct].count;
    if (count == 0) c_.refuse("assume lists the sizes that it is about, such as [%n]");
    if (count == 1 && c_.step.operands[0].is_integer()) return check_least();
    for (uint32_t i = 0; i < count; ++i) {
      if (c_.step.operands[i].is_integer())
        c_.refuse("assume lists sizes, or one number that is below a size or at most a size; name a size such as %n");
      const ValueId v = c_.value(i);
      if (c_.g[v].kind != ValueKind::kScalar || c_.g[v].dtype != Dtype::kIndex)
        c_.refuse("a fact is about scalars of dtype index, such as a size", c_.place(i), ErrorCode::kStepReferent);
    }
    bool states_one = false;
    for (size_t slot = kMultipleOf; slot < kFactSlots; ++slot) {
      if (!states(slot)) continue;
      states_one = true;
      check_bound(slot);
    }
    if (!states_one) c_.refuse("assume states no fact; add multiple_of, at_most, below or equal, and a number over 0");
  }

  // A number that a size is larger than, or as large as.
  void check_least() const {
    const int64_t least = c_.step.operands[0].integer;
    if (least < 1 || least > kLargest) c_.refuse("a fact compares with a number from 1 to 2^62", c_.place(0));
    for (size_t slot = kMultipleOf; slot < kFactSlots; ++slot) {
      const bool is_least = slot == kAtMost || slot == kBelow;
      if (states(slot) && (!is_least || c_.step.operands[at(slot)].is_integer()))
        c_.refuse("a fact about a number says that it is below a size, or at most a size; write `assume [8] below %n`");
      if (states(slot)) check_bound(slot);
    }
    if (!states(kAtMost) && !states(kBelow))
      c_.refuse("assume states no fact about the number; add below or at_most, and a size");
  }

  static constexpr int64_t kLargest = int64_t{1} << 62;

  void check_bound(size_t slot) const {
    const StepOperand& o = c_.step.operands[at(slot)];
    if (o.is_integer()) {
      if (o.integer < 1 || o.integer > kLargest)
        c_.refuse("a fact compares with a number from 1 to 2^62", c_.place(at(slot)));
      return;
    }
    if (slot == kMultipleOf) c_.refuse("a size is a multiple of a number; give one", c_.place(at(slot)));
    // A number may be below a size that the program computes, as a list of sizes may have one.
    const ValueId v = c_.value(at(slot));
    if (c_.step.operands[0].is_integer() && c_.g[v].kind == ValueKind::kScalar && c_.g[v].dtype == Dtype::kIndex)
      return;
    if (!is_size(c_.g, v))
      c_.refuse("a fact compares with a number or a size of the program", c_.place(at(slot)), ErrorCode::kStepReferent);
  }

  ValueId holds(size_t slot, ValueId product, ValueId bound) {
    if (slot == kAtMost) return add(OpKind::kLe, product, bound, Dtype::kBool);
    if (slot == kBelow) return add(OpKind::kLt, product, bound, Dtype::kBool);
    if (slot == kEqual) return add(OpKind::kEq, product, bound, Dtype::kBool);
    const ValueId rest = add(OpKind::kFloorMod, product, bound, Dtype::kIndex);
    return add(OpKind::kEq, rest, constant_index(*c_.target, 0), Dtype::kBool);
  }

  ValueId add(OpKind kind, ValueId a, ValueId b, Dtype dtype) {
    const ValueId result = add_scalar(*c_.target, c_.names, dtype, "");
    append_before_outputs(Op{kind, {a, b}, {result}, {}, {}});
    return result;
  }

  // Facts stand before the outputs, unless a scalar that they need stands behind one.
  void append_before_outputs(Op op) {
    Graph& g = *c_.target;
    const auto& body = g[Graph::body()].ops;
    const auto first = std::find_if(body.begin(), body.end(), [&](OpId id) { return g[id].kind == OpKind::kOutput; });
    const auto is_behind = [&](ValueId v) {
      return v && g[v].def && std::find(first, body.end(), g[v].def) != body.end();
    };
    if (first == body.end() || std::ranges::any_of(op.operands, is_behind))
      append(g, Graph::body(), std::move(op));
    else
      insert_before(g, *first, std::move(op));
  }

  StepContext& c_;
  const std::array<SlotRange, kMaxSlots> ranges_;
};

}  // namespace

void step_assume(StepContext& c) { Facts(c).run(); }

void step_bound_launch(StepContext& c) {
  const size_t tensors = c.step.operands.size() - 2;
  for (size_t i = 0; i < tensors; ++i) c.scheduled_tensor(i);
  const auto number = [&](size_t i, int64_t most) {
    const StepOperand& o = c.step.operands[i];
    if (!o.is_integer() || o.integer < 1 || o.integer > most)
      c.refuse("bound_launch takes from 1 to 1024 threads of a block and from 1 to 32 blocks", c.place(i));
    return o.integer;
  };
  const int64_t threads = number(tensors, 1024), blocks = number(tensors + 1, 32);
  if (has_in_body(c.g, OpKind::kLaunchBound)) c.refuse("the kernel has a bound already; leave one of the steps out");
  if (!c.target) return;
  c.begin();
  Op op{OpKind::kLaunchBound, {}, {}, {}, {}};
  op.attrs.set(AttrKey::kMostThreads, threads);
  op.attrs.set(AttrKey::kLeastBlocks, blocks);
  insert_fact(*c.target, std::move(op));
}

void step_cluster(StepContext& c) {
  const size_t tensors = c.step.operands.size() - 1;
  for (size_t i = 0; i < tensors; ++i) c.scheduled_tensor(i);
  const StepOperand& blocks = c.step.operands[tensors];
  if (!blocks.is_integer() || (blocks.integer != 2 && blocks.integer != 4 && blocks.integer != 8))
    c.refuse("a cluster has 2, 4 or 8 blocks: GPUs need not form larger ones", c.place(tensors));
  const auto axis = c.step.attrs.enumerator(AttrKey::kParallel, ParallelType::kSerial);
  if (!is_thread(axis) || !is_grid(axis))
    c.refuse("a cluster has neighbours along a grid axis; add `on grid.x`, grid.y or grid.z");
  if (has_in_body(c.g, OpKind::kCluster)) c.refuse("the kernel has clusters already; leave one of the steps out");
  if (!c.target) return;
  c.begin();
  Op op{OpKind::kCluster, {}, {}, {}, {}};
  op.attrs.set_enum(AttrKey::kParallel, axis);
  op.attrs.set(AttrKey::kClusterBlocks, blocks.integer);
  insert_fact(*c.target, std::move(op));
}

void step_dependent_launch(StepContext& c) {
  for (size_t i = 0; i < c.step.operands.size(); ++i) c.scheduled_tensor(i);
  if (has_in_body(c.g, OpKind::kDependentLaunch))
    c.refuse("the kernel's launch depends on those in front already; leave one of the steps out");
  if (!c.target) return;
  c.begin();
  insert_fact(*c.target, Op{OpKind::kDependentLaunch, {}, {}, {}, {}});
}

}  // namespace fusebox
