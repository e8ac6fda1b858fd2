// Reads what print_plan writes. The nests and the classes of extents follow from the graph; everything else is read.
#include <algorithm>
#include <map>
#include <optional>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/plan/form_parser.h"
#include "passes/plan/plan_line.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"
#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

constexpr uint32_t kNone = LoopNode::kNoNode;

class PlanParser {
 public:
  PlanParser(const Graph& g, std::string_view text, const PlanOptions& options)
      : plan_(g, options), g_(g), text_(text), names_(g), forms_(names_) {}

  KernelPlan run() {
    plan_.buffers.resize(g_.values.size());
    plan_.tree.children.assign(plan_.tree.nodes.size(), {});
    PlanLine head = next();
    head.expect("plan");
    head.expect("@");
    head.name();
    head.skip();
    head.expect("{");
    head.end();
    // The first pass reads the loops, because paths and forms name them.
    const size_t begin = at_, first = number_;
    for (is_first_ = true;; is_first_ = false) {
      at_ = begin;
      number_ = first;
      block(kNone);
      if (!is_first_) break;
      check();
    }
    check();
    while (at_ < text_.size())
      if (PlanLine rest = next(); !rest.at_end()) rest.fail("the end of the plan");
    place_in_loops(plan_);
    return std::move(plan_);
  }

 private:
  void check() {
    plan_.tree.children.resize(plan_.tree.nodes.size());
    if (const auto fault = check_plan(plan_))
      throw Error(ErrorCode::kSyntax, "the plan does not hold together: " + *fault,
                  "line " + std::to_string(number_ - 1));
    plan_.statements.resize(plan_.tree.statements.size());
  }

  // -- lines

  PlanLine next() {
    if (at_ >= text_.size()) PlanLine("", number_).fail("`}`");
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    PlanLine line(text_.substr(at_, end - at_), number_++);
    at_ = end + 1;
    return line;
  }

  void block(uint32_t node) {
    if (++depth_ > 512) PlanLine("", number_).fail("fewer than 512 loops in one another");
    while (true) {
      PlanLine line = next();
      if (line.at_end()) continue;
      if (line.closes()) break;
      if (line.accept("for"))
        loop(line, node);
      else if (line.accept("statement"))
        statement(line, node);
      else if (line.accept("barrier"))
        barrier(line, node);
      else if (node != kNone && line.accept("unswitch"))
        unswitch(line, node);
      else if (node == kNone)
        fact(line);
      else
        line.fail("`for`, `statement`, `barrier` or `}`");
    }
    --depth_;
  }

  // -- names

  OpId op(PlanLine& line) {
    const OpId id = g_[names_.whole_tensor(line)].def;
    if (!plan_.has_nest(id)) line.fail("a tensor that the kernel makes");
    return id;
  }
  OpId reduction(PlanLine& line) {
    const OpId id = op(line);
    if (!demands(g_[id].kind, kReduction)) line.fail("a reduction");
    return id;
  }
  template <class E>
  E enumerator(PlanLine& line, std::string_view what) {
    const std::optional<E> found = parse_enum<E>(line.word(what));
    if (!found) line.fail(std::string(what));
    return *found;
  }
  CheckReason reason(PlanLine& line) {
    const std::string_view word = line.word("a reason");
    for (const CheckReasonRow& row : check_reason_rows())
      if (row.text == word) return row.reason;
    line.fail("a reason");
  }

  // -- facts before the loops

  void fact(PlanLine& line) {
    if (!is_first_) return;
    if (line.accept("threads"))
      line.list([&] {
        const auto p = enumerator<ParallelType>(line, "a parallel type");
        plan_.used_threads.insert(p);
        if (line.accept("or")) {
          line.expect("one");
          plan_.launched_empty.insert(p);
        }
        plan_.exact_launch[p] = line.accept("exact");
        plan_.largest_launch[p] = line.starts_integer() ? std::optional(line.integer()) : std::nullopt;
      });
    else if (line.accept("cluster"))
      cluster(line);
    else if (line.accept("buffer"))
      buffer(line);
    else if (line.accept("slot"))
      slot(line);
    else if (line.accept("replicated"))
      line.list([&] { plan_.replicated.insert(names_.domain(line)); });
    else if (line.accept("accumulator"))
      accumulator(line);
    else if (line.accept("cascade"))
      cascade(line);
    else if (line.accept("exchange"))
      exchange(line);
    else if (line.accept("assume"))
      stated_fact(line);
    else if (line.accept("launch"))
      launch(line);
    else
      line.fail("a line of a plan");
    line.end();
  }

