// Scaled dot product attention: softmax(scale q kᵀ) v, and its gradient: T. Dao, "FlashAttention-2", 2023, §3.
//
// Scores are accumulated in float, and the weights may be rounded to the dtype before they multiply values, as attention
// kernels do. If a score is off by e, a weight is off by the factor exp(2e) − 1 at most, because the sum of the weights
// moves too.
#include <ATen/ATen.h>
#include <cmath>

#include "ir/table/families.h"
#include "replay/aten/evaluator.h"
#include "replay/aten/in_sums.h"
#include "replay/aten/narrow_strides.h"
#include "replay/aten/rounding.h"

namespace fusebox::aten {
namespace {

at::Tensor bound_of(const Carried& c) { return c.exact() ? at::zeros(c.value.sizes(), at::kDouble) : c.bound; }
at::Tensor transposed(const at::Tensor& x) { return x.transpose(-2, -1); }
// Not a number means that nothing is known.
at::Tensor known(const at::Tensor& error) { return at::nan_to_num(error, kInfinity, kInfinity); }

// One side of a product of matrices: its values, their magnitudes, and how far off they may be.
struct Side {
  at::Tensor value, size, bound;
  explicit Side(const Carried& c) : value(c.value), size(magnitudes(c.value)), bound(bound_of(c)) {}
  Side(at::Tensor v, at::Tensor s, at::Tensor b) : value(std::move(v)), size(std::move(s)), bound(std::move(b)) {}
  Side turned() const { return {transposed(value), transposed(size), transposed(bound)}; }
};

// The arithmetic of kernels for tensors of one dtype.
struct Arithmetic {
  double u, narrow;     // half a last place at 1: of sums, and of the dtype
  double step, weight;  // how far off a product may be near 0, and a weight
  double overflow;      // of sums
  explicit Arithmetic(Dtype declared)
      : u(unit_roundoff(declared)),
        narrow(ulp_of(declared, 1.0) / 2),
        step(ulp_of(compute_dtype(declared), 0.0)),
        weight(std::max(least_normal(compute_dtype(declared)), ulp_of(declared, 0.0))),
        overflow(accumulator_overflow(declared)) {}
};

// The error of a sum of `terms` products, the operands' own included.
at::Tensor product_error(const Side& a, const Side& b, int64_t terms, const Arithmetic& by) {
  const double own = 2.02 * static_cast<double>(terms + 1) * by.u;
  const at::Tensor sizes = product_of(a.size, b.size);
  const at::Tensor spread = product_of(a.size, b.bound) + product_of(a.bound, b.size + b.bound);
  const at::Tensor error = (sizes + spread) * own + spread + static_cast<double>(terms) * by.step;
  // Beyond the range of sums a partial sum may overflow or not.
  return at::where(sizes + error < by.overflow, error, kInfinity);
}

struct Scores {
  at::Tensor value;  // scale q kᵀ, −∞ where a key is not seen
  at::Tensor error;  // 0 where a key is not seen
  at::Tensor hidden;
};

// The scores of a query and its keys. Without features they are 0.
Scores scores_of(const Carried& q, const Carried& k, double scale, bool is_causal, const Arithmetic& by) {
  Scores s;
  Side query(Carried{.value = q.value * scale,
                     .bound = q.exact() ? at::Tensor() : q.bound * std::abs(scale),
                     .dtype = q.dtype,
                     .zero_sign = true});
  // Kernels may scale the query, which may overflow, or the sums.
  query.size = at::where(query.size < by.overflow, query.size, kInfinity);
  const Side key = Side(k).turned();
  s.value = product_of(query.value, key.value);
  s.error = product_error(query, key, q.value.size(-1) + 2, by);
  // A score that is no number, or infinite, makes a weight that kernels treat in several ways.
  s.error = at::where(at::isfinite(s.value), s.error, kInfinity);
  if (!is_causal) return s;
  const int64_t rows = s.value.size(-2), columns = s.value.size(-1);
  s.hidden = at::ones({rows, columns}, at::kBool).triu(1);
  s.value = s.value.masked_fill(s.hidden, -kInfinity);
  s.error = s.error.masked_fill(s.hidden, 0.0);
  return s;
}

double scale_of(const Carried* given, int64_t features) {
  return given ? given->value.item<double>() : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(features, 1)));
}

// The largest of each row, 0 for a row without keys.
at::Tensor row_max(const at::Tensor& x) {
  if (x.size(-1) > 0) return at::amax(x, -1, true);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = 1;
  return at::zeros(sizes, at::kDouble);
}

}  // namespace

