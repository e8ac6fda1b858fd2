// The oracle of the index algebra: identities that its normal form promises, on forms that are drawn. A form that is
// right and less simple than it could be costs speed, and schedules that are refused; no run shows it.
//
// A nest has two to four loops, constant or symbolic extents, and a pool of forms made by the ops that transforms need.
// Each law draws forms and constants from it and asks the algebra, never a run: `(x div 4) div 8` must be `x div 32`,
// `prove_less(x mod 8, 8)` must be true. Where extents are constants, values and exact bounds come from enumeration.
#include <algorithm>
#include <array>
#include <numeric>

#include "fuzz/base/random_source.h"
#include "fuzz/oracle/algebra_points.h"
#include "fuzz/oracle/index_ranges.h"
#include "fuzz/oracle/oracle.h"
#include "passes/algebra/index_algebra.h"

namespace fusebox::fuzz {
namespace {

constexpr int kForms = 6, kRounds = 3;
constexpr int64_t kFactors[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 32, 64, 128};
constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 32, 128};

class AlgebraLaws {
 public:
  AlgebraLaws(OracleRun& run, RandomSource& random) : run_(run), random_(random) {}

  void judge() {
    is_symbolic_ = random_.one_in(3);
    declare();
    draw_forms();
    for (int i = 0; i < kRounds; ++i) {
      quotients();
      digits();
      ranges();
      arithmetic();
      swizzles();
      nests();
      sizes();
      spellings();
    }
    questions();
  }

 private:
  Form c(int64_t value) { return a_.constant(value); }
  int64_t factor() { return random_.pick(kFactors); }
  Form form() { return random_.pick(forms_); }
  // One to three loops merged into one, perhaps moved by a constant.
  Form merged() {
    const size_t first = loop_at(), count = 1 + random_.below(std::min<size_t>(3, loops_.size()));
    Form sum = loops_[first], stride = extents_[first];
    for (size_t i = 1; i < count; ++i) {
      const size_t k = (first + i) % loops_.size();
      sum = a_.add(sum, a_.mul(loops_[k], stride));
      stride = a_.symbol_of(a_.mul(stride, extents_[k]));
    }
    return random_.one_in(4) ? a_.add(sum, c(random_.between(0, 9))) : sum;
  }
  size_t loop_at() { return random_.below(loops_.size()); }

  // Symbols 0 and 1 are sizes, 2 is a multiple of 4, 3 is at least symbol 0.
  void declare() {
    for (int i = 0; i < 4; ++i)
      symbols_.push_back(a_.declare_symbol(i, "n" + std::to_string(i), {.lower = 1, .upper = {}}));
    a_.assume_divides(c(4), symbols_[2], "4 divides n2");
    a_.assume_le(symbols_[0], symbols_[3], "n0 is at most n3");
    for (Form& s : symbols_) s = a_.symbol_of(s);
    const size_t count = 2 + random_.below(3);
    for (size_t i = 0; i < count; ++i) {
      Form extent = c(random_.pick(kExtents));
      if (is_symbolic_ && random_.one_in(2)) extent = a_.symbol_of(a_.mul(symbols_[random_.below(2)], factor()));
      extents_.push_back(extent);
      loops_.push_back(a_.declare_loop(static_cast<int>(i), "l" + std::to_string(i), extent));
    }
    forms_ = loops_;
  }

  void draw_forms() {
    for (int i = 0; i < kForms; ++i) {
      const Form x = form(), y = form();
      switch (random_.below(4)) {
        case 0:
          forms_.push_back(a_.add(a_.mul(x, factor()), y));
          break;
        case 1:
          forms_.push_back(a_.floor_div(x, c(factor())));
          break;
        case 2:
          forms_.push_back(a_.mod(x, c(factor())));
          break;
        default: {
          // Two loops as one, as a merge makes them.
          const size_t inner = loop_at(), outer = (inner + 1) % loops_.size();
          forms_.push_back(a_.add(a_.mul(loops_[outer], extents_[inner]), loops_[inner]));
          break;
        }
      }
    }
  }

  void report(const char* law, const std::string& what) {
    std::string nest;
    for (size_t i = 0; i < loops_.size(); ++i)
      nest += (i == 0 ? " where l" : ", l") + std::to_string(i) + " is below " + a_.to_string(extents_[i]);
    run_.report("algebra", law, "", what + nest);
  }
  void same(const char* law, Form x, Form y) {
    if (!a_.equal(x, y)) report(law, a_.to_string(x) + " and " + a_.to_string(y));
  }
  // One spelling, not only one value.
  void one(const char* law, Form x, Form y) {
    if (x != y) report(law, a_.to_string(x) + " and " + a_.to_string(y));
  }
  void holds(const char* law, bool shown, Form x) {
    if (!shown) report(law, a_.to_string(x));
  }

