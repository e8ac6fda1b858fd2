// A seeded defect changes nothing but the rule that it breaks: where no code asks for it, the case that is drawn, its
// kernels and its automatic plan are those without it. So a score judges the compiler that ships.
#include <array>
#include <gtest/gtest.h>

#include "fuzz/generate/case.h"
#include "fuzz/generate/generate_inputs.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "passes/schedule/size_classes.h"
#include "replay/run/aten_segment.h"
#include "replay/run/judge.h"

namespace fusebox {
namespace {

// The result of a compilation, or the reason why it is refused.
std::string outcome(const fuzz::Case& c, CompileOptions options) {
  options.inputs = fuzz::bound_inputs(c.inputs());
  options.infer = infer_by_aten();
  try {
    const Compiled made = compile(c.fusion(), fuzz::sizes_of(c.fusion(), c.inputs()), options);
    std::string all = text(digest(made.host)) + " " + std::to_string(made.index_bits);
    for (const Graph& k : made.kernels) all += " " + text(digest(k));
    return all;
  } catch (const Error& e) {
    return code_text(e.code) + " " + e.place + ": " + e.what();
  }
}

// The case of a seed, and what becomes of it with its schedule and with the automatic plan.
std::array<std::string, 3> outcomes(uint64_t seed, const Defects& defects) {
  fuzz::CaseOptions options = fuzz::campaign_cases();
  options.steps.defects = defects;
  const fuzz::Case c = generate_case(seed, options).value;
  CompileOptions scheduled{.defects = defects}, automatic{.defects = defects};
  if (const auto* steps = c.steps()) scheduled.steps = *steps;
  automatic.device = default_device();
  return {print(c.module), outcome(c, scheduled), outcome(c, automatic)};
}

TEST(UnreachedDefects, ChangeNothing) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "this build has no defects";
  constexpr uint64_t kFirst = 1'000'000'007;
  constexpr int kCases = 1200;
  const size_t rows = defect_rows().size();
  int unreached = 0;
  for (int i = 0; i < kCases; ++i) {
    const auto defect = static_cast<Defect>(static_cast<size_t>(i) * 7 % rows);
    uint64_t reached = 0;
    Defects one;
    one.add(defect);
    one.count_reached(&reached);
    const auto broken = outcomes(kFirst + i, one);
    if (reached > 0) continue;
    ++unreached;
    EXPECT_EQ(broken, outcomes(kFirst + i, {})) << text(defect) << ", seed " << kFirst + i;
  }
  EXPECT_GT(unreached, kCases / 3);
}

}  // namespace
}  // namespace fusebox
