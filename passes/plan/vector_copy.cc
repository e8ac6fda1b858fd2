#include "passes/plan/vector_copy.h"

#include <algorithm>
#include <numeric>

#include "ir/domain/domain.h"
#include "ir/table/error.h"

namespace fusebox {

bool is_vector_copy(const KernelPlan& plan, OpId id) {
  const Graph& g = *plan.graph;
  const Op& op = g[id];
  const auto& loop = loop_of(g.tensor_of(op.results[0]));
  if (loop.empty() || g[loop.back()].parallel != ParallelType::kVectorize) return false;
  return op.kind == OpKind::kSet && g.is_tensor(op.operands[0]);
}

namespace {

bool divided(const KernelPlan& plan, StatementView& view, Form form, int64_t width, std::set<Divisibility>& needed);

// Whether the width divides an atom that equals one of a few forms, because it divides each of them.
bool divides_each(const KernelPlan& plan, StatementView& view, AtomId id, int64_t width,
                  std::set<Divisibility>& needed) {
  const AtomView atom = view.algebra.atom(id);
  if (atom.kind != AtomKind::kMin && atom.kind != AtomKind::kMax && atom.kind != AtomKind::kNamed) return false;
  std::set<Divisibility> of_args;
  const auto is_divided = [&](Form arg) { return divided(plan, view, arg, width, of_args); };
  if (plan.defects().has(Defect::kVectorOneOfTwo) ? std::ranges::none_of(atom.args, is_divided)
                                                  : !std::ranges::all_of(atom.args, is_divided))
    return false;
  needed.merge(of_args);
  return true;
}

// The atom that a form is; none if it is a sum, a product or a number.
std::optional<AtomId> as_atom(IndexAlgebra& algebra, Form form) {
  const auto terms = algebra.terms(form);
  if (algebra.constant_part(form) != 0 || terms.size() != 1 || terms[0].coefficient != 1 ||
      terms[0].factors.size() != 1)
    return std::nullopt;
  return terms[0].factors[0];
}

// The scalar of the program that an atom is, if that is a quotient: the launch computes it anyhow.
std::optional<ScalarParameter> quotient_of(StatementView& view, AtomId atom) {
  const Graph& g = view.symbols.graph();
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.kind != OpKind::kFloorDiv || g.is_tensor(op.results[0]) || g[op.results[0]].dtype != Dtype::kIndex) continue;
    if (as_atom(view.algebra, view.symbols.of(op.results[0])) == atom) return ScalarParameter{op.results[0], {}, 0};
  }
  return std::nullopt;
}

// The same of the quotient's dividend, where classes of sizes can show it: a multiple of 16 gives halves that are multiples of 8.
// Beside other facts about the dividend, one about its quotient would be spelled in two ways.
std::optional<Divisibility> of_dividend(StatementView& view, AtomId atom, int64_t width) {
  const AtomView quotient = view.algebra.atom(atom);
  if (quotient.range) return std::nullopt;  // it is a remainder too
  const auto by = view.algebra.constant_value(quotient.divisor);
  const auto dividend = as_atom(view.algebra, quotient.whole);
  if (!by || *by < 1 || (*by & (*by - 1)) != 0 || *by > kMostDivisor / width || !dividend) return std::nullopt;
  const AtomView whole = view.algebra.atom(*dividend);
  if (whole.kind != AtomKind::kSymbol) return std::nullopt;
  const auto p = parameter_of(view.symbols.graph(), whole.id);
  return p ? std::optional(Divisibility{width * *by, {*p}}) : std::nullopt;
}

// The facts as words, in their order. A schedule is judged in one graph and planned in another, where atoms, values and so
// the set of facts have another order.
std::vector<std::vector<std::string>> words_of(const Graph& g, const std::set<Divisibility>& facts) {
  std::vector<std::vector<std::string>> words;
  for (const Divisibility& d : facts) {
    std::vector<std::string>& fact = words.emplace_back();
    for (const ScalarParameter& p : d.product)
      fact.push_back(p.stride_of ? g[p.stride_of].name + "." + std::to_string(p.axis) : g[p.scalar].name);
    std::ranges::sort(fact);
    fact.push_back(std::to_string(d.divisor));
  }
  std::ranges::sort(words);
  return words;
}

