// The verifier's rules for one op: its results must agree with the rules of infer.h.
#include <algorithm>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/infer/infer_rules.h"
#include "ir/infer/library_shape.h"
#include "ir/infer/scalar_operand.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"
#include "ir/verify/verify_rules.h"

namespace fusebox {
namespace {

bool is_low(const Graph& g) { return g.level == Level::kKernel || g.level == Level::kHost; }

// Checks the extents of an operand's axis and the result's axis at the same position.
void check_pair(const Graph& g, const OpView& op, DomainPair pair, const Defects& defects) {
  const IterDomain &from = g[pair.producer], &to = g[pair.consumer];
  const bool is_single = from.iter_type == IterType::kBroadcast && !from.expanded;
  const bool keeps_it = demands(op.kind, kReduction) || op.kind == OpKind::kPermute || op.kind == OpKind::kBroadcast;
  if ((is_single && !keeps_it) || defects.has(Defect::kVerifyExtents)) return;
  const auto refuse = [&](const char* what) {
    throw Error(ErrorCode::kShapeMismatch, op_text(op.kind) + what + "; infer its result again",
                place_of(g, pair.consumer));
  };
  const bool is_open = from.iter_type == IterType::kSymbolic || to.iter_type == IterType::kSymbolic;
  // A slice of an expanded axis is an expanded axis of its own length.
  if (op.kind == OpKind::kSlice && from.expanded && to.expanded) return;
  const auto n = evaluate_size(g, pair.producer), m = evaluate_size(g, pair.consumer);
  // If the result's axis is a broadcast and the operand's is not, the operand's extent must be 1. After concretization
  // of an op that stretches, or of a reshape, this extent need not be a constant.
  const bool may_stretch = stretches(op.kind), resolves = may_stretch || op.kind == OpKind::kReshape;
  const bool one = to.iter_type == IterType::kBroadcast && from.iter_type != IterType::kBroadcast;
  // An axis that is expanded to extent 1, as a slice may make it, can be stretched again.
  const bool is_again = may_stretch && n == 1 && to.iter_type == IterType::kBroadcast;
  // A symbolic axis may also have extent 1 on either side, because it may turn out to be a broadcast (see `right`).
  const bool agrees = !n || !m || *n == *m || is_again;
  // Whether a symbolic axis is stretched is not known yet, so the result's axis must be symbolic too.
  if (may_stretch && from.iter_type == IterType::kSymbolic && to.iter_type == IterType::kBroadcast)
    refuse(" makes a broadcast of a symbolic axis");
  const bool right = is_single ? m == 1
                     : is_open ? agrees || *n == 1 || *m == 1
                     : one     ? n == 1 || (!n && resolves)
                               : agrees;
  if (!right) refuse(" has an axis of another extent than its operand");
}

// The constant size of a domain, or nothing. The form tells it if the scalar does not: parts of an extent may cancel.
std::optional<int64_t> known_size(const Graph& g, DomainId d) {
  const auto n = evaluate_size(g, d);
  if (n || !g[d].def) return n;
  const auto form = size_form(g, d);
  return form && form->is_constant() ? std::optional(form->constant) : std::nullopt;
}

class OpChecker {
 public:
  OpChecker(const Graph& g, OpId id, const Defects& defects)
      : g_(g), id_(id), op_(g[id]), view_{g, op_.kind, op_.operands, op_.attrs, {}}, defects_(defects) {}

  void run() {
    const OpRow& row = row_of(op_.kind);
    if (!row.at(g_.level) || (g_.level == Level::kKernel && (op_.kind == OpKind::kSize || op_.kind == OpKind::kOutput)))
      throw Error(ErrorCode::kWrongLevel,
                  op_text(op_.kind) + " cannot stand in a program of level " + std::string(text(g_.level)), place());
    check_format(view_);
    check_attrs(view_);
    check_counts();
    if (op_.kind == OpKind::kInput || op_.kind == OpKind::kSize || op_.kind == OpKind::kOutput)
      return check_signature();
    if (is_fact(op_.kind)) return check_fact(g_, id_);
    if (is_low(g_)) check_low_level(view_);
    if (is_of_cluster(op_.kind)) check_in_cluster(g_, id_);
    check_types();
    if (is_low(g_)) return;
    check_constants(g_, op_.kind, op_.attrs, op_.operands);
    check_axes();
  }

