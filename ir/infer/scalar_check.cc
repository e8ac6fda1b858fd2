// Checks a program's ops once its sizes are known: operands fit together, and slices, reshapes and indices are in
// bounds.
#include <algorithm>
#include <span>

#include "ir/domain/domain.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/infer/library_shape.h"
#include "ir/infer/scalar_operand.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

class SizeChecker {
 public:
  SizeChecker(const Graph& g, const Bindings& bindings) : g_(g), bindings_(bindings) {}

  void check(OpId id) const {
    const Op& op = g_[id];
    for (ValueId v : op.results)
      if (g_.is_tensor(v)) check_extents(v);
    if (op.kind == OpKind::kOutput) return check_alias(op);
    if (op.results.empty() || !g_.is_tensor(op.results[0])) return;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (!op.operands[i] || !g_.is_tensor(op.operands[i])) continue;
      for (size_t r = 0; r < op.results.size(); ++r)
        for (DomainPair pair : map_producer_to_consumer(g_, id, i, r)) check_pair(op, pair);
    }
    if (stretches(op.kind)) check_stretched(op);
    if (op.kind == OpKind::kSqueeze) check_squeeze(op);
    if (op.kind == OpKind::kSlice) check_slice(op);
    if (op.kind == OpKind::kReshape) check_reshape(op);
    if (op.kind == OpKind::kIota)
      if (const auto objection = iota_objection(g_, op.attrs, op.operands, bindings_))
        throw Error(ErrorCode::kBadInput, objection->message, "%" + g_[op.results[0]].name);
    if (demands(op.kind, kIndexed)) check_indexed(op, *index_operand(op.kind));
    if (demands(op.kind, kLibrary)) check_library(op);
  }

 private:
  std::optional<int64_t> size(DomainId d) const { return evaluate_size(g_, d, bindings_); }
  std::string name(DomainId d) const { return "%" + g_[g_[g_[d].tensor].value].name + "." + g_[d].name; }
  [[noreturn]] void mismatch(const std::string& message, DomainId place) const {
    throw Error(ErrorCode::kSizeMismatch, message, name(place));
  }

  void check_extents(ValueId v) const {
    for (DomainId d : g_.tensor_of(v).logical)
      if (const auto n = size(d); n && *n < 0)
        throw Error(ErrorCode::kBadInput,
                    "this axis gets the extent " + std::to_string(*n) + "; it must not be negative", name(d));
  }

  // Whether both have the same extent without looking at values. This holds for most results.
  static bool is_one_extent(const IterDomain& a, const IterDomain& b) {
    return !a.def && !b.def && a.iter_type == b.iter_type && a.extent == b.extent && a.expanded == b.expanded;
  }

  void check_pair(const Op& op, DomainPair pair) const {
    const IterDomain &from = g_[pair.producer], &to = g_[pair.consumer];
    if (from.iter_type == IterType::kBroadcast && !from.expanded) return;
    // A slice of an expanded axis is an expanded axis of its own length.
    if (op.kind == OpKind::kSlice && from.expanded && to.expanded) return;
    if (is_one_extent(from, to)) return;
    const auto n = size(pair.producer), m = size(pair.consumer);
    // A result that repeats one element along an axis needs an operand axis of extent 1, whatever the result's extent
    // is.
    const bool repeats =
        stretches(op.kind) && from.iter_type != IterType::kBroadcast && to.iter_type == IterType::kBroadcast;
    if (repeats && n && *n != 1)
      mismatch("this axis has extent " + std::to_string(*n) + ", and %" + g_[g_[g_[pair.consumer].tensor].value].name +
                   " repeats one element along it; give it extent 1, or infer the result again",
               pair.producer);
    if (!n || !m || *n == *m) return;
    // cat stores its operands beside each other, so it stretches no axis.
    const bool broadcasts = from.iter_type == IterType::kSymbolic && op.kind != OpKind::kCat;
    if (*n == 1 && ((stretches(op.kind) && to.iter_type != IterType::kIteration) || broadcasts)) return;
    // A symbolic result has the extent of its first operand until it is resolved.
    if (to.iter_type == IterType::kSymbolic && !stretches(op.kind)) {
      if (*n != 1 && *m != 1) mismatch_with(op, *n, *m, pair);
      return;
    }
    mismatch_with(op, *n, *m, pair);
  }

  [[noreturn]] void mismatch_with(const Op& op, int64_t n, int64_t m, DomainPair pair) const {
    const bool may_stretch = demands(op.kind, kPointwise) && (n == 1 || m == 1);
    mismatch("an operand of " + std::string(row_of(op.kind).text) + " has extent " + std::to_string(n) +
                 " here, and the result %" + g_[g_[g_[pair.consumer].tensor].value].name + " has " + std::to_string(m) +
                 (may_stretch ? "; an axis of extent 1 stretches if squeeze drops it and broadcast gives it back" : ""),
             pair.producer);
  }

  // A broadcast that is not expanded is one element, so its size in the shape is 1. −1 keeps an axis.
  void check_stretched(const Op& op) const {
    const auto& axes = g_.tensor_of(op.results[0]).logical;
    for (size_t i = 0; i < axes.size() && i + 1 < op.operands.size(); ++i) {
      if (g_[axes[i]].iter_type != IterType::kBroadcast || g_[axes[i]].expanded) continue;
      const ValueId size = op.operands[i + 1];
      if (constant_integer(g_, size) == -1) continue;
      if (const auto n = evaluate_integer(g_, size, bindings_); n && *n != 1)
        mismatch("this axis is one element, and " + std::string(row_of(op.kind).text) + " gets the extent " +
                     std::to_string(*n) + " for it; give 1, or infer the result again",
                 axes[i]);
    }
  }

  void check_squeeze(const Op& op) const {
    const auto axes = logical_without_reductions(g_, g_.tensor_of(op.operands[0]));
    for (int64_t a : op.attrs.ints(AttrKey::kAxes)) {
      const DomainId d = axes[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(axes.size()) : a)];
      if (const auto n = size(d); n && *n != 1)
        mismatch("squeeze drops this axis of extent " + std::to_string(*n) +
                     "; only one of extent 1 can be dropped, so give inputs with one element there",
                 d);
    }
  }

  // Only a bound that is a size can reach beyond its axis: inference clamps all others.
  void check_slice(const Op& op) const {
    const Tensor& t = g_.tensor_of(op.results[0]);
    for (TransformId id : t.transforms) {
      const Transform& resize = g_[id];
      if (resize.kind != TransformKind::kResize ||
          std::find(t.root.begin(), t.root.end(), resize.inputs[0]) == t.root.end())
        continue;
      for (ValueId by : {resize.factor, resize.right})
        if (const auto more = evaluate_integer(g_, by, bindings_); more && *more > 0)
          throw Error(ErrorCode::kBadInput,
                      "a slice reaches " + std::to_string(*more) +
                          " elements beyond its axis, and a bound that is one size does not clamp; give the minimum of "
                          "that size and the extent",
                      name(resize.inputs[0]));
    }
  }

  // Checks operands whose extents may differ. Along the other axes, an index is at most as long as the tensor that it
  // chooses from or writes to. Along all axes, it is at most as long as the source that is written.
  void check_indexed(const Op& op, size_t index) const {
    if (family_of(op.kind) == AxisRule::kSelected) return check_select(op);
    for (size_t k = 0; k < op.operands.size(); ++k) {
      if (k == index || rule_of(op.kind, k).axes != AxisRule::kChosenWithin) continue;
      if (k > 0) check_within(op, index, 0, true);
      check_within(op, index, k, k == 0);
    }
  }

  // Checks a scalar index as far as it is known. Every index is right if the result has no elements.
  void check_select(const Op& op) const {
    if (g_.is_tensor(op.operands[1])) return;
    const auto axes = logical_without_reductions(g_, g_.tensor_of(op.operands[0]));
    int64_t axis = op.attrs.integer(AttrKey::kAxis);
    if (axis < 0) axis += static_cast<int64_t>(axes.size());
    const DomainId d = axes[static_cast<size_t>(axis)];
    const auto n = size(d), at = evaluate_integer(g_, op.operands[1], bindings_);
    const auto shape = evaluate_shape(g_, op.results[0], bindings_);
    const bool is_empty = shape && std::find(shape->begin(), shape->end(), 0) != shape->end();
    if (!n || !at || is_empty || (*at >= -*n && *at < *n)) return;
    throw Error(ErrorCode::kIndexOutOfRange,
                "select takes index " + std::to_string(*at) + " of this axis of extent " + std::to_string(*n) +
                    "; give one inside it",
                name(d));
  }

  void check_reshape(const Op& op) const {
    std::vector<int64_t> from, to;
    const auto axes = logical_without_reductions(g_, g_.tensor_of(op.operands[0]));
    for (DomainId d : axes) {
      const auto n = size(d);
      if (!n) return;
      from.push_back(*n);
    }
    for (size_t i = 1; i < op.operands.size(); ++i) {
      const auto n = evaluate_integer(g_, op.operands[i], bindings_);
      if (!n) return;
      // The product of two negative ones may be the count, and the result's axes are inferred from the operand.
      if (*n < 0)
        throw Error(ErrorCode::kBadInput, "reshape gets the extent " + std::to_string(*n) + "; it must not be negative",
                    "%" + g_[op.results[0]].name);
      to.push_back(*n);
    }
    const std::string place = "%" + g_[op.operands[0]].name;
    const auto taken = elements_of(from), made = elements_of(to);
    if (!taken || !made)
      throw Error(ErrorCode::kScalarOverflow, "reshape has more elements than 64 bits count; make its extents smaller",
                  place);
    if (*taken != *made)
      throw Error(ErrorCode::kSizeMismatch,
                  "reshape gets " + std::to_string(*taken) + " elements and makes " + std::to_string(*made) +
                      "; they must be as many",
                  place);
  }

  // The product of extents; nothing if 64 bits do not hold it. An extent of 0 makes it 0, whatever the others are.
  static std::optional<int64_t> elements_of(std::span<const int64_t> extents) {
    if (std::ranges::count(extents, 0) > 0) return 0;
    int64_t product = 1;
    for (int64_t n : extents)
      if (__builtin_mul_overflow(product, n, &product)) return std::nullopt;
    return product;
  }

  // Operand `small` is at most as long as `large` along each axis. `skips_axis` leaves the indexed axis out.
  void check_within(const Op& op, size_t small, size_t large, bool skips_axis) const {
    const auto inner = logical_without_reductions(g_, g_.tensor_of(op.operands[small]));
    const auto outer = logical_without_reductions(g_, g_.tensor_of(op.operands[large]));
    int64_t axis = op.attrs.integer(AttrKey::kAxis);
    if (axis < 0) axis += static_cast<int64_t>(outer.size());
    for (size_t i = 0; i < inner.size() && i < outer.size(); ++i) {
      const auto n = size(inner[i]), m = size(outer[i]);
      if ((skips_axis && static_cast<int64_t>(i) == axis) || !n || !m || *n <= *m) continue;
      mismatch("an index of " + std::string(row_of(op.kind).text) + " has extent " + std::to_string(*n) + " where %" +
                   g_[op.operands[large]].name + " has " + std::to_string(*m),
               inner[i]);
    }
  }

  // Checks the axes that a library op contracts or lines up, and the extents of its results.
  void check_library(const Op& op) const {
    OpView view{g_, op.kind, op.operands, op.attrs, {}};
    const LibraryShape shape = library_shape(view);
    const auto at = [&](OperandPlace p) { return domain_at(g_, op.operands, p); };
    for (const auto& [a, b] : shape.equal) {
      const auto n = size(at(a)), m = size(at(b));
      if (n && m && *n != *m)
        mismatch(std::string(row_of(op.kind).text) + " gets extent " + std::to_string(*m) + " here, and " +
                     std::to_string(*n) + " at " + name(at(a)) + "; they must be equal",
                 at(b));
    }
    for (const auto& [a, b] : shape.within) {
      const auto n = size(at(a)), m = size(at(b));
      if (n && m && *n > *m)
        mismatch(std::string(row_of(op.kind).text) + " gets extent " + std::to_string(*n) + " here, and " +
                     std::to_string(*m) + " at " + name(at(b)) + "; it must not be longer",
                 at(a));
    }
    for (const auto& [count, place] : shape.at_most) {
      const auto n = evaluate_integer(g_, op.operands[count], bindings_), m = size(at(place));
      if (n && m && *n > *m)
        mismatch(std::string(row_of(op.kind).text) + " takes " + std::to_string(*n) + " elements of this axis of " +
                     std::to_string(*m) + "; take no more than it has",
                 at(place));
    }
    for (size_t r = 0; r < shape.results.size(); ++r) {
      const auto& own = g_.tensor_of(op.results[r]).logical;
      for (size_t i = 0; i < own.size() && i < shape.results[r].axes.size(); ++i)
        for (const OperandPlace& p : shape.results[r].axes[i].from) check_library_axis(op, at(p), own[i]);
    }
  }

  // An operand of extent 1 stretches if it is a broadcast, or may turn out to be one.
  void check_library_axis(const Op& op, DomainId from, DomainId to) const {
    const auto n = size(from), m = size(to);
    const bool stretches =
        g_[from].iter_type == IterType::kSymbolic || (g_[from].iter_type == IterType::kBroadcast && !g_[from].expanded);
    // A symbolic result has the extent of its first operand until it is resolved.
    const bool is_open = g_[to].iter_type == IterType::kSymbolic && m == 1;
    if (n && m && *n != *m && !(*n == 1 && stretches) && !is_open) mismatch_with(op, *n, *m, {from, to});
  }

  void check_alias(const Op& op) const {
    if (op.operands.size() < 2 || !op.operands[1]) return;
    const auto from = logical_without_reductions(g_, g_.tensor_of(op.operands[0]));
    const auto to = logical_without_reductions(g_, g_.tensor_of(op.operands[1]));
    for (size_t i = 0; i < from.size() && i < to.size(); ++i) {
      const auto n = size(from[i]), m = size(to[i]);
      if (n && m && *n != *m)
        mismatch("an output has extent " + std::to_string(*n) + " where the input that it overwrites has " +
                     std::to_string(*m),
                 to[i]);
    }
  }

  const Graph& g_;
  const Bindings& bindings_;
};

}  // namespace

void check_sizes(const Graph& g, const Bindings& bindings) {
  const SizeChecker checker(g, bindings);
  for (OpId op : g[Graph::body()].ops) checker.check(op);
}

void check_sizes(const Graph& g, OpId op, const Bindings& bindings) { SizeChecker(g, bindings).check(op); }

}  // namespace fusebox
