// The laws of indices, predicates and id graphs, by enumeration. For every chain of transforms, at every loop point,
// holes included:
//   - each normal form has the value that the transforms give, computed without the index algebra;
//   - two domains of one tensor that are one class of the exact or the almost-exact graph, as they stand when all
//   classes
//     are made, have the same value;
//   - the checks hold exactly where the point is an element, and every element is one point.
// How many pairs are equal and not recognised is counted: a figure of completeness.
//
// FUSEBOX_LAW_SEED chooses other random cases, FUSEBOX_LAW_FACTOR makes more of them; SHOW_MISSED prints what is
// missed.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "passes/id_graph_builder.h"
#include "tests/property/index_laws_batch.h"
#include "tests/property/index_laws_cases.h"
#include "tests/property/index_laws_random.h"

namespace fusebox::index_laws {
namespace {

constexpr int64_t kSamples = 40;

struct Counts {
  int64_t cases = 0, points = 0, values = 0;
  int64_t violations = 0;
  int64_t equal_pairs = 0, mapped = 0, kept_apart = 0;
  std::map<std::string, int64_t> missed;

  void add(const Counts& c) {
    cases += c.cases, points += c.points, values += c.values, violations += c.violations;
    equal_pairs += c.equal_pairs, mapped += c.mapped, kept_apart += c.kept_apart;
    for (const auto& [text, n] : c.missed) missed[text] += n;
  }
  double completeness() const {
    return equal_pairs == 0 ? 100.0
                            : 100.0 * static_cast<double>(mapped) / static_cast<double>(equal_pairs - kept_apart);
  }
};

// Numbers and the names of loops do not tell one miss from another.
std::string shape_of(const std::string& text) {
  std::string result;
  for (const char c : text)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) result += c;
  return result;
}

class Law {
 public:
  // Checks a case at all points under each binding; where a binding has more points than the limit, values at some.
  void check(const Case& c, const std::vector<Binding>& bindings, int64_t max_points = 100000) {
    ++counts.cases;
    case_ = &c;
    bindings_ = &bindings;
    max_points_ = max_points;
    c.build(graph_);
    hashes_.assign(graph_.domains.size(), 0);
    visited_.assign(c.tensors.size(), false);
    builder_.start(
        graph_, [&](TensorNest& nest, const std::vector<DomainId>& values) { visit(nest, values); }, defects);
    const IdGraph exact = builder_.make(IdGraphKind::kExact, false);
    const IdGraph almost = builder_.make(IdGraphKind::kAlmostExact, false);
    if (std::find(visited_.begin(), visited_.end(), false) != visited_.end()) return;
    check_classes(exact);
    check_classes(almost);
    count_equal(exact, almost);
  }

  Counts counts;
  Defects defects;        // of the rules that the forms come from
  bool expected = false;  // violations are counted alone

 private:
  void fail(const std::string& what) {
    if (counts.violations++ < 5 && !expected) ADD_FAILURE() << what << "\n" << describe();
  }

  std::string describe() const {
    std::string text;
    for (const Tensor& t : case_->tensors) text += t.to_string() + "\n";
    return text;
  }

  void visit(TensorNest& nest, const std::vector<DomainId>& values) {
    const Tensor& t = case_->tensors[nest.tensor.index];
    size_t base = 0;
    for (size_t i = 0; i < nest.tensor.index; ++i) base += static_cast<size_t>(case_->tensors[i].count);
    const auto count = static_cast<size_t>(t.count);
    forms_.clear();
    for (size_t d = 0; d < count; ++d) forms_.push_back(nest.values.value(DomainId(base + d)));
    checks_ = nest.values.checks();
    for (const Binding& binding : *bindings_) visit(nest, t, base, binding);
    for (size_t x = 0; x < count; ++x)
      for (size_t y = x + 1; y < count; ++y) {
        const bool same = hashes_[base + x] == hashes_[base + y];
        const bool shown = values[base + x] == values[base + y];
        if (same && !shown && visited_[nest.tensor.index])
          ++counts.missed[shape_of(nest.algebra.to_string(forms_[x]) + "  ==  " + nest.algebra.to_string(forms_[y]))];
      }
  }

