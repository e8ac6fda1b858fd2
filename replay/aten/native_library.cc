// Ops that combine many elements, by ATen's kernels: products of matrices, scans, sorts, attention, sums at places that
// data choose, means with their squares. Results are contiguous.
//
// ATen's kernels are taken where they give the same bits on every run. Where they do not, another form of the op is:
//
// | op | ATen on a GPU | here |
// |---|---|---|
// | matmul, linear of f16 and bf16 | partial sums may be rounded to the dtype | not allowed, for the time of the call |
// | cumsum, cumprod of floats along all elements | partial sums meet in any order | as one of two equal rows, in a fixed order |
// | scatter_add, rows added at places | atomic additions | by sorted places, in a fixed order |
// | sdpfa_bwd | atomic additions to the gradient of the query | products of matrices |
// | argsort, topk | the order of equal elements is free, and the sign of a NaN counts | a stable sort of NaNs without signs |
// | grouped_mm | bf16 and aligned groups only | a product for each group; the host waits for their ends |
// | scaled_mm | fewer bits in partial sums | the numbers of 8 bits as f64 |
//
// On a CPU, products of narrow floats are computed in float, because the kernels of some processors accumulate in f16.
#include <ATen/ATen.h>
#include <cmath>

#include "ir/table/error.h"
#include "ir/table/families.h"
#include "replay/aten/in_sums.h"
#include "replay/aten/narrow_strides.h"
#include "replay/aten/native.h"
#include "replay/aten/wide_sums.h"