  void buffer(PlanLine& line) {
    const ValueId v = names_.whole_tensor(line);
    Buffer& b = plan_.buffers[v.index];
    b.value = b.storage = v;
    b.memory = enumerator<MemoryType>(line, "a memory");
    b.is_parameter = line.accept("parameter");
    if (line.accept("of")) b.storage = names_.whole_tensor(line);
    if (b.is_parameter) return;
    line.list([&] { b.places.push_back(names_.domain(line)); });
    line.expect("in");
    b.home = line.node();
    if (b.memory == MemoryType::kShared) return;
    line.expect("elements");
    b.elements = line.integer();
  }

  void slot(PlanLine& line) {
    const auto index = static_cast<uint32_t>(plan_.shared_slots.size());
    auto& slot = plan_.shared_slots.emplace_back();
    line.list([&] {
      slot.push_back(names_.whole_tensor(line));
      Buffer& b = plan_.buffers[slot.back().index];
      if (b.value != slot.back() || b.memory != MemoryType::kShared) line.fail("a shared buffer, before this,");
      b.slot = index;
    });
  }

  void cluster(PlanLine& line) {
    const auto axis = enumerator<ParallelType>(line, "a parallel type");
    plan_.cluster = Cluster{axis, line.integer()};
  }

  void accumulator(PlanLine& line) {
    Accumulator& a = plan_.accumulators[reduction(line)];
    line.list([&] { a.places.push_back(line.number()); });
    line.expect("elements");
    a.elements = line.integer();
  }

  void cascade(PlanLine& line) {
    Cascade& c = plan_.cascades[reduction(line)];
    line.expect("loop");
    c.position = line.number();
    line.expect("inside");
    c.inside = line.integer();
    c.levels = 1;
    if ((c.is_compensated = line.accept("compensated"))) return;
    line.expect("levels");
    c.levels = static_cast<int>(line.number());
  }

  void exchange(PlanLine& line) {
    Exchange& e = plan_.exchanges[reduction(line)];
    line.expect("over");
    line.list([&] {
      e.threads.push_back(enumerator<ParallelType>(line, "a parallel type"));
      e.is_grid |= is_grid(e.threads.back());
    });
    if (line.accept("by")) {
      e.lanes = line.integer();
      line.expect("lanes");
    }
    if ((e.is_cluster = line.accept("in cluster"))) return;
    if (!line.accept("in last block for")) return;
    e.is_last = true;
    line.list([&] { e.readers.push_back(op(line)); });
  }

  ScalarParameter parameter(PlanLine& line) {
    if (!line.accept("stride(")) return {names_.whole_value(line), {}, 0};
    const DomainId d = names_.domain(line);
    line.expect(")");
    const auto p = parameter_of(g_, kStrideSymbols + static_cast<int>(d.index));
    if (!p) line.fail("an axis with a stride");
    return *p;
  }

  ValueId size(PlanLine& line) {
    if (!line.starts_integer()) return names_.whole_value(line);
    const int64_t number = line.integer();
    for (uint32_t i = 0; i < g_.values.size(); ++i)
      if (g_.values[i].dtype == Dtype::kIndex && constant_integer(g_, ValueId(i)) == number) return ValueId(i);
    line.fail("a number of the graph, not " + std::to_string(number) + ",");
  }

  // The graph has the facts; the plan's text repeats them.
  void stated_fact(PlanLine& line) {
    const ValueId value = size(line);
    const auto is_stated = [&](const StatedFact& f) {
      if (f.value != value || !line.accept(text(f.kind))) return false;
      const ValueId bound = size(line);
      return std::ranges::any_of(plan_.facts, [&](const StatedFact& other) {
        return other.value == value && other.kind == f.kind && other.bound == bound;
      });
    };
    for (const StatedFact& f : plan_.facts)
      if (is_stated(f)) return;
    line.fail("a fact that the schedule states");
  }

  void launch(PlanLine& line) {
    Divisibility d{1, {parameter(line)}};
    if (line.accept("aligned")) {
      line.expect("to");
      plan_.alignments[d.product[0].scalar] = line.integer();
      return;
    }
    while (line.accept("*")) d.product.push_back(parameter(line));
    line.expect("multiple");
    line.expect("of");
    d.divisor = line.integer();
    plan_.divisibilities.insert(std::move(d));
    plan_.knows_launch = true;
  }

  // -- the tree

  std::vector<TreeChild>& children(uint32_t node) { return node == kNone ? plan_.tree.top : plan_.tree.children[node]; }

