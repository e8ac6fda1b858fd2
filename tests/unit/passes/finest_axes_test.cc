// Which axes `finest_axes` splits and merges, where reshapes stay because something holds an axis, and where nothing changes.
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/rewrite/rewrite.h"

namespace fusebox {
namespace {

// The ops after the pass, without dead ones and types, or "unchanged".
std::string refined(const std::string& body) {
  Graph g = main_graph(parse_module("fusion @f {\n" + body + "}\n"));
  const Graph before = g;
  EXPECT_FALSE(finest_axes(g, {.limit = 0}));
  if (!finest_axes(g)) {
    EXPECT_TRUE(g == before);
    return "unchanged";
  }
  EXPECT_EQ(find_error(g), std::nullopt);
  Graph again = g;
  EXPECT_FALSE(finest_axes(again)) << print(again);
  dead_code(g);
  EXPECT_EQ(find_error(g), std::nullopt);
  EXPECT_FALSE(finest_axes(g));
  std::string ops;
  for (std::string text = print(g); !text.empty();) {
    const size_t end = text.find('\n');
    const std::string line = text.substr(0, end);
    if (line.starts_with("  ")) ops += line.substr(2, line.find(" : ") - 2) + "\n";
    text = end == text.npos ? "" : text.substr(end + 1);
  }
  return ops;
}

size_t count(const std::string& text, std::string_view word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(FinestAxes, GroupNorm) {
  EXPECT_EQ(refined(R"(  %n, %c, %h = size
  %x = input bf16[%n, %c, %h]
  %w = input bf16[%c]
  %t = cast %x as f32
  %cg = floor_div %c, 32
  %g = reshape %t to [%n, 32, %cg, %h]
  %m = sum %g over [2, 3]
  %b = broadcast %m mask [0, 0, 1, 1]
  %d = sub %g, %b
  %r = reshape %d to [%n, %c, %h]
  %wb = broadcast %w mask [1, 0, 1]
  %z = mul %r, %wb
  output %z
)"),
            R"(%n, %c, %h = size
%cg = floor_div %c, 32
%x = input bf16[%n, %c, %h] contiguous
%w = input bf16[%c] contiguous
%x_finest = reshape %x to [%n, 32, %cg, %h]
%t_finest = cast %x_finest as f32
%m = sum %t_finest over [2, 3]
%b = broadcast %m mask [0, 0, 1, 1]
%d = sub %t_finest, %b
%w_finest = reshape %w to [32, %cg]
%wb_finest = broadcast %w_finest mask [1, 0, 0, 1]
%z_finest = mul %d, %wb_finest
%z = reshape %z_finest to [%n, %c, %h]
output %z
)");
}

TEST(FinestAxes, GroupNormOfInnerChannels) {
  const std::string text = refined(R"(  %n, %h, %c = size
  %x = input f32[%n, %h, %c]
  %cg = floor_div %c, 32
  %g = reshape %x to [%n, %h, 32, %cg]
  %m = sum %g over [1, 3]
  %b = broadcast %m mask [0, 1, 0, 1]
  %d = sub %g, %b
  %r = reshape %d to [%n, %h, %c]
  %z = relu %r
  output %z
)");
  EXPECT_EQ(count(text, "reshape"), 2u) << text;
  EXPECT_NE(text.find("reshape %x to [%n, %h, 32, %cg]"), text.npos) << text;
  EXPECT_NE(text.find("%z = reshape %z_finest to [%n, %h, %c]"), text.npos) << text;
}

// The axis that another op reduces as a whole becomes two axes, in front of the blocks' own maximum.
TEST(FinestAxes, BlocksOfARowThatIsSummed) {
  EXPECT_EQ(refined(R"(  %m, %n = size
  %x = input f32[%m, %n]
  %nb = floor_div %n, 128
  %s = sum %x over [1]
  %sb = broadcast %s mask [0, 1]
  %y = mul %x, %sb
  %r = reshape %y to [%m, %nb, 128]
  %a = max %r over [2]
  output %a
)"),
            R"(%m, %n = size
%nb = floor_div %n, 128
%x = input f32[%m, %n] contiguous
%x_finest = reshape %x to [%m, %nb, 128]
%s = sum %x_finest over [1, 2]
%sb_finest = broadcast %s mask [0, 1, 1]
%y_finest = mul %x_finest, %sb_finest
%a = max %y_finest over [2]
output %a
)");
}

TEST(FinestAxes, BlocksOfRowsAndColumns) {
  const std::string text = refined(R"(  %m, %n = size
  %mb = floor_div %m, 128
  %nb = floor_div %n, 128
  %x = input f32[%m, %n]
  %a = abs %x
  %r = reshape %a to [%mb, 128, %nb, 128]
  %s = max %r over [1, 3]
  %sb = broadcast %s mask [0, 1, 0, 1]
  %q = truediv %r, %sb
  %y = reshape %q to [%m, %n]
  output %y
  output %s
)");
  EXPECT_EQ(count(text, "reshape"), 2u) << text;
  EXPECT_NE(text.find("%x_finest = reshape %x to [%mb, 128, %nb, 128]"), text.npos) << text;
  EXPECT_NE(text.find("%y = reshape %q to [%m, %n]"), text.npos) << text;
}

// Heads are split, normalised and moved. Each third of the input is a slice of a part that nothing refines.
TEST(FinestAxes, HeadsThatSlicesAndPermutesRead) {
  const std::string text = refined(R"(  %s, %c, %d = size
  %c3 = floor_div %c, 3
  %h = floor_div %c3, %d
  %x = input bf16[%s, %c]
  %w = input bf16[%d]
  %f = cast %x as f32
  %r = reshape %f to [%s, 3, %h, %d]
  %q = slice %r from [0, 0, 0, 0] to [%s, 1, %h, %d] by [1, 1, 1, 1]
  %v = squeeze %q over [1]
  %m = sum %v over [2]
  %mb = broadcast %m mask [0, 0, 1]
  %y = mul %v, %mb
  %p = permute %y dims [1, 0, 2]
  output %p
)");
  EXPECT_EQ(count(text, "reshape"), 1u) << text;
  EXPECT_NE(text.find("%x_finest = reshape %x to [%s, 3, %h, %d]"), text.npos) << text;
}

TEST(FinestAxes, AveragePooling) {
  EXPECT_EQ(refined(R"(  %n, %h, %w = size
  %hp = floor_div %h, 2
  %wp = floor_div %w, 2
  %x = input f32[%n, %h, %w]
  %y = neg %x
  %r = reshape %y to [%n, %hp, 2, %wp, 2]
  %s = sum %r over [2, 4]
  %m = mul %s, 0.25
  output %m
)"),
            R"(%n, %h, %w = size
%hp = floor_div %h, 2
%wp = floor_div %w, 2
%x = input f32[%n, %h, %w] contiguous
%x_finest = reshape %x to [%n, %hp, 2, %wp, 2]
%y_finest = neg %x_finest
%s = sum %y_finest over [2, 4]
%m = mul %s, 0.25
output %m
)");
}

TEST(FinestAxes, AMergedAxisThatIsReduced) {
  EXPECT_EQ(refined(R"(  %n, %a, %b = size
  %x = input f32[%n, %a, %b]
  %r = reshape %x to [%n, -1]
  %s = sum %r over [1]
  %t = broadcast %s mask [0, 1]
  %y = sub %r, %t
  output %y
)"),
            R"(%n, %a, %b = size
%v6 = mul %a, %b
%x = input f32[%n, %a, %b] contiguous
%s = sum %x over [1, 2]
%t_finest = broadcast %s mask [0, 1, 1]
%y_finest = sub %x, %t_finest
%y = reshape %y_finest to [%n, %v6]
output %y
)");
}

constexpr std::string_view kSums = R"(  %p = sum %r over [2]
  output %p
)";

TEST(FinestAxes, UnlikeSplitsHoldAnAxis) {
  const std::string x = "  %n, %c = size\n  %x = input f32[%n, %c]\n  %y = neg %x\n";
  const std::string r = "  %c4 = floor_div %c, 4\n  %r = reshape %y to [%n, 4, %c4]\n" + std::string(kSums);
  EXPECT_NE(refined(x + r), "unchanged");
  EXPECT_EQ(
      refined(x + r +
              "  %c8 = floor_div %c, 8\n  %q = reshape %y to [%n, 8, %c8]\n  %k = sum %q over [1]\n  output %k\n"),
      "unchanged");
  // The same extents in two reshapes.
  const std::string twice = refined(x + r + "  %q = reshape %x to [%n, 4, %c4]\n  %k = add %q, %r\n  output %k\n");
  EXPECT_EQ(count(twice, "reshape"), 1u) << twice;
}

TEST(FinestAxes, OpsThatHoldAnAxis) {
  const std::string x = "  %n, %c = size\n  %x = input f32[%n, %c]\n  %c4 = floor_div %c, 4\n";
  const std::string r = "  %r = reshape %y to [%n, 4, %c4]\n" + std::string(kSums);
  EXPECT_NE(refined(x + "  %y = neg %x\n" + r), "unchanged");
  // It cuts the axis, joins it, or keeps an element by its place.
  EXPECT_EQ(refined("  %n, %l, %c = size\n  %x = input f32[%n, %l]\n  %z = neg %x\n"
                    "  %s = slice %z from [0, 1] to [%n, %c] by [1, 1]\n  %y = neg %s\n"
                    "  %r = reshape %y to [%n, 4, -1]\n" +
                    std::string(kSums)),
            "unchanged");
  EXPECT_EQ(refined(x + "  %y = neg %x\n  %k = cat [%y, %x] axis 1\n  output %k\n" + r), "unchanged");
  EXPECT_EQ(refined(x + "  %y = triu %x\n" + r), "unchanged");
  EXPECT_EQ(
      refined(x + "  %y, %i = topk %x, 2 axis 1\n  %z = neg %x\n  %r = reshape %z to [%n, 4, %c4]\n  output %y\n" +
              std::string(kSums)),
      "unchanged");
  // Axes beside the one that is cut are free.
  EXPECT_NE(
      refined(x + "  %k = cat [%x, %x] axis 0\n  %y = neg %k\n  %n2 = mul %n, 2\n  %r = reshape %y to [%n2, 4, %c4]\n" +
              std::string(kSums)),
      "unchanged");
}

// What is cut out of an input is split where it is made. Both halves have the axes of their product.
TEST(FinestAxes, HalvesOfAnInput) {
  EXPECT_EQ(refined(R"(  %n, %c = size
  %h = floor_div %c, 2
  %nb = floor_div %h, 128
  %x = input f32[%n, %c]
  %a = slice %x from [0, 0] to [%n, %h] by [1, 1]
  %b = slice %x from [0, %h] to [%n, %c] by [1, 1]
  %e = exp %a
  %y = mul %e, %b
  %r = reshape %y to [%n, %nb, 128]
  %m = max %r over [2]
  output %m
)"),
            R"(%n, %c = size
%h = floor_div %c, 2
%nb = floor_div %h, 128
%v10 = sub %h, %c
%v12 = sub 0, %h
%v15 = sub %c, %h
%x = input f32[%n, %c] contiguous
%a = slice %x from [0, 0] to [%n, %h] by [1, 1]
%a_finest = reshape %a to [%n, %nb, 128]
%b = slice %x from [0, %h] to [%n, %c] by [1, 1]
%b_finest = reshape %b to [%n, %nb, 128]
%e_finest = exp %a_finest
%y_finest = mul %e_finest, %b_finest
%m = max %y_finest over [2]
output %m
)");
  // A slice of a slice.
  const std::string twice = refined(R"(  %n, %c = size
  %h = floor_div %c, 2
  %q = floor_div %h, 2
  %nb = floor_div %q, 128
  %x = input f32[%n, %c]
  %a = slice %x from [0, 0] to [%n, %h] by [1, 1]
  %b = slice %a from [0, %q] to [%n, %h] by [1, 1]
  %e = exp %b
  %r = reshape %e to [%n, %nb, 128]
  %m = max %r over [2]
  output %m
)");
  EXPECT_EQ(count(twice, "slice"), 2u) << twice;
  EXPECT_NE(twice.find("%b_finest = reshape %b"), twice.npos) << twice;
  EXPECT_EQ(count(twice, "reshape"), 1u) << twice;
}

TEST(FinestAxes, OverwrittenInputsHoldTheirAxes) {
  const std::string x = "  %n, %c = size\n  %x = input f32[%n, %c]\n  %c4 = floor_div %c, 4\n  %y = neg %x\n";
  const std::string r = "  %r = reshape %y to [%n, 4, %c4]\n" + std::string(kSums);
  EXPECT_NE(refined(x + r + "  output %y\n"), "unchanged");
  EXPECT_EQ(refined(x + r + "  output %y alias %x\n"), "unchanged");
}

// Of split axes nobody knows whether they are broadcasts, and so of what is computed of them.
TEST(FinestAxes, WhatMayBeABroadcastOverwritesNothing) {
  const std::string ops = R"(  %n, %k = size
  %x = input f32[2, %n]
  %old = input f32[%k]
  %n8 = floor_div %n, 8
  %y = neg %x
  %t = max %y over [1]
  %r = reshape %y to [2, 8, %n8]
  %s = sum %r over [2]
  output %s
)";
  EXPECT_NE(refined(ops + "  output %t\n"), "unchanged");
  EXPECT_EQ(refined(ops + "  output %t alias %old\n"), "unchanged");
}

TEST(FinestAxes, WithoutAReductionNothingMoves) {
  EXPECT_EQ(refined(R"(  %n, %c = size
  %c4 = floor_div %c, 4
  %x = input f32[%n, %c]
  %y = neg %x
  %r = reshape %y to [%n, 4, %c4]
  %z = relu %r
  output %z
)"),
            "unchanged");
  // Both reshapes are where they belong.
  EXPECT_EQ(refined(R"(  %n, %c = size
  %c4 = floor_div %c, 4
  %x = input f32[%n, %c]
  %r = reshape %x to [%n, 4, %c4]
  %s = sum %r over [2]
  %b = broadcast %s mask [0, 0, 1]
  %d = sub %r, %b
  %z = reshape %d to [%n, %c]
  output %z
)"),
            "unchanged");
}

}  // namespace
}  // namespace fusebox
