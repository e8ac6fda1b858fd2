// The law of the index algebra. A form evaluates to the value that the transforms give, at every loop point, holes
// included. Equal forms are equal at every point. A proven range holds at every point.
//
// A case is a tensor: one to three domains, a chain of transforms from them to the loops, and a second chain (for
// example an allocation). Values come up from the loops and go on down the second chain. Every domain's value is
// computed as a form and directly as an integer.
#include "passes/algebra/index_algebra.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/step/apply.h"

namespace fusebox {
namespace {

enum class Kind { kSplitInner, kSplitOuter, kMerge, kResize, kXor, kCyclic };

struct Domain {
  Form extent;
  Form value;
};

struct Transform {
  Kind kind;
  std::array<size_t, 2> in;
  std::array<size_t, 2> out;
  Form factor;       // splits
  int64_t left = 0;  // resize
};

constexpr int64_t kSamples = 60;

int64_t floor_div(int64_t a, int64_t b) { return b == 0 ? 0 : a / b - (a % b < 0 ? 1 : 0); }
int64_t floor_mod(int64_t a, int64_t b) { return b == 0 ? 0 : a - b * floor_div(a, b); }

struct Counts {
  int64_t cases = 0;
  int64_t evaluated = 0;
  int64_t equal_pairs = 0;
  int64_t recognised = 0;
  int64_t in_range = 0;
  int64_t shown_in_range = 0;
  int64_t violations = 0;
  std::map<std::string, int> missed;
};

struct Case {
  IndexAlgebra& algebra;
  bool symbolic;
  size_t roots = 0;
  std::vector<Domain> domains;
  std::vector<Transform> up;    // from the roots to the loops; values are computed backwards
  std::vector<Transform> down;  // from the roots on
  std::vector<size_t> loops;

  size_t add(Form extent) {
    domains.push_back({algebra.symbol_of(extent), Form{}});
    return domains.size() - 1;
  }

  Form extent(size_t domain) const { return domains[domain].extent; }

  std::optional<int64_t> size(size_t domain) const { return algebra.constant_value(extent(domain)); }

  bool applies(Kind kind, size_t x, size_t y) const {
    if (kind == Kind::kXor) {
      return x != y && size(x) && size(x) == size(y) && *size(x) > 0 && (*size(x) & (*size(x) - 1)) == 0;
    }
    return (kind != Kind::kMerge && kind != Kind::kCyclic) || x != y;
  }

  // Replaces the operands in `frontier` by the results.
  void apply(std::vector<Transform>& chain, std::vector<size_t>& frontier, Kind kind, size_t i, size_t j, Form factor,
             int64_t left, int64_t right) {
    const size_t x = frontier[i];
    const size_t y = frontier[j];
    Transform t{kind, {x, y}, {0, 0}, factor, left};
    switch (kind) {
      case Kind::kSplitInner:
        t.out = {add(algebra.ceil_div(extent(x), factor)), add(factor)};
        break;
      case Kind::kSplitOuter: {
        const size_t outer = add(factor);
        t.out = {outer, add(algebra.ceil_div(extent(x), factor))};
        break;
      }
      case Kind::kMerge:
        t.out[0] = add(algebra.mul(extent(x), extent(y)));
        break;
      case Kind::kResize:
        t.out[0] = add(algebra.add(extent(x), algebra.constant(left + right)));
        break;
      case Kind::kXor:
      case Kind::kCyclic: {
        const size_t first = add(extent(x));
        t.out = {first, add(extent(y))};
        break;
      }
    }
    chain.push_back(t);
    frontier[i] = t.out[0];
    if (kind == Kind::kMerge) frontier.erase(frontier.begin() + static_cast<std::ptrdiff_t>(j));
    if (kind == Kind::kSplitInner || kind == Kind::kSplitOuter) frontier.push_back(t.out[1]);
    if (kind == Kind::kXor || kind == Kind::kCyclic) frontier[j] = t.out[1];
  }

