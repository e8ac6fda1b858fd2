// Steps that copy the transforms or parallel types of one tensor to others.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/domain/domain_replay.h"
#include "ir/step/step_rules.h"
#include "ir/step/step_spread.h"

namespace fusebox {
namespace {

bool is_same_op(const Graph& g, TensorId a, TensorId b) { return g[g[a].value].def == g[g[b].value].def; }

// For each op: whether an edge leads to one of its results.
std::vector<bool> reached_ops(const Graph& g, const std::vector<SpreadEdge>& edges) {
  std::vector<bool> result(g.ops.size());
  for (const SpreadEdge& e : edges) result[g[g[e.to].value].def.index] = true;
  return result;
}

// The edges from `t` to the listed tensors. Throws if the op of `t` makes one of them, or if a listed tensor is not
// connected to `t` through other listed ones.
std::vector<SpreadEdge> edges_to(const StepContext& c, TensorId t, std::span<const TensorId> listed,
                                 bool through_fixed) {
  for (TensorId l : listed) {
    c.require_scheduled(l);
    if (is_same_op(c.g, l, t)) c.refuse("a tensor is made like itself already; list others", c.place(l));
  }
  std::vector<SpreadEdge> edges = spread(c.g, t, {.only = listed, .until = {}, .through_fixed = through_fixed});
  const std::vector<bool> reached = reached_ops(c.g, edges);
  for (TensorId l : listed)
    if (!reached[c.g[c.g[l].value].def.index])
      c.refuse(
          "no chain of the listed tensors connects this one to " + c.place(t) + " by a common axis; list those between",
          c.place(l));
  return edges;
}

void replay_edges(const StepContext& c, const std::vector<SpreadEdge>& edges) {
  Graph& g = *c.target;
  c.begin();
  for (const SpreadEdge& e : edges)
    if (fixed_loops(g, e.to) == 0)
      replay_loops_of_op(g, e.from, e.to, e.axes, {e.stand_in, LoopStart::kAsBefore, false, c.defects});
}

// Whether this loop can have the parallel type, given the tensor's other loops.
bool can_be(const Graph& g, const Tensor& t, DomainId d, ParallelType p) {
  const bool is_mesh = p >= ParallelType::kMeshX && p <= ParallelType::kMeshZ;
  if (is_mesh && t.devices.empty()) return false;
  if (p == ParallelType::kVectorize && g[d].iter_type == IterType::kReduction) return false;
  if (!is_thread(p) && !is_mesh) return true;
  return std::none_of(loop_of(t).begin(), loop_of(t).end(),
                      [&](DomainId other) { return other != d && g[other].parallel == p; });
}

bool has_loop_broadcasts(const Graph& g, const SpreadEdge& e) {
  return !g[e.from].loop_broadcasts.empty() || !g[e.to].loop_broadcasts.empty();
}

// What a replay of loops on the results of one op may change. Unless `keep` is called, all of it is restored.
class ReplayUndo {
 public:
  ReplayUndo(Graph& g, TensorId t)
      : g_(g),
        values_(g.values.size()),
        ops_(g.ops.size()),
        all_domains_(g.domains.size()),
        all_transforms_(g.transforms.size()),
        body_(g[Graph::body()].ops) {
    for (TensorId s : siblings(g, t)) {
      tensors_.emplace_back(s, g[s]);
      for (DomainId d : domains_of(g, s)) domains_.emplace_back(d, g[d]);
      for (TransformId id : g[s].transforms) transforms_.emplace_back(id, g[id]);
    }
  }
  ReplayUndo(const ReplayUndo&) = delete;
  ~ReplayUndo() {
    if (is_kept_) return;
    for (auto& [id, tensor] : tensors_) g_[id] = std::move(tensor);
    for (auto& [id, domain] : domains_) g_[id] = std::move(domain);
    for (auto& [id, transform] : transforms_) g_[id] = std::move(transform);
    g_[Graph::body()].ops = std::move(body_);
    g_.values.resize(values_);
    g_.ops.resize(ops_);
    g_.domains.resize(all_domains_);
    g_.transforms.resize(all_transforms_);
  }
  void keep() { is_kept_ = true; }

