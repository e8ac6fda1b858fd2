// The search among the neighbours of heuristics, with measures that need no GPU.
#include "passes/pipeline/tune.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "ir/canonical/canonical.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/schedule/neighbours.h"
#include "tests/support/program_text.h"

namespace fusebox {
namespace {

struct Program {
  Graph fusion = parse_module(testing::program_text("softmax")).graphs[0];
  CompileOptions options;
  Bindings bindings;

  Program() {
    options.inputs = {BoundInput{.shape = {4096, 2048}}};
    options.device = default_device();
    bindings = bind_sizes(fusion, options.inputs);
  }
};

const Heuristics& heuristics_of(const Compiled& c) { return c.automatic->decisions.at(0).heuristics; }

double distance_to_two_warps(const Compiled& c) {
  return 1 + std::abs(std::log2(static_cast<double>(heuristics_of(c).number("warps"))) - 1);
}

TEST(Tune, FindsTheBestByTheMeasure) {
  const Program p;
  const Tuned t = tune(p.fusion, p.bindings, p.options, distance_to_two_warps);
  ASSERT_EQ(t.segments.size(), 1u);
  EXPECT_NE(t.segments[0].chosen.number("warps"), 2);
  EXPECT_EQ(t.segments[0].best.number("warps"), 2);
  EXPECT_EQ(t.segments[0].after, 1);
  EXPECT_GT(t.segments[0].before, t.segments[0].after);
  EXPECT_EQ(heuristics_of(t.best), t.segments[0].best);
}

TEST(Tune, StepsRepeatTheBestWithoutASearch) {
  const Program p;
  const Tuned t = tune(p.fusion, p.bindings, p.options, distance_to_two_warps);
  CompileOptions repeated = p.options;
  repeated.device.reset();
  repeated.steps = t.best.automatic->steps;
  const Compiled c = compile(p.fusion, p.bindings, repeated);
  EXPECT_EQ(digest(c.kernels.at(0)), digest(t.best.kernels.at(0)));
}

// A scheduler names choices of another kind, which no chain of doublings and halvings reaches.
TEST(Tune, LooksAtOtherFormsOfASchedule) {
  Program p;
  p.options.inputs = {BoundInput{.shape = {112, 65536}, .align = 256}};
  p.bindings = bind_sizes(p.fusion, p.options.inputs);
  const auto is_cluster_of = [](const Heuristics& h, int64_t blocks) {
    return text(h).ends_with("cluster " + std::to_string(blocks));
  };
  const Tuned t = tune(p.fusion, p.bindings, p.options, [&](const Compiled& c) {
    return std::optional(is_cluster_of(heuristics_of(c), 4) ? 1.0 : is_cluster_of(heuristics_of(c), 8) ? 2.0 : 3.0);
  });
  ASSERT_EQ(t.segments.size(), 1u);
  EXPECT_EQ(text(t.segments[0].chosen).find("cluster"), std::string::npos);
  EXPECT_TRUE(is_cluster_of(t.segments[0].best, 4)) << text(t.segments[0].best);
  // Nobody else pays for them.
  EXPECT_TRUE(compile(p.fusion, p.bindings, p.options).automatic->decisions.at(0).others.empty());
}

TEST(Tune, KeepsTheChoiceWhereNothingIsBetter) {
  const Program p;
  const Tuned t = tune(p.fusion, p.bindings, p.options, [](const Compiled&) { return std::optional(7.0); });
  EXPECT_EQ(t.segments.at(0).best, t.segments.at(0).chosen);
  EXPECT_GT(t.segments.at(0).tries, 0);
  EXPECT_EQ(t.segments.at(0).after, 7.0);
}

TEST(Tune, PassesOverWhatCannotRun) {
  const Program p;
  const Heuristics chosen = heuristics_of(compile(p.fusion, p.bindings, p.options));
  const Tuned t = tune(p.fusion, p.bindings, p.options, [&](const Compiled& c) -> std::optional<double> {
    if (heuristics_of(c) == chosen) return 5;
    return std::nullopt;
  });
  EXPECT_EQ(t.segments.at(0).best, chosen);
  EXPECT_EQ(t.segments.at(0).tries, 0);
}

TEST(Tune, RefusesAProgramThatNoSchedulerPlanned) {
  Program p;
  p.options.device.reset();
  try {
    tune(p.fusion, p.bindings, p.options, distance_to_two_warps);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kUsage);
    EXPECT_NE(std::string(e.what()).find("leave out its steps"), std::string::npos);
  }
}

Heuristics kept_row() {
  Heuristics h{.scheduler = "persistent", .choices = {}};
  h.set("in_vectors", "x");
  h.set("vector", 4);
  h.set("lanes", 32);
  h.set("warps", 4);
  h.set("chunks", 2);
  h.set("rows", 1);
  h.set("threads", 128);
  h.set("longest", 1024);
  return h;
}

TEST(Neighbours, KeepTheLengthOfAKeptRow) {
  const auto all = neighbours(kept_row());
  ASSERT_FALSE(all.empty());
  for (const Heuristics& h : all) {
    EXPECT_EQ(h.number("lanes") * h.number("warps") * h.number("chunks") * h.number("vector"), 1024) << text(h);
    EXPECT_EQ(h.number("threads"), h.number("lanes") * h.number("warps") * h.number("rows")) << text(h);
    EXPECT_NE(h, kept_row());
  }
}

TEST(Neighbours, HaveNoBlockThatIsTooLarge) {
  Heuristics h = kept_row();
  for (Heuristic& c : h.choices) {
    if (c.key == "rows") c.number = 8;
    if (c.key == "threads") c.number = 1024;
  }
  for (const Heuristics& next : neighbours(h)) EXPECT_LE(next.number("threads"), 1024) << text(next);
}

TEST(Neighbours, OfRowsWithPartsReadAPartAtOnce) {
  Heuristics h = kept_row();
  h.scheduler = "nested";
  h.set("part", 8);
  const auto all = neighbours(h);
  EXPECT_EQ(all.size(), 3u);  // half as wide, more warps, fewer warps
  for (const Heuristics& next : all) {
    EXPECT_EQ(next.number("part") * next.number("vector"), 32) << text(next);
    EXPECT_EQ(next.number("lanes") * next.number("warps") * next.number("chunks") * next.number("vector"), 1024)
        << text(next);
  }
  for (Heuristic& c : h.choices)
    if (c.key == "part") c.number = 32;
  EXPECT_EQ(neighbours(h).size(), 2u);
}

TEST(Neighbours, OfNoChoicesAreNone) { EXPECT_TRUE(neighbours({.scheduler = "unfused", .choices = {}}).empty()); }

}  // namespace
}  // namespace fusebox
