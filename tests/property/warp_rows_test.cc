// Rows of part of a warp: their lanes give the bits that the threads of a block give, which combine them in shared
// memory, and each defect of the rule shows.
#include <gtest/gtest.h>

#include "tests/support/run_text.h"

namespace fusebox {
namespace {

struct Rows {
  std::string reduction = "sum", dtype = "f32";
  int64_t lanes = 8, rows = 16;  // of a block
  int64_t columns = 8;
  bool along_z = false;    // the rows; else along block.y
  bool has_parts = false;  // two, along the other dimension
};

std::string text(const Rows& r) {
  const bool is_welford = r.reduction == "welford";
  const std::string y = is_welford ? "%y, %s, %c" : "%y", z = r.along_z ? "block.z" : "block.y";
  return "fusion @f {\n  %m = size\n  %x = input " + r.dtype + "[%m, " + std::to_string(r.columns) +
         "] contiguous\n  " + y + " = " + r.reduction + " %x over [1]\n  output %y\n" +
         (is_welford ? "  output %s\n" : "") + "}\nsteps @f {\n  split %y.i0 by " + std::to_string(r.rows) +
         " -> b, z\n  split %y.i1 by " + std::to_string(r.lanes) + " -> o, l\n" +
         (r.has_parts ? "  split %y.o by 2 -> s, p\n" : "") + "  parallelize %y.b on grid.x\n  parallelize %y.z on " +
         z + "\n  parallelize %y.l on block.x\n" +
         (r.has_parts ? std::string("  parallelize %y.p on ") + (r.along_z ? "block.y" : "block.z") + "\n" : "") +
         "}\ninputs @f host {\n  %x = " + r.dtype + "[37, " + std::to_string(r.columns) +
         (r.dtype == "i64" ? "] integers -9 9 seed 3\n}\n" : "] normal seed 3\n}\n");
}

struct Ran {
  int by_lanes = 0, by_block = 0;  // reductions of the kernel
  std::vector<Digest> outputs;     // empty: the run was stopped
};

Ran run(const Rows& r, const Defects& defects = {}) {
  testing::RunOfText made = testing::run_text(text(r), defects);
  Ran ran;
  for (const Op& op : made.compiled.kernels.at(0).ops) {
    ran.by_lanes += op.kind == OpKind::kWarpReduce ? 1 : 0;
    ran.by_block += op.kind == OpKind::kBlockReduce ? 1 : 0;
  }
  ran.outputs = std::move(made.outputs);
  return ran;
}

TEST(WarpRows, GiveTheBitsOfABlock) {
  for (const auto& [reduction, dtype] : {std::pair{"sum", "f32"},
                                         {"sum", "bf16"},
                                         {"sum", "f64"},
                                         {"sum", "c64"},
                                         {"prod", "f32"},
                                         {"max", "f32"},
                                         {"min", "f16"},
                                         {"sum", "i64"},
                                         {"max", "i64"},
                                         {"welford", "f32"},
                                         {"welford", "f64"}})
    for (const int64_t lanes : {2, 4, 8, 16})
      for (const int64_t columns : {int64_t{1}, lanes - 1, lanes, lanes + 1, int64_t{61}})
        for (const bool along_z : {false, true}) {
          Rows r{.reduction = reduction, .dtype = dtype, .lanes = lanes, .columns = columns, .along_z = along_z};
          SCOPED_TRACE(text(r));
          const Ran by_lanes = run(r);
          ASSERT_EQ(by_lanes.by_lanes, 1);
          ASSERT_EQ(by_lanes.by_block, 0);
          ASSERT_FALSE(by_lanes.outputs.empty());
          r.rows = 3;  // the last warp is not full
          const Ran by_block = run(r);
          ASSERT_EQ(by_block.by_lanes, 0);
          ASSERT_EQ(by_block.by_block, 1);
          ASSERT_EQ(by_lanes.outputs, by_block.outputs);
        }
}

TEST(WarpRows, OfTwoPartsAreCombinedByTheBlock) {
  const Rows r{.columns = 61, .has_parts = true};
  const Ran ran = run(r);
  EXPECT_EQ(ran.by_lanes, 0);
  EXPECT_EQ(ran.by_block, 1);
  EXPECT_FALSE(ran.outputs.empty());
}

TEST(WarpRows, DefectsShow) {
  const auto shows = [](Defect d, const Rows& r) {
    Defects defects;
    defects.add(d);
    const Ran right = run(r), wrong = run(r, defects);
    EXPECT_FALSE(right.outputs.empty());
    EXPECT_EQ(wrong.by_lanes, 1);
    return wrong.outputs != right.outputs;
  };
  for (const int64_t lanes : {2, 4, 8, 16}) {
    const Rows r{.dtype = "i64", .lanes = lanes, .columns = 61};
    EXPECT_TRUE(shows(Defect::kLanesHalf, r)) << lanes;
    EXPECT_TRUE(shows(Defect::kLanesOfOtherRow, r)) << lanes;
    EXPECT_TRUE(shows(Defect::kLanesLeftOut, r)) << lanes;
    EXPECT_TRUE(shows(Defect::kLanesMissing, {.dtype = "i64", .lanes = lanes, .rows = 3, .columns = 61})) << lanes;
    EXPECT_TRUE(shows(Defect::kLanesOfOneAxis, {.dtype = "i64", .lanes = lanes, .columns = 61, .has_parts = true}))
        << lanes;
  }
}

}  // namespace
}  // namespace fusebox
