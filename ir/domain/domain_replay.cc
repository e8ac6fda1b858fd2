#include "ir/domain/domain_replay.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/scalar/scalar.h"

namespace fusebox {
namespace {

bool holds(std::span<const DomainId> list, DomainId d) { return position_in(list, d) < list.size(); }

class Replay {
 public:
  Replay(Graph& g, TensorId from, TensorId to, const ReplayAxes& axes, LoopReplayOptions options)
      : g_(g),
        from_(from),
        to_(to),
        options_(options),
        loop_(loop_of(g[from])),
        starts_(axes.from),
        pairs_(axes.pairs),
        joined_(axes.joined) {
    // A reshape makes broadcasts of its own. A producer lacks them, as it lacks those of a broadcast.
    for (DomainId d : g[from].logical)
      if (!g[d].def && g[d].iter_type == IterType::kBroadcast && !holds(starts_, d)) starts_.push_back(d);
    for (DomainId d : g[from].loop_broadcasts) {
      starts_.push_back(d);
      // If a loop broadcast stands for an axis of `to`, this axis is its counterpart, unless it is paired already.
      const DomainId own = own_axis(d);
      const bool is_taken = std::any_of(pairs_.begin(), pairs_.end(), [&](const auto& p) { return p.second == own; });
      if (own && !is_taken) pairs_.emplace_back(d, own);
    }
    path_ = transforms_between(g, starts_, loop_);
    switch (options.start) {
      case LoopStart::kAsBefore:
        base_ = axes.base.empty() ? loop_base(g, to) : axes.base;
        break;
      case LoopStart::kRoot:
        base_ = root_of(g[to]);
        break;
      case LoopStart::kLogical:
        base_ = g[to].logical;
        break;
    }
    for (TransformId t : op_transforms(g, g[to])) of_op_.insert(t);
    for (TransformId t : op_transforms(g, g[from])) of_op_from_.insert(t);
  }

  bool run() {
    find_existing();
    make_missing_axes();
    drop_others();
    make_joined();
    frontier_ = base_;
    for (DomainId d : stand_ins_) frontier_.push_back(d);
    if (joined_resize_) consume(g_[joined_resize_]);
    for (TransformId t : path_) replay(t);
    return finish();
  }

 private:
  // The axis of `to` that a loop broadcast stands for, or none if it stands for an axis of another op's result.
  DomainId own_axis(DomainId d) const {
    if (!g_[d].stands_for) return {};
    const auto same = siblings(g_, to_);
    if (std::find(same.begin(), same.end(), g_[g_[d].stands_for].tensor) == same.end()) return {};
    return in_sibling(g_, to_, g_[d].stands_for);
  }

  // The domain that the op's resizes make from `d`, or `d` itself if resizes are replayed.
  DomainId resized(DomainId d) const {
    if (options_.replay_resizes) return d;
    for (TransformId id : g_[to_].transforms)
      if (of_op_.contains(id) && g_[id].kind == TransformKind::kResize && g_[id].inputs[0] == d) d = g_[id].outputs[0];
    return d;
  }

  DomainId counterpart(DomainId d) const {
    const auto it = map_.find(d);
    return it == map_.end() ? DomainId() : it->second;
  }

  // Whether the output of a resize counts as its input. A broadcast has its element at every index.
  bool is_looked_through(TransformId id) const {
    if (g_[id].kind != TransformKind::kResize) return false;
    const DomainId d = counterpart(g_[id].inputs[0]);
    const bool is_broadcast = d && g_[d].iter_type == IterType::kBroadcast;
    return is_broadcast || (!options_.replay_resizes && of_op_from_.contains(id));
  }

  // The same transform of the counterparts in `to`, or none.
  TransformId existing(const Transform& t) const {
    for (TransformId id : g_[to_].transforms) {
      const Transform& other = g_[id];
      if (!is_same_transform(t, other)) continue;
      bool same = true;
      for (size_t i = 0; i < t.inputs.size(); ++i) same = same && other.inputs[i] == counterpart(t.inputs[i]);
      if (same) return id;
    }
    return {};
  }

