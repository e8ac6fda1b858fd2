// Agreement of pairs of domains: at elements and in a nest, with reasons, facts and points where they differ.
#include "passes/identity/agreement.h"

#include "passes/identity/id_graphs.h"
#include "tests/unit/ir/step_support.h"

namespace fusebox::testing {
namespace {

DomainId at(const Graph& g, std::string_view name) {
  const size_t dot = name.find('.');
  return domain_named(g, name.substr(0, dot), name.substr(dot + 1));
}
Agreement elements(const Graph& g, std::string_view a, std::string_view b) {
  return agree_at_elements(g, at(g, a), at(g, b));
}
Agreement nest(const Graph& g, std::string_view a, std::string_view b) { return agree_in_nest(g, at(g, a), at(g, b)); }

bool rests_on(const Agreement& a, std::string_view name) {
  for (const Reason& r : a.reasons)
    if (r.name == name) return true;
  return false;
}

// The bound symbols, the point, and the values there, as text.
std::string text_of(const std::optional<Difference>& d) {
  if (!d) return "none";
  std::string result;
  for (const auto* list : {&d->sizes, &d->point})
    for (const NamedValue& v : *list) result += v.name + "=" + std::to_string(v.value) + " ";
  return result + std::to_string(d->a) + "!=" + std::to_string(d->b);
}

// A tensor read in its own shape and as a matrix; an outer split spreads each over devices.
std::string sharding(const std::string& sizes, const std::string& shape, const std::string& devices) {
  return "fusion @sharding {\n  " + sizes + "\n  %y = reshape %x to " + shape +
         "\n  %u = exp %y\n  %z = exp %x\n  output %u\n  output %z\n}\nsteps: split %u.i0 by " + devices +
         " outer -> p, q\nsplit %z.i0 by " + devices + " outer -> p, q";
}
Agreement shards(const std::string& sizes, const std::string& shape, const std::string& devices,
                 const std::string& more = "") {
  const std::string program = sharding(sizes, shape, devices);
  const size_t cut = program.find("steps: ");
  return elements(scheduled(program.substr(0, cut), program.substr(cut + 7) + more), "u.p", "z.p");
}

TEST(Agreement, ShardsOfAMatrixAndOfItsElements) {
  const Agreement yes = shards("%x = input f32[96] contiguous", "[16, 6]", "4");
  EXPECT_TRUE(yes.proved);
  EXPECT_EQ(yes.verdict, "both are `%x.i0 / 24` at every element of %x");
  EXPECT_TRUE(rests_on(yes, "reshape"));
  const Agreement no = shards("%x = input f32[96] contiguous", "[16, 6]", "5");
  EXPECT_FALSE(no.proved);
  // ceil(96/5) = 20 elements for a device, or ceil(16/5) = 4 rows of 6.
  EXPECT_EQ(text_of(no.difference), "%x.i0=20 0!=1");
  // 5 devices for 16 rows of 5: 16 elements each, or 4 rows of 5.
  EXPECT_FALSE(shards("%x = input f32[80] contiguous", "[16, 5]", "5").proved);
  // Constantly 0.
  EXPECT_TRUE(shards("%x = input f32[96] contiguous", "[16, 6]", "1").proved);
  // 2 elements each, or 1 row of 2, although 5 divides neither: ceil(6/5) is 2*ceil(3/5).
  EXPECT_TRUE(shards("%x = input f32[6] contiguous", "[3, 2]", "5").proved);
}

TEST(Agreement, ShardsOfSymbolicExtents) {
  // Nothing says that 4 divides h.
  const Agreement open = shards("%h, %d = size\n %r = mul %h, %d\n %x = input f32[%r] contiguous", "[%h, %d]", "4");
  EXPECT_FALSE(open.proved);
  EXPECT_NE(text_of(open.difference), "none");
  // h is 4 times k.
  const Agreement given =
      shards("%k, %d = size\n %h = mul %k, 4\n %r = mul %h, %d\n %x = input f32[%r] contiguous", "[%h, %d]", "4");
  EXPECT_TRUE(given.proved) << given.verdict;
}

TEST(Agreement, AReshapeElsewhereSaysWhatDivides) {
  // %v splits the rows of %y by 4, so 4 divides them.
  const std::string program = R"(fusion @fact {
  %h, %d = size
  %y = input f32[%h, %d] contiguous
  %k = floor_div %h, 4
  %v = reshape %y to [%k, 4, %d]
  %r = mul %h, %d
  %x = reshape %y to [%r]
  %u = exp %y
  %z = exp %x
  output %u
  output %z
  output %v
})";
  const std::string steps = "split %u.i0 by 4 outer -> p, q\nsplit %z.i0 by 4 outer -> p, q";
  Graph g = scheduled(program, "concretize_reshape %v order [1, 2, 1, 1]\n" + steps);
  const Agreement yes = elements(g, "u.p", "z.p");
  EXPECT_TRUE(yes.proved) << yes.verdict;
  ASSERT_TRUE(rests_on(yes, "divisibility"));
  EXPECT_EQ(yes.reasons.back().text, "4 divides the extent of %v.r0: a reshape keeps every element");
}

