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

// Whether the width divides the form. The launch may check part of it: `needed` gets those facts. False: it cannot be
// shown.
bool divided(const KernelPlan& plan, IndexAlgebra& algebra, Form form, int64_t width, std::set<Divisibility>& needed) {
  if (algebra.constant_part(form) % width != 0) return false;
  for (const TermView& term : algebra.terms(form)) {
    if (term.coefficient % width == 0) continue;
    std::vector<ScalarParameter> product;
    bool has_stride = false;
    const std::vector<AtomId> factors(term.factors.begin(), term.factors.end());
    for (AtomId f : factors) {
      const AtomView atom = algebra.atom(f);
      if (atom.kind != AtomKind::kSymbol) continue;
      const auto p = parameter_of(*plan.graph, atom.id);
      if (!p) continue;
      product.push_back(*p);
      has_stride |= static_cast<bool>(p->stride_of);
    }
    if (product.empty()) return false;
    if (has_stride && plan.defects().has(Defect::kVectorStride)) continue;
    std::sort(product.begin(), product.end());
    // The coefficient brings its part of the width.
    needed.insert({width / std::gcd(width, term.coefficient), product});
  }
  return true;
}

}  // namespace

std::optional<VectorNeeds> needs_of_width(const KernelPlan& plan, StatementView& view, int64_t width) {
  const Graph& g = *plan.graph;
  IndexAlgebra& algebra = view.algebra;
  const int node = static_cast<int>(view.path.back());
  const ValueId to = g[view.op].results[0], from = g[view.op].operands[0];
  VectorNeeds needs;
  const auto is_vector = [&](Form value) {
    const auto linear = algebra.linear_in(value, node);
    return linear && algebra.constant_value(linear->coefficient) == 1 &&
           divided(plan, algebra, linear->rest, width, needs.divisibilities);
  };
  DomainValues values = view.feed(0);
  if (!is_vector(view.index_of(plan.buffer_of(from), values)) ||
      !is_vector(view.index_of(plan.buffer_of(to), view.own)))
    return std::nullopt;
  for (const DomainCheck& check : view.own.checks())
    if (algebra.depends_on(check.value, node) &&
        (!is_vector(check.value) || !divided(plan, algebra, check.extent, width, needs.divisibilities)))
      return std::nullopt;
  for (ValueId v : {to, from})
    if (const Buffer& b = plan.buffer_of(v); b.memory == MemoryType::kGlobal)
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
  const int64_t bytes = width ? *width * size_bytes(g[to].dtype) : 0;
  if (!width || *width < 1 || (*width & (*width - 1)) != 0 || bytes > 16)
    throw Error(ErrorCode::kIllegalVectorize,
                "a vector is a power of two of elements, 16 bytes at most; split by such a factor", place);
  if (g[to].dtype != g[from].dtype)
    throw Error(ErrorCode::kIllegalVectorize, "a vectorized copy keeps the dtype; cast in an op of its own", place);
  const int node = static_cast<int>(view.path.back());
  std::set<Divisibility>& needed = needs.divisibilities;
  const auto side = [&](ValueId v, Form index) {
    const auto linear = view.algebra.linear_in(index, node);
    if (*width > 1 && (!linear || algebra.constant_value(linear->coefficient) != 1 ||
                       !divided(plan, algebra, linear->rest, *width, needed)))
      throw Error(ErrorCode::kIllegalVectorize,
                  "its elements in " + plan.place_of(v) +
                      " do not lie side by side, or do not start at a multiple of the width; vectorize the innermost "
                      "contiguous axis",
                  place);
    return linear ? linear->rest : index;
  };
  DomainValues values = view.feed(0);
  const Form source = side(from, view.index_of(plan.buffer_of(from), values));
  const Form target = side(to, view.index_of(plan.buffer_of(to), view.own));
  // A check must hold for all elements of a vector or for none, so the width must divide value and extent.
  for (const DomainCheck& check : view.own.checks()) {
    if (!algebra.depends_on(check.value, node) || plan.defects().has(Defect::kVectorTail)) continue;
    const auto linear = algebra.linear_in(check.value, node);
    if (!linear || algebra.constant_value(linear->coefficient) != 1 ||
        !divided(plan, algebra, linear->rest, *width, needed) || !divided(plan, algebra, check.extent, *width, needed))
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
