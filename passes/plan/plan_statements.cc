// Decides what each statement checks, reads, writes and exchanges, and how much memory a thread keeps. Statements are
// planned in the order of the loop tree.
#include <algorithm>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"
#include "passes/plan/vector_copy.h"

namespace fusebox {
namespace {

constexpr int64_t kLargestLocal = 65536;  // bytes of one buffer in a thread

class StatementPlanner {
 public:
  explicit StatementPlanner(KernelPlan& plan) : plan_(plan), g_(*plan.graph) {}

  void run() {
    plan_.statements.resize(plan_.tree.statements.size());
    place_in_loops(plan_);
    body(LoopNode::kNoNode);
    for (uint32_t n = 0; n < plan_.tree.nodes.size(); ++n)
      if (plan_.parallel_of(n) == ParallelType::kUnswitch) unswitch(n);
  }

 private:
  void body(uint32_t node) {
    if (const auto it = plan_.at_home.find(node); it != plan_.at_home.end())
      for (ValueId v : it->second)
        if (plan_.buffer_of(v).memory == MemoryType::kLocal) local_size(plan_.buffers[v.index]);
    if (const auto it = plan_.accumulators_at.find(node); it != plan_.accumulators_at.end())
      for (OpId op : it->second) accumulator(op);
    for (const TreeChild& c : node == LoopNode::kNoNode ? plan_.tree.top : plan_.tree.children[node])
      c.is_node ? body(c.index) : statement(c.index);
  }

  // -- memory of a thread

  void local_size(Buffer& b) {
    // The size is nearly always a product of constants, which needs no knowledge of the nest.
    OpenExtents open(plan_);
    auto count = open.algebra.constant_value(open.elements_of(b));
    if (!count) {
      StatementView view(plan_, g_[b.value].def);
      count = view.algebra.constant_value(elements_of(plan_, view.symbols, view.algebra, b));
    }
    if (!count)
      throw Error(ErrorCode::kIllegalAllocation,
                  "its part in a thread has no constant size; split by constants, inline it further in, or keep it in "
                  "shared or global memory",
                  plan_.place_of(b.value));
    const int64_t bytes = *count * size_bytes(g_[b.value].dtype);
    if (bytes > kLargestLocal)
      throw Error(ErrorCode::kIllegalAllocation,
                  "its part in a thread takes " + std::to_string(bytes) + " bytes, over " +
                      std::to_string(kLargestLocal) + "; inline it further in",
                  plan_.place_of(b.value));
    b.elements = *count;
  }

  void accumulator(OpId op) {
    const auto& loop = plan_.loops_of(op);
    Accumulator a{accumulator_places(plan_, op), 1};
    StatementView view(plan_, op);
    Form count = view.algebra.constant(1);
    for (size_t i : a.places) count = view.algebra.mul(count, view.own.extent(loop[i]));
    const auto elements = view.algebra.constant_value(count);
    if (!elements || *elements * 16 > kLargestLocal)
      throw Error(ErrorCode::kIllegalReduction,
                  "a thread would keep an accumulator for each of a " + std::string(elements ? "large" : "symbolic") +
                      " number of elements; parallelize its iteration loops, or inline it further in",
                  plan_.place_of(g_[op].results[0]));
    a.elements = *elements;
    plan_.accumulators.emplace(op, std::move(a));
    Exchange e;
    const Nest& nest = plan_.nest_of(op);
    for (size_t i = 0; i < loop.size(); ++i) {
      const ParallelType p = plan_.parallel_of(nest.path[i]);
      if (!is_reduction(g_, loop[i]) || !is_thread(p)) continue;
      e.threads.push_back(p);
      e.is_grid |= is_grid(p);
    }
    std::sort(e.threads.begin(), e.threads.end());
    if (!e.threads.empty()) plan_.exchanges.emplace(op, std::move(e));
  }

  // -- one statement

  void statement(uint32_t index) {
    const Statement& s = plan_.tree.statements[index];
    const Op& op = g_[s.op];
    StatementView view(plan_, s);
    StatementPlan& out = plan_.statements[index];
    const bool is_reduced = demands(op.kind, kReduction);
    if (!is_reduced && is_vector_copy(plan_, s.op)) {
      VectorNeeds needs;
      out.vector = plan_vector_copy(plan_, view, needs);
      plan_.divisibilities.insert(needs.divisibilities.begin(), needs.divisibilities.end());
      for (const auto& [storage, bytes] : needs.alignments) {
        int64_t& align = plan_.alignments[storage];
        align = std::max(align, bytes);
      }
      out.reads.push_back({op.operands[0], out.vector->source, {}, {}});
      out.writes.push_back({op.results[0], out.vector->target, {}, {}});
      out.conditions = conditions_of(plan_, view, s.kind);
      return;
    }
    if (s.kind != StatementKind::kInit) out.conditions = conditions_of(plan_, view, s.kind);
    if (s.kind == StatementKind::kMain)
      for (size_t k = 0; k < op.operands.size(); ++k) out.reads.push_back(read(view, op, k));
    if (!is_reduced || s.kind == StatementKind::kFinal)
      for (size_t i = 0; i < op.results.size(); ++i) out.writes.push_back(write(view, op, i));
  }

