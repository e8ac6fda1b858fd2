// Small programs of RareFocus (focus.h) in which it matters how a value is read: by data, in vectors, in another dtype, or
// in the loops of its reader.
#include <algorithm>

#include "fuzz/generate/fusion_maker.h"
#include "ir/domain/domain.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"

namespace fusebox::fuzz {

// The op that overwrites the input stands before, behind or above the one that reads it by data.
std::vector<ValueId> FusionMaker::stored_over_gathered() {
  constexpr OpKind kGathers[] = {OpKind::kIndexSelect, OpKind::kTakeAlongAxis, OpKind::kGather};
  const OpKind kind = random_.pick(kGathers);
  if (!is_offered(kind)) return {};
  Extents extents = {random_.between(2, 40)};
  if (random_.one_in(3)) extents.push_back(random_.between(2, 5));
  const Dtype dtype = dtype_for(OpKind::kAdd);
  const ValueId x = new_input(dtype, extents);
  const size_t axis = axis_of(x);
  const Dtype places = random_.one_in(2) ? Dtype::kInt64 : Dtype::kInt32;
  const ValueId index = kind == OpKind::kIndexSelect ? new_input(places, {extents[axis]}) : new_input(places, extents);
  const int64_t at = written(axis, extents.size());
  const ValueId gathered = kind == OpKind::kIndexSelect     ? index_select(g_, x, index, at)
                           : kind == OpKind::kTakeAlongAxis ? take_along_axis(g_, x, index, at)
                                                            : gather(g_, x, index, at);
  target_ = x;
  if (random_.one_in(2)) {
    const ValueId other = random_.one_in(2) ? x : unary(g_, OpKind::kNeg, x);
    stored_ = pointwise(g_, OpKind::kAdd, {gathered, other});
    return {stored_};
  }
  stored_ = unary(g_, OpKind::kNeg, x);
  std::vector<ValueId> results = {stored_, random_.one_in(2) ? gathered : unary(g_, OpKind::kNeg, gathered)};
  if (random_.one_in(2)) std::swap(results[0], results[1]);
  return results;
}

// Two copies of rows. The schedule makes them in vectors of their own widths; the address may suit only one of these.
std::vector<ValueId> FusionMaker::two_widths() {
  Dtype dtype = dtype_for(OpKind::kNeg);
  if (size_bytes(dtype) > 4) dtype = Dtype::kFloat;
  const Shape shape = {extent_scalar(random_.between(1, 5), false), extent_scalar(8 * random_.between(1, 3), false)};
  const ValueId x =
      input(g_, "", dtype, shape, {.contiguity = {Contiguity::kTrue, Contiguity::kTrue}, .allocation_order = {}});
  made_.push_back(x);
  const ValueId first = unary(g_, OpKind::kSet, x), second = unary(g_, OpKind::kSet, x);
  if (random_.one_in(3)) return {pointwise(g_, OpKind::kAdd, {first, second})};
  return {unary(g_, OpKind::kNeg, first), unary(g_, OpKind::kNeg, second)};
}

// A sum of integers for each row, and two rows of floats that read it. Their loops are guarded each in its own way.
std::vector<ValueId> FusionMaker::converted_twice() {
  constexpr Dtype kIntegers[] = {Dtype::kInt32, Dtype::kInt64, Dtype::kUint8, Dtype::kInt16};
  constexpr Dtype kFloats[] = {Dtype::kFloat, Dtype::kDouble, Dtype::kHalf};
  const int64_t rows = random_.between(1, 4);
  const Dtype floats = random_.pick(kFloats);
  const ValueId x = new_input(random_.pick(kIntegers), {rows, random_.between(2, 40)});
  const ValueId sum = reduce(g_, OpKind::kSum, x, {1});
  std::vector<ValueId> results;
  for (const OpKind kind : {OpKind::kAdd, OpKind::kMul}) {
    const ValueId row = new_input(floats, {rows, random_.between(2, random_.one_in(2) ? 8 : 80)});
    results.push_back(pointwise(g_, kind, {row, broadcast(g_, sum, {false, true})}));
  }
  if (random_.one_in(2)) std::swap(results[0], results[1]);
  return results;
}

// Any op of one or two 16-bit operands. The reader would show digits that its rounding should have removed.
std::vector<ValueId> FusionMaker::rounded_result() {
  const Dtype dtype = random_.one_in(2) ? Dtype::kHalf : Dtype::kBfloat16;
  constexpr OpKind kArithmetic[] = {OpKind::kAdd,       OpKind::kSub,       OpKind::kMul,
                                    OpKind::kTruediv,   OpKind::kRemainder, OpKind::kFmod,
                                    OpKind::kRemainder, OpKind::kMinimum,   OpKind::kMaximum};
  std::vector<OpKind> kinds;
  for (OpKind kind : generated_ops()) {
    const size_t operands = row_of(kind).format->all().size();
    if (demands(kind, kPointwise) && is_offered(kind) && kind != OpKind::kCast && (operands == 1 || operands == 2) &&
        accepts_dtype(kind, dtype))
      kinds.push_back(kind);
  }
  const OpKind drawn = random_.pick(kArithmetic);
  const OpKind kind = !kinds.empty() && (random_.one_in(3) || !is_offered(drawn)) ? random_.pick(kinds) : drawn;
  if (!is_offered(kind)) return {};
  const ValueId x = new_input(dtype, {random_.between(8, 48)});
  std::vector<ValueId> operands = {x};
  if (row_of(kind).format->all().size() == 2) operands.push_back(input_beside(x, dtype, false));
  const ValueId y = pointwise(g_, kind, operands);
  if (g_[y].dtype != dtype) return {y};
  return {cast(g_, y, random_.one_in(4) ? Dtype::kDouble : Dtype::kFloat)};
}

std::vector<ValueId> FusionMaker::resized_alike() {
  Extents extents = {random_.between(2, 9)};
  if (random_.one_in(3)) extents.push_back(random_.between(2, 5));
  const ValueId x = new_input(dtype_for(OpKind::kNeg), extents);
  return {unary(g_, OpKind::kNeg, unary(g_, OpKind::kNeg, x))};
}

// Reads mostly one result of an op with three. One row is stretched along more elements.
std::vector<ValueId> FusionMaker::later_result() {
  const int64_t rows = random_.one_in(3) ? 1 : random_.between(2, 7);
  const WelfordResult w = welford(g_, new_input(Dtype::kFloat, {rows, random_.between(1, 5)}), {1});
  const ValueId read = random_.one_in(4) ? w.avg : random_.one_in(4) ? w.n : w.var_sum;
  std::vector<ValueId> results = {
      rows == 1 ? pointwise(g_, OpKind::kAdd, {read, new_input(g_[read].dtype, {random_.between(2, 5)})})
                : unary(g_, OpKind::kNeg, read)};
  if (random_.one_in(3)) results.push_back(unary(g_, OpKind::kNeg, w.avg));
  return results;
}

std::vector<ValueId> FusionMaker::layout_of_one() {
  Extents extents = {random_.between(1, 4), random_.between(1, 5)};
  if (random_.one_in(3)) extents.push_back(random_.between(1, 3));
  extents[random_.below(extents.size())] = 1;
  InputOptions layout{.contiguity = {}, .allocation_order = permutation(extents.size())};
  Shape shape;
  for (int64_t e : extents) {
    shape.push_back(Scalar(symbol(e)));
    layout.contiguity.push_back(random_.one_in(2) ? Contiguity::kTrue : Contiguity::kFalse);
  }
  const ValueId x = input(g_, "", dtype_for(OpKind::kNeg), shape, layout);
  for (DomainId d : g_.tensor_of(x).logical)
    if (random_.one_in(2)) g_[d].iter_type = IterType::kSymbolic;
  made_.push_back(x);
  return {unary(g_, OpKind::kNeg, x)};
}

// A row from the lesser of its size and another tensor's size on. Vectors may start there only if both sizes are multiples
// of their width.
std::vector<ValueId> FusionMaker::from_the_lesser() {
  const int64_t start = 4 * random_.between(1, 3), columns = start + 4 * random_.between(1, 4);
  const Dtype dtype = dtype_for(OpKind::kNeg);
  if (size_bytes(dtype) > 8) return {};  // a vector of two has 16 bytes at most
  const ValueId from = symbol(start), size = symbol(columns);
  Shape shape = {Scalar(size)}, starts, stops;
  if (random_.one_in(2)) shape.insert(shape.begin(), extent_scalar(random_.between(1, 4), false));
  const ValueId x = input(g_, "", dtype, shape);
  const ValueId other = input(g_, "", dtype, {Scalar(from)});
  made_.insert(made_.end(), {other, x});
  std::vector<ValueId> sizes = {from, size};
  random_.shuffle(sizes);
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool is_cut = i + 1 == shape.size();
    starts.push_back(is_cut ? Scalar(pointwise(g_, OpKind::kMinimum, sizes)) : Scalar(0));
    stops.push_back(size_of(g_, x, static_cast<int64_t>(i)));
  }
  const ValueId rest = slice(g_, x, starts, stops);
  return {unary(g_, OpKind::kNeg, rest), unary(g_, OpKind::kNeg, other)};
}

