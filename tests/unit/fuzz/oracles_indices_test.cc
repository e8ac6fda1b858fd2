// The oracle that moves an index outside its axis reports nothing if the index is refused or never read.
#include <gtest/gtest.h>

#include "fuzz/oracle/oracle.h"
#include "ir/text/parse.h"
#include "replay/device/module_loader.h"

namespace fusebox::fuzz {
namespace {

// An index past the end of a row still lies inside the buffer, except in the last row.
constexpr const char* kGathered = R"(fusion @f {
  %x = input f32[4, 3] contiguous
  %i = input i32[4, 2] contiguous
  %y = gather %x, %i axis 1
  output %y
}
inputs @f host {
  %x = f32[4, 3] normal seed 1
  %i = i32[4, 2] integers 0.0 3.0 seed 2
}
)";

Case case_of(std::string text, uint64_t seed) {
  Case c;
  c.module = parse_module(text);
  c.seed = seed;
  return c;
}

std::vector<Finding> judged(const Case& c, const Defects& defects = {}) {
  OracleRun run(c, {.defects = defects});
  indices(run);
  return run.findings;
}

TEST(Indices, OneOutsideItsAxisIsRefused) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  Defects unchecked;
  if (kDefectsCompiledIn) unchecked.add(Defect::kIndexUnchecked);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Case c = case_of(kGathered, seed);
    EXPECT_TRUE(judged(c).empty()) << judged(c)[0].message;
    if (!kDefectsCompiledIn) continue;
    const auto found = judged(c, unchecked);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].signature.stage, "indices");
    EXPECT_EQ(found[0].signature.place, "gather");
  }
}

TEST(Indices, OneThatNoOutputFollowsFromIsLeft) {
  if (!find_aten() || !kDefectsCompiledIn) GTEST_SKIP() << "PyTorch or the seeded defects are not there";
  std::string text = kGathered;
  text.replace(text.find("output %y"), 9, "%z = neg %x\n  output %z");
  Defects unchecked;
  unchecked.add(Defect::kIndexUnchecked);
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_TRUE(judged(case_of(text, seed), unchecked).empty());
}

}  // namespace
}  // namespace fusebox::fuzz
