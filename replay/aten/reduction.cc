// Reductions. The error of a sum is within d roundings of the sum of magnitudes, where d is the most additions that an
// element goes through: N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., §4.2. Every plan of
// ours adds in a tree whose depth grows with the logarithm of the number of elements. So the bound refuses a long sum
// that is added one element after another. A product takes a rounding for each factor, in any order: §3.1. Welford's
// update: T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for Computing the Sample Variance", 1983. Sums of
// narrow floats are accumulated in float.
#include <ATen/ATen.h>
#include <algorithm>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "replay/aten/evaluator.h"
#include "replay/aten/in_sums.h"
#include "replay/aten/rounding.h"

namespace fusebox::aten {
namespace {

// The most additions that one of `count` elements goes through. A thread's own sum is a cascade of strips: at most 16
// additions at each level, 4 for each doubling of the number, and the last level takes a partial sum of 2¹⁵ elements or
// more at once. Partial sums of several loops, threads and blocks are trees too. Splits with a remainder leave parts of
// unequal size; a quarter more and 16 are allowed for them.
double depth_of(int64_t count) {
  const auto n = static_cast<double>(std::max<int64_t>(count, 1));
  return std::min(n, 16 + 5 * std::log2(n) + n * 0x1p-15);
}

// Takes the bound from a sum or product with an element that is NaN in every implementation. Of a complex NaN one part may be
// a number.
void settle_certain_nan(const Carried& x, at::IntArrayRef axes, Dtype declared, at::Tensor& spread, at::Tensor& error) {
  if (x.exact() || carrier_of(declared) != Carrier::kReal) return;
  const at::Tensor certain = at::sum(at::logical_and(at::isnan(x.value), x.bound == 0), axes) > 0;
  spread = at::where(certain, 0.0, spread);
  error = at::where(certain, 0.0, error);
}

// Whether an element may be rounded to the accumulator and then to the result, or to the result alone.
bool is_rounded_twice(Dtype operand, Dtype declared) {
  return loses_digits(operand, declared) && declared != compute_dtype(declared);
}
at::Tensor first_rounding(const at::Tensor& value, Dtype declared) {
  const at::Tensor rounding = at::abs(value) * unit_roundoff(declared) + ulp_of(real_of(compute_dtype(declared)), 0.0);
  return at::where(at::isfinite(value), rounding, 0.0);
}

// Reduces over one axis after another, the last one first. Axes of no element come at the end, so that a tensor of
// [2^55, 0] elements becomes one of [0], not of [2^55]. `reduce` keeps the axis that it is given, with one element.
template <class Reduce>
at::Tensor over_each(at::Tensor x, at::IntArrayRef axes, Reduce&& reduce) {
  std::vector<int64_t> order(axes.begin(), axes.end());
  std::sort(order.rbegin(), order.rend());
  std::stable_partition(order.begin(), order.end(), [&](int64_t a) { return x.size(a) != 0; });
  for (int64_t a : order) x = reduce(x, a);
  return x.squeeze(axes);
}

// ATen, given several axes at once, adds along the outer ones in sequence.
at::Tensor sum_over(at::Tensor x, at::IntArrayRef axes) {
  if (axes.empty()) return at::sum(x, axes);
  return over_each(std::move(x), axes, [](const at::Tensor& t, int64_t a) { return at::sum(t, a, /*keepdim=*/true); });
}

at::Tensor product_over(at::Tensor x, at::IntArrayRef axes) {
  return over_each(std::move(x), axes, [](const at::Tensor& t, int64_t a) { return at::prod(t, a, /*keepdim=*/true); });
}

int64_t count_of(const at::Tensor& t, at::IntArrayRef axes) {
  int64_t n = 1;
  for (int64_t a : axes) n *= t.size(a);
  return n;
}

at::Tensor sums_of_bounds(const Carried& x, at::IntArrayRef axes, const at::Tensor& like) {
  return x.exact() ? no_bound().expand(like.sizes()) : at::sum(x.bound, axes);
}

std::vector<int64_t> reduced_axes(const Op& op, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t a : op.attrs.ints(AttrKey::kAxes)) axes.push_back(a < 0 ? a + rank : a);
  return axes;
}

int64_t lowest(Dtype d) {
  if (is_boolean(d) || !is_signed(d)) return 0;
  return bits(d) == 64 ? INT64_MIN : -(int64_t{1} << (bits(d) - 1));
}
int64_t highest(Dtype d) {
  if (is_boolean(d)) return 1;
  const uint64_t all = bits(d) == 64 ? ~uint64_t{0} : (uint64_t{1} << bits(d)) - 1;
  return static_cast<int64_t>(is_signed(d) ? all >> 1 : all);
}

}  // namespace