  void visit(TensorNest& nest, const Tensor& t, size_t base, const Binding& binding) {
    const auto count = static_cast<size_t>(t.count);
    if (!t.is_legal(binding)) return;
    t.extents(binding, extents_);
    int64_t points = 1;
    for (int loop : t.loops) points *= std::max<int64_t>(extents_[Tensor::at(loop)], 0);
    if (points == 0 || (points > max_points_ && bindings_->size() == 1)) return;
    const bool sampled = points > max_points_;
    const auto taken = static_cast<size_t>(sampled ? kSamples : points);
    visited_[nest.tensor.index] = true;
    // Symbols are asked for by the ids of their values.
    symbols_.resize(kScalars);
    symbols_[kSymbolN] = binding.n;
    symbols_[kSymbolM] = binding.m;
    const bool with_elements = !sampled && Tensor::has_places(t.down, binding);
    if (with_elements) mark_elements(t, binding, points);

    batch_.start(nest.algebra, taken, t.loops.size(), symbols_);
    expected_.resize(count * taken);
    values_.assign(count, 0);
    for (size_t p = 0; p < taken; ++p) {
      // Some: the last, and others that the fractional parts of multiples of a number spread.
      const auto i = static_cast<int64_t>(p);
      int64_t rest = !sampled ? i : p == 0 ? points - 1 : i * 0x9e3779b1 % points;
      for (size_t k = t.loops.size(); k-- > 0;) {
        const int64_t extent = extents_[Tensor::at(t.loops[k])];
        values_[Tensor::at(t.loops[k])] = batch_.loop(k)[p] = rest % extent;
        rest /= extent;
      }
      t.from_loops(values_, extents_, binding);
      for (size_t d = 0; d < count; ++d) expected_[d * taken + p] = values_[d];
    }
    for (size_t d = 0; d < count; ++d) {
      const auto& row = batch_.of(forms_[d]);
      const int64_t* wanted = &expected_[d * taken];
      if (!std::equal(row.begin(), row.end(), wanted)) {
        const auto p = static_cast<size_t>(std::mismatch(row.begin(), row.end(), wanted).first - row.begin());
        fail("domain " + std::to_string(d) + " should be " + std::to_string(wanted[p]) + " at point " +
             std::to_string(p) + ": " + nest.algebra.to_string(forms_[d]));
      }
      uint64_t& hash = hashes_[base + d];
      for (size_t p = 0; p < taken; ++p) hash = mix(hash, static_cast<uint64_t>(wanted[p]));
    }
    if (with_elements) check_predicate(base);
    counts.points += static_cast<int64_t>(taken);
    counts.values += static_cast<int64_t>(taken * count);
  }

  void check_predicate(size_t base) {
    holds_.assign(marks_.size(), 1);
    for (const DomainCheck& check : checks_) {
      if (check.value != forms_[check.domain.index - base]) fail("a check is not of its domain's value");
      const int64_t extent = batch_.of(check.extent)[0];
      const auto& row = batch_.of(check.value);
      for (size_t p = 0; p < row.size(); ++p)
        if (row[p] >= extent || (check.lower && row[p] < 0)) holds_[p] = 0;
    }
    if (holds_ == marks_) return;
    const auto p =
        static_cast<size_t>(std::mismatch(holds_.begin(), holds_.end(), marks_.begin()).first - holds_.begin());
    fail("point " + std::to_string(p) + " is " + std::to_string(marks_[p]) + " elements, and its checks " +
         (holds_[p] != 0 ? "hold" : "do not hold"));
  }

  // How many elements each loop point is: all of them are put through the chain.
  void mark_elements(const Tensor& t, const Binding& binding, int64_t points) {
    marks_.assign(static_cast<size_t>(points), 0);
    int64_t elements = 1;
    for (int d : t.logical) elements *= extents_[Tensor::at(d)];
    values_.assign(static_cast<size_t>(t.count), 0);
    for (int64_t element = 0; element < elements; ++element) {
      int64_t rest = element;
      for (size_t i = t.logical.size(); i-- > 0;) {
        const int64_t extent = extents_[Tensor::at(t.logical[i])];
        values_[Tensor::at(t.logical[i])] = rest % extent;
        rest /= extent;
      }
      Tensor::forward(t.chain, values_, extents_, binding);
      int64_t point = 0;
      bool inside = true;
      for (int loop : t.loops) {
        const int64_t value = values_[Tensor::at(loop)], extent = extents_[Tensor::at(loop)];
        inside = inside && value >= 0 && value < extent;
        point = point * extent + value;
      }
      if (!inside)
        fail("element " + std::to_string(element) + " is no loop point");
      else
        ++marks_[static_cast<size_t>(point)];
    }
  }

  static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ (value + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 29);
  }

