#include "passes/identity/agreement.h"

#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/scalar/scalar.h"
#include "passes/identity/domain_views.h"

namespace fusebox {
namespace {

// -- which tensors are made from a tensor

std::vector<OpId> tensor_ops(const Graph& g) {
  std::vector<OpId> result;
  for (OpId id : g[Graph::body()].ops)
    if (!g[id].results.empty() && g.is_tensor(g[id].results[0])) result.push_back(id);
  return result;
}

// By tensor: whether `from` is made from it (up), or whether it is made from `from` (down). `from` itself is included.
std::vector<bool> reached(const Graph& g, TensorId from, bool up) {
  std::vector<bool> result(g.tensors.size());
  result[from.index] = true;
  const auto ops = tensor_ops(g);
  const auto visit = [&](const Op& op, const std::vector<ValueId>& these, const std::vector<ValueId>& others) {
    const auto is_reached = [&](ValueId v) { return v && g.is_tensor(v) && result[g[v].tensor.index]; };
    if (std::none_of(these.begin(), these.end(), is_reached)) return;
    for (ValueId v : others)
      if (v && g.is_tensor(v)) result[g[v].tensor.index] = true;
    // Results of one op are made at one place.
    if (up) return;
    for (ValueId v : op.results)
      if (g.is_tensor(v)) result[g[v].tensor.index] = true;
  };
  if (up)
    for (size_t i = ops.size(); i-- > 0;) visit(g[ops[i]], g[ops[i]].results, g[ops[i]].operands);
  else
    for (OpId id : ops) visit(g[id], g[id].operands, g[id].results);
  return result;
}

// The tensors in both sets, nearest first.
std::vector<TensorId> common(const Graph& g, const std::vector<bool>& a, const std::vector<bool>& b, bool up) {
  std::vector<TensorId> result;
  for (OpId id : tensor_ops(g))
    for (ValueId v : g[id].results)
      if (g.is_tensor(v) && a[g[v].tensor.index] && b[g[v].tensor.index]) result.push_back(g[v].tensor);
  if (up) std::reverse(result.begin(), result.end());
  return result;
}

bool are_siblings(const Graph& g, TensorId a, TensorId b) {
  const auto all = siblings(g, a);
  return std::find(all.begin(), all.end(), b) != all.end();
}

// -- the theorems on which the way from the axes to a domain rests

class Theorems {
 public:
  explicit Theorems(const Graph& g) : g_(g) {}

  void add(DomainId d) {
    const auto chain = transforms_between(g_, {}, std::span(&d, 1));
    const Tensor& tensor = g_[g_[d].tensor];
    const auto of_op = op_transforms(g_, tensor);
    for (TransformId id : chain) {
      const Transform& t = g_[id];
      if (std::find(of_op.begin(), of_op.end(), id) != of_op.end()) add_op(tensor);
      const DomainId input = t.inputs[0];
      switch (t.kind) {
        case TransformKind::kSplit:
          if (is_one(t.outputs[0]) || is_one(t.outputs[1]))
            name("trivial-split", "a split with an output of extent 1 leaves its input in the other");
          if (made_by(input, TransformKind::kSplit))
            name("split-of-split", g_[g_[input].def].outputs[0] == input
                                       ? "(x div a) div b is x div (a*b)"
                                       : "(x mod a) div b is the digit of x from b up to a");
          else if (made_by(input, TransformKind::kMerge))
            name("merge-then-split", "(x*n + y) div m: what m divides of x*n comes out of the quotient");
          else
            name("split", "a split gives quotient and remainder by the extent of its inner output");
          break;
        case TransformKind::kMerge:
          if (is_one(t.inputs[0]) || is_one(t.inputs[1]))
            name("trivial-merge", "a merge with a domain of extent 1 is the other domain");
          else if (g_[input].def && g_[input].def == g_[t.inputs[1]].def)
            name("split-then-merge", "(x div n)*n + x mod n is x");
          else
            name("merge", "a merge of x and y of extent n is x*n + y");
          break;
        case TransformKind::kSwizzle:
          name("swizzle", t.swizzle == SwizzleType::kXor ? "x, y become x, y xor x; the xor again gives y"
                                                         : "x, y become x, (x + y) mod n; a difference gives y");
          break;
        case TransformKind::kResize:
          name("resize", "a resize adds what it puts on the left");
          break;
      }
    }
  }

