// Gelu written out in ops is found in any order of its sums and products, and nothing else is taken for it.
#include "ir/infer/gelu_form.h"

#include <gtest/gtest.h>

#include "ir/text/parse.h"

namespace fusebox {
namespace {

struct Found {
  std::string result;
  size_t ops = 0;
  bool operator==(const Found&) const = default;
};

// The gelu of %x among the ops of a body.
std::optional<Found> found(const std::string& body, bool by_erf = false) {
  const Graph g =
      main_graph(parse_module("fusion @f {\n  %n = size\n  %x = input f32[%n]\n" + body + "  output %y\n}"));
  std::vector<OpId> ops;
  for (OpId op : g[Graph::body()].ops)
    if (!g[op].results.empty() && g[op].kind != OpKind::kInput) ops.push_back(op);
  const auto form = find_gelu(g, ops, *find_value(g, "x"), {.by_erf = by_erf});
  if (!form) return std::nullopt;
  EXPECT_EQ(g[form->tanh].kind, by_erf ? OpKind::kErf : OpKind::kTanh);
  return Found{g[form->result].name, form->ops.size()};
}

TEST(GeluForm, ByTheProductOfHalves) {
  EXPECT_EQ(found(R"(
  %x2 = mul %x, %x
  %x3 = mul %x2, %x
  %c = mul %x3, 0.044715_f32
  %in = add %x, %c
  %arg = mul %in, 0.7978846_f32
  %t = tanh %arg
  %t1 = add %t, 1.0_f32
  %h = mul %x, 0.5_f32
  %y = mul %h, %t1
)"),
            (Found{"y", 9}));
}

const std::string kTanhOfASum = R"(
  %x3 = pow %x, 3.0_f32
  %a = mul %x3, 0.035677408_f32
  %b = mul 0.7978846_f32, %x
  %arg = add %a, %b
  %t = tanh %arg
)";

TEST(GeluForm, ByAPowerAndADistributedSum) {
  EXPECT_EQ(found(kTanhOfASum + R"(
  %xt = mul %t, %x
  %sum = add %xt, %x
  %y = truediv %sum, 2.0_f32
)"),
            (Found{"y", 8}));
  EXPECT_EQ(found(R"(
  %x2 = mul %x, %x
  %p = mul %x2, 0.044715_f32
  %q = add 1.0_f32, %p
  %r = mul %x, %q
  %arg = mul %r, 0.7978846_f32
  %t = tanh %arg
  %u = neg %t
  %v = sub 1.0_f32, %u
  %w = mul %v, %x
  %y = mul 0.5_f32, %w
)"),
            (Found{"y", 10}));
}

TEST(GeluForm, LeavesOutOpsThatItDoesNotNeed) {
  EXPECT_EQ(found("  %other = add %x, 3.0_f32\n" + kTanhOfASum + R"(
  %t1 = add %t, 1.0_f32
  %h = mul %x, 0.5_f32
  %y = mul %h, %t1
  output %other
)"),
            (Found{"y", 8}));
}

constexpr const char* kByErf = R"(
  %arg = mul %x, 0.70710677_f32
  %t = erf %arg
  %t1 = add %t, 1.0_f32
  %h = mul %x, 0.5_f32
  %y = mul %h, %t1
)";

TEST(GeluForm, TheFormByErfIsAnotherFunction) {
  EXPECT_EQ(found(kByErf), std::nullopt);
  EXPECT_EQ(found(kByErf, true), (Found{"y", 5}));
}

std::string with(const std::string& cube, const std::string& slope, const std::string& half) {
  return "  %x2 = mul %x, %x\n  %x3 = mul %x2, %x\n  %c = mul %x3, " + cube +
         "\n  %in = add %x, %c\n  %arg = mul %in, " + slope +
         "\n  %t = tanh %arg\n  %t1 = add %t, 1.0_f32\n  %h = mul %x, " + half + "\n  %y = mul %h, %t1\n";
}

TEST(GeluForm, OtherConstantsAreOtherFunctions) {
  EXPECT_TRUE(found(with("0.044715_f32", "0.79788456_f32", "0.5_f32")));
  EXPECT_TRUE(found(with("0.044715_f32", "0.797885_f32", "0.5_f32")));
  EXPECT_FALSE(found(with("0.044716_f32", "0.79788456_f32", "0.5_f32")));
  EXPECT_FALSE(found(with("0.044715_f32", "0.798_f32", "0.5_f32")));
  EXPECT_FALSE(found(with("0.044715_f32", "0.79788456_f32", "0.25_f32")));
  EXPECT_FALSE(found(with("0.044715_f32", "0.79788456_f32", "-0.5_f32")));
}

}  // namespace
}  // namespace fusebox