// Whether the width divides one of the factors. Of several, the one that needs the fewest facts, or the first by their words.
bool divides_one(const KernelPlan& plan, StatementView& view, const std::vector<AtomId>& factors, int64_t width,
                 std::set<Divisibility>& needed) {
  std::optional<std::set<Divisibility>> best;
  for (const AtomId factor : factors) {
    std::set<Divisibility> own;
    if (!divides_each(plan, view, factor, width, own)) continue;
    const auto rank = [&](const std::set<Divisibility>& facts) {
      return std::pair(facts.size(), words_of(*plan.graph, facts));
    };
    if (!best || rank(own) < rank(*best)) best = std::move(own);
  }
  if (best) needed.merge(*best);
  return best.has_value();
}

// Whether the width divides the form. The launch may check part of it: `needed` gets those facts. False: it cannot be
// shown.
bool divided(const KernelPlan& plan, StatementView& view, Form form, int64_t width, std::set<Divisibility>& needed) {
  IndexAlgebra& algebra = view.algebra;
  if (algebra.constant_part(form) % width != 0) return false;
  for (const TermView& term : algebra.terms(form)) {
    if (term.coefficient % width == 0) continue;
    const int64_t rest = width / std::gcd(width, term.coefficient);  // the coefficient brings its part of the width
    std::vector<ScalarParameter> product;
    bool has_stride = false, has_quotient = false;
    const std::vector<AtomId> factors(term.factors.begin(), term.factors.end());
    if (divides_one(plan, view, factors, rest, needed)) continue;
    for (AtomId f : factors) {
      const AtomView atom = algebra.atom(f);
      const auto p = atom.kind == AtomKind::kSymbol  ? parameter_of(*plan.graph, atom.id)
                     : atom.kind == AtomKind::kDigit ? quotient_of(view, f)
                                                     : std::nullopt;
      if (!p) continue;
      product.push_back(*p);
      has_stride |= static_cast<bool>(p->stride_of);
      has_quotient |= atom.kind == AtomKind::kDigit;
    }
    if (product.empty()) return false;
    if (has_stride && plan.defects().has(Defect::kVectorStride)) continue;
    if (has_quotient && plan.defects().has(Defect::kQuotientUnchecked)) continue;
    if (factors.size() == 1 && has_quotient) {
      if (auto fact = of_dividend(view, factors[0], rest)) {
        needed.insert(std::move(*fact));
        continue;
      }
    }
    std::sort(product.begin(), product.end());
    needed.insert({rest, product});
  }
  return true;
}

// Whether the index is the loop and a rest of which each term is a multiple of the loop's extent, or has a size or stride
// that a launch may check.
bool lies_side_by_side(StatementView& view, Form index, int loop) {
  IndexAlgebra& algebra = view.algebra;
  const auto linear = algebra.linear_in(index, loop);
  if (!linear || algebra.constant_value(linear->coefficient) != 1) return false;
  const auto extent = algebra.constant_value(algebra.loop_extent(loop));
  return std::ranges::all_of(algebra.terms(linear->rest), [&](const TermView& term) {
    return (extent && *extent > 0 && term.coefficient % *extent == 0) ||
           std::ranges::any_of(term.factors, [&](AtomId f) { return algebra.atom(f).kind == AtomKind::kSymbol; });
  });
}

// The index of a side, simpler where that helps. Where a check of the statement fails, nothing is copied, so the elements need
// to lie side by side where all of them hold: beside a merged axis, one of a single element has the index 0 there.
Form where_checked(StatementView& view, const std::vector<DomainCheck>& checks, Form index, int loop) {
  if (lies_side_by_side(view, index, loop)) return index;
  IndexAlgebra& algebra = view.algebra;
  std::vector<Form> given;
  for (const DomainCheck& check : checks) {
    given.push_back(algebra.sub(algebra.sub(check.extent, algebra.constant(1)), check.value));
    if (check.lower) given.push_back(check.value);
  }
  return given.empty() ? index : algebra.under(index, given);
}

}  // namespace

CopyNeeds::CopyNeeds(const KernelPlan& plan, StatementView& view) : plan_(plan), view_(view) {
  const Op& op = (*plan.graph)[view.op];
  DomainValues values = view.feed(0);
  const int loop = static_cast<int>(view.path.back());
  checks_ = view.own.checks();
  source_ = where_checked(view, checks_, view.index_of(plan.buffer_of(op.operands[0]), values), loop);
  target_ = where_checked(view, checks_, view.index_of(plan.buffer_of(op.results[0]), view.own), loop);
  std::erase_if(checks_, [&](const DomainCheck& check) { return !view.algebra.depends_on(check.value, loop); });
}