  // Adds the theorem of a tensor on the way whose op makes its domains from others.
  void add_op(const Tensor& t) {
    if (op_transforms(g_, t).empty()) return;
    const OpKind kind = g_[g_[t.value].def].kind;
    if (demands(kind, kReduction))
      return name("stage",
                  "%" + g_[t.value].name + " is a stage of a reduction: its axes are the parts that splits made");
    name(kind == OpKind::kReshape ? "reshape" : "slice-or-pad",
         kind == OpKind::kReshape ? "%" + g_[t.value].name + " is a reshape: its elements keep their order"
                                  : "%" + g_[t.value].name + " is cut or padded: its elements are shifted");
  }

  std::vector<Reason> reasons;

 private:
  bool is_one(DomainId d) const { return evaluate_extent(g_, d) == 1; }
  bool made_by(DomainId d, TransformKind kind) const { return g_[d].def && g_[g_[d].def].kind == kind; }
  void name(const char* name, std::string text) {
    const Reason reason{Reason::Kind::kTheorem, name, std::move(text)};
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(reason);
  }

  const Graph& g_;
};

// -- one comparison

struct Comparison {
  const Graph& g;
  const NestPlan& plan;
  const ExtentClasses& extents;
  DomainId a, b;
};

// Both domains as forms of the points of one tensor.
struct Attempt {
  Attempt(const Comparison& c, Start start, TensorId t, bool up, bool with_facts)
      : views(c.g, c.plan, c.extents, start, t, with_facts) {
    if (up)
      views.go_up();
    else
      views.go_down();
    as = views.of(c.a);
    bs = views.of(c.b);
    cut = views.is_cut(c.g[c.a].tensor) || views.is_cut(c.g[c.b].tensor);
    for (Form a : as)
      for (Form b : bs)
        if (!views.algebra.equal(a, b)) unproved.emplace_back(a, b);
  }
  bool is_comparable() const { return !as.empty() && !bs.empty(); }
  bool is_proved() const { return unproved.empty() && !cut; }

