#include "ir/text/parse.h"

#include <gtest/gtest.h>

#include "ir/scalar/numeric.h"
#include "ir/text/print.h"
#include "tests/support/expect_error.h"
#include "tests/unit/ir/row_sum_text.h"

namespace fusebox {
namespace {

using testing::expect_error;

void expect_text_error(ErrorCode code, const std::string& place, std::string_view text) {
  SCOPED_TRACE(std::string(text));
  expect_error(code, place, [&] { parse_module(text); });
}

ConstantBits constant_in(const std::string& literal) {
  const Graph g = parse_graph("kernel {\n%b = input f32[?]\nstore %b at 0, " + literal + "\n}");
  for (OpId op : ops_in_order(g))
    if (g[op].kind == OpKind::kStore) return *g[g[op].operands[2]].constant;
  return {};
}

TEST(Parse, WhatPeopleLeaveOut) {
  const Graph g = parse_graph(
      "// a comment first\n"
      "fusion @row_sum { // and here\n"
      "  %m,\t%n = size\r\n"
      "  %x = input bf16[%m, %n]\n"
      "  %f = cast %x as f32\n"
      "  %y = sum %f over [\n    1  // the inner axis\n  ]\n"
      "  output %y\n"
      "}");
  EXPECT_EQ(print(g), kRowSumText);
  EXPECT_EQ(g.tensor_of(*find_value(g, "y")).logical.size(), 2u);  // the reduced axis stays
}

TEST(Parse, TypesOfOpsBelowMathLevelFollowToo) {
  const Graph g = parse_graph(
      "kernel @k {\n  %x = input f32[?] global\n  %i = thread_index on block.x\n  %j = add %i, 1\n  %v = load %x at "
      "%j\n  %w = exp %v\n}");
  EXPECT_EQ(g[*find_value(g, "w")].dtype, Dtype::kFloat);
  EXPECT_EQ(g[*find_value(g, "j")].dtype, Dtype::kIndex);
  EXPECT_EQ(parse_graph(print(g)), g);
}

TEST(Parse, AStepsEnumeratorMayStandAlone) {
  EXPECT_EQ(parse_step("parallelize %y.t block.x"), parse_step("parallelize %y.t on block.x"));
  EXPECT_EQ(parse_steps("\n split %y.i0 by %k outer -> a, b // why\n merge %y.a with %y.b -> c\n").size(), 2u);
}

TEST(Parse, Literals) {
  EXPECT_EQ(constant_in("0.1_f32").low, 0x3dcccccdu);
  EXPECT_EQ(constant_in("16777217.0_f32").low, 0x4b800000u);
  EXPECT_EQ(constant_in("-0.0_f16").low, 0x8000u);
  EXPECT_EQ(constant_in("1_f32").low, 0x3f800000u);
  EXPECT_EQ(constant_in("0x7fc00001_f32").low, 0x7fc00001u);
  EXPECT_EQ(constant_in("-inf_bf16").low, 0xff80u);
  EXPECT_EQ(constant_in("nan").low, 0x7ff8000000000000u);
  EXPECT_EQ(constant_in("-9223372036854775808").low, uint64_t{1} << 63);
  EXPECT_EQ(constant_in("18446744073709551615_u64").low, ~uint64_t{0});
  EXPECT_EQ(constant_in("true").low, 1u);
  EXPECT_EQ(constant_in("c64(1.5, nan)"), (ConstantBits{0x3fc00000, 0x7fc00000}));
  for (const char* bad :
       {"256_u8", "-1_u8", "1.5_i32", "1e999", "70000.0_f16", "500.0_f8e4m3", "inf_f8e4m3", "nan_f4e2m1", "-1.0_f8e8m0",
        "0x10000_f16", "1_f33", "5f32", "1_f4e2m1x2", "1.0_c64", "-nan", "0x", "1_", "c64(1.0_f32, 2.0)", "12_bool"})
    expect_text_error(ErrorCode::kBadLiteral, std::string(bad).starts_with("c64") ? "3:20" : "3:16",
                      "kernel {\n%b = input f32[?]\nstore %b at 0, " + std::string(bad) + "\n}");
}

TEST(Parse, EveryErrorNamesItsPlace) {
  expect_text_error(ErrorCode::kSyntax, "1:1", "nonsense");
  expect_text_error(ErrorCode::kSyntax, "2:3", "fusion {\n  $\n}");
  expect_text_error(ErrorCode::kSyntax, "2:6", "fusion {\n  %\"a\n}");
  expect_text_error(ErrorCode::kSyntax, "1:9", "fusion {");
  expect_text_error(ErrorCode::kSyntax, "2:8", "fusion {\n  %n = 5\n}");
  expect_text_error(ErrorCode::kBadAttribute, "2:13", "fusion {\n  %n = size extra\n}");
  expect_text_error(ErrorCode::kUnknownOp, "2:8", "fusion {\n  %n = sizes\n}");
  expect_text_error(ErrorCode::kUnsupportedOp, "3:8", "fusion {\n  %n = size\n  %y = nv_block_quantize %n, %n\n}");
  expect_text_error(ErrorCode::kUnknownName, "2:10", "fusion {\n  output %x\n}");
  expect_text_error(ErrorCode::kDuplicateName, "3:3", "fusion {\n  %n = size\n  %n = size\n}");
  expect_text_error(ErrorCode::kOperandCount, "3:14", "fusion {\n  %x = input f32[5]\n  %y = add %x\n}");
  expect_text_error(ErrorCode::kOperandCount, "3:3", "fusion {\n  %x = input f32[5]\n  %y, %z = exp %x\n}");
  expect_text_error(ErrorCode::kOperandCount, "3:14",
                    "fusion {\n  %x = input f32[5]\n  %y = slice %x from [0] to [1, 2] by [1]\n}");
  expect_text_error(ErrorCode::kBadAttribute, "3:15", "fusion {\n  %x = input f32[5]\n  %y = exp %x over [1]\n}");
  expect_text_error(ErrorCode::kBadAttribute, "3:24",
                    "fusion {\n  %x = input f32[5]\n  %y = sum %x over [0] over [0]\n}");
  expect_text_error(ErrorCode::kBadAxis, "3:3", "fusion {\n  %x = input f32[5]\n  %y = sum %x over [3]\n}");
  expect_text_error(ErrorCode::kTypeAnnotation, "3:17", "fusion {\n  %x = input f32[5]\n  %y = exp %x : f32[6]\n}");
  expect_text_error(ErrorCode::kTypeAnnotation, "3:17", "fusion {\n  %x = input f32[5]\n  %y = exp %x : bf16[5]\n}");
  expect_text_error(ErrorCode::kNotDominated, "2:3", "fusion {\n  %y = exp %x\n  %x = input f32[5]\n}");
  expect_text_error(ErrorCode::kNotDominated, "2:3", "fusion {\n  %y = exp %y\n}");
  expect_text_error(ErrorCode::kWrongKind, "3:18", "fusion {\n  %x = input f32[5]\n  %y = input f32[%x]\n}");
  expect_text_error(ErrorCode::kUnknownName, "2:27", "scheduled {\n  %x = input f32[i0 iter, o]\n}");
  expect_text_error(ErrorCode::kDuplicateName, "2:29", "scheduled {\n  %x = input f32[i0 iter 5, i0 iter 5]\n}");
  expect_text_error(ErrorCode::kUnknownName, "2:33", "scheduled {\n  %x = input f32[i0 iter 5 like %y.i0]\n}");
  expect_text_error(ErrorCode::kSyntax, "3:1",
                    "scheduled {\n  %x = input f32[i0 iter 5] {\na iter = split i0 by 2\n}\n}");
  expect_text_error(ErrorCode::kUnknownName, "2:1", "steps @f {\nexplode %x\n}");
  expect_text_error(ErrorCode::kSyntax, "2:13", "inputs @f {\n%x = f32[5] sometimes\n}");
  expect_text_error(ErrorCode::kSyntax, "1:14", "kernel index 48 {\n}");
}

TEST(Parse, UnnamedDimensionsAmongNamedOnesHaveTheirNames) {
  std::string text = "scheduled {\n  %x = input f32[5, 7] {\n    domains [";
  for (int i = 0; i < 40; ++i) text += "d" + std::to_string(i) + " iter 3, ";
  const Graph g = parse_graph(text + "e iter 3]\n    loop [i1 block.x, i0, d7]\n  }\n}");
  EXPECT_EQ(g[g.tensors[0].loop[0]].parallel, ParallelType::kBlockX);
  EXPECT_EQ(g.tensors[0].loop[1], g.tensors[0].logical[0]);
  EXPECT_EQ(parse_graph(print(g)), g);
}

TEST(Parse, DepthIsLimited) {
  std::string text = "kernel {\n  %p = input bool\n";
  for (int i = 0; i < 100000; ++i) text += "if %p {\n";
  expect_error(ErrorCode::kTooLarge, "67:7", [&] { parse_module(text); });
  // The chain of transforms is as long as the limit allows; comparing it must not recurse deeply.
  std::string chain = "scheduled {\n  %x = input f32[i0 iter 5] {\n";
  std::string last = "i0";
  for (size_t i = 0; i < kMaxTransformsPerTensor; ++i) {
    const std::string n = std::to_string(i);
    chain += "o" + n + " iter, t" + n + " iter = split " + last + " by 2\n";
    last = "o" + n;
  }
  const Graph g = parse_graph(chain + "}\n}");
  EXPECT_EQ(parse_graph(print(g)), g);
  expect_error(ErrorCode::kTooLarge, "1027:1",
               [&] { parse_module(chain + "a iter, b iter = split " + last + " by 2\n}\n}"); });
}

TEST(Parse, ANameThatInferenceTookGivesWay) {
  // The slice's extent gets a fresh name, which the text defines later.
  const std::string program =
      "fusion {\n  %n = size\n  %k = input index\n  %x = input f32[%n]\n  %s = slice %x from [%k] to [%n] by [1]\n  %e "
      "= exp %s\n";
  const Graph first = parse_graph(program + "  output %e\n}");
  std::string taken;
  for (OpId op : ops_in_order(first))
    if (first[op].kind == OpKind::kSub) taken = first[first[op].results[0]].name;
  ASSERT_NE(taken, "");
  const Graph g = parse_graph(program + "  %" + taken + " = neg %e\n  output %" + taken + "\n}");
  EXPECT_EQ(g[g[*find_value(g, taken)].def].kind, OpKind::kNeg);
  EXPECT_EQ(parse_graph(print(g)), g);
}

}  // namespace
}  // namespace fusebox
