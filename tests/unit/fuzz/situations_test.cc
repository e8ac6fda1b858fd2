// Cases that aim at a combination of several ops or steps produce it.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "fuzz/coverage/coverage_classes.h"
#include "fuzz/generate/case.h"
#include "fuzz/generate/focus_situations.h"

namespace fusebox::fuzz {
namespace {

TEST(Situations, ScalarsOfEachDtypeStandBesideTensorsOfEach) {
  std::set<std::pair<Dtype, Dtype>> pairs;
  for (const ScalarFocus& s : scalar_list()) pairs.insert({s.tensor, s.scalar});
  for (const DtypeRow& tensor : dtype_rows())
    for (const DtypeRow& scalar : dtype_rows())
      if (tensor.dtype != Dtype::kIndex && !is_storage_only(tensor.dtype) && !is_storage_only(scalar.dtype)) {
        EXPECT_TRUE(pairs.contains({tensor.dtype, scalar.dtype})) << tensor.text << " " << scalar.text;
      }
}

TEST(Situations, CasesWalkTheListOfScalars) {
  std::set<std::pair<Dtype, Dtype>> met, listed;
  for (const ScalarFocus& s : scalar_list()) listed.insert({s.tensor, s.scalar});
  for (uint64_t seed = 0; seed < 8 * 4 * scalar_list().size() / 8 + 64; ++seed)
    for (const ScalarFocus& s : focus_of(seed).scalars) met.insert({s.tensor, s.scalar});
  EXPECT_EQ(met, listed);
}

// The number of cases that aim at a class, and of those that have it.
struct Count {
  int aimed = 0, met = 0;
};

TEST(Situations, AreMet) {
  constexpr std::string_view kHigher = "a scalar of a higher class beside a tensor", kEqual = "an op of equal scalars",
                             kNear = "constants that differ in one part", kSize = "a size from another dtype",
                             kPower = "an integer power of -1 by a negative odd number",
                             kShared = "shared memory made in an unrolled loop",
                             kLayout = "a layout read two segments later",
                             kBlock = "a reduction over some dimensions of a block";
  std::map<std::string_view, Count> counts;
  for (uint64_t seed = 2; seed < 8 * 1200; seed += 8) {
    const Focus focus = focus_of(seed);
    ASSERT_FALSE(focus.empty()) << seed;
    const Case c = generate_case(seed, {}).value;
    const auto classes = situation_classes(c);
    const auto count = [&](std::string_view name, bool is_aimed) {
      const auto at = std::find(std::begin(kSituationClasses), std::end(kSituationClasses), name);
      const auto row = static_cast<size_t>(at - std::begin(kSituationClasses));
      counts[name].aimed += is_aimed;
      counts[name].met += is_aimed && std::find(classes.begin(), classes.end(), row) != classes.end();
    };
    count(kHigher, !focus.scalars.empty());
    count(kEqual, !focus.equal_scalars.empty());
    count(kNear, focus.near_constants);
    count(kSize, focus.computed_sizes);
    count(kPower, std::any_of(focus.integer_pairs.begin(), focus.integer_pairs.end(),
                              [](const OpFocus& o) { return o.kind == OpKind::kPow; }));
    count(kShared, focus.shared_in && *focus.shared_in != ParallelType::kSerial);
    count(kLayout, focus.segments > 0);
    count(kBlock, focus.block && std::count(focus.block->is_reduced.begin(), focus.block->is_reduced.end(), true) < 3);
  }
  for (std::string_view name : {kHigher, kEqual, kSize, kBlock})
    EXPECT_GT(counts[name].met * 2, counts[name].aimed) << name;
  for (std::string_view name : {kNear, kShared, kLayout}) EXPECT_GT(counts[name].met * 6, counts[name].aimed) << name;
  EXPECT_GT(counts[kPower].met, 0);
}

}  // namespace
}  // namespace fusebox::fuzz
