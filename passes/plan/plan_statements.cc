// Decides what each statement checks, reads and writes, in the order of the loop tree. Refuses nothing.
#include <algorithm>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/table/families.h"
#include "passes/plan/plan_queries.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"
#include "passes/plan/vector_copy.h"

namespace fusebox {
namespace {

constexpr int64_t kMostUnrolled = 64;  // iterations of a loop of which each is looked at

class StatementPlanner {
 public:
  explicit StatementPlanner(KernelPlan& plan) : plan_(plan), g_(*plan.graph) {}

  void run() {
    body(LoopNode::kNoNode);
    for (uint32_t n = 0; n < plan_.tree.nodes.size(); ++n)
      if (plan_.parallel_of(n) == ParallelType::kUnswitch) unswitch(n);
  }

 private:
  void body(uint32_t node) {
    for (const TreeChild& c : node == LoopNode::kNoNode ? plan_.tree.top : plan_.tree.children[node])
      c.is_node ? body(c.index) : statement(c.index);
  }

  // -- one statement

  void statement(uint32_t index) {
    const Statement& s = plan_.tree.statements[index];
    const Op& op = g_[s.op];
    StatementView view(plan_, s);
    StatementPlan& out = plan_.statements[index];
    const bool is_reduced = demands(op.kind, kReduction);
    if (out.vector) {
      // Its forms belong to the algebra of this view. Its needs are known since plan_storage.
      VectorNeeds needs;
      if (plan_.knows_launch) out.vector = plan_vector_copy(plan_, view, needs);
      out.reads.push_back({op.operands[0], out.vector->source, {}, {}});
      out.writes.push_back({op.results[0], out.vector->target, {}, {}});
      out.conditions = conditions_of(plan_, view, s.kind);
      simplify(view, index);
      return;
    }
    // An accumulator is filled, and exchanged, by every thread.
    if (s.kind == StatementKind::kMain || s.kind == StatementKind::kFinal)
      out.conditions = conditions_of(plan_, view, s.kind);
    if (s.kind == StatementKind::kMain)
      for (size_t k = 0; k < op.operands.size(); ++k) out.reads.push_back(read(view, op, k));
    if (!is_reduced || s.kind == StatementKind::kFinal)
      for (size_t i = 0; i < op.results.size(); ++i) out.writes.push_back(write(view, op, i));
    simplify(view, index);
  }

  void simplify(StatementView& view, uint32_t index) {
    StatementPlan& out = plan_.statements[index];
    rely_on_conditions(view, index);
    leave_chunks_out(plan_, view, out.conditions);
    for (Access& a : out.reads) leave_chunks_out(plan_, view, a.inside);
    begin_checks(view, index);
  }

  // Where a loop of a few iterations runs over the end of an axis, only its last iterations may lie behind the end. Facts
  // about the axis tell which. A check of the others has no effect once the loop is unrolled.
  void begin_checks(StatementView& view, uint32_t index) {
    std::vector<Condition>& conditions = plan_.statements[index].conditions;
    // A thread that is launched where a loop has no iteration may rely on the whole check (drop_own_dimensions).
    for (uint32_t n : view.path) {
      if (n == LoopNode::kNoNode || !plan_.launched_empty.contains(plan_.parallel_of(n))) continue;
      const auto is_of_loop = [&](const Condition& c) {
        return c.kind == CheckKind::kLoopExtent && c.guard == plan_.parallel_of(n);
      };
      if (std::ranges::none_of(conditions, is_of_loop)) return;
    }
    for (Condition& c : conditions) {
      c.holds_before = holds_before(view, c);
      for (size_t k = view.path.size(); k-- > 0 && c.begins == 0;) {
        const uint32_t n = view.path[k];
        if (n == LoopNode::kNoNode || is_thread(plan_.parallel_of(n))) continue;
        c.begins = first_in_doubt(view, c, k);
        if (c.begins > 0) c.node = n;
      }
      if (c.begins > 0 && plan_.defects().has(Defect::kCheckBeginsLate)) ++c.begins;
    }
  }

  // Whether the condition holds at all iterations of a loop whose loads stand before the loop (passes/plan/ahead.h).
  bool holds_before(StatementView& view, const Condition& c) const {
    const ValueId written = g_[view.op].results[0];
    const uint32_t home = plan_.buffer_of(written).home;
    const auto position = std::ranges::find(view.path, home);
    int64_t stages = g_.tensor_of(written).circular_depth - 1;
    if (stages < 1 || position == view.path.end()) return false;
    const DomainId loop = plan_.loops_of(view.op)[static_cast<size_t>(position - view.path.begin())];
    if (const auto extent = view.algebra.constant_value(view.own.extent(loop))) stages = std::min(stages, *extent);
    const auto rise = rise_along(view.algebra, c, home);
    return rise && holds_up_to(view.algebra, c, *rise, stages - 1);
  }

  // The number of a loop's first iterations at which the condition holds; 0 for a loop that is not unrolled, or if it is
  // less than half of them, for which a second comparison would not pay.
  int64_t first_in_doubt(StatementView& view, const Condition& c, size_t position) const {
    IndexAlgebra& algebra = view.algebra;
    const uint32_t node = view.path[position];
    const auto extent = algebra.constant_value(view.own.extent(plan_.loops_of(view.op)[position]));
    if (!extent || *extent < 2 || *extent > kMostUnrolled || !algebra.depends_on(c.value, static_cast<int>(node)))
      return 0;
    const auto rise = rise_along(algebra, c, node);
    if (!rise) return 0;
    int64_t holds = 0, open = *extent;  // it holds below the one; whether it does below the other is not known
    while (holds < open) {
      const int64_t middle = (holds + open + 1) / 2;
      holds_up_to(algebra, c, *rise, middle - 1) ? holds = middle : open = middle - 1;
    }
    return 2 * holds >= *extent ? holds : 0;
  }