at::Tensor finite_sizes(const at::Tensor& x) {
  if (x.is_complex()) return at::sum(finite_sizes(at::view_as_real(x)), -1);
  return at::abs(x).nan_to_num_(0.0, 0.0, 0.0);
}

at::Tensor most_of(const Carried& x) { return x.exact() ? at::abs(x.value) : at::abs(x.value) + x.bound; }

at::Tensor logarithms_of(const at::Tensor& sizes) {
  return at::log2(at::nan_to_num(sizes, 1.0).masked_fill(sizes == 0, 1.0));
}

at::Tensor magnitudes(const at::Tensor& x) { return at::nan_to_num(at::abs(x), 0.0, kInfinity); }

Carried in_sums(Carried c) {
  if (c.exact() || carrier_of(c.dtype) == Carrier::kInteger) return c;
  const at::Tensor size = c.value.is_complex() ? at::amax(at::abs(at::view_as_real(c.value)), -1) : at::abs(c.value);
  const at::Tensor reaches = at::logical_and(c.bound > 0, size + c.bound >= overflow_of(real_of(c.dtype)));
  c.bound = at::where(reaches, kInfinity, c.bound);
  return c;
}

at::Tensor unsigned_values(const at::Tensor& bits) {
  const at::Tensor v = bits.to(at::kDouble);
  return at::where(bits < 0, v + 0x1p64, v);
}

at::Tensor free_where_it_wraps(Dtype d, const at::Tensor& value, const at::Tensor& bound) {
  // The room is subtracted as integers, because doubles do not tell the largest 64-bit integers apart. The factor allows
  // for the rounding of room and bound beyond 2⁵³.
  const auto leaves = [&](const at::Tensor& room) { return bound >= (unsigned_values(room) + 1) * (1 - 0x1p-50); };
  const at::Tensor wraps = at::logical_or(leaves(highest(d) - value), leaves(value - lowest(d)));
  return at::where(at::logical_and(wraps, bound > 0), kInfinity, bound);
}

Carried Evaluator::finish_reduction(at::Tensor value, at::Tensor spread, at::Tensor error, Dtype declared) {
  if (!options_.bounds) return rounded(std::move(value), declared);
  Carried r;
  r.dtype = declared;
  r.zero_sign = false;
  r.value = std::move(value);
  r.bound = at::empty(r.value.sizes(), at::kDouble);
  const at::Tensor outputs[] = {r.value, r.bound}, inputs[] = {spread, error};
  run_loop(outputs, inputs, [&](const Row& row) { reduction_loop(declared, row); });
  return r;
}

Carried Evaluator::reduce(const Op& op, Dtype declared, Carried x) {
  const std::vector<int64_t> axes = reduced_axes(op, x.value.dim());
  const int64_t count = count_of(x.value, axes);
  // Extremes are found in the operand's own dtype, sums in the declared one.
  if (carrier_of(declared) == Carrier::kInteger)
    return reduce_integers(op, declared, cast(std::move(x), declared), axes);
  if (op.kind == OpKind::kMax || op.kind == OpKind::kMin)
    return extreme(op.kind == OpKind::kMax, declared, x, axes, count);
  if (carrier_of(declared) != carrier_of(x.dtype)) x = cast(std::move(x), compute_dtype(declared));
  return op.kind == OpKind::kSum ? sum(declared, x, axes, count) : product(declared, x, axes, count);
}

