// Makes ops of a generated fusion that move elements: views, pads and joins, with the extents that they take.
#include <limits>

#include "fuzz/generate/fusion_maker.h"
#include "ir/table/families.h"

namespace fusebox::fuzz {

// Another shape with as many elements: two axes merged, one axis split, or a new one.
ValueId FusionMaker::reshaped(ValueId x) {
  const Extents extents = extents_of(x);
  const size_t rank = extents.size();
  Shape shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(size_of(g_, x, static_cast<int64_t>(i)));
  const size_t way = random_.below(4);
  if (way == 0 || rank == 0) return reshape(g_, x, {-1});
  const size_t at = random_.below(rank);
  if (way == 1 && at + 1 < rank) {
    shape[at] = mul(g_, shape[at].value, shape[at + 1].value);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    return reshape(g_, x, shape);
  }
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= extents[at]; ++d)
    if (extents[at] % d == 0) divisors.push_back(d);
  if (divisors.empty()) return reshape(g_, x, {-1});
  const int64_t d = random_.pick(divisors);
  if (way == 2) {
    shape[at] = Scalar(d);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1, Scalar(extents[at] / d));
    return reshape(g_, x, shape);
  }
  int64_t elements = 1;
  for (int64_t e : extents) elements *= e;
  return reshape(g_, x, {given_extent(d), given_extent(elements / d)});
}

// A constant, or an input of any integer dtype.
Scalar FusionMaker::given_extent(int64_t extent) {
  constexpr Dtype kDtypes[] = {Dtype::kInt64, Dtype::kInt32, Dtype::kInt8, Dtype::kUint8, Dtype::kUint16};
  if (!options_.symbolic || extent > 127 || !random_.one_in(3)) return Scalar(extent);
  const ValueId v = input_scalar(g_, "", random_.pick(kDtypes));
  sizes_.resize(g_.values.size());
  sizes_[v.index] = ConstantBits{static_cast<uint64_t>(extent), 0};
  return v;
}

// Bounds clamp: a negative one counts from the end, and one beyond either end means that end.
Scalar FusionMaker::slice_bound(int64_t value, int64_t extent) {
  constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
  switch (random_.below(6)) {
    case 0:
      return value < extent ? Scalar(value - extent) : Scalar(extent + random_.between(1, 2));
    case 1:
      if (value == 0) return Scalar(-extent - random_.between(0, 2));
      return value < extent ? Scalar(value) : Scalar(kToTheEnd);
    default:
      return index_scalar(value);
  }
}

ValueId FusionMaker::sliced(ValueId x) {
  Shape starts, stops;
  const Extents extents = extents_of(x);
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t n = extents[i];
    if (random_.one_in(2)) {
      starts.push_back(random_.one_in(6) ? slice_bound(0, n) : Scalar(0));
      stops.push_back(random_.one_in(3) ? slice_bound(n, n) : size_of(g_, x, static_cast<int64_t>(i)));
      continue;
    }
    if (random_.one_in(16)) {
      // Any two bounds in any order. Constants give a slice, maybe an empty one; others may be refused.
      const auto any = [&] {
        const int64_t bound = random_.between(-n - 2, n + 2);
        if (random_.one_in(8)) return Scalar(index_input(bound));
        if (symbols_.empty() || !random_.one_in(4)) return Scalar(bound);
        // Sizes, and sums of sizes, unrelated to the extent.
        const ValueId size = random_.pick(symbols_).value;
        // One size by itself is refused where it is beyond the extent; its minimum with the extent clamps.
        if (random_.one_in(3))
          return Scalar(pointwise(g_, OpKind::kMinimum, {size, size_of(g_, x, static_cast<int64_t>(i))}));
        return Scalar(random_.one_in(2) ? size : pointwise(g_, OpKind::kAdd, {size, random_.pick(symbols_).value}));
      };
      starts.push_back(any());
      stops.push_back(any());
      continue;
    }
    const int64_t start = random_.between(0, n);
    starts.push_back(slice_bound(start, n));
    if (random_.one_in(3))
      stops.push_back(size_of(g_, x, static_cast<int64_t>(i)));
    else
      stops.push_back(slice_bound(random_.between(start, n), n));
  }
  return slice(g_, x, starts, stops);
}

