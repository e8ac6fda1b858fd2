// Scans, sorts and sums at places that data choose. A scan's element i combines i + 1 elements in any order, so its bound
// is that of a reduction over them (reduction.cc). Sorts are stable: equal elements keep their order, NaN is the largest.
#include <ATen/ATen.h>
#include <cmath>

#include "ir/table/error.h"
#include "ir/table/families.h"
#include "replay/aten/evaluator.h"
#include "replay/aten/in_sums.h"
#include "replay/aten/rounding.h"

namespace fusebox::aten {
namespace {

int64_t scan_axis(const Op& op, const at::Tensor& x) {
  const int64_t axis = op.attrs.integer(AttrKey::kAxis);
  return axis < 0 ? axis + x.dim() : axis;
}

// 1, 2, … along the axis.
at::Tensor counts_along(const at::Tensor& x, int64_t axis) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(axis)] = -1;
  // An axis of 2^55 places may belong to a tensor without elements.
  if (x.numel() == 0) return at::ones(std::vector<int64_t>(shape.size(), 1), at::kDouble);
  return at::arange(1, x.size(axis) + 1, at::kDouble).reshape(shape);
}

// Whether the condition held up to here.
at::Tensor so_far(const at::Tensor& condition, int64_t axis) { return at::cumsum(condition, axis) > 0; }

at::Tensor running_max(const at::Tensor& x, int64_t axis) { return std::get<0>(at::cummax(x, axis)); }
at::Tensor running_min(const at::Tensor& x, int64_t axis) { return std::get<0>(at::cummin(x, axis)); }

// Flips the top bit of u64, so that signed order is the order of unsigned 64-bit integers.
at::Tensor ordered(const Carried& x) {
  return x.dtype == Dtype::kUint64 ? at::bitwise_xor(x.value, at::scalar_tensor(INT64_MIN, at::kLong)) : x.value;
}

// Values in the order of their dtype: reals as doubles, without infinities, which keep their place; integers as signed
// 64-bit ones.
at::Tensor standing(const Carried& x) {
  if (carrier_of(x.dtype) == Carrier::kInteger) return ordered(x);
  const double overflow = overflow_of(x.dtype);
  return x.value.clamp(-overflow, overflow);
}

// The least and the largest of each element, in the order of `standing`.
struct Ends {
  at::Tensor low, high;
};
Ends ends_of(const Carried& x) {
  const at::Tensor v = standing(x);
  if (carrier_of(x.dtype) != Carrier::kInteger) return {v - x.bound, v + x.bound};
  // Doubles do not tell the largest 64-bit integers apart. A bound is made an integer, which may have all 64 bits, and
  // stops at the end of the range; a bound beyond 2⁵² may itself be rounded down.
  const at::Tensor bound = at::floor(x.bound * (1 + 0x1p-52)).clamp_max(0x1p64 - 0x1p11);
  const at::Tensor steps = at::where(bound < 0x1p63, bound, bound - 0x1p64).to(at::kLong);
  const auto stops = [&](const at::Tensor& room) { return bound >= unsigned_values(room) * (1 - 0x1p-50); };
  return {at::where(stops(v - INT64_MIN), INT64_MIN, v - steps), at::where(stops(INT64_MAX - v), INT64_MAX, v + steps)};
}

// How far the first lies above the second, as a double.
at::Tensor excess(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kLong) return (a - b).clamp_min(0.0);
  return at::where(a > b, unsigned_values(a - b), no_bound());
}

// How far a choice among the elements may move, if `pick` makes it and `middle` is the choice among their values.
template <class F>
at::Tensor moved(const Ends& ends, const at::Tensor& middle, F pick) {
  return at::maximum(excess(pick(ends.high), middle), excess(middle, pick(ends.low))).mul_(1 + 0x1p-50);
}

Carried indices(at::Tensor value) {
  Carried r;
  r.dtype = Dtype::kInt64;
  r.value = std::move(value);
  return r;
}

}  // namespace

