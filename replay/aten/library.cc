// Ops that ATen alone computes: products of matrices, and the switch over all of them.
//
// The error of a sum of n products is at most n roundings of the sum of the products' magnitudes, in any order: N. J.
// Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., §3.1. Two roundings are allowed for each, because
// tensor cores truncate. A product that underflows errs by the smallest number η besides: by half of it, and by as much
// for truncation, or in double for the reference. A sum does not: it is a multiple of η. A library may take subnormal
// factors in f32 as 0. Products of narrow floats are accumulated in float. If a plan may compute what follows a product
// in the same call (ir/infer/product_call.h), the bound also allows the product without its rounding to 16 bits, and a
// library may scale parts of the sum before it adds them up: where these overflow, −1.5 · (inf − 3e38) was NaN on an
// H200.
#include <ATen/ATen.h>
#include <cmath>

#include "ir/infer/product_call.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "replay/aten/evaluator.h"
#include "replay/aten/in_sums.h"
#include "replay/aten/narrow_strides.h"
#include "replay/aten/rounding.h"

namespace fusebox::aten {
namespace {

// f(|a|, bound of b) + f(bound of a, |b|) + f(bound of a, bound of b)
at::Tensor spread_of(const Bilinear& f, const Carried& a, const Carried& b, const at::Tensor& like) {
  at::Tensor spread = at::zeros(like.sizes(), at::kDouble);
  if (!b.exact()) spread = spread + f(magnitudes(a.value), b.bound);
  if (!a.exact()) spread = spread + f(a.bound, magnitudes(b.value));
  if (!a.exact() && !b.exact()) spread = spread + f(a.bound, b.bound);
  return at::nan_to_num(spread, kInfinity, kInfinity);
}

// How much a product of f32 changes if a library takes subnormal factors as 0, as was seen on an H200: infinite where one
// meets an infinity, because 0 times an infinity is NaN.
at::Tensor without_subnormals(const Bilinear& f, const at::Tensor& a, const at::Tensor& b) {
  const auto small = [](const at::Tensor& t) { return at::abs(t) * at::logical_and(t != 0, at::abs(t) < 0x1p-126); };
  const auto infinite = [](const at::Tensor& t) { return at::isinf(t).to(at::kDouble); };
  const at::Tensor x = at::nan_to_num(small(a)), y = at::nan_to_num(small(b));
  if (!x.any().item<bool>() && !y.any().item<bool>()) return at::zeros({}, at::kDouble);
  const at::Tensor lost = f(x, infinite(b)) + f(infinite(a), y);
  return at::where(lost > 0, kInfinity, f(x, finite_sizes(b)) + f(finite_sizes(a), y));
}

// Also allows values that are not rounded to the dtype, each as far from `wide` as `error`.
void allow_wide(Carried& r, const at::Tensor& wide, const at::Tensor& error) {
  const double overflow = overflow_of(real_of(r.dtype));
  const auto notional = [&](const at::Tensor& t) { return at::nan_to_num(t, NAN, overflow, -overflow); };
  const at::Tensor reach =
      at::nan_to_num(at::abs(notional(wide) - notional(r.value)) + error, 0.0, kInfinity, kInfinity);
  r.bound = r.exact() ? reach : at::maximum(r.bound, reach);
}

}  // namespace

Carried Evaluator::product(const Bilinear& f, const Carried& a, const Carried& b, const Carried* addend, int64_t terms,
                           const Freedom& freedom) {
  const Dtype declared = a.dtype;
  at::Tensor value = f(a.value, b.value);
  at::Tensor sum = addend ? value + addend->value : value;
  if (!options_.bounds) return rounded(std::move(sum), declared);
  const Dtype accumulator = real_of(compute_dtype(declared));
  const double parts = is_complex(declared) ? 4 : 1;
  at::Tensor sizes = f(finite_sizes(a.value), finite_sizes(b.value));
  // Each part of a complex number sums two products a term, and the reference's part is rounded by half of η, which
  // finish_sum allows in reals alone. The modulus errs by √2 times that.
  const auto n = static_cast<double>(terms);
  const double underflows = is_complex(declared) ? std::sqrt(2.0) * (2 * n + 0.5) : n;
  at::Tensor spread = spread_of(f, a, b, value);
  sizes = sizes + spread;
  at::Tensor error = sizes * (2.02 * parts * (n + 1) * unit_roundoff(declared)) + underflows * ulp_of(accumulator, 0.0);
  if (declared == Dtype::kFloat) error = error + without_subnormals(f, a.value, b.value);
  if (terms == 0) error = at::zeros_like(error);
  if (addend) {
    // ATen may round the product to its dtype before it adds. Or it begins with the addend, and each of the products is
    // added to it: so it does where rows have the stride 0.
    const at::Tensor product_size = finite_sizes(value) + spread;
    at::Tensor addend_size = finite_sizes(addend->value);
    if (!addend->exact()) addend_size = addend_size + addend->bound;
    error = error + (product_size + addend_size) * (ulp_of(real_of(declared), 1.0) / 2) +
            addend_size * (2.02 * parts * n * unit_roundoff(declared));
    if (real_of(declared) != accumulator) error = error + ulp_of(real_of(declared), 0.0) / 2;
    sizes = sizes + addend_size;
    if (!addend->exact()) spread = spread + addend->bound;
  }
  // Beyond the accumulator's range, or the dtype's if the product is rounded first, a partial sum may overflow or not, and
  // so may one that its roundings carry there.
  const double overflow = addend ? overflow_of(real_of(declared)) : accumulator_overflow(declared);
  error = at::where((sizes + error) * freedom.scale < overflow, error, kInfinity);
  // A product of complex numbers has no agreed value once a part is infinite or NaN: libraries multiply in three or in
  // four products, and differ in the NaNs that they make.
  if (is_complex(declared)) {
    const at::Tensor lost = f(1 - at::isfinite(a.value).to(at::kDouble), at::ones(b.value.sizes(), at::kDouble)) +
                            f(at::ones(a.value.sizes(), at::kDouble), 1 - at::isfinite(b.value).to(at::kDouble));
    error = at::where(lost > 0, kInfinity, error);
    // ATen multiplies the addend by 1 + 0i.
    if (addend) error = at::where(at::isfinite(addend->value), error, kInfinity);
  }
  const at::Tensor wide = freedom.stays_wide ? sum.clone() : at::Tensor();
  Carried r = finish_sum(std::move(sum), spread, error, declared, true);
  if (freedom.stays_wide) allow_wide(r, wide, spread + error);
  return r;
}

Evaluator::Freedom Evaluator::freedom_of(const Op& op) {
  const OpId id = g_[op.results[0]].def;
  Freedom freedom{.stays_wide = may_stay_wide(g_, id)};
  for (ValueId v : scales_of(g_, id)) {
    if (is_complex(g_[v].dtype)) continue;
    const double scale = std::abs(carried(v).value.to(at::kDouble).item<double>());
    if (std::isfinite(scale)) freedom.scale = std::max(freedom.scale, scale);
  }
  return freedom;
}

Carried Evaluator::matmul(const Op& op) {
  const Carried a = in_sums(carried(op.operands[0])), b = in_sums(carried(op.operands[1]));
  const auto f = [](const at::Tensor& x, const at::Tensor& y) { return product_of(x, y); };
  return product(f, a, b, nullptr, a.value.size(-1), freedom_of(op));
}

Carried Evaluator::linear(const Op& op) {
  const Carried x = in_sums(carried(op.operands[0])), w = in_sums(carried(op.operands[1]));
  const auto f = [](const at::Tensor& t, const at::Tensor& weight) {
    return product_of(t, weight.dim() == 2 ? weight.t() : weight);
  };
  const Freedom freedom = freedom_of(op);
  if (op.operands.size() < 3 || !op.operands[2]) return product(f, x, w, nullptr, x.value.size(-1), freedom);
  const Carried bias = in_sums(carried(op.operands[2]));
  return product(f, x, w, &bias, x.value.size(-1), freedom);
}

void check_group_end(const Graph& g, ValueId ends, int64_t begin, int64_t end, int64_t extent) {
  if (end >= begin && end <= extent) return;
  throw Error(ErrorCode::kIndexOutOfRange,
              "the end " + std::to_string(end) + " of a group lies before the group or beyond " +
                  std::to_string(extent) + "; give ends in order, the last at most the extent",
              "%" + g[ends].name);
}

Carried Evaluator::grouped_mm(const Op& op) {
  const Carried a = in_sums(carried(op.operands[0])), b = in_sums(carried(op.operands[1]));
  const Carried ends = carried(op.operands[2]);
  const bool rows = b.value.dim() == 3, columns = a.value.dim() == 3;
  const int64_t extent = rows ? a.value.size(0) : columns ? b.value.size(1) : a.value.size(1);
  std::vector<int64_t> stops;
  const at::Tensor list = ends.value.contiguous();
  for (int64_t g = 0; g < list.numel(); ++g) {
    const int64_t stop = list[g].item<int64_t>();
    check_group_end(g_, op.operands[2], stops.empty() ? 0 : stops.back(), stop, extent);
    stops.push_back(stop);
  }
  // Rows and columns behind the last group are 0.
  const auto f = [&](const at::Tensor& x, const at::Tensor& y) {
    const int64_t m = x.size(-2), n = y.size(-1), groups = static_cast<int64_t>(stops.size());
    at::Tensor out = rows || columns ? at::zeros({m, n}, x.options()) : at::zeros({groups, m, n}, x.options());
    int64_t begin = 0;
    for (int64_t g = 0; g < groups; begin = stops[static_cast<size_t>(g)], ++g) {
      const int64_t stop = stops[static_cast<size_t>(g)];
      if (rows)
        out.slice(0, begin, stop).copy_(product_of(x.slice(0, begin, stop), y[g]));
      else if (columns)
        out.slice(1, begin, stop).copy_(product_of(x[g], y.slice(1, begin, stop)));
      else
        out[g].copy_(product_of(x.slice(1, begin, stop), y.slice(0, begin, stop)));
    }
    return out;
  };
  Carried r = product(f, a, b, nullptr, a.value.size(-1), {});
  if (!ends.exact() && options_.bounds) r.bound = at::full(r.value.sizes(), kInfinity, at::kDouble);
  return r;
}

Carried Evaluator::scaled_mm(const Op& op) {
  const Dtype declared = g_[op.results[0]].dtype;
  // A scale of rows stands along the first axis, one of columns along the second.
  const auto scaled = [&](size_t operand, int64_t axis) {
    const Carried x = in_sums(carried(op.operands[operand])), scale = in_sums(carried(op.operands[operand + 2]));
    const auto along = [&](const at::Tensor& t) { return t.dim() == 0 ? t : t.unsqueeze(1 - axis); };
    Carried r;
    r.dtype = declared;
    r.value = x.value * along(scale.value);
    if (!options_.bounds || (x.exact() && scale.exact())) return r;
    const auto bound_of = [](const Carried& c) { return c.exact() ? no_bound().expand(c.value.sizes()) : c.bound; };
    const at::Tensor moved = along(bound_of(scale));
    r.bound = magnitudes(x.value) * moved + bound_of(x) * (magnitudes(along(scale.value)) + moved);
    r.bound = at::nan_to_num(r.bound, kInfinity, kInfinity);
    return r;
  };
  const Carried a = scaled(0, 0), b = scaled(1, 1);
  const auto f = [](const at::Tensor& x, const at::Tensor& y) { return product_of(x, y); };
  // Each product may be rounded by its scales four times.
  const int64_t terms = a.value.size(-1) + 4;
  if (op.operands.size() < 5 || !op.operands[4]) return product(f, a, b, nullptr, terms, {});
  const Carried bias = in_sums(carried(op.operands[4]));
  return product(f, a, b, &bias, terms, {});
}

std::vector<Carried> Evaluator::library(const Op& op) {
  switch (op.kind) {
    case OpKind::kMatmul:
      return {matmul(op)};
    case OpKind::kLinear:
      return {linear(op)};
    case OpKind::kGroupedMm:
      return {grouped_mm(op)};
    case OpKind::kCumsum:
    case OpKind::kCumprod:
      return {scan(op)};
    case FUSEBOX_EXTREME_SCAN_OPS:
      return scan_extremes(op);
    case FUSEBOX_SORT_OPS:
      return sorted(op);
    case OpKind::kSdpfaFwd:
      return attention(op);
    case OpKind::kSdpfaBwd:
      return attention_gradient(op);
    case OpKind::kScaledMm:
      return {scaled_mm(op)};
    case FUSEBOX_ADDING_OPS:
      return {add_at(op)};
    case FUSEBOX_NON_LIBRARY_OPS:
      break;
  }
  not_in_family(op.kind, "is not computed by a library");
}

}  // namespace fusebox::aten