 private:
  std::string place() const { return op_.results.empty() ? std::string() : place_of(g_, op_.results[0]); }

  [[noreturn]] void refuse(ErrorCode code, const std::string& message) const {
    throw Error(code, op_text(op_.kind) + " " + message, place());
  }

  void check_counts() const {
    const FormatRow& format = *row_of(op_.kind).format;
    const size_t results = op_.results.size(), regions = op_.regions.size();
    bool right = format.results < 0 || results == static_cast<size_t>(format.results);
    const bool has_none = op_.kind == OpKind::kBarrier || is_fact(op_.kind) || is_of_cluster(op_.kind);
    if (has_none) right = results == 0;
    if (op_.kind == OpKind::kThreadIndex || op_.kind == OpKind::kThreadCount) right = results == 1;
    if (op_.kind == OpKind::kBlockReduce || op_.kind == OpKind::kBlockBroadcast || op_.kind == OpKind::kWarpReduce)
      right = results == view_.slot(0).size();
    if (op_.kind == OpKind::kRunAten)
      for (ValueId v : op_.results)
        if (!g_.is_tensor(v)) refuse(ErrorCode::kWrongKind, "gives tensors");
    if (!right)
      refuse(ErrorCode::kOperandCount, "has " + std::to_string(results) + " results, which its form does not give");
    right = format.regions < 0 ? regions == 1 || regions == 2 : regions == static_cast<size_t>(format.regions);
    if (!right)
      refuse(ErrorCode::kInvalidGraph, "has " + std::to_string(regions) + " regions, which its form does not take");
    for (RegionId r : op_.regions)
      if (static_cast<bool>(g_[r].index) != (op_.kind == OpKind::kFor))
        refuse(ErrorCode::kInvalidGraph, "has a region with an index that it does not take, or without one");
  }

  void check_signature() const {
    if (op_.kind == OpKind::kOutput) return check_output(view_);
    const auto& body = g_[Graph::body()].ops;
    if (std::find(body.begin(), body.end(), id_) == body.end())
      refuse(ErrorCode::kInvalidGraph, "stands outside the body");
    for (ValueId v : op_.results) {
      const Value& value = g_[v];
      if (op_.kind == OpKind::kSize) {
        if (value.kind != ValueKind::kScalar || value.dtype != Dtype::kIndex)
          refuse(ErrorCode::kWrongKind, "gives scalars of dtype index");
        continue;
      }
      const bool data = value.kind == ValueKind::kTensor || value.kind == ValueKind::kScalar;
      if (!data && g_.level != Level::kHost) refuse(ErrorCode::kWrongKind, "is neither a tensor nor a scalar");
      if (value.kind == ValueKind::kScalar && is_storage_only(value.dtype))
        refuse(ErrorCode::kUnsupportedDtype, "is a scalar of a dtype that has no arithmetic");
      if (!g_.is_tensor(v)) continue;
      for (DomainId d : g_.tensor_of(v).logical)
        if (g_[d].iter_type == IterType::kReduction) refuse(ErrorCode::kInvalidGraph, "has a reduced axis");
    }
  }

  void check_result(size_t i, ValueKind kind, Dtype dtype) const {
    const Value& v = g_[op_.results[i]];
    if (v.kind != kind)
      throw Error(ErrorCode::kWrongKind,
                  op_text(op_.kind) + " gives a " + std::string(text(kind)) + ", not a " + std::string(text(v.kind)),
                  place_of(g_, op_.results[i]));
    const bool handle = kind != ValueKind::kTensor && kind != ValueKind::kScalar;
    if (handle || v.dtype == dtype) return;
    const bool rounds = is_low(g_) && demands(op_.kind, kPointwise) && dtype != Dtype::kBool &&
                        !is_storage_only(v.dtype) && (is_complex(v.dtype) || !is_complex(dtype));
    if (!rounds)
      throw Error(ErrorCode::kDtypeMismatch,
                  op_text(op_.kind) + " gives " + std::string(text(dtype)) + ", not " + std::string(text(v.dtype)),
                  place_of(g_, op_.results[i]));
  }

