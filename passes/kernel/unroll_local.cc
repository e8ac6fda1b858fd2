#include "passes/kernel/unroll_local.h"

#include <algorithm>
#include <vector>

#include "passes/kernel/loop_count.h"

namespace fusebox {
namespace {

// A thread has at most 255 registers of 4 bytes.
constexpr int64_t kMostBytes = 1020;
// Iterations of loops in one another that are unrolled together. More code than this costs more than memory does.
constexpr int64_t kMostCopies = 1024;

class Unroller {
 public:
  explicit Unroller(Graph& g) : g_(g) {}

  void run() { walk(Graph::body(), 1); }

 private:
  bool is_in_registers(ValueId buffer) const {
    const OpId def = g_[buffer].def;
    if (!def || g_[def].kind != OpKind::kAllocate || g_.tensor_of(buffer).memory != MemoryType::kLocal) return false;
    const auto elements = constant_integer(g_, g_[def].operands[0]);
    return elements && *elements > 1 && *elements <= kMostBytes / size_bytes(g_[buffer].dtype);
  }

  // Whether the region reads or writes a buffer in registers at an index that is made of `varying` values, and adds the
  // values that the region makes of them.
  bool is_indexed(RegionId region, std::vector<bool>& varying) const {
    bool found = false;
    for (OpId id : g_[region].ops) {
      const Op& op = g_[id];
      const auto varies = [&](size_t k) {
        return k < op.operands.size() && op.operands[k] && varying[op.operands[k].index];
      };
      if (op.kind == OpKind::kLoad || op.kind == OpKind::kStore)
        found |= varies(1) && is_in_registers(op.operands[0]);
      else if (op.kind == OpKind::kCopy)
        found |= (varies(1) && is_in_registers(op.operands[0])) || (varies(3) && is_in_registers(op.operands[2]));
      else if (op.regions.empty())
        for (size_t k = 0; k < op.operands.size(); ++k)
          for (ValueId r : op.results) varying[r.index] = varying[r.index] || varies(k);
      // A loop that begins at a varying value has a varying index.
      if (op.kind == OpKind::kFor && varies(0)) varying[g_[op.regions[0]].index.index] = true;
      for (RegionId inner : op.regions) found |= is_indexed(inner, varying);
    }
    return found;
  }

  // All that a loop may have.
  static Attrs unrolled() {
    Attrs attrs;
    attrs.set_flag(AttrKey::kUnroll);
    return attrs;
  }

  void walk(RegionId region, int64_t copies) {
    for (OpId id : g_[region].ops) {
      int64_t inside = copies;
      if (g_[id].kind == OpKind::kFor) {
        const RegionId body = g_[id].regions[0];
        const auto count = known_count(g_, g_[id]);
        std::vector<bool> varying(g_.values.size());
        varying[g_[body].index.index] = true;
        const bool may = count && *count <= kMostCopies / copies;
        if (may && is_indexed(body, varying)) g_[id].attrs = unrolled();
        if (count && g_[id].attrs.flag(AttrKey::kUnroll)) inside = std::min(copies * *count, kMostCopies);
      }
      for (RegionId inner : std::vector<RegionId>(g_[id].regions)) walk(inner, inside);
    }
  }

  Graph& g_;
};

}  // namespace

void unroll_local(Graph& kernel) { Unroller(kernel).run(); }

}  // namespace fusebox