  Access read(StatementView& view, const Op& op, size_t k) {
    const ValueId v = op.operands[k];
    if (!v || !g_.is_tensor(v)) return {};
    Access a{v, {}, {}, {}};
    const auto at = chosen_place(view, op, k);
    DomainValues values = view.feed(k, at);
    a.index = view.index_of(plan_.buffer_of(v), values);
    if (op.kind == OpKind::kPad) a.inside = pad_conditions(view, op);
    if (op.kind == OpKind::kCat) cat_conditions(view, op, k, a);
    return a;
  }

  // The index at which an indexed op reads an operand along its axis, if data or the op decide it.
  std::optional<Form> chosen_place(StatementView& view, const Op& op, size_t k) {
    const SlotRule rule = rule_of(op.kind, op.operands.size(), k);
    switch (rule.axes) {
      case AxisRule::kSelected:
      case AxisRule::kChosen:
        return view.loaded();
      case AxisRule::kChosenWithin:
        // A scatter searches its index and its source for the result's place, and `loaded` is the position of the
        // search. A gather reads its first operand at the index that the kernel loads.
        return k > 0 && scatter_count(plan_, view) == 1 ? view.algebra.constant(0) : view.loaded();
      case AxisRule::kSame:
        // An index operand is read at the result's place, or at 0 along a broadcast axis.
        if (!rule.is_index) return std::nullopt;
        return view.own.value(root_of(g_.tensor_of(op.results[0]))[axis_of(g_, op)]);
      case AxisRule::kWhole:
      case AxisRule::kReduced:
      case AxisRule::kExpanded:
      case AxisRule::kResized:
      case AxisRule::kRegrouped:
      case AxisRule::kMasked:
      case AxisRule::kPlaced:
      case AxisRule::kPermuted:
      case AxisRule::kSqueezed:
      case AxisRule::kJoined:
      case AxisRule::kOnAxis:
        return std::nullopt;
    }
    return std::nullopt;
  }

  std::vector<Condition> pad_conditions(StatementView& view, const Op& op) {
    std::vector<Condition> result;
    for (DomainId d : root_of(g_.tensor_of(op.results[0]))) {
      if (!view.own.known(d)) continue;
      const Form v = view.place(d), e = view.own.extent(d);
      if (!view.algebra.prove_nonneg(v)) result.push_back(inside(OpKind::kGe, v, Form{}, d));
      if (!view.algebra.prove_less(v, e)) result.push_back(inside(OpKind::kLt, v, e, d));
    }
    return result;
  }

  void cat_conditions(StatementView& view, const Op& op, size_t k, Access& a) {
    const size_t axis = axis_of(g_, op);
    const DomainId d = logical_without_reductions(g_, g_.tensor_of(op.operands[k]))[axis];
    const Form at = view.algebra.sub(view.place(root_of(g_.tensor_of(op.results[0]))[axis]), view.cat_offset(k));
    DomainValues values(g_, plan_.nest_plan, view.symbols, view.algebra, g_[op.operands[k]].tensor);
    const Form extent = values.size(d);
    a.position = at;
    if (!view.algebra.prove_less(at, extent)) a.inside.push_back(inside(OpKind::kLt, at, extent, d));
    if (!view.algebra.prove_nonneg(at) && !plan_.defects().has(Defect::kCatLowerUnchecked))
      a.inside.push_back(inside(OpKind::kGe, at, Form{}, d));
  }

  static Condition inside(OpKind compare, Form value, Form bound, DomainId d) {
    return {compare, value, bound, std::nullopt, CheckKind::kDomain, d, CheckReason::kPadGuards};
  }

  Access write(StatementView& view, const Op& op, size_t i) {
    const ValueId v = op.results[i];
    const Buffer& b = plan_.buffer_of(v);
    if (i == 0 || b.memory != MemoryType::kGlobal) return {v, view.index_of(b, view.own), {}, {}};
    DomainValues sibling(g_, plan_.nest_plan, view.symbols, view.algebra, g_[v].tensor);
    const auto pass_on = [&](const std::vector<DomainId>& from, const std::vector<DomainId>& to) {
      for (size_t k = 0; k < to.size(); ++k)
        if (view.own.known(from[k])) sibling.set(to[k], view.own.value(from[k]));
    };
    const Tensor &leader = g_.tensor_of(op.results[0]), &own = g_.tensor_of(v);
    pass_on(root_of(leader), root_of(own));
    // After an rfactored reduction, the axis itself is not known. The part of it that remains is known, and it is
    // logical.
    pass_on(logical_without_reductions(g_, leader), logical_without_reductions(g_, own));
    sibling.propagate();
    return {v, view.index_of(b, sibling), {}, {}};
  }