  Dtype computed_dtype() const {
    OperandType few[8];
    std::vector<OperandType> many;
    size_t count = 0;
    // For these ops only the first operand's dtype counts. The other operands are indices, extents or counts.
    const bool first_only = op_.kind == OpKind::kTriu || op_.kind == OpKind::kFull || is_moment(op_.kind);
    if (op_.kind == OpKind::kIota)
      few[count++] = {Dtype::kInt64, true};
    else if (is_random(op_.kind))
      few[count++] = {random_dtype(op_.attrs), true};
    else
      for (ValueId v : op_.operands) {
        if (!v) continue;
        const OperandType type{g_[v].dtype, !g_.is_tensor(v), g_[v].name};
        if (count < std::size(few)) few[count] = type;
        if (count == std::size(few)) many.assign(few, few + count);
        if (count >= std::size(few)) many.push_back(type);
        ++count;
        if (first_only) break;
      }
    return many.empty() ? result_dtype(op_.kind, {few, count}, op_.attrs, defects_)
                        : result_dtype(op_.kind, many, op_.attrs, defects_);
  }

  void check_types() const {
    const ValueId first = view_.operand(0);
    switch (op_.kind) {
      case FUSEBOX_MOMENT_OPS:
        for (size_t i = 0; Dtype d : moment_dtypes(op_.kind, computed_dtype()))
          check_result(i++, ValueKind::kTensor, d);
        return;
      case FUSEBOX_LIBRARY_OPS:
        for (size_t i = 0; const auto& r : library_shape(view_).results) check_result(i++, ValueKind::kTensor, r.dtype);
        return;
      case OpKind::kWelfordCombine:
        for (size_t i = 0; i < 3; ++i)
          if (g_[op_.results[i]].kind != ValueKind::kScalar) refuse(ErrorCode::kWrongKind, "gives scalars");
        return;
      case OpKind::kLoad:
        return check_result(0, ValueKind::kScalar, g_[first].dtype);
      case OpKind::kThreadIndex:
      case OpKind::kThreadCount:
      case OpKind::kTensorStride:
      case OpKind::kTensorAlignment:
      case OpKind::kPreparedDiv:
        return check_result(0, ValueKind::kScalar, Dtype::kIndex);
      case OpKind::kPrepareDiv:
        return check_result(0, ValueKind::kScalar, Dtype::kInt64);
      case OpKind::kPhilox:
        return check_result(0, ValueKind::kScalar, Dtype::kUint32);
      case OpKind::kGridReduce:
        return check_result(0, ValueKind::kScalar, Dtype::kBool);
      case OpKind::kBlockReduce:
      case OpKind::kBlockBroadcast:
      case OpKind::kWarpReduce:
        for (size_t i = 0; i < op_.results.size(); ++i) check_result(i, ValueKind::kScalar, g_[view_.slot(0)[i]].dtype);
        return;
      case OpKind::kAllocate:
      case OpKind::kAllocateTensor:
        return check_result(0, ValueKind::kTensor, g_[op_.results[0]].dtype);
      case OpKind::kAliasSelect:
      case OpKind::kAliasView:
        return check_result(0, ValueKind::kTensor, g_[first].dtype);
      case OpKind::kCreateStream:
      case OpKind::kGetStream:
        return check_result(0, ValueKind::kStream, {});
      case OpKind::kRecordEvent:
        return check_result(0, ValueKind::kEvent, {});
      case OpKind::kCommunicate:
        return check_result(0, ValueKind::kCommunication, {});
      case FUSEBOX_SCALAR_OPS:
      case FUSEBOX_REDUCTION_OPS:
      case FUSEBOX_VIEW_OPS:
      case FUSEBOX_INDEXED_OPS:
      case FUSEBOX_PLACING_OPS:
        break;
      case FUSEBOX_EFFECT_OPS:
        return;  // these ops have no result, but run_aten, whose tensors are as they are declared
      case FUSEBOX_STRUCTURE_OPS:
        not_in_family(op_.kind, "gives what the signature declares");
    }
    const bool any_tensor =
        std::any_of(op_.operands.begin(), op_.operands.end(), [&](ValueId v) { return v && g_.is_tensor(v); });
    const bool factory = op_.kind == OpKind::kFull || op_.kind == OpKind::kIota || is_random(op_.kind);
    const bool index_only =
        op_.kind == OpKind::kFloorDiv || op_.kind == OpKind::kFloorMod || op_.kind == OpKind::kCeilDiv;
    if (any_tensor && demands(op_.kind, kPointwise) && (is_low(g_) || index_only))
      refuse(ErrorCode::kWrongKind, "takes scalars here; load an element first");
    const ValueKind kind = any_tensor || factory ? ValueKind::kTensor : ValueKind::kScalar;
    if (op_.kind == OpKind::kCast && !op_.attrs.has(AttrKey::kDtypeAttr))
      refuse(ErrorCode::kBadAttribute, "needs the attribute `as`");
    const bool computes = demands(op_.kind, kPointwise | kReduction) || op_.kind == OpKind::kCat;
    check_result(0, kind, computes ? computed_dtype() : g_[first].dtype);
  }

