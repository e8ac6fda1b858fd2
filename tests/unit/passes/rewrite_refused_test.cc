// A rewrite is not applied where inference would refuse the program that it makes.
#include <gtest/gtest.h>

#include "ir/infer/infer.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/rewrite/rewrite.h"

namespace fusebox {
namespace {

Graph parsed(const std::string& text) { return main_graph(parse_module(text)); }

std::string text_of(const Graph& g) {
  Module m;
  m.graphs = {g};
  return print(m);
}

// The program after the pass: its text is a program, a second run changes nothing, and one change after another ends
// there too.
Graph rewritten(const Graph& g, bool (*pass)(Graph&, const RewriteOptions&)) {
  Graph after = g, again, slowly = g;
  EXPECT_TRUE(pass(after, {}));
  EXPECT_NO_THROW(parse_module(text_of(after))) << text_of(after);
  again = after;
  EXPECT_FALSE(pass(again, {}));
  EXPECT_EQ(text_of(again), text_of(after));
  for (int i = 0; i < 100 && pass(slowly, {.limit = 1}); ++i) EXPECT_NO_THROW(parse_module(text_of(slowly)));
  EXPECT_EQ(text_of(slowly), text_of(after));
  return after;
}

bool reads(const Graph& g, std::string_view name, std::string_view operand) {
  for (OpId op : g[Graph::body()].ops)
    for (ValueId v : g[op].results)
      if (g[v].name == name)
        for (ValueId o : g[op].operands)
          if (o && g[o].name == operand) return true;
  return false;
}

// A polynomial has 16 terms at most, and one more beside it is refused. With %zero folded, %rows · %columns is one of 16.
constexpr std::string_view kLongProduct = R"(fusion @f {
  %n = input index
  %length = size
  %x = input f32[%length]
  %k = input index
  %a = input index
  %b = input index
  %c = input index
  %d = input index
  %e = input index
  %f = input index
  %zero = floor_div 0, %k
  %rows0 = add %zero, %a
  %rows1 = add %rows0, %b
  %rows2 = add %rows1, %c
  %rows = add %rows2, 3
  %columns0 = add %n, %d
  %columns1 = add %columns0, %e
  %columns = add %columns1, %f
  %six = mul 2, 3
  %w = full 1.0_f32 of [%six]
  output %w
  %elements = mul %rows, %columns
  %y = full 1.0_f32 of [%elements]
  %z = )";

TEST(RewritesRefused, AScalarStaysWhereAPolynomialWouldGrowTooLarge) {
  const Graph g = parsed(std::string(kLongProduct) + "slice %y from [0] to [1] by [1]\n  output %z\n}\n");
  const Graph after = rewritten(g, fold_constants);
  EXPECT_TRUE(reads(after, "rows0", "zero")) << text_of(after);
  EXPECT_FALSE(reads(after, "w", "six")) << text_of(after);
}

// A cat adds polynomials that are too long together as scalars.
TEST(RewritesRefused, AScalarIsReplacedWhereTheReaderAddsLongPolynomials) {
  const Graph g = parsed(std::string(kLongProduct) + "cat [%y, %x] axis 0\n  output %z\n}\n");
  const Graph after = rewritten(g, fold_constants);
  EXPECT_FALSE(reads(after, "rows0", "zero")) << text_of(after);
  EXPECT_FALSE(reads(after, "w", "six")) << text_of(after);
}

TEST(RewritesRefused, OtherScalarsAreReplacedAllTheSame) {
  const Graph g = parsed(R"(fusion @f {
  %n = size
  %x = input i8[%n]
  %k = input index
  %zero = floor_div 0, %k
  %large = add %zero, 300
  %other = floor_div 0, %n
  %small = add %other, 30
  %y = add %x, %large
  %z = add %y, %small
  %w = full 1.0_f32 of [%small]
  output %z
  output %w
}
)");
  const Graph after = rewritten(g, fold_constants);
  EXPECT_TRUE(reads(after, "y", "large")) << text_of(after);
  EXPECT_TRUE(reads(after, "large", "zero")) << text_of(after);
  EXPECT_FALSE(reads(after, "z", "small")) << text_of(after);
  EXPECT_FALSE(reads(after, "w", "small")) << text_of(after);
}

TEST(RewritesRefused, ABroadcastIsNotMadeWhereAnOpDoesNotStretchIt) {
  const Graph g = parsed(R"(fusion @f {
  %n = size
  %x = input f32[%n, 2]
  %v = input f32[6]
  %k = input index
  %zero = floor_div 0, %k
  %one = add %zero, 1
  %t = reshape %v to [%one, 6]
  %u = neg %t
  %c = cat [%x, %u] axis 1
  output %c
  %six = mul 2, 3
  %w = full 1.0_f32 of [%six]
  output %w
}
)");
  const Graph after = rewritten(g, fold_constants);
  EXPECT_TRUE(reads(after, "t", "one")) << text_of(after);
  EXPECT_FALSE(reads(after, "w", "six")) << text_of(after);
}

TEST(RewritesRefused, AScalarIsReplacedWhereNothingIsRefused) {
  const Graph g = parsed(std::string(kLongProduct) + "neg %y\n  output %z\n}\n");
  Graph after = g;
  EXPECT_TRUE(fold_constants(after, {}));
  EXPECT_FALSE(reads(after, "rows0", "zero")) << text_of(after);
  EXPECT_NO_THROW(parse_module(text_of(after)));
}

}  // namespace
}  // namespace fusebox