  void loop(PlanLine& line, uint32_t parent) {
    const uint32_t n = line.number();
    LoopNode node;
    node.parent = parent;
    node.depth = static_cast<uint32_t>(depth_ - 1);
    node.parallel = enumerator<ParallelType>(line, "a parallel type");
    node.domain = names_.domain(line);
    const ValueId made = g_[g_[node.domain].tensor].value;
    node.op = g_[made].def;
    if (!plan_.has_nest(node.op)) line.fail("a domain of a tensor that the kernel makes");
    if (line.accept("strip")) plan_.strips[n] = line.integer();
    line.expect("{");
    line.end();
    if (is_first_) {
      if (n >= plan_.tree.nodes.size()) plan_.tree.nodes.resize(n + 1, node);
      if (plan_.tree.children.size() <= n) plan_.tree.children.resize(n + 1);
      plan_.tree.nodes[n] = node;
    }
    if (is_first_) children(parent).push_back({true, n});
    block(n);
  }

  void barrier(PlanLine& line, uint32_t node) {
    const bool is_grid = line.accept("grid");
    if (!is_grid) line.expect("block");
    line.end();
    if (!is_first_) return;
    plan_.sync_points.insert({node, children(node).size(), is_grid ? SyncScope::kGrid : SyncScope::kBlock});
  }

  void statement(PlanLine& line, uint32_t parent) {
    const uint32_t index = line.number();
    Statement made{op(line), StatementKind::kMain, {}};
    if (line.accept("init"))
      made.kind = StatementKind::kInit;
    else if (line.accept("exchange"))
      made.kind = StatementKind::kExchange;
    else if (line.accept("final"))
      made.kind = StatementKind::kFinal;
    else
      line.expect("main");
    line.expect("at");
    line.list([&] { made.path.push_back(line.node()); });
    if (made.path.size() != plan_.loops_of(made.op).size()) line.fail("a loop for each domain of the loop domain");
    if (made.kind != StatementKind::kMain && !demands(g_[made.op].kind, kReduction)) line.fail("`main`");
    line.expect("{");
    line.end();
    if (is_first_) {
      children(parent).push_back({false, index});
      if (plan_.tree.statements.size() <= index) plan_.tree.statements.resize(index + 1, made);
      plan_.tree.statements[index] = made;
      while (!next().accept("}")) {
      }
      return;
    }
    for (uint32_t n : made.path)
      if (n != kNone && n >= plan_.tree.nodes.size()) line.fail("loops that the plan has");
    StatementView view(plan_, made);
    StatementPlan& planned = plan_.statements[index];
    Access* last = nullptr;
    while (true) {
      PlanLine inner = next();
      if (inner.closes()) break;
      if (inner.accept("if")) {
        planned.conditions.push_back(condition(inner, view));
      } else if (inner.accept("vector")) {
        VectorCopy copy;
        copy.width = inner.integer();
        inner.expect("from");
        copy.source = form(inner, view);
        inner.expect("to");
        copy.target = form(inner, view);
        planned.vector = copy;
      } else if (inner.accept("read")) {
        last = &access(inner, view, planned.reads, g_[made.op].operands.size());
      } else if (inner.accept("write")) {
        last = &access(inner, view, planned.writes, g_[made.op].results.size());
      } else if (last && inner.accept("inside")) {
        last->inside.push_back(condition(inner, view));
      } else {
        inner.fail("`if`, `vector`, `read`, `write`, `inside` or `}`");
      }
      inner.end();
    }
    // Operands that are not tensors are not written.
    if (made.kind == StatementKind::kMain && !planned.vector) planned.reads.resize(g_[made.op].operands.size());
  }

  Access& access(PlanLine& line, StatementView& view, std::vector<Access>& list, size_t most) {
    const size_t k = line.number();
    if (k >= most) line.fail("an operand or result of the op");
    if (list.size() <= k) list.resize(k + 1);
    list[k].value = names_.whole_tensor(line);
    line.expect("at");
    list[k].index = form(line, view);
    if (line.accept("along")) list[k].position = form(line, view);
    return list[k];
  }

  Condition condition(PlanLine& line, StatementView& view) {
    Condition c{};
    if (line.accept("thread "))
      c.guard = enumerator<ParallelType>(line, "a parallel type");
    else
      c.value = form(line, view);
    const bool is_last = c.guard && line.accept("came last");
    c.compare = is_last || line.accept("==") ? OpKind::kEq
                : line.accept(">=")          ? OpKind::kGe
                : line.accept("!=")          ? OpKind::kNe
                                             : OpKind::kLt;
    if (c.compare == OpKind::kLt) line.expect("<");
    if (!is_last) c.bound = form(line, view);
    if (line.accept("from")) {
      c.begins = line.number();
      line.expect("of");
      c.node = line.node();
    }
    c.holds_before = line.accept("not before the loop");
    line.expect("because");
    c.reason = reason(line);
    if (line.accept("of")) c.domain = names_.domain(line);
    c.kind = is_last    ? CheckKind::kLastBlock
             : !c.guard ? CheckKind::kDomain
             : c.domain ? CheckKind::kLoopExtent
                        : CheckKind::kThread;
    return c;
  }

