#include "fuzz/oracle/algebra_points.h"

#include <algorithm>

#include "passes/algebra/index_algebra.h"

namespace fusebox::fuzz {
namespace {

constexpr size_t kPoints = 40, kNodes = 12;
constexpr int kQuestions = 12, kGuards = 3;
constexpr int64_t kFactors[] = {1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 12, 16};
constexpr int64_t kExtents[] = {1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 17, 32};

// Euclidean, and 0 by 0.
int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t q = a / b;
  return a % b < 0 ? (b < 0 ? q + 1 : q - 1) : q;
}
int64_t remainder(int64_t a, int64_t b) { return b == 0 ? 0 : a - b * quotient(a, b); }

struct Point {
  std::vector<int64_t> loops, symbols;
};

// An expression: its form, and its value at each point.
struct Expression {
  Form form;
  std::vector<int64_t> values;
};

class PointLaws {
 public:
  PointLaws(OracleRun& run, RandomSource& random) : run_(run), random_(random), a_(run.options().defects) {}

  void judge() {
    declare();
    draw_points();
    for (size_t i = 0; i < extents_.size(); ++i)
      made_.push_back(make(a_.loop(static_cast<int>(i)), [&](const Point& p) { return p.loops[i]; }));
    for (size_t i = 0; i < lowest_.size(); ++i)
      made_.push_back(make(a_.symbol(static_cast<int>(i)), [&](const Point& p) { return p.symbols[i]; }));
    while (made_.size() < kNodes) made_.push_back(drawn());
    for (int i = 0; i < kQuestions; ++i) question();
    for (int i = 0; i < kGuards; ++i) guard();
  }

 private:
  Form c(int64_t value) { return a_.constant(value); }
  const Expression& any() { return random_.pick(made_); }

  // Two sizes, and loops of constant extents, of a size, or of the chunks of a size.
  void declare() {
    for (int i = 0; i < 2; ++i) {
      lowest_.push_back(random_.between(0, 1));
      a_.declare_symbol(i, "n" + std::to_string(i), {.lower = lowest_.back(), .upper = {}});
    }
    for (int i = static_cast<int>(random_.between(2, 3)); i > 0; --i) {
      const auto id = static_cast<int>(extents_.size());
      Extent e{.constant = random_.pick(kExtents)};
      if (random_.one_in(4)) e = {.symbol = static_cast<int>(random_.below(2)), .chunk = random_.pick(kFactors)};
      const Form form = e.symbol < 0 ? c(e.constant) : a_.symbol_of(a_.ceil_div(a_.symbol(e.symbol), c(e.chunk)));
      a_.declare_loop(id, "l" + std::to_string(id), form);
      extents_.push_back(e);
    }
  }

  // A point has a value for every loop, so no extent is 0.
  void draw_points() {
    while (points_.size() < kPoints) {
      Point p;
      for (int64_t low : lowest_) p.symbols.push_back(std::max<int64_t>(low, random_.between(0, 24)));
      for (const Extent& e : extents_) {
        if (e.symbol >= 0)
          p.symbols[static_cast<size_t>(e.symbol)] = std::max<int64_t>(1, p.symbols[static_cast<size_t>(e.symbol)]);
      }
      for (const Extent& e : extents_) {
        const int64_t end =
            e.symbol < 0 ? e.constant : (p.symbols[static_cast<size_t>(e.symbol)] + e.chunk - 1) / e.chunk;
        // The ends of a loop are where checks fail.
        p.loops.push_back(random_.one_in(3) ? end - 1 : random_.between(0, end - 1));
      }
      points_.push_back(std::move(p));
    }
  }

  template <class ValueAt>
  Expression make(Form form, ValueAt&& value_at) {
    Expression e{form, {}};
    for (const Point& p : points_) {
      e.values.push_back(value_at(p));
      const auto value = a_.evaluate(form, p.loops, p.symbols);
      if (value && *value != e.values.back()) {
        report(
            "value",
            a_.to_string(form) + " is " + std::to_string(*value) + ", and should be " + std::to_string(e.values.back()),
            p);
        e.values.back() = *value;  // one report, not one for each expression that is made of this
      }
    }
    return e;
  }
  template <class Value>
  Expression of(Form form, const Expression& x, const Expression& y, Value&& value) {
    size_t at = 0;
    return make(form, [&](const Point&) { return ++at, value(x.values[at - 1], y.values[at - 1]); });
  }

  // x · k + j
  Expression linear(const Expression& x, int64_t k, int64_t j) {
    return of(a_.add(a_.mul(x.form, k), c(j)), x, x, [&](int64_t v, int64_t) { return v * k + j; });
  }
  Expression divided(const Expression& x, int64_t by) {
    return of(a_.floor_div(x.form, c(by)), x, x, [&](int64_t v, int64_t) { return quotient(v, by); });
  }
  Expression rest(const Expression& x, int64_t by) {
    return of(a_.mod(x.form, c(by)), x, x, [&](int64_t v, int64_t) { return remainder(v, by); });
  }

  static bool is_small(const Expression& x) {
    constexpr int64_t kMost = int64_t{1} << 24;  // products of these with sizes and factors stay far below 64 bits
    return std::ranges::all_of(x.values, [](int64_t v) { return -kMost < v && v < kMost; });
  }