TEST(Agreement, TheOtherOutputOfAReshapesSplitDividesToo) {
  const std::string program = R"(fusion @fact {
  %h, %d = size
  %x = input f32[%h, %d] contiguous
  %k = floor_div %h, 4
  %v = reshape %x to [4, %k, %d]
  %s = sum %x over [1]
  %e = exp %s
  %u = exp %x
  %w = neg %u
  output %e
  output %w
  output %v
})";
  // The extents are ceil(h / 4) and floor(h / 4), which are equal if 4 divides h.
  const Graph g = scheduled(program,
                            "concretize_reshape %v order [1, 2, 1, 1]\nsplit %u.i0 by 4 outer -> p, q\n"
                            "split %w.i0 by %k -> p, q\nsplit %s.i0 by 4 outer -> p, q\nsplit %e.i0 by %k -> p, q");
  const Agreement r = elements(g, "u.p", "w.p");
  EXPECT_TRUE(r.proved) << r.verdict;
  ASSERT_TRUE(rests_on(r, "divisibility"));
  EXPECT_EQ(r.reasons.back().text, "4 divides the extent of %v.r0: a reshape keeps every element");
  // If %d is 0, the reshape keeps all of its no elements for any h, but %s has elements.
  EXPECT_FALSE(elements(g, "s.p", "e.p").proved);
}

TEST(Agreement, AVectorizedCopySaysWhatDivides) {
  const std::string program = R"(fusion @vector {
  %n = size
  %k = floor_div %n, 4
  %x = input f32[%n] contiguous
  %v = set %x
  %u = exp %x
  %w = neg %u
  output %v
  output %w
})";
  const std::string steps = "split %u.i0 by 4 outer -> p, q\nsplit %w.i0 by %k -> p, q\nsplit %v.i0 by 4 -> o, t";
  const Agreement open = elements(scheduled(program, steps), "u.p", "w.p");
  EXPECT_FALSE(open.proved);
  EXPECT_TRUE(open.difference);
  const Agreement r = elements(scheduled(program, steps + "\nparallelize %v.t on vectorize"), "u.p", "w.p");
  EXPECT_TRUE(r.proved) << r.verdict;
  EXPECT_TRUE(rests_on(r, "divisibility"));
}

TEST(Agreement, ZeroAtEveryElementIsNotZeroInTheHoles) {
  const Graph g = scheduled(kChain, "split %y.i0 by 64 -> b, c\nsplit %y.b by 8 -> f, g");
  EXPECT_TRUE(elements(g, "y.f", "y.b").proved);
  const Agreement holes = nest(g, "y.f", "y.b");
  EXPECT_TRUE(holes.comparable);
  EXPECT_FALSE(holes.proved);
  EXPECT_EQ(text_of(holes.difference), "%y.g=1 0!=1");
}

TEST(Agreement, SplitsAndMergesNestedToAnyDepth) {
  const Graph g = scheduled(
      kChain,
      "split %y.i0 by 16 -> a, b\nsplit %y.a by 2 -> c, d\n"
      "merge %y.d with %y.b -> e\nsplit %y.e by 32 -> f, h\nsplit %y.h by 4 outer -> i, j\n"
      "split %z.i0 by 32 -> c, e\nsplit %z.e by 8 -> i, j\nsplit %z.c by 1 -> k, l\nmerge %z.l with %z.i -> m");
  for (const auto& [a, b] : {std::pair("y.c", "z.c"),
                             {"y.e", "z.e"},
                             {"y.h", "z.e"},
                             {"y.i", "z.i"},
                             {"y.j", "z.j"},
                             {"z.k", "y.c"},
                             {"z.m", "y.i"},
                             {"y.f", "z.l"}}) {
    const Agreement r = elements(g, a, b);
    EXPECT_TRUE(r.proved) << a << " " << b << ": " << r.verdict;
  }
  EXPECT_FALSE(elements(g, "y.d", "y.b").proved);
  const Agreement r = elements(g, "y.c", "z.c");
  EXPECT_TRUE(rests_on(r, "split-of-split"));
  EXPECT_EQ(r.verdict, "both are `%z.i0 / 32` at every element of %z");
}

