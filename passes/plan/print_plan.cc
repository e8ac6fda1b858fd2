#include "passes/plan/print_plan.h"

#include "ir/table/error.h"
#include "ir/text/print.h"
#include "ir/token/lex.h"
#include "ir/token/literal.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

std::string_view comparison(OpKind compare) {
  switch (compare) {
    case OpKind::kLt:
      return "<";
    case OpKind::kGe:
      return ">=";
    case OpKind::kEq:
      return "==";
    case OpKind::kNe:
      return "!=";
    default:  // any other: does not compare indices
      throw Error(ErrorCode::kInternal, "a condition of a plan that is no comparison of indices");
  }
}

// Writes values and domains: by name, or, for digests, by their place in the graph.
class Names {
 public:
  Names(const Graph& g, bool numbered) : g_(g), numbered_(numbered) {}
  std::string value(ValueId v) const {
    return numbered_ && !g_.is_constant(v) ? "%" + std::to_string(v.index) : print_value(g_, v);
  }
  std::string domain(DomainId d) const { return numbered_ ? "." + std::to_string(d.index) : print_domain(g_, d); }
  std::string loop(const std::string& name) const { return numbered_ || !is_plain_word(name) ? "" : name; }
  std::string graph() const {
    if (numbered_) return "";
    return is_plain_name(g_.name) ? g_.name : quoted(g_.name);
  }

 private:
  const Graph& g_;
  bool numbered_;
};

class FormPrinter {
 public:
  FormPrinter(const KernelPlan& plan, IndexAlgebra& algebra, const Names& names)
      : plan_(plan), g_(*plan.graph), algebra_(algebra), names_(names) {}

  std::string form(Form f) {
    std::string out;
    const auto add = [&](int64_t coefficient, const std::string& factors) {
      const bool is_negative = coefficient < 0;
      out += out.empty() ? (is_negative ? "-" : "") : is_negative ? " - " : " + ";
      const std::string number = std::to_string(coefficient).substr(is_negative ? 1 : 0);
      out += factors.empty() ? number : number == "1" ? factors : number + "*" + factors;
    };
    for (const TermView& term : algebra_.terms(f)) {
      std::string factors;
      for (AtomId a : term.factors) factors += (factors.empty() ? "" : "*") + atom(a);
      add(term.coefficient, factors);
    }
    const int64_t constant = algebra_.constant_part(f);
    if (constant != 0 || out.empty()) add(constant, "");
    return out;
  }

 private:
  std::string call(std::string_view name, const std::vector<Form>& args) {
    std::string out(name);
    for (size_t i = 0; i < args.size(); ++i) out += (i == 0 ? "(" : ", ") + form(args[i]);
    return out + ")";
  }

  std::string atom(AtomId id) {
    const AtomView a = algebra_.atom(id);
    switch (a.kind) {
      case AtomKind::kSymbol:
        return symbol(a.id);
      case AtomKind::kLoop:
        return loop(a.id);
      case AtomKind::kDigit:
        return a.range ? call("digit", {a.whole, a.divisor, *a.range}) : call("div", {a.whole, a.divisor});
      case AtomKind::kNamed:
        return call("", a.args);
      case AtomKind::kXor:
        return call("xor", a.args);
      case AtomKind::kQuotient:
        return call("quotient", a.args);
      case AtomKind::kRemainder:
        return call("remainder", a.args);
      case AtomKind::kMin:
        return call("min", a.args);
      case AtomKind::kMax:
        return call("max", a.args);
      case AtomKind::kSum:
        return call("sum", a.args);
      case AtomKind::kProduct:
        return call("product", a.args);
    }
    throw Error(ErrorCode::kInternal, "an atom of unknown kind");
  }

  std::string symbol(int id) const {
    if (id == kLoadedSymbol) return "loaded";
    const auto p = parameter_of(g_, id);
    if (!p) return "selected";
    if (!p->stride_of) return names_.value(p->scalar);
    return "stride(" + names_.domain(allocation_of(g_, g_.tensor_of(p->stride_of))[p->axis]) + ")";
  }

  std::string loop(int id) const {
    const auto node = static_cast<size_t>(id);
    const std::string name = node < plan_.tree.nodes.size() ? g_[plan_.tree.nodes[node].domain].name : "";
    return names_.loop(name) + "#" + std::to_string(id);
  }

  const KernelPlan& plan_;
  const Graph& g_;
  IndexAlgebra& algebra_;
  const Names& names_;
};

