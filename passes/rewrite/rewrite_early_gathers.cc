// early_gathers: `gather (cast x), i` becomes `cast (gather x, i)` if x is an input, or a slice or a reshape of one. An op that
// reads by data needs its operand in memory, and an input is there already, as is a view of it. So the gather can stand in a
// kernel beside other readers of the cast, and it reads the narrower elements.
//
// Pointwise ops give the same bits before and behind a gather, if it gathers all their operands; not so triu, which keeps
// an element by its place. An operand that is a
// broadcast along the gathered axis has the same element everywhere, and stays as it is:
//
//   // the log-probability of a label: take_along_axis (sub x, b), i, where b is a broadcast along the axis
//   // becomes sub (take_along_axis x, i), b
//
// All ops between the inputs and the gather move, or none. Their other readers keep them.
#include <algorithm>
#include <map>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/infer/infer.h"
#include "ir/table/families.h"
#include "passes/rewrite/rewrite_edit.h"

namespace fusebox {
namespace {

constexpr size_t kMostMoved = 16;  // ops and inputs that one gather moves behind itself

bool gathers(const Graph& g, OpId id) {
  const Op& op = g[id];
  return op.kind != OpKind::kScatter && op.results.size() == 1 && !op.operands.empty() && op.operands[0] &&
         g.is_tensor(op.operands[0]) && reads_by_data(g, op, 0);
}

// Whether the place of an element decides its value, as of triu. The gathered element would have another place.
bool is_placed(OpKind kind) {
  switch (kind) {
    case FUSEBOX_PLACING_OPS:
      return true;
    default:  // any other: sees its operands' elements alone
      return false;
  }
}

// Whether the value is an input, or slices and reshapes make it of one, which mostly are views of its memory.
bool is_in_memory(const Graph& g, ValueId v) {
  while (g[v].def && (g[g[v].def].kind == OpKind::kSlice || g[g[v].def].kind == OpKind::kReshape))
    v = g[g[v].def].operands[0];
  return g[v].def && g[g[v].def].kind == OpKind::kInput;
}

// One gather, and what it moves.
class Mover {
 public:
  Mover(Graph& g, const Rewriter& r, OpId gather) : g_(g), r_(r), gather_(gather), last_(gather) {
    axis_ = named_axis(g[gather].attrs.integer(AttrKey::kAxis), rank_of(g, g[gather].operands[0]));
  }

  // Whether all ops between what is in memory and the gather can move, and there are some.
  bool can_move() {
    const ValueId v = r_.operand(gather_, 0);
    return !is_in_memory(g_, v) && !stays(v) && can_move(v);
  }

  // Adds the moved ops behind the gather. Returns what stands for its result.
  ValueId move() { return moved(r_.operand(gather_, 0)); }

 private:
  // Whether the tensor has one element for all places along the gathered axis. The other axes of `gather` may be shorter
  // than the operand's, so nothing stays there.
  bool stays(ValueId v) const {
    if (g_[gather_].kind == OpKind::kGather || drops_axis()) return false;
    const auto axes = logical_without_reductions(g_, g_.tensor_of(v));
    return axis_ < axes.size() && g_[axes[axis_]].iter_type == IterType::kBroadcast && !g_[axes[axis_]].expanded;
  }

  // Whether the gather's result lacks the gathered axis, which a tensor that stays would still have.
  bool drops_axis() const { return family_of(g_[gather_].kind) == AxisRule::kSelected; }

  bool can_move(ValueId v) {
    if (stays(v) || made_.contains(v)) return true;
    if (made_.size() == kMostMoved || !g_[v].def || !g_.tensor_of(v).devices.empty()) return false;
    made_[v] = {};
    if (is_in_memory(g_, v)) return r_.same_axes(v, r_.operand(gather_, 0));
    const Op& op = g_[g_[v].def];
    if (!demands(op.kind, kPointwise) || op.kind == OpKind::kSegmentSet || op.results.size() != 1 ||
        family_of(op.kind) != AxisRule::kSame || is_placed(op.kind))
      return false;
    bool has_tensor = false;
    for (ValueId from : op.operands) {
      if (!from || !g_.is_tensor(from)) continue;
      has_tensor = true;
      if (rank_of(g_, from) != rank_of(g_, v) || !can_move(r_.now(from))) return false;
    }
    return has_tensor;
  }

  ValueId moved(ValueId v) {
    if (stays(v)) return v;
    if (made_[v]) return made_[v];
    Op copy = g_[is_in_memory(g_, v) ? gather_ : g_[v].def];
    for (size_t k = 0; k < copy.operands.size(); ++k) {
      ValueId& from = copy.operands[k];
      if (!from) continue;
      from = r_.now(from);
      if (is_in_memory(g_, v))
        from = k == 0 ? v : from;
      else if (g_.is_tensor(from))
        from = moved(from);
    }
    // Steps name it, so its name must not depend on how many values there are.
    const ValueId result = add_tensor(g_, g_[v].dtype, g_[v].name + "_gathered");
    copy.results = {result};
    last_ = insert_after(g_, last_, std::move(copy));
    infer(g_, last_);
    return made_[v] = result;
  }

  Graph& g_;
  const Rewriter& r_;
  const OpId gather_;
  size_t axis_ = 0;
  OpId last_;
  std::map<ValueId, ValueId> made_;  // by what it is made from; none: not made yet
};

void move_gathers(Graph& g, Rewriter& r, const RewriteOptions&) {
  const std::vector<OpId> ops = g[Graph::body()].ops;
  for (OpId id : ops) {
    if (!gathers(g, id)) continue;
    const ValueId v = g[id].results[0];
    Mover mover(g, r, id);
    if (!r.may_replace(v) || !mover.can_move()) continue;
    const std::vector<OpId> before = g[Graph::body()].ops;
    const ValueId made = mover.move();
    if (r.fits(v, made))
      r.replace(v, made);
    else
      g[Graph::body()].ops = before;
  }
}

}  // namespace

bool early_gathers(Graph& g, const RewriteOptions& options) { return rewrite_readers(g, options, move_gathers); }

}  // namespace fusebox
