// fold_constants: scalars alone. Every scalar op is made again by the rules of ir/scalar.h, which fold, simplify and
// find what is there.
#include "ir/scalar.h"
#include "passes/rewrite_edit.h"

namespace fusebox {

bool fold_constants(Graph& g, const RewriteOptions& options) {
  // New constants are appended to this; ids stay.
  Graph next = g;
  Rewriter r(next, options);
  const std::vector<OpId> body = g[Graph::body()].ops;
  for (OpId id : body) {
    const Op op = next[id];
    if (demands(op.kind, kSignature | kEffect) || op.results.size() != 1 || next.is_tensor(op.results[0])) continue;
    std::vector<ValueId> operands;
    for (ValueId v : op.operands) operands.push_back(r.now(v));
    r.set_operands(id, operands);
    const ValueId v = op.results[0];
    const size_t ops = next.ops.size(), values = next.values.size();
    const ValueId made =
        scalar::make(next, scalar::Place::before_op(next, id), op.kind, operands, next[v].dtype, op.attrs);
    if (next.ops.size() > ops) {
      // Nothing to simplify: the op that was made is the one that stands here.
      std::erase(next[Graph::body()].ops, OpId(ops));
      next.ops.resize(ops);
      next.values.resize(values);
      continue;
    }
    if (r.fits(v, made)) r.replace(v, made);
  }
  if (!r.finish()) return false;
  g = compact(next);
  return true;
}

}  // namespace fusebox
