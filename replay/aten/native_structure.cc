// Views, reductions and ops that move elements, by ATen's kernels.
#include <ATen/MetaFunctions.h>
#include <algorithm>

#include "ir/table/families.h"
#include "replay/aten/native.h"

namespace fusebox::aten {
namespace {

std::vector<int64_t> numbers(std::span<const int64_t> list) { return {list.begin(), list.end()}; }

// Numbers whose bits are those of one of ATen's numbers.
bool is_native_number(Dtype d) {
  return d == Dtype::kHalf || d == Dtype::kBfloat16 || d == Dtype::kFloat || d == Dtype::kDouble || is_integer(d) ||
         is_complex(d);
}

// Whether a reduction converts its operand by ATen's rules: integers to integers, floats to no narrower floats.
bool fits_together(Dtype from, Dtype declared) {
  if (is_integer(from) || is_boolean(from) || is_integer(declared))
    return !is_floating(from) && !is_complex(from) && is_integer(declared);
  return is_complex(from) == is_complex(declared) && bits(compute_dtype(from)) <= bits(compute_dtype(declared));
}

// Unsigned integers of 16 and 32 bits in 64 bits. ATen sees signed ones.
at::Tensor numbers_of(const at::Tensor& t, Dtype dtype) {
  if (dtype == Dtype::kUint16) return at::bitwise_and(t.to(at::kLong), int64_t{0xffff});
  if (dtype == Dtype::kUint32) return at::bitwise_and(t.to(at::kLong), int64_t{0xffffffff});
  return t;
}

std::vector<int64_t> axes_of(const Op& op, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t a : op.attrs.ints(AttrKey::kAxes)) axes.push_back(a < 0 ? a + rank : a);
  return axes;
}

}  // namespace

at::Tensor Native::view(const Op& op) const {
  at::Tensor t = values_[op.operands[0].index];
  switch (op.kind) {
    case OpKind::kBroadcast: {
      const auto mask = op.attrs.ints(AttrKey::kMask);
      for (size_t i = 0; i < mask.size(); ++i)
        if (mask[i] != 0) t = t.unsqueeze(static_cast<int64_t>(i));
      return t;
    }
    case OpKind::kBroadcastInDim: {
      const std::vector<int64_t> shape = integers(op, 1);
      const auto dims = op.attrs.ints(AttrKey::kDims);
      size_t from = 0;
      for (size_t i = 0; i < shape.size(); ++i) {
        if (from < dims.size() && dims[from] == static_cast<int64_t>(i))
          ++from;
        else
          t = t.unsqueeze(static_cast<int64_t>(i));
      }
      return t.expand(shape);
    }
    case OpKind::kReshape:
      return reshaped(t, declared_shape(op.results[0]));
    case OpKind::kPermute:
      return t.permute(numbers(op.attrs.ints(AttrKey::kDims)));
    case OpKind::kExpand:
      return t.expand(integers(op, 1));
    case OpKind::kSqueeze: {
      // The last axis first, so that earlier axes keep their numbers. An expanded axis keeps one element.
      std::vector<int64_t> axes = axes_of(op, t.dim());
      std::sort(axes.rbegin(), axes.rend());
      for (int64_t a : axes) t = t.select(a, 0);
      return t;
    }
    case OpKind::kSlice: {
      const std::vector<int64_t> starts = integers(op, 1), stops = integers(op, 2), steps = integers(op, 3);
      for (size_t i = 0; i < starts.size(); ++i)
        t = at::slice(t, static_cast<int64_t>(i), starts[i], stops[i], steps[i]);
      return t;
    }
    case OpKind::kStrideOrder:
      return t;
    default:  // any other: no view by ATen, so the reference computes it
      return {};
  }
}

at::Tensor Native::indexed(const Op& op) const {
  at::Tensor t = values_[op.operands[0].index];
  int64_t axis = op.attrs.integer(AttrKey::kAxis);
  if (axis < 0) axis += t.dim();
  if (op.kind == OpKind::kSelect)
    return g_.is_tensor(op.operands[1]) ? at::Tensor() : slice_at(t, axis, integer(op.operands[1]));
  if (!g_.is_tensor(op.operands[1])) return {};
  if (dtype(op.operands[1]) != Dtype::kInt32 && dtype(op.operands[1]) != Dtype::kInt64 &&
      dtype(op.operands[1]) != Dtype::kIndex)
    return {};
  at::Tensor index = converted(values_[op.operands[1].index], at::kLong);
  // A GPU's kernels refuse a wrong index by themselves. To look first, the host would have to wait.
  if (device_.is_cpu()) reference_->check_indices(index, t.size(axis), false, op.operands[1]);
  switch (op.kind) {
    case OpKind::kIndexSelect: {
      if (index.dim() > 1) return {};
      if (is_meta()) return dense(declared_shape(op.results[0]), t.scalar_type());
      return at::index_select(t, axis, index.reshape({-1}));
    }
    case OpKind::kTakeAlongAxis: {
      std::vector<int64_t> source = t.sizes().vec(), places = index.sizes().vec();
      for (size_t a = 0; a < source.size(); ++a) {
        if (static_cast<int64_t>(a) == axis) continue;
        if (source[a] == 1)
          source[a] = places[a];
        else if (places[a] == 1)
          places[a] = source[a];
      }
      t = t.expand(source), index = index.expand(places);
      return is_meta() ? at::meta::gather(t, axis, index) : at::gather(t, axis, index);
    }
    case OpKind::kGather:
      return is_meta() ? at::meta::gather(t, axis, index) : at::gather(t, axis, index);
    case OpKind::kScatter: {
      const at::Tensor& source = values_[op.operands[2].index];
      if (dtype(op.operands[2]) != dtype(op.operands[0])) return {};
      return is_meta() ? at::meta::scatter(t, axis, index, source) : at::scatter(t, axis, index, source);
    }
    default:  // any other: the reference computes it
      return {};
  }
}

