#include "passes/nest/symbols.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>

#include "ir/canonical/canonical.h"
#include "ir/domain/domain.h"
#include "passes/nest/facts.h"

namespace fusebox {

ExtentClasses::ExtentClasses(const Graph& g, const Defects& defects, const Bindings& sizes) : parent_(g.values.size()) {
  for (uint32_t i = 0; i < parent_.size(); ++i) parent_[i] = i;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.results.empty() || !g.is_tensor(op.results[0])) continue;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      if (!op.operands[k] || !g.is_tensor(op.operands[k])) continue;
      for (const auto& [from, to] : map_producer_to_consumer(g, id, k)) {
        const IterDomain& p = g[from];
        const IterDomain& c = g[to];
        if (p.iter_type == IterType::kBroadcast || c.iter_type == IterType::kBroadcast) continue;
        if (p.extent && c.extent) unite(g, p.extent, c.extent);
      }
    }
  }
  const auto is_given = [&](ValueId v) { return g.is_constant(v) || (g[v].def && g[g[v].def].kind == OpKind::kSize); };
  for (const StatedFact& f : stated_facts(g))
    if (f.kind == StatedFact::Kind::kEqual && is_given(f.value) && is_given(f.bound)) unite(g, f.value, f.bound);
  for (uint32_t i = 0; i < sizes.size(); ++i)
    for (uint32_t k = 0; k < i; ++k)
      if (sizes[i] && sizes[i] == sizes[k] && g.values[i].dtype == Dtype::kIndex && defects.has(Defect::kSymbolsByHint))
        unite(g, ValueId(k), ValueId(i));
}

ValueId ExtentClasses::representative(ValueId v) const {
  uint32_t i = v.index;
  while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
  return ValueId(i);
}

void ExtentClasses::unite(const Graph& g, ValueId a, ValueId b) {
  a = representative(a);
  b = representative(b);
  if (a == b) return;
  equated_.emplace_back(a, b);
  // A constant represents its class, or else the value that canonical order makes first: a later value may be computed
  // from the first, and its form would then never end. The order of the ops here does not matter, because a schedule is
  // judged in one order and lowered in another.
  if (places_.empty()) places_ = canonical_places(g);
  const auto rank = [&](ValueId v) { return std::tuple(!g.is_constant(v), places_[v.index], v); };
  if (rank(b) < rank(a)) std::swap(a, b);
  parent_[b.index] = a.index;
}

namespace {

// A form repeats its parts: k differences of quotients, each made from the one before, would be 2^k terms deep. A
// scalar becomes a symbol if its form would hold more quotients, minima and maxima than this.
constexpr int64_t kMostQuotients = 64;

bool is_sum(OpKind kind) {
  return kind == OpKind::kAdd || kind == OpKind::kSub || kind == OpKind::kMul || kind == OpKind::kNeg;
}
bool is_quotient(OpKind kind) {
  return kind == OpKind::kFloorDiv || kind == OpKind::kFloorMod || kind == OpKind::kCeilDiv ||
         kind == OpKind::kMinimum || kind == OpKind::kMaximum;
}

// Counts the quotients in a scalar's form. Scalars that would have too many are declared as symbols first.
int64_t bound_quotients(const Graph& g, const ExtentClasses& classes, IndexAlgebra& algebra, ValueId v,
                        std::map<ValueId, int64_t>& known) {
  v = classes.representative(v);
  const OpId def = g[v].def;
  if (!def || g.is_constant(v) || !(is_sum(g[def].kind) || is_quotient(g[def].kind)) ||
      algebra.has_symbol(static_cast<int>(v.index)))
    return 0;
  if (const auto it = known.find(v); it != known.end()) return it->second;
  int64_t count = is_quotient(g[def].kind) ? 1 : 0;
  for (ValueId o : g[def].operands) count += bound_quotients(g, classes, algebra, o, known);
  if (count > kMostQuotients) {
    algebra.declare_symbol(static_cast<int>(v.index), g[v].name, {.lower = INT64_MIN, .upper = std::nullopt});
    count = 0;
  }
  return known[v] = count;
}

// Whether a part of a sum may be so large that its product with a stride leaves 64 bits although the sum is small: a
// constant beyond 32 bits, or a product with one.
bool is_large(const Graph& g, ValueId v, int depth) {
  if (const auto c = constant_integer(g, v)) return *c < INT32_MIN || *c > INT32_MAX;
  const OpId def = g[v].def;
  return depth > 0 && def && g[def].kind == OpKind::kMul &&
         std::ranges::any_of(g[def].operands, [&](ValueId o) { return is_large(g, o, depth - 1); });
}

bool has_large_part(const Graph& g, const Op& sum) {
  constexpr int kMaxDepth = 4;  // nesting of products
  return std::ranges::any_of(sum.operands, [&](ValueId o) { return is_large(g, o, kMaxDepth); });
}

// Forms compute in 64 bits. Narrower types wrap earlier, and true + true is true.
bool is_taken_apart(Dtype dtype) { return dtype == Dtype::kIndex || dtype == Dtype::kInt64; }

bool hides_sum(const Graph& g, ValueId v, std::set<ValueId>& seen) {
  const OpId def = g[v].def;
  if (!def || !is_sum(g[def].kind) || !seen.insert(v).second) return false;
  const bool adds = g[def].kind == OpKind::kAdd || g[def].kind == OpKind::kSub;
  return (adds && has_large_part(g, g[def])) ||
         std::ranges::any_of(g[def].operands, [&](ValueId o) { return hides_sum(g, o, seen); });
}

}  // namespace

