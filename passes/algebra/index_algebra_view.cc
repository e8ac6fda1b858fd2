// Shows forms: as values at a point, as text, and as terms in an order that depends only on their structure.
#include <algorithm>
#include <array>

#include "ir/table/error.h"
#include "passes/algebra/index_algebra.h"

namespace fusebox {
namespace {

// The order of atoms in a sum: loops and their digits, then values computed from them, then symbols.
int rank(AtomKind kind) {
  switch (kind) {
    case AtomKind::kLoop:
      return 0;
    case AtomKind::kDigit:
      return 1;
    case AtomKind::kXor:
      return 2;
    case AtomKind::kQuotient:
      return 3;
    case AtomKind::kRemainder:
      return 4;
    case AtomKind::kMin:
      return 5;
    case AtomKind::kMax:
      return 6;
    case AtomKind::kProduct:
      return 7;
    case AtomKind::kSum:
      return 8;
    case AtomKind::kNamed:
      return 9;
    case AtomKind::kSymbol:
      return 10;
  }
  return 11;
}

template <typename T>
int three_way(T a, T b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

}  // namespace

// -- Value at a point

std::optional<int64_t> IndexAlgebra::evaluate(Form value, std::span<const int64_t> loops,
                                              std::span<const int64_t> symbols) const {
  int64_t sum = store_.given_form(value).constant;
  for (const RawTerm& term : store_.terms(value)) {
    const auto part = evaluate(Coefficient{term.factor, term.monomial}, loops, symbols);
    if (!part || __builtin_add_overflow(sum, *part, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<int64_t> IndexAlgebra::evaluate(Coefficient value, std::span<const int64_t> loops,
                                              std::span<const int64_t> symbols) const {
  int64_t product = value.factor;
  for (const AtomId factor : store_.factors(value.symbols)) {
    const auto part = evaluate(factor, loops, symbols);
    if (!part || __builtin_mul_overflow(product, *part, &product)) return std::nullopt;
  }
  return product;
}

std::optional<int64_t> IndexAlgebra::evaluate(AtomId atom, std::span<const int64_t> loops,
                                              std::span<const int64_t> symbols) const {
  const AtomRecord& record = store_.atom(atom);
  const auto args = store_.args(atom);
  const auto divided = [](int64_t a, int64_t b, bool quotient) -> std::optional<int64_t> {
    if (b == 0) return 0;
    if (b == -1) return quotient ? (a == kMinusInfinity ? std::nullopt : std::optional(-a)) : 0;
    if (b == kMinusInfinity) return std::nullopt;
    const int64_t size = std::abs(b);
    if (!quotient) return floor_remainder(a, size);
    return b < 0 ? -floor_quotient(a, size) : floor_quotient(a, size);
  };
  switch (record.kind) {
    case AtomKind::kSymbol: {
      const auto id = static_cast<size_t>(symbol_ids_[record.index]);
      return id < symbols.size() ? std::optional(symbols[id]) : std::nullopt;
    }
    case AtomKind::kLoop: {
      const auto id = static_cast<size_t>(loop_ids_[record.index]);
      return id < loops.size() ? std::optional(loops[id]) : std::nullopt;
    }
    case AtomKind::kDigit: {
      auto value = evaluate(AtomId{record.root}, loops, symbols);
      if (value && record.divisor != Coefficient{}) {
        const auto divisor = evaluate(record.divisor, loops, symbols);
        value = divisor ? divided(*value, *divisor, true) : std::nullopt;
      }
      if (!value || record.range == kNoRange) return value;
      const auto range = evaluate(record.range, loops, symbols);
      return range ? divided(*value, *range, false) : std::nullopt;
    }
    case AtomKind::kNamed:
      return evaluate(args[0], loops, symbols);
    case AtomKind::kXor: {
      int64_t bits = 0;
      for (const Form arg : args) {
        const auto value = evaluate(arg, loops, symbols);
        if (!value) return std::nullopt;
        bits ^= *value;
      }
      return bits;
    }
    case AtomKind::kQuotient:
    case AtomKind::kRemainder:
    case AtomKind::kMin:
    case AtomKind::kMax:
    case AtomKind::kSum:
    case AtomKind::kProduct:
      break;
  }
  const auto a = evaluate(args[0], loops, symbols);
  // Nothing else is asked then: forms share parts, and all their uses may be too many.
  const auto b = a ? evaluate(args[1], loops, symbols) : std::nullopt;
  if (!a || !b) return std::nullopt;
  int64_t result = 0;
  if (record.kind == AtomKind::kQuotient) return divided(*a, *b, true);
  if (record.kind == AtomKind::kRemainder) return divided(*a, *b, false);
  if (record.kind == AtomKind::kMin) return std::min(*a, *b);
  if (record.kind == AtomKind::kMax) return std::max(*a, *b);
  const bool overflow =
      record.kind == AtomKind::kSum ? __builtin_add_overflow(*a, *b, &result) : __builtin_mul_overflow(*a, *b, &result);
  return overflow ? std::nullopt : std::optional(result);
}

// -- Structural order

int IndexAlgebra::compare(AtomId a, AtomId b) {
  if (a == b) return 0;
  const AtomRecord& left = store_.atom(a);
  const AtomRecord& right = store_.atom(b);
  // Digits stand at the place of their whole value, high digits first.
  const AtomId left_root{left.root};
  const AtomId right_root{right.root};
  const bool left_digit = left.kind == AtomKind::kDigit;
  const bool right_digit = right.kind == AtomKind::kDigit;
  if (left_root == right_root) {
    if (left_digit != right_digit) return left_digit ? 1 : -1;
    if (const int order = compare_coefficients(right.divisor, left.divisor)) return order;
    return compare_coefficients(left.range, right.range);
  }
  if (left_digit || right_digit) return compare(left_digit ? left_root : a, right_digit ? right_root : b);
  if (left.kind != right.kind) return three_way(rank(left.kind), rank(right.kind));
  if (left.kind == AtomKind::kLoop) return three_way(loop_ids_[left.index], loop_ids_[right.index]);
  if (left.kind == AtomKind::kSymbol) return three_way(symbol_ids_[left.index], symbol_ids_[right.index]);
  if (left.args_count != right.args_count) return three_way(left.args_count, right.args_count);
  const std::vector<Form> left_args = ordered_args(a);
  const std::vector<Form> right_args = ordered_args(b);
  for (size_t i = 0; i < left_args.size(); ++i) {
    if (const int order = compare(left_args[i], right_args[i])) return order;
  }
  return 0;
}

std::vector<Form> IndexAlgebra::ordered_args(AtomId atom) {
  std::vector<Form> args(store_.args(atom).begin(), store_.args(atom).end());
  const AtomKind kind = store_.atom(atom).kind;
  if (kind != AtomKind::kQuotient && kind != AtomKind::kRemainder) {
    std::sort(args.begin(), args.end(), [&](Form a, Form b) { return compare(a, b) < 0; });
  }
  return args;
}

int IndexAlgebra::compare_coefficients(Coefficient a, Coefficient b) {
  if (a.symbols != b.symbols) {
    if (const int order = compare(a.symbols, b.symbols)) return order;
  }
  return three_way(a.factor, b.factor);
}

int IndexAlgebra::compare(MonomialId a, MonomialId b) {
  if (a == b) return 0;
  std::array<AtomId, kMaxDegree> storage[2];
  const auto sorted = [&](MonomialId id, std::array<AtomId, kMaxDegree>& factors) {
    const auto end = std::ranges::copy(store_.factors(id), factors.begin()).out;
    std::sort(factors.begin(), end, [&](AtomId x, AtomId y) { return compare(x, y) < 0; });
    return std::span(factors.begin(), end);
  };
  const auto left = sorted(a, storage[0]);
  const auto right = sorted(b, storage[1]);
  // Terms with loops come first.
  const bool left_loops = store_.monomial(a).loops != 0;
  const bool right_loops = store_.monomial(b).loops != 0;
  if (left_loops != right_loops) return left_loops ? -1 : 1;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (const int order = compare(left[i], right[i])) return order;
  }
  return three_way(right.size(), left.size());
}

int IndexAlgebra::compare(Form a, Form b) {
  if (a == b) return 0;
  const auto left = terms(a);
  const auto right = terms(b);
  if (left.size() != right.size()) return three_way(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i].factors.size() != right[i].factors.size())
      return three_way(left[i].factors.size(), right[i].factors.size());
    for (size_t j = 0; j < left[i].factors.size(); ++j) {
      if (const int order = compare(left[i].factors[j], right[i].factors[j])) return order;
    }
    if (left[i].coefficient != right[i].coefficient) return three_way(left[i].coefficient, right[i].coefficient);
  }
  return three_way(constant_part(a), constant_part(b));
}

int64_t IndexAlgebra::constant_part(Form value) const { return store_.given_form(value).constant; }

std::vector<TermView> IndexAlgebra::terms(Form value) {
  store_.given_form(value);
  std::vector<RawTerm> raw(store_.terms(value).begin(), store_.terms(value).end());
  for (RawTerm& term : raw) {
    // 128·(n / 128) is n if 128 divides n.
    for (size_t i = 0; i < store_.factors(term.monomial).size(); ++i) {
      const AtomId atom = store_.factors(term.monomial)[i];
      const AtomRecord record = store_.atom(atom);
      if (!record.exact || record.divisor.symbols != kOne || term.factor % record.divisor.factor != 0) continue;
      term.factor /= record.divisor.factor;
      const MonomialId others = *store_.quotient(term.monomial, store_.monomial_of(atom));
      term.monomial = store_.product(others, store_.monomial_of({record.root}));
      i = static_cast<size_t>(-1);
    }
  }
  std::sort(raw.begin(), raw.end(),
            [&](const RawTerm& a, const RawTerm& b) { return compare(a.monomial, b.monomial) < 0; });
  std::vector<TermView> result;
  result.reserve(raw.size());
  for (const RawTerm& term : raw) {
    const auto factors = store_.factors(term.monomial);
    TermView view{term.factor, {factors.begin(), factors.end()}};
    std::sort(view.factors.begin(), view.factors.end(), [&](AtomId x, AtomId y) { return compare(x, y) < 0; });
    result.push_back(std::move(view));
  }
  return result;
}

AtomView IndexAlgebra::atom(AtomId id) {
  const AtomRecord record = store_.atom(id);
  AtomView view;
  view.kind = record.kind;
  view.args = ordered_args(id);
  if (record.kind == AtomKind::kSymbol) view.id = symbol_ids_[record.index];
  if (record.kind == AtomKind::kLoop) view.id = loop_ids_[record.index];
  if (record.kind == AtomKind::kDigit) {
    view.whole = value_of({record.root});
    view.divisor = store_.intern(record.divisor);
    if (record.range != kNoRange) view.range = store_.intern(record.range);
  }
  return view;
}

Form IndexAlgebra::form_of(AtomId id) { return store_.intern(Coefficient{1, store_.monomial_of(id)}); }

// -- Text

std::string IndexAlgebra::text_of(AtomId atom, bool alone) {
  const AtomView view = this->atom(atom);
  const auto call = [&](const char* name) {
    std::string text = std::string(name) + "(";
    for (size_t i = 0; i < view.args.size(); ++i) text += (i == 0 ? "" : ", ") + to_string(view.args[i]);
    return text + ")";
  };
  const auto operand = [&](Form form) {
    const auto value = constant_value(form);
    const auto list = terms(form);
    if (value) return *value < 0 ? "(" + to_string(form) + ")" : to_string(form);
    if (constant_part(form) == 0 && list.size() == 1 && list[0].coefficient == 1 && list[0].factors.size() == 1) {
      return text_of(list[0].factors[0], false);
    }
    return "(" + to_string(form) + ")";
  };
  switch (view.kind) {
    case AtomKind::kSymbol:
      return symbols_[store_.atom(atom).index].name;
    case AtomKind::kLoop:
      return loops_[store_.atom(atom).index].name;
    case AtomKind::kDigit: {
      std::string text = operand(view.whole);
      if (constant_value(view.divisor) != 1) text += " / " + operand(view.divisor);
      if (view.range) text += " % " + operand(*view.range);
      return alone ? text : "(" + text + ")";
    }
    case AtomKind::kNamed:
      return "(" + to_string(view.args[0]) + ")";
    case AtomKind::kXor: {
      std::string text;
      for (size_t i = 0; i < view.args.size(); ++i) text += (i == 0 ? "" : " ^ ") + operand(view.args[i]);
      return "(" + text + ")";
    }
    case AtomKind::kQuotient:
      return call("div");
    case AtomKind::kRemainder:
      return call("mod");
    case AtomKind::kMin:
      return call("min");
    case AtomKind::kMax:
      return call("max");
    case AtomKind::kSum:
      return call("sum");
    case AtomKind::kProduct:
      return call("product");
  }
  return {};
}

std::string IndexAlgebra::to_string(Form value) {
  std::string text;
  for (const TermView& term : terms(value)) {
    const bool negative = term.coefficient < 0;
    if (text.empty()) {
      text += negative ? "-" : "";
    } else {
      text += negative ? " - " : " + ";
    }
    const bool alone = term.factors.size() == 1 && (term.coefficient == 1 || term.coefficient == -1);
    if (term.coefficient != 1 && term.coefficient != -1) {
      const std::string digits = std::to_string(term.coefficient);
      text += (negative ? digits.substr(1) : digits) + "*";
    }
    for (size_t i = 0; i < term.factors.size(); ++i)
      text += (i == 0 ? "" : "*") + text_of(term.factors[i], alone && !negative);
  }
  const int64_t constant = constant_part(value);
  if (text.empty()) return std::to_string(constant);
  if (constant > 0) text += " + " + std::to_string(constant);
  if (constant < 0) text += " - " + std::to_string(constant).substr(1);
  return text;
}

}  // namespace fusebox
