#include "passes/schedule/prepared.h"

#include <algorithm>
#include <set>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/infer/is_library.h"
#include "ir/table/error.h"
#include "passes/schedule/loop_space.h"
#include "passes/schedule/schedule_memo.h"

namespace fusebox {

bool makes_tensor(const Graph& g, OpId op) {
  return g[op].kind != OpKind::kInput && !g[op].results.empty() && g.is_tensor(g[op].results[0]);
}

bool is_input_tensor(const Graph& g, ValueId v) { return g[v].def && g[g[v].def].kind == OpKind::kInput; }

std::vector<std::string> names_of(const Graph& g, std::span<const DomainId> domains) {
  std::vector<std::string> result;
  for (DomainId d : domains) result.push_back(g[d].name);
  return result;
}

namespace {

bool is_resize(OpKind kind) { return kind == OpKind::kSlice || kind == OpKind::kPad || kind == OpKind::kCat; }

bool moves(OpKind kind) {
  constexpr OpKind kMoves[] = {OpKind::kBroadcast, OpKind::kBroadcastInDim, OpKind::kReshape,    OpKind::kPermute,
                               OpKind::kExpand,    OpKind::kSqueeze,        OpKind::kStrideOrder};
  return is_resize(kind) || std::ranges::count(kMoves, kind) > 0;
}

bool gathers(OpKind kind) { return demands(kind, kIndexed) && kind != OpKind::kScatter; }

// Whether an op reads a tensor where no copy in registers can serve: where data choose, or as two parts of a result.
bool reads_in_place(const Op& op, ValueId v) {
  return demands(op.kind, kIndexed) || (op.kind == OpKind::kCat && std::ranges::count(op.operands, v) > 1);
}

// Whether an output is stored over a tensor with gaps, or with axes in another order. A loop over a copy would visit its
// elements in an order of its own, and nothing shows that it reads each before another one is stored there.
bool is_overwritten_out_of_order(const Graph& g, ValueId v) {
  const Tensor& t = g.tensor_of(v);
  if (t.allocation.empty() && std::ranges::none_of(t.contiguity, [](Contiguity c) { return c == Contiguity::kFalse; }))
    return false;
  return std::ranges::any_of(outputs(g), [&](const OutputRef& out) { return out.alias == v; });
}

// Whether the op drops an axis whose extent is a size, which is 1 in any run. A copy would have a loop over that axis, of
// no constant size; the tensor itself is read at 0.
bool drops_a_size(const Graph& g, const Op& op, ValueId v) {
  const auto is_size = [&](DomainId d) { return g[d].iter_type == IterType::kIteration; };
  const auto axes = logical_without_reductions(g, g.tensor_of(v));
  if (op.kind == OpKind::kSqueeze)
    return std::ranges::any_of(op.attrs.ints(AttrKey::kAxes),
                               [&](int64_t axis) { return is_size(axes[named_axis(axis, axes.size())]); });
  return op.kind == OpKind::kReshape && std::ranges::any_of(axes, is_size) &&
         std::ranges::none_of(logical_without_reductions(g, g.tensor_of(op.results[0])), is_size);
}

// Whether the op gives a broadcast axis other elements. A copy would need a loop over these, which a broadcast has not.
bool resizes_a_broadcast(const Graph& g, const Op& op, ValueId v) {
  if (op.kind != OpKind::kPad && op.kind != OpKind::kSlice) return false;
  const auto axes = logical_without_reductions(g, g.tensor_of(v));
  const Tensor& result = g.tensor_of(op.results[0]);
  const auto& root = root_of(result);
  for (size_t i = 0; i < axes.size() && i < root.size(); ++i)
    if (g[axes[i]].iter_type == IterType::kBroadcast && position_in(result.logical, root[i]) == result.logical.size())
      return true;
  return false;
}

}  // namespace

bool has_no_elements(const ScheduleView& view, ValueId v) {
  const Graph& g = view.fusion;
  return std::ranges::any_of(logical_without_reductions(g, g.tensor_of(v)), [&](DomainId d) {
    return g[d].iter_type == IterType::kBroadcast ? g[d].expanded && constant_integer(g, g[d].expanded) == 0
                                                  : view.sizes.of(d).most == 0;
  });
}

std::string tensor_without_elements(const ScheduleView& view) {
  const Graph& g = view.fusion;
  const auto is_empty = [&](DomainId d) { return view.sizes.of(d).most == 0; };
  for (const Value& v : g.values)
    if (v.kind == ValueKind::kTensor &&
        (std::ranges::any_of(root_of(g[v.tensor]), is_empty) || std::ranges::any_of(g[v.tensor].logical, is_empty)))
      return v.name;
  return {};
}

Prepared::Prepared(const ScheduleView& view)
    : w(view.fusion, view.memo && view.memo->work ? &view.memo->work->steps : nullptr),
      begins_early(should_begin_early(view, reference_of(view))) {
  const Graph& fusion = view.fusion;
  const auto readers = uses(fusion);
  const auto reads = [&](ValueId v) {
    std::vector<OpId> result;
    for (OpId op : readers[v.index])
      if (makes_tensor(fusion, op)) result.push_back(op);
    return result;
  };
  for (const std::string& size : sizes_of_one(view)) w.assume_equal(size, 1);
  const ValueId main = reference_of(view);
  const bool is_empty = has_no_elements(view, main);  // nothing is loaded then
  for (ValueId v : inputs(fusion)) {
    if (!fusion.is_tensor(v) || is_empty || is_overwritten_out_of_order(fusion, v)) continue;
    const auto all = reads(v);
    const auto axes = logical_without_reductions(fusion, fusion.tensor_of(v));
    const bool varies =
        std::ranges::any_of(axes, [&](DomainId d) { return fusion[d].iter_type != IterType::kBroadcast; });
    const bool is_in_place = std::ranges::any_of(all, [&](OpId id) {
      const Op& op = fusion[id];
      return reads_in_place(op, v) || drops_a_size(fusion, op, v) || resizes_a_broadcast(fusion, op, v);
    });
    if (all.empty() || !varies || is_in_place) continue;
    w.cache_after(fusion[v].name);
  }
  for (const OutputRef& out : outputs(fusion)) {
    if (!fusion.is_tensor(out.value)) continue;
    std::string store = fusion[out.value].name;
    if (!reads(out.value).empty())
      store = w.cache_fork(store);
    else
      w.cache_before(store);
    if (out.value == main) reference = store;
    stores.push_back(std::move(store));
  }
  // Where an op reads a tensor at two places there is no schedule, and the kernel plan says so.
  if (auto found = read_once(w, w.tensor(reference))) once = *std::move(found);
  const Graph& g = w.graph();
  for (OpId op : g[Graph::body()].ops) {
    if (g[op].kind != OpKind::kSet || !makes_tensor(g, op) || !is_input_tensor(g, g[op].operands[0])) continue;
    const std::string& name = g[g[op].results[0]].name;
    if (std::ranges::count(stores, name) == 0) loads.push_back(name);
  }
}

std::vector<std::string> Prepared::along_reference() const {
  const Graph& g = w.graph();
  std::vector<std::string> result;
  for (OpId op : g[Graph::body()].ops) {
    if (!makes_tensor(g, op)) continue;
    const std::string& name = g[g[op].results[0]].name;
    if (!is_behind(name) && name != reference && rank_of(g, g[op].results[0]) > 0) result.push_back(name);
  }
  return result;
}

bool Prepared::is_behind(const std::string& tensor) const {
  return std::ranges::any_of(once.behind, [&](const Behind& b) { return b.tensor == tensor; });
}

std::vector<std::string> Prepared::all_but(const std::vector<std::string>& left_out) const {
  std::vector<std::string> result;
  const Graph& g = w.graph();
  for (OpId op : g[Graph::body()].ops)
    if (makes_tensor(g, op) && std::ranges::count(left_out, g[g[op].results[0]].name) == 0)
      result.push_back(g[g[op].results[0]].name);
  return result;
}

void Prepared::follow_readers(const std::vector<std::string>& left_out) {
  for (const Behind& b : once.behind)
    if (std::ranges::count(left_out, b.tensor) == 0) w.set_loop_domain(b.tensor, b.reader);
}

void Prepared::parallelize_like_readers(const std::vector<std::string>& left_out) {
  for (const Behind& b : once.behind)
    if (std::ranges::count(left_out, b.tensor) == 0) w.parallelize_like(b.reader, {b.tensor});
}

void Prepared::finish() {
  std::vector<std::string> left;
  const Graph& g = w.graph();
  for (OpId op : g[Graph::body()].ops) {
    if (!makes_tensor(g, op) || !gathers(g[op].kind)) continue;
    for (ValueId v : g[op].operands)
      if (v && g.is_tensor(v) && !is_input_tensor(g, v)) left.push_back(g[v].name);
  }
  for (const std::string& name : left) {
    auto loops = w.loops(name);
    while (!loops.empty() && !w.try_inline_at(name, loops.back())) loops.pop_back();
  }
  if (!left.empty()) w.inline_most();
  if (begins_early) w.dependent_launch();
}

// The bytes of the widest element that is loaded or stored for each element of the reference.
int64_t widest_stream(const ScheduleView& view, ValueId reference) {
  const Graph& g = view.fusion;
  const auto all = fusion_axes(view);
  int64_t widest = size_bytes(g[reference].dtype);
  size_t axes = 0;
  for (DomainId d : logical_without_reductions(g, g.tensor_of(reference)))
    axes += g[d].iter_type != IterType::kBroadcast ? 1 : 0;
  for (ValueId v : inputs(g)) {
    if (!g.is_tensor(v)) continue;
    size_t found = 0;
    for (const auto& along : axes_along(g, *all, reference, v)) found += along ? 1 : 0;
    if (found == axes) widest = std::max(widest, size_bytes(g[v].dtype));
  }
  for (const OutputRef& out : outputs(g))
    if (g.is_tensor(out.value)) widest = std::max(widest, size_bytes(g[out.value].dtype));
  return widest;
}

bool has_resizes(const Graph& g) {
  return std::ranges::any_of(g[Graph::body()].ops, [&](OpId op) { return is_resize(g[op].kind); });
}

namespace {

// The most places at which one kernel computes a tensor, or loads it. Each is a copy with loops of its own, so the work
// of a chain of joins of slices grows with a power of its length; a tensor in memory costs less.
constexpr int64_t kMostPlaces = 16;

}  // namespace

std::optional<std::pair<ValueId, int64_t>> read_too_often(const Graph& g, std::span<const OpId> ops,
                                                          std::span<const ValueId> read,
                                                          const std::vector<bool>& is_output) {
  std::vector<int64_t> moved(g.values.size()), kept(g.values.size());
  for (size_t i = 0; i < is_output.size(); ++i) kept[i] = is_output[i] ? 1 : 0;
  for (size_t i = ops.size(); i-- > 0;) {
    const Op& op = g[ops[i]];
    int64_t own = 0;
    for (ValueId v : op.results) own = std::max(own, moved[v.index] + kept[v.index]);
    for (ValueId v : op.results)
      if (g.is_tensor(v) && own > kMostPlaces) return std::pair(v, own);
    for (ValueId v : op.operands) {
      if (!v || !g.is_tensor(v)) continue;
      if (is_resize(op.kind) || op.kind == OpKind::kPermute || op.kind == OpKind::kReshape)
        moved[v.index] += own;
      else
        kept[v.index] = std::max(kept[v.index], own);
    }
  }
  for (size_t i = read.size(); i-- > 0;)
    if (const int64_t own = moved[read[i].index] + kept[read[i].index]; own > kMostPlaces)
      return std::pair(read[i], own);
  return std::nullopt;
}

namespace {

std::optional<std::pair<ValueId, int64_t>> read_too_often(const Graph& g) {
  std::vector<OpId> ops;
  for (OpId op : g[Graph::body()].ops)
    if (makes_tensor(g, op)) ops.push_back(op);
  std::vector<ValueId> read = inputs(g);
  std::erase_if(read, [&](ValueId v) { return !g.is_tensor(v); });
  std::vector<bool> is_output(g.values.size());
  for (const OutputRef& out : outputs(g)) is_output[out.value.index] = true;
  return read_too_often(g, ops, read, is_output);
}

}  // namespace

std::optional<std::string> elementwise_declines(const ScheduleView& view) {
  const Graph& g = view.fusion;
  std::set<ValueId> seen;
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    if (is_input_tensor(g, out.value)) return "%" + g[out.value].name + " is an input that is returned as it is";
    if (!seen.insert(out.value).second) return "%" + g[out.value].name + " is an output twice";
  }
  if (seen.empty()) return "no output is a tensor";
  for (OpId op : g[Graph::body()].ops) {
    if (!makes_tensor(g, op)) continue;
    const std::string name = "%" + g[g[op].results[0]].name;
    if (is_library(g, g[op]))
      return name + " is a " + std::string(row_of(g[op].kind).text) + ", which ATen alone computes";
    if (!demands(g[op].kind, kPointwise) && !moves(g[op].kind) && !demands(g[op].kind, kIndexed))
      return name + " is not made element by element";
    for (size_t k = 0; k < g[op].operands.size(); ++k) {
      const ValueId from = g[op].operands[k];
      if (!from || !g.is_tensor(from) || is_input_tensor(g, from) || !reads_in_place(g[op], from)) continue;
      const bool is_index = gathers(g[op].kind) && k == 1;
      if (!is_index) return name + " takes elements of %" + g[from].name + " from elsewhere, and that is no input";
    }
  }
  if (const auto often = read_too_often(g))
    return "%" + g[often->first].name + " is read at " + std::to_string(often->second) +
           " places, and a kernel would compute it for each";
  return outputs_differ(g, *fusion_axes(view), reference_of(view));
}

}  // namespace fusebox