  // -- axes of math and scheduled tensors
  size_t rank(ValueId v) const {
    size_t count = 0;
    for (DomainId d : g_.tensor_of(v).logical) count += g_[d].iter_type != IterType::kReduction ? 1 : 0;
    return count;
  }
  void need_rank(size_t is, size_t wanted) const {
    if (is != wanted)
      refuse(ErrorCode::kRankMismatch,
             "has rank " + std::to_string(is) + " where " + std::to_string(wanted) + " is needed");
  }
  size_t axis(int64_t a, size_t of_rank) const {
    const int64_t n = static_cast<int64_t>(of_rank);
    if (a < -n || a >= n)
      refuse(ErrorCode::kBadAxis, "names axis " + std::to_string(a) + " at rank " + std::to_string(of_rank));
    return static_cast<size_t>(a < 0 ? a + n : a);
  }
  size_t axis_attr(size_t of_rank) const {
    if (!op_.attrs.has(AttrKey::kAxis)) refuse(ErrorCode::kBadAttribute, "needs the attribute `axis`");
    return axis(op_.attrs.integer(AttrKey::kAxis), of_rank);
  }
  std::vector<bool> axes_attr(AttrKey key, size_t of_rank, std::optional<size_t> count = {}) const {
    std::vector<bool> seen(of_rank);
    const auto list = op_.attrs.ints(key);
    for (int64_t a : list) {
      const size_t i = axis(a, of_rank);
      if (seen[i]) refuse(ErrorCode::kBadAxis, "names axis " + std::to_string(a) + " twice");
      seen[i] = true;
    }
    if (count && list.size() != *count)
      refuse(ErrorCode::kRankMismatch, "names " + std::to_string(list.size()) + " axes of " + std::to_string(*count));
    return seen;
  }
  void need_index(ValueId v) const {
    if (!v || !is_integer(g_[v].dtype)) refuse(ErrorCode::kDtypeMismatch, "needs an index of integers");
  }

  void check_axes() const {
    if (op_.results.empty() || !g_.is_tensor(op_.results[0])) return;
    for (size_t i = 0; i < op_.results.size(); ++i)
      check_rank(root_of(g_.tensor_of(op_.results[i])).size(), g_.tensor_of(op_.results[i]));
    for (size_t i = 0; i < op_.operands.size(); ++i)
      if (op_.operands[i] && g_.is_tensor(op_.operands[i]))
        for (size_t r = 0; r < op_.results.size(); ++r)
          for (DomainPair pair : map_producer_to_consumer(g_, id_, i, r)) check_pair(g_, view_, pair, defects_);
    if (!defects_.has(Defect::kVerifyExtents)) check_moves(g_, id_, view_, defects_);
    if (op_.kind == OpKind::kTriu && !defects_.has(Defect::kVerifyExtents)) check_masked();
    if (demands(op_.kind, kLibrary)) check_library();
    const bool makes_axes =
        op_.kind == OpKind::kFull || op_.kind == OpKind::kIota || op_.kind == OpKind::kTriu || is_random(op_.kind);
    if (!demands(op_.kind, kPointwise) || makes_axes || defects_.has(Defect::kVerifyExtents)) return;
    for (DomainId d : root_of(g_.tensor_of(op_.results[0]))) {
      if (g_[d].iter_type == IterType::kIteration && !is_given(d))
        refuse(ErrorCode::kShapeMismatch, "has an axis, " + place_of(g_, d) + ", that no operand gives");
      check_agreement(d);
    }
  }

