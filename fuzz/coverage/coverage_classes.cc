#include "fuzz/coverage/coverage_classes.h"

#include <algorithm>
#include <map>

#include "ir/build/builder.h"
#include "ir/domain/domain.h"
#include "ir/scalar/scalar.h"

namespace fusebox::fuzz {

std::vector<size_t> slice_classes(const Graph& g) {
  enum : size_t { kFromEnd, kBefore, kBeyond, kSymbol, kOfStop, kOpen = 8, kCrossing };
  constexpr int64_t kOpenFrom = int64_t{1} << 62;
  std::vector<size_t> classes;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.kind != OpKind::kSlice) continue;
    const auto axes = logical_without_reductions(g, g.tensor_of(op.operands[0]));
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto extent = evaluate_size(g, axes[i]);
      const std::optional<int64_t> bounds[] = {constant_integer(g, op.operands[1 + i]),
                                               constant_integer(g, op.operands[1 + axes.size() + i])};
      for (size_t k : {0, 1}) {
        const size_t of = k == 0 ? size_t{0} : size_t{kOfStop};
        if (!bounds[k])
          classes.push_back(of + kSymbol);
        else if (k == 1 && *bounds[k] >= kOpenFrom)
          classes.push_back(kOpen);
        else if (*bounds[k] < 0)
          classes.push_back(of + (extent && *bounds[k] < -*extent ? kBefore : kFromEnd));
        else if (extent && *bounds[k] > *extent)
          classes.push_back(of + kBeyond);
      }
      const bool same_side = bounds[0] && bounds[1] && (*bounds[0] < 0) == (*bounds[1] < 0);
      if (same_side && *bounds[1] < *bounds[0]) classes.push_back(kCrossing);
    }
  }
  return classes;
}

std::vector<size_t> fold_classes(const Graph& g) {
  std::vector<size_t> classes;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (!demands(op.kind, kPointwise) || op.results.size() != 1 || g.is_tensor(op.results[0])) continue;
    if (g[op.results[0]].dtype == Dtype::kIndex) continue;
    const auto is_constant = [&](ValueId v) { return v && g.is_constant(v); };
    const auto constants = std::count_if(op.operands.begin(), op.operands.end(), is_constant);
    if (constants == static_cast<std::ptrdiff_t>(op.operands.size()))
      classes.push_back(0);
    else if (constants > 0)
      classes.push_back(1);
  }
  return classes;
}

std::vector<size_t> cast_classes(const Graph& g) {
  std::vector<size_t> classes;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.kind != OpKind::kCast || !g.is_tensor(op.results[0]) || !g[op.operands[0]].def) continue;
    const Op& before = g[g[op.operands[0]].def];
    if (before.kind != OpKind::kCast) continue;
    const Dtype from = g[before.operands[0]].dtype, through = g[op.operands[0]].dtype, to = g[op.results[0]].dtype;
    const bool narrows = bits(through) < bits(from) && bits(through) < bits(to);
    if (is_integer(from) && is_floating(through) && is_integer(to))
      classes.push_back(0);
    else if (is_floating(from) && is_integer(through) && is_floating(to))
      classes.push_back(1);
    else if (narrows && is_floating(from) && is_floating(through) && is_floating(to))
      classes.push_back(2);
    else if (narrows && is_integer(from) && is_integer(through) && is_integer(to))
      classes.push_back(3);
    else
      classes.push_back(4);
  }
  return classes;
}

std::vector<size_t> output_classes(const Case& c) {
  enum : size_t {
    kInputAlone,
    kOverItself,
    kOverAnother,
    kExchanged,
    kOver,
    kPermuted,
    kGaps,
    kBroadcast,
    kSegments,
    kVectors
  };
  std::vector<size_t> classes;
  const Graph& g = c.fusion();
  const auto out = outputs(g);
  std::map<ValueId, ValueId> over;  // inputs that overwrite inputs, with their targets
  for (const OutputRef& o : out)
    if (o.alias && g[g[o.value].def].kind == OpKind::kInput) over[o.value] = o.alias;
  for (const OutputRef& o : out) {
    if (!g.is_tensor(o.value) || !g[o.value].def) continue;
    if (g[g[o.value].def].kind == OpKind::kInput) {
      const bool is_exchanged = o.alias && over.contains(o.alias) && over.at(o.alias) == o.value;
      classes.push_back(!o.alias             ? kInputAlone
                        : o.alias == o.value ? kOverItself
                        : is_exchanged       ? kExchanged
                                             : kOverAnother);
    }
    if (!o.alias) continue;
    classes.push_back(kOver);
    const Tensor& target = g.tensor_of(o.alias);
    if (!target.allocation.empty() && target.allocation != target.logical) classes.push_back(kPermuted);
    const auto contiguity = contiguity_of(g, target);
    if (std::find(contiguity.begin(), contiguity.end(), Contiguity::kFalse) != contiguity.end())
      classes.push_back(kGaps);
    if (std::any_of(target.logical.begin(), target.logical.end(),
                    [&](DomainId d) { return g[d].iter_type == IterType::kBroadcast; }))
      classes.push_back(kBroadcast);
    if (c.compiled && c.compiled->segmentation.segments.size() > 1) classes.push_back(kSegments);
  }
  if (!c.compiled) return classes;
  for (const Graph& scheduled : c.compiled->scheduled)
    for (const OutputRef& o : outputs(scheduled)) {
      if (!o.alias || !scheduled.is_tensor(o.value)) continue;
      for (DomainId d : loop_of(scheduled.tensor_of(o.value)))
        if (scheduled[d].parallel == ParallelType::kVectorize) classes.push_back(kVectors);
    }
  return classes;
}

std::vector<size_t> swizzle_classes(const Graph& scheduled) {
  std::vector<size_t> classes;
  for (const Transform& t : scheduled.transforms) {
    if (t.kind != TransformKind::kSwizzle) continue;
    const auto first = evaluate_extent(scheduled, t.inputs[0]), second = evaluate_extent(scheduled, t.inputs[1]);
    if (!first || !second) continue;
    if (t.swizzle == SwizzleType::kXor)
      classes.push_back(*first == *second ? 0 : 1);
    else
      classes.push_back(*first == *second ? 2 : *first < *second ? 3 : 4);
  }
  return classes;
}

}  // namespace fusebox::fuzz
