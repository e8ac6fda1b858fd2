// The oracle that compiles CUDA text takes right kernels and reports broken ones.
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

#include "fuzz/oracle/oracle.h"
#include "ir/text/parse.h"
#include "replay/device/cuda_loader.h"

namespace fusebox::fuzz {
namespace {

constexpr const char* kRows = R"(fusion @f {
  %m, %n = size
  %x = input f16[%m, %n] contiguous
  %e = exp %x
  %s = sum %e over [1]
  output %s
}
steps @f {
  parallelize %s.i1 on block.x
  parallelize_like %s to []
  inline_most of []
}
inputs @f host {
  %x = f16[5, 7] normal seed 1
}
)";

std::vector<Finding> judged(const Defects& defects, uint64_t seed, const std::string& text = kRows) {
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

TEST(CompilesOracle, ReportsABrokenText) {
  if (!kDefectsCompiledIn || !find_cuda_compiler()) GTEST_SKIP() << "needs NVRTC and seeded defects";
  for (const Defect d : {Defect::kCudaHeaderForgotten, Defect::kCudaNamesRepeat}) {
    Defects defects;
    defects.add(d);
    // Three passes over a row: much is declared behind a loop.
    std::ifstream file("corpus/programs/softmax.fir");
    const std::string softmax{std::istreambuf_iterator<char>(file), {}};
    const std::vector<Finding> found = judged(defects, 1, softmax);
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
