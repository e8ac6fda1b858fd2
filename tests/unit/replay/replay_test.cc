// Replays: identical stages, stages that differ and where, and stages that cannot be compared.
#include "replay/record/replay.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <memory>

#include "ir/text/parse.h"
#include "replay/device/module_loader.h"
#include "replay/record/record.h"
#include "replay/record/text_diff.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;

// Two segments, so that a tensor crosses; the second output overwrites an input.
constexpr std::string_view kProgram = R"(fusion @program {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %c = input f32[%m] contiguous
  %s = sum %x over [1]
  %t = add %s, %c
  output %s
  output %t alias %c
}
inputs @program host {
  %x = f32[3, 37] normal seed 1
  %c = f32[3] normal seed 2
}
)";

Bundle recorded(const RunOptions& options = {}) {
  const Module m = parse_module(kProgram);
  const InputSpecs* defaults = find_input_specs(m, "program", "host");
  const auto arguments = make_arguments(main_graph(m), defaults, {});
  const Bundle b = make_bundle(run_program(m, arguments, options), m,
                               recorded_inputs(main_graph(m), defaults, {}, arguments), arguments);
  return decode_bundle(bytes_of(encode(b)));
}

const StageVerdict& stage(const Replay& r, std::string_view name) {
  for (const StageVerdict& v : r.stages)
    if (v.stage == name) return v;
  throw Error(ErrorCode::kInternal, "no such stage: " + std::string(name));
}

class From : public ::testing::TestWithParam<ReplayFrom> {};