class PlanPrinter {
 public:
  PlanPrinter(const KernelPlan& plan, bool numbered) : plan_(plan), g_(*plan.graph), names_(g_, numbered) {}

  std::string run() {
    line("plan @" + names_.graph() + " {");
    ++depth_;
    threads();
    if (plan_.cluster)
      line("cluster " + std::string(fusebox::text(plan_.cluster->axis)) + " " + std::to_string(plan_.cluster->blocks));
    for (const Buffer& b : plan_.buffers)
      if (b.value) buffer(b);
    for (const auto& slot : plan_.shared_slots) {
      std::string list;
      for (ValueId v : slot) list += (list.empty() ? "" : ", ") + names_.value(v);
      line("slot [" + list + "]");
    }
    if (!plan_.replicated.empty()) {
      std::string list;
      for (DomainId d : plan_.replicated) list += (list.empty() ? "" : ", ") + names_.domain(d);
      line("replicated [" + list + "]");
    }
    for (const auto& [op, a] : plan_.accumulators)
      line("accumulator " + made_by(op) + " " + print_list(a.places) + " elements " + std::to_string(a.elements));
    for (const auto& [op, c] : plan_.cascades)
      line("cascade " + made_by(op) + " loop " + std::to_string(c.position) + " inside " + std::to_string(c.inside) +
           (c.is_compensated ? " compensated" : " levels " + std::to_string(c.levels)));
    for (const auto& [op, e] : plan_.exchanges) exchange(op, e);
    for (const StatedFact& f : plan_.facts)
      line("assume " + size(f.value) + " " + std::string(text(f.kind)) + " " + size(f.bound));
    for (const Divisibility& d : plan_.divisibilities) {
      std::string product;
      for (const ScalarParameter& p : d.product) product += (product.empty() ? "" : " * ") + parameter(p);
      line("launch " + product + " multiple of " + std::to_string(d.divisor));
    }
    for (const auto& [storage, bytes] : plan_.alignments)
      line("launch " + names_.value(storage) + " aligned to " + std::to_string(bytes));
    body(LoopNode::kNoNode, plan_.tree.top);
    --depth_;
    line("}");
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += std::string(2 * static_cast<size_t>(depth_), ' ') + text + "\n"; }
  std::string size(ValueId v) const {
    const auto number = constant_integer(g_, v);
    return number ? std::to_string(*number) : names_.value(v);
  }
  std::string made_by(OpId op) const { return names_.value(g_[op].results[0]); }
  template <class T>
  static std::string print_list(const std::vector<T>& list) {
    std::string out;
    for (const T& x : list) {
      out += out.empty() ? "" : ", ";
      if constexpr (std::is_same_v<T, ParallelType>)
        out += fusebox::text(x);
      else
        out += std::to_string(x);
    }
    return "[" + out + "]";
  }
  std::string parameter(const ScalarParameter& p) const {
    if (!p.stride_of) return names_.value(p.scalar);
    return "stride(" + names_.domain(allocation_of(g_, g_.tensor_of(p.stride_of))[p.axis]) + ")";
  }
  static std::string node_text(uint32_t node) { return node == LoopNode::kNoNode ? "_" : std::to_string(node); }

  void threads() {
    std::string list;
    for (ParallelType p : plan_.used_threads) {
      list += (list.empty() ? "" : ", ") + std::string(fusebox::text(p));
      if (plan_.launched_empty.contains(p)) list += " or one";
      if (plan_.exact_launch.at(p)) list += " exact";
      if (const auto& largest = plan_.largest_launch.at(p)) list += " " + std::to_string(*largest);
    }
    line("threads [" + list + "]");
  }

  void buffer(const Buffer& b) {
    std::string text = "buffer " + names_.value(b.value) + " " + std::string(fusebox::text(b.memory));
    if (b.is_parameter) text += " parameter";
    if (b.storage != b.value) text += " of " + names_.value(b.storage);
    if (!b.is_parameter) {
      std::string places;
      for (DomainId d : b.places) places += (places.empty() ? "" : ", ") + names_.domain(d);
      text += " [" + places + "] in " + node_text(b.home);
      if (b.memory != MemoryType::kShared) text += " elements " + std::to_string(b.elements);
    }
    line(text);
  }

  void exchange(OpId op, const Exchange& e) {
    std::string readers;
    for (OpId r : e.readers) readers += (readers.empty() ? "" : ", ") + made_by(r);
    line("exchange " + made_by(op) + " over " + print_list(e.threads) +
         (e.lanes > 0 ? " by " + std::to_string(e.lanes) + " lanes" : "") +
         (e.is_last      ? " in last block for [" + readers + "]"
          : e.is_cluster ? " in cluster"
                         : ""));
  }