Carried Evaluator::scan(const Op& op) {
  const Dtype declared = g_[op.results[0]].dtype;
  Carried x = carried(op.operands[0]);
  const int64_t axis = scan_axis(op, x.value);
  if (carrier_of(declared) == Carrier::kInteger) return scan_integers(op, cast(std::move(x), declared), axis, declared);
  if (carrier_of(declared) != carrier_of(x.dtype)) x = cast(std::move(x), compute_dtype(declared));
  if (op.kind == OpKind::kCumprod) return scan_products(x, axis, declared);
  at::Tensor value = at::cumsum(x.value, axis);
  if (!options_.bounds) return rounded(std::move(value), declared);
  const at::Tensor spread = x.exact() ? no_bound().expand(value.sizes()) : at::cumsum(in_sums(x).bound, axis);
  const at::Tensor sizes = at::cumsum(finite_sizes(x.value), axis) + spread;
  at::Tensor roundings = counts_along(x.value, axis) - 1, underflow = no_bound();
  if (loses_digits(x.dtype, declared)) {
    underflow = (roundings + 1) * ulp_of(real_of(compute_dtype(declared)), 0.0);
    roundings = roundings + 1;
  }
  const at::Tensor error = at::where(sizes < accumulator_overflow(declared),
                                     sizes * (roundings * (1.01 * unit_roundoff(declared))) + underflow, kInfinity);
  return finish_sum(std::move(value), spread, error, declared, true);
}

Carried Evaluator::scan_integers(const Op& op, Carried x, int64_t axis, Dtype declared) {
  const bool adds = op.kind == OpKind::kCumsum;
  Carried r;
  r.dtype = declared;
  r.value = adds ? at::cumsum(x.value, axis) : at::cumprod(x.value, axis);
  // Wraps an integer; makes a bool of any number but 0 true.
  const Loop loop{OpKind::kCast, Dtype::kInt64, declared, {{Dtype::kInt64, true}}, &ambiguous_};
  r = into(integer_loop, loop, std::span<const Carried>(&r, 1), at::kLong);
  if (x.exact() || !options_.bounds) return r;
  if (is_boolean(declared))
    r.bound = running_max(x.bound, axis).clamp_max(1.0);
  else
    r.bound = adds ? free_where_it_wraps(declared, r.value, at::cumsum(x.bound, axis))
                   : free_where(running_max(x.bound, axis) > 0);
  return r;
}

Carried Evaluator::scan_products(const Carried& given, int64_t axis, Dtype declared) {
  const Carried x = in_sums(given);
  at::Tensor value = at::cumprod(x.value, axis);
  if (!options_.bounds) return rounded(std::move(value), declared);
  const at::Tensor sizes = at::abs(x.value);
  // If a partial product may overflow, or lose digits below the smallest normal number, the order decides.
  const double top = std::log2(accumulator_overflow(declared)) - 1, bottom = -top + 26;
  const at::Tensor risky = at::logical_or(at::cumsum(logarithms_of(most_of(x)).clamp_min(0.0), axis) > top,
                                          at::cumsum(logarithms_of(sizes).clamp_max(0.0), axis) < bottom);
  // NaN is certain behind a NaN, or behind an infinity and a 0.
  const at::Tensor settled =
      x.exact() ? at::logical_or(so_far(at::isnan(x.value), axis),
                                 at::logical_and(so_far(at::isinf(x.value), axis), so_far(x.value == 0, axis)))
                : at::isnan(no_bound());
  const double parts = is_complex(declared) ? 4.0 : 1.01;
  at::Tensor spread = no_bound().expand(value.sizes());
  if (!x.exact()) {
    // Π(|x| + b) − Π|x|
    const at::Tensor most = at::cumprod(most_of(x), axis);
    spread = at::nan_to_num(most - at::cumprod(sizes, axis), kInfinity, kInfinity).mul_(1 + 0x1p-40);
  }
  // Each element takes a second rounding if it is rounded on the way into the accumulator.
  const at::Tensor counts = counts_along(x.value, axis);
  const at::Tensor roundings = loses_digits(x.dtype, declared) ? 2 * counts - 1 : counts - 1;
  at::Tensor error =
      (at::nan_to_num(at::abs(value), 0.0, 0.0) + spread) * (roundings * (parts * unit_roundoff(declared)));
  error = at::where(at::logical_and(risky, at::logical_not(settled)), kInfinity, error);
  if (is_complex(declared)) error = at::where(at::isfinite(rounded(value.clone(), declared).value), error, kInfinity);
  return finish_sum(std::move(value), spread, error, declared, true);
}

