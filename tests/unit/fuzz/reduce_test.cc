// The shrinker turns findings of seeded defects into small ones with the same signature, and nothing more can go.
#include "fuzz/reduce/reduce.h"

#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <unistd.h>

#include "fuzz/reduce/reduce_rules.h"
#include "fuzz/run/runner.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/schedule/apply_steps.h"
#include "replay/device/module_loader.h"

namespace fusebox::fuzz {
namespace {

Defects defects_of(std::string_view name) {
  Defects d;
  d.add(*parse_defect(name));
  return d;
}

// The first finding of a campaign with this defect.
std::optional<LoadedFinding> find_one(std::string_view defect, uint64_t seed) {
  RunnerOptions options{.seed = seed, .runs = 400, .oracles = parse_oracles("host-checks,aten"), .stop_after = 1};
  options.defects = defects_of(defect);
  options.mutate_one_in = 0;
  const Statistics s = run_cases(options);
  if (s.findings.empty()) return std::nullopt;
  LoadedFinding f;
  f.subject = s.findings[0].subject;
  f.subject.compiled.reset();
  f.defects = options.defects;
  f.signature = text(s.findings[0].finding.signature);
  return f;
}

LoadedFinding from_file(const std::string& path, std::string_view defect) {
  LoadedFinding f = load_finding(path);
  if (!defect.empty()) f.defects = defects_of(defect);
  return f;
}

LoadedFinding from_text(std::string_view text, std::string_view defect) {
  const std::string path = std::filesystem::temp_directory_path() / "fusebox_reduce_test.fir";
  FILE* file = std::fopen(path.c_str(), "w");
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  LoadedFinding f = from_file(path, defect);
  std::filesystem::remove(path);
  return f;
}

// A program with more ops, steps and elements than its failures need.
constexpr const char* kLarge = "tests/support/large_case.fir";

class ReduceDefect : public testing::TestWithParam<const char*> {};

TEST_P(ReduceDefect, IsSmallAndTheSameAndMinimal) {
  if (!kDefectsCompiledIn || !find_aten()) GTEST_SKIP() << "needs ATen and seeded defects";
  int found = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const auto f = find_one(GetParam(), seed);
    if (!f) continue;
    ++found;
    const ReduceOptions options{.seconds = 60};
    const Reduction r = reduce(*f, options);
    ASSERT_TRUE(r.shows) << f->signature << "\n" << print(f->subject.module);
    ASSERT_TRUE(r.finished);
    EXPECT_EQ(text(r.finding.signature), f->signature);
    EXPECT_LE(r.after, r.before);
    EXPECT_LE(r.after.ops, 6) << print(r.result.module);
    EXPECT_LE(r.after.steps, 8) << print(r.result.module);
    // A new judge knows nothing of the reduction.
    ReductionJudge judge(f->defects, f->signature, options);
    const auto again = judge.judge(r.result);
    ASSERT_TRUE(again);
    EXPECT_EQ(text(again->signature), f->signature);
    // Nothing more can go.
    judge.set(*again);
    judge.ask_for_soundness();
    for (const ReductionRow& row : reduction_rows())
      for (const Edit& edit : row.edits(r.result)) {
        const auto c = edited(r.result, std::span(&edit, 1));
        if (!c || size_of(*c) >= r.after) continue;
        EXPECT_FALSE(judge.shows(*c)) << row.text << "\n" << print(r.result.module) << "\n" << print(c->module);
      }
  }
  EXPECT_GT(found, 0) << "no campaign found the defect";
}

INSTANTIATE_TEST_SUITE_P(Defects, ReduceDefect,
                         testing::Values("almost-exact-equal-extent", "predicate-dropped", "predicate-off-by-one",
                                         "extent-truncated", "broadcast-mapped", "split-swapped",
                                         "promoted-wrong-domain", "swizzle-inverse"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Reduce, AProgramThatIsRightIsNoFinding) {
  const Reduction r = reduce(from_file(kLarge, ""), {});
  EXPECT_FALSE(r.shows);
  EXPECT_TRUE(r.finding.message.empty());
  EXPECT_EQ(r.accepted, 0u);
}

TEST(Reduce, WhatIsLeftIsWhatTheDefectNeeds) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "needs seeded defects";
  const LoadedFinding f = from_file(kLarge, "predicate-dropped");
  const Reduction r = reduce(f, {});
  ASSERT_TRUE(r.shows);
  EXPECT_EQ(r.after.ops, 1) << print(r.result.module);
  EXPECT_LE(r.after.steps, 3) << print(r.result.module);
  EXPECT_LE(r.after.elements, 8) << print(r.result.module);
  // The case alone determines the result.
  EXPECT_EQ(print(reduce(f, {}).result.module), print(r.result.module));
}

TEST(Reduce, AnotherFailureThanTheRecordedOneIsNotReduced) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "needs seeded defects";
  LoadedFinding f = from_file(kLarge, "predicate-dropped");
  f.signature = "aten differs lgamma";
  const Reduction r = reduce(f, {});
  EXPECT_FALSE(r.shows);
  EXPECT_FALSE(r.finding.message.empty());
}