std::vector<Carried> Evaluator::attention(const Op& op) {
  const auto in = [&](size_t i) { return in_sums(carried(op.operands[i])); };
  const Carried q = in(0), k = in(1), v = in(2);
  const Dtype declared = q.dtype, sums = g_[op.results[1]].dtype;
  std::optional<Carried> given;
  if (op.operands.size() > 3 && op.operands[3]) given = cast(carried(op.operands[3]), Dtype::kDouble);
  const double scale = scale_of(given ? &*given : nullptr, q.value.size(-1));
  const Arithmetic by(declared);
  const double u = by.u;
  const Scores s = scores_of(q, k, scale, op.attrs.flag(AttrKey::kCausal), by);
  const at::Tensor lse = at::logsumexp(s.value, -1, true);
  const at::Tensor weights = at::exp(s.value - lse);
  at::Tensor out = product_of(weights, v.value), log_sum = lse.squeeze(-1).clone();
  if (!options_.bounds) return {rounded(std::move(out), declared), rounded(std::move(log_sum), sums)};

  const auto keys = static_cast<double>(k.value.size(-2));
  const at::Tensor off = row_max(s.error), largest = row_max(finite_sizes(s.value)) + off;
  const at::Tensor sum_error = off + largest * (4 * u) + (2 * keys + 16) * u;
  const at::Tensor relative = at::expm1(2 * sum_error) + 2 * by.narrow;
  const Side value(v);
  const at::Tensor all = product_of(weights, value.size);
  const at::Tensor spread = known(product_of(weights, value.bound) * (1 + relative));
  at::Tensor error = all * relative + (all + spread) * ((2 * keys + 4) * u) +
                     at::sum(value.size + value.bound, -2, true) * by.weight + keys * by.step;
  error = known(at::where(all + error + spread < by.overflow, error, kInfinity));
  at::Tensor log_error = known(sum_error.squeeze(-1) + finite_sizes(log_sum) * (4 * u));
  if (keys == 0) error = at::zeros_like(error), log_error = at::zeros_like(log_error);
  if (given && !given->exact())
    error = at::full_like(error, kInfinity), log_error = at::full_like(log_error, kInfinity);
  const at::Tensor none = no_bound().expand(log_sum.sizes());
  std::vector<Carried> results;
  results.push_back(finish_reduction(std::move(out), spread, error, declared));
  results.push_back(finish_reduction(std::move(log_sum), none, log_error, sums));
  return results;
}

std::vector<Carried> Evaluator::attention_gradient(const Op& op) {
  const auto in = [&](size_t i) { return in_sums(carried(op.operands[i])); };
  const Carried g = in(0), q = in(1), k = in(2), v = in(3), o = in(4), lse = in(5);
  const Dtype declared = q.dtype;
  std::optional<Carried> given;
  if (op.operands.size() > 6 && op.operands[6]) given = cast(carried(op.operands[6]), Dtype::kDouble);
  const double scale = scale_of(given ? &*given : nullptr, q.value.size(-1));
  const Arithmetic by(declared);
  const double u = by.u, narrow = by.narrow;
  const Scores s = scores_of(q, k, scale, op.attrs.flag(AttrKey::kCausal), by);
  at::Tensor weights = at::exp(s.value - lse.value.unsqueeze(-1));
  if (s.hidden.defined()) weights = weights.masked_fill(s.hidden, 0.0);
  const at::Tensor to_weights = product_of(g.value, transposed(v.value));
  const at::Tensor along = at::sum(g.value * o.value, -1, true);
  const at::Tensor to_scores = weights * (to_weights - along);
  at::Tensor dq = product_of(to_scores, k.value) * scale;
  at::Tensor dk = product_of(transposed(to_scores), q.value) * scale;
  at::Tensor dv = product_of(transposed(weights), g.value);
  if (!options_.bounds)
    return {rounded(std::move(dq), declared), rounded(std::move(dk), declared), rounded(std::move(dv), declared)};

  const int64_t queries = q.value.size(-2), keys = k.value.size(-2), features = v.value.size(-1);
  const at::Tensor size = finite_sizes(s.value) + finite_sizes(lse.value).unsqueeze(-1);
  const at::Tensor relative = at::expm1(s.error + bound_of(lse).unsqueeze(-1) + size * (4 * u) + 8 * u) + 2 * narrow;
  const Side gradient(g), output(o);
  at::Tensor weights_off = weights * relative + by.weight;
  at::Tensor moved = product_error(gradient, Side(v).turned(), features, by);
  const at::Tensor along_sizes = at::sum(gradient.size * output.size, -1, true);
  moved = moved + along_sizes * (2.02 * static_cast<double>(features + 2) * u) +
          at::sum(gradient.size * output.bound + gradient.bound * (output.size + output.bound), -1, true);
  // Where a sum may overflow, the difference of two may be NaN.
  moved = at::where(along_sizes + moved < by.overflow, moved, kInfinity);
  const at::Tensor apart = magnitudes(to_weights - along);
  at::Tensor scores_off =
      (weights + weights_off) * moved + weights_off * apart + weights * apart * (2 * narrow) + by.weight;
  if (s.hidden.defined()) {
    // A weight of 0 times a difference that may be infinite, or no number, is no number.
    const at::Tensor is_zero = at::logical_and(s.hidden, at::isfinite(moved));
    weights_off = weights_off.masked_fill(s.hidden, 0.0);
    scores_off = at::where(is_zero, 0.0, known(scores_off));
  }
  const Side weight(weights, weights, weights_off);
  const Side score(to_scores, magnitudes(to_scores), scores_off);
  const double factor = std::abs(scale);
  at::Tensor errors[] = {product_error(score, Side(k), keys + 1, by) * factor,
                         product_error(score.turned(), Side(q), queries + 1, by) * factor,
                         product_error(weight.turned(), gradient, queries, by)};
  at::Tensor values[] = {std::move(dq), std::move(dk), std::move(dv)};
  std::vector<Carried> results;
  for (size_t i = 0; i < 3; ++i) {
    at::Tensor error = known(errors[i]);
    if (given && !given->exact()) error = at::full_like(error, kInfinity);
    const at::Tensor none = no_bound().expand(values[i].sizes());
    results.push_back(finish_reduction(std::move(values[i]), none, error, declared));
  }
  return results;
}

}  // namespace fusebox::aten
