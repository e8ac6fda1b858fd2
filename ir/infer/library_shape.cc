#include "ir/infer/library_shape.h"

#include "ir/domain/axis_relation.h"
#include "ir/infer/is_library.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"

namespace fusebox {
namespace {

class ShapeMaker {
 public:
  explicit ShapeMaker(const OpView& op) : g_(op.g), op_(op) {}

  LibraryShape run() && {
    switch (op_.kind) {
      case OpKind::kMatmul:
        matmul();
        break;
      case OpKind::kLinear:
        linear();
        break;
      case OpKind::kGroupedMm:
        grouped_mm();
        break;
      case OpKind::kCumsum:
      case OpKind::kCumprod:
        scan_axis();
        like_first(dtype_of({0}));
        break;
      case FUSEBOX_EXTREME_SCAN_OPS:
        scan_axis();
        like_first(dtype_of({0}));
        like_first(Dtype::kInt64);
        break;
      case OpKind::kArgsort:
        dtype_of({0});
        scan_axis();
        like_first(Dtype::kInt64);
        break;
      case OpKind::kTopk:
        topk();
        break;
      case OpKind::kSdpfaFwd:
        attention();
        break;
      case OpKind::kSdpfaBwd:
        attention_gradient();
        break;
      case OpKind::kScaledMm:
        scaled_mm();
        break;
      case OpKind::kIndexPutAccumulate:
        index_put();
        break;
      case OpKind::kScatterAdd:
        scatter_add();
        break;
      case FUSEBOX_NON_LIBRARY_OPS:
        not_in_family(op_.kind, "is not computed by a library");
    }
    return std::move(shape_);
  }

 private:
  size_t rank(size_t operand) const { return rank_of(g_, op_.operands[operand]); }

  void need_rank(size_t operand, size_t least, size_t most, const char* advice) const {
    const size_t n = rank(operand);
    if (n >= least && n <= most) return;
    const std::string wanted = least == most      ? std::to_string(least)
                               : most == kAnyRank ? std::to_string(least) + " or more"
                                                  : std::to_string(least) + " or " + std::to_string(most);
    fail(g_, ErrorCode::kRankMismatch,
         op_text(op_.kind) + " needs rank " + wanted + " here, not " + std::to_string(n) + "; " + advice,
         op_.operands[operand]);
  }

  // The dtype that these operands share. ATen does not promote the operands of these ops.
  Dtype dtype_of(std::initializer_list<size_t> operands) const {
    const Dtype first = g_[op_.operands[*operands.begin()]].dtype;
    for (size_t k : operands)
      if (const ValueId v = op_.operand(k); v && g_[v].dtype != first)
        fail(g_, ErrorCode::kDtypeMismatch,
             op_text(op_.kind) + " takes operands of one dtype, here " + std::string(text(first)) + " and " +
                 std::string(text(g_[v].dtype)) + "; cast one of them first",
             v);
    const ValueId v = op_.operands[*operands.begin()];
    const OperandType type{first, false, g_[v].name};
    return result_dtype(op_.kind, {&type, 1}, op_.attrs);
  }

  static LibraryAxis at(size_t operand, size_t axis) { return {{{operand, axis}}, 0}; }
  void equal(size_t a, size_t axis_a, size_t b, size_t axis_b) { shape_.equal.push_back({{a, axis_a}, {b, axis_b}}); }
  // A result with the axes of an operand.
  void like(size_t operand, Dtype dtype) {
    LibraryResult r{dtype, {}};
    for (size_t i = 0; i < rank(operand); ++i) r.axes.push_back(at(operand, i));
    shape_.results.push_back(std::move(r));
  }
  void like_first(Dtype dtype) { like(0, dtype); }

  size_t scan_axis() const {
    const AttrValue* v = op_.attrs.find(AttrKey::kAxis);
    if (!v) fail(g_, ErrorCode::kBadAttribute, op_text(op_.kind) + " needs the attribute `axis`", op_.operands[0]);
    const int64_t axis = std::get<int64_t>(*v), n = static_cast<int64_t>(rank(0));
    if (axis < -n || axis >= n)
      fail(g_, ErrorCode::kBadAxis,
           op_text(op_.kind) + " names axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(n) +
               "; name one that it has",
           op_.operands[0]);
    return named_axis(axis, rank(0));
  }

  // An operand of rank 1 is a row on the left and a column on the right, and its new axis is dropped again. Batch axes
  // are aligned to the right and broadcast.
  void matmul() {
    for (size_t k : {size_t{0}, size_t{1}}) need_rank(k, 1, kAnyRank, "broadcast makes axes");
    const size_t a = rank(0), b = rank(1);
    equal(0, a - 1, 1, b == 1 ? 0 : b - 2);
    LibraryResult r{dtype_of({0, 1}), {}};
    const size_t batch_a = a < 2 ? 0 : a - 2, batch_b = b < 2 ? 0 : b - 2, batch = std::max(batch_a, batch_b);
    for (size_t i = 0; i < batch; ++i) {
      LibraryAxis axis;
      if (i + batch_a >= batch) axis.from.push_back({0, i + batch_a - batch});
      if (i + batch_b >= batch) axis.from.push_back({1, i + batch_b - batch});
      r.axes.push_back(std::move(axis));
    }
    if (a > 1) r.axes.push_back(at(0, a - 2));
    if (b > 1) r.axes.push_back(at(1, b - 1));
    shape_.results.push_back(std::move(r));
  }

