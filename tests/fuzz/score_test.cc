// The score of seeded defects.
#include "fuzz/campaign/score.h"

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>

#include "ir/table/error.h"

namespace fusebox::fuzz {
namespace {

ScoreOptions calm() {
  ScoreOptions options;
  options.runner.runs = 1500;
  options.runner.cases.fusion.aliases = false;
  options.runner.cases.fusion.symbolic = false;
  options.runner.cases.fusion.max_ops = 10;
  options.runner.cases.special_one_in = 1000;
  options.seconds = 0;
  options.seeds = 2;
  return options;
}

TEST(Score, TheMedianOfEvenAndOddNumbers) {
  const double never = std::numeric_limits<double>::infinity();
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1}), 2.5);
  EXPECT_EQ(median({1, never, 2}), 2);
  EXPECT_TRUE(std::isinf(median({1, never, never})));
  EXPECT_TRUE(std::isinf(median({})));
}

TEST(Score, DefectsAreDetectedAndTheirCasesAreOfTheSeed) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "this build has no defects";
  const auto folder = std::filesystem::path(testing::TempDir()) / ("fusebox_score" + std::to_string(::getpid()));
  ScoreOptions options = calm();
  options.defects = {Defect::kPredicateDropped, Defect::kTextAttribute};
  options.out = folder.string();
  std::vector<std::string> told;
  options.done = [&](const ScoreRow& row) { told.emplace_back(text(row.defect)); };
  const std::vector<ScoreRow> rows = score(options);
  EXPECT_EQ(told, (std::vector<std::string>{"predicate-dropped", "text-attribute"}));
  ASSERT_EQ(rows.size(), 2u);
  for (const ScoreRow& row : rows) {
    ASSERT_EQ(row.tries.size(), 2u);
    EXPECT_EQ(row.detected(), 2u) << text(row.defect);
    for (const ScoreTry& t : row.tries) {
      EXPECT_GT(t.reached, 0u);
      EXPECT_LE(t.reached, t.cases);
      EXPECT_GT(t.seconds, 0);
      EXPECT_FALSE(text(t.finding.signature).empty());
    }
    EXPECT_TRUE(std::filesystem::exists(row.tries[0].file)) << row.tries[0].file;
  }
  EXPECT_TRUE(summary(rows).starts_with("detected 2 of 2 with every seed, 0 with some; median "));
  options.jobs = 2;
  options.out.clear();
  const std::vector<ScoreRow> again = score(options);
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(again[r].tries[i].cases, rows[r].tries[i].cases);
      EXPECT_EQ(again[r].tries[i].reached, rows[r].tries[i].reached);
      EXPECT_EQ(again[r].tries[i].finding.signature, rows[r].tries[i].finding.signature);
    }
  std::filesystem::remove_all(folder);
}

// An oracle that cannot see a defect reaches it but does not detect it. Other findings of that oracle show without the
// defect too and do not count.
TEST(Score, WhatIsThereWithoutTheDefectDoesNotCount) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "this build has no defects";
  ScoreOptions options = calm();
  options.defects = {Defect::kPredicateDropped};
  options.runner.oracles = parse_oracles("text");
  options.runner.runs = 120;
  options.seeds = 1;
  const std::vector<ScoreRow> rows = score(options);
  EXPECT_EQ(rows[0].detected(), 0u);
  EXPECT_EQ(rows[0].tries[0].cases, 120u);
  EXPECT_GT(rows[0].tries[0].reached, 0u);
  EXPECT_TRUE(std::isinf(rows[0].median_seconds()));
  EXPECT_EQ(summary(rows), "detected 0 of 1 with every seed, 0 with some");
}

}  // namespace
}  // namespace fusebox::fuzz