namespace fusebox::aten {
namespace {

bool is_product_dtype(Dtype d) {
  return d == Dtype::kHalf || d == Dtype::kBfloat16 || d == Dtype::kFloat || d == Dtype::kDouble || is_complex(d);
}

int64_t axis_in(const Op& op, const at::Tensor& x) {
  const int64_t axis = op.attrs.integer(AttrKey::kAxis);
  return axis < 0 ? axis + x.dim() : axis;
}

// A sum or product of the elements before each one. ATen scans a tensor that is one row by a kernel whose order is free.
template <class F>
at::Tensor in_fixed_order(const at::Tensor& x, int64_t axis, F&& scan) {
  if (!x.is_cuda() || x.numel() == 0 || x.numel() != x.size(axis)) return scan(x, axis);
  const at::Tensor rows = x.reshape({1, -1}).expand({2, -1}).contiguous();
  return scan(rows, 1)[0].reshape(x.sizes());
}

// Integers that have the order of the dtype's numbers. Elsewhere the numbers themselves, NaNs without a sign.
at::Tensor ordered(const at::Tensor& x, Dtype dtype) {
  if (dtype == Dtype::kUint64) return at::bitwise_xor(x, at::scalar_tensor(INT64_MIN, at::kLong).to(x.device()));
  if (dtype == Dtype::kUint16) return at::bitwise_and(x.to(at::kLong), int64_t{0xffff});
  if (dtype == Dtype::kUint32) return at::bitwise_and(x.to(at::kLong), int64_t{0xffffffff});
  if (dtype == Dtype::kBool) return x.to(at::kByte);
  if (is_floating(dtype))
    return at::where(at::isnan(x), std::numeric_limits<double>::quiet_NaN(), x).to(x.scalar_type());
  return x;
}
// The numbers again.
at::Tensor unordered(const at::Tensor& x, Dtype dtype) {
  if (dtype == Dtype::kUint64) return at::bitwise_xor(x, at::scalar_tensor(INT64_MIN, at::kLong).to(x.device()));
  return x.to(native_type(dtype));
}

// The tensor with the strides that a contiguous one has at axes of one element. They reach nothing, but libraries choose
// an order of adding by them.
at::Tensor with_usual_ones(const at::Tensor& t) {
  std::vector<int64_t> strides = t.strides().vec();
  int64_t next = 1;
  for (int64_t axis = t.dim() - 1; axis >= 0; --axis) {
    int64_t& stride = strides[static_cast<size_t>(axis)];
    if (t.size(axis) == 1) stride = next;
    next = stride * t.size(axis);
  }
  return t.as_strided(t.sizes(), strides);
}

// The same places, checked by the device that reads them: a kernel stops there at a wrong one.
at::Tensor checked(const at::Tensor& index, int64_t extent) {
  const at::Tensor places = at::arange(extent, index.options().dtype(at::kLong));
  return at::index_select(places, 0, index.reshape({-1})).reshape(index.sizes());
}

}  // namespace

std::vector<at::Tensor> Native::dense_results(const Op& op) const {
  std::vector<at::Tensor> results;
  for (ValueId v : op.results) results.push_back(dense(declared_shape(v), native_type(dtype(v))));
  return results;
}

at::Tensor Native::multiplied(const at::Tensor& a, const at::Tensor& b, const at::Tensor& addend) const {
  const at::Tensor rows = with_narrow_strides(with_usual_ones(a)), columns = with_narrow_strides(with_usual_ones(b));
  const auto f = [&](const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
    if (!z.defined()) return product_of(x, y);
    if (x.dim() < 2 || y.dim() != 2) return at::add(product_of(x, y), z);
    if (!device_.is_cuda() || x.scalar_type() == at::kFloat || x.numel() == 0 || z.dim() != 1)
      return at::linear(x, y.t(), z);
    const at::Tensor flat = x.reshape({-1, x.size(-1)});
    if (multiplies_whole_vectors(flat, y)) return at::linear(x, y.t(), z);
    // An addend of every row is added by cuBLAS.
    auto shape = x.sizes().vec();
    shape.back() = y.size(1);
    return at::addmm(z.expand({flat.size(0), y.size(1)}), flat, y).reshape(shape);
  };
  if (!device_.is_cpu() || !(a.scalar_type() == at::kHalf || a.scalar_type() == at::kBFloat16)) {
    const WideSums wide(sums_in_16_bits(a));
    return f(rows, columns, addend);
  }
  const at::Tensor z = addend.defined() ? addend.to(at::kFloat) : addend;
  return f(rows.to(at::kFloat), columns.to(at::kFloat), z).to(a.scalar_type());
}

at::Tensor Native::grouped_product(const Op& op) const {
  const at::Tensor &a = values_[op.operands[0].index], &b = values_[op.operands[1].index];
  const at::Tensor ends = values_[op.operands[2].index].to(at::kCPU).contiguous();
  const bool rows = b.dim() == 3, columns = a.dim() == 3;
  const int64_t extent = rows ? a.size(0) : columns ? b.size(1) : a.size(1);
  // Rows and columns behind the last group are 0.
  const at::Tensor out = at::zeros(declared_shape(op.results[0]), a.options());
  int64_t begin = 0;
  for (int64_t g = 0; g < ends.numel(); ++g) {
    const int64_t stop = ends[g].item<int64_t>();
    check_group_end(g_, op.operands[2], begin, stop, extent);
    if (rows)
      out.slice(0, begin, stop).copy_(multiplied(a.slice(0, begin, stop), b[g], {}));
    else if (columns)
      out.slice(1, begin, stop).copy_(multiplied(a[g], b.slice(1, begin, stop), {}));
    else
      out[g].copy_(multiplied(a.slice(1, begin, stop), b.slice(0, begin, stop), {}));
    begin = stop;
  }
  return out;
}

at::Tensor Native::scaled_product(const Op& op) const {
  const auto side = [&](size_t operand, int64_t axis) {
    const Dtype d = dtype(op.operands[operand]);
    const at::Tensor x = values_[op.operands[operand].index].view(storage_type(d)).to(at::kFloat).to(at::kDouble);
    const at::Tensor scale = values_[op.operands[operand + 2].index].to(at::kDouble);
    return at::mul(x, scale.dim() == 0 ? scale : scale.unsqueeze(1 - axis));
  };
  at::Tensor sum = product_of(side(0, 0), side(1, 1));
  if (has(op, 4)) sum = at::add(sum, values_[op.operands[4].index].to(at::kDouble));
  return sum.to(native_type(dtype(op.results[0])));
}

std::vector<at::Tensor> Native::attention(const Op& op) const {
  const bool is_backward = op.kind == OpKind::kSdpfaBwd;
  const size_t first = is_backward ? 1 : 0;
  const Dtype declared = dtype(op.operands[first]);
  // A gradient may be given sums of other scores, so that a weight leaves the range of float.
  const at::ScalarType type = is_backward ? at::kDouble : native_type(compute_dtype(declared));
  const auto given = [&](size_t i) { return values_[op.operands[i].index].to(type); };
  const at::Tensor q = given(first), k = given(first + 1), v = given(first + 2);
  const size_t scale_at = is_backward ? 6 : 3;
  const double scale = has(op, scale_at) ? scalar(op.operands[scale_at], Dtype::kDouble).item<double>()
                                         : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.size(-1), 1)));
  at::Tensor scores = product_of(q * scale, k.transpose(-2, -1)), hidden;
  if (op.attrs.flag(AttrKey::kCausal)) {
    hidden = at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(hidden, -INFINITY);
  }
  const auto narrow = [&](const at::Tensor& t) { return t.to(native_type(declared)); };
  if (!is_backward) {
    const at::Tensor sums = at::logsumexp(scores, -1, true);
    const at::Tensor output = product_of(at::exp(scores - sums), v);
    return {narrow(output), sums.squeeze(-1).to(native_type(dtype(op.results[1])))};
  }
  const at::Tensor g = given(0), output = given(4), sums = given(5);
  at::Tensor weights = at::exp(scores - sums.unsqueeze(-1));
  if (hidden.defined()) weights = weights.masked_fill(hidden, 0.0);
  const at::Tensor along = at::sum(g * output, -1, true);
  const at::Tensor to_scores = weights * (product_of(g, v.transpose(-2, -1)) - along);
  return {narrow(product_of(to_scores, k) * scale), narrow(product_of(to_scores.transpose(-2, -1), q) * scale),
          narrow(product_of(weights.transpose(-2, -1), g))};
}

