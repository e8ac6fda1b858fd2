// The laws of indices, predicates and id graphs (fuzz/index_laws/law.h), for every short chain of transforms and for
// random ones.
//
// FUSEBOX_FIRST_SEED chooses other random cases; FUSEBOX_CASE_FACTOR makes more of them; SHOW_MISSED prints missed
// pairs.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <map>

#include "fuzz/index_laws/law.h"
#include "fuzz/index_laws/random.h"
#include "passes/identity/id_graph_builder.h"
#include "tests/property/index_laws_settings.h"

namespace fusebox::index_laws {
namespace {

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void expect_none(const Law& law) {
  EXPECT_EQ(law.counts.violations, 0);
  for (const std::string& violation : law.violations) ADD_FAILURE() << violation;
}

Counts all;  // of this process, for the last line

void report(const char* what, const Counts& c, const Clock& clock) {
  std::cout << what << ": " << c.cases << " cases, " << c.values << " values at " << c.points << " points, "
            << c.violations << " violations; mapped " << c.completeness() << " % of " << c.equal_pairs - c.kept_apart
            << " equal pairs";
  if (c.kept_apart > 0) std::cout << " (" << c.kept_apart << " more would join a pair that differs)";
  std::cout << "; " << clock.seconds() << " s\n";
  if (!c.missed.empty()) {
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [text, n] : c.missed) order.emplace_back(-n, text);
    std::sort(order.begin(), order.end());
    if (std::getenv("SHOW_MISSED") == nullptr) order.resize(std::min<size_t>(order.size(), 3));
    for (const auto& [n, text] : order) std::cout << "    missed " << -n << " times: " << text << "\n";
  }
  all.add(c);
}

struct Alphabet {
  std::vector<int> splits;                   // factors, inner and outer
  std::vector<std::pair<int, int>> resizes;  // left and right
};

// Every chain of up to `steps` transforms to the loops, including the empty one.
template <class Use>
void each_chain(Case& c, size_t tensor, int steps, const Alphabet& alphabet, const Use& use) {
  use();
  if (steps == 0) return;
  Tensor& t = c.tensors[tensor];
  std::vector<int64_t> e;
  t.extents({}, e);
  const std::vector<int> saved = t.loops;
  const int count = t.count;
  const auto step = [&](Kind kind, size_t i, size_t j, int factor = 0, int right = 0) {
    Tensor& mine = c.tensors[tensor];
    mine.apply(mine.chain, mine.loops, kind, i, j, factor, right);
    each_chain(c, tensor, steps - 1, alphabet, use);
    Tensor& again = c.tensors[tensor];
    again.chain.pop_back();
    again.loops = saved;
    again.count = count;
  };
  for (size_t i = 0; i < saved.size(); ++i) {
    for (const int f : alphabet.splits) {
      step(Kind::kSplitInner, i, i, number(f));
      step(Kind::kSplitOuter, i, i, number(f));
    }
    for (const auto& [left, right] : alphabet.resizes) step(Kind::kResize, i, i, number(left), number(right));
    for (size_t j = 0; j < saved.size(); ++j) {
      if (i == j) continue;
      step(Kind::kMerge, i, j);
      step(Kind::kCyclic, i, j);
      const int64_t x = e[Tensor::at(saved[i])], y = e[Tensor::at(saved[j])];
      if (is_power_of_two(y) && x <= y) step(Kind::kXor, i, j);
    }
  }
}

std::vector<int> up_to(int n) {
  std::vector<int> result;
  for (int i = 1; i <= n; ++i) result.push_back(i);
  return result;
}

void every_chain(const char* what, int steps, const std::vector<int>& extents, int axes, const Alphabet& alphabet) {
  const Clock clock;
  Law law;
  const std::vector<Binding> one(1);
  for (const int first : extents)
    for (const int second : axes == 2 ? extents : std::vector<int>{0}) {
      Case c;
      c.tensors.push_back(axes == 2 ? Tensor::of({number(first), number(second)}) : Tensor::of({number(first)}));
      each_chain(c, 0, steps, alphabet, [&] { law.check(c, one); });
    }
  report(what, law.counts, clock);
  expect_none(law);
  EXPECT_GE(law.counts.completeness(), 99.9);
}

TEST(IndexLaws, EveryChainOfTwoWithEveryFactor) {
  every_chain("two transforms, factors and extents 1 to 17", 2, up_to(17), 1,
              {up_to(17), {{0, 1}, {1, 0}, {2, 3}, {5, 0}}});
}

TEST(IndexLaws, EveryChainOfTwoFromTwoAxes) {
  every_chain("two transforms of two axes, factors 1 to 17", 2, {2, 3, 5, 8}, 2, {up_to(17), {}});
}

TEST(IndexLaws, EveryChainOfThree) {
  every_chain("three transforms, extents 1 to 17", 3, up_to(17), 1, {{1, 2, 3, 4, 5, 8}, {{1, 0}, {2, 3}}});
}

TEST(IndexLaws, EveryChainOfThreeWithLargeFactors) {
  every_chain("three transforms, large factors", 3, up_to(17), 1, {{6, 7, 9, 17}, {}});
}

TEST(IndexLaws, EveryChainOfThreeFromTwoAxes) {
  every_chain("three transforms of two axes", 3, {1, 2, 3, 4, 5, 7}, 2, {{2, 3}, {{1, 2}}});
}

TEST(IndexLaws, EveryChainOfFour) { every_chain("four transforms, extents 1 to 17", 4, up_to(17), 1, {{2, 3}, {}}); }

TEST(IndexLaws, EveryChainOfFive) { every_chain("five transforms of 5 and 6 by 2", 5, {5, 6}, 1, {{2}, {}}); }

// Every pair of chains for two tensors, one of which reads the other: classes extend across both.
TEST(IndexLaws, EveryPairOfChainsOnTwoTensors) {
  const Clock clock;
  Law law;
  const std::vector<Binding> one(1);
  const auto pairs = [&](int extent, int first, int second, const Alphabet& alphabet) {
    Case c;
    c.tensors.assign(2, Tensor::of({number(extent)}));
    each_chain(c, 0, first, alphabet, [&] { each_chain(c, 1, second, alphabet, [&] { law.check(c, one); }); });
  };
  for (int extent = 1; extent <= 17; ++extent) pairs(extent, 2, 2, {{2, 3, 5}, {}});
  for (const int extent : {1, 8, 9}) pairs(extent, 3, 2, {{8}, {}});
  report("two tensors", law.counts, clock);
  expect_none(law);
  EXPECT_GE(law.counts.completeness(), 99.9);
}

TEST(IndexLaws, EveryTripleOfChainsOnThreeTensors) {
  const Clock clock;
  Law law;
  const std::vector<Binding> one(1);
  const Alphabet alphabet{{1, 2, 3, 8}, {}};
  for (int extent = 1; extent <= 9; ++extent) {
    Case c;
    c.tensors.assign(3, Tensor::of({number(extent)}));
    each_chain(c, 0, 2, {{2, 8}, {}}, [&] {
      each_chain(c, 1, 1, alphabet, [&] { each_chain(c, 2, 1, alphabet, [&] { law.check(c, one); }); });
    });
  }
  report("three tensors", law.counts, clock);
  expect_none(law);
  EXPECT_GE(law.counts.completeness(), 99.9);
}

// -- random cases

Counts run_random(const RandomOptions& options) {
  Law law;
  Generator generator(options, first_seed());
  for (int n = 0; n < options.cases * case_factor(); ++n)
    law.check(generator.next(), options.bindings, options.max_points);
  expect_none(law);
  return law.counts;
}

TEST(IndexLaws, RandomChainsOfUpToSix) {
  const Clock clock;
  const Counts counts = run_random({.cases = 60000, .max_points = 600});
  report("one to three tensors, up to six transforms", counts, clock);
  EXPECT_EQ(counts.violations, 0);
  EXPECT_GE(counts.completeness(), 99.9);
}

const std::vector<Binding> kBindings = {{0, 3},  {1, 1},   {1, 4},    {2, 1},   {2, 7},    {3, 2},
                                        {4, 4},  {5, 3},   {6, 8},    {7, 2},   {8, 1},    {9, 5},
                                        {16, 2}, {35, 18}, {23, 360}, {97, 64}, {128, 101}};

TEST(IndexLaws, SymbolicExtentsAndFactors) {
  const Clock clock;
  const Counts counts = run_random({.symbolic = true, .cases = 4000, .max_points = 250, .bindings = kBindings});
  report("symbolic extents and factors", counts, clock);
  EXPECT_EQ(counts.violations, 0);
}

TEST(IndexLaws, SymbolicExtentsThatAReshapeDivides) {
  const Clock clock;
  std::vector<Binding> multiples;
  for (const Binding& b : kBindings) multiples.push_back({4 * b.n, b.m});
  const Counts counts =
      run_random({.symbolic = true, .reshape = true, .cases = 2000, .max_points = 250, .bindings = multiples});
  report("symbolic extents that 4 divides", counts, clock);
  EXPECT_EQ(counts.violations, 0);
}

// -- well-known hard cases

bool almost_exact(const Case& c, uint32_t a, uint32_t b) {
  Graph g = Case::scalars();
  c.build(g);
  Law law;
  law.check(c, std::vector<Binding>(1));
  expect_none(law);
  return id_graph(g, IdGraphKind::kAlmostExact).same(DomainId(a), DomainId(b));
}

// a{17} by 17 → b{1}, c{17}; b by 8 → f{1}, g{8}: f and b are 0 at every element, but b reaches 7 in the holes.
Tensor hole_case() {
  Tensor t = Tensor::of({number(17)});
  t.apply(t.chain, t.loops, Kind::kSplitInner, 0, 0, number(17));  // 1, 2
  t.apply(t.chain, t.loops, Kind::kSplitInner, 0, 0, number(8));   // 3, 4
  return t;
}

TEST(IndexLaws, TheOuterOutputOfAnOuterOutputInItsHoles) {
  const Case c{{hole_case()}, false};
  EXPECT_FALSE(almost_exact(c, 3, 1));
  EXPECT_TRUE(almost_exact(c, 4, 1));
}

TEST(IndexLaws, ASecondTensorThatHasOneOfTheTwo) {
  // The second tensor has b and, from c by 17, u{1}; both are 0 there. In the first, u and f are 0 but b is not.
  Case c{{hole_case(), hole_case()}, false};
  c.tensors[0].apply(c.tensors[0].chain, c.tensors[0].loops, Kind::kSplitInner, 1, 1, number(17));  // 5, 6
  c.tensors[1] = Tensor::of({number(17)});
  Tensor& second = c.tensors[1];
  second.apply(second.chain, second.loops, Kind::kSplitInner, 0, 0, number(17));  // 8, 9
  second.apply(second.chain, second.loops, Kind::kSplitInner, 1, 1, number(17));  // 10, 11
  ASSERT_EQ(c.tensors[0].count, 7);
  EXPECT_TRUE(almost_exact(c, 5, 3));
  EXPECT_FALSE(almost_exact(c, 3, 1));
  EXPECT_FALSE(almost_exact(c, 8, 10));
  EXPECT_FALSE(almost_exact(c, 8, 3));
}

TEST(IndexLaws, SplitsOfOneExtentAndOtherIndices) {
  // 5 by 2 and its outer output by 2 gives i/4; 5 by 3 gives i/3. Both have extent 2, in one tensor and in two.
  Tensor twice = Tensor::of({number(5)});
  twice.apply(twice.chain, twice.loops, Kind::kSplitInner, 0, 0, number(2));  // 1, 2
  twice.apply(twice.chain, twice.loops, Kind::kSplitInner, 0, 0, number(2));  // 3, 4
  Tensor once = Tensor::of({number(5)});
  once.apply(once.chain, once.loops, Kind::kSplitInner, 0, 0, number(3));  // 6, 7
  EXPECT_FALSE(almost_exact({{twice, once}, false}, 3, 6));
  Tensor both = twice;
  std::vector<int> others = both.logical;
  both.apply(both.down, others, Kind::kSplitInner, 0, 0, number(3));  // 5, 6
  EXPECT_FALSE(almost_exact({{both}, false}, 3, 5));
}

// Small chains show every seeded defect in the values and checks of a nest.
TEST(IndexLaws, SeededDefectsAreFound) {
  if (!kDefectsCompiledIn) GTEST_SKIP();
  for (const Defect defect : {Defect::kAlmostExactEqualExtent, Defect::kPredicateDropped, Defect::kExtentTruncated,
                              Defect::kSplitSwapped, Defect::kSwizzleInverse}) {
    Law law;
    law.defects.add(defect);
    const std::vector<Binding> one(1);
    for (const int extent : {5, 8, 9}) {
      Case c;
      c.tensors.push_back(Tensor::of({number(extent)}));
      each_chain(c, 0, 3, {{3, 8}, {}}, [&] { law.check(c, one); });
    }
    std::cout << "defect " << text(defect) << ": " << law.counts.violations << " violations in " << law.counts.cases
              << " cases\n";
    EXPECT_GT(law.counts.violations, 0) << text(defect);
  }
}

class Total : public ::testing::Environment {
 public:
  void TearDown() override {
    std::cout << "in all: " << all.cases << " cases, " << all.points << " loop points, " << all.values << " values, "
              << all.violations << " violations\n";
    const bool everything = ::testing::GTEST_FLAG(filter) == "*";
    EXPECT_TRUE(!everything || all.cases >= 2000000);
  }
};
const auto* const total = ::testing::AddGlobalTestEnvironment(new Total);

}  // namespace
}  // namespace fusebox::index_laws