at::Tensor added_rows(const at::Tensor& to, const at::Tensor& places, const at::Tensor& rows) {
  if (!to.is_complex()) return at::index_add(to.contiguous(), 0, places, rows);
  const auto parts = [](const at::Tensor& t) { return at::view_as_real(t.contiguous()); };
  return at::view_as_complex(at::index_add(parts(to), 0, places, parts(rows)));
}

std::vector<Carried> Evaluator::scan_extremes(const Op& op) {
  const Carried x = carried(op.operands[0]);
  const int64_t axis = scan_axis(op, x.value);
  const bool largest = op.kind == OpKind::kCummax;
  auto [values, places] = largest ? at::cummax(ordered(x), axis) : at::cummin(ordered(x), axis);
  Carried r;
  r.dtype = x.dtype;
  r.zero_sign = false;
  r.value = values;
  if (x.dtype == Dtype::kUint64) r.value = ordered(r);
  Carried at = indices(places);
  if (x.exact() || !options_.bounds) return {r, at};
  const auto pick = [&](const at::Tensor& t) { return largest ? running_max(t, axis) : running_min(t, axis); };
  const at::Tensor most = running_max(x.bound, axis);
  r.bound = moved(ends_of(x), standing(r), pick);
  r.bound = at::where(at::isinf(most), kInfinity, at::nan_to_num(r.bound, 0.0, kInfinity));
  at.bound = free_where(most > 0);
  ambiguous_ += (most > 0).sum().item<int64_t>();
  return {r, at};
}

void check_topk_count(const Graph& g, const Op& op, int64_t count, int64_t extent) {
  if (count >= 0 && count <= extent) return;
  throw Error(ErrorCode::kSizeMismatch,
              "topk takes " + std::to_string(count) + " elements of an axis of " + std::to_string(extent) +
                  "; take no more than it has",
              "%" + g[op.results[0]].name);
}

std::vector<Carried> Evaluator::sorted(const Op& op) {
  const Carried x = carried(op.operands[0]);
  const int64_t axis = scan_axis(op, x.value), extent = x.value.size(axis);
  const bool is_topk = op.kind == OpKind::kTopk;
  const bool descends = op.attrs.flag(is_topk ? AttrKey::kLargest : AttrKey::kDescending);
  const int64_t count = is_topk ? integer(op.operands[1]) : extent;
  check_topk_count(g_, op, count, extent);
  auto [values, places] = at::sort(ordered(x), /*stable=*/true, axis, descends);
  const auto first = [&](const at::Tensor& t) { return t.narrow(axis, 0, count); };
  Carried at = indices(first(places));
  const bool bounds = !x.exact() && options_.bounds && extent > 0;
  if (bounds) {
    // A place is certain if the intervals before it end before its own, and those behind begin behind.
    const Ends ends = ends_of(x);
    // Turns the order around; the least integer has no negative.
    const auto turned = [&](const at::Tensor& t) {
      if (descends) return t.scalar_type() == at::kLong ? at::bitwise_not(t) : at::neg(t);
      return t;
    };
    const at::Tensor low = at::gather(turned(descends ? ends.high : ends.low), axis, places);
    const at::Tensor high = at::gather(turned(descends ? ends.low : ends.high), axis, places);
    const at::Tensor before = running_max(high, axis).narrow(axis, 0, extent - 1);
    const at::Tensor behind = running_min(low.flip(axis), axis).flip(axis).narrow(axis, 1, extent - 1);
    at::Tensor certain = at::ones(low.sizes(), at::kBool);
    certain.narrow(axis, 1, extent - 1).logical_and_(before < low.narrow(axis, 1, extent - 1));
    certain.narrow(axis, 0, extent - 1).logical_and_(high.narrow(axis, 0, extent - 1) < behind);
    certain = at::logical_or(certain, at::amax(x.bound, axis, true) == 0);
    at.bound = first(free_where(at::logical_not(certain))).clone();
    ambiguous_ += first(at::logical_not(certain)).sum().item<int64_t>();
  }
  if (!is_topk) return {at};
  Carried r;
  r.dtype = x.dtype;
  r.zero_sign = false;
  r.value = first(values);
  if (x.dtype == Dtype::kUint64) r.value = ordered(r);
  if (!bounds) return {r, at};
  // The element of rank j lies between those of rank j of the lowest and of the highest values.
  const auto rank = [&](const at::Tensor& t) {
    return first(std::get<0>(at::sort(t, /*stable=*/true, axis, descends)));
  };
  r.bound = moved(ends_of(x), standing(r), rank);
  r.bound =
      at::where(at::isinf(at::amax(x.bound, axis, true)), kInfinity, at::nan_to_num(r.bound, kInfinity, kInfinity));
  return {r, at};
}

