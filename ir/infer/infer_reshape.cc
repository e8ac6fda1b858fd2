// The shape rule of reshape: groups of axes merge and split.
#include <algorithm>
#include <numeric>

#include "ir/infer/infer_rules.h"

namespace fusebox {
namespace {

bool is_unit(const ScalarForm& f) { return f.is_constant() && f.constant == 1; }
bool is_zero(const ScalarForm& f) { return f.is_constant() && f.constant == 0; }

std::optional<ScalarForm> product(std::span<const ScalarForm> forms) {
  std::optional<ScalarForm> result = ScalarForm::of(1);
  for (const ScalarForm& f : forms) {
    result = mul(*result, f);
    if (!result) return std::nullopt;
  }
  return result;
}

// Replaces a −1 in the shape by the number of elements divided by the other extents.
void resolve_missing(InferContext& c, std::span<const Axis> operand) {
  std::optional<size_t> missing;
  std::vector<ScalarForm> others;
  for (size_t i = 1; i < c.operands.size(); ++i) {
    if (constant_integer(c.g, c.operands[i]) != -1) {
      others.push_back(form_of(c.g, c.operands[i]));
      continue;
    }
    if (missing)
      fail(c.g, ErrorCode::kBadAttribute, "the shape of reshape says −1 twice; only one extent can be left open",
           c.operands[0]);
    missing = i;
  }
  if (!missing) return;
  std::vector<ScalarForm> sizes;
  for (const Axis& a : operand) sizes.push_back(form_of(c.g, a.size()));
  const auto all = product(sizes), rest = product(others);
  const auto quotient = all && rest ? divide_exactly(*all, *rest) : std::nullopt;
  if (quotient) {
    c.operands[*missing] = emit_form(c.g, c.place, *quotient);
    return;
  }
  if (all && rest && all->is_constant() && rest->is_constant())
    fail(c.g, ErrorCode::kShapeMismatch,
         "reshape cannot divide " + std::to_string(all->constant) + " elements by " + std::to_string(rest->constant) +
             "; give all extents",
         c.operands[0]);
  if (const auto reduced = all && rest ? reduced_quotient(*all, *rest) : std::nullopt) {
    const ValueId dividend = emit_form(c.g, c.place, reduced->dividend);
    c.operands[*missing] = scalar::floor_div(c.g, c.place, dividend, emit_form(c.g, c.place, reduced->divisor));
    return;
  }
  ValueId elements = constant_index(c.g, 1), divisor = constant_index(c.g, 1);
  for (const Axis& a : operand) elements = scalar::mul(c.g, c.place, elements, a.size());
  for (size_t i = 1; i < c.operands.size(); ++i)
    if (i != *missing) divisor = scalar::mul(c.g, c.place, divisor, c.operands[i]);
  c.operands[*missing] = scalar::floor_div(c.g, c.place, elements, divisor);
}

}  // namespace

std::optional<ReducedQuotient> reduced_quotient(const ScalarForm& dividend, const ScalarForm& divisor) {
  const auto is_product = [](const ScalarForm& f) {
    return f.is_constant() ? f.constant > 0 : f.constant == 0 && f.terms.size() == 1 && f.terms[0].coefficient > 0;
  };
  if (!is_product(dividend) || !is_product(divisor)) return std::nullopt;
  const auto coefficient = [](const ScalarForm& f) { return f.is_constant() ? f.constant : f.terms[0].coefficient; };
  const auto factors = [](const ScalarForm& f) {
    return f.is_constant() ? std::vector<ValueId>() : f.terms[0].factors;
  };
  std::vector<ValueId> above = factors(dividend), below;
  for (ValueId v : factors(divisor)) {
    if (const auto it = std::ranges::find(above, v); it != above.end())
      above.erase(it);
    else
      below.push_back(v);
  }
  const int64_t shared = std::gcd(coefficient(dividend), coefficient(divisor));
  const auto made = [&](const ScalarForm& f, const std::vector<ValueId>& left) {
    std::optional<ScalarForm> result = ScalarForm::of(coefficient(f) / shared);
    for (ValueId v : left) result = result ? mul(*result, ScalarForm::atom(v)) : std::nullopt;
    return result;
  };
  const auto a = made(dividend, above), b = made(divisor, below);
  return a && b ? std::optional(ReducedQuotient{*a, *b}) : std::nullopt;
}

std::optional<std::vector<int64_t>> reshape_groups(std::span<const ScalarForm> from, std::span<const ScalarForm> to) {
  std::vector<int64_t> groups;
  const auto whole = [&]() -> std::vector<int64_t> {
    if (from.empty() && to.empty()) return {};
    return {static_cast<int64_t>(from.size()), static_cast<int64_t>(to.size())};
  };
  const auto any_zero = [](std::span<const ScalarForm> forms) {
    for (const ScalarForm& f : forms)
      if (is_zero(f)) return true;
    return false;
  };
  if (any_zero(from) || any_zero(to)) {
    if (any_zero(from) && any_zero(to)) return whole();
    return std::nullopt;
  }
  // One side has one element. The other side's extents must be 1; the check of symbols has to wait until they are
  // known.
  if (from.empty() || to.empty()) {
    for (std::span<const ScalarForm> side : {from, to})
      for (const ScalarForm& f : side)
        if (f.is_constant() && !is_unit(f)) return std::nullopt;
    return whole();
  }
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    std::optional<ScalarForm> a = from[i++], b = to[j++];
    int64_t merged = 1, split = 1;
    while (!a->equals(*b)) {
      // The smaller side takes another axis. If neither side divides the other, both take one.
      bool grow_a, grow_b;
      if (a->is_constant() && b->is_constant()) {
        grow_a = a->constant < b->constant;
        grow_b = !grow_a;
      } else {
        grow_b = divide_exactly(*a, *b).has_value();
        grow_a = !grow_b;
        if (grow_a && !divide_exactly(*b, *a)) grow_b = j < to.size();
      }
      if (grow_a && i == from.size()) grow_a = false, grow_b = grow_b || j < to.size();
      if (grow_b && j == to.size()) grow_b = false;
      if (!grow_a && !grow_b && i < from.size()) grow_a = true;
      if (!grow_a && !grow_b) return std::nullopt;
      if (grow_a) a = mul(*a, from[i++]), ++merged;
      if (!a) return std::nullopt;
      if (grow_b) b = mul(*b, to[j++]), ++split;
      if (!b) return std::nullopt;
    }
    groups.push_back(merged);
    groups.push_back(split);
  }
  // The axes that are left must have extent 1. They join the last group.
  for (; i < from.size(); ++i) {
    if (!is_unit(from[i])) return std::nullopt;
    if (groups.empty()) groups = {0, 0};
    ++groups[groups.size() - 2];
  }
  for (; j < to.size(); ++j) {
    if (!is_unit(to[j])) return std::nullopt;
    if (groups.empty()) groups = {0, 0};
    ++groups[groups.size() - 1];
  }
  return groups;
}

