// The verifier's rules for the transforms and extents of an op that moves elements: they must be those that the op states.
// Only numbers that are constants are compared; the launch computes the others from the op's operands.
#include <algorithm>
#include <vector>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/infer/infer_rules.h"
#include "ir/verify/verify_rules.h"

namespace fusebox {
namespace {

class MoveChecker {
 public:
  MoveChecker(const Graph& g, OpId id, const OpView& view, const Defects& defects)
      : g_(g), id_(id), view_(view), defects_(defects) {}

  void run() const {
    switch (view_.kind) {
      case OpKind::kExpand:
      case OpKind::kBroadcastInDim:
        return check_shape(root_of(result()));
      case OpKind::kReshape:
        return check_order();
      case OpKind::kSlice:
        if (!defects_.has(Defect::kSliceNegative)) check_slice();
        return;
      case OpKind::kPad:
        return check_pad();
      case OpKind::kCat:
        return check_cat();
      default:  // any other: has no numbers of its own for its axes, or check_op compares them
        return;
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what, DomainId d) const {
    throw Error(ErrorCode::kShapeMismatch, op_text(view_.kind) + " " + what + "; infer its result again",
                place_of(g_, d));
  }

  const Tensor& result() const { return g_.tensor_of(g_[id_].results[0]); }
  std::optional<int64_t> number(ValueId v) const { return evaluate_integer(g_, v); }

  // Extents of the result that the op lists. A negative one keeps the operand's.
  void check_shape(const std::vector<DomainId>& axes) const {
    const auto shape = view_.slot(1);
    for (size_t i = 0; i < shape.size() && i < axes.size(); ++i) {
      const auto stated = number(shape[i]);
      if (!stated || *stated < 0) continue;
      const auto extent = evaluate_size(g_, axes[i]);
      if (extent && *stated != *extent)
        refuse("has extent " + std::to_string(*extent) + " where it states " + std::to_string(*stated), axes[i]);
    }
  }

  // The elements that a slice or pad adds on both sides of an axis; negative ones are cut off.
  struct Margins {
    std::optional<int64_t> left, right;
  };

  void check_margins(DomainId from, DomainId to, const Margins& stated) const {
    Margins made{0, 0};
    if (from != to) {
      const TransformId def = g_[to].def;
      if (!def || g_[def].kind != TransformKind::kResize || g_[def].inputs[0] != from)
        refuse("makes an axis of another one by something else than a resize", to);
      made = {number(g_[def].factor), number(g_[def].right)};
    }
    if ((made.left && stated.left && *made.left != *stated.left) ||
        (made.right && stated.right && *made.right != *stated.right))
      refuse("resizes an axis by other numbers than it states", to);
  }

  void check_slice() const {
    const auto& root = root_of(result());
    const auto& logical = result().logical;
    for (DomainPair pair : map_producer_to_consumer(g_, id_, 0, 0)) {
      const auto at = static_cast<size_t>(std::find(root.begin(), root.end(), pair.consumer) - root.begin());
      if (at >= logical.size() || at >= view_.slot(3).size()) continue;
      if (number(view_.slot(3)[at]) != 1)
        throw Error(ErrorCode::kUnsupportedOp, "slice has a step other than 1; take step 1", place_of(g_, root[at]));
      const auto extent = evaluate_size(g_, pair.producer);
      const auto start = number(view_.slot(1)[at]), stop = number(view_.slot(2)[at]);
      if (!extent || !start || !stop) continue;
      const auto place = [&](int64_t bound) {
        return std::clamp<int64_t>(bound < 0 ? bound + *extent : bound, 0, *extent);
      };
      const int64_t first = place(*start), end = std::max(first, place(*stop));
      if (root[at] != logical[at]) {
        check_margins(root[at], logical[at], {-first, end - *extent});
        continue;
      }
      // An axis that is whole, or one that repeats its element.
      const auto length = evaluate_size(g_, logical[at]);
      if (length && *length != end - first)
        refuse("has extent " + std::to_string(*length) + " where it takes " + std::to_string(end - first) + " elements",
               logical[at]);
    }
  }

  void check_pad() const {
    const auto& root = root_of(result());
    const auto& logical = result().logical;
    const auto widths = view_.slot(2);
    for (size_t i = 0; i < root.size() && i < logical.size(); ++i) {
      const size_t at = 2 * (root.size() - 1 - i);
      check_margins(root[i], logical[i],
                    at + 1 < widths.size() ? Margins{number(widths[at]), number(widths[at + 1])} : Margins{0, 0});
    }
  }

  void check_cat() const {
    const auto& axes = root_of(result());
    const int64_t axis = g_[id_].attrs.integer(AttrKey::kAxis);
    const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(axes.size()) : axis);
    const auto extent = evaluate_size(g_, axes[at]);
    __int128 sum = 0;
    for (ValueId v : view_.operands) {
      const auto part = evaluate_size(g_, logical_without_reductions(g_, g_.tensor_of(v))[at]);
      if (!part) return;
      sum += *part;
    }
    if (extent && *extent != sum) refuse("has another extent than its operands have together", axes[at]);
  }

