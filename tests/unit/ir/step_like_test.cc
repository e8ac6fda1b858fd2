// Steps that work across tensors: replay, parallel types, loops across a reshape, inlining.
#include "ir/graph/compact.h"
#include "tests/unit/ir/step_support.h"

namespace fusebox::testing {
namespace {

constexpr std::string_view kMergeAndSplit = "merge %y.i0 with %y.i1 -> q\nsplit %y.q by 128 -> o, t\n";

TEST(StepLike, TransformsAreReplayedOnAllThatIsConnected) {
  const Graph g = scheduled(kRows, std::string("cache_after %x -> xc\ncache_after %w -> wc\n") +
                                       std::string(kMergeAndSplit) + "transform_like %y to []");
  for (std::string_view name : {"xc", "f", "d", "y"}) EXPECT_EQ(loops(g, name), "o, t") << name;
  // A producer without the axis gets a loop broadcast for it, and merges that.
  EXPECT_EQ(loops(g, "wc"), "o, t");
  ASSERT_EQ(tensor_named(g, "wc").loop_broadcasts.size(), 1u);
  EXPECT_EQ(g[tensor_named(g, "wc").loop_broadcasts[0]].stands_for, domain_named(g, "wb", "i0"));
  // A reduction does not merge with an axis that stays.
  EXPECT_EQ(loops(g, "s"), "i0, i1 reduce");
}

TEST(StepLike, AReplayAgainChangesNothing) {
  const std::string steps = std::string(kMergeAndSplit) + "transform_like %y to []\nparallelize %f.t on block.x\n";
  Graph g = scheduled(kRows, steps);
  const Graph before = g;
  run_steps(g, "transform_like %y to []");
  EXPECT_TRUE(g == before) << print(g);
  EXPECT_EQ(loops(g, "f"), "o, t block.x");
}

TEST(StepLike, AReplayReplacesOtherTransforms) {
  const Graph g = scheduled(
      kRows,
      "split %d.i1 by 4 -> o, t\nsplit %y.i1 by 8 -> o, t\nreorder %y to [%y.t, %y.i0]\ntransform_like %y to [%d]");
  EXPECT_EQ(loops(g, "d"), "t, o, i0");
  EXPECT_EQ(constant_integer(g, g[g[domain_named(g, "d", "t")].def].factor), 8);
  EXPECT_EQ(loops(g, "f"), "i0, i1");
}

TEST(StepLike, NamesAreNumberedWhereTaken) {
  const Graph g = scheduled(kRows,
                            "split %d.i1 by 4 -> o, t\nset_allocation %d to [%d.o, %d.i0, %d.t]\nsplit %y.i1 by 8 -> "
                            "o, t\ntransform_like %y to [%d]");
  EXPECT_EQ(loops(g, "d"), "i0, o_1, t_1");
}

TEST(StepLike, ListedTensorsMustBeConnectedByEachOther) {
  const Graph g = scheduled(kRows, "split %y.i1 by 4 -> o, t");
  expect_refusals(g, R"(
    transform_like %y to [%f] => E0302 %f
    transform_like %y to [%d, %f] => applies
    transform_like %y to [%y] => E0302 %y
    transform_like %y to [%x] => E0302 %x
    transform_like %x to [] => E0302 %x
    parallelize_like %y to [%f] => E0302 %f
  )");
}

TEST(StepLike, PropagationStopsAtTheBoundary) {
  const Graph g = scheduled(kRows, "split %y.i1 by 4 -> o, t\npropagate %y until [%d, %wb]");
  EXPECT_EQ(loops(g, "d"), "i0, o, t");
  EXPECT_EQ(loops(g, "f"), "i0, i1");
  EXPECT_EQ(refusal(g, "propagate %y until [%x]"), "E0302 %x");
}

TEST(StepLike, TwoReadersOfAnInputAreConnected) {
  const Graph g = scheduled(
      "fusion @f {\n %n = size\n %x = input f32[%n]\n %y = exp %x\n %z = neg %x\n output %y\n output %z\n}",
      "split %y.i0 by 4 -> o, t\nparallelize %y.t on block.x\ntransform_like %y to []\nparallelize_like %y to []");
  EXPECT_EQ(loops(g, "z"), "o, t block.x");
}

TEST(StepLike, TheEdgeThatKeepsMostAxesIsTaken) {
  // %sb is reached from %d, not through the sum.
  const Graph g = scheduled(kRows, "split %f.i1 by 4 -> o, t\ntransform_like %f to []");
  EXPECT_EQ(loops(g, "s"), "i0, o reduce, t reduce");
  EXPECT_EQ(loops(g, "sb"), "i0, o broadcast, t broadcast");
  EXPECT_EQ(loops(g, "y"), "i0, o, t");
}

TEST(StepLike, ParallelTypesAreCopiedWhereTheyFit) {
  const Graph g = scheduled(kRows,
                            "split %y.i1 by 4 -> o, t\nparallelize %y.i0 on grid.x\nparallelize %y.o on block.x\n"
                            "parallelize %y.t on vectorize\ntransform_like %y to []\nparallelize_like %y to []");
  EXPECT_EQ(loops(g, "d"), "i0 grid.x, o block.x, t");
  EXPECT_EQ(loops(g, "s"), "i0 grid.x, o reduce block.x, t reduce");
  Graph listed = g;
  run_steps(listed, "parallelize_like %y to [%d, %f] threads [7]");
  EXPECT_EQ(loops(listed, "d"), "i0 grid.x, o block.x, t vectorize");
}

TEST(StepLike, LoopsCrossAReshapeEitherWay) {
  const std::string_view program =
      "fusion @f {\n %m = size\n %x = input f32[%m, 6]\n %c = exp %x\n %r = reshape %c to [%m, 2, 3]\n %y = neg %r\n "
      "output %y\n}";
  const Graph up = scheduled(program, "split %c.i1 by 4 -> o, t\nset_loop_domain %r like %c");
  EXPECT_EQ(loops(up, "r"), "i0, o, t");
  const Graph down = scheduled(
      program,
      "reorder %y to [%y.i2, %y.i0]\ntransform_like %y to [%r]\nset_loop_domain %c like %r\ninline_most of []");
  EXPECT_EQ(loops(down, "c"), "i2, i1_1, i0");
  EXPECT_EQ(inlined_at(down, "c"), "i0");
  EXPECT_EQ(inlined_at(down, "r"), "i0");
  EXPECT_EQ(refusal(up, "set_loop_domain %y like %r"), "E0302 %y");
  EXPECT_EQ(refusal(up, "set_loop_domain %y like %c"), "E0302 %c");
}

// A broadcast has its element at every place of a joined axis.
TEST(StepLike, ABroadcastTakesTheLoopOfAJoinedAxis) {
  const Graph g = scheduled(R"(fusion @f {
  %m = size
  %x = input f32[%m, 3, 8]
  %b = input f32[%m, 8]
  %bc = neg %b
  %bb = broadcast %bc mask [0, 1, 0]
  %l = mul %x, %bb
  %r = add %x, %bb
  %c = cat [%l, %r] axis 1
  output %c
})",
                            "split %c.i2 by 4 -> o, t\nsplit %c.i1 by 2 -> p, k\nset_loop_domain %r like %c\n"
                            "set_loop_domain %bb like %r\nset_loop_domain %bc like %bb");
  EXPECT_EQ(loops(g, "r"), "i0, p, k, o, t");
  EXPECT_EQ(loops(g, "bb"), "i0, p broadcast, k broadcast, o, t");
  EXPECT_EQ(loops(g, "bc"), "i0, p broadcast, k broadcast, o, t");
}

