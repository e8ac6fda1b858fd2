// Id graphs on small scheduled programs: which domains are one, which are not, and why.
#include "passes/identity/id_graphs.h"

#include "ir/scalar/scalar.h"
#include "tests/unit/ir/step_support.h"

namespace fusebox::testing {
namespace {

bool one(const Graph& g, IdGraphKind kind, std::string_view a, std::string_view b) {
  const auto at = [&](std::string_view name) {
    const size_t dot = name.find('.');
    return domain_named(g, name.substr(0, dot), name.substr(dot + 1));
  };
  return id_graph(g, kind).same(at(a), at(b));
}
bool exact(const Graph& g, std::string_view a, std::string_view b) { return one(g, IdGraphKind::kExact, a, b); }
bool almost(const Graph& g, std::string_view a, std::string_view b) { return one(g, IdGraphKind::kAlmostExact, a, b); }

TEST(IdGraphs, ExactIsTheSameByDefinition) {
  const Graph g =
      scheduled(kChain, "split %y.i0 by 4 -> o, t\nsplit %z.i0 by 4 -> a, b\nsplit %z.b by 2 outer -> u, v");
  EXPECT_TRUE(exact(g, "x.i0", "z.i0"));
  EXPECT_TRUE(exact(g, "y.o", "z.a"));
  EXPECT_TRUE(exact(g, "y.t", "z.b"));
  EXPECT_FALSE(exact(g, "y.o", "y.t"));
  EXPECT_FALSE(exact(g, "z.u", "z.v"));
  EXPECT_EQ(id_graph(g, IdGraphKind::kExact).classes().size(), 5u);
}

TEST(IdGraphs, AlmostExactSaysWhy) {
  const Graph g = scheduled(kChain, "split %y.i0 by 1 -> o, t\nsplit %y.o by 4 -> a, b\nsplit %z.i0 by 4 -> a, b");
  EXPECT_FALSE(exact(g, "y.o", "y.i0"));
  EXPECT_FALSE(exact(g, "y.a", "z.a"));
  const IdGraph ids = id_graph(g, IdGraphKind::kAlmostExact);
  EXPECT_TRUE(almost(g, "y.o", "z.i0"));
  EXPECT_TRUE(almost(g, "y.a", "z.a"));
  ASSERT_EQ(ids.proofs.size(), 3u);
  EXPECT_EQ(g[ids.proofs[0].nest].value, *find_value(g, "y"));
  EXPECT_EQ(ids.proofs[0].reason, "both are `4*a + b` at every loop point");
  EXPECT_FALSE(ids.proofs[1].nest);
  EXPECT_EQ(ids.proofs[1].reason, "the same split makes them of domains that are one");
}

// A case that equal extents get wrong: f and b are both 0 at every element and have extent 1.
constexpr std::string_view kHoles = "split %y.i0 by 64 -> b, c\nsplit %y.b by 8 -> f, g\n";

TEST(IdGraphs, AnInnerOutputThatReachesIntoHolesIsNotItsOuterOne) {
  const Graph g = scheduled(kChain, kHoles);
  EXPECT_FALSE(almost(g, "y.f", "y.b"));
  EXPECT_TRUE(almost(g, "y.g", "y.b"));
}

TEST(IdGraphs, ASecondTensorDoesNotJoinWhatTheFirstTellsApart) {
  // In the nest of %z, b and u are both 0; in that of %y, b reaches 7, and u and f are 0.
  const Graph g = scheduled(kChain, std::string(kHoles) +
                                        "split %y.c by 64 -> u, v\nsplit %z.i0 by 64 -> b, c\n"
                                        "split %z.c by 64 -> u, v");
  EXPECT_TRUE(exact(g, "y.b", "z.b"));
  EXPECT_TRUE(exact(g, "y.u", "z.u"));
  EXPECT_TRUE(almost(g, "y.u", "y.f"));
  EXPECT_FALSE(almost(g, "z.b", "z.u"));
  EXPECT_FALSE(almost(g, "y.f", "z.b"));
  EXPECT_FALSE(almost(g, "y.f", "y.b"));
  // Without the second split of %y's b, nothing contradicts it.
  const Graph plain = scheduled(kChain, "split %z.i0 by 64 -> b, c\nsplit %z.c by 64 -> u, v");
  EXPECT_TRUE(almost(plain, "z.b", "z.u"));
}

TEST(IdGraphs, AnEqualExtentIsNoReason) {
  const Graph g = scheduled(kFive, kFiveInThrees);
  EXPECT_EQ(evaluate_extent(g, domain_named(g, "y", "c")), 2);
  EXPECT_EQ(evaluate_extent(g, domain_named(g, "z", "c")), 2);
  for (const IdGraphKind kind : {IdGraphKind::kExact, IdGraphKind::kAlmostExact, IdGraphKind::kBroadcast,
                                 IdGraphKind::kPermissive, IdGraphKind::kLoop})
    EXPECT_FALSE(one(g, kind, "y.c", "z.c")) << text(kind);
}

TEST(IdGraphs, AxesThatATransposeWouldJoinStayApart) {
  const Graph g = parse_graph(kSymmetric);
  EXPECT_TRUE(exact(g, "x.i0", "y.i0"));
  EXPECT_FALSE(exact(g, "y.i0", "y.i1"));
  EXPECT_FALSE(almost(g, "x.i0", "x.i1"));
}

TEST(IdGraphs, TwoEqualSplitsOfOneDomainDifferInHoles) {
  // The loops of %y split t again, 3 times 2 for an extent of 4, so i0 = 4*o + (2*u + v) leaves the first split.
  Graph g = scheduled(kChain, "split %y.i0 by 4 -> o, t\nsplit %y.t by 3 -> u, v");
  const ValueId y = *find_value(g, "y");
  const TransformId first = g[domain_named(g, "y", "o")].def;
  Transform again = g[first];
  again.outputs.clear();
  const TensorId t = g[y].tensor;
  const TransformId second(g.transforms.size());
  for (const char* name : {"o2", "t2"}) {
    IterDomain d;
    d.name = name;
    d.def = second;
    again.outputs.push_back(add_domain(g, t, std::move(d)));
  }
  g.transforms.push_back(again);
  g[t].transforms.push_back(second);
  EXPECT_FALSE(exact(g, "y.o", "y.o2"));
  EXPECT_FALSE(almost(g, "y.t", "y.t2"));
}

constexpr std::string_view kBias = R"(fusion @bias {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %w = input f32[%n] contiguous
  %wb = broadcast %w mask [1, 0]
  %y = mul %x, %wb
  output %y
})";

