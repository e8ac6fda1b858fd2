// The oracle of segments on a chain; assigning its ops at random often makes a cycle.
#include <gtest/gtest.h>

#include "fuzz/oracle/oracle.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/segment/segment.h"

namespace fusebox::fuzz {
namespace {

constexpr const char* kChain = R"(fusion @f {
  %x = input f32[4] contiguous
  %a = neg %x
  %b = exp %a
  %c = neg %b
  %d = add %c, %a
  output %d
}
)";

TEST(Segments, AnyWayOfDealingOutIsOrderedOrRefused) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Case c;
    c.module = parse_module(std::string(kChain) + "inputs @f host {\n  %x = f32[4] normal seed 1\n}\n");
    c.seed = seed;
    OracleRun run(c, {});
    segments(run);
    EXPECT_TRUE(run.findings.empty()) << run.findings[0].message;
  }
}

TEST(Segments, ACycleIsNamed) {
  const Graph g = parse_module(kChain).graphs[0];
  const auto assign = [](const char* name, std::vector<const char*> ops) {
    Step step{StepKind::kAssign, {}, {}, {}};
    for (const char* op : ops) step.operands.push_back(StepOperand::of(op));
    step.attrs.set(AttrKey::kName, name);
    step.attrs.set_enum(AttrKey::kExecutor, SegmentExecutor::kKernel);
    return step;
  };
  // The last segment waits for the cycle but is not part of it.
  const std::vector<Step> steps = {assign("after", {"d"}), assign("p", {"a", "c"}), assign("q", {"b"})};
  try {
    plan_assigned(g, steps);
    FAIL() << "segments that need each other are ordered";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kInvalidGraph);
    EXPECT_EQ(e.place, "segment p");
  }
}

}  // namespace
}  // namespace fusebox::fuzz
