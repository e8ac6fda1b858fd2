#include "codegen/divisors.h"

#include <algorithm>
#include <map>

#include "codegen/cuda_expression.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

bool divides(const Graph& g, const Op& op) {
  if (op.kind != OpKind::kDiv && op.kind != OpKind::kTruediv) return false;
  return divides_floats(op.kind, g[op.operands[0]].dtype, g[op.operands[1]].dtype, g[op.results[0]].dtype);
}

class Finder {
 public:
  explicit Finder(const Graph& g) : g_(g) {}

  // `loops`: those around the region.
  void walk(RegionId region, int loops) {
    for (const OpId id : g_[region].ops) {
      const Op& op = g_[id];
      for (const ValueId r : op.results) depth_[r] = loops;
      for (const RegionId inner : op.regions) {
        if (g_[inner].index) depth_[g_[inner].index] = loops + 1;
        walk(inner, loops + (op.kind == OpKind::kFor ? 1 : 0));
      }
      // Parameters and constants have no loop around them.
      if (!divides(g_, op) || depth_[op.operands[1]] == loops) continue;
      const Value& divisor = g_[op.operands[1]];
      if (!is_power_of_two(divisor.dtype, divisor.constant))
        (op.attrs.flag(AttrKey::kFast) ? found.fast : found.exact).insert(op.operands[1]);
    }
  }

  Divisors found;

 private:
  const Graph& g_;
  std::map<ValueId, int> depth_;  // loops around a value's definition
};

struct Touched {
  std::set<ValueId> read, written;
};

bool take(const Graph& g, RegionId region, const std::set<ValueId>& divisors, Touched& buffers,
          std::set<ValueId>& used) {
  for (const OpId id : g[region].ops) {
    const Op& op = g[id];
    if (op.kind == OpKind::kLoad) {
      buffers.read.insert(op.operands[0]);
    } else if (op.kind == OpKind::kStore) {
      buffers.written.insert(op.operands[0]);
    } else if (op.kind == OpKind::kIf) {
      for (const RegionId inner : op.regions)
        if (!take(g, inner, divisors, buffers, used)) return false;
    } else if (!is_scalar_math(op.kind)) {
      return false;
    } else if (divides(g, op) && !op.attrs.flag(AttrKey::kFast) && divisors.contains(op.operands[1])) {
      used.insert(op.operands[1]);
    }
  }
  return true;
}

}  // namespace

Divisors find_divisors(const Graph& kernel) {
  Finder finder(kernel);
  finder.walk(Graph::body(), 0);
  return std::move(finder.found);
}

bool may_divide_twice(const Graph& kernel, RegionId loop, const std::set<ValueId>& divisors, std::set<ValueId>& used) {
  Touched buffers;
  if (!take(kernel, loop, divisors, buffers, used) || used.empty()) return false;
  const auto is_local = [&](ValueId v) { return kernel.tensor_of(v).memory == MemoryType::kLocal; };
  const bool reads_shared_memory = !std::all_of(buffers.read.begin(), buffers.read.end(), is_local);
  return std::none_of(buffers.written.begin(), buffers.written.end(),
                      [&](ValueId v) { return is_local(v) ? buffers.read.contains(v) : reads_shared_memory; });
}

}  // namespace fusebox