Carried Evaluator::reduce_integers(const Op& op, Dtype declared, const Carried& x, at::IntArrayRef axes) {
  Carried r;
  r.dtype = declared;
  const bool empty = count_of(x.value, axes) == 0;
  switch (op.kind) {
    case OpKind::kSum:
      r.value = at::sum(x.value, axes);
      break;
    case OpKind::kProd:
      r.value = product_over(x.value, axes);
      break;
    case OpKind::kMax:
    case OpKind::kMin: {
      const bool largest = op.kind == OpKind::kMax;
      if (empty) {
        r.value = at::sum(x.value, axes).fill_(largest ? lowest(declared) : highest(declared));
        break;
      }
      // Flips the top bit, so that signed order is the order of unsigned 64-bit integers.
      const at::Tensor flip = at::scalar_tensor(declared == Dtype::kUint64 ? INT64_MIN : 0, at::kLong);
      const at::Tensor ordered = at::bitwise_xor(x.value, flip);
      r.value = at::bitwise_xor(largest ? at::amax(ordered, axes) : at::amin(ordered, axes), flip);
      break;
    }
    case FUSEBOX_MOMENT_OPS:
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_VIEW_OPS:
    case FUSEBOX_INDEXED_OPS:
    case FUSEBOX_PLACING_OPS:
    case FUSEBOX_LIBRARY_OPS:
    case FUSEBOX_STATEMENT_OPS:
      not_in_family(op.kind, "reduces no integers in the reference");
  }
  // Wraps an integer; makes a bool of any number but 0 true.
  Loop loop{OpKind::kCast, Dtype::kInt64, declared, {{Dtype::kInt64, true}}, &ambiguous_};
  r = into(integer_loop, loop, std::span<const Carried>(&r, 1), at::kLong);
  // The result of no elements is known.
  if (x.exact() || !options_.bounds || empty) return r;
  const bool adds = op.kind == OpKind::kSum, picks = op.kind == OpKind::kMax || op.kind == OpKind::kMin;
  if (is_boolean(declared)) {
    r.bound = at::amax(x.bound, axes).clamp_max(1.0);
  } else if (adds) {
    r.bound = free_where_it_wraps(declared, r.value, at::sum(x.bound, axes));
  } else if (picks) {
    r.bound = at::amax(x.bound, axes);
  } else {
    r.bound = free_where(at::amax(x.bound, axes) > 0);
  }
  return r;
}

Carried Evaluator::sum(Dtype declared, const Carried& x, at::IntArrayRef axes, int64_t count) {
  at::Tensor value = sum_over(x.value, axes);
  if (!options_.bounds) return rounded(std::move(value), declared);
  at::Tensor error = no_bound().expand(value.sizes());
  if (count == 1) {
    // One element is only cast. Its infinity may be a number by its bound.
    Carried r = x;
    r.value = std::move(value);
    if (!x.exact()) r.bound = sums_of_bounds(x, axes, r.value);
    if (is_rounded_twice(x.dtype, declared)) {
      const at::Tensor first = first_rounding(r.value, declared);
      r.bound = r.exact() ? first : r.bound + first;
    }
    r = cast(std::move(r), declared);
    r.zero_sign = false;
    return r;
  }
  at::Tensor spread = sums_of_bounds(in_sums(x), axes, value);
  if (count > 1) {
    const at::Tensor sizes = at::sum(finite_sizes(x.value), axes) + spread;
    // Beyond the accumulator's range a partial sum may overflow or not, and two of both signs add up to NaN.
    error = sizes * (1.01 * depth_of(count) * unit_roundoff(declared));
    // Each element that loses digits on the way into the accumulator may be off by its smallest number.
    if (loses_digits(x.dtype, declared))
      error = error + static_cast<double>(count) * ulp_of(real_of(compute_dtype(declared)), 0.0);
    error = at::where(sizes + error < accumulator_overflow(declared), error, kInfinity);
  }
  settle_certain_nan(x, axes, declared, spread, error);
  return finish_sum(std::move(value), spread, error, declared, count > 1);
}

