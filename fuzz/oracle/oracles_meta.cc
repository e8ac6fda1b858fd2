// The oracle that compares the layouts that were inferred for ATen segments with those of the run.
#include <algorithm>

#include "fuzz/oracle/oracle.h"
#include "fuzz/oracle/view_laws.h"
#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/crossing_layouts.h"
#include "replay/device/module_loader.h"
#include "replay/run/aten_segment.h"

namespace fusebox::fuzz {
namespace {

std::string list_text(const std::vector<int64_t>& list) {
  std::string all = "[";
  for (size_t i = 0; i < list.size(); ++i) all += (i ? ", " : "") + std::to_string(list[i]);
  return all + "]";
}

// The stride of an axis with one element, or of a tensor without elements, says nothing.
bool same_strides(const TensorLayout& a, const TensorLayout& b) {
  if (a.shape != b.shape) return false;
  if (std::ranges::find(a.shape, 0) != a.shape.end()) return true;
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (a.shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}

std::string maker(const Graph& g, ValueId v) { return std::string(row_of(g[g[v].def].kind).text); }

// Whether the tensor lies in the order of its axes that the program declares.
bool is_as_declared(const Graph& g, ValueId v, const TensorData& t) {
  const auto logical = logical_without_reductions(g, g.tensor_of(v));
  std::vector<int64_t> order;
  for (DomainId d : allocation_of(g, g.tensor_of(v))) order.push_back(static_cast<int64_t>(position_in(logical, d)));
  return order.size() != t.shape.size() || has_order({t.shape, t.strides}, order, contiguity_of(g, g.tensor_of(v)));
}

}  // namespace

void meta(OracleRun& run) {
  const Compiled* c = run.compiled();
  judge_views(run);
  if (!c || !find_aten()) return;
  const auto is_aten = [](const Segment& s) { return s.executor == SegmentExecutor::kAten; };
  if (std::ranges::none_of(c->segmentation.segments, is_aten)) return;
  const HostRun& r = run.scheduled();
  if (!r.ok()) return;
  const Graph& g = c->concretized;
  const std::vector<BoundInput> given = bound_inputs(run.arguments());
  Segmentation again = c->segmentation;
  CrossingLayouts layouts(g, again,
                          {.infer = infer_by_aten(),
                           .sizes = rebind(run.fusion(), run.sizes(), g),
                           .inputs = given,
                           .defects = run.options().defects});
  try {
    for (size_t i = 0; i < again.segments.size(); ++i) layouts.take(again, i, c->scheduled[i]);
  } catch (const Error& e) {
    return run.report("meta", e, "the layouts of ATen segments");
  }
  for (const Segment& s : again.segments) {
    if (!is_aten(s)) continue;
    for (const Crossing& out : s.outputs) {
      const auto chosen = std::ranges::find_if(
          r.by_aten, [&](const AtenResult& x) { return x.segment == s.name && x.value == out.value; });
      const auto inferred = layouts.known().find(out.value);
      const auto v = find_value(g, out.value);
      if (!out.alias.empty() || chosen == r.by_aten.end() || inferred == layouts.known().end() || !v) continue;
      const auto kept = std::ranges::find(r.allocated, out.value, &std::pair<std::string, TensorData>::first);
      if (!g.tensor_of(*v).allocation.empty()) {
        if (kept != r.allocated.end() && !is_as_declared(g, *v, kept->second))
          run.report("meta", "order", maker(g, *v),
                     "%" + out.value + " has the strides " + list_text(kept->second.strides) +
                         ", and the program declares another order");
      } else if (!same_strides(inferred->second, chosen->chosen)) {
        run.report("meta", "strides", maker(g, *v),
                   "%" + out.value + " was inferred to have the strides " + list_text(inferred->second.strides) +
                       ", and ATen gives it " + list_text(chosen->chosen.strides));
      }
    }
  }
}

}  // namespace fusebox::fuzz
