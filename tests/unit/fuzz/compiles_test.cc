// The oracle that compiles CUDA text takes right kernels and reports broken ones.
#include <gtest/gtest.h>

#include "fuzz/oracle/oracle.h"
#include "ir/text/parse.h"
#include "replay/device/cuda_loader.h"
#include "tests/support/program_text.h"

namespace fusebox::fuzz {
namespace {

std::vector<Finding> judged(const Defects& defects, uint64_t seed,
                            const std::string& text = testing::program_text("exp_row_sum")) {
  Case c;
  c.module = parse_module(text);
  c.seed = seed;
  OracleRun run(c, {.defects = defects});
  compiles(run);
  return std::move(run.findings);
}

TEST(CompilesOracle, TakesTheKernelsForEveryArchitecture) {
  if (!find_cuda_compiler()) GTEST_SKIP() << "NVRTC is not installed";
  for (uint64_t seed = 1; seed <= 8; ++seed)
    for (const Finding& f : judged({}, seed)) ADD_FAILURE() << text(f.signature) << ": " << f.message;
}

// A thread of this reduction holds no value.
TEST(CompilesOracle, TakesAReductionWithoutResults) {
  if (!find_cuda_compiler()) GTEST_SKIP() << "NVRTC is not installed";
  for (const Finding& f : judged({}, 1, R"(fusion @f {
  %n = size
  %x = input i64[0, %n] contiguous
  %y = prod %x over [1]
  output %y
}
steps @f {
  split %y.i1 by 4 -> o, t
  split %y.o by 2 -> g, b
  reorder %y to [%y.g, %y.t, %y.b, %y.i0]
  parallelize %y.g on grid.y
  parallelize %y.t on block.x
  inline_most of []
}
inputs @f host {
  %x = i64[0, 19] integers 1.0 3.0 seed 1
}
)"))
    ADD_FAILURE() << text(f.signature) << ": " << f.message;
}

TEST(CompilesOracle, ReportsABrokenText) {
  if (!kDefectsCompiledIn || !find_cuda_compiler()) GTEST_SKIP() << "needs NVRTC and seeded defects";
  for (const Defect d : {Defect::kCudaHeaderForgotten, Defect::kCudaNamesRepeat}) {
    Defects defects;
    defects.add(d);
    // Three passes over a row: much is declared behind a loop.
    const std::vector<Finding> found = judged(defects, 1, testing::file_text("corpus/programs/softmax.fir"));
    ASSERT_EQ(found.size(), 1u) << text(d);
    EXPECT_EQ(text(found[0].signature), "compiles E0422") << found[0].message;
    EXPECT_NE(found[0].message.find("@softmax"), std::string::npos) << found[0].message;
  }
}

// A costly oracle leaves short campaigns alone, and a row of it is due once in so many cases.
TEST(Oracles, ACostlyOneIsDueLast) {
  for (const OracleRow& row : oracle_rows()) {
    uint64_t due = 0;
    for (uint64_t number = 0; number < 2 * row.every; ++number) due += is_due(row, number);
    EXPECT_EQ(due, 2u) << row.text;
    EXPECT_EQ(is_due(row, 0), row.judge != compiles) << row.text;
  }
}

}  // namespace
}  // namespace fusebox::fuzz