// What lacks the innermost loop is the same in all its iterations, and needs no loop for it.
TEST(StepLike, WhatLacksTheInnermostAxisFollowsTheOthers) {
  const Graph g = scheduled(R"(fusion @f {
  %m = size
  %x = input f32[%m, 8]
  %y = input f32[%m, 8]
  %xn = neg %x
  %xb = broadcast %xn mask [0, 0, 1]
  %yb = broadcast %y mask [0, 0, 1]
  %c = cat [%xb, %yb] axis 2
  output %c
})",
                            "split %c.i1 by 4 -> o, t\nset_loop_domain %xb like %c\nset_loop_domain %xn like %xb");
  EXPECT_EQ(loops(g, "xb"), "i0, o, t, i2 broadcast");
  EXPECT_EQ(loops(g, "xn"), "i0, o, t");
  // A loop further out, of an axis that a tensor lacks, has a broadcast.
  const Graph outer = scheduled(print(g), "reorder %xb to [%xb.i2, %xb.i0]\nset_loop_domain %xn like %xb");
  EXPECT_EQ(loops(outer, "xn"), "i2 broadcast, o, t, i0");
}

TEST(StepLike, LoopsCrossASliceWithItsOffset) {
  const std::string_view program =
      "fusion @f {\n %x = input f32[12]\n %c = exp %x\n %s = slice %c from [2] to [9] by [1]\n output %s\n}";
  const Graph g = scheduled(program, "split %s.i0 by 4 -> o, t\nset_loop_domain %c like %s\ninline_most of [%c]");
  EXPECT_EQ(loops(g, "c"), "o, t");
  EXPECT_EQ(inlined_at(g, "c"), "t");
  // A plain replay looks through the offset, so the loops are alike but cannot be shared.
  const Graph replayed = scheduled(program, "split %s.i0 by 4 -> o, t\ntransform_like %s to []");
  EXPECT_EQ(loops(replayed, "c"), "o, t");
  EXPECT_EQ(refusal(replayed, "inline_at %c.o"), "E0310 %c.o");
}