  void compute_forms() {
    for (size_t i = 0; i < loops.size(); ++i) {
      domains[loops[i]].value =
          algebra.declare_loop(static_cast<int>(i), "l" + std::to_string(i), domains[loops[i]].extent);
    }
    const auto value = [&](size_t d) -> Form& { return domains[d].value; };
    for (size_t i = up.size(); i-- > 0;) {
      const Transform& t = up[i];
      const Form a = value(t.out[0]);
      const Form b = value(t.out[1]);
      switch (t.kind) {
        case Kind::kSplitInner:
        case Kind::kSplitOuter:
          value(t.in[0]) = algebra.add(algebra.mul(a, extent(t.out[1])), b);
          break;
        case Kind::kMerge:
          value(t.in[0]) = algebra.floor_div(a, extent(t.in[1]));
          value(t.in[1]) = algebra.mod(a, extent(t.in[1]));
          break;
        case Kind::kResize:
          value(t.in[0]) = algebra.sub(a, algebra.constant(t.left));
          break;
        case Kind::kXor:
          value(t.in[0]) = a;
          value(t.in[1]) = algebra.bit_xor(b, a);
          break;
        case Kind::kCyclic:
          value(t.in[0]) = a;
          value(t.in[1]) = algebra.cyclic(b, algebra.neg(a), extent(t.in[1]));
          break;
      }
    }
    for (const Transform& t : down) {
      const Form a = value(t.in[0]);
      const Form b = value(t.in[1]);
      switch (t.kind) {
        case Kind::kSplitInner:
        case Kind::kSplitOuter:
          value(t.out[0]) = algebra.floor_div(a, extent(t.out[1]));
          value(t.out[1]) = algebra.mod(a, extent(t.out[1]));
          break;
        case Kind::kMerge:
          value(t.out[0]) = algebra.add(algebra.mul(a, extent(t.in[1])), b);
          break;
        case Kind::kResize:
          value(t.out[0]) = algebra.add(a, algebra.constant(t.left));
          break;
        case Kind::kXor:
          value(t.out[0]) = a;
          value(t.out[1]) = algebra.bit_xor(b, a);
          break;
        case Kind::kCyclic:
          value(t.out[0]) = a;
          value(t.out[1]) = algebra.cyclic(a, b, extent(t.in[1]));
          break;
      }
    }
  }

  // The same with integers.
  void compute(std::vector<int64_t>& v, const std::vector<int64_t>& extents) const {
    for (size_t i = up.size(); i-- > 0;) {
      const Transform& t = up[i];
      const int64_t a = v[t.out[0]];
      const int64_t b = v[t.out[1]];
      switch (t.kind) {
        case Kind::kSplitInner:
        case Kind::kSplitOuter:
          v[t.in[0]] = a * extents[t.out[1]] + b;
          break;
        case Kind::kMerge:
          v[t.in[0]] = floor_div(a, extents[t.in[1]]);
          v[t.in[1]] = floor_mod(a, extents[t.in[1]]);
          break;
        case Kind::kResize:
          v[t.in[0]] = a - t.left;
          break;
        case Kind::kXor:
          v[t.in[0]] = a;
          v[t.in[1]] = b ^ a;
          break;
        case Kind::kCyclic:
          v[t.in[0]] = a;
          v[t.in[1]] = floor_mod(b - a, extents[t.in[1]]);
          break;
      }
    }
    for (const Transform& t : down) {
      const int64_t a = v[t.in[0]];
      const int64_t b = v[t.in[1]];
      switch (t.kind) {
        case Kind::kSplitInner:
        case Kind::kSplitOuter:
          v[t.out[0]] = floor_div(a, extents[t.out[1]]);
          v[t.out[1]] = floor_mod(a, extents[t.out[1]]);
          break;
        case Kind::kMerge:
          v[t.out[0]] = a * extents[t.in[1]] + b;
          break;
        case Kind::kResize:
          v[t.out[0]] = a + t.left;
          break;
        case Kind::kXor:
          v[t.out[0]] = a;
          v[t.out[1]] = b ^ a;
          break;
        case Kind::kCyclic:
          v[t.out[0]] = a;
          v[t.out[1]] = floor_mod(a + b, extents[t.in[1]]);
          break;
      }
    }
  }

  std::string describe() const {
    std::string text;
    for (const auto* chain : {&up, &down}) {
      text += chain == &up ? "up:" : " down:";
      for (const Transform& t : *chain) {
        static constexpr const char* kNames[] = {"split_inner", "split_outer", "merge", "resize", "xor", "cyclic"};
        text += std::string(" ") + kNames[static_cast<int>(t.kind)] + "(" + std::to_string(t.in[0]) + "," +
                std::to_string(t.in[1]) + ")->" + std::to_string(t.out[0]) + "," + std::to_string(t.out[1]);
      }
    }
    for (size_t d = 0; d < domains.size(); ++d) {
      text += "\n  d" + std::to_string(d) + "{" + algebra.to_string(domains[d].extent) +
              "} = " + algebra.to_string(domains[d].value);
    }
    return text;
  }