TEST_P(From, EveryStageIsIdenticalWithAnyNumberOfThreads) {
  const Bundle b = recorded();
  for (int threads : {1, 2, 4}) {
    const Replay r = replay(b, {.executor = {}, .from = GetParam(), .trust_artifacts = false, .threads = threads});
    EXPECT_TRUE(r.identical());
    EXPECT_EQ(r.stages.size(), b.digests.size());
    for (const StageVerdict& v : r.stages) EXPECT_EQ(v.verdict, Verdict::kIdentical) << v.stage << ": " << v.why;
    EXPECT_FALSE(r.run.crossings.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(, From, ::testing::Values(ReplayFrom::kFusion, ReplayFrom::kScheduled, ReplayFrom::kKernel));

TEST(Replay, OfASchedule) {
  RunOptions options;
  options.steps = parse_steps(
      "split %t.i0 by 2 -> o, t\ntransform_like %t to []\nparallelize %t.o on grid.x\nparallelize %t.t on "
      "block.x\nparallelize_like %t to []\n");
  const Bundle b = recorded(options);
  ASSERT_FALSE(b.ranks[0].failure) << b.ranks[0].failure->message;
  EXPECT_TRUE(replay(b).identical());
}

// Stages that verify each, but do not fit together.
TEST(Replay, RefusesSegmentsThatDoNotFitTheirPrograms) {
  const auto outcome = [](const std::function<void(Bundle&)>& change) {
    Bundle b = recorded();
    change(b);
    const Replay r = replay(decode_bundle(bytes_of(encode(b))),
                            {.executor = {}, .from = ReplayFrom::kScheduled, .trust_artifacts = false, .threads = 1});
    return r.run.failure ? code_text(r.run.failure->code) + " " + r.run.failure->place : "outputs";
  };
  const auto segments = [](Bundle& b) -> std::vector<Segment>& {
    return b.stages[static_cast<size_t>(Stage::kSegments)].module.segmentations[0].segments;
  };
  EXPECT_EQ(outcome([](Bundle&) {}), "outputs");
  EXPECT_EQ(outcome([&](Bundle& b) { segments(b)[0].outputs.clear(); }), "E0210 %s");
  EXPECT_EQ(outcome([&](Bundle& b) {
              auto& outs = segments(b)[0].outputs;
              outs.insert(outs.end(), 3, outs[0]);
            }),
            "E0210 @" + segments(*std::make_unique<Bundle>(recorded()))[0].name);
  EXPECT_EQ(outcome([](Bundle& b) {
              Graph& g = b.stages[static_cast<size_t>(Stage::kScheduled)].module.graphs[0];
              g[*find_value(g, "m")].name = "other";
            }),
            "E0102 %other");
  // The segmentation names a value that its own program has, and the concretized one has not.
  EXPECT_EQ(outcome([&](Bundle& b) {
              Graph& g = b.stages[static_cast<size_t>(Stage::kSegments)].module.graphs[0];
              g[*find_value(g, "s")].name = "other";
              for (Segment& segment : segments(b)) {
                std::ranges::replace(segment.ops, "s", "other");
                for (auto* list : {&segment.inputs, &segment.outputs})
                  for (Crossing& c : *list)
                    if (c.value == "s") c.value = "other";
              }
            }),
            "E0102 %other");
}

// A bundle with another program at one stage: the replay names the stage and the difference.
TEST(Replay, NamesTheFirstStageThatDiffers) {
  Bundle b = recorded();
  for (StageDigest& d : b.digests)
    if (d.name == "source" || d.name == "outputs") d.digest.low ^= 1;
  const size_t at = b.artifacts[0].cuda.find("fusebox_kernel");
  b.artifacts[0].cuda.replace(at, 7, "another");
  const Replay r = replay(b);
  ASSERT_FALSE(r.identical());
  EXPECT_EQ(r.first_difference()->stage, "source");
  EXPECT_NE(r.first_difference()->difference.find("another_kernel"), std::string::npos);
  EXPECT_EQ(stage(r, "kernel").verdict, Verdict::kIdentical);
  EXPECT_EQ(stage(r, "outputs").verdict, Verdict::kDifferent);
}

TEST(Replay, ShowsOtherOutputs) {
  Bundle b = recorded();
  b.digests.back().digest.low ^= 1;
  b.ranks[0].outputs[1].digest.low ^= 1;
  const Replay r = replay(b);
  ASSERT_FALSE(r.identical());
  EXPECT_EQ(r.first_difference()->stage, "outputs");
  EXPECT_NE(r.first_difference()->difference.find("- %t f32[3] strides [1] "), std::string::npos);
}

// Outputs that another version of the numerics recorded need not have the same bits, if they are within bounds.
TEST(Replay, OtherNumericsCompareWithinBounds) {
  Bundle b = recorded();
  b.digests.back().digest.low ^= 1;
  EXPECT_EQ(stage(replay(b), "outputs").verdict, Verdict::kDifferent);
  for (KeyValue& o : b.options)
    if (o.key == "numerics") o.value = "0";
  if (!find_aten()) GTEST_SKIP() << "ATen computes the bounds";
  EXPECT_EQ(stage(replay(b), "outputs").verdict, Verdict::kNotComparable);
  std::erase_if(b.options, [](const KeyValue& o) { return o.key == "numerics"; });
  const Replay r = replay(b);
  EXPECT_TRUE(r.identical());
  EXPECT_EQ(stage(r, "outputs").why,
            "other bits, by another version of the numerics; every output is within its bound");
}

TEST(Replay, AFailureMustHappenAgain) {
  RunOptions options;
  options.steps = parse_steps("split %nothing.i0 by 4 -> o, t\n");
  Bundle b = recorded(options);
  ASSERT_TRUE(b.ranks[0].failure);
  EXPECT_TRUE(replay(b).identical());
  EXPECT_EQ(stage(replay(b), "outcome").verdict, Verdict::kIdentical);
  b.ranks[0].failure->place = "%elsewhere";
  EXPECT_EQ(replay(b).first_difference()->stage, "outcome");
  b = recorded();
  b.ranks[0].failure = Failure{ErrorCode::kRace, "two threads", "%x"};
  EXPECT_EQ(replay(b).first_difference()->stage, "outcome");
}

TEST(Replay, AnotherCompilerIsNotComparable) {
  Bundle b = recorded();
  b.digests.insert(b.digests.end() - 1, {"binary", Digest{1, 2}});
  b.ranks[0].executor = "cuda";
  const Replay r = replay(b, {.executor = Executor::kHost, .from = {}, .trust_artifacts = false, .threads = 1});
  EXPECT_TRUE(r.identical());
  EXPECT_EQ(stage(r, "binary").verdict, Verdict::kNotComparable);
  EXPECT_EQ(stage(r, "outputs").verdict, Verdict::kNotComparable);
  EXPECT_EQ(stage(r, "outputs").why, "recorded on cuda, run on host");
  EXPECT_EQ(stage(r, "source").verdict, Verdict::kIdentical);
}

// Everything that a digest is of stands in the bundle too. Where a replay has the digest, so must the bundle.
TEST(Replay, ADamagedBundleIsAnError) {
  const auto damaged = [](const std::function<void(Bundle&)>& damage) {
    Bundle b = recorded();
    damage(b);
    expect_error(ErrorCode::kDamagedBundle, "digests", [&] { (void)replay(b); });
  };
  damaged([](Bundle& b) {
    for (StageDigest& d : b.digests)
      if (d.name == "host") d.name = "`ost";
  });
  const auto graphs = [](Bundle& b, Stage stage) -> std::vector<Graph>& {
    return b.stages[static_cast<size_t>(stage)].module.graphs;
  };
  for (const Stage stage : {Stage::kScheduled, Stage::kKernel})
    damaged([&](Bundle& b) { std::swap(graphs(b, stage)[0], graphs(b, stage)[1]); });
  damaged([&](Bundle& b) { std::swap(graphs(b, Stage::kHost)[1], graphs(b, Stage::kHost)[2]); });
  damaged([&](Bundle& b) {
    b.stages[static_cast<size_t>(Stage::kSegments)].module.segmentations[0].segments[0].steps.clear();
  });
  damaged([](Bundle& b) { b.artifacts[0].cuda += " "; });
  damaged([](Bundle& b) { b.ranks[0].outputs[0].digest.low ^= 1; });
}

TEST(Replay, RefusesUntrustedCodeAndMissingStages) {
  Bundle b = recorded();
  const auto from = [&](ReplayFrom start, bool trust) {
    (void)replay(b, {.executor = {}, .from = start, .trust_artifacts = trust, .threads = 1});
  };
  expect_error(ErrorCode::kUntrusted, "artifacts", [&] { from(ReplayFrom::kSource, false); });
  expect_error(ErrorCode::kUsage, "--from source", [&] { from(ReplayFrom::kSource, true); });
  std::erase_if(b.stages, [](const StageRecord& s) { return s.stage != Stage::kFusion; });
  expect_error(ErrorCode::kInvalidField, "stages", [&] { from(ReplayFrom::kKernel, false); });
  b.ranks[0].executor = "abacus";
  expect_error(ErrorCode::kInvalidField, "ranks[0].executor", [&] { from(ReplayFrom::kFusion, false); });
}

// Stages that do not belong together are refused before anything runs.
TEST(Replay, RefusesStagesOfDifferentPrograms) {
  Bundle b = recorded();
  for (StageRecord& s : b.stages)
    if (s.stage == Stage::kHost)
      s.module = parse_module("host @h {\n  %n = size\n  %x = input f32[%n] global\n  output %x\n}\n");
  expect_error(ErrorCode::kInvalidField, "stages", [&] {
    (void)replay(b, {.executor = {}, .from = ReplayFrom::kKernel, .trust_artifacts = false, .threads = 1});
  });
}

TEST(TextDiff, ShowsWhatChangedWithItsSurroundings) {
  EXPECT_EQ(text_diff("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(text_diff("a\nb\nc\n", "a\nx\nc\n"), "  a\n- b\n+ x\n  c\n");
  EXPECT_EQ(text_diff("", "a\n"), "+ a\n");
  EXPECT_EQ(text_diff("a\n", ""), "- a\n");
  EXPECT_EQ(text_diff("1\n2\n3\n4\n5\n", "1\n2\n3\n4\n6\n", 1), "  …\n  4\n- 5\n+ 6\n");
}

}  // namespace
}  // namespace fusebox