  void quotients() {
    const size_t i = loop_at();
    const Form x = merged(), loop = loops_[i], other = loops_[(i + 1) % loops_.size()];
    const int64_t p = factor(), q = factor();
    const auto div = [&](Form v, int64_t by) { return a_.floor_div(v, c(by)); };
    const auto mod = [&](Form v, int64_t by) { return a_.mod(v, c(by)); };
    same("parts of a quotient", a_.add(a_.mul(div(x, p), p), mod(x, p)), x);
    same("quotient of a quotient", div(div(loop, p), q), div(loop, p * q));
    same("remainder of a remainder", mod(mod(loop, p * q), q), mod(loop, q));
    same("quotient of a remainder", div(mod(loop, p * q), p), mod(div(loop, p), q));
    same("quotient of a sum", div(a_.add(loop, a_.mul(other, p)), p), a_.add(div(loop, p), other));
    same("remainder of a sum", mod(a_.add(loop, a_.mul(other, p)), p), mod(loop, p));
    same("common factor of a quotient", div(a_.mul(x, p), p * q), div(x, q));
    same("common factor of a remainder", mod(a_.mul(x, p), p * q), a_.mul(mod(x, q), p));
    one("quotient of a multiple", div(a_.mul(x, p), p), x);
    one("remainder of a multiple", mod(a_.mul(x, p), p), Form{});
    const DivMod both = a_.div_mod(x, c(p));
    one("both at once", both.quotient, div(x, p));
    one("both at once", both.remainder, mod(x, p));
  }

  // Digits of one loop, and of a symbol, that meet again.
  void digits() {
    const size_t i = loop_at();
    const Form loop = loops_[i], other = loops_[(i + 1) % loops_.size()], n = symbols_[random_.below(2)];
    const int64_t p = factor(), q = factor(), k = random_.between(0, 9);
    const auto div = [&](Form v, int64_t by) { return a_.floor_div(v, c(by)); };
    const auto mod = [&](Form v, int64_t by) { return a_.mod(v, c(by)); };
    const Form low = mod(loop, p), middle = mod(div(loop, p), q), high = div(loop, p * q);
    one("three digits", a_.add(a_.add(low, a_.mul(middle, p)), a_.mul(high, p * q)), loop);
    one("two digits", a_.add(low, a_.mul(middle, p)), mod(loop, p * q));
    one("whole less its remainder", a_.sub(loop, low), a_.mul(div(loop, p), p));
    one("quotient less its remainder", a_.sub(div(loop, p), middle), a_.mul(high, q));
    same("remainder less its remainder", a_.sub(mod(loop, p * q), low), a_.mul(middle, p));
    same("quotient of a symbol's", div(a_.add(div(n, p), c(k)), q), div(a_.add(n, c(p * k)), p * q));
    // Within the extent, a symbol's too: the quotient by what is left is 0.
    one("quotient by the extent", a_.floor_div(loop, extents_[i]), Form{});
    one("remainder by the extent", a_.mod(loop, extents_[i]), loop);
    const Form wide = a_.add(a_.mul(other, extents_[i]), loop);
    one("remainder within", a_.mod(a_.floor_div(wide, extents_[i]), extents_[(i + 1) % loops_.size()]), other);
    const int64_t unit = int64_t{1} << random_.between(0, 5);
    one("xor of other bits", a_.bit_xor(a_.mul(other, unit), mod(loop, unit)),
        a_.add(a_.mul(other, unit), mod(loop, unit)));
    const Form several = a_.symbol_of(a_.add(a_.mul(n, p), c(p)));
    holds("factor of an extent", a_.divides(p, several), several);
    threshold(loop, extents_[i]);
  }

  // Whether a loop has reached t, asked of two quotients.
  void threshold(Form loop, Form extent) {
    const auto end = a_.constant_value(extent);
    if (!end || *end < 2) return;
    const int64_t t = random_.between(1, *end - 1), least = std::max(t, *end - t);
    // By no multiple of a factor of t, which would be divided out first.
    const auto reached = [&](int64_t by) {
      while (std::gcd(by, t) != 1) ++by;
      return a_.floor_div(a_.add(loop, c(by - t)), c(by));
    };
    same("threshold", reached(least + random_.between(0, 9)), reached(least + random_.between(0, 99)));
  }

  void ranges() {
    const Form x = merged(), y = merged();
    const int64_t p = factor();
    const Form remainder = a_.mod(x, c(p));
    holds("remainder is not negative", a_.prove_nonneg(remainder), remainder);
    holds("remainder is below", a_.prove_less(remainder, c(p)), remainder);
    holds("less than itself and one", a_.prove_less(x, a_.add(x, c(1))), x);
    holds("loop is below", a_.prove_less(loops_[0], extents_[0]), loops_[0]);
    holds("divides", a_.divides(p, a_.mul(x, p)), x);
    holds("divides", a_.divides(c(p), a_.mul(x, p)), x);
    const int64_t content = a_.content(a_.mul(x, p));
    holds("content", content % p == 0, x);
    one("least of itself", a_.min(x, a_.add(x, c(p))), x);
    one("greatest of itself", a_.max(x, a_.sub(x, c(p))), x);
    one("least in any order", a_.min(x, y), a_.min(y, x));
    one("greatest in any order", a_.max(x, y), a_.max(y, x));
  }