  // Checks the axes of an op that ATen alone computes, as far as their extents are known.
  void check_library() const {
    const LibraryShape shape = library_shape(view_);
    for (size_t r = 0; r < shape.results.size(); ++r) {
      const Tensor& t = g_.tensor_of(op_.results[r]);
      if (!t.root.empty())
        refuse(ErrorCode::kInvalidGraph, "has axes made by an op that moves elements, and moves none");
      need_rank(t.logical.size(), shape.results[r].axes.size());
      for (size_t i = 0; i < t.logical.size(); ++i) check_library_axis(shape.results[r].axes[i], t.logical[i]);
    }
    if (defects_.has(Defect::kVerifyExtents)) return;
    for (const auto& [a, b] : shape.equal) {
      const DomainId x = domain_at(g_, op_.operands, a), y = domain_at(g_, op_.operands, b);
      const auto n = known_extent(x), m = known_extent(y);
      if (n && m && *n != *m)
        refuse(ErrorCode::kShapeMismatch, "has operands of extents " + std::to_string(*n) + " at " + place_of(g_, x) +
                                              " and " + std::to_string(*m) + " at " + place_of(g_, y));
    }
    for (const auto& [a, b] : shape.within) {
      const DomainId x = domain_at(g_, op_.operands, a), y = domain_at(g_, op_.operands, b);
      const auto n = known_extent(x), m = known_extent(y);
      if (n && m && *n > *m)
        refuse(ErrorCode::kShapeMismatch, "has extent " + std::to_string(*n) + " at " + place_of(g_, x) +
                                              ", longer than " + std::to_string(*m) + " at " + place_of(g_, y));
    }
  }

  // Nothing for a symbolic axis, which may turn out to be a broadcast.
  std::optional<int64_t> known_extent(DomainId d) const {
    return g_[d].iter_type == IterType::kSymbolic ? std::nullopt : known_size(g_, d);
  }

  void check_library_axis(const LibraryAxis& from, DomainId own) const {
    if (g_[own].expanded) refuse(ErrorCode::kShapeMismatch, "repeats elements along " + place_of(g_, own));
    if (defects_.has(Defect::kVerifyExtents)) return;
    if (from.from.empty()) {
      const auto wanted = evaluate_integer(g_, op_.operands[from.extent]), extent = evaluate_size(g_, own);
      if (wanted && extent && *wanted != *extent)
        refuse(ErrorCode::kShapeMismatch, "has another extent than it is given; infer its result again");
      return;
    }
    bool is_open = false;
    for (const OperandPlace& p : from.from) {
      const DomainId d = domain_at(g_, op_.operands, p);
      is_open |= g_[d].iter_type == IterType::kSymbolic;
      const bool stretches = g_[d].iter_type == IterType::kBroadcast && !g_[d].expanded;
      const auto n = known_extent(d), m = known_extent(own);
      if (n && m && *n != *m && !stretches)
        refuse(ErrorCode::kShapeMismatch, "has extent " + std::to_string(*m) + " at " + place_of(g_, own) +
                                              " where an operand has " + std::to_string(*n));
      if (stretches && from.from.size() == 1 && m && *m != 1)
        refuse(ErrorCode::kShapeMismatch, "stretches an axis at " + place_of(g_, own));
    }
    if (g_[own].iter_type == IterType::kSymbolic && !is_open)
      refuse(ErrorCode::kShapeMismatch, "has a symbolic axis, " + place_of(g_, own) + ", where no operand has");
  }

  // Checks that the result of triu has its operand's extents.
  void check_masked() const {
    for (DomainPair pair : map_producer_to_consumer(g_, id_, 0, 0)) {
      const auto own = known_size(g_, pair.consumer), wanted = known_size(g_, pair.producer);
      if (own && wanted && *own != *wanted)
        refuse(ErrorCode::kShapeMismatch, "has extent " + std::to_string(*own) + " at " + place_of(g_, pair.consumer) +
                                              " where its operand has " + std::to_string(*wanted));
    }
  }

