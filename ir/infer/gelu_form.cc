#include "ir/infer/gelu_form.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/scalar/numeric.h"

namespace fusebox {
namespace {

// Coefficients by the powers of x and of t.
using Polynomial = std::map<std::pair<int, int>, double>;

constexpr size_t kMostOps = 32;
constexpr int kHighestPower = 4;
constexpr double kCloseness = 1e-6;

bool is_close(double value, double expected) { return std::abs(value - expected) <= kCloseness * std::abs(expected); }

// Whether the polynomial has these terms, and no other that counts.
bool has_terms(const Polynomial& p, const Polynomial& expected) {
  return std::ranges::all_of(
             expected,
             [&](const auto& term) { return p.contains(term.first) && is_close(p.at(term.first), term.second); }) &&
         std::ranges::all_of(p, [&](const auto& term) { return expected.contains(term.first) || term.second == 0; });
}

class Finder {
 public:
  Finder(const Graph& g, ValueId x, const GeluOptions& options) : g_(g), x_(x), options_(options) {
    known_[x] = {{{1, 0}, 1.0}};
  }

  std::optional<GeluForm> run(std::span<const OpId> ops) {
    size_t tried = 0;
    for (OpId id : ops) {
      const Op& op = g_[id];
      const bool reads_known = std::ranges::any_of(op.operands, [&](ValueId v) { return known_.contains(v); });
      if (!reads_known || op.results.size() != 1 || g_[op.results[0]].dtype != g_[x_].dtype) continue;
      if (++tried > kMostOps) break;
      auto p = polynomial(id);
      if (!p) continue;
      const bool is_gelu = has_terms(*p, {{{1, 0}, 0.5}, {{1, 1}, 0.5}});
      known_[op.results[0]] = *std::move(p);
      made_by_.push_back(id);
      if (is_gelu) return form_of(op.results[0]);
    }
    return std::nullopt;
  }

 private:
  // A tensor's polynomial, or that of a constant.
  std::optional<Polynomial> operand(ValueId v) const {
    if (!v) return std::nullopt;
    if (const auto it = known_.find(v); it != known_.end()) return it->second;
    const Value& value = g_[v];
    if (!value.constant || is_complex(value.dtype)) return std::nullopt;
    const double number = to_double(Dtype::kDouble, convert(value.dtype, *value.constant, Dtype::kDouble));
    if (!std::isfinite(number)) return std::nullopt;
    return Polynomial{{{0, 0}, number}};
  }

  static std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
    Polynomial result;
    for (const auto& [m, c] : a)
      for (const auto& [n, d] : b) {
        const std::pair<int, int> power{m.first + n.first, m.second + n.second};
        if (power.first > kHighestPower || power.second > kHighestPower) return std::nullopt;
        result[power] += c * d;
      }
    return result;
  }
  static Polynomial sum(Polynomial a, const Polynomial& b, double sign) {
    for (const auto& [power, c] : b) a[power] += sign * c;
    return a;
  }
  static std::optional<double> number(const Polynomial& p) {
    if (p.size() != 1 || p.begin()->first != std::pair{0, 0}) return std::nullopt;
    return p.begin()->second;
  }

  std::optional<Polynomial> polynomial(OpId id) {
    const Op& op = g_[id];
    std::vector<Polynomial> given;
    for (ValueId v : op.operands) {
      auto p = operand(v);
      if (!p) return std::nullopt;
      given.push_back(*std::move(p));
    }
    switch (op.kind) {
      case OpKind::kAdd:
        return sum(given[0], given[1], 1);
      case OpKind::kSub:
        return sum(given[0], given[1], -1);
      case OpKind::kMul:
        return product(given[0], given[1]);
      case OpKind::kNeg:
        return product(given[0], {{{0, 0}, -1.0}});
      case OpKind::kDiv:
      case OpKind::kTruediv: {
        const auto divisor = number(given[1]);
        if (!divisor || *divisor == 0) return std::nullopt;
        return product(given[0], {{{0, 0}, 1 / *divisor}});
      }
      case OpKind::kPow: {
        const auto power = number(given[1]);
        if (power == 2) return product(given[0], given[0]);
        const auto square = power == 3 ? product(given[0], given[0]) : std::nullopt;
        return square ? product(*square, given[0]) : std::nullopt;
      }
      case OpKind::kTanh: {
        const double slope = std::sqrt(2 / std::acos(-1.0));
        return curve(id, given[0], {{{1, 0}, slope}, {{3, 0}, slope * 0.044715}});
      }
      case OpKind::kErf:
        if (!options_.by_erf) return std::nullopt;
        return curve(id, given[0], {{{1, 0}, std::sqrt(0.5)}});
      default:  // any other: no part of gelu
        return std::nullopt;
    }
  }

  // t itself, if its argument is gelu's and no other op is t already.
  std::optional<Polynomial> curve(OpId id, const Polynomial& argument, const Polynomial& expected) {
    if (curve_ || !has_terms(argument, expected)) return std::nullopt;
    curve_ = id;
    return Polynomial{{{0, 1}, 1.0}};
  }

  GeluForm form_of(ValueId result) const {
    GeluForm form{result, curve_, {}};
    std::set<ValueId> needed{result};
    for (size_t i = made_by_.size(); i-- > 0;) {
      if (!needed.contains(g_[made_by_[i]].results[0])) continue;
      form.ops.push_back(made_by_[i]);
      for (ValueId v : g_[made_by_[i]].operands)
        if (v != x_) needed.insert(v);
    }
    std::ranges::reverse(form.ops);
    return form;
  }

  const Graph& g_;
  const ValueId x_;
  const GeluOptions options_;
  std::map<ValueId, Polynomial> known_;
  std::vector<OpId> made_by_;
  OpId curve_;
};

}  // namespace

std::optional<GeluForm> find_gelu(const Graph& g, std::span<const OpId> ops, ValueId x, const GeluOptions& options) {
  return Finder(g, x, options).run(ops);
}

}  // namespace fusebox
