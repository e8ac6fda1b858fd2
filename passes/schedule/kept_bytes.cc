#include "passes/schedule/kept_bytes.h"

#include <algorithm>
#include <set>

namespace fusebox {

namespace {

constexpr int64_t kRegister = 4;

int64_t in_registers(int64_t bytes) { return (bytes + kRegister - 1) / kRegister * kRegister; }

// The full values that are read in a later pass than the one that makes them: f(value, first pass, last pass).
template <class F>
void each_kept(const Graph& g, const ReductionSpace& space, const F& f) {
  const auto first_pass = [&](ValueId v) { return space.passes_of(v).empty() ? 0 : *space.passes_of(v).begin(); };
  for (uint32_t i = 0; i < g.values.size(); ++i) {
    const ValueId v(i);
    if (!g.is_tensor(v) || !g[v].def || !space.is_full(v) || space.passes_of(v).size() < 2) continue;
    int last = first_pass(v);
    for (OpId op : tensor_ops(g)) {
      if (!reads_by_loops(g, op, v)) continue;
      const ValueId reader = g[op].results[0];
      last = std::max(last, demands(g[op].kind, kReduction) ? space.depth_of(reader) - 1 : first_pass(reader));
    }
    if (last > first_pass(v)) f(v, first_pass(v), last);
  }
}

template <class Counts>
int64_t bytes_of_full_inputs(const Graph& g, const ReductionSpace& space, const Counts& counts, int64_t least = 1) {
  int64_t bytes = 0;
  for (ValueId v : space.full_inputs(g))
    if (counts(v)) bytes += std::max(size_bytes(g[v].dtype), least);
  return std::max<int64_t>(bytes, 1);
}

bool is_arithmetic(const Op& op) {
  if (demands(op.kind, kMetadata)) return true;
  switch (op.kind) {
    case OpKind::kCast:
    case OpKind::kNeg:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
      return true;
    default:  // any other: it costs more, or is no arithmetic
      return false;
  }
}

// Whether this holds for each op whose full result several passes need.
template <class Holds>
bool are_all_made_again(const Graph& g, const ReductionSpace& space, const Holds& holds) {
  return std::ranges::all_of(tensor_ops(g), [&](OpId id) {
    const ValueId made = g[id].results[0];
    return !space.is_full(made) || space.passes_of(made).size() < 2 || holds(g[id]);
  });
}

}  // namespace

int64_t loaded_bytes(const Graph& g, const ReductionSpace& space) {
  return bytes_of_full_inputs(g, space, [](ValueId) { return true; });
}

int64_t row_bytes(const Graph& g, const ReductionSpace& space) {
  return bytes_of_full_inputs(g, space, [&](ValueId v) { return space.differs_by_row(g, v); });
}

int64_t kept_bytes(const Graph& g, const ReductionSpace& space) {
  int64_t bytes = 0;
  each_kept(g, space, [&](ValueId v, int, int) { bytes += size_bytes(g[v].dtype); });
  return in_registers(bytes);
}

int64_t most_kept_bytes(const Graph& g, const ReductionSpace& space) {
  std::vector<int64_t> behind(static_cast<size_t>(space.passes));  // by pass
  each_kept(g, space, [&](ValueId v, int first, int last) {
    for (int pass = first; pass < last; ++pass) behind[static_cast<size_t>(pass)] += size_bytes(g[v].dtype);
  });
  return *std::ranges::max_element(behind);
}

int64_t widest_kept_bytes(const Graph& g, const ReductionSpace& space) {
  int64_t bytes = kRegister;
  each_kept(g, space, [&](ValueId v, int, int) { bytes = std::max(bytes, size_bytes(g[v].dtype)); });
  return bytes;
}

int64_t repeated_bytes(const Graph& g, const ReductionSpace& space, int64_t least) {
  std::vector<std::set<int>> needed(g.values.size());  // the passes, by value
  for (const OutputRef& out : outputs(g))
    if (g.is_tensor(out.value)) needed[out.value.index].insert(space.depth_of(out.value));
  const auto ops = tensor_ops(g);
  for (size_t i = ops.size(); i-- > 0;) {
    const ValueId made = g[ops[i]].results[0];
    if (demands(g[ops[i]].kind, kReduction)) needed[made.index] = {space.depth_of(made) - 1};
    for (ValueId v : g[ops[i]].operands)
      if (v && g.is_tensor(v) && reads_by_loops(g, ops[i], v))
        needed[v.index].insert(needed[made.index].begin(), needed[made.index].end());
  }
  return bytes_of_full_inputs(g, space, [&](ValueId v) { return needed[v.index].size() > 1; }, least);
}

bool makes_again_cheaply(const Graph& g, const ReductionSpace& space) {
  return are_all_made_again(g, space, [](const Op& op) { return is_arithmetic(op) || op.attrs.flag(AttrKey::kFast); });
}

bool makes_again_by_arithmetic(const Graph& g, const ReductionSpace& space) {
  return are_all_made_again(g, space, is_arithmetic);
}

int64_t column_bytes(const Graph& g, const ReductionSpace& space) {
  int64_t bytes = 0;
  for (ValueId v : space.columns)
    for (ValueId result : g[g[v].def].results) bytes += size_bytes(g[result].dtype);
  return in_registers(bytes);
}

}  // namespace fusebox