  // Checks an axis of a pointwise result. Known extents of the operands along it agree, and the result has the extent
  // of the deciding operand: an iteration decides before a symbolic axis, and this before a broadcast.
  void check_agreement(DomainId d) const {
    const auto weight = [](const IterDomain& from) {
      return from.iter_type == IterType::kBroadcast  ? (from.expanded ? 1 : 0)
             : from.iter_type == IterType::kSymbolic ? 2
                                                     : 3;
    };
    DomainId deciding;
    std::optional<int64_t> extent;
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      if (!op_.operands[i] || !g_.is_tensor(op_.operands[i])) continue;
      for (DomainPair pair : map_producer_to_consumer(g_, id_, i, 0)) {
        if (pair.consumer != d) continue;
        const IterDomain& from = g_[pair.producer];
        if (!deciding || weight(from) > weight(g_[deciding])) deciding = pair.producer;
        const auto n = weight(from) == 0 ? std::nullopt : known_size(g_, pair.producer);
        // A symbolic axis of extent 1 may turn out to be a broadcast.
        if (!n || (*n == 1 && from.iter_type == IterType::kSymbolic)) continue;
        if (extent && *extent != *n)
          refuse(ErrorCode::kShapeMismatch, "has operands of extents " + std::to_string(*extent) + " and " +
                                                std::to_string(*n) + " at " + place_of(g_, d));
        extent = n;
      }
    }
    if (!deciding) return;
    const auto own = known_size(g_, d), wanted = known_size(g_, deciding);
    if (own && wanted && *own != *wanted)
      refuse(ErrorCode::kShapeMismatch, "has extent " + std::to_string(*own) + " at " + place_of(g_, d) +
                                            " where its operands give " + std::to_string(*wanted));
    if (g_[d].iter_type == IterType::kSymbolic && g_[deciding].iter_type != IterType::kSymbolic)
      refuse(ErrorCode::kShapeMismatch, "has a symbolic axis, " + place_of(g_, d) + ", where no operand has");
  }

  // Whether an operand gives this axis of the result: not as a broadcast, or as an expanded one.
  bool is_given(DomainId d) const {
    for (size_t i = 0; i < op_.operands.size(); ++i)
      if (op_.operands[i] && g_.is_tensor(op_.operands[i]))
        for (DomainPair pair : map_producer_to_consumer(g_, id_, i, 0))
          if (pair.consumer == d && (g_[pair.producer].iter_type != IterType::kBroadcast || g_[pair.producer].expanded))
            return true;
    return false;
  }

  // An op that gives several moments takes one tensor, or one for each of its results, which it merges.
  void check_merged(ValueId first) const {
    const std::vector<Dtype> dtypes = moment_dtypes(op_.kind, g_[first].dtype);
    for (size_t i = 1; i < dtypes.size(); ++i) {
      const ValueId merged = view_.operand(i);
      if (static_cast<bool>(merged) != static_cast<bool>(view_.operand(1)))
        refuse(ErrorCode::kOperandCount, "takes one tensor, or all that it merges");
      if (merged && g_[merged].dtype != dtypes[i])
        refuse(ErrorCode::kDtypeMismatch, "merges a tensor of dtype " + std::string(text(dtypes[i])) + " here");
    }
  }

  void check_reduction(size_t root, const Tensor& t, size_t from) const {
    need_rank(root, from);
    const auto over = axes_attr(AttrKey::kAxes, from);
    if (op_.attrs.ints(AttrKey::kAxes).empty() && !is_moment(op_.kind)) refuse(ErrorCode::kBadAxis, "reduces no axis");
    for (size_t i = 0; i < from; ++i)
      if ((g_[root_of(t)[i]].iter_type == IterType::kReduction) != over[i])
        refuse(ErrorCode::kInvalidGraph, "marks other axes as reduced than it names");
    check_stage(g_, op_.results[0]);
  }