  // x [..., k], weight [n, k] or [k], bias [n] or []
  void linear() {
    need_rank(0, 1, kAnyRank, "broadcast makes axes");
    need_rank(1, 1, 2, "a weight has the axes of results and of inputs");
    const size_t x = rank(0), w = rank(1);
    equal(0, x - 1, 1, w - 1);
    LibraryResult r{dtype_of({0, 1, 2}), {}};
    for (size_t i = 0; i + 1 < x; ++i) r.axes.push_back(at(0, i));
    if (w == 2) r.axes.push_back(at(1, 0));
    if (op_.operand(2)) {
      need_rank(2, w - 1, w - 1, "a bias has the weight's axis of results");
      if (w == 2) equal(2, 0, 1, 0);
    }
    shape_.results.push_back(std::move(r));
  }

  // a [m, k] and b [g, k, n], groups of rows; a [g, m, k] and b [k, n], groups of columns; or a [m, k] and b [k, n],
  // groups of k.
  void grouped_mm() {
    for (size_t k : {size_t{0}, size_t{1}}) need_rank(k, 2, 3, "the groups of both are one axis more");
    need_rank(2, 1, 1, "it has the end of each group");
    if (rank(0) == 3 && rank(1) == 3)
      fail(g_, ErrorCode::kRankMismatch, "grouped_mm needs an operand of rank 2; matmul multiplies batches",
           op_.operands[1]);
    if (g_[op_.operands[2]].dtype != Dtype::kInt32)
      fail(g_, ErrorCode::kDtypeMismatch, "grouped_mm takes the ends of groups as i32; cast them first",
           op_.operands[2]);
    const size_t a = rank(0), b = rank(1);
    equal(0, a - 1, 1, b - 2);
    LibraryResult r{dtype_of({0, 1}), {}};
    if (a == 3) equal(2, 0, 0, 0);
    if (b == 3) equal(2, 0, 1, 0);
    if (a == 2 && b == 2) r.axes.push_back(at(2, 0));
    r.axes.push_back(at(0, a - 2));
    r.axes.push_back(at(1, b - 1));
    shape_.results.push_back(std::move(r));
  }

  // a [m, k] and b [k, n] of 8-bit floats; scales [] or [m] and [] or [n] of f32; bias [n] of the result's dtype
  void scaled_mm() {
    for (size_t k : {size_t{0}, size_t{1}}) need_rank(k, 2, 2, "it multiplies two matrices");
    for (size_t k : {size_t{2}, size_t{3}}) {
      need_rank(k, 0, 1, "a scale is one number, or one for each row of the first and each column of the second");
      if (g_[op_.operands[k]].dtype != Dtype::kFloat)
        fail(g_, ErrorCode::kDtypeMismatch, "scaled_mm takes scales of f32; cast them first", op_.operands[k]);
    }
    const AttrValue* as = op_.attrs.find(AttrKey::kDtypeAttr);
    if (!as) fail(g_, ErrorCode::kBadAttribute, "scaled_mm needs the attribute `as`", op_.operands[0]);
    const Dtype dtype = std::get<Dtype>(*as);
    if (dtype != Dtype::kHalf && dtype != Dtype::kBfloat16 && dtype != Dtype::kFloat)
      fail(g_, ErrorCode::kUnsupportedDtype,
           "scaled_mm gives no " + std::string(text(dtype)) + "; ask for f16, bf16 or f32", op_.operands[0]);
    for (size_t k : {size_t{0}, size_t{1}}) {
      const OperandType type{g_[op_.operands[k]].dtype, false, g_[op_.operands[k]].name};
      result_dtype(op_.kind, {&type, 1}, op_.attrs);
    }
    equal(0, 1, 1, 0);
    if (rank(2) == 1) equal(2, 0, 0, 0);
    if (rank(3) == 1) equal(3, 0, 1, 1);
    if (const ValueId bias = op_.operand(4)) {
      need_rank(4, 1, 1, "a bias has the axis of columns");
      equal(4, 0, 1, 1);
      if (g_[bias].dtype != dtype)
        fail(g_, ErrorCode::kDtypeMismatch, "scaled_mm takes a bias of the result's dtype; cast it first", bias);
    }
    shape_.results.push_back({dtype, {at(0, 0), at(1, 1)}});
  }

  void topk() {
    const Dtype dtype = dtype_of({0});
    const size_t axis = scan_axis();
    if (!is_integer(g_[op_.operands[1]].dtype))
      fail(g_, ErrorCode::kDtypeMismatch, "topk takes an integer number of elements; cast it first", op_.operands[1]);
    if (const auto k = constant_integer(g_, op_.operands[1]); k && *k < 0)
      fail(g_, ErrorCode::kBadAttribute, "topk takes 0 or more elements", op_.operands[1]);
    like_first(dtype);
    shape_.results[0].axes[axis] = {{}, 1};
    shape_.results.push_back(shape_.results[0]);
    shape_.results[1].dtype = Dtype::kInt64;
    shape_.at_most.push_back({1, {0, axis}});
  }