// expand and broadcast_in_dim: axes of extent 1 become longer, also axes that only the inputs resolve.
ValueId FusionMaker::stretched(ValueId x) {
  if (options_.symbolic && random_.one_in(4)) {
    const Extents extents = extents_of(x);
    Extents given = extents;
    for (int64_t& e : given)
      if (random_.one_in(3)) e = 1;
    Shape shape;
    for (int64_t e : given) shape.push_back(symbol(e));
    const ValueId y = input(g_, "", g_[x].dtype, shape);
    for (DomainId d : g_.tensor_of(y).logical) g_[d].iter_type = IterType::kSymbolic;
    g_.tensor_of(y).contiguity.clear();
    made_.push_back(y);
    if (random_.one_in(4)) return stretched_twice(x, y, given);
    Shape to;
    for (size_t i = 0; i < extents.size(); ++i) to.push_back(size_of(g_, x, static_cast<int64_t>(i)));
    return expand(g_, y, to);
  }
  const auto axes = logical_without_reductions(g_, g_.tensor_of(x));
  Shape to;
  for (DomainId d : axes)
    to.push_back(g_[d].iter_type == IterType::kBroadcast && !g_[d].expanded ? index_scalar(random_.between(1, 5))
                                                                            : Scalar(-1));
  if (random_.one_in(2)) to.insert(to.begin(), index_scalar(random_.between(1, 4)));
  return expand(g_, x, to);
}

// Expands some axes of y, a tensor of these extents, to sizes that are 1. The other operand of its reader, x, stretches
// these.
ValueId FusionMaker::stretched_twice(ValueId x, ValueId y, const Extents& extents) {
  const auto axes = logical_without_reductions(g_, g_.tensor_of(x));
  Shape to;
  for (size_t i = 0; i < extents.size(); ++i) {
    const bool is_later = extents[i] == 1 && g_[axes[i]].iter_type == IterType::kIteration && random_.one_in(2);
    if (!is_later) {
      to.push_back(size_of(g_, x, static_cast<int64_t>(i)));
      continue;
    }
    const bool is_own = random_.one_in(2);
    const ValueId one = is_own ? size_of(g_, y, static_cast<int64_t>(i)) : symbol(1);
    // A symbol must be the size of an input. One that only y shows becomes a constant.
    if (!is_own || random_.one_in(2)) made_.push_back(input(g_, "", Dtype::kFloat, {Scalar(one)}));
    to.push_back(Scalar(one));
  }
  const ValueId stretched = expand(g_, y, to);
  const OpKind kind = takes(OpKind::kAdd, g_[x].dtype) ? OpKind::kAdd : OpKind::kEq;
  return takes(kind, g_[x].dtype) ? pointwise(g_, kind, {stretched, x}) : stretched;
}

// Two moves. The second restores the operand of the first, or at least its shape.
ValueId FusionMaker::there_and_back(ValueId x) {
  const Extents extents = extents_of(x);
  const size_t rank = extents.size(), at = axis_of(x);
  Shape sizes, starts(rank, Scalar(0)), widths(2 * rank, Scalar(0));
  for (size_t i = 0; i < rank; ++i) sizes.push_back(size_of(g_, x, static_cast<int64_t>(i)));
  Shape stops = sizes;
  switch (random_.below(4)) {
    case 0: {
      const int64_t first = random_.one_in(4) ? random_.between(0, extents[at] - 1) : 0;
      starts[at] = Scalar(first);
      stops[at] = Scalar(first + 1);
      const ValueId wide = expand(g_, slice(g_, x, starts, stops), sizes);
      if (random_.one_in(2)) return wide;
      // A part of an axis that the sizes may leave one element. Reshapes make it many.
      starts[at] = Scalar(random_.between(0, extents[at]));
      const ValueId part = slice(g_, wide, starts, sizes);
      for (size_t i = 0; i < rank; ++i) sizes[i] = size_of(g_, part, static_cast<int64_t>(i));
      return reshape(g_, reshape(g_, part, {-1}), sizes);
    }
    case 1: {
      const int64_t before = random_.between(0, 2), first = random_.one_in(2) ? before : random_.between(0, 2);
      widths[2 * (rank - 1 - at)] = index_scalar(before);
      widths[2 * (rank - 1 - at) + 1] = Scalar(random_.between(0, 2));
      starts[at] = index_scalar(first);
      stops[at] = add(g_, sizes[at].value, constant_index(g_, first));
      return slice(g_, pad(g_, x, widths), starts, stops);
    }
    case 2:
      return reshape(g_, reshape(g_, x, {-1}), sizes);
    default: {
      const ValueId y = permute(g_, x, permutation(rank));
      return permute(g_, y, permutation(rank));
    }
  }
}

ValueId FusionMaker::joined(ValueId x) {
  size_t axis = axis_of(x);
  // A square that is joined with itself first: one extent is a multiple of another.
  const auto squares = equal_axes(x);
  const bool is_square = !squares.empty() && random_.one_in(2);
  if (is_square) {
    const auto [kept, doubled] = random_.pick(squares);
    axis = kept;
    x = cat(g_, {x, x}, written(doubled, rank_of(g_, x)));
  }
  std::vector<ValueId> parts = {x};
  if (is_square) parts.push_back(x);
  for (size_t n = random_.below(3); n > 0; --n) {
    Extents extents = extents_of(x);
    if (random_.one_in(3)) {
      parts.push_back(x);
      continue;
    }
    extents[axis] = random_.between(0, 5);
    std::vector<bool> broadcast(extents.size());
    const auto axes = logical_without_reductions(g_, g_.tensor_of(x));
    for (size_t i = 0; i < axes.size(); ++i)
      broadcast[i] = i != axis && extents[i] == 1 && g_[axes[i]].iter_type == IterType::kBroadcast;
    const ValueId part = new_input(g_[x].dtype, extents, broadcast);
    parts.push_back(random_.one_in(3) && !is_storage_only(g_[x].dtype) ? mul(g_, part, part) : part);
  }
  random_.shuffle(parts);
  return cat(g_, parts, written(axis, rank_of(g_, x)));
}