ValueId FusionMaker::equal_form(ValueId x, size_t axis) {
  const ValueId n = size_of(g_, x, static_cast<int64_t>(axis)), k = constant_index(g_, random_.between(1, 3));
  switch (random_.below(7)) {
    case 0:
      return pointwise(g_, OpKind::kSub, {n, constant_index(g_, 0)});
    case 1:
      return pointwise(g_, OpKind::kMul, {n, constant_index(g_, 1)});
    case 2:
      return pointwise(g_, random_.one_in(2) ? OpKind::kMinimum : OpKind::kMaximum, {n, n});
    case 3:
      return pointwise(g_, OpKind::kMaximum, {n, constant_index(g_, 0)});
    case 4:
      return pointwise(g_, OpKind::kSub, {pointwise(g_, OpKind::kAdd, {n, k}), k});
    case 5:
      return index_input(extent_of(x, axis));
    default:
      return n;
  }
}

ValueId FusionMaker::moved_by_equal_sizes(ValueId x) {
  const Extents extents = extents_of(x);
  const size_t rank = extents.size(), at = axis_of(x);
  Shape sizes, starts(rank, Scalar(0)), widths(2 * rank, Scalar(0));
  for (size_t i = 0; i < rank; ++i) sizes.emplace_back(equal_form(x, i));
  switch (random_.below(6)) {
    case 0:  // a new axis of one element, whose extent the inputs may give
      sizes.insert(sizes.begin() + static_cast<int64_t>(at), random_.one_in(2) ? Scalar(1) : Scalar(index_input(1)));
      return reshape(g_, x, sizes);
    case 1: {  // two axes as one, or one as two
      if (rank > 1 && random_.one_in(2)) {
        const size_t first = std::min(at, rank - 2);
        const ValueId product = pointwise(g_, OpKind::kMul, {sizes[first].value, sizes[first + 1].value});
        sizes.erase(sizes.begin() + static_cast<int64_t>(first));
        sizes[first] = Scalar(product);
        return reshape(g_, x, sizes);
      }
      const int64_t outer = extents[at] % 2 == 0 ? 2 : 1;
      sizes[at] = index_scalar(extents[at] / outer);
      sizes.insert(sizes.begin() + static_cast<int64_t>(at), index_scalar(outer));
      return reshape(g_, x, sizes);
    }
    case 2:  // whole, or a part whose bounds the inputs give
      if (random_.one_in(2)) {
        starts[at] = Scalar(index_input(random_.between(0, 1)));
        sizes[at] = Scalar(index_input(random_.between(1, std::max<int64_t>(extents[at], 1))));
      }
      return slice(g_, x, starts, sizes);
    case 3:
      for (size_t i = 0; i < rank; ++i)
        if (extents[i] == 1 && random_.one_in(2)) sizes[i] = Scalar(index_input(random_.between(1, 4)));
      return expand(g_, x, sizes);
    case 4:
      widths[2 * (rank - 1 - at) + random_.below(2)] = Scalar(random_.between(0, 2));
      return pad(g_, x, widths);
    default: {
      if (rank > 1 && extents[at] == 1 && random_.one_in(2)) return squeeze(g_, x, {static_cast<int64_t>(at)});
      if (random_.one_in(2)) {
        std::vector<bool> mask(rank + 1);
        mask[at] = true;
        return broadcast(g_, x, mask);
      }
      Axes dims;
      for (size_t i = 0; i < rank; ++i) dims.push_back(static_cast<int64_t>(i));
      sizes.emplace_back(index_scalar(random_.between(1, 4)));
      return broadcast_in_dim(g_, x, sizes, dims);
    }
  }
}