  // The ranks and agreeing axes of query [n, h, l, e], key [n, h, s, e] and value [n, h, s, v], which begin at `first`.
  void attention_operands(size_t first) {
    for (size_t k = first; k < first + 3; ++k) need_rank(k, 4, 4, "it has a batch, heads, a sequence and features");
    for (size_t k : {first + 1, first + 2})
      for (size_t axis : {size_t{0}, size_t{1}}) equal(first, axis, k, axis);
    equal(first, 3, first + 1, 3);
    equal(first + 1, 2, first + 2, 2);
    const ValueId scale = op_.operands.back();
    if (scale && is_complex(g_[scale].dtype))
      fail(g_, ErrorCode::kDtypeMismatch, op_text(op_.kind) + " takes a real scale; take its real part", scale);
  }
  static Dtype sum_dtype(Dtype dtype) { return dtype == Dtype::kDouble ? dtype : Dtype::kFloat; }

  void attention() {
    const Dtype dtype = dtype_of({0, 1, 2});
    attention_operands(0);
    shape_.results.push_back({dtype, {at(0, 0), at(0, 1), at(0, 2), at(2, 3)}});
    shape_.results.push_back({sum_dtype(dtype), {at(0, 0), at(0, 1), at(0, 2)}});
  }

  void attention_gradient() {
    const Dtype dtype = dtype_of({0, 1, 2, 3, 4});
    attention_operands(1);
    for (size_t k : {size_t{0}, size_t{4}}) {
      need_rank(k, 4, 4, "it has the axes of the attention's output");
      for (size_t axis : {size_t{0}, size_t{1}, size_t{2}}) equal(k, axis, 1, axis);
      equal(k, 3, 3, 3);
    }
    need_rank(5, 3, 3, "it has a batch, heads and a sequence");
    for (size_t axis : {size_t{0}, size_t{1}, size_t{2}}) equal(5, axis, 1, axis);
    if (g_[op_.operands[5]].dtype != sum_dtype(dtype))
      fail(g_, ErrorCode::kDtypeMismatch,
           "sdpfa_bwd takes the log_sumexp of sdpfa_fwd, of " + std::string(text(sum_dtype(dtype))) +
               "; give that result",
           op_.operands[5]);
    for (size_t k : {size_t{1}, size_t{2}, size_t{3}}) like(k, dtype);
  }

  // arg [v, ...], index [n], rows [n, ...]
  void index_put() {
    need_rank(0, 1, kAnyRank, "its first axis has the rows");
    need_rank(1, 1, 1, "it has a row for each source");
    need_rank(2, rank(0), rank(0), "it has a row for each index");
    const ValueId index = op_.operands[1];
    if (g_[index].dtype != Dtype::kInt32 && g_[index].dtype != Dtype::kInt64)
      fail(g_, ErrorCode::kDtypeMismatch, "the index of index_put_accumulate is of i32 or i64; cast it first", index);
    equal(1, 0, 2, 0);
    for (size_t i = 1; i < rank(0); ++i) equal(0, i, 2, i);
    like_first(dtype_of({0, 2}));
  }

  // arg, index and source of one rank; the index has the source's extents, and is no longer than arg on other axes
  void scatter_add() {
    need_rank(0, 1, kAnyRank, "broadcast makes axes");
    for (size_t k : {size_t{1}, size_t{2}}) need_rank(k, rank(0), rank(0), "it has the axes of the tensor");
    const size_t axis = scan_axis();
    const ValueId index = op_.operands[1];
    if (g_[index].dtype != Dtype::kInt32 && g_[index].dtype != Dtype::kInt64)
      fail(g_, ErrorCode::kDtypeMismatch, "the index of scatter_add is of i32 or i64; cast it first", index);
    for (size_t i = 0; i < rank(0); ++i) {
      equal(1, i, 2, i);
      if (i != axis) shape_.within.push_back({{1, i}, {0, i}});
    }
    like_first(dtype_of({0, 2}));
  }

  static constexpr size_t kAnyRank = static_cast<size_t>(-1);
  const Graph& g_;
  const OpView& op_;
  LibraryShape shape_;
};

}  // namespace

LibraryShape library_shape(const OpView& op) { return ShapeMaker(op).run(); }

bool is_library(const Graph& g, const Op& op) {
  if (demands(op.kind, kLibrary)) return true;
  return !op.operands.empty() && op.operands[0] && g.is_tensor(op.operands[0]) &&
         is_library(op.kind, g[op.operands[0]].dtype);
}

DomainId domain_at(const Graph& g, std::span<const ValueId> operands, OperandPlace place) {
  return logical_without_reductions(g, g.tensor_of(operands[place.operand]))[place.axis];
}

}  // namespace fusebox
