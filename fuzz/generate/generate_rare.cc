// Builds the small programs of RareFocus (focus.h).
#include <algorithm>

#include "fuzz/generate/constants.h"
#include "fuzz/generate/fusion_maker.h"
#include "ir/scalar/numeric.h"

namespace fusebox::fuzz {

bool FusionMaker::begin_rare(RareFocus rare, GeneratedFusion& result) {
  if (rare == RareFocus::kLongSum) {
    if (!is_offered(OpKind::kSum) || options_.long_sum_one_in == 0) return true;  // it exceeds max_elements
    begin_long_sum();
    result.sums_many = true;
    return false;
  }
  ++result.attempts;
  const bool is_accepted = attempt([&] { return rare_program(rare); });
  result.accepted += is_accepted;
  result.neighbours += is_accepted && rare == RareFocus::kTimesZero;
  wanted_.reset();
  // Another op may spoil the schedule. A library op is alone, so that the automatic plan has nothing else.
  const bool is_whole = rare == RareFocus::kLibraryOp || !random_.one_in(rare == RareFocus::kGappedVectors ? 8 : 4);
  return !(is_accepted && is_whole);
}

std::vector<ValueId> FusionMaker::rare_program(RareFocus rare) {
  const auto offers = [&](std::initializer_list<OpKind> kinds) {
    return std::ranges::all_of(kinds, [&](OpKind kind) { return is_offered(kind); });
  };
  switch (rare) {
    case RareFocus::kWrappingConstants:
      return offers({OpKind::kAdd}) ? of_wrapping_constants() : std::vector<ValueId>();
    case RareFocus::kTimesZero:
      return offers({OpKind::kMul}) ? times_zero() : std::vector<ValueId>();
    case RareFocus::kTwoRandomOps:
      return offers({OpKind::kUniform, OpKind::kNormal, OpKind::kSub}) ? two_random_ops() : std::vector<ValueId>();
    case RareFocus::kDeclaredOrder: {
      if (!offers({OpKind::kStrideOrder, OpKind::kNeg})) return {};
      Extents extents = {random_.between(2, 5), random_.between(2, 7)};
      if (random_.one_in(2)) extents.push_back(random_.between(2, 4));
      ValueId x = new_input(dtype_for(OpKind::kNeg), extents);
      if (random_.one_in(2)) x = unary(g_, OpKind::kNeg, x);
      const ValueId ordered = stride_order(g_, x, permutation(extents.size()));
      return random_.one_in(2) ? std::vector<ValueId>{ordered}
                               : std::vector<ValueId>{ordered, unary(g_, OpKind::kNeg, ordered)};
    }
    case RareFocus::kAddedProduct:
      return offers({OpKind::kMul, OpKind::kAdd, OpKind::kSum}) ? added_product() : std::vector<ValueId>();
    case RareFocus::kSumOfAllBlocks: {
      if (!offers({OpKind::kSum, OpKind::kAdd})) return {};
      Extents extents = {random_.between(2, 9)};
      if (random_.one_in(2)) extents.insert(random_.one_in(2) ? extents.begin() : extents.end(), random_.between(2, 9));
      const ValueId x = new_input(dtype_for(OpKind::kSum), extents);
      const ValueId y = reduce(g_, OpKind::kSum, x, {written(axis_of(x), extents.size())});
      return {pointwise(g_, OpKind::kAdd, {over_its_operand(y), x})};
    }
    case RareFocus::kGappedVectors:
      return offers({OpKind::kNeg}) ? rows_with_gaps() : std::vector<ValueId>();
    case RareFocus::kLibraryOp:
      return library_op();
    case RareFocus::kLongSum:
      break;  // begin_rare makes it
  }
  return {};
}

// An op of two constants of the dtype, whose exact result lies outside of it.
ValueId FusionMaker::wrapping_scalar(Dtype dtype) {
  const int digits = bits(dtype) - is_signed(dtype);
  const int64_t most = (int64_t{1} << digits) - 1, least = is_signed(dtype) ? -most - 1 : 0;
  const auto of = [&](OpKind kind, int64_t a, int64_t b) {
    return pointwise(g_, kind, {constant(g_, dtype, from_int64(dtype, a)), constant(g_, dtype, from_int64(dtype, b))});
  };
  switch (random_.below(is_offered(OpKind::kMul) && is_offered(OpKind::kSub) ? 3 : 1)) {
    case 0:
      return of(OpKind::kAdd, most - random_.between(0, 2), random_.between(3, 100));
    case 1:
      return of(OpKind::kSub, least + random_.between(0, 2), random_.between(3, 100));
    default:
      return of(OpKind::kMul, most / 2 - random_.between(0, 20), random_.between(3, 7));
  }
}

// The wrapped number fills a tensor, or is an operand of its own or of a wider dtype.
std::vector<ValueId> FusionMaker::of_wrapping_constants() {
  constexpr Dtype kDtypes[] = {Dtype::kInt8,  Dtype::kInt16,  Dtype::kInt32,
                               Dtype::kUint8, Dtype::kUint16, Dtype::kUint32};
  const Dtype dtype = random_.pick(kDtypes);
  folds_ = true;
  ValueId v = wrapping_scalar(dtype);
  if (random_.one_in(3)) v = pointwise(g_, OpKind::kAdd, {v, small_constant(dtype)});
  if (random_.one_in(3)) v = cast(g_, v, random_.one_in(2) ? Dtype::kInt64 : Dtype::kFloat);
  if (random_.one_in(3)) return {full(g_, {Scalar(random_.between(1, 5))}, v, g_[v].dtype)};
  return {pointwise(g_, OpKind::kAdd, {new_input(g_[v].dtype, {random_.between(1, 9)}), v})};
}

std::vector<ValueId> FusionMaker::times_zero() {
  wanted_ = dtype_for(OpKind::kMul);
  if (!is_floating(*wanted_) && !is_complex(*wanted_)) wanted_ = Dtype::kFloat;
  const ValueId x = new_input(*wanted_, {random_.between(8, 40)});
  const ValueId zero = constant(g_, *wanted_, fuzz::small_constant(*wanted_, random_.one_in(4) ? -0.0 : 0.0));
  const ValueId made =
      random_.one_in(4) ? pointwise(g_, OpKind::kMul, {zero, x}) : pointwise(g_, OpKind::kMul, {x, zero});
  // Rewrites never replace an output, so another op reads the product.
  return {made, unary(g_, is_offered(OpKind::kNeg) ? OpKind::kNeg : OpKind::kSet, made)};
}

std::vector<ValueId> FusionMaker::two_random_ops() {
  const Shape shape = {index_scalar(random_.between(1, 9)), index_scalar(random_.between(1, 9))};
  const Dtype dtype = dtype_for(OpKind::kUniform);
  const auto made = [&] {
    const ValueId low = constant(g_, dtype, fuzz::small_constant(dtype, 0)),
                  high = constant(g_, dtype, fuzz::small_constant(dtype, 1));
    const ValueId seed = random_word();
    const OpKind kind = random_.one_in(2) ? OpKind::kUniform : OpKind::kNormal;
    return random(g_, kind, shape, low, high, seed, random_word(), dtype);
  };
  const ValueId first = made(), second = made();
  return {pointwise(g_, OpKind::kSub, {first, second})};
}

std::vector<ValueId> FusionMaker::added_product() {
  const Dtype dtype = random_.one_in(2) ? Dtype::kHalf : Dtype::kBfloat16;
  const ValueId x = new_input(dtype, {random_.between(2, 8), random_.between(2, 16)});
  const ValueId product = pointwise(g_, OpKind::kMul, {x, input_beside(x, dtype, true)});
  switch (random_.below(3)) {
    case 0:
      return {pointwise(g_, OpKind::kAdd, {product, input_beside(x, dtype, true)})};
    case 1:
      return {pointwise(g_, OpKind::kAdd, {input_beside(x, dtype, true), product})};
    default:
      return {reduce(g_, OpKind::kSum, cast(g_, product, Dtype::kFloat), {1})};
  }
}

// Rows of whole vectors. Inputs get any stride, so vectors may start anywhere.
std::vector<ValueId> FusionMaker::rows_with_gaps() {
  const int64_t columns = 4 * random_.between(1, 6);
  const Shape shape = {extent_scalar(random_.between(2, 7), false), extent_scalar(columns, false)};
  Dtype dtype = dtype_for(OpKind::kNeg);
  if (size_bytes(dtype) > 8) dtype = Dtype::kFloat;  // a vector of two has 16 bytes at most
  const ValueId x =
      input(g_, "", dtype, shape, {.contiguity = {Contiguity::kFalse, Contiguity::kTrue}, .allocation_order = {}});
  made_.push_back(x);
  return {unary(g_, OpKind::kNeg, x)};
}

std::vector<ValueId> FusionMaker::library_op() {
  std::vector<OpKind> kinds;
  for (const OpRow& row : op_rows())
    if (demands(row.kind, kLibrary) && is_offered(row.kind)) kinds.push_back(row.kind);
  return kinds.empty() ? std::vector<ValueId>() : library(random_.pick(kinds));
}

}  // namespace fusebox::fuzz