  void map_outputs(const Transform& t, TransformId made) {
    for (size_t i = 0; i < t.outputs.size(); ++i) map_[t.outputs[i]] = resized(g_[made].outputs[i]);
  }

  void start_map() {
    map_.clear();
    for (const auto& [a, b] : pairs_) map_.emplace(a, resized(b));
    for (const auto& [a, b] : missing_) map_.emplace(a, b);
    if (joined_resize_) map_.emplace(joined_->result, g_[joined_resize_].outputs[0]);
  }

  // Makes the resize that leads from the operand of a cat to the joined axis. Without it that axis has no counterpart.
  void make_joined() {
    if (!joined_ || joined_resize_) return;
    const OpId user = g_[g_[to_].value].def;
    for (const ScalarForm* form : {&joined_->left, &joined_->right})
      for (const ScalarForm::Term& term : form->terms)
        for (ValueId v : term.factors)
          if (!make_known(v)) return;
    Transform resize{
        .kind = TransformKind::kResize, .inputs = {joined_->operand}, .outputs = {}, .factor = {}, .right = {}};
    if (!can_transform(g_, resize)) return;
    const auto place = scalar::Place::before_op(g_, user);
    resize.factor = emit_form(g_, place, joined_->left);
    resize.right = emit_form(g_, place, joined_->right);
    const std::string name = g_[joined_->operand].name;
    joined_resize_ = add_transform(g_, to_, std::move(resize), {&name, 1});
    start_map();
  }

  void find_existing() {
    // Reuses a loop broadcast of `to` that stands for a start of the replay, or for the same domain as a start.
    for (DomainId d : g_[to_].loop_broadcasts) {
      const DomainId like = g_[d].stands_for;
      for (DomainId start : starts_)
        if (start == like || (g_[start].stands_for && g_[start].stands_for == like)) missing_.emplace(start, d);
    }
    if (joined_) joined_resize_ = joining_resize(g_, to_, *joined_);
    if (joined_resize_) reused_.insert(joined_resize_);
    start_map();
    for (TransformId id : path_) {
      if (is_looked_through(id)) {
        if (const DomainId d = counterpart(g_[id].inputs[0])) map_.emplace(g_[id].outputs[0], d);
        continue;
      }
      const TransformId same = existing(g_[id]);
      if (!same) continue;
      if (!of_op_.contains(same)) reused_.insert(same);
      map_outputs(g_[id], same);
    }
  }

  bool may_stand_in(DomainId d) const {
    if (options_.stand_in == StandIn::kNone || own_axis(d)) return false;
    const IterType type = g_[d].iter_type;
    if (type == IterType::kReduction) return false;
    return options_.stand_in == StandIn::kAnyAxis || type == IterType::kBroadcast;
  }

  std::vector<DomainId> starts_of(DomainId loop) const {
    std::vector<DomainId> result;
    for (DomainId a : ancestors(g_, std::span(&loop, 1)))
      if (holds(starts_, a)) result.push_back(a);
    return result;
  }

  // Finds the loop broadcasts that `to` needs: one for each missing axis of a loop, up to the last loop that has a
  // paired axis.
  void make_missing_axes() {
    std::vector<std::vector<DomainId>> axes;  // for each loop
    for (DomainId l : loop_) axes.push_back(starts_of(l));
    for (size_t i = 0; i < loop_.size(); ++i) {
      const bool mapped = std::any_of(axes[i].begin(), axes[i].end(), [&](DomainId d) {
        return (joined_ && joined_->result == d) ||
               std::any_of(pairs_.begin(), pairs_.end(), [&](const auto& p) { return p.first == d; });
      });
      if (mapped) needed_ = i + 1;
    }
    for (size_t i = 0; i < needed_; ++i)
      for (DomainId d : axes[i])
        if (!counterpart(d) && may_stand_in(d) && !(joined_ && joined_->result == d)) wanted_.push_back(d);
    for (const auto& [start, d] : missing_) {
      // A loop broadcast that `to` has already stays only if it is needed.
      const bool is_needed = std::any_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(needed_),
                                         [&](const auto& of_loop) { return holds(of_loop, start); });
      if (is_needed) stand_ins_.push_back(d);
    }
  }

