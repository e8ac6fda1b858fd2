// Steps on the loops of one tensor.
#include "tests/unit/ir/step_support.h"

namespace fusebox::testing {
namespace {

TEST(StepLoop, TheFirstScheduleStepMakesAScheduledProgram) {
  Graph g = parse_graph(kRows);
  run_steps(g, "set_mesh %y devices [0, 1]");
  EXPECT_EQ(g.level, Level::kMath);
  run_steps(g, "split %y.i1 by 128 -> o, t");
  EXPECT_EQ(g.level, Level::kScheduled);
  EXPECT_EQ(loops(g, "y"), "i0, o, t");
  EXPECT_TRUE(tensor_named(g, "d").loop.empty());
}

TEST(StepLoop, SplitTakesAnInnerOrOuterFactorANumberOrAScalar) {
  const Graph g = scheduled(kRows, "split %y.i1 by 4 outer -> o, t\nsplit %y.i0 by %n -> a, b");
  EXPECT_EQ(loops(g, "y"), "a, b, o, t");
  const Transform& outer = g[g[domain_named(g, "y", "t")].def];
  EXPECT_FALSE(outer.inner_split);
  EXPECT_EQ(constant_integer(g, outer.factor), 4);
  EXPECT_EQ(g[g[domain_named(g, "y", "a")].def].factor, find_value(g, "n"));
  EXPECT_EQ(loops(scheduled(kRows, "split %s.i1 by 4 -> o, t"), "s"), "i0, o reduce, t reduce");
  EXPECT_EQ(loops(scheduled(kRows, "split %sb.i1 by 4 -> o, t"), "sb"), "i0, o broadcast, t broadcast");
}

TEST(StepLoop, MergeStandsWhereItsOuterLoopStood) {
  EXPECT_EQ(loops(scheduled(kRows, "merge %y.i0 with %y.i1 -> q"), "y"), "q");
  const Graph g = scheduled(kRows, "split %y.i1 by 4 -> o, t\nmerge %y.t with %y.i0 -> q");
  EXPECT_EQ(loops(g, "y"), "o, q");
  EXPECT_EQ(loops(scheduled(kRows, "merge %sb.i0 with %sb.i1 -> q"), "sb"), "q");
}

TEST(StepLoop, ReorderPermutesTheListedPlacesOnly) {
  const Graph g = scheduled(kRows, "split %y.i1 by 4 -> o, t\nreorder %y to [%y.t, %y.i0]");
  EXPECT_EQ(loops(g, "y"), "t, o, i0");
  EXPECT_EQ(loops(scheduled(kRows, "reorder %y to [%y.i1, %y.i0]\nreorder %y to [%y.i0, %y.i1]"), "y"), "i0, i1");
}

TEST(StepLoop, SwizzleAndResizeKeepThePlaces) {
  Graph g =
      scheduled(kRows, "split %y.i1 by 8 -> o, t\nswizzle %y.o with %y.t cyclic -> a, b\nresize %y.i0 by -1, 2 -> r");
  EXPECT_EQ(loops(g, "y"), "r, a, b");
  EXPECT_EQ(g[g[domain_named(g, "y", "b")].def].swizzle, SwizzleType::kCyclic);
  const Transform& resize = g[g[domain_named(g, "y", "r")].def];
  EXPECT_EQ(constant_integer(g, resize.factor), -1);
  EXPECT_EQ(constant_integer(g, resize.right), 2);
}

TEST(StepLoop, ParallelTypesAreSetAndTakenBack) {
  Graph g = scheduled(kRows, "parallelize %y.i0 on grid.x\nparallelize %y.i1 on block.x");
  EXPECT_EQ(loops(g, "y"), "i0 grid.x, i1 block.x");
  EXPECT_EQ(refusal(g, "split %y.i1 by 4 -> o, t"), "E0302 %y.i1");
  run_steps(g, "parallelize %y.i1 on serial\nsplit %y.i1 by 4 -> o, t");
  expect_refusals(g, R"(
    parallelize %y.t on grid.x => E0311 %y.t
    parallelize %s.i1 on vectorize => E0311 %s.i1
    parallelize %y.t on mesh.x => E0311 %y.t
  )");
  run_steps(g, "set_mesh %y devices [0, 1]\nparallelize %y.t on mesh.x");
  EXPECT_EQ(refusal(g, "set_mesh %y devices []"), "E0302 %y.t");
}

TEST(StepLoop, ALoopBroadcastStandsForAnotherTensorsAxis) {
  const Graph g =
      scheduled(kRows, "cache_after %w -> wc\nloop_broadcast %wc like %y.i0 -> r\nmerge %wc.r with %wc.i0 -> q");
  EXPECT_EQ(loops(g, "wc"), "q");
  EXPECT_EQ(g[domain_named(g, "wc", "r")].stands_for, domain_named(g, "y", "i0"));
  expect_refusals(g, R"(
    loop_broadcast %wc like %y.i0 -> again => E0302 %wc.r
    loop_broadcast %y like %y.i0 -> own => E0302 %y.i0
    loop_broadcast %y like %wc.q -> made => E0302 %wc.q
  )");
  // A stand-in for a stand-in stands for the original.
  EXPECT_EQ(refusal(g, "loop_broadcast %y like %wc.r -> own"), "E0302 %wc.r");
}

TEST(StepLoop, AllResultsOfAnOpAreTransformedAlike) {
  const Graph g = scheduled(
      "fusion @f {\n %m, %n = size\n %x = input f32[%m, %n]\n %a, %v, %c = welford %x over [1]\n output %a\n output "
      "%v\n output %c\n}",
      "split %v.i1 by 32 -> o, t\nreorder %a to [%a.t, %a.o]\nparallelize %c.t on block.x");
  for (std::string_view name : {"a", "v", "c"}) EXPECT_EQ(loops(g, name), "i0, t reduce block.x, o reduce");
}

TEST(StepLoop, RefusalsNameWhatIsWrong) {
  const Graph g = scheduled(kRows, "split %y.i1 by 4 -> o, t");
  EXPECT_EQ(refusal(g, "split %nowhere.i1 by 4 -> a, b"), "E0301 %nowhere");
  EXPECT_EQ(refusal(g, "split %n.i1 by 4 -> a, b"), "E0301 %n");
  EXPECT_EQ(refusal(g, "split %y.z by 4 -> a, b"), "E0301 %y.z");
  EXPECT_EQ(refusal(g, "split %y.i1 by 4 -> a, b"), "E0302 %y.i1");
  EXPECT_EQ(refusal(g, "split %x.i1 by 4 -> a, b"), "E0302 %x");
  EXPECT_EQ(refusal(g, "split %y.t by 0 -> a, b"), "E0302");
  EXPECT_EQ(refusal(g, "split %y.t by %s -> a, b"), "E0301 %s");
  EXPECT_EQ(refusal(g, "split %y.t by 4 -> o, b"), "E0303 %y.o");
  EXPECT_EQ(refusal(g, "split %y.t by 4 -> a, a"), "E0303 a");
  EXPECT_EQ(refusal(g, "merge %y.t with %y.t -> a"), "E0302 %y.t");
  EXPECT_EQ(refusal(g, "merge %y.t with %d.i0 -> a"), "E0302 %d.i0");
  EXPECT_EQ(refusal(g, "merge %s.i0 with %s.i1 -> a"), "E0302 %s.i1");
  EXPECT_EQ(refusal(g, "swizzle %sb.i0 with %sb.i1 -> a, b"), "E0302 %sb.i1");
  EXPECT_EQ(refusal(g, "resize %sb.i1 by 0, 1 -> a"), "E0302 %sb.i1");
  EXPECT_EQ(refusal(g, "reorder %y to [%y.t, %y.t]"), "E0302 %y.t");
  EXPECT_EQ(refusal(g, "rewrite name \"fold\""), "E0302");
  EXPECT_EQ(refusal(g, "assign of [%y] name \"s0\""), "E0302");
  EXPECT_EQ(refusal(g, Step{StepKind::kSplit, {StepOperand::domain_of("y", "t")}, {"a", "b"}, {}}), "E0302");
  Step wrong_attr{StepKind::kMerge, {StepOperand::domain_of("y", "o"), StepOperand::domain_of("y", "t")}, {"q"}, {}};
  wrong_attr.attrs.set_flag(AttrKey::kOuter);
  EXPECT_EQ(refusal(g, wrong_attr), "E0302");
}

TEST(StepLoop, AScalarThatIsDefinedLaterIsNoFactor) {
  const Graph g = parse_graph(
      "fusion @f {\n %n = size\n %x = input f32[%n]\n %y = exp %x\n %k = add %n, 1\n %z = iota %k\n output %y\n output "
      "%z\n}");
  EXPECT_EQ(refusal(g, "split %y.i0 by %k -> o, t"), "E0302 %k");
  EXPECT_EQ(refusal(g, "split %z.i0 by %k -> o, t"), "applies");
}

TEST(StepLoop, AProgramOfAnotherLevelTakesNoSteps) {
  Graph g = parse_graph(kRows);
  g.level = Level::kKernel;
  EXPECT_EQ(refusal(g, "split %y.i1 by 4 -> o, t"), "E0302");
}

}  // namespace
}  // namespace fusebox::testing