// A chain of moves, of which only the inputs or a rewrite show what each does to an axis. The result may be reduced, and may
// overwrite an input.
std::vector<ValueId> FusionMaker::sizes_found_equal() {
  Shape shape;
  for (size_t rank = 1 + random_.below(2); rank > 0; --rank)
    shape.emplace_back(symbol(random_.one_in(3) ? 1 : random_.between(2, 5)));
  ValueId x = input(g_, "", dtype_for(OpKind::kNeg), shape);
  if (random_.one_in(2)) {
    for (DomainId d : g_.tensor_of(x).logical) g_[d].iter_type = IterType::kSymbolic;
    g_.tensor_of(x).contiguity.clear();
  }
  made_.push_back(x);
  for (int64_t moves = random_.between(3, 6); moves > 0; --moves) x = moved_by_equal_sizes(x);
  if (random_.one_in(3) && rank_of(g_, x) > 0 && takes(OpKind::kSum, g_[x].dtype))
    x = reduce(g_, OpKind::kSum, x, {written(axis_of(x), rank_of(g_, x))});
  const ValueId y = unary(g_, OpKind::kNeg, x);
  if (options_.aliases && random_.one_in(2)) stored_ = y, target_ = {};
  return {y};
}

}  // namespace fusebox::fuzz
