// Maps axes of an op's operands to the axes of its result.
#include "ir/domain/domain.h"

#include "tests/unit/ir/step_support.h"

namespace fusebox::testing {
namespace {

// The map for `x` of `z = OP …`, for example "i0>i0 i1>i1"; the consumer's names are those of its root domain. A
// concretized axis is marked with !.
std::string pairs(std::string_view definition, size_t operand = 0) {
  const std::string program =
      "fusion @f {\n %m, %n, %k = size\n %j = input index\n %x = input f32[%m, %n]\n %u = input f32[%m, 1]\n"
      " %v = input f32[%k, %n]\n %i = input i64[%k]\n %ij = input i64[%k, %n]\n " +
      std::string(definition) + "\n output %z\n}";
  const Graph g = parse_graph(program);
  verify(g);
  std::string result;
  for (DomainPair p : map_producer_to_consumer(g, g[*find_value(g, "z")].def, operand))
    result +=
        (result.empty() ? "" : " ") + g[p.producer].name + (is_concretized(g, p) ? ">!" : ">") + g[p.consumer].name;
  return result;
}

TEST(DomainMap, EveryKindOfOpPairsItsAxes) {
  EXPECT_EQ(pairs("%z = exp %x"), "i0>i0 i1>i1");
  EXPECT_EQ(pairs("%z = add %x, %u", 1), "i0>i0 i1>!i1");
  EXPECT_EQ(pairs("%z = sum %x over [1]"), "i0>i0 i1>i1");
  EXPECT_EQ(pairs("%z = broadcast %x mask [0, 1, 0]"), "i0>i0 i1>i2");
  EXPECT_EQ(pairs("%z = broadcast_in_dim %x to [%m, 3, %n] dims [0, 2]"), "i0>i0 i1>i2");
  EXPECT_EQ(pairs("%z = permute %x dims [1, 0]"), "i0>i1 i1>i0");
  EXPECT_EQ(pairs("%z = squeeze %u over [1]"), "i0>i0");
  EXPECT_EQ(pairs("%z = expand %u to [%m, %n]"), "i0>i0 i1>i1");
  EXPECT_EQ(pairs("%k2 = mul %m, %n\n %z = reshape %x to [%k2]"), "i0>r0 i1>r1");
  EXPECT_EQ(pairs("%z = reshape %x to [%k, %k]"), "i0>r0 i1>r1");
  EXPECT_EQ(pairs("%z = slice %x from [1, 0] to [2, %n] by [1, 1]"), "i0>r0 i1>i1");
  EXPECT_EQ(pairs("%z = pad %x by [1, 1]"), "i0>i0 i1>r1");
  EXPECT_EQ(pairs("%z = stride_order %x order [0, 1]"), "i0>i0 i1>i1");
  EXPECT_EQ(pairs("%z = cat [%x, %v] axis 0"), "i1>i1");
  EXPECT_EQ(pairs("%z = triu %x, 0"), "i0>i0 i1>i1");
}

TEST(DomainMap, WhatDataChooseIsNoPosition) {
  EXPECT_EQ(pairs("%z = select %x, %j axis 0"), "i1>i0");
  EXPECT_EQ(pairs("%z = index_select %x, %i axis 1"), "i0>i0");
  EXPECT_EQ(pairs("%z = index_select %x, %i axis 1", 1), "i0>i1");
  EXPECT_EQ(pairs("%z = take_along_axis %x, %ij axis 0"), "i1>i1");
  EXPECT_EQ(pairs("%z = take_along_axis %x, %ij axis 0", 1), "i0>i0 i1>i1");
  // The other axes of a gather may be shorter than the operand's, so only axes with equal extents are mapped.
  EXPECT_EQ(pairs("%z = gather %x, %ij axis 0"), "i1>i1");
  EXPECT_EQ(pairs("%z = gather %x, %ij axis 1"), "");
  EXPECT_EQ(pairs("%z = gather %x, %ij axis 0", 1), "i0>i0 i1>i1");
  EXPECT_EQ(pairs("%z = scatter %x, %ij, %v axis 0"), "i0>i0 i1>i1");
  EXPECT_EQ(pairs("%z = scatter %x, %ij, %v axis 0", 2), "i1>i1");
  EXPECT_EQ(pairs("%z = index_select %x, %i axis 1", 7), "");
}

TEST(Domain, AncestorsAndTransforms) {
  const Graph g =
      scheduled(kRows, "split %y.i1 by 4 -> o, t\nmerge %y.i0 with %y.o -> q\nswizzle %y.q with %y.t -> a, b");
  const Tensor& y = tensor_named(g, "y");
  const auto at = [&](std::string_view name) { return domain_named(g, "y", name); };
  EXPECT_TRUE(follows_from(g, at("a"), at("i1")));
  EXPECT_TRUE(follows_from(g, at("a"), at("a")));
  EXPECT_FALSE(follows_from(g, at("o"), at("i0")));
  EXPECT_EQ(list_text(g, leaves(g, at("b"))), "i0, i1");
  EXPECT_EQ(transforms_between(g, y.logical, loop_of(y)), y.transforms);
  EXPECT_EQ(transforms_between(g, std::vector{at("q"), at("t")}, loop_of(y)).size(), 1u);
  EXPECT_TRUE(is_complete(g, y.logical, loop_of(y)));
  EXPECT_TRUE(is_complete(g, y.logical, std::vector{at("t"), at("q")}));
  EXPECT_FALSE(is_complete(g, y.logical, std::vector{at("t"), at("o")}));
  EXPECT_FALSE(is_complete(g, y.logical, std::vector{at("i0"), at("i1"), at("t")}));
  EXPECT_EQ(list_text(g, descendants(g, y, std::vector{at("i0")})), "i0, q, a, b");
}

TEST(Domain, AMillionPathsAreWalkedOnce) {
  std::string steps;
  std::string a = "i0", b = "i1";
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    steps += "swizzle %y." + a + " with %y." + b + " -> a" + n + ", b" + n + "\n";
    a = "b" + n;
    b = "a" + n;
  }
  const Graph g = scheduled(kRows, steps + "transform_like %y to []\ninline_most of []");
  EXPECT_EQ(inlined_at(g, "d"), "a39");
  EXPECT_EQ(leaves(g, domain_named(g, "d", "a39")).size(), 2u);
}

TEST(Domain, MatchesFollowEqualTransforms) {
  const Graph g = scheduled(kRows, "split %d.i1 by 4 -> o, t\nsplit %y.i1 by 4 -> p, q\nsplit %y.i0 by 2 -> r, s");
  std::string text;
  for (DomainPair p : match_domains(g, g[*find_value(g, "y")].def, 0, 0))
    text += g[p.producer].name + ">" + g[p.consumer].name + " ";
  EXPECT_EQ(text, "i0>i0 i1>i1 o>p t>q ");
}

}  // namespace
}  // namespace fusebox::testing