at::Tensor Native::scanned(const Op& op) const {
  const Dtype from = dtype(op.operands[0]), declared = dtype(op.results[0]);
  const bool adds = op.kind == OpKind::kCumsum;
  const auto scan = [&](const at::Tensor& x, int64_t axis) {
    return adds ? at::cumsum(x, axis) : at::cumprod(x, axis);
  };
  at::Tensor x = operand(op.operands[0], is_integer(declared) || is_boolean(declared) ? from : compute_dtype(declared));
  const int64_t axis = axis_in(op, x);
  if (!is_integer(declared) && !is_boolean(declared)) return in_fixed_order(x, axis, scan).to(native_type(declared));
  // Sums of integers wrap at their end. Those of bool count, and are true if anything counts.
  x = is_boolean(declared) ? x.to(at::kBool).to(at::kLong) : operand(op.operands[0], Dtype::kInt64);
  return scan(x, axis).to(native_type(declared));
}

at::Tensor Native::added(const Op& op) const {
  const at::Tensor x = values_[op.operands[0].index].contiguous();
  const at::Tensor &index = values_[op.operands[1].index], &source = values_[op.operands[2].index];
  const bool by_element = op.kind == OpKind::kScatterAdd;
  const int64_t axis = by_element ? axis_in(op, x) : 0;
  at::Tensor places = index.to(at::kLong);
  if (device_.is_cpu()) {
    reference_->check_indices(places, x.size(axis), false, op.operands[1]);
    return by_element ? at::scatter_add(x, axis, places, source) : added_rows(x, places, source);
  }
  places = checked(places, x.size(axis));
  c10::List<std::optional<at::Tensor>> at_all;
  if (!by_element) {
    at_all.push_back(places);
  } else {
    for (int64_t a = 0; a < x.dim(); ++a) {
      std::vector<int64_t> along(static_cast<size_t>(x.dim()), 1);
      along[static_cast<size_t>(a)] = -1;
      at_all.push_back(a == axis ? places : at::arange(places.size(a), places.options()).reshape(along));
    }
  }
  at::Tensor sums = x.clone();
  // ATen multiplies what it adds by 1 on a GPU. As a complex number that makes NaN of infinity, so parts are added alone.
  const auto parts = [](const at::Tensor& t) { return t.is_complex() ? at::view_as_real(t.contiguous()) : t; };
  at::Tensor to = sums.is_complex() ? at::view_as_real(sums) : sums;
  // The places are checked already, so that the host need not wait for them.
  at::_index_put_impl_(to, at_all, parts(source), /*accumulate=*/true, /*unsafe=*/true);
  return sums;
}

std::vector<at::Tensor> Native::moments(const Op& op) const {
  const at::Tensor x = values_[op.operands[0].index].to(at::kDouble);
  std::vector<int64_t> axes;
  int64_t count = 1;
  for (int64_t a : op.attrs.ints(AttrKey::kAxes)) axes.push_back(a < 0 ? a + x.dim() : a), count *= x.size(axes.back());
  const std::vector<int64_t> shape = declared_shape(op.results[0]);
  const at::ScalarType type = native_type(dtype(op.results[0]));
  const at::Tensor counts = at::full(shape, count, x.options().dtype(at::kLong));
  // Without elements the mean is 0.
  if (count == 0 || axes.empty()) {
    const at::Tensor none = at::zeros(shape, x.options().dtype(type));
    return {count == 0 ? none : x.to(type), none, counts};
  }
  auto [variance, mean] = at::var_mean(x, at::OptionalIntArrayRef(axes), /*correction=*/at::Scalar(0), false);
  return {mean.to(type), (variance * static_cast<double>(count)).to(type), counts};
}

