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
  if (!is_accepted) stored_ = target_ = {};
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
    case RareFocus::kGatheredOp:
      return gathered_op();
    case RareFocus::kTwoScopes:
      return offers({OpKind::kNeg, OpKind::kPermute}) ? two_scopes() : std::vector<ValueId>();
    case RareFocus::kTwoClusterSums:
      return offers({OpKind::kSum, OpKind::kMax}) ? two_cluster_sums() : std::vector<ValueId>();
    case RareFocus::kFewMoments:
      return offers({OpKind::kWelford, OpKind::kNeg}) ? moments_of_few() : std::vector<ValueId>();
    case RareFocus::kStoredOverSegments:
      return options_.aliases && options_.layouts && options_.symbolic &&
                     offers({OpKind::kNeg, OpKind::kSlice, OpKind::kPermute, OpKind::kCat})
                 ? stored_over_segments()
                 : std::vector<ValueId>();
    case RareFocus::kStoredOverGathered:
      return options_.aliases && offers({OpKind::kAdd, OpKind::kNeg}) ? stored_over_gathered() : std::vector<ValueId>();
    case RareFocus::kTwoWidths:
      return offers({OpKind::kSet, OpKind::kNeg, OpKind::kAdd}) ? two_widths() : std::vector<ValueId>();
    case RareFocus::kConvertedTwice:
      return offers({OpKind::kSum, OpKind::kBroadcast, OpKind::kAdd, OpKind::kMul}) ? converted_twice()
                                                                                    : std::vector<ValueId>();
    case RareFocus::kRoundedResult:
      return offers({OpKind::kCast}) ? rounded_result() : std::vector<ValueId>();
    case RareFocus::kResizedAlike:
      return offers({OpKind::kNeg}) ? resized_alike() : std::vector<ValueId>();
    case RareFocus::kLaterResult:
      return offers({OpKind::kWelford, OpKind::kNeg, OpKind::kAdd}) ? later_result() : std::vector<ValueId>();
    case RareFocus::kLayoutOfOne:
      return options_.layouts && options_.symbolic && offers({OpKind::kNeg}) ? layout_of_one() : std::vector<ValueId>();
    case RareFocus::kFromTheLesser:
      return options_.symbolic && offers({OpKind::kSlice, OpKind::kNeg}) ? from_the_lesser() : std::vector<ValueId>();
    case RareFocus::kStretchedSum:
      return offers({OpKind::kSum, OpKind::kMax, OpKind::kBroadcast, OpKind::kSub, OpKind::kExpand})
                 ? stretched_sum()
                 : std::vector<ValueId>();
    case RareFocus::kBehindColumns: {
      if (!offers({OpKind::kSum, OpKind::kSub, OpKind::kNeg, OpKind::kAdd, OpKind::kBroadcast, OpKind::kCast}))
        return {};
      const Extents extents = {random_.between(2, 9), random_.between(2, 9)};
      return behind_columns(new_input(Dtype::kFloat, extents));
    }
    case RareFocus::kSizesFoundEqual:
      return options_.symbolic && offers({OpKind::kReshape, OpKind::kSlice, OpKind::kExpand, OpKind::kPad, OpKind::kSum,
                                          OpKind::kBroadcast, OpKind::kNeg})
                 ? sizes_found_equal()
                 : std::vector<ValueId>();
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
  // A sum with 0 has another sign of zero than x, where that is -0.
  const OpKind kind = random_.one_in(2) && is_offered(OpKind::kAdd) ? OpKind::kAdd : OpKind::kMul;
  const ValueId made = random_.one_in(4) ? pointwise(g_, kind, {zero, x}) : pointwise(g_, kind, {x, zero});
  // Rewrites never replace an output, so another op reads the result.
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

// What a gather reads is an op of a tensor and another, which may have one element along the gathered axis.
std::vector<ValueId> FusionMaker::gathered_op() {
  constexpr OpKind kOps[] = {OpKind::kSub, OpKind::kAdd, OpKind::kMul};
  constexpr OpKind kGathers[] = {OpKind::kTakeAlongAxis, OpKind::kTakeAlongAxis, OpKind::kIndexSelect, OpKind::kGather,
                                 OpKind::kSelect};
  const OpKind kind = random_.pick(kOps), gather = random_.pick(kGathers);
  if (!is_offered(kind) || !is_offered(gather)) return {};
  const Extents extents = {random_.between(2, 5), random_.between(2, 7)};
  const Dtype dtype = dtype_for(kind);
  const ValueId x = new_input(dtype, extents);
  ValueId y;
  if (random_.one_in(3)) {
    y = input_beside(x, dtype, false);
  } else {
    std::vector<bool> is_one(extents.size());
    is_one[random_.below(extents.size())] = true;
    Extents narrow = extents;
    Shape whole;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (is_one[i]) narrow[i] = 1;
      whole.push_back(size_of(g_, x, static_cast<int64_t>(i)));
    }
    y = new_input(dtype, narrow, is_one);
    if (random_.one_in(2) && is_offered(OpKind::kExpand)) y = expand(g_, y, whole);
  }
  ValueId made = pointwise(g_, kind, {x, y});
  if (random_.one_in(4) && is_offered(OpKind::kTriu)) made = triu(g_, made, random_.between(-2, 3));
  first_operand_ = made;
  const std::vector<ValueId> results = indexed(gather);
  first_operand_ = {};
  return results.empty() ? results : with_reader(results);
}

