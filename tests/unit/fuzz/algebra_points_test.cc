// The laws of the index algebra at points: an algebra without defects keeps them, and a wrong division does not.
#include "fuzz/oracle/algebra_points.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace fusebox::fuzz {
namespace {

std::set<std::string> broken(const Defects& defects, uint64_t seeds) {
  const Case c = generate_case(uint64_t{1}, {}).value;
  std::set<std::string> laws;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    OracleRun run(c, {.defects = defects});
    RandomSource random(seed);
    judge_algebra_at_points(run, random);
    for (const Finding& f : run.findings) laws.insert(f.signature.check);
    if (!laws.empty() && defects.empty()) ADD_FAILURE() << seed << ": " << run.findings.front().message;
  }
  return laws;
}

TEST(AlgebraPoints, HoldWithoutDefects) { EXPECT_TRUE(broken({}, 400).empty()); }

TEST(AlgebraPoints, WrongDivisionsAreNoticed) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "the seeded defects are not there";
  for (Defect d : {Defect::kAlgebraModulusDropped, Defect::kAlgebraDivideDistributes}) {
    Defects defects;
    defects.add(d);
    EXPECT_TRUE(broken(defects, 400).contains("value")) << static_cast<int>(d);
  }
}

}  // namespace
}  // namespace fusebox::fuzz