bool hides_sum(const Graph& g, ValueId v) {
  std::set<ValueId> seen;
  return hides_sum(g, v, seen);
}

Form Symbols::of(ValueId v) {
  std::map<ValueId, int64_t> quotients;
  bound_quotients(g_, classes_, algebra_, v, quotients);
  std::map<ValueId, Form> known;
  return of(v, known);
}

// Each scalar is taken apart once, however many paths lead to it.
Form Symbols::of(ValueId v, std::map<ValueId, Form>& known) {
  v = classes_.representative(v);
  if (const auto number = constant_integer(g_, v)) return algebra_.constant(*number);
  const int id = static_cast<int>(v.index);
  if (algebra_.has_symbol(id)) return algebra_.symbol(id);
  if (const auto it = known.find(v); it != known.end()) return it->second;
  if (const OpId def = g_[v].def) {
    const Op& op = g_[def];
    const auto operand = [&](size_t i) { return of(op.operands[i], known); };
    switch (is_taken_apart(g_[v].dtype) ? op.kind : OpKind::kSet) {
      case OpKind::kAdd:
        if (has_large_part(g_, op)) break;
        return known[v] = algebra_.add(operand(0), operand(1));
      case OpKind::kSub:
        if (has_large_part(g_, op)) break;
        return known[v] = algebra_.sub(operand(0), operand(1));
      case OpKind::kMul:
        return known[v] = algebra_.mul(operand(0), operand(1));
      case OpKind::kNeg:
        return known[v] = algebra_.neg(operand(0));
      case OpKind::kFloorDiv:
        return known[v] = algebra_.floor_div(operand(0), operand(1));
      case OpKind::kFloorMod:
        return known[v] = algebra_.mod(operand(0), operand(1));
      case OpKind::kCeilDiv:
        // With division rounded down, the quotient is (a + b - 1) / b if b > 0, and -(-a / b) otherwise.
        if (const Form b = operand(1); !algebra_.prove_nonneg(algebra_.sub(b, algebra_.constant(1))))
          return known[v] = algebra_.neg(algebra_.floor_div(algebra_.neg(operand(0)), b));
        return known[v] = algebra_.ceil_div(operand(0), operand(1));
      case OpKind::kMinimum:
        return known[v] = algebra_.min(operand(0), operand(1));
      case OpKind::kMaximum:
        return known[v] = algebra_.max(operand(0), operand(1));
      default:  // any other: a symbol of which nothing is known
        break;
    }
    // A size is an extent and at least 0; any other scalar may be negative.
    if (op.kind == OpKind::kSize) return algebra_.declare_symbol(id, g_[v].name);
    if (const auto number = evaluate_integer(g_, v)) return known[v] = algebra_.constant(*number);
  }
  return algebra_.declare_symbol(id, g_[v].name, {.lower = INT64_MIN, .upper = std::nullopt});
}

Form Symbols::of(const ScalarForm& form) {
  Form sum = algebra_.constant(form.constant);
  for (const ScalarForm::Term& term : form.terms) {
    Form product = algebra_.constant(term.coefficient);
    for (ValueId v : term.factors) product = algebra_.mul(product, of(v));
    sum = algebra_.add(sum, product);
  }
  return sum;
}

}  // namespace fusebox