Carried Evaluator::finish_sum(at::Tensor value, const at::Tensor& spread, const at::Tensor& error, Dtype declared,
                              bool rounds) {
  if (carrier_of(declared) == Carrier::kReal) return finish_reduction(std::move(value), spread, error, declared);
  Carried r = rounded(std::move(value), declared);
  if (!options_.bounds) return r;
  r.zero_sign = false;
  const double last = 2 * unit_roundoff(declared);
  r.bound = spread + error;
  if (rounds) r.bound = r.bound + (at::nan_to_num(at::abs(r.value), 0.0, 0.0) + r.bound) * (2 * last);
  return r;
}

Carried Evaluator::product(Dtype declared, const Carried& given, at::IntArrayRef axes, int64_t count) {
  const Carried x = count > 1 ? in_sums(given) : given;
  at::Tensor value = product_over(x.value, axes);
  if (!options_.bounds) return rounded(std::move(value), declared);
  const at::Tensor sizes = at::abs(x.value);
  at::Tensor error = no_bound().expand(value.sizes()), spread = error;
  if (!x.exact()) {
    // Π(|x| + b) − Π|x|
    const at::Tensor most = product_over(most_of(x), axes);
    spread = at::nan_to_num(most - product_over(sizes, axes), kInfinity, kInfinity).mul_(1 + 0x1p-40);
  }
  if (count > 1) {
    // If a partial product may overflow, or lose digits below the smallest normal number, the order decides.
    const double top = std::log2(accumulator_overflow(declared)) - 1, bottom = -top + 26;
    const at::Tensor risky = at::logical_or(at::sum(logarithms_of(most_of(x)).clamp_min(0.0), axes) > top,
                                            at::sum(logarithms_of(sizes).clamp_max(0.0), axes) < bottom);
    // NaN is certain if an element is NaN, or if an infinity meets a 0; the reference's own order may make other NaNs.
    const auto any = [&](const at::Tensor& where) { return at::sum(where, axes) > 0; };
    const at::Tensor settled =
        x.exact() ? at::logical_or(any(at::isnan(x.value)), at::logical_and(any(at::isinf(x.value)), any(x.value == 0)))
                  : at::isnan(no_bound());
    const double parts = carrier_of(declared) == Carrier::kComplex ? 4.0 : 1.01;
    // Each element takes a second one if it is rounded on the way into the accumulator.
    const auto roundings = static_cast<double>(loses_digits(x.dtype, declared) ? 2 * count : count);
    error = (at::nan_to_num(at::abs(value), 0.0, 0.0) + spread) * (parts * roundings * unit_roundoff(declared));
    error = at::where(at::logical_and(risky, at::logical_not(settled)), kInfinity, error);
  } else if (count == 1 && is_rounded_twice(x.dtype, declared)) {
    error = first_rounding(value, declared);
  }
  // An infinity times a kernel's initial value may make NaN in either part.
  if (carrier_of(declared) == Carrier::kComplex)
    error = at::where(at::isfinite(rounded(value, declared).value), error, kInfinity);
  settle_certain_nan(x, axes, declared, spread, error);
  if (carrier_of(declared) == Carrier::kReal) return finish_reduction(std::move(value), spread, error, declared);
  Carried r = rounded(std::move(value), declared);
  r.zero_sign = false;
  r.bound = spread + error;
  r.bound = r.bound + (at::nan_to_num(at::abs(r.value), 0.0, 0.0) + r.bound) * (4 * unit_roundoff(declared));
  return r;
}

