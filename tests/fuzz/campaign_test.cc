// A campaign of a few seconds: it is repeatable, uses every oracle and finds seeded defects.
#include <gtest/gtest.h>
#include <set>

#include "fuzz/run/runner.h"
#include "ir/text/print.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

// Pointwise ops, reductions and moves, on values for which results are close to the reference's.
RunnerOptions calm() {
  RunnerOptions options;
  options.runs = 800;
  options.cases.fusion.aliases = false;
  options.cases.fusion.symbolic = false;
  options.cases.fusion.max_ops = 12;
  options.cases.special_one_in = 1000;
  return options;
}

TEST(Campaign, JudgesByEveryOracleAndIsMostlyValid) {
  RunnerOptions options = calm();
  options.runs = 2400;  // of fewer cases the rate of valid ones hangs on the seed
  const Statistics s = run_cases(options);
  EXPECT_EQ(s.cases, 2400u);
  EXPECT_GT(s.valid_rate(), 0.85);
  for (size_t i = 0; i < s.judged.size(); ++i)
    // An oracle that is due once in more cases than these judges none.
    if (oracle_rows()[i].text != "gpu" && oracle_rows()[i].every <= s.cases) {
      EXPECT_GT(s.judged[i], 0u) << oracle_rows()[i].text;
    }
  EXPECT_GT(s.mutated_valid, 100u);
  std::printf("  %s\n", progress_line(s).c_str());
  const std::set<std::string> clean = {"text", "relower", "rewrites", "invalid", "generate"};
  for (const KeptFinding& f : s.findings) {
    std::printf("  finding %s, seed %llu\n", text(f.finding.signature).c_str(),
                static_cast<unsigned long long>(f.subject.seed));
    EXPECT_FALSE(clean.contains(f.finding.signature.stage)) << f.finding.message << "\n" << print(f.subject.module);
  }
}

TEST(Campaign, TheSameSeedGivesTheSameCases) {
  RunnerOptions options = calm();
  options.runs = 60;
  const Statistics a = run_cases(options), b = run_cases(options);
  EXPECT_EQ(a.valid, b.valid);
  EXPECT_EQ(a.ops, b.ops);
  EXPECT_EQ(a.compared, b.compared);
  EXPECT_EQ(a.refusals, b.refusals);
}

TEST(Campaign, FindsSeededDefects) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "this build has no defects";
  for (const Defect d : {Defect::kPredicateDropped, Defect::kExtentTruncated, Defect::kSplitSwapped}) {
    RunnerOptions options = calm();
    options.runs = 1500;
    options.defects.add(d);
    options.stop_after = 1;
    options.oracles = parse_oracles("host-checks,aten,schedules");
    const Statistics s = run_cases(options);
    EXPECT_FALSE(s.findings.empty()) << text(d);
  }
}

// Each oracle about single fields detects a wrong field.
TEST(Campaign, FindsSeededDefectsOfFields) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "this build has no defects";
  const std::pair<Defect, const char*> kSeen[] = {
      {Defect::kTextAttribute, "text"},         {Defect::kEncodeContiguity, "bytes"},
      {Defect::kDigestDtype, "digests"},        {Defect::kDecodeEnum, "damaged-bytes"},
      {Defect::kPromotionDropped, "dtypes"},    {Defect::kReorderInverse, "step-effects"},
      {Defect::kSymbolsByHint, "other-sizes"},  {Defect::kDigestSplitSide, "digests"},
      {Defect::kDigestStepNumber, "fields"},    {Defect::kTextInputOffset, "fields"},
      {Defect::kEncodeCrossingOrder, "fields"}, {Defect::kEncodeInline, "fields"},
  };
  for (const auto& [defect, oracle] : kSeen) {
    RunnerOptions options = calm();
    options.runs = 600;
    options.oracles = parse_oracles(oracle);
    EXPECT_TRUE(run_cases(options).findings.empty()) << oracle;
    options.defects.add(defect);
    options.stop_after = 1;
    options.runs = 2400;
    EXPECT_FALSE(run_cases(options).findings.empty()) << text(defect);
  }
}

// A lineage explains its case: without mutations it is the case of its seed, at any place of its block.
TEST(Campaign, CasesThatWereNotMutatedAreThoseOfTheirSeeds) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "this build has no defects";
  RunnerOptions options = calm();
  options.oracles = parse_oracles("text");
  options.defects.add(Defect::kTextAttribute);
  size_t compared = 0;
  uint64_t last = 0;
  BlockHooks hooks;
  hooks.found = [&](const Case& c, uint64_t number, const Finding&) {
    if (!c.lineage.empty()) return;
    ++compared;
    last = number;
    CaseOptions drawn = options.cases;
    drawn.steps.defects = options.defects;
    EXPECT_EQ(print(c.module), print(generate_case(c.seed, drawn).value.module)) << number;
  };
  run_block(options, {}, hooks);
  EXPECT_GT(compared, 10u);
  EXPECT_GT(last, 100u);
}

TEST(Campaign, AFindingIsABundleThatDecodes) {
  const DrawnCase drawn = generate_case(11, {});
  ASSERT_FALSE(drawn.refusal);
  const Finding finding{{"aten", "differs", "add"}, "a message"};
  const Bundle b = finding_bundle(drawn.value, finding, {});
  const std::string bytes = encode(b);
  const Bundle back = decode_bundle(bytes_of(bytes));
  EXPECT_EQ(back, b);
  ASSERT_TRUE(find_value(back.options, "finding"));
  EXPECT_EQ(*find_value(back.options, "finding"), "aten differs add");
  EXPECT_EQ(find_value(back.options, "lineage")->substr(0, 7), "seed 11");
}

TEST(Campaign, OraclesAreSelectedByName) {
  EXPECT_EQ(parse_oracles("aten,text").size(), 2u);
  EXPECT_THROW(parse_oracles("aten,astrology"), Error);
  std::set<std::string_view> names;
  for (const OracleRow& row : oracle_rows()) {
    EXPECT_FALSE(row.summary.empty());
    EXPECT_TRUE(names.insert(row.text).second) << row.text << " has two rows";
  }
}

}  // namespace
}  // namespace fusebox::fuzz