TEST(StepLike, LoopsCrossACatWithTheOffsetOfTheOperand) {
  const std::string_view program =
      "fusion @f {\n %n = size\n %x = input f32[3, 5]\n %z = input f32[%n, 5]\n %a = exp %x\n %b = neg %z\n %c = cat "
      "[%a, %b] axis 0\n output %c\n}";
  const std::string steps =
      "merge %c.i0 with %c.i1 -> q\nsplit %c.q by 4 -> o, t\nset_loop_domain %a like %c\nset_loop_domain %b like %c\n";
  Graph g = scheduled(program, steps + "inline_most of []");
  for (std::string_view name : {"a", "b"}) {
    EXPECT_EQ(loops(g, name), "o, t") << name;
    EXPECT_EQ(inlined_at(g, name), "t") << name;
  }
  const Transform& resize = g[g[domain_named(g, "b", "i0_1")].def];
  EXPECT_EQ(resize.kind, TransformKind::kResize);
  EXPECT_EQ(constant_integer(g, resize.factor), 3);
  EXPECT_EQ(constant_integer(g, resize.right), 0);
  // Setting the loops again keeps them.
  Graph again = scheduled(program, steps + "parallelize %b.t on block.x");
  const Graph before = again;
  run_steps(again, "set_loop_domain %b like %c");
  EXPECT_TRUE(again == before) << print(again);
  // The cat does not follow its operand.
  EXPECT_EQ(refusal(scheduled(program, "split %a.i0 by 2 -> o, t"), "set_loop_domain %c like %a"), "E0302 %c");
}

TEST(StepLike, RefusedLoopsLeaveTheGraphAsItWas) {
  Graph g = scheduled(
      "fusion @f {\n %n = size\n %x = input f32[3, 5]\n %z = input f32[%n, 5]\n %a = exp %x\n %b = neg %z\n %c = cat "
      "[%a, %b] axis 0\n output %c\n}",
      "split %a.i0 by 2 -> o, t\nsplit %a.i1 by 4 -> p, q\nsplit %c.i1 by 3 -> u, v\nparallelize %c.v on block.x");
  const Graph before = g;
  // The cat gets the split of i1 before its axis i0 shows that there is no other.
  EXPECT_THROW(apply(g, parse_steps("set_loop_domain %c like %a")), Error);
  EXPECT_TRUE(same_members(g, before)) << print(g);
}

TEST(StepInline, SharesLoopsThatCorrespondAndNoMore) {
  Graph g = scheduled(kRows, "cache_after %w -> wc\nsplit %y.i1 by 4 -> o, t\ntransform_like %y to []");
  EXPECT_EQ(loops(g, "wc"), "i0_1 broadcast, o, t");
  expect_refusals(g, R"(
    inline_at %y.i0 => E0310 %y.i0
    inline_at %x.i0 => E0302 %x
    inline_at %s.o => E0310 %s.o
    inline_at %d.i1 => E0302 %d.i1
  )");
  run_steps(g, "inline_at %d.o");
  EXPECT_EQ(inlined_at(g, "d"), "o");
  // Shared loops are fixed on both sides.
  expect_refusals(g, R"(
    split %y.o by 2 -> a, b => E0302 %y.o
    split %d.i0 by 2 -> a, b => E0302 %d.i0
    split %y.t by 2 -> a, b => applies
    cache_after %d -> dc => E0302 %d
    transform_like %f to [%d] => E0302 %d
  )");
  run_steps(g, "inline_most of []");
  EXPECT_EQ(inlined_at(g, "d"), "t");
  EXPECT_EQ(inlined_at(g, "wc"), "t");
  EXPECT_EQ(inlined_at(g, "wb"), "t");
  EXPECT_EQ(inlined_at(g, "sb"), "t");
  EXPECT_EQ(inlined_at(g, "s"), "i0");
  // The sum ends before %d reads the same elements: only the row is shared.
  EXPECT_EQ(inlined_at(g, "f"), "i0");
}

TEST(StepInline, VectorsAndListedTensorsLimitIt) {
  const Graph g = scheduled(
      kRows,
      "split %y.i1 by 4 -> o, t\ntransform_like %y to []\nparallelize %y.t on vectorize\ninline_most of [%d, %wb]");
  EXPECT_EQ(inlined_at(g, "d"), "o");
  EXPECT_EQ(inlined_at(g, "wb"), "o");
  EXPECT_EQ(inlined_at(g, "sb"), "none");
}

TEST(StepInline, AnUnlikeLoopEndsTheSharing) {
  const Graph g = scheduled(kRows, "split %y.i1 by 4 -> o, t");
  EXPECT_EQ(refusal(g, "inline_at %d.i1"), "E0310 %d.i1");
  EXPECT_EQ(refusal(g, "inline_at %d.i0"), "applies");
}

TEST(StepInline, ConsumersConcretizeABroadcastAlike) {
  const std::string_view program = R"(fusion @f {
  %m, %n = size
  %x = input f32[1]
  %p = input f32[%m]
  %q = input f32[%n]
  %b = exp %x
  %y = add %b, %p
  %z = add %b, %q
  output %y
  output %z
})";
  EXPECT_EQ(refusal(parse_graph(program), "inline_at %b.i0"), "E0310 %b.i0");
}

}  // namespace
}  // namespace fusebox::testing
