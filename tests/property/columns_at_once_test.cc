// Columns of a thread that the block reduces at once: they give the bits that threads of one column give, and each defect
// of the rule shows.
#include <gtest/gtest.h>

#include "tests/support/run_text.h"

namespace fusebox {
namespace {

struct Columns {
  std::string reduction = "sum", dtype = "f32";
  int64_t each = 4;         // columns of a thread
  int64_t threads = 8;      // along the columns
  int64_t warps = 10;       // along the rows
  bool has_chunks = false;  // a thread has several rows; else one
};

std::string text(const Columns& c) {
  const bool is_welford = c.reduction == "welford";
  const std::string y = is_welford ? "%y, %s, %c" : "%y", rows = c.has_chunks ? "37" : std::to_string(c.warps - 1);
  return "fusion @f {\n  %m, %n = size\n  %x = input " + c.dtype + "[%m, %n] contiguous\n  " + y + " = " + c.reduction +
         " %x over [0]\n  output %y\n" + (is_welford ? "  output %s\n" : "") + "}\nsteps @f {\n  split %y.i1 by " +
         std::to_string(c.each) + " -> c, v\n  split %y.c by " + std::to_string(c.threads) + " -> b, l\n" +
         (c.has_chunks ? "  split %y.i0 by " + std::to_string(c.warps) +
                             " -> k, w\n  reorder %y to [%y.b, %y.k, %y.w, %y.l, %y.v]\n"
                       : "  reorder %y to [%y.b, %y.i0, %y.l, %y.v]\n") +
         "  parallelize %y.b on grid.x\n  parallelize %y." + (c.has_chunks ? "w" : "i0") +
         " on block.y\n  parallelize %y.l on block.x\n}\ninputs @f host {\n  %x = " + c.dtype + "[" + rows +
         (c.dtype == "i64" ? ", 61] integers -9 9 seed 3\n}\n" : ", 61] normal seed 3\n}\n");
}

struct Ran {
  std::vector<int64_t> at_once;  // of each reduction in a block
  std::vector<Digest> outputs;   // empty: the run was stopped
};

Ran run(const Columns& c, const Defects& defects = {}) {
  testing::RunOfText made = testing::run_text(text(c), defects);
  Ran ran;
  for (const Op& op : made.compiled.kernels.at(0).ops)
    if (op.kind == OpKind::kBlockReduce) ran.at_once.push_back(op.attrs.integer(AttrKey::kAtOnce, 1));
  ran.outputs = std::move(made.outputs);
  return ran;
}

TEST(ColumnsAtOnce, GiveTheBitsOfOneByOne) {
  for (const auto& [reduction, dtype, at_once] : {std::tuple{"sum", "f32", 4},
                                                  {"sum", "bf16", 4},
                                                  {"sum", "f64", 2},
                                                  {"sum", "c64", 2},
                                                  {"prod", "f32", 4},
                                                  {"max", "f16", 4},
                                                  {"sum", "i64", 2},
                                                  {"max", "bool", 16},
                                                  {"welford", "f32", 2}})
    for (const int64_t each : {2, 3, 4, 8})
      for (const int64_t threads : {3, 8, 32})
        for (const bool has_chunks : {false, true}) {
          Columns c{.reduction = reduction, .dtype = dtype, .each = each, .threads = threads, .has_chunks = has_chunks};
          SCOPED_TRACE(text(c));
          const Ran together = run(c);
          ASSERT_EQ(together.at_once, std::vector<int64_t>(static_cast<size_t>(each), at_once));
          ASSERT_FALSE(together.outputs.empty());
          c.each = 1;
          const Ran alone = run(c);
          ASSERT_EQ(alone.at_once, std::vector<int64_t>{1});
          ASSERT_EQ(together.outputs, alone.outputs);
        }
}

// A loop of more columns than 16 stays a loop, and complex doubles fill the places of a thread.
TEST(ColumnsAtOnce, OthersAreReducedInTheirLoop) {
  EXPECT_EQ(run({.each = 17}).at_once, std::vector<int64_t>{1});
  EXPECT_EQ(run({.dtype = "c128"}).at_once, std::vector<int64_t>{1});
}

TEST(ColumnsAtOnce, DefectsShow) {
  const auto outputs = [](Defect d, const Columns& c) {
    Defects defects;
    defects.add(d);
    return run(c, defects).outputs;
  };
  for (const bool has_chunks : {false, true}) {
    const Columns c{.has_chunks = has_chunks};
    const auto right = run(c).outputs, turned = outputs(Defect::kColumnsTurned, c);
    EXPECT_FALSE(turned.empty());
    EXPECT_NE(turned, right);
    EXPECT_TRUE(outputs(Defect::kColumnsWithoutRoom, c).empty());
  }
}

}  // namespace
}  // namespace fusebox