Carried Evaluator::extreme(bool largest, Dtype declared, const Carried& x, at::IntArrayRef axes, int64_t count) {
  Carried r;
  r.dtype = declared;
  r.zero_sign = false;
  if (count == 0) {
    r.value = at::sum(x.value, axes).fill_(largest ? -kInfinity : kInfinity);
    return rounded(r.value, declared);
  }
  const auto pick = [&](const at::Tensor& t) { return largest ? at::amax(t, axes) : at::amin(t, axes); };
  r.value = pick(x.value);
  if (x.exact()) return r;
  // Clamps infinities to the overflow, which keeps their place in comparisons.
  const double overflow = overflow_of(declared);
  const at::Tensor standing = x.value.clamp(-overflow, overflow);
  const at::Tensor middle = r.value.clamp(-overflow, overflow);
  const at::Tensor above = pick(standing + x.bound) - middle, below = middle - pick(standing - x.bound);
  // NaN stays NaN in any order, unless another element may be anything.
  const at::Tensor free = at::isinf(at::amax(x.bound, axes));
  r.bound = at::maximum(above, below).clamp_min_(0.0).mul_(1 + 0x1p-50);
  r.bound = at::where(free, kInfinity, at::nan_to_num(r.bound, 0.0, kInfinity));
  return r;
}

std::vector<Carried> Evaluator::moments(const Op& op) {
  switch (op.kind) {
    case OpKind::kWelford:
      return welford(op);
    case FUSEBOX_REDUCTION_OPS:
    case FUSEBOX_VIEW_OPS:
    case FUSEBOX_INDEXED_OPS:
    case FUSEBOX_PLACING_OPS:
    case FUSEBOX_LIBRARY_OPS:
    case FUSEBOX_SCALAR_OPS:
    case FUSEBOX_STATEMENT_OPS:
      break;
  }
  not_in_family(op.kind, "gives no moments in the reference");
}