std::optional<VectorNeeds> CopyNeeds::of_width(int64_t width) const {
  const Graph& g = *plan_.graph;
  IndexAlgebra& algebra = view_.algebra;
  VectorNeeds needs;
  const auto is_vector = [&](Form value) {
    const auto linear = algebra.linear_in(value, static_cast<int>(view_.path.back()));
    return linear && algebra.constant_value(linear->coefficient) == 1 &&
           divided(plan_, view_, linear->rest, width, needs.divisibilities);
  };
  if (!is_vector(source_) || !is_vector(target_)) return std::nullopt;
  for (const DomainCheck& check : checks_)
    if (!is_vector(check.value) || !divided(plan_, view_, check.extent, width, needs.divisibilities))
      return std::nullopt;
  for (ValueId v : {g[view_.op].results[0], g[view_.op].operands[0]})
    if (const Buffer& b = plan_.buffer_of(v); b.memory == MemoryType::kGlobal)
      needs.alignments[b.storage] = width * size_bytes(g[v].dtype);
  return needs;
}

VectorCopy plan_vector_copy(const KernelPlan& plan, StatementView& view, VectorNeeds& needs) {
  const Graph& g = *plan.graph;
  IndexAlgebra& algebra = view.algebra;
  const Op& op = g[view.op];
  const ValueId to = op.results[0], from = op.operands[0];
  const auto& loop = loop_of(g.tensor_of(to));
  const std::string place = plan.place_of(to) + "." + g[loop.back()].name;
  const auto width = algebra.constant_value(view.own.extent(loop.back()));
  if (!width || *width < 1 || (*width & (*width - 1)) != 0 || *width > 16 / size_bytes(g[to].dtype))
    throw Error(ErrorCode::kIllegalVectorize,
                "a vector is a power of two of elements, 16 bytes at most; split by such a factor", place);
  const int64_t bytes = *width * size_bytes(g[to].dtype);
  if (g[to].dtype != g[from].dtype)
    throw Error(ErrorCode::kIllegalVectorize, "a vectorized copy keeps the dtype; cast in an op of its own", place);
  const int node = static_cast<int>(view.path.back());
  std::set<Divisibility>& needed = needs.divisibilities;
  const auto side = [&](ValueId v, Form index) {
    const auto linear = view.algebra.linear_in(index, node);
    if (*width > 1 && (!linear || algebra.constant_value(linear->coefficient) != 1 ||
                       !divided(plan, view, linear->rest, *width, needed)))
      throw Error(ErrorCode::kIllegalVectorize,
                  "its elements in " + plan.place_of(v) +
                      " do not lie side by side, or do not start at a multiple of the width; vectorize the innermost "
                      "contiguous axis",
                  place);
    return linear ? linear->rest : index;
  };
  DomainValues values = view.feed(0);
  const std::vector<DomainCheck> checks = view.own.checks();
  const Form source = side(from, where_checked(view, checks, view.index_of(plan.buffer_of(from), values), node));
  const Form target = side(to, where_checked(view, checks, view.index_of(plan.buffer_of(to), view.own), node));
  // A check must hold for all elements of a vector or for none, so the width must divide value and extent.
  for (const DomainCheck& check : checks) {
    if (!algebra.depends_on(check.value, node) || plan.defects().has(Defect::kVectorTail)) continue;
    const auto linear = algebra.linear_in(check.value, node);
    if (!linear || algebra.constant_value(linear->coefficient) != 1 ||
        !divided(plan, view, linear->rest, *width, needed) || !divided(plan, view, check.extent, *width, needed))
      throw Error(ErrorCode::kIllegalVectorize,
                  "a vector could reach over the end of " + g[check.domain].name +
                      "; split so that the width divides its extent",
                  place);
  }
  for (ValueId v : {to, from}) {
    const Buffer& b = plan.buffer_of(v);
    if (v == to && plan.defects().has(Defect::kTargetAlignment)) continue;
    if (b.memory == MemoryType::kGlobal && !plan.defects().has(Defect::kVectorAlignment))
      needs.alignments[b.storage] = bytes;
  }
  return {*width, source, target};
}

}  // namespace fusebox