TEST(IdGraphs, BroadcastJoinsWhatConcretizes) {
  const Graph g = parse_graph(kBias);
  EXPECT_FALSE(almost(g, "wb.i0", "y.i0"));
  EXPECT_TRUE(one(g, IdGraphKind::kBroadcast, "wb.i0", "x.i0"));
  EXPECT_TRUE(exact(g, "w.i0", "y.i1"));
  const Graph like = scheduled(kBias, "merge %y.i0 with %y.i1 -> q\ntransform_like %y to [%wb]");
  EXPECT_TRUE(one(like, IdGraphKind::kBroadcast, "wb.q", "y.q"));
  EXPECT_FALSE(almost(like, "wb.q", "y.q"));
}

TEST(IdGraphs, PermissiveForwardsThroughBroadcasts) {
  const Graph g = scheduled(kBias, "merge %y.i0 with %y.i1 -> q\nsplit %y.q by 1 -> a, b");
  EXPECT_FALSE(one(g, IdGraphKind::kBroadcast, "y.q", "w.i0"));
  EXPECT_TRUE(one(g, IdGraphKind::kPermissive, "y.q", "w.i0"));
  EXPECT_TRUE(one(g, IdGraphKind::kPermissive, "y.q", "y.a"));
  EXPECT_FALSE(one(g, IdGraphKind::kPermissive, "y.q", "y.b"));
}

// %w has only the second axis of %y: parts of the first axis are no domains of %w, parts of the second are.
TEST(IdGraphs, PermissiveForwardsPartsOfWhatAnOperandHas) {
  const Graph lacked = scheduled(kBias, "split %y.i0 by 4 -> a, b\nmerge %y.b with %y.i1 -> q");
  EXPECT_TRUE(one(lacked, IdGraphKind::kPermissive, "y.q", "w.i0"));
  EXPECT_FALSE(one(lacked, IdGraphKind::kPermissive, "y.q", "y.b"));
  const Graph had = scheduled(kBias, "split %y.i1 by 4 -> c, d\nmerge %y.i0 with %y.c -> q");
  EXPECT_TRUE(one(had, IdGraphKind::kPermissive, "y.q", "y.c"));
  EXPECT_FALSE(one(had, IdGraphKind::kPermissive, "y.q", "y.i0"));
}

TEST(IdGraphs, LoopIsWhatInliningShares) {
  const Graph g = scheduled(kChain, "split %z.i0 by 4 -> o, t\ntransform_like %z to [%y]\ninline_at %y.o");
  EXPECT_TRUE(one(g, IdGraphKind::kLoop, "y.o", "z.o"));
  EXPECT_FALSE(one(g, IdGraphKind::kLoop, "y.t", "z.t"));
  EXPECT_TRUE(exact(g, "y.t", "z.t"));
}

TEST(IdGraphs, KindsHaveNames) {
  for (const IdGraphKind kind : {IdGraphKind::kExact, IdGraphKind::kAlmostExact, IdGraphKind::kBroadcast,
                                 IdGraphKind::kPermissive, IdGraphKind::kLoop})
    EXPECT_EQ(parse_id_graph_kind(text(kind)), kind);
  EXPECT_FALSE(parse_id_graph_kind("almost"));
}

}  // namespace
}  // namespace fusebox::testing