at::Tensor Native::placing(const Op& op) const {
  const Dtype declared = dtype(op.results[0]);
  const at::ScalarType type = native_type(declared);
  switch (op.kind) {
    case OpKind::kFull: {
      if (!is_native_number(declared) && !is_boolean(declared)) return {};
      // Expanded axes keep the stride 0.
      const at::Tensor fill = scalar(op.operands[0], declared);
      return (is_meta() ? fill : at::full({}, fill.item(), at::TensorOptions(type).device(device_)))
          .expand(declared_shape(op.results[0]));
    }
    case OpKind::kIota: {
      if (!is_integer(declared)) return {};
      const int64_t length = declared_shape(op.results[0]).at(0);
      if (is_meta()) return dense({length}, type);
      // Steps wrap as the dtype does.
      const at::Tensor index = at::arange(length, at::TensorOptions(at::kLong).device(device_));
      const auto number = [&](size_t i, int64_t otherwise) {
        return has(op, i) ? scalar(op.operands[i], declared).to(at::kLong).item<int64_t>() : otherwise;
      };
      return at::add(at::mul(index, number(2, 1)), number(1, 0)).to(type);
    }
    case OpKind::kTriu: {
      const at::Tensor& t = values_[op.operands[0].index];
      const int64_t diagonal = has(op, 1) ? integer(op.operands[1]) : 0;
      if (!is_native_number(declared) && declared != Dtype::kBool) return {};
      return is_meta() ? at::meta::triu(t, diagonal) : at::triu(t, diagonal);
    }
    case OpKind::kCat: {
      std::vector<at::Tensor> parts;
      for (ValueId v : op.operands) {
        if (dtype(v) != declared) return {};
        parts.push_back(values_[v.index]);
      }
      return is_meta() ? at::meta::cat(parts, op.attrs.integer(AttrKey::kAxis))
                       : at::cat(parts, op.attrs.integer(AttrKey::kAxis));
    }
    case OpKind::kPad: {
      if (!is_native_number(declared) && !is_boolean(declared)) return {};
      const at::Tensor& t = values_[op.operands[0].index];
      std::vector<int64_t> more, fewer;
      bool takes_away = false;
      for (int64_t w : integers(op, 2)) {
        more.push_back(std::max<int64_t>(w, 0));
        fewer.push_back(std::min<int64_t>(w, 0));
        takes_away |= w < 0;
      }
      if (takes_away) return {};
      if (is_meta()) {
        if (std::ranges::none_of(more, [](int64_t w) { return w > 0; })) return cloned(t, type);
        const at::MemoryFormat format = t.suggest_memory_format();
        const std::vector<int64_t> shape = declared_shape(op.results[0]);
        if (format == at::MemoryFormat::ChannelsLast)
          return like(shape, c10::get_channels_last_strides_2d(shape), type);
        if (format == at::MemoryFormat::ChannelsLast3d)
          return like(shape, c10::get_channels_last_strides_3d(shape), type);
        return dense(shape, type);
      }
      const at::Scalar fill = has(op, 1) ? scalar(op.operands[1], declared).item() : at::Scalar(0);
      return at::constant_pad_nd(t, more, fill);
    }
    default:  // any other: the reference computes it
      return {};
  }
}

at::Tensor Native::reduce(const Op& op) const {
  const Dtype from = dtype(op.operands[0]), declared = dtype(op.results[0]);
  const at::Tensor& t = values_[op.operands[0].index];
  const std::vector<int64_t> axes = axes_of(op, t.dim());
  const auto is_known = [](Dtype d) { return is_native_number(d) || is_boolean(d); };
  if (axes.empty() || !is_known(from) || !is_known(declared)) return {};
  if (op.kind == OpKind::kSum) {
    // Narrow integers are summed in 64 bits and wrap at the end.
    if (!fits_together(from, declared)) return {};
    const at::ScalarType in = is_integer(declared) ? at::kLong : native_type(compute_dtype(declared));
    const at::Tensor x = is_meta() ? t : numbers_of(t, from);
    return converted(is_meta() ? at::meta::sum(x, axes, false, in) : at::sum(x, axes, false, in),
                     native_type(declared));
  }
  if (op.kind == OpKind::kProd) {
    if (!fits_together(from, declared)) return {};
    if (is_meta()) return dense(declared_shape(op.results[0]), native_type(declared));
    const at::ScalarType in = is_integer(declared) ? at::kLong : native_type(compute_dtype(declared));
    at::Tensor x = numbers_of(t, from).to(in);
    std::vector<int64_t> from_last = axes;
    std::sort(from_last.rbegin(), from_last.rend());
    for (int64_t a : from_last) x = at::prod(x, a, false);
    return x.to(native_type(declared)).contiguous();
  }
  if (is_complex(from) || (is_integer(from) && !is_signed(from) && bits(from) > 8)) return {};
  if ((op.kind != OpKind::kMax && op.kind != OpKind::kMin) || from != declared) return {};
  for (int64_t a : axes)
    if (t.size(a) == 0) return {};
  if (op.kind == OpKind::kMax) return is_meta() ? at::meta::amax(t, axes, false) : at::amax(t, axes, false);
  return is_meta() ? at::meta::amin(t, axes, false) : at::amin(t, axes, false);
}

}  // namespace fusebox::aten
