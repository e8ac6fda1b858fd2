// The oracle of segments on a chain; assigning its ops at random often makes a cycle.
#include <algorithm>
#include <gtest/gtest.h>

#include "fuzz/generate/step_maker.h"
#include "fuzz/oracle/oracle.h"
#include "ir/infer/bind.h"
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

// A step that states a fact is for every kernel, so a list that is replayed part by part has it once.
TEST(Segments, AReplayedListStatesAFactOnce) {
  const Graph g =
      parse_graph("fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %a = neg %x\n  %b = exp %a\n  output %b\n}\n");
  const std::vector<Step> list =
      parse_steps("assign of [%a] name \"p\" by kernel\nassign of [%b] name \"q\" by kernel\nassume [%n] below 5\n");
  const BoundInput x{.is_scalar = false, .bits = {}, .shape = {4}, .strides = {1}};
  RandomSource random(1);
  StepMaker maker(random, g);
  maker.replay_list(list, bind_sizes(g, {&x, 1}));
  const auto is_fact = [](const Step& s) { return s.kind == StepKind::kAssume; };
  EXPECT_EQ(std::count_if(maker.steps.begin(), maker.steps.end(), is_fact), 1);
}

}  // namespace
}  // namespace fusebox::fuzz