  // Compares all values at all points under all bindings, one row for each domain; checks are evaluated too. If there
  // are too many points, takes a sample.
  void check(const std::vector<std::vector<int64_t>>& bindings, int64_t max_points, std::mt19937& rng, Counts& counts) {
    ++counts.cases;
    std::vector<std::vector<int64_t>> rows(domains.size());
    std::vector<std::vector<int64_t>> extent_rows(domains.size());
    for (const auto& symbols : bindings) {
      std::vector<int64_t> extents(domains.size());
      for (size_t d = 0; d < domains.size(); ++d) extents[d] = *algebra.evaluate(domains[d].extent, {}, symbols);
      int64_t points = 1;
      for (const size_t loop : loops) points *= extents[loop];
      const bool sampled = points > max_points;
      if (sampled && !symbolic) continue;
      if (sampled) points = kSamples;
      std::vector<int64_t> at(loops.size());
      std::vector<int64_t> values(domains.size());
      for (int64_t point = 0; point < points; ++point) {
        int64_t rest = point;
        for (size_t i = loops.size(); i-- > 0;) {
          const int64_t extent = extents[loops[i]];
          at[i] = sampled ? (rng() % 4 == 0 ? extent - 1 : static_cast<int64_t>(rng() % static_cast<uint64_t>(extent)))
                          : rest % extent;
          rest /= extent;
          values[loops[i]] = at[i];
        }
        compute(values, extents);
        for (size_t d = 0; d < domains.size(); ++d) {
          ++counts.evaluated;
          if (algebra.evaluate(domains[d].value, at, symbols) != values[d] && counts.violations++ < 5) {
            ADD_FAILURE() << "d" << d << " should be " << values[d] << " at point " << point << "\n" << describe();
          }
          rows[d].push_back(values[d]);
          extent_rows[d].push_back(extents[d]);
        }
      }
    }
    if (rows[0].empty()) return;
    for (size_t d = 0; d < domains.size(); ++d) {
      check_range(d, rows[d], extent_rows[d], counts);
      for (size_t other = 0; other < d; ++other) {
        check_pair(d, other, rows, counts);
      }
    }
  }

  void check_range(size_t d, const std::vector<int64_t>& row, const std::vector<int64_t>& extents, Counts& counts) {
    bool nonneg = true;
    bool below = true;
    for (size_t i = 0; i < row.size(); ++i) {
      nonneg &= row[i] >= 0;
      below &= row[i] < extents[i];
    }
    const bool shown_nonneg = algebra.prove_nonneg(domains[d].value);
    const bool shown_below = algebra.prove_less(domains[d].value, domains[d].extent);
    counts.in_range += nonneg + below;
    counts.shown_in_range += (nonneg && shown_nonneg) + (below && shown_below);
    if (((shown_nonneg && !nonneg) || (shown_below && !below)) && counts.violations++ < 5) {
      ADD_FAILURE() << "the range of d" << d << " is wrong\n" << describe();
    }
    const IntBounds bounds = algebra.int_bounds(domains[d].value);
    for (const int64_t value : row) {
      if (((bounds.lower && value < *bounds.lower) || (bounds.upper && value > *bounds.upper)) &&
          counts.violations++ < 5) {
        ADD_FAILURE() << "the int bounds of d" << d << " are wrong\n" << describe();
      }
    }
  }