  void unswitch(PlanLine& line, uint32_t node) {
    line.expect("{");
    line.end();
    std::vector<Hoisted>& list = plan_.unswitched[node];
    while (true) {
      PlanLine inner = next();
      if (inner.closes()) return;
      if (is_first_) continue;
      inner.expect("hoist");
      Hoisted h;
      h.statement = inner.number();
      if (h.statement >= plan_.tree.statements.size()) inner.fail("a statement of the plan");
      if (!inner.accept_close('.')) inner.fail("`.` and a condition");
      h.condition = inner.number();
      StatementView view(plan_, plan_.tree.statements[h.statement]);
      h.at_last_point = condition(inner, view);
      inner.end();
      list.push_back(h);
    }
  }

  // -- forms

  // The normal form of a value depends on how it was made. A form with the text of one that planning makes is taken
  // from planning. Any other form is made from its text.
  Form form(PlanLine& line, StatementView& view) {
    const auto& planned = planned_forms(view);
    const std::string_view from = line.rest();
    const Form made = forms_.sum(line, view);
    std::string_view text = from.substr(0, from.size() - line.rest().size());
    while (text.ends_with(' ')) text.remove_suffix(1);
    const auto it = planned.find(text);
    return it == planned.end() ? made : it->second;
  }

  using PlannedForms = std::map<std::string, Form, std::less<>>;

  const PlannedForms& planned_forms(StatementView& view) {
    const auto [it, is_new] = planned_forms_.try_emplace(&view.path);
    if (!is_new) return it->second;
    if (!planned_) {
      planned_.emplace(plan_);
      planned_->statements.clear();
      planned_->unswitched.clear();
      planned_->accumulators.clear();
      try {
        // What a launch checks is learnt anew, in views of its own: those of this plan know what the text says of it.
        KernelPlan stored = *planned_;
        stored.divisibilities.clear();
        stored.knows_launch = false;
        if (plan_.knows_launch) stored.views = std::make_shared<KernelPlan::Views>(g_.ops.size());
        stored = plan_storage(std::move(stored));
        stored.views = plan_.views;
        if (stored.divisibilities == plan_.divisibilities) *planned_ = plan_statements(std::move(stored));
      } catch (const Error&) {
        // Planning refuses what the text says, so forms are made from their text.
      }
    }
    const auto add = [&](Form f) { it->second.emplace(print_form(plan_, view.algebra, f), f); };
    const auto add_condition = [&](const Condition& c) {
      add(c.value);
      add(c.bound);
    };
    const auto is_of_view = [&](uint32_t statement) {
      const Statement& s = plan_.tree.statements[statement];
      return s.op == view.op && s.path == view.path;
    };
    for (uint32_t i = 0; i < planned_->statements.size(); ++i) {
      if (!is_of_view(i)) continue;
      const StatementPlan& p = planned_->statements[i];
      for (const Condition& c : p.conditions) add_condition(c);
      for (const auto* list : {&p.reads, &p.writes})
        for (const Access& a : *list) {
          add(a.index);
          if (a.position) add(*a.position);
          for (const Condition& c : a.inside) add_condition(c);
        }
      if (p.vector) {
        add(p.vector->source);
        add(p.vector->target);
      }
    }
    for (const auto& [node, list] : planned_->unswitched)
      for (const Hoisted& h : list)
        if (is_of_view(h.statement)) add_condition(h.at_last_point);
    return it->second;
  }

  KernelPlan plan_;
  const Graph& g_;
  std::string_view text_;
  size_t at_ = 0, number_ = 1;
  int depth_ = 0;
  bool is_first_ = true;
  PlanNames names_;
  FormParser forms_;
  std::optional<KernelPlan> planned_;  // the plan that planning makes from the loops read
  std::map<const std::vector<uint32_t>*, PlannedForms> planned_forms_;  // by view
};

}  // namespace

KernelPlan parse_plan(const Graph& scheduled, std::string_view text, const PlanOptions& options) {
  return PlanParser(scheduled, text, options).run();
}

}  // namespace fusebox