  void arithmetic() {
    const Form x = merged(), y = merged(), z = merged();
    const int64_t p = factor();
    one("sum in any order", a_.add(x, y), a_.add(y, x));
    one("product in any order", a_.mul(x, y), a_.mul(y, x));
    same("sum of a sum", a_.add(a_.add(x, y), z), a_.add(x, a_.add(y, z)));
    same("product of a sum", a_.mul(a_.add(x, y), p), a_.add(a_.mul(x, p), a_.mul(y, p)));
    same("difference", a_.sub(a_.add(x, y), y), x);
    one("negated twice", a_.neg(a_.neg(x)), x);
    one("difference of itself", a_.sub(x, x), Form{});
  }

  void swizzles() {
    const size_t i = loop_at();
    const Form x = loops_[i], y = loops_[(i + 1) % loops_.size()];
    one("xor of itself", a_.bit_xor(x, x), Form{});
    one("xor with nothing", a_.bit_xor(x, Form{}), x);
    one("xor in any order", a_.bit_xor(x, y), a_.bit_xor(y, x));
    same("xor twice", a_.bit_xor(a_.bit_xor(x, y), y), x);
    const Form there = a_.cyclic(loops_[i], y, extents_[i]);
    same("cyclic and back", a_.cyclic(there, a_.neg(y), extents_[i]), loops_[i]);
    holds("cyclic is below", a_.prove_less(there, extents_[i]), there);
  }

  // Splits and merges by any extents, symbols among them.
  void nests() {
    const size_t i = loop_at(), k = (i + 1 + random_.below(loops_.size() - 1)) % loops_.size();
    const Form merged = a_.add(a_.mul(loops_[i], extents_[k]), loops_[k]);
    one("outer of a merge", a_.floor_div(merged, extents_[k]), loops_[i]);
    one("inner of a merge", a_.mod(merged, extents_[k]), loops_[k]);
    holds("merge is below", a_.prove_less(merged, a_.mul(extents_[i], extents_[k])), merged);
    holds("merge is not negative", a_.prove_nonneg(merged), merged);
    const Form n = symbols_[random_.below(2)];
    const int64_t p = factor();
    one("chunks of a multiple", a_.ceil_div(a_.mul(n, p), c(p)), n);
    const Form chunks = a_.ceil_div(n, c(p));
    holds("chunks cover", a_.prove_le(n, a_.mul(chunks, p)), chunks);
    holds("chunks are no more", a_.prove_less(a_.mul(chunks, p), a_.add(n, c(p))), chunks);
    one("assumed multiple", a_.mod(symbols_[2], c(4)), Form{});
    one("assumed multiple", a_.mul(a_.floor_div(symbols_[2], c(4)), 4), symbols_[2]);
    holds("assumed order", a_.prove_le(a_.mul(symbols_[0], p), a_.mul(symbols_[3], p)), symbols_[0]);
    one("extent", a_.loop_extent(static_cast<int>(i)), extents_[i]);
  }

  // Facts that follow from sizes being at least 1, from their definitions, and from assumptions.
  void sizes() {
    const size_t i = loop_at();
    const Form n = symbols_[random_.below(2)], m = symbols_[random_.below(2)], loop = loops_[i];
    const int64_t p = factor(), q = factor(), k = random_.between(0, 9);
    holds("product of sizes", a_.prove_le(n, a_.mul(n, m)), n);
    const Form more = a_.sub(symbols_[3], symbols_[0]);
    holds("assumed difference", a_.prove_nonneg(a_.mul(more, loop)), more);
    const Form named = a_.symbol_of(a_.add(a_.mul(n, p), c(k)));
    holds("named is no less", a_.prove_le(a_.add(a_.mul(n, p), c(k)), named), named);
    holds("named is no more", a_.prove_le(named, a_.add(a_.mul(n, p), c(k))), named);
    same("quotient of what is named", a_.floor_div(named, c(p)), a_.add(n, c(k / p)));
    one("quotient below zero", a_.floor_div(a_.sub(loop, extents_[i]), extents_[i]), c(-1));
    const Form chunks = a_.ceil_div(a_.ceil_div(n, c(p)), c(q));
    holds("chunks of chunks cover", a_.prove_le(n, a_.mul(chunks, p * q)), chunks);
  }