TEST(Agreement, OneExtentAndOtherIndices) {
  const Graph g = scheduled(kFive, kFiveInThrees);
  const Agreement r = elements(g, "y.c", "z.c");
  EXPECT_FALSE(r.proved);
  EXPECT_EQ(text_of(r.difference), "%z.i0=3 0!=1");
}

TEST(Agreement, SwizzlesAndResizes) {
  const Graph g = scheduled(kChain,
                            "split %y.i0 by 8 -> a, b\nswizzle %y.a with %y.b -> c, d\nswizzle %y.c with %y.d -> e, f\n"
                            "split %z.i0 by 8 -> a, b\nresize %z.a by 1, 2 -> r");
  EXPECT_TRUE(elements(g, "y.f", "z.b").proved);
  EXPECT_FALSE(elements(g, "y.d", "z.b").proved);
  const Agreement shifted = elements(g, "z.r", "y.a");
  EXPECT_FALSE(shifted.proved);
  EXPECT_EQ(text_of(shifted.difference), "%z.i0=0 1!=0");
}

TEST(Agreement, ASliceIsShifted) {
  const Graph g = parse_graph(R"(fusion @slice {
  %n = size
  %x = input f32[%n, 8] contiguous
  %y = slice %x from [0, 2] to [%n, 8] by [1, 1]
  output %y
})");
  EXPECT_TRUE(elements(g, "x.i0", "y.i0").proved);
  const Agreement r = elements(g, "x.i1", "y.i1");
  EXPECT_EQ(r.a_value, "%y.i1 + 2");
  EXPECT_NE(text_of(r.difference), "none");
}

TEST(Agreement, ReadAlongTwoWays) {
  const Graph g = parse_graph(kSymmetric);
  const Agreement both = elements(g, "x.i0", "y.i0");
  EXPECT_FALSE(both.proved);
  EXPECT_TRUE(both.difference);
  EXPECT_TRUE(elements(g, "t.i1", "x.i0").proved);
}

TEST(Agreement, WhatAReductionSumsDecidesNothing) {
  const Graph g = parse_graph(kRows);
  // %y reads %f directly, and through the sum, which says nothing about the second axis.
  EXPECT_TRUE(elements(g, "f.i1", "y.i1").proved);
  EXPECT_TRUE(elements(g, "x.i0", "s.i0").proved);
  const Agreement none = elements(g, "s.i1", "w.i0");
  EXPECT_FALSE(none.comparable);
  EXPECT_FALSE(none.proved);
  // %y reads one along its rows and the other along its columns.
  EXPECT_TRUE(elements(g, "s.i0", "w.i0").difference);
}

TEST(Agreement, ResultsOfOneOp) {
  const Graph g = scheduled(R"(fusion @moments {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %mean, %m2, %count = welford %x over [1]
  output %mean
  output %m2
})",
                            "split %mean.i1 by 8 -> o, t");
  EXPECT_TRUE(elements(g, "mean.o", "m2.o").proved);
  EXPECT_TRUE(nest(g, "mean.t", "count.t").proved);
}

