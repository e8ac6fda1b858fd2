#include "passes/schedule/walked_axis.h"

#include <algorithm>
#include <bit>

#include "ir/domain/domain.h"
#include "ir/table/op.h"

namespace fusebox {
namespace {

// Of an input along the walked axis, at most: the cache holds them until the thread has read them all.
constexpr int64_t kBytesOfWalk = 64;
// Loaded together, at most. On an H200, [12, 74880] in f32 plus the transpose of another tensor took 6.7 µs by all elements of the walk at
// once, 6.8 by four, and 11.3 by vectors along the long axis without a walk; [13, 300000] took 14.2 µs by 16, 17.5 by 8, and 34.1 without.
constexpr int64_t kMostUnroll = 16;
// Fewer would wait for memory too often.
constexpr int64_t kLeastUnroll = 4;
// Of a thread's registers for what it loads together, and its copies of the ops.
constexpr int64_t kBytesOfLoads = 256, kCopiesOfOps = 64;
// Of an access along the reference's innermost axis; wider ones leave fewer threads. [14, 131072] in f16 took 7.0 µs by 4 bytes, and 8.0 by 8.
constexpr int64_t kBytesOfAccess = 4;
constexpr int64_t kThreads = 128;  // for each multiprocessor, at least

bool lies_side_by_side(const Graph& g, ValueId input, DomainId innermost) {
  const Tensor& t = g.tensor_of(input);
  const size_t at = position_in(allocation_of(g, t), innermost);
  const auto contiguity = contiguity_of(g, t);
  return at < contiguity.size() && contiguity[at] == Contiguity::kTrue;
}

// The axis of the reference along which an input with all of its axes lies innermost, or none.
DomainId axis_of_input(const Graph& g, const FusionAxes& all, ValueId reference, ValueId input) {
  const auto axes = logical_without_reductions(g, g.tensor_of(reference));
  const auto own = logical_without_reductions(g, g.tensor_of(input));
  const auto places = axes_along(g, all, reference, input);
  const DomainId inner = innermost_axis(g, input);
  DomainId axis;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!places[i] && g[axes[i]].iter_type != IterType::kBroadcast) return {};
    if (places[i] && inner && own[*places[i]] == inner) axis = axes[i];
  }
  return axis;
}

int64_t ops_of(const Graph& g) {
  return std::ranges::count_if(g[Graph::body()].ops, [&](OpId op) {
    return demands(g[op].kind, kPointwise) && g[op].kind != OpKind::kCast && g.is_tensor(g[op].results[0]);
  });
}

}  // namespace

Walk choose_walk(const ScheduleView& view, const FusionAxes& all, ValueId reference, int64_t vector, int64_t widest) {
  const Graph& g = view.fusion;
  const DomainId along = innermost_axis(g, reference);
  if (!along || view.sizes.of(along).most < view.device.warp) return {};
  // What is loaded along the walked axis, what is loaded along the innermost one, and what is stored: bytes of an element of each.
  Walk walk;
  int64_t turned = 0, others = 0, stored = 0, widest_turned = 0;
  for (ValueId v : inputs(g)) {
    if (!g.is_tensor(v)) continue;
    const DomainId axis = axis_of_input(g, all, reference, v);
    if (!axis) continue;
    const int64_t bytes = size_bytes(g[v].dtype);
    if (axis == along) {
      others += bytes;
      continue;
    }
    if ((walk && axis != walk.axis) || !lies_side_by_side(g, v, innermost_axis(g, v))) return {};
    walk.axis = axis;
    turned += bytes;
    widest_turned = std::max(widest_turned, bytes);
  }
  if (!walk) return {};
  for (const OutputRef& out : outputs(g))
    if (g.is_tensor(out.value)) stored += size_bytes(g[out.value].dtype);
  const int64_t most = view.sizes.of(walk.axis).most;
  if (most < 2 || most * widest_turned > kBytesOfWalk || 2 * turned < others + stored) return {};
  double threads = 1;
  for (DomainId d : axes_in_memory(g, reference))
    if (g[d].iter_type != IterType::kBroadcast && d != walk.axis)
      threads *= static_cast<double>(std::max<int64_t>(view.sizes.of(d).most, 1));
  walk.vector = std::min(vector, std::max<int64_t>(kBytesOfAccess / widest, 1));
  threads /= static_cast<double>(walk.vector);
  if (threads < static_cast<double>(kThreads * view.device.multiprocessors)) return {};
  const int64_t fit = std::min({kMostUnroll, kBytesOfLoads / (walk.vector * (turned + others)),
                                kCopiesOfOps / std::max<int64_t>(walk.vector * ops_of(g), 1)});
  if (fit < std::min(most, kLeastUnroll)) return {};
  walk.unroll = most <= fit ? most : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(fit)));
  return walk;
}

}  // namespace fusebox