  DomainViews views;
  std::vector<Form> as, bs;
  std::vector<std::pair<Form, Form>> unproved;
  bool cut = false;
};

std::vector<Reason> reasons_of(const Comparison& c, Attempt& attempt, TensorId t, bool up) {
  const Graph& g = c.g;
  Theorems theorems(g);
  theorems.add(c.a);
  theorems.add(c.b);
  // A tensor in between: the start leads to it, and it leads to one of the two.
  const auto from = reached(g, t, up);
  for (DomainId end : {c.a, c.b}) {
    const auto to = reached(g, g[end].tensor, !up);
    for (uint32_t i = 0; i < g.tensors.size(); ++i)
      if (from[i] && to[i]) theorems.add_op(g.tensors[i]);
  }
  for (const std::string& fact : attempt.views.algebra.all_reasons())
    if (!fact.empty()) theorems.reasons.push_back({Reason::Kind::kFact, "divisibility", fact});
  return std::move(theorems.reasons);
}

// Compares from the points of one tensor. The result is not comparable if one of the two is not a function of them.
Agreement compare(const Comparison& c, Start start, TensorId t, bool up) {
  Agreement result;
  result.points = t;
  Attempt plain(c, start, t, up, false);
  if (!plain.is_comparable()) return result;
  result.comparable = true;
  std::optional<Attempt> with_facts;
  if (!plain.is_proved()) with_facts.emplace(c, start, t, up, true);
  // The facts contradict each other where an extent of the start is 0. Values may depend on other variables then.
  const bool is_sound = with_facts && with_facts->is_comparable();
  Attempt& used = is_sound ? *with_facts : plain;
  const auto [a, b] = used.unproved.empty() ? std::pair(used.as[0], used.bs[0]) : used.unproved[0];
  result.a_value = used.views.algebra.to_string(a);
  result.b_value = used.views.algebra.to_string(b);
  result.proved = used.is_proved();
  if (result.proved) {
    result.reasons = reasons_of(c, used, t, up);
    return result;
  }
  if (used.cut) result.verdict = "the program reads along too many ways";
  result.ways = std::max(used.as.size(), used.bs.size());
  // Forms without facts have values even at sizes that break a fact. `divides` says which sizes obey the facts.
  IndexAlgebra& algebra = plain.views.algebra;
  const auto divides = plain.views.divides();
  for (const auto& [x, y] : plain.unproved) {
    result.difference = find_difference(algebra, c.g, x, y, plain.views.variables(), divides);
    if (!result.difference) continue;
    result.a_value = algebra.to_string(x);
    result.b_value = algebra.to_string(y);
    break;
  }
  return result;
}

std::string points_text(const Graph& g, Start start, TensorId t) {
  return (start == Start::kElements ? "at every element of %" : "at every loop point of the nest of %") +
         g[g[t].value].name;
}

void say(Agreement& r, const Graph& g, Start start) {
  if (!r.verdict.empty()) return;
  const std::string where = points_text(g, start, r.points);
  if (r.proved)
    r.verdict = r.a_value == r.b_value ? "both are `" + r.a_value + "` " + where
                                       : "`" + r.a_value + "` is `" + r.b_value + "` " + where;
  else if (r.difference)
    r.verdict = "`" + r.a_value + "` and `" + r.b_value + "` differ" +
                (r.ways > 1 ? ", in one of the ways in which the program reads one from the other" : "");
  else
    r.verdict =
        "`" + r.a_value + "` and `" + r.b_value + "` were not proved equal, and no point was found where they differ";
}

}  // namespace

Agreement agree_at_elements(const Graph& g, DomainId a, DomainId b) {
  const ExtentClasses extents(g);
  const NestPlan plan;  // no broadcast is promoted: elements belong to tensors, not to loops
  const Comparison c{g, plan, extents, a, b};
  const TensorId ta = g[a].tensor, tb = g[b].tensor;
  // The pair is proved if one start shows it and no other contradicts it. Starts beyond one that decides both are left
  // out.
  constexpr size_t kMostStarts = 24;
  Agreement result;
  size_t tried = 0;
  std::vector<bool> covered(g.tensors.size());
  const auto try_start = [&](TensorId t, bool up) {
    if (covered[t.index] || tried == kMostStarts) return;
    ++tried;
    Agreement r = compare(c, Start::kElements, t, up);
    if (!r.comparable) return;
    const auto beyond = reached(g, t, !up);
    for (size_t i = 0; i < covered.size(); ++i) covered[i] = covered[i] || beyond[i];
    say(r, g, Start::kElements);
    const bool better = !result.comparable || (r.proved && !result.proved && !result.difference) ||
                        (r.difference && !result.difference);
    if (better) result = std::move(r);
  };
  const auto up_a = reached(g, ta, true), up_b = reached(g, tb, true);
  if (up_a[tb.index] || are_siblings(g, ta, tb))
    try_start(ta, true);
  else if (up_b[ta.index])
    try_start(tb, true);
  if (result.comparable) return result;
  for (TensorId t : common(g, up_a, up_b, true)) try_start(t, false);
  if (result.comparable) return result;
  for (TensorId t : common(g, reached(g, ta, false), reached(g, tb, false), false)) try_start(t, true);
  if (!result.comparable)
    result.verdict =
        tried == 0 ? "no tensor is made of both, and both are made of none" : "the elements of no tensor decide both";
  return result;
}

Agreement agree_in_nest(const Graph& g, DomainId a, DomainId b) {
  const ExtentClasses extents(g);
  const NestPlan plan = plan_nests(g);
  const Comparison c{g, plan, extents, a, b};
  const TensorId ta = g[a].tensor, tb = g[b].tensor;
  Agreement result;
  const bool a_reads_b = reached(g, ta, true)[tb.index] || are_siblings(g, ta, tb),
             b_reads_a = reached(g, tb, true)[ta.index];
  if (!a_reads_b && !b_reads_a) {
    result.verdict = "neither tensor is made of the other, so no nest has both";
    return result;
  }
  result = compare(c, Start::kLoops, a_reads_b ? ta : tb, true);
  if (result.comparable)
    say(result, g, Start::kLoops);
  else
    result.verdict = "the loops of the nest do not decide both";
  return result;
}

}  // namespace fusebox