  void drop_others() {
    Tensor& t = g_[to_];
    const std::vector<DomainId> had = domains_of(g_, to_);
    std::vector<DomainId> kept = base_;
    kept.insert(kept.end(), stand_ins_.begin(), stand_ins_.end());
    for (TransformId id : reused_) kept.insert(kept.end(), g_[id].outputs.begin(), g_[id].outputs.end());
    t.loop = kept;  // only for prune: the domains that the loops will need
    prune(g_, to_, had);
    for (DomainId d : wanted_)
      if (!counterpart(d)) {
        const DomainId made = add_loop_broadcast(g_, to_, d, g_[d].name);
        missing_.emplace(d, made);
        stand_ins_.push_back(made);
        map_.emplace(d, made);
      }
    start_map();
  }

  void replay(TransformId id) {
    const Transform t = g_[id];
    if (is_looked_through(id)) {
      if (const DomainId d = counterpart(t.inputs[0])) map_.emplace(t.outputs[0], d);
      return;
    }
    for (DomainId input : t.inputs)
      if (!counterpart(input)) return;
    TransformId made = existing(t);
    if (made && of_op_.contains(made)) {
      consume(g_[made]);
      return map_outputs(t, made);
    }
    Transform copy = t;
    copy.outputs.clear();
    for (DomainId& input : copy.inputs) {
      input = counterpart(input);
      if (!holds(frontier_, input)) return;
    }
    if (!made) {
      // A reshape of no elements may split by 0. On another tensor this split would lose all elements.
      if (copy.kind == TransformKind::kSplit && constant_integer(g_, copy.factor) == 0) return;
      if (!can_transform(g_, copy) || !make_known(copy.factor) || !make_known(copy.right)) return;
      if (copy.kind == TransformKind::kSplit && options_.defects.has(Defect::kSplitFactorPropagated))
        copy.inner_split = !copy.inner_split;
      std::vector<std::string> names;
      for (DomainId d : t.outputs) names.push_back(g_[d].name);
      made = add_transform(g_, to_, std::move(copy), names);
    }
    consume(g_[made]);
    map_outputs(t, made);
  }

  // Moves the definition of a scalar before the op that makes `to`. (An extent is emitted before its first reader, and
  // that may come later.) Returns false if the definition cannot move.
  bool make_known(ValueId v) {
    if (!v || !g_[v].def) return true;
    auto& body = g_[Graph::body()].ops;
    const OpId def = g_[v].def;
    const auto user = [&] { return std::find(body.begin(), body.end(), g_[g_[to_].value].def); };
    if (std::find(body.begin(), user(), def) != user()) return true;
    if (g_[def].kind == OpKind::kInput || g_[def].kind == OpKind::kSize) return make_given(def);
    if (demands(g_[def].kind, kSignature | kEffect | kRead) || !g_[def].regions.empty()) return false;
    for (ValueId operand : g_[def].operands)
      if (operand && (g_.is_tensor(operand) || !make_known(operand))) return false;
    const auto at = std::find(user(), body.end(), def);
    std::rotate(user(), at, at + 1);
    return true;
  }

