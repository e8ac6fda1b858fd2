#include "passes/kernel/loop_count.h"

#include <algorithm>

namespace fusebox {

std::optional<int64_t> known_count(const Graph& g, const Op& loop) {
  const auto start = constant_integer(g, loop.operands[0]), stop = constant_integer(g, loop.operands[1]),
             step = constant_integer(g, loop.operands[2]);
  std::optional<int64_t> length;
  if (int64_t between = 0; start && stop && !__builtin_sub_overflow(*stop, *start, &between)) length = between;
  if (const OpId def = g[loop.operands[1]].def; !start && def && g[def].kind == OpKind::kAdd)
    for (size_t k = 0; k < 2; ++k)
      if (g[def].operands[k] == loop.operands[0]) length = constant_integer(g, g[def].operands[1 - k]);
  if (!step || *step < 1 || !length || *length < 1) return std::nullopt;
  return (*length - 1) / *step + 1;
}

int64_t ops_written_out(const Graph& g, RegionId region, int64_t most, const WrittenOut& how) {
  int64_t ops = 0;
  for (OpId id : g[region].ops) {
    const Op& op = g[id];
    int64_t inside = how.counts(op) ? 1 : 0;
    for (RegionId inner : op.regions) inside += ops_written_out(g, inner, most, how);
    const bool is_copied = op.kind == OpKind::kFor && how.copies(op);
    const int64_t copies = is_copied ? std::min(known_count(g, op).value_or(1), most + 1) : 1;
    ops = std::min(ops + copies * inside, most + 1);
  }
  return ops;
}

}  // namespace fusebox
