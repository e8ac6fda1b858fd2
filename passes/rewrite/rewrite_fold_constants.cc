// fold_constants replaces scalars only. It makes every scalar op again by the rules of ir/scalar/scalar.h, which fold,
// simplify, and find a value that exists already.
#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar.h"
#include "passes/rewrite/rewrite_edit.h"

namespace fusebox {
namespace {

// The result that a folded sum, difference or product of integers would have without wrapping, if it is different.
std::optional<double> beyond_width(const Graph& g, OpKind kind, const std::vector<ValueId>& operands, ValueId made) {
  const Dtype dtype = g[made].dtype;
  const bool may_wrap = kind == OpKind::kAdd || kind == OpKind::kSub || kind == OpKind::kMul;
  if (!may_wrap || !is_integer(dtype) || bits(dtype) > 32 || !g.is_constant(made)) return std::nullopt;
  std::vector<double> x;
  for (ValueId v : operands) {
    if (!g.is_constant(v)) return std::nullopt;
    x.push_back(to_double(g[v].dtype, *g[v].constant));
  }
  const double exact = kind == OpKind::kAdd ? x[0] + x[1] : kind == OpKind::kSub ? x[0] - x[1] : x[0] * x[1];
  if (exact == to_double(dtype, *g[made].constant)) return std::nullopt;
  return exact;
}

// The result that a folded 64-bit sum or difference would have by way of doubles, if it is different.
std::optional<ConstantBits> by_double(const Graph& g, OpKind kind, const std::vector<ValueId>& operands, ValueId made) {
  const Dtype dtype = g[made].dtype;
  const bool is_sum = kind == OpKind::kAdd || kind == OpKind::kSub;
  if (!is_sum || !is_integer(dtype) || bits(dtype) < 64 || dtype == Dtype::kIndex || !g.is_constant(made))
    return std::nullopt;
  for (ValueId v : operands)
    if (!g.is_constant(v)) return std::nullopt;
  const double a = to_double(g[operands[0]].dtype, *g[operands[0]].constant);
  const double b = to_double(g[operands[1]].dtype, *g[operands[1]].constant);
  const ConstantBits bits = from_double(dtype, kind == OpKind::kAdd ? a + b : a - b);
  return bits == *g[made].constant ? std::nullopt : std::optional(bits);
}

// New constants are appended, so ids stay.
void fold(Graph& next, Rewriter& r, const RewriteOptions& options) {
  const std::vector<OpId> body = next[Graph::body()].ops;
  for (OpId id : body) {
    const Op op = next[id];
    if (demands(op.kind, kSignature | kEffect) || op.results.size() != 1 || next.is_tensor(op.results[0])) continue;
    std::vector<ValueId> operands;
    for (ValueId v : op.operands) operands.push_back(r.now(v));
    r.set_operands(id, operands);
    const ValueId v = op.results[0];
    const size_t ops = next.ops.size(), values = next.values.size();
    ValueId made = scalar::make(next, scalar::Place::before_op(next, id), op.kind, operands, next[v].dtype, op.attrs);
    if (const auto beyond = beyond_width(next, op.kind, operands, made);
        beyond && options.defects.has(Defect::kFoldWithoutWrap))
      made = constant(next, next[v].dtype, from_double(next[v].dtype, *beyond));
    if (const auto rounded = by_double(next, op.kind, operands, made);
        rounded && options.defects.has(Defect::kFoldInDouble))
      made = constant(next, next[v].dtype, *rounded);
    if (next.ops.size() > ops) {
      // Nothing was simplified, so the op that was made is a copy of the op that stands here.
      std::erase(next[Graph::body()].ops, OpId(ops));
      next.ops.resize(ops);
      next.values.resize(values);
      continue;
    }
    if (r.fits(v, made)) r.replace(v, made);
  }
}

}  // namespace

bool fold_constants(Graph& g, const RewriteOptions& options) { return rewrite_readers(g, options, fold); }

}  // namespace fusebox