Carried Evaluator::add_at(const Op& op) {
  const Carried x = carried(op.operands[0]), index = carried(op.operands[1]), rows = carried(op.operands[2]);
  const bool by_element = op.kind == OpKind::kScatterAdd;
  const int64_t axis = by_element ? scan_axis(op, x.value) : 0;
  check_indices(index.value, x.value.size(axis), false, op.operands[1]);
  const at::Tensor list = by_element ? index.value : index.value.reshape({-1});
  const auto add = [&](const at::Tensor& to, const at::Tensor& source) {
    return by_element ? at::scatter_add(to.contiguous(), axis, list, source) : added_rows(to, list, source);
  };
  Carried r;
  r.dtype = x.dtype;
  at::Tensor value = add(x.value, rows.value);
  const auto bound_of = [](const Carried& c) { return c.exact() ? no_bound().expand(c.value.sizes()) : c.bound; };
  const bool is_exact = x.exact() && rows.exact() && index.exact();
  const bool free = !index.exact() && (index.bound > 0).any().item<bool>();
  at::Tensor spread = at::zeros(value.sizes(), at::kDouble);
  if (options_.bounds && !is_exact) spread = add(bound_of(in_sums(x)), bound_of(in_sums(rows)).contiguous());
  if (carrier_of(x.dtype) == Carrier::kInteger) {
    r.value = value;
    const Loop loop{OpKind::kCast, Dtype::kInt64, x.dtype, {{Dtype::kInt64, true}}, &ambiguous_};
    r = into(integer_loop, loop, std::span<const Carried>(&r, 1), at::kLong);
    if (!options_.bounds || is_exact) return r;
    r.bound = free ? at::full(r.value.sizes(), kInfinity, at::kDouble) : free_where_it_wraps(x.dtype, r.value, spread);
    return r;
  }
  if (!options_.bounds) return rounded(std::move(value), x.dtype);
  // Each addition may be rounded to the dtype itself.
  const at::Tensor additions = add(at::zeros(x.value.sizes(), at::kDouble), at::ones(rows.value.sizes(), at::kDouble));
  const at::Tensor sizes = add(finite_sizes(x.value), finite_sizes(rows.value)) + spread;
  const double rounding = std::max(ulp_of(real_of(x.dtype), 1.0) / 2, unit_roundoff(x.dtype));
  at::Tensor error = sizes * (additions * (1.01 * rounding));
  error = at::where(sizes < overflow_of(real_of(x.dtype)), error, kInfinity);
  r = finish_sum(std::move(value), spread, error, x.dtype, true);
  // An element without sources is as it was.
  r.bound = free ? at::full_like(r.bound, kInfinity) : at::where(additions == 0, bound_of(x), r.bound);
  return r;
}

}  // namespace fusebox::aten