  // -- unswitched loops: the checks of everything inside, taken at the last point

  void collect(uint32_t node, std::vector<uint32_t>& nodes, std::vector<uint32_t>& statements) const {
    nodes.push_back(node);
    for (const TreeChild& c : plan_.tree.children[node]) {
      if (c.is_node)
        collect(c.index, nodes, statements);
      else
        statements.push_back(c.index);
    }
  }

  void unswitch(uint32_t node) {
    std::vector<uint32_t> nodes, statements;
    collect(node, nodes, statements);
    // Threads may take different branches, so a body that synchronises is not unswitched.
    for (const SyncPoint& p : plan_.sync_points)
      if (std::find(nodes.begin(), nodes.end(), p.node) != nodes.end()) return;
    for (uint32_t s : statements)
      if (plan_.tree.statements[s].kind == StatementKind::kFinal) return;
    std::vector<Hoisted> hoisted;
    for (uint32_t s : statements) {
      StatementView view(plan_, plan_.tree.statements[s]);
      const auto list = plan_.tree.statements[s].kind == StatementKind::kInit
                            ? conditions_of(plan_, view, StatementKind::kInit)
                            : plan_.statements[s].conditions;
      for (size_t i = 0; i < list.size(); ++i)
        if (const auto c = at_last_point(view, list[i], nodes)) hoisted.push_back({s, i, *c});
    }
    plan_.unswitched.emplace(node, std::move(hoisted));
  }

  // The condition at the worst point of the loops inside: at extent - 1 for an upper bound, at 0 for a lower one.
  // Nothing if the value is not linear in a loop, or falls with it.
  std::optional<Condition> at_last_point(StatementView& view, Condition c, const std::vector<uint32_t>& nodes) const {
    IndexAlgebra& algebra = view.algebra;
    const auto& loop = plan_.loops_of(view.op);
    for (size_t k = 0; k < loop.size() && !c.guard; ++k) {
      const uint32_t n = view.path[k];
      if (n == LoopNode::kNoNode || std::find(nodes.begin(), nodes.end(), n) == nodes.end()) continue;
      if (!algebra.depends_on(c.value, static_cast<int>(n))) continue;
      const auto linear = algebra.linear_in(c.value, static_cast<int>(n));
      if (!linear || !algebra.prove_nonneg(linear->coefficient)) return std::nullopt;
      const Form last = plan_.defects().has(Defect::kUnswitchFirst)
                            ? algebra.constant(0)
                            : algebra.sub(view.own.extent(loop[k]), algebra.constant(1));
      const bool is_lower = c.compare == OpKind::kGe && !plan_.defects().has(Defect::kUnswitchLower);
      c.value = is_lower ? linear->rest : algebra.add(algebra.mul(linear->coefficient, last), linear->rest);
    }
    return c;
  }

  KernelPlan& plan_;
  const Graph& g_;
};

}  // namespace

void place_in_loops(KernelPlan& plan) {
  const Graph& g = *plan.graph;
  for (const Nest& nest : plan.nest_plan.nests) {
    for (ValueId v : g[nest.op].results) {
      const Buffer& b = plan.buffer_of(v);
      if (!b.is_parameter) plan.at_home[b.memory == MemoryType::kShared ? LoopNode::kNoNode : b.home].push_back(v);
    }
    if (demands(g[nest.op].kind, kReduction))
      plan.accumulators_at[nest.shared > 0 ? nest.path[nest.shared - 1] : LoopNode::kNoNode].push_back(nest.op);
  }
}

// The loops from the outermost reduction loop inwards, except reductions and threads. The result's memory does not
// matter.
std::vector<size_t> accumulator_places(const KernelPlan& plan, OpId op) {
  const Graph& g = *plan.graph;
  const Nest& nest = plan.nest_of(op);
  const auto& loop = plan.loops_of(op);
  std::vector<size_t> places;
  for (size_t i = std::max<size_t>(nest.shared, first_reduction_loop(g, plan.nest_plan, nest)); i < loop.size(); ++i)
    if (!is_reduction(g, loop[i]) && !is_thread(plan.parallel_of(nest.path[i]))) places.push_back(i);
  return places;
}

std::optional<int64_t> scatter_count(const KernelPlan& plan, StatementView& view) {
  return view.algebra.constant_value(scatter_extent(plan, view));
}

Form scatter_extent(const KernelPlan& plan, StatementView& view) {
  const Graph& g = *plan.graph;
  const Op& op = g[view.op];
  DomainValues extents(g, plan.nest_plan, view.symbols, view.algebra, g[op.operands[1]].tensor);
  return extents.size(logical_without_reductions(g, g.tensor_of(op.operands[1]))[axis_of(g, op)]);
}

KernelPlan plan_statements(KernelPlan plan) {
  StatementPlanner(plan).run();
  return plan;
}

}  // namespace fusebox
