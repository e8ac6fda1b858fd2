// early_gathers: `gather (cast x), i` becomes `cast (gather x, i)` if x is an input. An op that reads by data needs its
// operand in memory, and an input is there already. So the gather can stand in a kernel beside other readers of the cast,
// and it reads the narrower elements.
//
// Casts, and other ops that compute each element from one element of one tensor, give the same bits before and behind a
// gather. A chain of them moves as a whole, if it begins at an input. Other readers of the chain keep it.
#include <ranges>

#include "ir/domain/axis_relation.h"
#include "ir/infer/infer.h"
#include "passes/rewrite/rewrite_edit.h"

namespace fusebox {
namespace {

bool gathers(const Graph& g, OpId id) {
  const Op& op = g[id];
  return op.kind != OpKind::kScatter && op.results.size() == 1 && !op.operands.empty() && op.operands[0] &&
         g.is_tensor(op.operands[0]) && reads_by_data(g, op, 0);
}

bool is_unary(const Graph& g, OpId id) {
  const Op& op = g[id];
  return demands(op.kind, kPointwise) && family_of(op.kind) == AxisRule::kSame && op.kind != OpKind::kSegmentSet &&
         op.operands.size() == 1 && op.results.size() == 1 && g.is_tensor(op.operands[0]) &&
         g.tensor_of(op.results[0]).devices.empty();
}

// The unary ops between an input and the gather's operand, the last one first. Empty if there is no such chain.
std::vector<OpId> chain_to_input(const Graph& g, const Rewriter& r, OpId gather) {
  std::vector<OpId> chain;
  ValueId v = r.operand(gather, 0);
  for (; g[v].def && is_unary(g, g[v].def); v = r.operand(g[v].def, 0)) chain.push_back(g[v].def);
  if (!g[v].def || g[g[v].def].kind != OpKind::kInput) return {};
  return chain;
}

// Adds a copy of an op behind another one. Its first operand is `operand`.
ValueId add_behind(Graph& g, const Rewriter& r, OpId& behind, OpId from, ValueId operand) {
  Op copy = g[from];
  for (ValueId& v : copy.operands) v = r.now(v);
  copy.operands[0] = operand;
  const ValueId result = add_tensor(g, g[copy.results[0]].dtype, {});
  copy.results = {result};
  behind = insert_after(g, behind, std::move(copy));
  infer(g, behind);
  return result;
}

void move_gathers(Graph& g, Rewriter& r, const RewriteOptions&) {
  const std::vector<OpId> ops = g[Graph::body()].ops;
  for (OpId id : ops) {
    if (!gathers(g, id)) continue;
    const ValueId v = g[id].results[0];
    const std::vector<OpId> chain = chain_to_input(g, r, id);
    if (chain.empty() || !r.may_replace(v)) continue;
    const std::vector<OpId> before = g[Graph::body()].ops;
    OpId last = id;
    ValueId made = add_behind(g, r, last, id, r.operand(chain.back(), 0));
    for (OpId op : chain | std::views::reverse) made = add_behind(g, r, last, op, made);
    if (r.fits(v, made))
      r.replace(v, made);
    else
      g[Graph::body()].ops = before;
  }
}

}  // namespace

bool early_gathers(Graph& g, const RewriteOptions& options) { return rewrite_readers(g, options, move_gathers); }

}  // namespace fusebox