  void body(uint32_t node, const std::vector<TreeChild>& children) {
    for (size_t i = 0; i <= children.size(); ++i) {
      for (const SyncScope scope : {SyncScope::kBlock, SyncScope::kGrid})
        if (plan_.sync_points.contains({node, i, scope}))
          line(scope == SyncScope::kGrid ? "barrier grid" : "barrier block");
      if (i < children.size()) children[i].is_node ? loop(children[i].index) : statement(children[i].index);
    }
  }

  void loop(uint32_t node) {
    const LoopNode& n = plan_.tree.nodes[node];
    std::string text =
        "for " + std::to_string(node) + " " + std::string(fusebox::text(n.parallel)) + " " + names_.domain(n.domain);
    if (const auto it = plan_.strips.find(node); it != plan_.strips.end())
      text += " strip " + std::to_string(it->second);
    line(text + " {");
    ++depth_;
    if (const auto it = plan_.unswitched.find(node); it != plan_.unswitched.end()) {
      line("unswitch {");
      ++depth_;
      for (const Hoisted& h : it->second) {
        StatementView view(plan_, plan_.tree.statements[h.statement]);
        line("hoist " + std::to_string(h.statement) + "." + std::to_string(h.condition) + " " +
             condition(view, h.at_last_point));
      }
      --depth_;
      line("}");
    }
    body(node, plan_.tree.children[node]);
    --depth_;
    line("}");
  }

  std::string condition(StatementView& view, const Condition& c) {
    FormPrinter forms(plan_, view.algebra, names_);
    std::string text = c.guard ? "thread " + std::string(fusebox::text(*c.guard)) : forms.form(c.value);
    text += c.kind == CheckKind::kLastBlock ? " came last"
                                            : " " + std::string(comparison(c.compare)) + " " + forms.form(c.bound);
    if (c.begins > 0) text += " from " + std::to_string(c.begins) + " of " + node_text(c.node);
    if (c.holds_before) text += " not before the loop";
    text += " because " + std::string(row_of(c.reason).text);
    if (c.domain) text += " of " + names_.domain(c.domain);
    return text;
  }

  void statement(uint32_t index) {
    const Statement& s = plan_.tree.statements[index];
    StatementView view(plan_, s);
    FormPrinter forms(plan_, view.algebra, names_);
    std::string path;
    for (uint32_t n : s.path) path += (path.empty() ? "" : ", ") + node_text(n);
    constexpr std::string_view kKinds[] = {"init", "main", "exchange", "final"};
    line("statement " + std::to_string(index) + " " + made_by(s.op) + " " +
         std::string(kKinds[static_cast<size_t>(s.kind)]) + " at [" + path + "] {");
    ++depth_;
    if (index < plan_.statements.size()) {
      const StatementPlan& p = plan_.statements[index];
      for (const Condition& c : p.conditions) line("if " + condition(view, c));
      if (p.vector)
        line("vector " + std::to_string(p.vector->width) + " from " + forms.form(p.vector->source) + " to " +
             forms.form(p.vector->target));
      for (size_t k = 0; k < p.reads.size(); ++k) access("read", view, k, p.reads[k]);
      for (size_t i = 0; i < p.writes.size(); ++i) access("write", view, i, p.writes[i]);
    }
    --depth_;
    line("}");
  }

  void access(std::string_view what, StatementView& view, size_t index, const Access& a) {
    if (!a.value) return;
    FormPrinter forms(plan_, view.algebra, names_);
    std::string text =
        std::string(what) + " " + std::to_string(index) + " " + names_.value(a.value) + " at " + forms.form(a.index);
    if (a.position) text += " along " + forms.form(*a.position);
    line(text);
    for (const Condition& c : a.inside) line("  inside " + condition(view, c));
  }

  const KernelPlan& plan_;
  const Graph& g_;
  Names names_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string print_form(const KernelPlan& plan, IndexAlgebra& algebra, Form form) {
  return FormPrinter(plan, algebra, Names(*plan.graph, false)).form(form);
}

std::string print_plan(const KernelPlan& plan) { return PlanPrinter(plan, false).run(); }

Digest digest(const KernelPlan& plan) { return digest_bytes(PlanPrinter(plan, true).run()); }

}  // namespace fusebox