// Two tensors that others read transposed, and one that is also read in place. The schedule keeps one of them in shared
// memory, the other in global memory.
std::vector<ValueId> FusionMaker::two_scopes() {
  const Extents extents = {random_.between(2, 6), random_.between(2, 6)};
  const Dtype dtype = dtype_for(OpKind::kNeg);
  const ValueId a = unary(g_, OpKind::kNeg, new_input(dtype, extents));
  const ValueId s = unary(g_, OpKind::kNeg, new_input(dtype, extents));
  // Results become outputs in reverse, and ops stand in the order in which outputs need them.
  std::vector<ValueId> results = {permute(g_, a, {1, 0}), permute(g_, s, {1, 0}), unary(g_, OpKind::kNeg, a)};
  if (random_.one_in(3)) random_.shuffle(results);
  return results;
}

std::vector<ValueId> FusionMaker::two_cluster_sums() {
  const ValueId x = new_input(dtype_for(OpKind::kSum), {random_.between(2, 4), random_.between(4, 24)});
  std::vector<ValueId> results = {reduce(g_, random_.one_in(3) ? OpKind::kMax : OpKind::kSum, x, {0, 1}),
                                  reduce(g_, OpKind::kSum, x, {1})};
  random_.shuffle(results);
  return results;
}

// Rows of two lengths that meet in the broadcast of a sum: the input's own, and another one that may be longer than what a
// schedule for the input's rows keeps.
std::vector<ValueId> FusionMaker::stretched_sum() {
  constexpr OpKind kReductions[] = {OpKind::kSum, OpKind::kMax};
  constexpr int64_t kLengths[] = {1, 2, 7, 33, 65, 129, 300};
  const int64_t axis = random_.between(0, 1), rows = random_.between(2, 5);
  const auto extents = [&](int64_t length) { return axis == 1 ? Extents{rows, length} : Extents{length, rows}; };
  const ValueId x = new_input(dtype_for(OpKind::kSum), extents(random_.between(2, 12)));
  const ValueId s = reduce(g_, random_.pick(kReductions), x, {axis});
  const ValueId wide = broadcast(g_, s, {axis == 0, axis == 1});
  const Extents other = extents(random_.pick(kLengths));
  Shape shape;
  for (size_t i = 0; i < other.size(); ++i)
    shape.push_back(static_cast<int64_t>(i) == axis
                        ? (random_.one_in(2) ? Scalar(other[i]) : Scalar(index_input(other[i])))
                        : Scalar(size_of(g_, x, static_cast<int64_t>(i))));
  ValueId stretched = expand(g_, wide, shape);
  if (random_.one_in(3)) stretched = pointwise(g_, OpKind::kSub, {stretched, wide});
  std::vector<ValueId> results = {reduce(g_, random_.pick(kReductions), stretched, {axis}),
                                  pointwise(g_, OpKind::kSub, {x, wide})};
  random_.shuffle(results);
  return results;
}

// Rows with no, one or a few elements. Nothing reads the count, so that a rewrite may take the moments apart.
std::vector<ValueId> FusionMaker::moments_of_few() {
  constexpr int64_t kColumns[] = {0, 0, 1, 2, 3, 7};
  const Dtype dtype = random_.one_in(3) ? Dtype::kDouble : Dtype::kFloat;
  ValueId x = new_input(dtype, {random_.between(1, 4), random_.pick(kColumns)});
  if (random_.one_in(3)) x = unary(g_, OpKind::kNeg, x);
  const WelfordResult w = welford(g_, x, {random_.one_in(8) ? int64_t{0} : int64_t{1}});
  switch (random_.below(3)) {
    case 0:
      return {unary(g_, OpKind::kNeg, w.avg)};
    case 1:
      return {unary(g_, OpKind::kNeg, w.var_sum)};
    default:
      return {unary(g_, OpKind::kNeg, w.avg), unary(g_, OpKind::kNeg, w.var_sum)};
  }
}

// A result is stored over an input with a layout of its own, and is read by ops that follow this layout. The input may
// have an axis of one element that a cat keeps from being a broadcast, where the result's axis is one.
std::vector<ValueId> FusionMaker::stored_over_segments() {
  Extents extents = {random_.between(2, 5), random_.between(2, 7)};
  const Dtype dtype = dtype_for(OpKind::kNeg);
  if (random_.one_in(2)) {
    extents.insert(extents.begin() + 1, 1);
    InputOptions layout{.contiguity = {}, .allocation_order = {}};
    Shape shape;
    for (int64_t e : extents) {
      shape.push_back(Scalar(symbol(e)));
      layout.contiguity.push_back(random_.one_in(2) ? Contiguity::kTrue : Contiguity::kFalse);
    }
    const ValueId target = input(g_, "", dtype, shape, layout);
    const ValueId x = new_input(dtype, extents, {false, true, false});
    const ValueId joined = cat(g_, {target, target}, 1), y = unary(g_, OpKind::kNeg, x);
    stored_ = y, target_ = target;
    return {joined, y, unary(g_, OpKind::kNeg, y)};
  }
  const ValueId x = new_input(dtype, extents);
  const ValueId y = unary(g_, OpKind::kNeg, x);
  Shape starts, stops;
  for (int64_t e : extents) {
    starts.push_back(Scalar(random_.between(0, 1)));
    stops.push_back(Scalar(random_.between(1, e)));
  }
  const ValueId z = random_.one_in(3) ? permute(g_, y, {1, 0}) : slice(g_, y, starts, stops);
  stored_ = y, target_ = {};
  return {y, z, unary(g_, OpKind::kNeg, z)};
}

}  // namespace fusebox::fuzz