  // Moves a parameter before the op that makes `to`. The parameters between them move too, so all keep their order.
  // Returns false if the extents of a moved tensor would come too late.
  bool make_given(OpId parameter) {
    auto& body = g_[Graph::body()].ops;
    const auto user = std::find(body.begin(), body.end(), g_[g_[to_].value].def);
    const auto end = std::find(user, body.end(), parameter) + 1;
    const auto is_parameter = [&](OpId op) { return g_[op].kind == OpKind::kInput || g_[op].kind == OpKind::kSize; };
    const auto is_given = [&](ValueId v) {
      return !v || !g_[v].def || is_parameter(g_[v].def) || std::find(body.begin(), user, g_[v].def) != user;
    };
    for (auto it = user; it != end; ++it)
      for (ValueId v : g_[*it].results)
        if (is_parameter(*it) && g_.is_tensor(v))
          for (DomainId d : g_.tensor_of(v).logical)
            if (!is_given(g_[d].extent) || !is_given(g_[d].expanded)) return false;
    std::stable_partition(user, end, is_parameter);
    return true;
  }

  // Replaces a transform's inputs by its outputs in the frontier.
  void consume(const Transform& t) {
    size_t at = frontier_.size();
    for (DomainId d : t.inputs) {
      const size_t i = position_in(frontier_, d);
      if (i == frontier_.size()) return;
      at = std::min(at, i);
    }
    std::erase_if(frontier_, [&](DomainId d) { return holds(t.inputs, d); });
    frontier_.insert(frontier_.begin() + static_cast<std::ptrdiff_t>(std::min(at, frontier_.size())), t.outputs.begin(),
                     t.outputs.end());
  }

  bool finish() {
    std::vector<DomainId> loop;
    bool all = true;
    for (size_t i = 0; i < loop_.size(); ++i) {
      const DomainId d = counterpart(loop_[i]);
      const bool found = d && holds(frontier_, d) && !holds(loop, d);
      all = all && (found || (i >= needed_ && options_.stand_in == StandIn::kAnyAxis));
      if (found) loop.push_back(d);
    }
    for (DomainId d : frontier_)
      if (!holds(loop, d) && !holds(stand_ins_, d)) loop.push_back(d);
    const std::vector<DomainId> had = domains_of(g_, to_);
    set_loop(g_, to_, std::move(loop));
    prune(g_, to_, had);
    return all;
  }

  Graph& g_;
  TensorId from_, to_;
  LoopReplayOptions options_;
  const std::vector<DomainId> loop_;  // the loops of `from`
  std::vector<DomainId> starts_;      // the domains of `from` where the replay starts
  std::vector<std::pair<DomainId, DomainId>> pairs_;
  const std::optional<JoinedAxis> joined_;
  TransformId joined_resize_;              // the resize that leads to the joined axis, once there is one
  std::vector<TransformId> path_;          // the transforms of `from` between its starts and its loops
  std::vector<DomainId> base_, frontier_;  // of `to`: where its loops start, and the loops made so far
  std::set<TransformId> of_op_, of_op_from_, reused_;
  DomainMap map_;      // from domains of `from` to those of `to`
  DomainMap missing_;  // from axes that `to` lacks to its loop broadcasts
  std::vector<DomainId> wanted_, stand_ins_;
  size_t needed_ = 0;  // loops of `from`, up to the last one that shares an axis with `to`
};

}  // namespace

bool replay_loops(Graph& g, TensorId from, TensorId to, const ReplayAxes& axes, LoopReplayOptions options) {
  return Replay(g, from, to, axes, options).run();
}

bool replay_loops_of_op(Graph& g, TensorId from, TensorId to, const ReplayAxes& axes, LoopReplayOptions options) {
  const bool all = replay_loops(g, from, to, axes, options);
  const std::vector<DomainId> base = loop_base(g, to);
  for (TensorId s : siblings(g, to)) {
    if (s == to) continue;
    ReplayAxes same{.from = base, .pairs = {}};
    for (DomainId d : base)
      if (const DomainId there = in_sibling(g, s, d)) {
        same.pairs.emplace_back(d, there);
        same.base.push_back(there);
      }
    replay_loops(g, to, s, same, {StandIn::kAnyAxis, LoopStart::kAsBefore, true});
  }
  return all;
}

}  // namespace fusebox
