// dead_code removes ops that no output needs, be it through operands or through the extents of results.
#include "passes/rewrite/rewrite.h"

namespace fusebox {

bool dead_code(Graph& g, const RewriteOptions& options) {
  std::vector<bool> needed(g.values.size());
  std::vector<ValueId> stack;
  const auto need = [&](ValueId v) {
    if (!v || needed[v.index]) return;
    needed[v.index] = true;
    stack.push_back(v);
  };
  const auto need_op = [&](const Op& op) {
    for (ValueId v : op.operands) need(v);
    for (ValueId v : op.results) {
      if (!g.is_tensor(v)) continue;
      const Tensor& t = g.tensor_of(v);
      for (const auto* list : {&t.root, &t.logical, &t.loop_broadcasts})
        for (DomainId d : *list) need(g[d].extent), need(g[d].expanded);
      for (TransformId f : t.transforms) {
        need(g[f].factor), need(g[f].right);
        for (DomainId d : g[f].outputs) need(g[d].expanded);
      }
    }
  };
  auto& body = g[Graph::body()].ops;
  bool changed = false;
  for (OpId id : body) {
    Op& op = g[id];
    const bool is_in_place = op.kind == OpKind::kOutput && op.operands[1] && op.operands[0] != op.operands[1];
    if (!is_in_place || !options.defects.has(Defect::kDeadCodeAlias)) continue;
    op.operands[0] = op.operands[1];
    changed = true;
  }
  for (OpId op : body)
    if (demands(g[op].kind, kSignature | kEffect)) need_op(g[op]);
  while (!stack.empty()) {
    const ValueId v = stack.back();
    stack.pop_back();
    if (g[v].def) need_op(g[g[v].def]);
  }
  // Starts at the last op, so that a limited run leaves no reader of a removed value.
  int64_t left = options.limit;
  for (size_t i = body.size(); i-- > 0 && left > 0;) {
    const Op& op = g[body[i]];
    bool live = demands(op.kind, kSignature | kEffect);
    for (ValueId v : op.results) live |= needed[v.index];
    if (live) continue;
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
    --left;
    changed = true;
  }
  if (changed) g = compact(g);
  return changed;
}

}  // namespace fusebox