  Expression drawn() {
    const Expression x = any(), y = any();
    const int64_t k = random_.pick(kFactors), j = random_.one_in(2) ? 0 : random_.between(-9, 20);
    switch (random_.below(9)) {
      case 8: {
        // By a size, as merges of symbolic axes multiply.
        const Expression& n = made_[extents_.size() + random_.below(lowest_.size())];
        if (!is_small(x)) return divided(x, k);
        return of(a_.mul(x.form, n.form), x, n, [](int64_t v, int64_t w) { return v * w; });
      }
      case 0: {
        const Expression scaled = linear(x, k, j);
        return of(a_.add(scaled.form, y.form), scaled, y, [](int64_t v, int64_t w) { return v + w; });
      }
      case 1:
        return of(a_.sub(x.form, y.form), x, y, [](int64_t v, int64_t w) { return v - w; });
      case 2:
        return linear(x, k, j);
      case 3:
        return divided(linear(x, random_.pick(kFactors), j), k);
      case 4:
        return rest(linear(x, random_.pick(kFactors), j), k);
      case 5:
        return divided(x, k);
      case 6:
        return random_.one_in(2)
                   ? of(a_.min(x.form, y.form), x, y, [](int64_t v, int64_t w) { return std::min(v, w); })
                   : of(a_.max(x.form, y.form), x, y, [](int64_t v, int64_t w) { return std::max(v, w); });
      default: {
        // By a size, as splits and merges of symbolic axes divide.
        const Expression& n = made_[extents_.size() + random_.below(lowest_.size())];
        const bool is_quotient = random_.one_in(2);
        return of(is_quotient ? a_.floor_div(x.form, n.form) : a_.mod(x.form, n.form), x, n,
                  [&](int64_t v, int64_t w) { return is_quotient ? quotient(v, w) : remainder(v, w); });
      }
    }
  }

  // What is shown holds at every point.
  void question() {
    const Expression &x = any(), &y = any();
    const int64_t k = random_.between(-4, 4), p = random_.pick(kFactors);
    const auto claim = [&](const char* law, bool is_shown, auto&& holds) {
      for (size_t i = 0; is_shown && i < points_.size(); ++i)
        if (!holds(x.values[i], y.values[i]))
          return report(law, a_.to_string(x.form) + " and " + a_.to_string(y.form) + " by " + std::to_string(k),
                        points_[i]);
    };
    claim("claim of an order", a_.prove_le(x.form, a_.add(y.form, c(k))),
          [&](int64_t v, int64_t w) { return v <= w + k; });
    claim("claim of a strict order", a_.prove_less(x.form, a_.add(y.form, c(k))),
          [&](int64_t v, int64_t w) { return v < w + k; });
    claim("claim of equality", a_.equal(x.form, y.form), [](int64_t v, int64_t w) { return v == w; });
    claim("claim of a divisor", a_.divides(p, x.form), [&](int64_t v, int64_t) { return v % p == 0; });
    const IntBounds b = a_.int_bounds(x.form);
    claim("claim of bounds", true,
          [&](int64_t v, int64_t) { return (!b.lower || *b.lower <= v) && (!b.upper || v <= *b.upper); });
  }

  // The check of a split, k·x + t < n, and what is asked below it: whether x, or a digit of x, stays below a bound.
  void guard() {
    const Expression &x = any(), &t = any();
    const int64_t k = random_.pick(kFactors), n = random_.between(1, 40);
    const Expression whole =
        of(a_.add(a_.mul(x.form, k), t.form), x, t, [&](int64_t v, int64_t w) { return v * k + w; });
    const Form given = a_.sub(c(n - 1), whole.form);
    const auto is_given = [&](size_t i) { return whole.values[i] <= n - 1; };
    for (const Expression* e : {&x, &t, &whole}) {
      const int64_t bound = std::max<int64_t>(1, n / (e == &x ? k : 1) + random_.between(-1, 1));
      const bool is_shown = a_.prove_nonneg(a_.sub(c(bound - 1), e->form), {&given, 1});
      for (size_t i = 0; is_shown && i < points_.size(); ++i)
        if (is_given(i) && e->values[i] >= bound) {
          report("claim under a guard",
                 a_.to_string(e->form) + " below " + std::to_string(bound) + " if " + a_.to_string(whole.form) +
                     " is below " + std::to_string(n),
                 points_[i]);
          break;
        }
      const Expression digit = random_.one_in(2) ? divided(*e, bound) : rest(*e, bound);
      const Form simpler = a_.under(digit.form, {&given, 1});
      for (size_t i = 0; i < points_.size(); ++i) {
        const auto value = is_given(i) ? a_.evaluate(simpler, points_[i].loops, points_[i].symbols) : std::nullopt;
        if (!value || *value == digit.values[i]) continue;
        report("digit under a guard",
               a_.to_string(digit.form) + " as " + a_.to_string(simpler) + " if " + a_.to_string(whole.form) +
                   " is below " + std::to_string(n),
               points_[i]);
        break;
      }
    }
  }

  void report(const char* law, const std::string& what, const Point& p) {
    std::string at;
    for (size_t i = 0; i < p.loops.size(); ++i)
      at += (i == 0 ? " at l" : ", l") + std::to_string(i) + " = " + std::to_string(p.loops[i]) + " below " +
            a_.to_string(a_.loop_extent(static_cast<int>(i)));
    for (size_t i = 0; i < p.symbols.size(); ++i)
      at += ", n" + std::to_string(i) + " = " + std::to_string(p.symbols[i]);
    run_.report("algebra", law, "", what + at);
  }

  // A constant, or the number of chunks of a symbol.
  struct Extent {
    int64_t constant = 0;
    int symbol = -1;
    int64_t chunk = 1;
  };

  OracleRun& run_;
  RandomSource& random_;
  IndexAlgebra a_;
  std::vector<int64_t> lowest_;  // of the symbols
  std::vector<Extent> extents_;  // of the loops
  std::vector<Point> points_;
  std::vector<Expression> made_;
};

}  // namespace

void judge_algebra_at_points(OracleRun& run, RandomSource& random) { PointLaws(run, random).judge(); }

}  // namespace fusebox::fuzz
