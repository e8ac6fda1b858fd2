#include "ir/text/dot.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "tests/support/random_module.h"

namespace fusebox {
namespace {

TEST(Dot, OpsAndTheValuesBetweenThem) {
  const Graph g = parse_graph("fusion @f {\n  %x = input f32[5]\n  %y = mul %x, %x\n  output %y\n}");
  EXPECT_EQ(ops_to_dot(g),
            "digraph \"f\" {\n"
            "  node [shape=box, fontname=monospace];\n"
            "  op0 [label=\"%x = input f32[5] contiguous\"];\n"
            "  op1 [label=\"%y = mul %x, %x : f32[5]\"];\n"
            "  op2 [label=\"output %y\"];\n"
            "  op0 -> op1 [label=\"%x\"];\n"
            "  op1 -> op2 [label=\"%y\"];\n"
            "}\n");
}

TEST(Dot, DomainsAndTheTransformsBetweenThem) {
  const Graph g = parse_graph(
      "scheduled @f {\n  %x = input f32[i0 iter 5] {\n    o iter, t iter = split i0 by 2 inner\n    loop [o, t "
      "block.x]\n  }\n}");
  EXPECT_EQ(domains_to_dot(g),
            "digraph \"f\" {\n"
            "  node [shape=box, fontname=monospace];\n"
            "  subgraph cluster_0 {\n"
            "    label=\"%x : f32[5] contiguous\";\n"
            "    d0 [label=\"i0 iter 5\"];\n"
            "    d1 [label=\"o iter\\lloop 0\", penwidth=2];\n"
            "    d2 [label=\"t iter\\lloop 1 block.x\", penwidth=2];\n"
            "    t0 [shape=ellipse, label=\"split 2 inner\"];\n"
            "    d0 -> t0;\n"
            "    t0 -> d1;\n"
            "    t0 -> d2;\n"
            "  }\n"
            "}\n");
}

// Braces outside of quotes balance, which is all that Graphviz needs of such texts.
TEST(Dot, EveryGraphIsDrawn) {
  for (uint64_t seed = 0; seed < 300; ++seed)
    for (const Graph& g : testing::random_module(seed).graphs)
      for (const std::string& text : {ops_to_dot(g), domains_to_dot(g)}) {
        int depth = 0;
        bool in_string = false;
        for (size_t i = 0; i < text.size(); ++i) {
          if (in_string && text[i] == '\\') {
            ++i;
          } else if (text[i] == '"') {
            in_string = !in_string;
          } else if (!in_string) {
            depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
          }
        }
        ASSERT_FALSE(in_string) << text;
        ASSERT_EQ(depth, 0) << text;
      }
}

}  // namespace
}  // namespace fusebox