// The gradients of query, key and value have extents of their own: 3, 5 and 5 rows of 2, 2 and 1.
TEST(Agreement, ResultsOfOneOpWithOtherExtents) {
  const Graph g = scheduled(R"(fusion @gradients {
  %q = input f32[2, 1, 3, 2] contiguous
  %k = input f32[2, 1, 5, 2] contiguous
  %v = input f32[2, 1, 5, 1] contiguous
  %o, %l = sdpfa_fwd %q, %k, %v : f32[2, 1, 3, 1], f32[2, 1, 3]
  %g = input f32[2, 1, 3, 1] contiguous
  %dq, %dk, %dv = sdpfa_bwd %g, %q, %k, %v, %o, %l : f32[2, 1, 3, 2], f32[2, 1, 5, 2], f32[2, 1, 5, 1]
  output %dq
  output %dk
  output %dv
})",
                            "");
  for (const auto& [a, b] : {std::pair("dq.i2", "dk.i2"), std::pair("dv.i3", "dk.i3")}) {
    for (const bool turned : {false, true}) {
      const auto [x, y] = turned ? std::pair(b, a) : std::pair(a, b);
      EXPECT_FALSE(nest(g, x, y).proved) << x << " " << y;
      EXPECT_FALSE(elements(g, x, y).proved) << x << " " << y;
    }
    for (const auto kind : {IdGraphKind::kExact, IdGraphKind::kAlmostExact, IdGraphKind::kLoop})
      EXPECT_FALSE(id_graph(g, kind).same(at(g, a), at(g, b))) << a << " " << b << " " << text(kind);
  }
}

// A broadcast of one element that is split with holes leaves its extent where its part does.
TEST(Agreement, ABroadcastSplitWithHoles) {
  const Graph g = scheduled("fusion @f {\n %x = input f32[1] contiguous\n %y = neg %x\n output %y\n}",
                            "split %y.i0 by 1 -> a, b\nsplit %y.b by 2 -> c, d");
  const Agreement yes = nest(g, "y.i0", "y.b");
  EXPECT_TRUE(yes.proved) << yes.verdict;
  EXPECT_TRUE(id_graph(g, IdGraphKind::kAlmostExact).same(at(g, "y.i0"), at(g, "y.b")));
  EXPECT_TRUE(elements(g, "y.i0", "y.b").proved);
}

TEST(Agreement, ANestWithoutPointsShowsNoDifference) {
  const auto in = [](const std::string& extent) {
    return scheduled(
        "fusion @f {\n %m = size\n %x = input f32[" + extent + ", %m] contiguous\n %y = neg %x\n output %y\n}",
        "split %y.i1 by 1 outer -> a, b");
  };
  EXPECT_NE(text_of(nest(in("2"), "y.a", "y.b").difference), "none");
  EXPECT_EQ(text_of(nest(in("0"), "y.a", "y.b").difference), "none");
  EXPECT_EQ(text_of(elements(in("0"), "y.a", "y.b").difference), "none");
}

TEST(Agreement, ANestReadsWhatItIsMadeOf) {
  const Graph g = scheduled(kChain, "split %z.i0 by 4 -> o, t\ntransform_like %z to [%y]\nsplit %z.t by 3 -> u, v");
  EXPECT_TRUE(nest(g, "z.i0", "y.i0").proved);
  // In the holes, 4*o + (3*u + v) leaves its group of 4, and its quotient is that of the next group.
  const Agreement r = nest(g, "z.o", "y.o");
  EXPECT_FALSE(r.proved);
  EXPECT_TRUE(r.difference);
  EXPECT_TRUE(elements(g, "z.o", "y.o").proved);
}

// An extent of 0 beside the fact that each element has an index: with both, no value is a function of the elements.
TEST(Agreement, AnInputWithoutElementsContradictsTheFacts) {
  const Graph g = scheduled(R"(fusion @f {
    %n = size
    %x = input i16[%n, %n] contiguous
    %k = input index
    %a = maximum %n, 2 : index
    %b = maximum %n, %k : index
    %q = slice %x from [%a, %b] to [%n, %n] by [1, 1] : i16[?, ?]
    %s = prod %q over [0] : i64[?]
    %t = broadcast %s mask [1, 0] : i64[1, ?]
    %z = input i64[1, 0] contiguous
    %y = ne %t, %z : bool[1, ?]
    output %y
  })",
                            "");
  for (const char* a : {"z.i0", "z.i1", "t.i0"})
    for (const char* b : {"x.i0", "x.i1", "q.i0"}) {
      const Agreement r = elements(g, a, b), turned = elements(g, b, a);
      EXPECT_EQ(r.comparable, turned.comparable) << a << " " << b;
      EXPECT_EQ(r.proved, turned.proved) << a << " " << b;
      EXPECT_TRUE(r.comparable) << a << " " << b;
    }
}

}  // namespace
}  // namespace fusebox::testing