std::vector<Carried> Evaluator::welford(const Op& op) {
  const Dtype declared = g_[op.results[0]].dtype;
  const Carried x = in_sums(carried(op.operands[0]));
  const std::vector<int64_t> axes = reduced_axes(op, x.value.dim());
  const double u = unit_roundoff(declared);
  const bool merges = op.operands.size() > 2 && op.operands[1] && op.operands[2];
  Carried count;
  count.dtype = g_[op.results[2]].dtype;

  at::Tensor n, weights, inner, inner_bound;
  if (merges) {
    const Carried squares = in_sums(carried(op.operands[1])), counts = carried(op.operands[2]);
    count.value = at::sum(counts.value.expand(x.value.sizes()), axes);
    weights = counts.value.to(at::kDouble).expand(x.value.sizes());
    // A set without elements has no squares, whatever its operand says.
    inner = at::sum(at::where(weights != 0, squares.value.expand(x.value.sizes()), 0.0), axes);
    inner_bound =
        squares.exact() ? no_bound().expand(inner.sizes()) : at::sum(squares.bound.expand(x.value.sizes()), axes);
  } else {
    weights = at::ones({}, at::kDouble).expand(x.value.sizes());
    count.value = at::full(at::sum(x.value, axes).sizes(), count_of(x.value, axes), at::kLong);
  }
  n = count.value.to(at::kDouble);
  const at::Tensor divisor = n.clamp_min(1.0);
  const at::Tensor total = sum_over(x.value * weights, axes);
  const at::Tensor mean = total / divisor;
  at::Tensor wide = mean;
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t a : sorted) wide = wide.unsqueeze(a);
  // Without elements the mean is 0.
  const at::Tensor distance = at::where(weights > 0, x.value - wide, 0.0);
  at::Tensor squares = sum_over(distance * distance * weights, axes);
  if (merges) squares = squares + inner;

  const int64_t elements = count_of(x.value, axes);
  // Given sets may come in any size and order.
  const double steps = 2 + (merges ? static_cast<double>(elements) : depth_of(elements));
  const at::Tensor most = most_of(x);
  const at::Tensor most_sum = at::sum(most * weights, axes), most_raw = at::sum(at::square(most) * weights, axes);
  const double factor = 4 * steps * u;
  // A square is the square of a distance between means. Each mean is off by as many roundings as its tree is deep:
  // Σ over the levels k of k u sqrt(S_k Σx²), with Σ S_k = S.
  const double square_factor = 4 * std::min(static_cast<double>(elements) + 2, 2 * steps * std::sqrt(steps)) * u;
  // Each step may also be off by the accumulator's smallest number.
  const double underflow = 4 * steps * ulp_of(real_of(compute_dtype(declared)), 0.0);
  const bool one = !merges && elements == 1;
  const at::Tensor none = no_bound().expand(mean.sizes());
  // A mean may be computed from the sum of the elements, as the rewrite `two_pass_moments` does. Where that sum may leave
  // the accumulator's range, the mean may be an infinity, also where the elements are equal and a welford finds the mean.
  at::Tensor safe = 4 * most_sum < accumulator_overflow(declared);
  const at::Tensor is_small =
      at::logical_and(safe, 4 * most_raw * divisor < accumulator_overflow(declared));  // whatever the partial means are
  if (merges) safe = is_small;
  at::Tensor mean_spread = none, square_spread = inner_bound.defined() ? inner_bound : none;
  if (!x.exact()) {
    const at::Tensor b = at::where(weights > 0, x.bound, 0.0);
    mean_spread = at::sum(b * weights, axes) / divisor;
    // The mean's move cancels to first order. With the second order: Σ(2 |x − mean| b + b²)
    square_spread = square_spread + at::sum((2 * at::abs(distance) + b) * b * weights, axes);
  }
  // Roundings are relative to the elements that an implementation has, which are at most |x| + b.
  const at::Tensor mean_moves = most_sum / divisor * factor;
  at::Tensor mean_error =
      one ? none
          : at::where(safe, mean_moves + (merges ? (at::abs(mean) + mean_spread) * factor : none) + underflow,
                      kInfinity);
  // The relative error is that of the mean times κ = sqrt(Σx² / S), plus the square of the mean's own error.
  const at::Tensor most_squares = squares + square_spread;
  at::Tensor square_error = one ? none
                                : square_factor * at::sqrt(most_squares * most_raw) + factor * most_squares +
                                      n * (mean_moves * mean_moves + underflow);
  // The square of a distance between partial means is a part of the result, and is multiplied by a count before it is
  // divided by one. One element has the square 0, or NaN where a kernel merges it into nothing and its square overflows.
  const at::Tensor holds =
      merges || one
          ? is_small
          : at::logical_and(safe, 4 * (most_squares + square_error) * divisor < accumulator_overflow(declared));
  square_error = at::where(holds, square_error, kInfinity);
  if (merges) square_error = square_error + factor * (at::abs(inner) + inner_bound);
  if (one && x.exact()) {
    // The mean is the element, and the square of an infinity or NaN is NaN.
    square_error = at::where(at::isfinite(most_raw), square_error, 0.0);
  } else {
    // From an infinity an update makes an infinity or NaN, depending on the order.
    const at::Tensor infinite = at::isinf(most_raw);
    mean_spread = at::where(merges ? infinite : at::isinf(most_sum), kInfinity, mean_spread);
    square_spread = at::where(infinite, kInfinity, square_spread);
  }
  std::vector<Carried> results;
  results.push_back(finish_reduction(mean, mean_spread, mean_error, declared));
  results.push_back(finish_reduction(squares, square_spread, square_error, declared));
  results.push_back(std::move(count));
  return results;
}

}  // namespace fusebox::aten
