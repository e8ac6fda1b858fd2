// The cheapest cut is the one that is found when every stretch is asked for, and far fewer are asked for.
#include "passes/automatic/cheapest_cut.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace fusebox {
namespace {

using Costs = std::vector<std::vector<double>>;   // by end and begin
using Possible = std::vector<std::vector<bool>>;  // by end and begin
constexpr double kNever = std::numeric_limits<double>::infinity();

// Asks for every stretch, the shorter ones first, until too many with one end are refused in a row.
std::vector<Stretch> by_asking_for_all(const Costs& costs, const Possible& possible) {
  const size_t size = costs.size() - 1;
  std::vector<double> least(size + 1, kNever);
  std::vector<size_t> from(size + 1);
  least[0] = 0;
  for (size_t end = 1; end <= size; ++end) {
    size_t refused = 0;  // in a row
    for (size_t begin = end; begin-- > 0 && refused < CheapestCut::kMostRefused;) {
      refused = possible[end][begin] ? 0 : refused + 1;
      if (!possible[end][begin] || least[begin] + costs[end][begin] >= least[end]) continue;
      least[end] = least[begin] + costs[end][begin];
      from[end] = begin;
    }
  }
  std::vector<Stretch> stretches;
  for (size_t end = size; end > 0; end = from[end]) stretches.push_back({from[end], end});
  std::ranges::reverse(stretches);
  return stretches;
}

// A cut in which long stretches are often refused. Costs are small whole numbers, so many cuts cost the same.
struct RandomCut {
  explicit RandomCut(uint64_t seed) : random(seed) {
    const size_t size = 1 + draw(60);
    const size_t longest = 1 + draw(size), launch = draw(12);
    const uint64_t refused = draw(100);  // percent of the others
    costs.resize(size + 1);
    possible.resize(size + 1);
    for (size_t end = 1; end <= size; ++end)
      for (size_t begin = 0; begin < end; ++begin) {
        costs[end].push_back(static_cast<double>(launch + draw(6)));
        possible[end].push_back(end - begin == 1 || (end - begin <= longest && draw(100) >= refused));
      }
  }
  size_t draw(uint64_t below) { return static_cast<size_t>(random() % below); }

  std::mt19937_64 random;
  Costs costs;
  Possible possible;
};

TEST(CheapestCut, IsThatOfAskingForAll) {
  size_t asked = 0, all = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    RandomCut r(seed);
    CheapestCut cut(r.costs, [&](Stretch s) {
      ++asked;
      return r.possible[s.end][s.begin];
    });
    const size_t size = r.costs.size() - 1;
    all += size * (size + 1) / 2;
    // A stretch that is refused later is as if it had never been possible.
    for (int round = 0; round < 8; ++round) {
      const auto found = cut.find();
      ASSERT_EQ(found, by_asking_for_all(r.costs, r.possible));
      const auto longest = std::ranges::max_element(found, {}, &Stretch::size);
      if (longest->size() == 1) break;
      r.possible[longest->end][longest->begin] = false;
      cut.refuse(*longest);
    }
  }
  EXPECT_LT(asked, all);
}

// A stretch that becomes more expensive is as if it had always cost so much.
TEST(CheapestCut, KnowsOfRaisedCosts) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    RandomCut r(seed);
    CheapestCut cut(r.costs, [&](Stretch s) { return r.possible[s.end][s.begin]; });
    for (int round = 0; round < 8; ++round) {
      const auto found = cut.find();
      ASSERT_EQ(found, by_asking_for_all(r.costs, r.possible));
      const Stretch longest = *std::ranges::max_element(found, {}, &Stretch::size);
      const double more = static_cast<double>(r.draw(4));
      r.costs[longest.end][longest.begin] += more;
      cut.raise(longest, more);
    }
  }
}

// Where everything is possible, nothing but the cheapest cut is asked for.
TEST(CheapestCut, AsksForItsStretchesAlone) {
  constexpr size_t kSize = 96;
  Costs costs(kSize + 1);
  for (size_t end = 1; end <= kSize; ++end)
    for (size_t begin = 0; begin < end; ++begin) costs[end].push_back(begin == 0 || begin == 48 ? 1 : 100);
  size_t asked = 0;
  CheapestCut cut(costs, [&](Stretch s) {
    ++asked;
    return s.size() <= 48;
  });
  EXPECT_EQ(cut.find(), (std::vector<Stretch>{{0, 48}, {48, 96}}));
  EXPECT_LE(asked, 48u);
}

}  // namespace
}  // namespace fusebox
