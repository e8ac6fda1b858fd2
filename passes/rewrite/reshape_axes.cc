#include "passes/rewrite/reshape_axes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "ir/infer/reshape_groups.h"
#include "ir/scalar/scalar_form.h"

namespace fusebox {
namespace {

using Forms = std::vector<ScalarForm>;

constexpr int kMostRounds = 8;  // quotients of quotients

// What an atom is if the divisions that made others of it are exact.
using Exact = std::map<ValueId, ScalarForm>;

std::optional<ScalarForm> replaced(const ScalarForm& form, const Exact& exact) {
  ScalarForm result = ScalarForm::of(form.constant);
  for (const ScalarForm::Term& term : form.terms) {
    std::optional<ScalarForm> product = ScalarForm::of(term.coefficient);
    for (ValueId v : term.factors) {
      const auto it = exact.find(v);
      product = product ? mul(*product, it == exact.end() ? ScalarForm::atom(v) : it->second) : std::nullopt;
    }
    const auto sum = product ? add(result, *product) : std::nullopt;
    if (!sum) return std::nullopt;
    result = *sum;
  }
  return result;
}

std::optional<ScalarForm> fully_replaced(ScalarForm form, const Exact& exact) {
  for (int i = 0; i < kMostRounds; ++i) {
    const auto next = replaced(form, exact);
    if (!next || next->equals(form)) return next;
    form = *next;
  }
  return std::nullopt;
}

// A sum need not grow with an atom.
bool is_product(const ScalarForm& form) {
  return form.is_constant() || (form.constant == 0 && form.terms.size() == 1 && form.terms[0].coefficient > 0);
}

// A quotient of sizes without common factors and coefficients, if what is left of its dividend is an atom.
std::optional<std::pair<ValueId, ScalarForm>> quotient_of_atom(const ScalarForm& a, const ScalarForm& b) {
  const auto reduced = reduced_quotient(a, b);
  const auto atom = reduced ? reduced->dividend.as_atom() : std::nullopt;
  return atom ? std::optional(std::pair{*atom, reduced->divisor}) : std::nullopt;
}

// The quotients among the atoms of these forms, and what they say of the atoms that they divide.
Exact exact_quotients(const Graph& g, std::span<const ScalarForm> forms) {
  Exact exact;
  std::vector<ValueId> atoms;
  const auto meet = [&](const ScalarForm& form) {
    for (const ScalarForm::Term& term : form.terms)
      for (ValueId v : term.factors)
        if (std::ranges::find(atoms, v) == atoms.end()) atoms.push_back(v);
  };
  std::ranges::for_each(forms, meet);
  for (size_t i = 0; i < atoms.size() && i < 64; ++i) {
    const OpId def = g[atoms[i]].def;
    if (!def || g[def].kind != OpKind::kFloorDiv) continue;
    const auto quotient = quotient_of_atom(form_of(g, g[def].operands[0]), form_of(g, g[def].operands[1]));
    if (!quotient || exact.contains(quotient->first)) continue;
    const auto product = mul(ScalarForm::atom(atoms[i]), quotient->second);
    if (!product) continue;
    exact.emplace(quotient->first, *product);
    meet(*product);
    meet(ScalarForm::atom(quotient->first));
  }
  return exact;
}

std::optional<ScalarForm> product(std::span<const ScalarForm> forms) {
  std::optional<ScalarForm> result = ScalarForm::of(1);
  for (const ScalarForm& f : forms) result = result ? mul(*result, f) : std::nullopt;
  return result;
}

// Whether these groups need quotients to be exact, and the atoms that they divide stand on one side only.
bool divides_one_side(const Forms& from, const Forms& to, const Exact& exact, std::span<const int64_t> groups) {
  bool is_from = false, is_to = false;
  size_t i = 0, j = 0;
  const auto changes = [&](std::span<const ScalarForm> forms) {
    return std::ranges::any_of(forms, [&](const ScalarForm& f) { return !fully_replaced(f, exact).value().equals(f); });
  };
  for (size_t k = 0; k + 1 < groups.size(); k += 2) {
    const auto a = std::span(from).subspan(i, static_cast<size_t>(groups[k]));
    const auto b = std::span(to).subspan(j, static_cast<size_t>(groups[k + 1]));
    i += a.size(), j += b.size();
    const auto x = product(a), y = product(b);
    if (x && y && x->equals(*y)) continue;
    is_from = is_from || changes(a);
    is_to = is_to || changes(b);
  }
  return is_from != is_to;
}

std::optional<std::vector<int64_t>> groups_of_quotients(const Graph& g, const Forms& from, const Forms& to) {
  Forms all = from;
  all.insert(all.end(), to.begin(), to.end());
  if (!std::ranges::all_of(all, is_product)) return std::nullopt;
  const Exact exact = exact_quotients(g, all);
  if (exact.empty()) return std::nullopt;
  Forms a, b;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto form = fully_replaced(all[i], exact);
    if (!form) return std::nullopt;
    (i < from.size() ? a : b).push_back(*form);
  }
  const auto groups = reshape_groups(a, b);
  if (!groups || !divides_one_side(from, to, exact, *groups)) return std::nullopt;
  return groups;
}

// Keeps the axes that both sides share at their ends. What is left between them is one group.
std::vector<int64_t> groups_between_ends(const Forms& from, const Forms& to) {
  const size_t least = std::min(from.size(), to.size());
  size_t front = 0, back = 0;
  while (front < least && from[front].equals(to[front])) ++front;
  while (front + back < least && from[from.size() - 1 - back].equals(to[to.size() - 1 - back])) ++back;
  std::vector<int64_t> groups(2 * front, 1);
  const size_t merged = from.size() - front - back, split = to.size() - front - back;
  if (merged + split > 0) groups.insert(groups.end(), {static_cast<int64_t>(merged), static_cast<int64_t>(split)});
  groups.insert(groups.end(), 2 * back, 1);
  return groups;
}

std::optional<Forms> forms_of(const Graph& g, std::span<const DomainId> axes) {
  Forms result;
  for (DomainId d : axes) {
    const auto form = size_form(g, d);
    if (!form) return std::nullopt;
    result.push_back(*form);
  }
  return result;
}

// Nothing also if steps have resolved the reshape and its groups do not follow from the forms.
std::optional<std::vector<int64_t>> groups_of(const Graph& g, std::span<const DomainId> from,
                                              std::span<const DomainId> to) {
  const auto a = forms_of(g, from), b = forms_of(g, to);
  if (!a || !b) return std::nullopt;
  if (const auto groups = reshape_groups(*a, *b)) return groups;
  if (std::ranges::none_of(to, [&](DomainId d) { return g[d].iter_type == IterType::kSymbolic; })) return std::nullopt;
  if (const auto groups = groups_of_quotients(g, *a, *b)) return groups;
  return groups_between_ends(*a, *b);
}

}  // namespace