  // Checks the index, and the rank of each operand by the rule of its slot.
  void check_indexed(size_t root, size_t from) const {
    const size_t index = index_operand(op_.kind).value_or(0);
    need_index(view_.operand(index));
    axis_attr(from);
    for (size_t i = 1; i < op_.operands.size(); ++i) {
      const ValueId v = op_.operands[i];
      const AxisRule rule = rule_of(op_.kind, i).axes;
      if (rule != AxisRule::kWhole && !g_.is_tensor(v)) refuse(ErrorCode::kWrongKind, "takes a tensor of indices");
      if (rule == AxisRule::kWhole) {
        if (g_.is_tensor(v)) need_rank(rank(v), 0);
      } else if (rule == AxisRule::kOnAxis) {
        if (rank(v) > 1) refuse(ErrorCode::kRankMismatch, "takes indices of rank 1");
      } else {
        need_rank(rank(v), from);
      }
      if (i != index && g_[v].dtype != g_[view_.operand(0)].dtype)
        refuse(ErrorCode::kDtypeMismatch, "needs a source of the dtype of what it writes to");
    }
    need_rank(root, family_of(op_.kind) == AxisRule::kSelected ? from - 1 : from);
  }

  // Checks a result that has the extents which the op lists.
  void check_given_shape(std::span<const ValueId> shape, const Tensor& t) const {
    need_rank(root_of(t).size(), shape.size());
    for (size_t i = 0; i < shape.size(); ++i) {
      const auto wanted = evaluate_integer(g_, shape[i]), extent = evaluate_size(g_, root_of(t)[i]);
      if (wanted && extent && *wanted != *extent)
        refuse(ErrorCode::kShapeMismatch, "has another extent than it is given; infer its result again");
    }
  }

