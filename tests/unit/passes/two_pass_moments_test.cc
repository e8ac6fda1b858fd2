// Where the automatic plan computes running moments in two passes: where rows stay in registers, and nowhere else.
#include <gtest/gtest.h>

#include "ir/text/print.h"
#include "tests/support/automatic.h"

namespace fusebox {
namespace {

using testing::plan_of;
using testing::Planned;

constexpr std::string_view kLayerNorm = R"(fusion @f {
  %m, %n = size
  %x = input bf16[%m, %n] contiguous
  %xf = cast %x as f32
  %avg, %squares, %count = welford %xf over [1]
  %var = truediv %squares, %n
  %scale = rsqrt %var
  %avgb = broadcast %avg mask [0, 1]
  %scaleb = broadcast %scale mask [0, 1]
  %d = sub %xf, %avgb
  %q = mul %d, %scaleb
  %y = cast %q as bf16
  output %y
}
)";
constexpr std::string_view kStatistics = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %avg, %squares, %count = welford %x over [1]
  %var = truediv %squares, %n
  %mean = neg %avg
  output %var
  output %mean
}
)";

Planned planned(std::string_view program, int64_t rows, int64_t columns) {
  return plan_of(std::string(program), {{.shape = {rows, columns}, .align = 256}});
}

bool is_in_two_passes(const Planned& p) {
  const std::string steps = print_steps(p.compiled.automatic->steps);
  const bool has_rewrite = steps.find("two_pass_moments") != std::string::npos;
  const bool has_welford =
      std::ranges::any_of(p.compiled.concretized.ops, [](const Op& op) { return op.kind == OpKind::kWelford; });
  EXPECT_NE(has_rewrite, has_welford) << steps;
  return has_rewrite;
}

TEST(TwoPassMoments, WhereRowsStayInRegisters) {
  for (const std::string_view program : {kLayerNorm, kStatistics})
    for (const int64_t rows : {1, 3, 64, 16384}) {
      const Planned p = planned(program, rows, 4096);
      EXPECT_TRUE(is_in_two_passes(p)) << rows;
      ASSERT_EQ(p.compiled.automatic->decisions.size(), 1u);
      EXPECT_EQ(p.scheduler(), "persistent");
      EXPECT_EQ(p.compiled.automatic->decisions[0].heuristics.word("form"), "registers");
    }
}

// The count of elements of a channel is read. Many long channels lie in the registers of clusters.
TEST(TwoPassMoments, WhereTheCountIsRead) {
  const Graph g = main_graph(testing::read_program("corpus/programs/welford_batch_norm.fir"));
  for (const int64_t channels : {3, 8, 64, 256}) {
    const std::vector<int64_t> small = {channels};
    std::vector<BoundInput> inputs =
        testing::contiguous({{32, channels, channels == 64 ? 784 : 3136}, small, small, small, small});
    for (int i = 0; i < 2; ++i) inputs.push_back({.is_scalar = true});
    const Planned p = plan_of(g, inputs);
    EXPECT_TRUE(is_in_two_passes(p)) << channels;
    ASSERT_EQ(p.compiled.automatic->decisions.size(), 1u);
    EXPECT_EQ(p.compiled.automatic->decisions[0].heuristics.word("form"), "registers");
    EXPECT_EQ(p.choice("cluster"), channels == 64 ? 0 : 8) << channels;
  }
}

// A single row, whose axis is a broadcast.
TEST(TwoPassMoments, OneRow) {
  std::string one(kLayerNorm);
  one.replace(one.find("[%m, %n]"), 8, "[1, %n]");
  one.replace(one.find("%m, %n = size"), 13, "%n = size");
  const Planned p = planned(one, 1, 4096);
  EXPECT_TRUE(is_in_two_passes(p));
  EXPECT_EQ(p.scheduler(), "persistent");
}

// A longer row is walked in memory, and would be read once more. Columns are walked, too.
TEST(TwoPassMoments, NotWhereARowIsWalkedInMemory) {
  EXPECT_FALSE(is_in_two_passes(planned(kLayerNorm, 64, 1 << 20)));
  EXPECT_FALSE(is_in_two_passes(planned(kStatistics, 64, 1 << 20)));
  std::string columns(kLayerNorm);
  for (const auto& [from, to] :
       {std::pair{"over [1]", "over [0]"}, {"mask [0, 1]", "mask [1, 0]"}, {"mask [0, 1]", "mask [1, 0]"}})
    columns.replace(columns.find(from), std::string_view(from).size(), to);
  EXPECT_TRUE(is_in_two_passes(planned(columns, 4096, 4096)));
  EXPECT_FALSE(is_in_two_passes(planned(columns, 1 << 20, 64)));
}

TEST(TwoPassMoments, TheStepsRepeatThePlan) {
  const Planned p = planned(kLayerNorm, 64, 1000);
  const Graph& g = p.fusion;
  const std::vector<BoundInput> given = {{.shape = {64, 1000}, .align = 256}};
  const Compiled again = compile(g, bind_sizes(g, given), {.steps = p.compiled.automatic->steps, .inputs = given});
  ASSERT_EQ(again.kernels.size(), p.compiled.kernels.size());
  for (size_t i = 0; i < again.kernels.size(); ++i) EXPECT_TRUE(again.kernels[i] == p.compiled.kernels[i]);
}

}  // namespace
}  // namespace fusebox