 private:
  Graph& g_;
  const size_t values_, ops_, all_domains_, all_transforms_;  // how many there were
  std::vector<OpId> body_;
  std::vector<std::pair<TensorId, Tensor>> tensors_;
  std::vector<std::pair<DomainId, IterDomain>> domains_;  // some of them twice, with equal members
  std::vector<std::pair<TransformId, Transform>> transforms_;
  bool is_kept_ = false;
};

}  // namespace

void step_transform_like(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const auto listed = c.tensors_from(1);
  const auto edges = edges_to(c, t, listed, false);
  for (TensorId l : listed)
    if (fixed_loops(c.g, l) > 0)
      c.refuse("inlining has fixed this tensor's loops; transform it before inlining", c.place(l));
  if (c.target) replay_edges(c, edges);
}

void step_propagate(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const auto until = c.tensors_from(1);
  for (TensorId l : until) c.require_scheduled(l);
  if (c.target) replay_edges(c, spread(c.g, t, {.only = {}, .until = until}));
}

void step_parallelize_like(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const auto listed = c.tensors_from(1);
  const auto ids = c.step.attrs.ints(AttrKey::kThreads);
  for (int64_t i : ids)
    if (i < 0 || i >= static_cast<int64_t>(enum_texts<ParallelType>().size()))
      c.refuse("no parallel type has the number " + std::to_string(i), c.place(t));
  const auto edges = edges_to(c, t, listed, true);
  if (!c.target) return;
  c.begin();
  Graph& g = *c.target;
  // A mark of a single access (vectorize, unroll, mma, bulk) is copied only if the step names it.
  const auto is_copied = [&](ParallelType p) {
    if (!ids.empty()) return std::find(ids.begin(), ids.end(), static_cast<int64_t>(p)) != ids.end();
    return p != ParallelType::kSerial && p != ParallelType::kVectorize && p != ParallelType::kUnroll &&
           p != ParallelType::kMma && p != ParallelType::kBulk;
  };
  // The classes pair loop broadcasts only, and cost as much as a walk over the whole graph.
  std::optional<AxisClasses> classes;
  if (std::ranges::any_of(edges, [&](const SpreadEdge& e) { return has_loop_broadcasts(g, e); })) classes.emplace(g);
  std::map<DomainId, ParallelType> types;
  for (TensorId s : siblings(g, t))
    for (DomainId d : loop_of(g[s])) types[d] = g[d].parallel;
  for (const SpreadEdge& e : edges) {
    std::vector<DomainPair> axes;
    for (const auto& [a, b] : e.axes.pairs) axes.push_back({a, b});
    for (DomainPair pair :
         match_domains(g, e.from, e.to, axes, {.through_resize = true, .classes = classes ? &*classes : nullptr}))
      if (const auto it = types.find(pair.producer); it != types.end())
        for (TensorId s : siblings(g, e.to))
          if (const DomainId d = in_sibling(g, s, pair.consumer)) types.emplace(d, it->second);
    for (TensorId s : siblings(g, e.to))
      for (DomainId d : loop_of(g[s])) {
        const auto it = types.find(d);
        if (it != types.end() && is_copied(it->second) && can_be(g, g[s], d, it->second)) g[d].parallel = it->second;
      }
  }
}

void step_set_loop_domain(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0), other = c.tensor(1);
  if (fixed_loops(c.g, t) > 0) c.refuse("inlining has fixed this tensor's loops; set them before inlining", c.place(t));
  const ValueId own = c.g[t].value, theirs = c.g[other].value;
  const auto reads = [&](ValueId user, ValueId v) -> std::optional<size_t> {
    const auto& operands = c.g[c.g[user].def].operands;
    const auto it = std::find(operands.begin(), operands.end(), v);
    return it == operands.end() ? std::nullopt : std::optional(static_cast<size_t>(it - operands.begin()));
  };
  const auto place_of = [&](ValueId result) {
    const auto& results = c.g[c.g[result].def].results;
    return static_cast<size_t>(std::find(results.begin(), results.end(), result) - results.begin());
  };
  ReplayAxes axes;
  LoopReplayOptions options{StandIn::kNone, LoopStart::kLogical, true};
  if (const auto k = reads(own, theirs)) {
    axes.from = c.g[other].logical;
    for (DomainPair p : map_producer_to_consumer(c.g, c.g[own].def, *k, place_of(own)))
      axes.pairs.emplace_back(p.producer, p.consumer);
    options = {StandIn::kBroadcastAxis, LoopStart::kRoot, true};
  } else if (const auto j = c.g[theirs].def ? reads(theirs, own) : std::nullopt) {
    axes.from = root_of(c.g[other]);
    for (DomainPair p : map_producer_to_consumer(c.g, c.g[theirs].def, *j, place_of(theirs)))
      axes.pairs.emplace_back(p.consumer, p.producer);
    axes.joined = joined_axis(c.g, c.g[theirs].def, *j);
    options = {StandIn::kAnyAxis, LoopStart::kLogical, true};
  } else {
    c.refuse("the two tensors are not producer and consumer; name a direct one", c.place(other));
  }
  // Only the replay itself shows whether all loops have counterparts.
  std::optional<Graph> copy;
  Graph& g = c.target ? *c.target : copy.emplace(c.g);
  std::optional<ReplayUndo> undo;  // a copy is thrown away as it is
  if (c.target) undo.emplace(g, t);
  if (!replay_loops_of_op(g, other, t, axes, options))
    c.refuse("not every loop of " + c.place(other) +
                 " can be followed from this tensor's axes; name a tensor with fewer transforms between",
             c.place(t));
  if (undo) undo->keep();
  if (c.target) c.begin();
}

}  // namespace fusebox