bool has_wide(const Case& c, OpKind kind) {
  const Bindings sizes = sizes_of(c.fusion(), c.inputs());
  for (const Op& op : c.fusion().ops)
    if (op.kind == kind)
      if (const auto shape = evaluate_shape(c.fusion(), op.results[0], sizes); shape && shape->back() > 2) return true;
  return false;
}

TEST(Reduce, WhatEndsTheProcessIsReducedToo) {
  ReduceOptions options;
  options.at = [](const Case& c) {
    if (has_wide(c, OpKind::kNeg)) std::raise(SIGKILL);
  };
  const Reduction r = reduce(from_file(kLarge, ""), options);
  ASSERT_TRUE(r.shows);
  EXPECT_TRUE(r.is_deadly && r.finished);
  EXPECT_EQ(text(r.finding.signature), "host-checks crash SIGKILL");
  EXPECT_EQ(r.after.ops, 1) << print(r.result.module);
  EXPECT_EQ(r.after.steps, 0) << print(r.result.module);
  EXPECT_EQ(r.after.elements, 6) << print(r.result.module);
  // Write it as a bundle, without a run.
  const std::string path = std::filesystem::temp_directory_path() / "fusebox_reduce_test.fuse";
  write_reduced(r, {}, path);
  const LoadedFinding again = load_finding(path);
  std::filesystem::remove(path);
  EXPECT_EQ(again.signature, text(r.finding.signature));
  EXPECT_EQ(print(again.subject.module), print(r.result.module));
}

TEST(Reduce, WhatTakesTooLongIsReducedToo) {
  ReduceOptions options;
  options.case_seconds = 0.3;
  options.at = [](const Case& c) {
    while (has_wide(c, OpKind::kSum) || has_wide(c, OpKind::kExp)) ::usleep(1000);
  };
  const Reduction r = reduce(from_file(kLarge, ""), options);
  ASSERT_TRUE(r.shows);
  EXPECT_EQ(text(r.finding.signature), "host-checks timeout");
  EXPECT_EQ(r.after.ops, 1) << print(r.result.module);
}

TEST(Reduce, TheEditsOfEachRowGiveCasesThatVerify) {
  std::map<std::string_view, int> fitting;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const DrawnCase drawn = generate_case(seed, {});
    const Case& c = drawn.value;
    for (const ReductionRow& row : reduction_rows())
      for (const Edit& edit : row.edits(c))
        if (const auto next = edited(c, std::span(&edit, 1))) {
          ++fitting[row.text];
          // The file holds everything: parsing it gives the same case.
          ASSERT_EQ(print(parse_module(print(next->module))), print(next->module)) << row.text << " seed " << seed;
        }
  }
  for (const ReductionRow& row : reduction_rows()) EXPECT_GT(fitting[row.text], 0) << row.text;
}

// The tensors that a case's rewrites leave, by name.
std::set<std::string> rewritten_tensors(const Case& c) {
  Graph g = c.fusion();
  apply_steps(g, std::span(*c.steps()).first(leading_rewrites(*c.steps())), {});
  std::set<std::string> names;
  for (OpId op : g[Graph::body()].ops)
    for (ValueId v : g[op].results)
      if (g.is_tensor(v)) names.insert(g[v].name);
  return names;
}