ResultSpec infer_reshape(InferContext& c) {
  const auto operand = axes_of(c, c.operands[0]);
  // Readers and launches compute with these extents, so they are of dtype index.
  for (size_t i = 1; i < c.operands.size(); ++i)
    if (constant_integer(c.g, c.operands[i]) != -1) c.operands[i] = checked_size(c, c.operands[i]);
  resolve_missing(c, operand);
  ResultSpec spec = tensor_spec(c, c.g[c.operands[0]].dtype, {});
  spec.is_reshape = true;
  spec.root = operand;
  std::vector<ScalarForm> from, to;
  bool constants = true;
  for (const Axis& a : operand) {
    const ScalarForm f = form_of(c.g, a.size());
    constants = constants && f.is_constant();
    if (!is_unit(f)) from.push_back(f);
  }
  for (size_t i = 1; i < c.operands.size(); ++i) {
    const ValueId size = checked_size(c, c.operands[i]);
    const ScalarForm f = is_fixed_to_one(c.g, size) ? ScalarForm::of(1) : form_of(c.g, size);
    constants = constants && f.is_constant();
    spec.axes.push_back(axis_of_size(c.g, is_unit(f) ? constant_index(c.g, 1) : size));
    if (!is_unit(f)) to.push_back(f);
  }
  const auto groups = reshape_groups(from, to);
  if (!groups && constants)
    fail(c.g, ErrorCode::kShapeMismatch, "reshape must keep the number of elements; give extents of the same product",
         c.operands[0]);
  if (groups) {
    spec.groups = *groups;
    return spec;
  }
  for (Axis& a : spec.axes)
    if (!a.is_broadcast()) a.type = IterType::kSymbolic;
  return spec;
}

}  // namespace fusebox