  // The same form from its parts, and by what stands for a loop.
  void spellings() {
    const Form x = form();
    const size_t i = loop_at();
    Form sum = c(a_.constant_part(x));
    for (const TermView& t : a_.terms(x)) {
      Form product = c(t.coefficient);
      for (AtomId atom : t.factors) product = a_.mul(product, a_.form_of(atom));
      sum = a_.add(sum, product);
    }
    same("sum of its terms", sum, x);
    for (const TermView& t : a_.terms(x))
      for (AtomId atom : t.factors) {
        const AtomView view = a_.atom(atom);
        if (view.kind != AtomKind::kDigit) continue;
        needed(view);
        const Form quotient = a_.floor_div(view.whole, view.divisor);
        same("digit", view.range ? a_.mod(quotient, *view.range) : quotient, a_.form_of(atom));
      }
    const int id = static_cast<int>(i);
    same("substituted by itself", a_.substitute(x, {.loops = {{id, loops_[i]}}, .symbols = {}}), x);
    const bool depends = a_.depends_on(x, id);
    const Form at_zero = a_.substitute(x, {.loops = {{id, Form{}}}, .symbols = {}});
    if (!depends) same("substituted where it is not", at_zero, x);
    holds("depends after substitution", !a_.depends_on(at_zero, id), x);
    const Form other = loops_[(i + 1) % loops_.size()], times = c(factor());
    const Form straight = a_.add(a_.mul(loops_[i], times), a_.floor_div(other, c(factor())));
    const auto in_sum = a_.linear_in(straight, id);
    holds("linear in a sum", in_sum.has_value(), straight);
    if (in_sum && loops_[i] != Form{}) one("coefficient in a sum", in_sum->coefficient, times);
    if (const auto linear = a_.linear_in(x, id)) {
      same("linear", a_.add(a_.mul(linear->coefficient, loops_[i]), linear->rest), x);
      same("linear at zero", linear->rest, at_zero);
    }
  }

  // No digit is 0, or is all that is left above it.
  void needed(const AtomView& digit) {
    if (!a_.prove_nonneg(digit.whole)) return;
    holds("needless digit", !a_.prove_less(digit.whole, digit.divisor), digit.whole);
    if (digit.range)
      holds("needless remainder", !a_.prove_less(digit.whole, a_.mul(digit.divisor, *digit.range)), digit.whole);
  }

  // Where extents are constants: what holds at every point is shown, if it is a sum over different loops.
  void questions() {
    if (is_symbolic_) return;
    Form x = c(random_.between(-9, 9));
    int64_t least = a_.constant_part(x), most = least;
    for (size_t i = 0; i < loops_.size(); ++i) {
      const int64_t times = random_.between(-3, 3), p = factor(), range = factor();
      const int64_t last = *a_.constant_value(extents_[i]) - 1;
      Form part = a_.floor_div(loops_[i], c(p));
      int64_t top = last / p;
      if (random_.one_in(2)) part = a_.mod(part, c(range)), top = std::min(top, range - 1);
      x = a_.add(x, a_.mul(part, times));
      least += std::min<int64_t>(0, times * top);
      most += std::max<int64_t>(0, times * top);
    }
    const IntBounds bounds = a_.int_bounds(x);
    holds("exact bounds", bounds.lower == least && bounds.upper == most, x);
    holds("exact least", a_.prove_le(c(least), x) && !a_.prove_less(c(least), x), x);
    holds("exact greatest", a_.prove_le(x, c(most)) && !a_.prove_less(x, c(most)), x);
    holds("constant where it has one value", a_.is_constant(x) == (least == most), x);
    const Form u = a_.add(loops_[0], c(random_.between(0, 9))), v = a_.add(loops_[1], c(random_.between(0, 9)));
    const IntBounds a = a_.int_bounds(u), b = a_.int_bounds(v);
    const Form smaller = a_.min(u, v), greater = a_.max(u, v);
    const IntBounds low = a_.int_bounds(smaller), high = a_.int_bounds(greater);
    holds("bounds of the least", low.lower == std::min(a.lower, b.lower) && low.upper == std::min(a.upper, b.upper),
          smaller);
    holds("bounds of the greatest",
          high.lower == std::max(a.lower, b.lower) && high.upper == std::max(a.upper, b.upper), greater);
    const FormBounds formed = a_.bounds(x);
    holds("bounds as forms", formed.lower == c(least) && formed.upper == c(most), x);
  }

  OracleRun& run_;
  RandomSource& random_;
  IndexAlgebra a_;
  bool is_symbolic_ = false;
  std::vector<Form> symbols_, extents_, loops_, forms_;
};

}  // namespace

void algebra(OracleRun& run) {
  RandomSource random = run.random(91);
  AlgebraLaws(run, random).judge();
  judge_algebra_at_points(run, random);
  check_index_ranges(run, random);
}

}  // namespace fusebox::fuzz