bool is_unit_axis(const Graph& g, DomainId axis) {
  if (g[axis].iter_type == IterType::kBroadcast && !g[axis].expanded) return true;
  const auto form = size_form(g, axis);
  return form && form->is_constant() && form->constant == 1;
}

std::vector<ReshapeGroup> axes_of_reshape(const Graph& g, OpId op) {
  const auto counted = [&](ValueId v) {
    std::vector<DomainId> axes = logical_without_reductions(g, g.tensor_of(v));
    std::erase_if(axes, [&](DomainId d) { return is_unit_axis(g, d); });
    return axes;
  };
  const std::vector<DomainId> from = counted(g[op].operands[0]), to = counted(g[op].results[0]);
  const auto groups = groups_of(g, from, to);
  if (!groups) return {{.from = from, .to = to, .is_open = true}};
  std::vector<ReshapeGroup> result;
  size_t i = 0, j = 0;
  for (size_t k = 0; k + 1 < groups->size(); k += 2) {
    ReshapeGroup group;
    for (int64_t n = (*groups)[k]; n > 0; --n) group.from.push_back(from[i++]);
    for (int64_t n = (*groups)[k + 1]; n > 0; --n) group.to.push_back(to[j++]);
    const size_t least = std::min(group.from.size(), group.to.size());
    group.is_open = least != 1;
    result.push_back(std::move(group));
  }
  return result;
}

}  // namespace fusebox