  // Every pair of a closed class that is of one tensor.
  void check_classes(const IdGraph& ids) {
    for (uint32_t a = 0; a < hashes_.size(); ++a)
      for (uint32_t b = a + 1; b < hashes_.size() && graph_.domains[b].tensor == graph_.domains[a].tensor; ++b)
        if (ids.representative[a] == ids.representative[b] && hashes_[a] != hashes_[b])
          fail("the " + std::string(text(ids.kind)) + " graph makes " + std::to_string(a) + " and " +
               std::to_string(b) + " one, and they differ");
  }

  // Whether two classes have the same values in every nest that both have a domain in.
  bool equal_in_all_nests(const IdGraph& ids, DomainId a, DomainId b) const {
    for (uint32_t x = 0; x < hashes_.size(); ++x) {
      if (ids.representative[x] != a) continue;
      for (uint32_t y = 0; y < hashes_.size(); ++y)
        if (ids.representative[y] == b && graph_.domains[x].tensor == graph_.domains[y].tensor &&
            hashes_[x] != hashes_[y])
          return false;
    }
    return true;
  }

  void count_equal(const IdGraph& exact, const IdGraph& almost) {
    const bool single = graph_.tensors.size() == 1;
    std::set<std::pair<DomainId, DomainId>> seen;
    for (uint32_t a = 0; a < hashes_.size(); ++a)
      for (uint32_t b = a + 1; b < hashes_.size() && graph_.domains[b].tensor == graph_.domains[a].tensor; ++b) {
        if (hashes_[a] != hashes_[b]) continue;
        const DomainId x = exact.representative[a], y = exact.representative[b];
        if (x == y || (!single && !seen.insert(std::minmax(x, y)).second)) continue;
        if (!single && !equal_in_all_nests(exact, x, y)) continue;
        ++counts.equal_pairs;
        const DomainId u = almost.representative[a], v = almost.representative[b];
        if (u == v)
          ++counts.mapped;
        else if (!single && !equal_in_all_nests(almost, u, v))
          ++counts.kept_apart;  // to make them one would join two that differ
      }
  }

  const Case* case_ = nullptr;
  const std::vector<Binding>* bindings_ = nullptr;
  int64_t max_points_ = 0;
  std::vector<bool> visited_;  // by tensor: at least one point
  Graph graph_ = Case::scalars();
  IdGraphBuilder builder_;
  std::vector<uint64_t> hashes_;  // by domain: of its values at all points
  std::vector<Form> forms_;
  std::vector<DomainCheck> checks_;
  Batch batch_;
  std::vector<int64_t> extents_, values_, expected_, symbols_;
  std::vector<int> marks_, holds_;
};

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

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

// Every chain of up to `steps` transforms to the loops, the empty one too.
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
  EXPECT_EQ(law.counts.violations, 0);
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

// Every pair of chains for two tensors that read one another: classes reach from one to the other.
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
  EXPECT_EQ(law.counts.violations, 0);
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
  EXPECT_EQ(law.counts.violations, 0);
  EXPECT_GE(law.counts.completeness(), 99.9);
}

// -- random cases

Counts run_random(const RandomOptions& options) {
  Law law;
  Generator generator(options, first_seed());
  for (int n = 0; n < options.cases * case_factor(); ++n)
    law.check(generator.next(), options.bindings, options.max_points);
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

// -- the cases that the issue and the design name

bool almost_exact(const Case& c, uint32_t a, uint32_t b) {
  Graph g = Case::scalars();
  c.build(g);
  Law law;
  law.check(c, std::vector<Binding>(1));
  EXPECT_EQ(law.counts.violations, 0);
  return id_graph(g, IdGraphKind::kAlmostExact).same(DomainId(a), DomainId(b));
}

// a{17} by 17 → b{1}, c{17}; b by 8 → f{1}, g{8}: f and b are 0 at every element, and b reaches 7 in the holes.
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
  // The second tensor has b and, from c by 17, u{1}: both are 0 there. The first has u and f, both 0, and b apart.
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
  // 5 by 2 and its outer output by 2: i/4. 5 by 3: i/3. Both have extent 2, in one tensor and in two.
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

// What a seeded defect breaks of the values and checks of a nest, small chains show.
TEST(IndexLaws, SeededDefectsAreFound) {
  if (!kDefectsCompiledIn) GTEST_SKIP();
  for (const Defect defect : {Defect::kAlmostExactEqualExtent, Defect::kPredicateDropped, Defect::kExtentTruncated,
                              Defect::kSplitSwapped, Defect::kSwizzleInverse}) {
    Law law;
    law.expected = true;
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