std::vector<ValueId> FusionMaker::move(OpKind kind) {
  const ValueId x = operand(kind, kind == OpKind::kCat ? 1 : 0);
  const size_t rank = rank_of(g_, x);
  switch (kind) {
    case OpKind::kBroadcast: {
      std::vector<bool> mask(rank + 1 + random_.below(2));
      for (size_t added = mask.size() - rank; added > 0;) {
        const size_t at = random_.below(mask.size());
        added -= mask[at] ? 0 : 1;
        // An exhausted source would draw the same place forever.
        if (mask[at] && random_.exhausted()) return {};
        mask[at] = true;
      }
      return {broadcast(g_, x, mask)};
    }
    case OpKind::kBroadcastInDim: {
      const auto axes = logical_without_reductions(g_, g_.tensor_of(x));
      Shape shape;
      Axes dims;
      for (size_t i = 0; i < rank; ++i) {
        if (random_.one_in(3)) shape.push_back(Scalar(random_.between(1, 4)));
        dims.push_back(static_cast<int64_t>(shape.size()));
        const bool is_longer =
            g_[axes[i]].iter_type == IterType::kBroadcast && !g_[axes[i]].expanded && random_.one_in(2);
        shape.push_back(is_longer ? Scalar(random_.between(0, 4)) : size_of(g_, x, static_cast<int64_t>(i)));
      }
      if (shape.size() == rank) shape.push_back(Scalar(random_.between(1, 4)));
      return {broadcast_in_dim(g_, x, shape, dims)};
    }
    case OpKind::kReshape:
      return {reshaped(x)};
    case OpKind::kPermute: {
      Axes dims = permutation(rank);
      for (int64_t& d : dims) d = written(static_cast<size_t>(d), rank);
      return {permute(g_, x, dims)};
    }
    case OpKind::kExpand:
      return {stretched(x)};
    case OpKind::kSqueeze: {
      if (random_.one_in(is_open(x) ? 2 : 8)) return {squeeze(g_, x, {})};  // drops no axis
      const auto axes = logical_without_reductions(g_, g_.tensor_of(x));
      Axes ones;
      for (size_t i = 0; i < rank; ++i) {
        if (g_[axes[i]].expanded && random_.one_in(2))
          return {squeeze(g_, x, {written(i, rank)}, {.squeeze_expanded = true})};
        if (!g_[axes[i]].expanded && evaluate_size(g_, axes[i], sizes_) == 1) ones.push_back(static_cast<int64_t>(i));
      }
      if (!ones.empty()) return {squeeze(g_, x, {random_.pick(ones)})};
      std::vector<bool> mask(rank + 1);
      const size_t at = random_.below(rank + 1);
      mask[at] = true;
      return {squeeze(g_, broadcast(g_, x, mask), {static_cast<int64_t>(at)})};
    }
    case OpKind::kSlice:
      return {sliced(x)};
    case OpKind::kStrideOrder:
      return {stride_order(g_, x, permutation(rank))};
    case OpKind::kPad: {
      Shape widths;
      for (size_t i = 0; i < 2 * rank; ++i)
        widths.push_back(index_scalar(random_.one_in(2) ? random_.between(0, 3) : 0));
      if (rank > 0 && random_.one_in(6)) {
        const size_t axis = random_.below(rank);
        const int64_t most = std::min<int64_t>(extents_of(x)[axis], 3);
        if (most > 0) widths[2 * (rank - 1 - axis) + random_.below(2)] = index_scalar(-random_.between(1, most));
      }
      const Dtype value = random_.one_in(8) && !is_storage_only(g_[x].dtype) ? dtype_for(OpKind::kAdd) : g_[x].dtype;
      return {pad(g_, x, widths, random_.one_in(2) ? scalar_constant(value, g_[x].dtype) : ValueId())};
    }
    case OpKind::kCat:
      return {joined(x)};
    case OpKind::kFull:
    case OpKind::kIota:
    case FUSEBOX_RANDOM_OPS:
    case OpKind::kTriu:
    case OpKind::kScatter:
    case FUSEBOX_MOMENT_OPS:
    case FUSEBOX_REDUCTION_OPS:
    case FUSEBOX_INDEXED_OPS:
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_LIBRARY_OPS:
    case FUSEBOX_STATEMENT_OPS:
      break;
  }
  not_in_family(kind, "moves no elements");
}

}  // namespace fusebox::fuzz
