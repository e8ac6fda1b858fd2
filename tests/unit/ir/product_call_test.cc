// Which ops are one call of a library, and why others are not.
#include "ir/infer/product_call.h"

#include <gtest/gtest.h>

#include "ir/canonical/canonical.h"
#include "ir/text/parse.h"

namespace fusebox {
namespace {

Graph fusion_of(const std::string& body, const std::string& dtype = "bf16") {
  return canonical_order(
      main_graph(parse_module("fusion @f {\n  %m, %n, %k = size\n  %x = input " + dtype + "[%m, %k]\n  %w = input " +
                              dtype + "[%n, %k]\n  %b = input " + dtype + "[%n]\n" + body + "}")));
}

// The epilogue of all ops together; empty if they are no call.
std::string epilogue(const Graph& g) {
  const auto call = product_call(g);
  return call ? epilogue_text(g, *call) : std::string();
}

// Why the product %y stands alone.
std::string why(const Graph& g) {
  EXPECT_FALSE(product_call(g));
  return why_no_epilogue(g, g[*find_value(g, "y")].def, uses(g));
}

std::string gelu_of(const std::string& x, const std::string& precision = " fast") {
  return "  %x2 = mul " + x + ", " + x + "\n  %x3 = mul %x2, " + x + "\n  %c = mul %x3, 0.044715_f32\n  %in = add " +
         x + ", %c\n  %arg = mul %in, 0.7978846_f32\n  %t = tanh %arg" + precision +
         "\n  %t1 = add %t, 1.0_f32\n  %h = mul " + x + ", 0.5_f32\n  %g = mul %h, %t1\n";
}

const std::string kWide = "  %y = linear %x, %w bias %b\n  %f = cast %y as f32\n";

TEST(ProductCall, Relu) {
  const Graph g = fusion_of("  %y = linear %x, %w bias %b\n  %z = relu %y\n  output %z\n");
  EXPECT_EQ(epilogue(g), "bias relu");
  const ProductCall c = *product_call(g);
  EXPECT_EQ(g[c.product].kind, OpKind::kLinear);
  EXPECT_EQ(g[c.bias].name, "b");
  EXPECT_EQ(c.activation, Activation::kRelu);
  EXPECT_EQ(g[c.result].name, "z");
  EXPECT_EQ(why_no_epilogue(g, c.product, uses(g)), "");
}

TEST(ProductCall, OneOpIsNone) { EXPECT_EQ(epilogue(fusion_of("  %y = linear %x, %w bias %b\n  output %y\n")), ""); }

TEST(ProductCall, ScaleBiasAndCastsAroundThem) {
  const std::string body = R"(
  %y = linear %x, %w
  %f = cast %y as f32
  %s = mul %f, 0.5_f32
  %bf = cast %b as f32
  %bb = broadcast %bf mask [1, 0]
  %a = add %bb, %s
  %r = relu %a
  %z = cast %r as bf16
  output %z
)";
  const Graph g = fusion_of(body);
  EXPECT_EQ(epilogue(g), "scale bias relu");
  const ProductCall c = *product_call(g);
  EXPECT_EQ(g[c.bias].name, "b");
  EXPECT_TRUE(c.scale && g[c.scale].constant);
}

TEST(ProductCall, Gelu) {
  EXPECT_EQ(epilogue(fusion_of(kWide + gelu_of("%f") + "  %z = cast %g as bf16\n  output %z\n")), "bias gelu");
  EXPECT_EQ(epilogue(fusion_of("  %y = linear %x, %w bias %b\n" + gelu_of("%y") + "  output %g\n", "f32")),
            "bias gelu");
  EXPECT_EQ(why(fusion_of(kWide + gelu_of("%f", "") + "  %z = cast %g as bf16\n  output %z\n")),
            "%t is exact, and libraries approximate tanh; `precision of [%t] fast` allows it");
}

TEST(ProductCall, ACastAlone) {
  EXPECT_EQ(epilogue(fusion_of("  %y = linear %x, %w\n  %f = cast %y as f32\n  output %f\n")), "cast");
  EXPECT_EQ(why(fusion_of(kWide + "  output %f\n")), "%f is of f32, and the library stores an epilogue in bf16");
}

TEST(ProductCall, TheBiasOfAnUnbiasedProduct) {
  EXPECT_EQ(epilogue(fusion_of("  %y = linear %x, %w\n  %bb = broadcast_in_dim %b to [%m, %n] dims [1]\n"
                               "  %z = add %y, %bb\n  %r = relu %z\n  output %r\n")),
            "bias relu");
}

// The result of relu is rounded to the same number before and behind it.
TEST(ProductCall, ReluOfRoundedNumbers) {
  EXPECT_EQ(epilogue(fusion_of("  %y = linear %x, %w\n  %s = mul %y, 2.0_bf16\n  %z = relu %s\n  output %z\n")),
            "scale relu");
  EXPECT_EQ(epilogue(fusion_of(kWide + "  %s = cast %f as bf16\n  %z = relu %s\n  output %z\n")), "bias relu");
}

// It rounds nothing, so what stands behind it reads the product's own numbers still.
TEST(ProductCall, ACastToTheSameDtype) {
  const std::string y = "  %y = linear %x, %w bias %b\n", plain = "  %y = linear %x, %w\n";
  EXPECT_EQ(epilogue(fusion_of(y + "  %c = cast %y as bf16\n  %z = relu %c\n  output %z\n")), "bias relu");
  EXPECT_EQ(epilogue(fusion_of(y + "  %z = relu %y\n  %c = cast %z as bf16\n  output %c\n")), "bias relu");
  EXPECT_EQ(epilogue(fusion_of(plain + "  %c = cast %y as bf16\n  %f = cast %c as f32\n  output %f\n")), "cast");
  EXPECT_EQ(epilogue(fusion_of(plain + "  %c = cast %y as bf16\n  %z = mul %c, 2.0_bf16\n  output %z\n")), "scale");
  EXPECT_EQ(epilogue(fusion_of(kWide + "  %same = cast %f as f32\n" + gelu_of("%same") +
                               "  %d = cast %g as f32\n  %z = cast %d as bf16\n  output %z\n")),
            "bias gelu");
  // Two roundings count, with a cast between them as without.
  EXPECT_FALSE(product_call(fusion_of(plain + "  %s = mul %y, 2.0_bf16\n  %c = cast %s as bf16\n"
                                              "  %bb = broadcast %b mask [1, 0]\n  %z = add %c, %bb\n  output %z\n")));
  // A copy of the product is no epilogue.
  EXPECT_FALSE(product_call(fusion_of(plain + "  %c = cast %y as bf16\n  output %c\n")));
}

TEST(ProductCall, WhatIsNone) {
  const std::string y = "  %y = linear %x, %w bias %b\n", plain = "  %y = linear %x, %w\n";
  EXPECT_EQ(why(fusion_of(y + "  %z = relu %y\n  output %z\n  output %y\n")), "%y is stored too, for other readers");
  EXPECT_EQ(why(fusion_of(y + "  %z = relu %y\n  %u = neg %y\n  output %z\n  output %u\n")),
            "%y is read by %z and by %u");
  EXPECT_EQ(why(fusion_of(y + "  %z = mul %y, 2.0_bf16\n  output %z\n")), "%z scales what has a bias");
  EXPECT_EQ(why(fusion_of(y + "  %z = exp %y\n  output %z\n")),
            "%z is none of scale, bias, relu, gelu by tanh and cast");
  EXPECT_EQ(why(fusion_of(plain + "  %z = mul %y, 0.0_bf16\n  output %z\n")),
            "%z multiplies by 0 or by no finite number");
  EXPECT_EQ(why(fusion_of(plain + "  %z = mul %y, %y\n  output %z\n")), "%z multiplies by a tensor");
  EXPECT_EQ(why(fusion_of("  %y = linear %x, %w\n  %z = relu %y\n  output %z\n", "f64")),
            "%y is of f64, and epilogues are of f16, bf16 and f32");
  EXPECT_EQ(why(fusion_of(y + "  %s = sum %y over [0]\n  output %s\n")),
            "%s is none of scale, bias, relu, gelu by tanh and cast");
  EXPECT_EQ(why(fusion_of(plain + "  %z = add %y, %y\n  output %z\n")), "%z adds the product to itself");
}

// Two roundings to 16 bits stand between, and a call would leave out both.
TEST(ProductCall, ARoundingThatCounts) {
  const Graph g = fusion_of(
      "  %y = linear %x, %w\n  %s = mul %y, 2.0_bf16\n  %bb = broadcast %b mask [1, 0]\n"
      "  %z = add %s, %bb\n  output %z\n");
  EXPECT_FALSE(product_call(g));
}

TEST(ProductCall, OnlyRanksWithRowsAndAMatrix) {
  const std::string head = "fusion @f {\n  %a, %m, %n, %k = size\n";
  const auto of = [&](const std::string& body) { return epilogue(main_graph(parse_module(head + body))); };
  EXPECT_EQ(of("  %x = input f16[%a, %m, %k]\n  %w = input f16[%k, %n]\n  %y = matmul %x, %w\n  %z = relu %y\n"
               "  output %z\n}"),
            "relu");
  EXPECT_EQ(of("  %x = input f16[%a, %m, %k]\n  %w = input f16[%a, %k, %n]\n  %y = matmul %x, %w\n  %z = relu %y\n"
               "  output %z\n}"),
            "");
  EXPECT_EQ(of("  %x = input f16[%m, %k]\n  %w = input f16[%k]\n  %y = matmul %x, %w\n  %z = relu %y\n  output %z\n}"),
            "");
}

// A bias that is longer than the product has rows makes another shape.
TEST(ProductCall, ABiasThatMakesAnotherShape) {
  const Graph g = main_graph(parse_module(R"(fusion @f {
  %m, %n, %k = size
  %x = input f32[1, %k]
  %w = input f32[%n, %k]
  %b = input f32[%n]
  %y = linear %x, %w
  %bb = broadcast_in_dim %b to [%m, %n] dims [1]
  %z = add %y, %bb
  output %z
})"));
  EXPECT_FALSE(product_call(g));
}

TEST(ProductCall, Defects) {
  const auto with = [](const std::string& body, Defect d) {
    const Graph g = fusion_of(body);
    Defects defects;
    defects.add(d);
    const auto call = product_call(g, defects);
    return call ? epilogue_text(g, *call) : std::string();
  };
  const std::string plain = "  %y = linear %x, %w\n";
  EXPECT_EQ(with(plain + "  %z = relu %y\n  output %z\n  output %y\n", Defect::kEpilogueReadElsewhere), "relu");
  EXPECT_EQ(with(plain + "  %s = mul %y, 2.0_bf16\n  %z = relu %s\n  output %z\n", Defect::kEpilogueScaleDropped),
            "relu");
  EXPECT_EQ(with(plain + "  %s = relu %y\n  %z = mul %s, -2.0_bf16\n  output %z\n", Defect::kEpilogueScaleSwapped), "");
  EXPECT_EQ(with("  %y = linear %x, %w bias %b\n  %z = mul %y, 2.0_bf16\n  output %z\n", Defect::kEpilogueScaleEarly),
            "scale bias");
}

// A reference allows a product without its rounding where a plan may leave it out.
TEST(ProductCall, MayStayWide) {
  const auto may = [](const std::string& body, const std::string& dtype) {
    const Graph g = fusion_of(body, dtype);
    return may_stay_wide(g, g[*find_value(g, "y")].def);
  };
  EXPECT_TRUE(may("  %y = linear %x, %w\n  %z = relu %y\n  output %z\n", "bf16"));
  EXPECT_FALSE(may("  %y = linear %x, %w\n  %z = relu %y\n  output %z\n  output %y\n", "bf16"));
  EXPECT_FALSE(may("  %y = linear %x, %w\n  %z = relu %y\n  output %z\n", "f32"));
}

TEST(ProductCall, ScalesOf) {
  const auto scales = [](const std::string& body) {
    const Graph g = fusion_of(body);
    return scales_of(g, g[*find_value(g, "y")].def).size();
  };
  const std::string head = "  %y = linear %x, %w\n  %f = cast %y as f32\n  %g = mul ";
  EXPECT_EQ(scales(head + "%f, 2.0_f32\n  output %g\n"), 1u);
  EXPECT_EQ(scales(head + "2.0_f32, %f\n  %h = mul %y, 3.0_bf16\n  output %g\n  output %h\n"), 2u);
  EXPECT_EQ(scales(head + "%f, %f\n  output %g\n"), 0u);
  // Behind a multiplication by 1, a copy and a move too.
  EXPECT_EQ(scales(head + "%f, 1.0_f32\n  %h = mul %g, 2.0_f32\n  output %h\n"), 2u);
  EXPECT_EQ(scales(head + "%f, 3.0_f32\n  %h = mul %g, 2.0_f32\n  output %h\n"), 1u);
  EXPECT_EQ(scales("  %y = linear %x, %w\n  %s = set %y\n  %t = permute %s dims [1, 0]\n  %f = cast %t as f32\n"
                   "  %g = mul %f, 2.0_f32\n  output %g\n"),
            1u);
}

}  // namespace
}  // namespace fusebox