  // Checks the rank of a result's root, and attributes that name axes.
  void check_rank(size_t root, const Tensor& t) const {
    const ValueId first = view_.operand(0);
    const size_t from = first && g_.is_tensor(first) ? rank(first) : 0;
    if (!demands(op_.kind, kReduction))
      for (DomainId d : t.logical)
        if (g_[d].iter_type == IterType::kReduction)
          refuse(ErrorCode::kInvalidGraph, "has a reduced axis but is no reduction");
    if (demands(op_.kind, kPointwise) && !t.root.empty())
      refuse(ErrorCode::kInvalidGraph, "has axes made by an op that moves elements, and moves none");
    switch (op_.kind) {
      case FUSEBOX_REDUCTION_OPS:
      case FUSEBOX_MOMENT_OPS:
        for (ValueId v : op_.operands)
          if (v) need_rank(rank(v), from);
        if (is_moment(op_.kind)) check_merged(first);
        return check_reduction(root, t, from);
      case OpKind::kBroadcast: {
        const auto mask = op_.attrs.ints(AttrKey::kMask);
        need_rank(root, mask.size());
        size_t old = 0;
        for (size_t i = 0; i < mask.size(); ++i) {
          if (mask[i] != 0 && mask[i] != 1)
            refuse(ErrorCode::kBadAttribute, "has a mask of other numbers than 0 and 1");
          old += mask[i] == 0 ? 1 : 0;
          if (mask[i] == 1 && (g_[root_of(t)[i]].iter_type != IterType::kBroadcast || g_[root_of(t)[i]].expanded))
            refuse(ErrorCode::kShapeMismatch, "makes an axis that is no broadcast");
        }
        return need_rank(old, from);
      }
      case OpKind::kBroadcastInDim: {
        need_rank(root, view_.slot(1).size());
        const auto old = axes_attr(AttrKey::kDims, root, from);
        for (size_t i = 0; i < root; ++i)
          if (!old[i] && g_[root_of(t)[i]].iter_type != IterType::kBroadcast)
            refuse(ErrorCode::kShapeMismatch, "makes an axis that is no broadcast");
        const auto dims = op_.attrs.ints(AttrKey::kDims);
        if (!std::is_sorted(dims.begin(), dims.end())) refuse(ErrorCode::kBadAxis, "names axes that do not ascend");
        return;
      }
      case OpKind::kPermute:
        need_rank(root, from);
        axes_attr(AttrKey::kDims, from, from);
        return;
      case OpKind::kStrideOrder:
        need_rank(root, from);
        axes_attr(AttrKey::kOrder, from, from);
        return;
      case OpKind::kSqueeze: {
        const auto dropped = axes_attr(AttrKey::kAxes, from);
        const auto domains = logical_without_reductions(g_, g_.tensor_of(first));
        for (size_t i = 0; i < from; ++i)
          if (dropped[i] && evaluate_size(g_, domains[i]).value_or(1) != 1)
            refuse(ErrorCode::kShapeMismatch, "drops an axis whose extent is not 1");
        return need_rank(root, from - op_.attrs.ints(AttrKey::kAxes).size());
      }
      case OpKind::kExpand:
        need_rank(view_.slot(1).size(), from);
        return need_rank(root, from);
      case OpKind::kReshape:
        need_rank(t.logical.size(), view_.slot(1).size());
        // Its readers would take −1 for the extent.
        for (ValueId v : view_.slot(1))
          if (constant_integer(g_, v).value_or(0) < 0)
            refuse(ErrorCode::kShapeMismatch, "leaves an extent open; infer its result again");
        if (!t.root.empty()) need_rank(root, from);
        for (DomainId d : t.logical)
          if (g_[d].iter_type == IterType::kBroadcast && !g_[d].expanded && known_size(g_, d).value_or(1) != 1 &&
              !defects_.has(Defect::kVerifyExtents))
            refuse(ErrorCode::kShapeMismatch, "has a broadcast of another extent than 1; infer its result again");
        return;
      case OpKind::kSlice:
        need_rank(view_.slot(1).size(), from);
        return need_rank(root, from);
      case OpKind::kPad:
        if (const ValueId fill = view_.operand(1)) check_fill(g_[first].dtype, {g_[fill].dtype, true, g_[fill].name});
        if (view_.slot(2).size() % 2 != 0 || view_.slot(2).size() > 2 * from)
          refuse(ErrorCode::kRankMismatch, "has widths for other axes");
        return need_rank(root, from);
      case OpKind::kFull:
        return check_given_shape(view_.slot(1), t);
      case FUSEBOX_RANDOM_OPS:
        for (size_t i : {size_t{0}, size_t{1}})
          if (is_complex(g_[view_.operand(i)].dtype)) refuse(ErrorCode::kDtypeMismatch, "takes two real numbers");
        for (size_t i : {size_t{2}, size_t{3}})
          if (!is_integer(g_[view_.operand(i)].dtype))
            refuse(ErrorCode::kDtypeMismatch, "takes a seed and an offset of integers");
        return check_given_shape(view_.slot(4), t);
      case OpKind::kIota: {
        need_rank(root, 1);
        const auto length = evaluate_integer(g_, first), extent = evaluate_size(g_, root_of(t)[0]);
        if (length && extent && *length != *extent)
          refuse(ErrorCode::kShapeMismatch, "has another extent than its length; infer its result again");
        return;
      }
      case OpKind::kCat:
        if (op_.operands.empty()) refuse(ErrorCode::kOperandCount, "joins no tensor");
        for (ValueId v : op_.operands) need_rank(rank(v), root);
        axis_attr(root);
        return;
      case FUSEBOX_INDEXED_OPS:
      case OpKind::kScatter:
        return check_indexed(root, from);
      case OpKind::kTriu:
        if (view_.operand(1)) need_index(view_.operand(1));
        if (from < 2) refuse(ErrorCode::kRankMismatch, "needs rank 2 or more");
        if (view_.operand(1) && g_.is_tensor(view_.operand(1)))
          refuse(ErrorCode::kWrongKind, "takes a scalar diagonal");
        return need_rank(root, from);
      case FUSEBOX_LIBRARY_OPS:
        return;  // check_library
      case FUSEBOX_SCALAR_OPS:
        break;
      case FUSEBOX_STATEMENT_OPS:
        not_in_family(op_.kind, "is no op of tensors");
    }
    if (demands(op_.kind, kPointwise))
      for (ValueId v : op_.operands)
        if (v && g_.is_tensor(v)) need_rank(rank(v), root);
  }

  const Graph& g_;
  OpId id_;
  const Op& op_;
  OpView view_;
  const Defects& defects_;
};

}  // namespace

void check_op(const Graph& g, OpId op, const Defects& defects) { OpChecker(g, op, defects).run(); }

}  // namespace fusebox