  // Simplifies what a statement reads and writes by its own conditions: it does neither where one of them fails.
  void rely_on_conditions(StatementView& view, uint32_t index) {
    StatementPlan& plan = plan_.statements[index];
    const std::vector<Form> given = forms_that_hold(view.algebra, plan.conditions);
    if (given.empty()) return;
    bool is_simpler = false;
    const auto simplify = [&](Form& form) {
      const Form simpler = view.algebra.under(form, given);
      is_simpler |= !(simpler == form);
      form = simpler;
    };
    for (Access& a : plan.reads) simplify(a.index);
    for (Access& a : plan.writes) simplify(a.index);
    if (plan.vector) {
      simplify(plan.vector->source);
      simplify(plan.vector->target);
    }
    if (is_simpler && plan_.defects().has(Defect::kGuardOfItself)) plan.conditions.clear();
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

  // Where a padded axis has an element of the operand. An axis that is not padded needs no condition: the statement runs
  // at elements of its result, which lie inside that axis.
  std::vector<Condition> pad_conditions(StatementView& view, const Op& op) {
    std::vector<Condition> result;
    const Tensor& t = g_.tensor_of(op.results[0]);
    for (DomainId d : root_of(t)) {
      const bool is_padded = position_in(t.logical, d) == t.logical.size();
      if (!view.own.known(d) || is_padded == plan_.defects().has(Defect::kPadOfOtherAxis)) continue;
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
    // The threads that wait for each other must take the same branch.
    bool synchronises = false;
    for (const SyncPoint& p : plan_.sync_points) {
      if (std::find(nodes.begin(), nodes.end(), p.node) == nodes.end()) continue;
      if (p.scope != SyncScope::kBlock) return;
      synchronises = true;
    }
    for (uint32_t s : statements)
      if (plan_.tree.statements[s].kind == StatementKind::kExchange ||
          plan_.tree.statements[s].kind == StatementKind::kFinal)
        return;
    std::vector<Hoisted> hoisted;
    for (uint32_t s : statements) {
      StatementView view(plan_, plan_.tree.statements[s]);
      const auto list = plan_.tree.statements[s].kind == StatementKind::kInit
                            ? conditions_of(plan_, view, StatementKind::kInit)
                            : plan_.statements[s].conditions;
      for (size_t i = 0; i < list.size(); ++i)
        if (auto c = at_last_point(view, list[i], nodes)) {
          if (never_holds(view.algebra, *c)) {
            if (!plan_.defects().has(Defect::kUnswitchChoiceDropped)) continue;
            c->compare = OpKind::kGe, c->value = c->bound;
          }
          if (synchronises && !is_block_uniform(view, *c) && !plan_.defects().has(Defect::kUnswitchDivergent)) continue;
          hoisted.push_back({s, i, *c});
        }
    }
    plan_.unswitched.emplace(node, std::move(hoisted));
  }

  // A condition that a loop inside chooses by, such as the half of a pad, fails at its last point. It would leave no
  // branch without checks, so it stays in both.
  static bool never_holds(IndexAlgebra& algebra, const Condition& c) {
    if (c.guard) return false;
    return c.compare == OpKind::kLt   ? algebra.prove_nonneg(algebra.sub(c.value, c.bound))
           : c.compare == OpKind::kGe ? algebra.prove_less(c.value, c.bound)
                                      : false;
  }

  // Whether the threads of a block agree about the condition.
  bool is_block_uniform(StatementView& view, const Condition& c) const {
    if (c.guard) return false;
    return std::ranges::none_of(view.path, [&](uint32_t n) {
      return n != LoopNode::kNoNode && is_block(plan_.parallel_of(n)) &&
             (view.algebra.depends_on(c.value, static_cast<int>(n)) ||
              view.algebra.depends_on(c.bound, static_cast<int>(n)));
    });
  }

  // The value with its terms that are not linear in the loops inside, such as the column of a swizzle, at their bounds.
  static Form without_terms(StatementView& view, Form value, const std::vector<uint32_t>& nodes, bool upper) {
    IndexAlgebra& algebra = view.algebra;
    for (const TermView& term : algebra.terms(value)) {
      Form whole = algebra.constant(term.coefficient);
      for (const AtomId atom : term.factors) whole = algebra.mul(whole, algebra.form_of(atom));
      const bool is_linear = std::ranges::all_of(view.path, [&](uint32_t n) {
        return std::ranges::count(nodes, n) == 0 || algebra.linear_in(whole, static_cast<int>(n));
      });
      const IntBounds bounds = algebra.int_bounds(whole);
      const auto bound = upper ? bounds.upper : bounds.lower;
      if (!is_linear && bound) value = algebra.add(algebra.sub(value, whole), algebra.constant(*bound));
    }
    return value;
  }

  // The condition at the worst point of the loops inside: at extent - 1 for an upper bound, at 0 for a lower one.
  // Nothing if the value is not linear in a loop, has no bound, or falls with it.
  std::optional<Condition> at_last_point(StatementView& view, Condition c, const std::vector<uint32_t>& nodes) const {
    IndexAlgebra& algebra = view.algebra;
    const auto& loop = plan_.loops_of(view.op);
    c.begins = 0;
    c.node = LoopNode::kNoNode;
    c.holds_before = false;
    if (!c.guard && (c.compare == OpKind::kLt || c.compare == OpKind::kGe))
      c.value = without_terms(view, c.value, nodes,
                              c.compare == OpKind::kLt && !plan_.defects().has(Defect::kUnswitchTermLow));
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
  plan.knows_launch = !plan.divisibilities.empty();
  StatementPlanner(plan).run();
  return plan;
}

}  // namespace fusebox
