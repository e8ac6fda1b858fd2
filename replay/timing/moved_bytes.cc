#include "replay/timing/moved_bytes.h"

#include <algorithm>
#include <set>

#include "ir/table/error.h"

namespace fusebox {
namespace {

int64_t stored_bytes(const TensorData& t) {
  int64_t places = 1;
  for (size_t i = 0; i < t.shape.size(); ++i)
    if (t.shape[i] == 0 || t.strides[i] != 0) places *= t.shape[i];
  // Windows that overlap have fewer places than elements.
  return std::min(places, span_elems(t.shape, t.strides)) * size_bytes(t.dtype);
}

// The values whose elements some output needs. `size` and `shape` of a tensor need no element of it.
std::vector<bool> needed(const Graph& g) {
  std::vector<bool> found(g.values.size());
  std::vector<ValueId> left;
  const auto need = [&](ValueId v) {
    if (!v || found[v.index]) return;
    found[v.index] = true;
    left.push_back(v);
  };
  for (const OutputRef& out : outputs(g)) need(out.value);
  while (!left.empty()) {
    const ValueId v = left.back();
    left.pop_back();
    const OpId def = g[v].def;
    if (!def || g[def].kind == OpKind::kSize) continue;
    for (const ValueId operand : g[def].operands) need(operand);
  }
  return found;
}

}  // namespace

MovedBytes moved_bytes(const Graph& fusion, std::span<const Argument> inputs, std::span<const TensorData> outputs) {
  const std::vector<ValueId> values = fusebox::inputs(fusion);
  const std::vector<OutputRef> refs = fusebox::outputs(fusion);
  check_internal(values.size() == inputs.size() && refs.size() == outputs.size(),
                 "the layouts are not those of the fusion's inputs and outputs");
  const std::set<ValueId> given(values.begin(), values.end());
  MovedBytes moved;
  // An input that is an output and nothing else moves nothing.
  std::set<ValueId> read;
  const std::vector<bool> used = needed(fusion);
  for (const OpId id : fusion[Graph::body()].ops) {
    const Op& op = fusion[id];
    if (op.kind == OpKind::kOutput || op.kind == OpKind::kSize) continue;
    const bool is_needed = std::ranges::any_of(op.results, [&](ValueId r) { return used[r.index]; });
    for (const ValueId v : op.operands)
      if (is_needed && v && given.contains(v)) read.insert(v);
  }
  std::set<ValueId> written;
  for (size_t i = 0; i < values.size(); ++i)
    if (!inputs[i].is_scalar && read.contains(values[i])) moved.read += stored_bytes(inputs[i].tensor);
  for (size_t i = 0; i < refs.size(); ++i) {
    const ValueId v = refs[i].value;
    if (!fusion.is_tensor(v)) continue;
    // The same value over two inputs is written twice, as two new outputs once.
    const ValueId to = refs[i].alias ? refs[i].alias : v;
    if (to == v && given.contains(v)) continue;
    if (written.insert(to).second) moved.written += stored_bytes(outputs[i]);
    // An input that is stored over another one is read for that.
    if (refs[i].alias && given.contains(v) && read.insert(v).second)
      for (size_t k = 0; k < values.size(); ++k)
        if (values[k] == v) moved.read += stored_bytes(inputs[k].tensor);
  }
  return moved;
}

}  // namespace fusebox
