// Unswitch: a loop whose checks are settled once, at the last point of everything inside it, in front of a copy of the
// body without them; the other branch keeps them.
//
// The last point: each loop inside stands at extent - 1 where the checked value grows with it. A check that is not
// linear in a loop stays in both branches. Branches differ between threads, so a body that synchronises is left as it
// is.
#include <algorithm>
#include <utility>

#include "passes/lower/lowering.h"

namespace fusebox::lowering {
namespace {

void collect(const LoopTree& tree, uint32_t node, std::vector<uint32_t>& nodes, std::vector<uint32_t>& statements) {
  nodes.push_back(node);
  for (const TreeChild& c : tree.children[node]) {
    if (c.is_node)
      collect(tree, c.index, nodes, statements);
    else
      statements.push_back(c.index);
  }
}

}  // namespace

bool Lowering::emit_unswitched(uint32_t node) {
  std::vector<uint32_t> nodes, statements;
  collect(tree, node, nodes, statements);
  for (const SyncPoint& p : sync_points)
    if (std::find(nodes.begin(), nodes.end(), p.node) != nodes.end()) return false;
  for (uint32_t s : statements)
    if (tree.statements[s].kind == StatementKind::kFinal) return false;

  std::map<uint32_t, std::set<size_t>> holds;
  ValueId all = kernel.bit(true), all_but_last = all;
  for (uint32_t s : statements) {
    OpView view(*this, tree.statements[s]);
    const auto& loop = loop_of(g.tensor_of(g[view.statement.op].results[0]));
    const auto list = conditions(view);
    for (size_t i = 0; i < list.size(); ++i) {
      Condition c = list[i];
      bool known = true;
      for (size_t k = 0; k < loop.size() && !c.guard; ++k) {
        const uint32_t n = view.statement.path[k];
        if (n == LoopNode::kNoNode || std::find(nodes.begin(), nodes.end(), n) == nodes.end()) continue;
        if (!algebra.depends_on(c.value, static_cast<int>(n))) continue;
        const auto linear = algebra.linear_in(c.value, static_cast<int>(n));
        known = linear && algebra.prove_nonneg(linear->coefficient);
        if (!known) break;
        const Form last = options.defects.has(Defect::kUnswitchFirst)
                              ? algebra.constant(0)
                              : algebra.sub(view.own.extent(loop[k]), algebra.constant(1));
        const bool is_lower = c.compare == OpKind::kGe && !options.defects.has(Defect::kUnswitchLower);
        c.value = is_lower ? linear->rest : algebra.add(algebra.mul(linear->coefficient, last), linear->rest);
      }
      if (!known) continue;
      holds[s].insert(i);
      const ValueId predicate = emit_condition(c);
      if (options.explain) emitted[{s, i}] = {predicate, true};
      all_but_last = std::exchange(all, kernel.logical_and(all, predicate));
    }
  }
  if (kernel.constant_of(all)) return false;
  if (options.defects.has(Defect::kUnswitchForgets)) all = all_but_last;
  const auto outer = settled;
  kernel.begin_if(all);
  for (const auto& [s, list] : holds) settled[s].insert(list.begin(), list.end());
  emit_loop(node, true);
  kernel.end();
  settled = outer;
  if (options.defects.has(Defect::kUnswitchNoTail)) return true;
  kernel.begin_else();
  emit_loop(node, true);
  kernel.end();
  return true;
}

}  // namespace fusebox::lowering
