// Recipes draw schedules that single steps never add up to, and lowering accepts them unchanged.
#include <algorithm>
#include <gtest/gtest.h>

#include "fuzz/generate/generate_steps.h"
#include "ir/canonical/canonical.h"
#include "ir/domain/domain.h"
#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/lower/lower.h"

namespace fusebox::fuzz {
namespace {

// Whether several of the schedules drawn for a fusion are legal without repair and have the wanted property.
template <class Holds>
bool are_drawn(std::string_view fusion, std::span<const BoundInput> inputs, Holds holds) {
  const Graph g = parse_graph(fusion);
  const Bindings sizes = bind_sizes(g, inputs);
  int count = 0;
  for (uint64_t seed = 1; seed <= 2000 && count < 3; ++seed) {
    RandomSource random(seed);
    const GeneratedSteps drawn = generate_steps(random, g, sizes, {.segments = false});
    if (!drawn.compiled || drawn.repairs > 0 || drawn.compiled->scheduled.size() != 1) continue;
    count += holds(drawn.compiled->scheduled[0]);
  }
  return count == 3;
}

BoundInput of_shape(std::vector<int64_t> shape) { return {.shape = std::move(shape)}; }

TEST(Recipes, ABroadcastOfAReductionIsReadOnBothSidesOfTheNext) {
  constexpr std::string_view kFusion = R"(fusion @f {
  %m, %n = size
  %x = input i32[%m, %n] contiguous
  %s = sum %x over [1]
  %b = broadcast %s mask [0, 1]
  %c = sub %x, %b
  %v = sum %c over [1]
  %vb = broadcast %v mask [0, 1]
  %d = sub %x, %b
  %y = add %d, %vb
  output %y
})";
  const BoundInput x[] = {of_shape({3, 5})};
  EXPECT_TRUE(are_drawn(kFusion, x, [](const Graph& g) {
    const auto notes = lower(canonical_order(g), {.explain = true}).notes;
    return std::any_of(notes.begin(), notes.end(),
                       [](const CheckNote& n) { return n.reason == CheckReason::kReplicated && n.value == "b"; });
  }));
}

TEST(Recipes, ACopyOfLowerRankIsReadInVectorsFarFromItsBroadcast) {
  constexpr std::string_view kFusion = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %b = input f32[%n] contiguous
  %e = exp %b
  %bb = broadcast %e mask [1, 0]
  %y = add %x, %bb
  output %y
})";
  const BoundInput inputs[] = {of_shape({3, 16}), of_shape({16})};
  EXPECT_TRUE(are_drawn(kFusion, inputs, [](const Graph& g) {
    const ValueId e = *find_value(g, "e");
    const Tensor& copy = g.tensor_of(g[g[e].def].operands[0]);
    return copy.inline_at && !copy.loop_broadcasts.empty() && !loop_of(copy).empty() &&
           g[loop_of(copy).back()].parallel == ParallelType::kVectorize && !leaves(g, loop_of(copy)[0]).empty() &&
           g[leaves(g, loop_of(copy)[0])[0]].stands_for;
  }));
}

TEST(Recipes, OneAxisAloneIsOnTheGrid) {
  constexpr std::string_view kFusion = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %y = sum %x over [1]
  output %y
})";
  const BoundInput x[] = {of_shape({3, 5})};
  EXPECT_TRUE(are_drawn(kFusion, x, [](const Graph& g) {
    const auto& loop = loop_of(g.tensor_of(*find_value(g, "y")));
    return loop.size() == 2 && g[loop[0]].parallel == ParallelType::kSerial && is_grid(g[loop[1]].parallel) &&
           g[loop[1]].iter_type == IterType::kReduction;
  }));
}

}  // namespace
}  // namespace fusebox::fuzz