  // A reshape keeps the order of the elements: what is merged are neighbours, and the parts of a split stand in its place.
  void check_order() const {
    const Tensor& t = result();
    if (t.root.empty()) return;
    const std::vector<TransformId> transforms = op_transforms(g_, t);
    const auto holds = [](const auto& list, DomainId d) {
      return std::find(list.begin(), list.end(), d) != list.end();
    };
    // An axis of one element may stand anywhere, unless something is made of it.
    const auto is_kept = [&](DomainId d) {
      return holds(t.logical, d) && (g_[d].iter_type != IterType::kBroadcast || g_[d].expanded);
    };
    const auto is_read = [&](DomainId d) {
      return is_kept(d) ||
             std::any_of(transforms.begin(), transforms.end(), [&](TransformId x) { return holds(g_[x].inputs, d); });
    };
    std::vector<Part> parts;
    for (DomainId d : t.root)
      if (is_read(d)) parts.push_back({d, evaluate_size(g_, d)});
    const auto place_of_part = [&](DomainId d) {
      return std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.axis == d; });
    };
    for (TransformId id : transforms) {
      const Transform& x = g_[id];
      const auto at = place_of_part(x.inputs[0]);
      const size_t inputs = x.kind == TransformKind::kMerge ? 2 : 1;
      const bool is_kind = x.kind == TransformKind::kMerge || x.kind == TransformKind::kSplit;
      if (!is_kind || static_cast<size_t>(parts.end() - at) < inputs || (inputs == 2 && at[1].axis != x.inputs[1]))
        refuse("changes the order of the elements", x.outputs[0]);
      const std::vector<Part> made = inputs == 2 ? merged(x, at[0], at[1]) : parts_of_split(x, *at);
      const auto next = parts.erase(at, at + static_cast<std::ptrdiff_t>(inputs));
      parts.insert(next, made.begin(), made.end());
    }
    // The other axes of the result are new and hold one element each, or are not resolved yet.
    auto next = parts.begin();
    for (size_t i = 0; i < t.logical.size(); ++i) {
      const DomainId d = t.logical[i];
      if (place_of_part(d) == parts.end()) continue;
      if (next == parts.end() || next->axis != d) refuse("changes the order of the elements", d);
      const auto stated = number(view_.slot(1)[i]);
      if (stated && next->size && *stated != *next->size)
        refuse(
            "makes an axis of " + std::to_string(*next->size) + " elements where it states " + std::to_string(*stated),
            d);
      ++next;
    }
    if (next != parts.end()) refuse("leaves an axis out", next->axis);
  }

  // An axis, and its size by the transforms that make it. (The graph takes the size that the reshape states.)
  struct Part {
    DomainId axis;
    std::optional<int64_t> size;
  };

  static std::vector<Part> merged(const Transform& x, const Part& outer, const Part& inner) {
    int64_t product = 0;
    const bool is_known = outer.size && inner.size && !__builtin_mul_overflow(*outer.size, *inner.size, &product);
    return {{x.outputs[0], is_known ? std::optional(product) : std::nullopt}};
  }

  std::vector<Part> parts_of_split(const Transform& x, const Part& whole) const {
    const auto factor = number(x.factor);
    std::optional<int64_t> rest;
    if (whole.size && factor && *factor > 0) rest = *whole.size / *factor + (*whole.size % *factor != 0 ? 1 : 0);
    return {{x.outputs[0], x.inner_split ? rest : factor}, {x.outputs[1], x.inner_split ? factor : rest}};
  }

  const Graph& g_;
  OpId id_;
  const OpView& view_;
  const Defects& defects_;
};

}  // namespace

void check_moves(const Graph& g, OpId op, const OpView& view, const Defects& defects) {
  MoveChecker(g, op, view, defects).run();
}

}  // namespace fusebox