  void check_pair(size_t d, size_t other, const std::vector<std::vector<int64_t>>& rows, Counts& counts) {
    const bool same = rows[d] == rows[other];
    const bool shown = algebra.equal(domains[d].value, domains[other].value);
    counts.equal_pairs += same;
    counts.recognised += same && shown;
    if (shown && !same && counts.violations++ < 5) {
      ADD_FAILURE() << "d" << d << " and d" << other << " are not equal\n" << describe();
    }
    if (same && !shown && counts.missed.size() < 40) {
      ++counts.missed[algebra.to_string(domains[d].value) + "  ==  " + algebra.to_string(domains[other].value)];
    }
    if ((d + other) % 3 != 0) return;
    if (algebra.prove_less(domains[d].value, domains[other].value)) {
      for (size_t i = 0; i < rows[d].size(); ++i) {
        if (rows[d][i] >= rows[other][i] && counts.violations++ < 5) {
          ADD_FAILURE() << "d" << d << " is not less than d" << other << "\n" << describe();
        }
      }
    }
  }
};

void report(const char* what, const Counts& counts, double seconds) {
  std::cout << what << ": " << counts.cases << " cases, " << counts.evaluated << " values evaluated, "
            << counts.violations << " violations; equal pairs recognised "
            << 100.0 * static_cast<double>(counts.recognised) / static_cast<double>(counts.equal_pairs) << " % of "
            << counts.equal_pairs << "; ranges shown "
            << 100.0 * static_cast<double>(counts.shown_in_range) / static_cast<double>(counts.in_range) << " % of "
            << counts.in_range << "; " << seconds << " s\n";
  if (std::getenv("SHOW_MISSED") != nullptr) {
    for (const auto& [text, n] : counts.missed) std::cout << "  missed: " << text << "\n";
  }
}

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct RandomOptions {
  bool symbolic = false;
  bool assumptions = false;  // 4 divides n, and n <= m
  int64_t least_size = 0;    // of symbols
  bool swizzles = true;
  bool resizes = true;
  int cases = 0;
  int64_t max_points = 2000;
};

void random_chain(Case& c, std::vector<Transform>& chain, std::vector<size_t>& frontier, std::mt19937& rng,
                  const RandomOptions& options, const std::vector<Form>& symbols) {
  const auto below = [&](size_t n) { return static_cast<size_t>(rng() % n); };
  const size_t steps = below(7);
  for (size_t s = 0; s < steps; ++s) {
    const auto kind = static_cast<Kind>(below(6));
    const size_t i = below(frontier.size());
    const size_t j = below(frontier.size());
    if (!c.applies(kind, frontier[i], frontier[j])) continue;
    if (kind == Kind::kResize && !options.resizes) continue;
    if ((kind == Kind::kXor || kind == Kind::kCyclic) && !options.swizzles) continue;
    Form factor = c.algebra.constant(1 + static_cast<int64_t>(below(below(2) == 0 ? 4 : 17)));
    if (options.symbolic && below(4) == 0) factor = symbols[below(symbols.size())];
    int64_t left = 0;
    int64_t right = 0;
    if (kind == Kind::kResize) {
      const int64_t least = options.symbolic ? 0 : -2;
      left = least + static_cast<int64_t>(below(5));
      right = least + static_cast<int64_t>(below(5));
      if (!options.symbolic && *c.size(frontier[i]) + left + right < 1) continue;
    }
    c.apply(chain, frontier, kind, i, j, factor, left, right);
  }
}

Counts run_random(const RandomOptions& options, uint32_t seed) {
  std::mt19937 rng(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(rng() % n); };
  IndexAlgebra algebra;
  Counts counts;
  for (int n = 0; n < options.cases; ++n) {
    algebra.clear();
    std::vector<Form> symbols;
    std::vector<std::vector<int64_t>> bindings(1);
    if (options.symbolic) {
      for (int i = 0; i < 2; ++i)
        symbols.push_back(algebra.declare_symbol(i, i == 0 ? "n" : "m", {.lower = options.least_size, .upper = {}}));
      bindings.clear();
      for (const int64_t x : {0, 1, 2, 5, 8}) {
        for (const int64_t y : {0, 1, 3, 4, 7}) {
          if (std::min(x, y) >= options.least_size) bindings.push_back({x, y});
        }
      }
      for (const auto& [x, y] : {std::pair{64, 37}, {101, 128}, {23, 997}, {360, 18}}) bindings.push_back({x, y});
      if (options.assumptions) {
        algebra.assume_divides(algebra.constant(4), symbols[0], "n is a multiple of 4");
        algebra.assume_le(symbols[0], symbols[1], "n is at most m");
        for (auto& sizes : bindings) {
          sizes[0] *= 4;
          sizes[1] += sizes[0];
        }
      }
    }
    Case c{algebra, options.symbolic, 0, {}, {}, {}, {}};
    c.roots = 1 + below(3);
    std::vector<size_t> roots;
    for (size_t i = 0; i < c.roots; ++i) {
      const bool symbol = options.symbolic && below(4) != 0;
      roots.push_back(c.add(symbol ? symbols[below(2)] : algebra.constant(1 + static_cast<int64_t>(below(17)))));
    }
    c.loops = roots;
    random_chain(c, c.up, c.loops, rng, options, symbols);
    std::vector<size_t> leaves = roots;
    random_chain(c, c.down, leaves, rng, options, symbols);
    c.compute_forms();
    c.check(bindings, options.max_points, rng, counts);
  }
  return counts;
}

TEST(IndexAlgebraLaw, ConstantExtents) {
  const Clock clock;
  const Counts counts = run_random({.cases = 10000}, 1);
  report("constant extents", counts, clock.seconds());
  EXPECT_EQ(counts.violations, 0);
  EXPECT_GT(counts.evaluated, 1000000);
}

// Calls use(chain, frontier) for the chain itself and for every extension of it by up to `steps` transforms.
template <typename Use>
void each_chain(Case& c, std::vector<Transform>& chain, std::vector<size_t>& frontier, int steps, const Use& use) {
  use();
  if (steps == 0) return;
  const auto step = [&](Kind kind, size_t i, size_t j, int64_t factor, int64_t left, int64_t right) {
    if (!c.applies(kind, frontier[i], frontier[j])) return;
    if (kind == Kind::kResize && *c.size(frontier[i]) + left + right < 1) return;
    const std::vector<size_t> saved = frontier;
    const size_t domain_count = c.domains.size();
    c.apply(chain, frontier, kind, i, j, c.algebra.constant(factor), left, right);
    each_chain(c, chain, frontier, steps - 1, use);
    chain.pop_back();
    frontier = saved;
    c.domains.resize(domain_count);
  };
  for (size_t i = 0; i < frontier.size(); ++i) {
    for (const int64_t factor : {2, 3, 4}) {
      step(Kind::kSplitInner, i, i, factor, 0, 0);
      step(Kind::kSplitOuter, i, i, factor, 0, 0);
    }
    step(Kind::kResize, i, i, 0, 1, 2);
    step(Kind::kResize, i, i, 0, -1, -1);
    for (size_t j = 0; j < frontier.size(); ++j) {
      for (const Kind kind : {Kind::kMerge, Kind::kXor, Kind::kCyclic}) step(kind, i, j, 0, 0, 0);
    }
  }
}

// Every chain of two transforms to the loops with every second chain of one, and the reverse.
TEST(IndexAlgebraLaw, EveryShortChain) {
  const Clock clock;
  std::mt19937 unused;
  IndexAlgebra algebra;
  Counts counts;
  for (const auto& [up_steps, down_steps] : {std::pair{2, 1}, {1, 2}}) {
    for (int64_t extent = 1; extent <= 17; ++extent) {
      Case c{algebra, false, 1, {}, {}, {}, {}};
      c.loops = {c.add(algebra.constant(extent))};
      const std::vector<size_t> roots = c.loops;
      each_chain(c, c.up, c.loops, up_steps, [&] {
        std::vector<size_t> leaves = roots;
        each_chain(c, c.down, leaves, down_steps, [&] {
          // Extents are constants here and stay equal when computed again in a new algebra.
          std::vector<int64_t> extents;
          for (const Domain& domain : c.domains) extents.push_back(*algebra.constant_value(domain.extent));
          std::vector<int64_t> factors;
          for (const auto* chain : {&c.up, &c.down}) {
            for (const Transform& t : *chain) factors.push_back(*algebra.constant_value(t.factor));
          }
          algebra.clear();
          for (size_t d = 0; d < c.domains.size(); ++d) c.domains[d].extent = algebra.constant(extents[d]);
          size_t next = 0;
          for (auto* chain : {&c.up, &c.down}) {
            for (Transform& t : *chain) t.factor = algebra.constant(factors[next++]);
          }
          c.compute_forms();
          c.check({{}}, 2000, unused, counts);
        });
      });
    }
  }
  report("every short chain", counts, clock.seconds());
  EXPECT_EQ(counts.violations, 0);
  EXPECT_GT(counts.cases, 10000);
}

TEST(IndexAlgebraLaw, SplitsAndMergesOfConstantExtents) {
  const Clock clock;
  const Counts counts = run_random({.swizzles = false, .resizes = false, .cases = 8000}, 2);
  report("splits and merges", counts, clock.seconds());
  EXPECT_EQ(counts.violations, 0);
}

TEST(IndexAlgebraLaw, SymbolicExtents) {
  const Clock clock;
  const Counts counts = run_random({.symbolic = true, .cases = 1200, .max_points = 120}, 3);
  report("symbolic extents", counts, clock.seconds());
  EXPECT_EQ(counts.violations, 0);
  EXPECT_GT(counts.evaluated, 1000000);
}

TEST(IndexAlgebraLaw, SymbolicExtentsThatAreNotZero) {
  const Clock clock;
  const Counts counts = run_random({.symbolic = true, .least_size = 1, .cases = 1200, .max_points = 120}, 4);
  report("symbolic extents from 1", counts, clock.seconds());
  EXPECT_EQ(counts.violations, 0);
}

TEST(IndexAlgebraLaw, SymbolicExtentsWithAssumptions) {
  const Clock clock;
  const Counts counts = run_random({.symbolic = true, .assumptions = true, .cases = 1200, .max_points = 120}, 5);
  report("symbolic extents with assumptions", counts, clock.seconds());
  EXPECT_EQ(counts.violations, 0);
}

}  // namespace
}  // namespace fusebox