// An edit keeps everything that it does not mean to change: no step, segment or alias is lost. A fusion that is made again may
// have two equal scalars where it had one, and then a rewrite finds fewer extents equal: other ops are left to assign.
TEST(Reduce, AnEditThatChangesNothingLeavesTheCase) {
  const Edit nothing = [](Case&) { return true; };
  const Edit made_again = [](Case& c) { return change_fusion(c, {}); };
  int with_segments = 0, with_aliases = 0, rewritten_otherwise = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Case c = generate_case(seed, {}).value;
    if (!c.compiled || !c.steps()) continue;
    with_segments += c.compiled->segmentation.segments.size() > 1 && c.steps();
    for (const OutputRef& o : outputs(c.fusion())) with_aliases += static_cast<bool>(o.alias);
    for (const Edit& edit : {nothing, made_again}) {
      const auto same = edited(c, std::span(&edit, 1));
      ASSERT_TRUE(same) << seed << "\n" << print(c.module);
      const CaseSize before = size_of(c), after = size_of(*same);
      EXPECT_TRUE(after.ops == before.ops && after.signature == before.signature && after.axes == before.axes)
          << seed << "\n"
          << print(same->module);
      // Scalars that nothing reads are dropped.
      EXPECT_LE(after.scalars, before.scalars) << seed << "\n" << print(same->module);
      if (rewritten_tensors(*same) != rewritten_tensors(c))
        ++rewritten_otherwise;
      else
        EXPECT_EQ(*same->steps(), *c.steps()) << seed << "\n" << print(same->module);
      EXPECT_EQ(same->inputs().specs, c.inputs().specs) << seed << "\n" << print(same->module);
    }
  }
  EXPECT_GT(with_segments, 10);
  EXPECT_GT(with_aliases, 10);
  EXPECT_LE(rewritten_otherwise, 2);
}

constexpr std::string_view kSegments = R"(fusion @f {
  %x = input f32[5, 4] contiguous
  %a = exp %x : f32[5, 4]
  %b = sum %a over [1] : f32[5]
  %c = neg %x : f32[5, 4]
  %d = broadcast %b mask [0, 1] : f32[5, 1]
  %e = add %c, %d : f32[5, 4]
  output %e alias %x
  output %b
}
steps @f {
  assign of [%a, %b] name "first" by kernel
  assign of [%c] name "second" by aten
  assign of [%d, %e] name "third" by kernel
  split %b.i0 by 2 -> o, t
  split %e.i0 by 3 -> p, q
  inline_most of [%a]
}
inputs @f host {
  %x = f32[5, 4] normal seed 3
}
)";

int compiles(const std::vector<Edit>& edits, const Case& c) {
  int fitting = 0;
  for (const Edit& edit : edits)
    if (const auto next = edited(c, std::span(&edit, 1))) {
      ++fitting;
      OracleRun run(*next, {});
      EXPECT_FALSE(run.refusal()) << run.refusal()->what() << "\n" << print(next->module);
    }
  return fitting;
}

TEST(Reduce, SegmentsStayWholeBesideEachEdit) {
  const Case c = from_text(kSegments, "").subject;
  EXPECT_EQ(compiles(delete_steps(c), c), 6);
  EXPECT_EQ(compiles(fold_steps(c), c), 12);  // six pairs of segments, three names to fall back to for each split
  EXPECT_EQ(compiles(cut_ops(c), c), 5);
  EXPECT_EQ(compiles(delete_outputs(c), c), 2);
  EXPECT_EQ(compiles(delete_aliases(c), c), 1);
  // Ops that lose their segment move to another, and the other segments keep their steps.
  const Edit first = delete_steps(c)[0];
  const auto two = edited(c, std::span(&first, 1));
  ASSERT_TRUE(two);
  EXPECT_EQ(two->steps()->size(), 5u) << print(two->module);
}

TEST(Reduce, ASegmentedFindingBecomesSmall) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "needs seeded defects";
  const Reduction r = reduce(from_text(kSegments, "split-swapped"), {});
  ASSERT_TRUE(r.shows && r.finished);
  EXPECT_EQ(r.after.ops, 1) << print(r.result.module);
  EXPECT_LE(r.after.steps, 1) << print(r.result.module);
}

TEST(Reduce, AFileThatIsNoFindingIsRefused) {
  EXPECT_THROW(load_finding("/nowhere/at/all.fuse"), Error);
  EXPECT_THROW(from_text("fusion @f {\n  %x = input f32[3]\n  output %x\n}\n", ""), Error);
  EXPECT_THROW(from_text("no program", ""), Error);
}

}  // namespace
}  // namespace fusebox::fuzz