std::optional<std::vector<at::Tensor>> Native::library(const Op& op) const {
  const Dtype first = dtype(op.operands[0]);
  const auto value = [&](size_t i) -> const at::Tensor& { return values_[op.operands[i].index]; };
  const bool is_float = is_product_dtype(first) && !is_complex(first);
  bool fits = true;
  switch (op.kind) {
    case OpKind::kCumsum:
    case OpKind::kCumprod: {
      const Dtype declared = dtype(op.results[0]);
      // The reference converts floats to integers, and rounds f64 to narrower floats, by this project's rules.
      const bool is_whole = is_integer(declared) || is_boolean(declared);
      const bool from_whole = is_integer(first) || is_boolean(first);
      fits = is_whole ? from_whole
                      : is_product_dtype(declared) && !(first == Dtype::kUint64) &&
                            (is_complex(first) == is_complex(declared)) && (from_whole || is_product_dtype(first)) &&
                            bits(compute_dtype(first)) <= bits(compute_dtype(declared));
      fits = fits && !(is_whole && first == Dtype::kUint64 && declared != Dtype::kUint64 && declared != Dtype::kInt64);
      break;
    }
    case OpKind::kWelford:
      fits = is_float && !has(op, 1);
      break;
    case OpKind::kScaledMm:
      break;
    case FUSEBOX_EXTREME_SCAN_OPS:
    case FUSEBOX_SORT_OPS:
      fits = is_float || is_integer(first) || is_boolean(first);
      break;
    case FUSEBOX_ATTENTION_OPS:
      fits = is_float;
      break;
    case FUSEBOX_ADDING_OPS:
      fits = is_product_dtype(first) || is_integer(first);
      break;
    default:  // any other: a product of matrices, of the dtypes that products take
      fits = is_product_dtype(first);
  }
  if (!fits) return std::nullopt;
  if (is_meta()) return dense_results(op);
  std::vector<at::Tensor> made;
  switch (op.kind) {
    case OpKind::kMatmul:
      made = {multiplied(value(0), value(1), {})};
      break;
    case OpKind::kLinear:
      made = {
          multiplied(value(0), value(1).dim() == 2 ? value(1).t() : value(1), has(op, 2) ? value(2) : at::Tensor())};
      break;
    case OpKind::kGroupedMm:
      made = {grouped_product(op)};
      break;
    case OpKind::kScaledMm:
      made = {scaled_product(op)};
      break;
    case OpKind::kCumsum:
    case OpKind::kCumprod:
      made = {scanned(op)};
      break;
    case FUSEBOX_EXTREME_SCAN_OPS: {
      const at::Tensor x = with_narrow_strides(ordered(value(0), first));
      const auto [values, places] =
          op.kind == OpKind::kCummax ? at::cummax(x, axis_in(op, x)) : at::cummin(x, axis_in(op, x));
      made = {unordered(values, first), places};
      break;
    }
    case FUSEBOX_SORT_OPS: {
      const at::Tensor x = ordered(value(0), first);
      const int64_t axis = axis_in(op, x);
      const bool is_topk = op.kind == OpKind::kTopk;
      const bool descends = op.attrs.flag(is_topk ? AttrKey::kLargest : AttrKey::kDescending);
      const auto [values, places] = at::sort(x, /*stable=*/std::optional<bool>(true), axis, descends);
      if (!is_topk) {
        made = {places};
        break;
      }
      const int64_t count = integer(op.operands[1]);
      check_topk_count(g_, op, count, x.size(axis));
      made = {unordered(values.narrow(axis, 0, count), first), places.narrow(axis, 0, count)};
      break;
    }
    case FUSEBOX_ATTENTION_OPS:
      made = attention(op);
      break;
    case FUSEBOX_ADDING_OPS:
      made = {added(op)};
      break;
    case OpKind::kWelford:
      made = moments(op);
      break;
    default:  // any other: not here, and the reference computes it
      return std::nullopt;
  }
  for (at::Tensor& t : made) t = t.resolve_conj().contiguous();
  return made;
}

}  // namespace fusebox::aten
