// Ops that move elements: they apply the same views and copies to value and bound.
#include <ATen/ATen.h>
#include <algorithm>

#include "ir/table/error.h"
#include "ir/table/families.h"
#include "replay/aten/evaluator.h"
#include "replay/aten/rounding.h"

namespace fusebox::aten {
namespace {

std::vector<int64_t> numbers(std::span<const int64_t> list) { return {list.begin(), list.end()}; }

// Negative widths take away elements, also of the padding. ATen would take them from the tensor before it pads.
at::Tensor padded(const at::Tensor& t, const std::vector<int64_t>& widths, const at::Scalar& fill) {
  std::vector<int64_t> more, fewer;
  for (int64_t w : widths) {
    more.push_back(std::max<int64_t>(w, 0));
    fewer.push_back(std::min<int64_t>(w, 0));
  }
  return at::constant_pad_nd(at::constant_pad_nd(t, more, fill), fewer, fill);
}

}  // namespace

bool is_slice_empty(const at::Tensor& t, int64_t axis) {
  for (int64_t a = 0; a < t.dim(); ++a)
    if (a != axis && t.size(a) == 0) return true;
  return false;
}

at::Tensor slice_at(const at::Tensor& t, int64_t axis, int64_t index) {
  if (!is_slice_empty(t, axis)) return t.select(axis, index);
  std::vector<int64_t> shape = t.sizes().vec(), strides = t.strides().vec();
  shape.erase(shape.begin() + axis);
  strides.erase(strides.begin() + axis);
  return t.as_strided(shape, strides);
}

Carried Evaluator::metadata(const Op& op, Carried x) {
  switch (op.kind) {
    case OpKind::kBroadcast:
      return viewed(x, [&](at::Tensor t) {
        const auto mask = op.attrs.ints(AttrKey::kMask);
        for (size_t i = 0; i < mask.size(); ++i)
          if (mask[i] != 0) t = t.unsqueeze(static_cast<int64_t>(i));
        return t;
      });
    case OpKind::kBroadcastInDim: {
      const std::vector<int64_t> shape = integers(op, 1);
      const auto dims = op.attrs.ints(AttrKey::kDims);
      return viewed(x, [&](at::Tensor t) {
        // The axes keep their order, with new ones between them.
        size_t from = 0;
        for (size_t i = 0; i < shape.size(); ++i) {
          if (from < dims.size() && dims[from] == static_cast<int64_t>(i))
            ++from;
          else
            t = t.unsqueeze(static_cast<int64_t>(i));
        }
        return t.expand(shape);
      });
    }
    case OpKind::kReshape: {
      const std::vector<int64_t> shape = integers(op, 1);
      return viewed(x, [&](const at::Tensor& t) { return at::reshape(t, shape); });
    }
    case OpKind::kPermute: {
      const std::vector<int64_t> dims = numbers(op.attrs.ints(AttrKey::kDims));
      return viewed(x, [&](const at::Tensor& t) { return t.permute(dims); });
    }
    case OpKind::kExpand: {
      const std::vector<int64_t> shape = integers(op, 1);
      return viewed(x, [&](const at::Tensor& t) { return t.expand(shape); });
    }
    case OpKind::kSqueeze: {
      // Squeezes the last axis first, so that earlier axes keep their numbers. An expanded axis keeps one element.
      std::vector<int64_t> axes = numbers(op.attrs.ints(AttrKey::kAxes));
      for (int64_t& a : axes)
        if (a < 0) a += x.value.dim();
      std::sort(axes.rbegin(), axes.rend());
      return viewed(x, [&](at::Tensor t) {
        for (int64_t a : axes) t = t.select(a, 0);
        return t;
      });
    }
    case OpKind::kSlice: {
      const std::vector<int64_t> starts = integers(op, 1), stops = integers(op, 2), steps = integers(op, 3);
      return viewed(x, [&](at::Tensor t) {
        for (size_t i = 0; i < starts.size(); ++i)
          t = at::slice(t, static_cast<int64_t>(i), starts[i], stops[i], steps[i]);
        return t;
      });
    }
    case OpKind::kStrideOrder:  // changes how elements lie in memory, not their values
      return x;
    case FUSEBOX_MOMENT_OPS:
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_REDUCTION_OPS:
    case FUSEBOX_INDEXED_OPS:
    case FUSEBOX_PLACING_OPS:
    case FUSEBOX_LIBRARY_OPS:
    case FUSEBOX_STATEMENT_OPS:
      break;
  }
  not_in_family(op.kind, "moves no elements in the reference");
}

Carried Evaluator::pad(const Op& op, Carried x) {
  const std::vector<int64_t> widths = integers(op, 2);
  at::Scalar value = 0;
  double bound = 0;
  if (op.operands.size() > 1 && op.operands[1]) {
    const Carried fill = cast(carried(op.operands[1]), x.dtype);
    value = fill.value.item();
    if (!fill.exact()) bound = fill.bound.item<double>();
    x.zero_sign = x.zero_sign && fill.zero_sign;
  }
  if (bound > 0 && x.exact()) x.bound = at::zeros(x.value.sizes(), at::kDouble);
  x.value = padded(x.value, widths, value);
  if (!x.exact()) x.bound = padded(x.bound, widths, bound);
  return x;
}

Carried Evaluator::concatenate(const Op& op, Dtype declared) {
  const int64_t axis = op.attrs.integer(AttrKey::kAxis);
  std::vector<at::Tensor> values, bounds;
  bool exact = true, zero_sign = true;
  for (ValueId v : op.operands) {
    Carried c = carried(v);
    if (c.dtype != declared) c = cast(std::move(c), declared);
    exact &= c.exact();
    zero_sign &= c.zero_sign;
    bounds.push_back(c.exact() ? no_bound().expand(c.value.sizes()) : c.bound);
    values.push_back(std::move(c.value));
  }
  Carried r;
  r.dtype = declared;
  r.zero_sign = zero_sign;
  r.value = at::cat(values, axis);
  if (!exact) r.bound = at::cat(bounds, axis);
  return r;
}

void Evaluator::check_indices(const at::Tensor& index, int64_t extent, bool from_end, ValueId place) const {
  if (index.numel() == 0) return;
  const int64_t least = index.min().item<int64_t>(), most = index.max().item<int64_t>();
  if (least >= (from_end ? -extent : 0) && most < extent) return;
  throw Error(ErrorCode::kIndexOutOfRange,
              "an index of " + std::to_string(most >= extent ? most : least) + " lies outside an axis of " +
                  std::to_string(extent) + " elements; give indices from 0 to the extent less 1",
              "%" + g_[place].name);
}

Carried Evaluator::indexed(const Op& op) {
  Carried x = carried(op.operands[0]);
  const Carried index = carried(op.operands[1]);
  int64_t axis = op.attrs.integer(AttrKey::kAxis);
  if (axis < 0) axis += x.value.dim();
  const int64_t extent = x.value.size(axis);
  const bool is_select = op.kind == OpKind::kSelect;
  if (!is_select || !is_slice_empty(x.value, axis)) check_indices(index.value, extent, is_select, op.operands[1]);
  // If an index depends on a real number near a jump, the element that it reads may be any.
  at::Tensor loose;
  if (!index.exact()) loose = free_where(index.bound > 0);
  Carried r;
  switch (op.kind) {
    case OpKind::kSelect: {
      const int64_t i = index.value.item<int64_t>();
      return viewed(x, [&](const at::Tensor& t) { return slice_at(t, axis, i); });
    }
    case OpKind::kIndexSelect: {
      const at::Tensor list = index.value.reshape({-1});
      r = viewed(x, [&](const at::Tensor& t) { return at::index_select(t, axis, list); });
      if (loose.defined()) {
        std::vector<int64_t> along(static_cast<size_t>(r.value.dim()), 1);
        along[static_cast<size_t>(axis)] = -1;
        loose = loose.reshape(along).expand(r.value.sizes());
      }
      break;
    }
    case OpKind::kTakeAlongAxis: {
      // All other axes broadcast as in a pointwise op.
      std::vector<int64_t> source = x.value.sizes().vec(), places = index.value.sizes().vec();
      for (size_t a = 0; a < source.size(); ++a) {
        if (static_cast<int64_t>(a) == axis) continue;
        if (source[a] == 1)
          source[a] = places[a];
        else if (places[a] == 1)
          places[a] = source[a];
      }
      const at::Tensor list = index.value.expand(places);
      r = viewed(x, [&](const at::Tensor& t) { return at::gather(t.expand(source), axis, list); });
      if (loose.defined()) loose = loose.expand(places);
      break;
    }
    case OpKind::kGather:
      r = viewed(x, [&](const at::Tensor& t) { return at::gather(t, axis, index.value); });
      break;
    case FUSEBOX_MOMENT_OPS:
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_REDUCTION_OPS:
    case FUSEBOX_VIEW_OPS:
    case FUSEBOX_PLACING_OPS:
    case FUSEBOX_LIBRARY_OPS:
    case FUSEBOX_STATEMENT_OPS:
      not_in_family(op.kind, "reads at no index in the reference");
  }
  if (loose.defined()) r.bound = r.exact() ? loose.clone() : at::maximum(r.bound, loose);
  return r;
}

Carried Evaluator::scatter(const Op& op) {
  const Carried x = carried(op.operands[0]), index = carried(op.operands[1]), source = carried(op.operands[2]);
  int64_t axis = op.attrs.integer(AttrKey::kAxis);
  if (axis < 0) axis += x.value.dim();
  check_indices(index.value, x.value.size(axis), false, op.operands[1]);
  Carried r;
  r.dtype = x.dtype;
  r.zero_sign = x.zero_sign && source.zero_sign;
  r.value = at::scatter(x.value, axis, index.value, source.value);
  // If two elements are written to one place, either may stay.
  const at::Tensor writes =
      at::zeros(x.value.sizes(), at::kInt).scatter_add(axis, index.value, at::ones(index.value.sizes(), at::kInt));
  const at::Tensor disputed = writes > 1;
  const bool any_disputed = disputed.any().item<bool>();
  if (x.exact() && source.exact() && index.exact() && !any_disputed) return r;
  const at::Tensor before = x.exact() ? at::zeros(x.value.sizes(), at::kDouble) : x.bound;
  const at::Tensor written = source.exact() ? no_bound().expand(source.value.sizes()) : source.bound;
  r.bound = at::scatter(before, axis, index.value, written);
  if (any_disputed) {
    r.bound.masked_fill_(disputed, kInfinity);
    ambiguous_ += disputed.sum().item<int64_t>();
  }
  if (!index.exact() && (index.bound > 0).any().item<bool>()) r.bound = at::full_like(r.bound, kInfinity);
  if (!options_.bounds) r.bound = at::Tensor();
  return r;
}

Carried Evaluator::upper_triangle(const Op& op, Carried x) {
  const int64_t diagonal = op.operands.size() > 1 && op.operands[1] ? integer(op.operands[1]) : 0;
  return viewed(x, [&](const at::Tensor& t) { return at::triu(t, diagonal); });
}

}  // namespace fusebox::aten
