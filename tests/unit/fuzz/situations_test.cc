// Cases that aim at a combination of several ops or steps produce it.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "fuzz/coverage/coverage_classes.h"
#include "fuzz/generate/case.h"
#include "fuzz/generate/focus_situations.h"
#include "ir/infer/is_library.h"
#include "ir/table/families.h"

namespace fusebox::fuzz {
namespace {

TEST(Situations, ScalarsOfEachDtypeStandBesideTensorsOfEach) {
  std::set<std::pair<Dtype, Dtype>> pairs;
  for (const ScalarFocus& s : scalar_list()) pairs.insert({s.tensor, s.scalar});
  for (const DtypeRow& tensor : dtype_rows())
    for (const DtypeRow& scalar : dtype_rows())
      if (tensor.dtype != Dtype::kIndex && !is_storage_only(tensor.dtype) && !is_storage_only(scalar.dtype)) {
        EXPECT_TRUE(pairs.contains({tensor.dtype, scalar.dtype})) << tensor.text << " " << scalar.text;
      }
}

TEST(Situations, CasesWalkTheListOfScalars) {
  std::set<std::pair<Dtype, Dtype>> met, listed;
  for (const ScalarFocus& s : scalar_list()) listed.insert({s.tensor, s.scalar});
  for (uint64_t seed = 0; seed < 8 * 4 * scalar_list().size() / 8 + 64; ++seed)
    for (const ScalarFocus& s : focus_of(seed).scalars) met.insert({s.tensor, s.scalar});
  EXPECT_EQ(met, listed);
}

// The number of cases that aim at a class, and of those that have it.
struct Count {
  int aimed = 0, met = 0;
};

TEST(Situations, AreMet) {
  constexpr std::string_view kHigher = "a scalar of a higher class beside a tensor", kEqual = "an op of equal scalars",
                             kNear = "constants that differ in one part", kSize = "a size from another dtype",
                             kPower = "an integer power of -1 by a negative odd number",
                             kShared = "shared memory made in an unrolled loop",
                             kLayout = "a layout read two segments later",
                             kBlock = "a reduction over some dimensions of a block";
  std::map<std::string_view, Count> counts;
  for (uint64_t seed = 2; seed < 8 * 1200; seed += 8) {
    const Focus focus = focus_of(seed);
    ASSERT_FALSE(focus.empty()) << seed;
    const Case c = generate_case(seed, {}).value;
    const auto classes = situation_classes(c);
    const auto count = [&](std::string_view name, bool is_aimed) {
      const auto at = std::find(std::begin(kSituationClasses), std::end(kSituationClasses), name);
      const auto row = static_cast<size_t>(at - std::begin(kSituationClasses));
      counts[name].aimed += is_aimed;
      counts[name].met += is_aimed && std::find(classes.begin(), classes.end(), row) != classes.end();
    };
    count(kHigher, !focus.scalars.empty());
    count(kEqual, !focus.equal_scalars.empty());
    count(kNear, focus.near_constants);
    count(kSize, focus.computed_sizes);
    count(kPower, std::any_of(focus.integer_pairs.begin(), focus.integer_pairs.end(),
                              [](const OpFocus& o) { return o.kind == OpKind::kPow; }));
    count(kShared, focus.shared_in && *focus.shared_in != ParallelType::kSerial);
    count(kLayout, focus.segments > 0);
    count(kBlock, focus.block && std::count(focus.block->is_reduced.begin(), focus.block->is_reduced.end(), true) < 3);
  }
  for (std::string_view name : {kHigher, kEqual, kSize, kBlock})
    EXPECT_GT(counts[name].met * 2, counts[name].aimed) << name;
  for (std::string_view name : {kNear, kShared, kLayout}) EXPECT_GT(counts[name].met * 6, counts[name].aimed) << name;
  EXPECT_GT(counts[kPower].met, 0);
}

bool is_half(Dtype d) { return d == Dtype::kHalf || d == Dtype::kBfloat16; }

bool has_constant(const Graph& g, const Op& op) {
  return std::ranges::any_of(op.operands, [&](ValueId v) { return v && g.is_constant(v); });
}

bool is_wrapped(const Graph& g, const Op& op) {
  const bool may_wrap = op.kind == OpKind::kAdd || op.kind == OpKind::kSub || op.kind == OpKind::kMul;
  return may_wrap && is_integer(g[op.results[0]].dtype) && g[op.results[0]].dtype != Dtype::kIndex &&
         std::ranges::all_of(op.operands, [&](ValueId v) { return g.is_constant(v); });
}

bool has_loop(const Case& c, ParallelType p) {
  return c.compiled && std::ranges::any_of(c.compiled->scheduled, [&](const Graph& g) {
           return std::ranges::any_of(g.domains, [&](const IterDomain& d) { return d.parallel == p; });
         });
}

bool has_aten_segment(const Case& c) {
  return c.compiled && std::ranges::any_of(c.compiled->segmentation.segments,
                                           [](const Segment& s) { return s.executor == SegmentExecutor::kAten; });
}

// Whether the case is what the focus aims at.
bool is_met(RareFocus rare, const Case& c) {
  const Graph& g = c.fusion();
  const auto count = [&](const auto& is_one) {
    return std::ranges::count_if(g.ops, [&](const Op& op) { return !op.results.empty() && is_one(op); });
  };
  const auto has = [&](const auto& is_one) { return count(is_one) > 0; };
  switch (rare) {
    case RareFocus::kWrappingConstants:
      return has([&](const Op& op) { return is_wrapped(g, op); });
    case RareFocus::kTimesZero:
      return has([&](const Op& op) { return op.kind == OpKind::kMul && has_constant(g, op); });
    case RareFocus::kTwoRandomOps:
      return count([](const Op& op) { return is_random(op.kind); }) > 1;
    case RareFocus::kDeclaredOrder:
      return has_aten_segment(c) && has([](const Op& op) { return op.kind == OpKind::kStrideOrder; });
    case RareFocus::kAddedProduct:
      return has([&](const Op& op) { return op.kind == OpKind::kMul && is_half(g[op.results[0]].dtype); });
    case RareFocus::kSumOfAllBlocks:
      return has_loop(c, ParallelType::kGridX) && has([](const Op& op) { return op.kind == OpKind::kSum; });
    case RareFocus::kGappedVectors:
      return has_loop(c, ParallelType::kVectorize);
    case RareFocus::kLibraryOp:
      return count([&](const Op& op) { return is_library(g, op); }) == 1;
    case RareFocus::kGatheredOp:
      return has([](const Op& op) { return demands(op.kind, kIndexed); });
    case RareFocus::kTwoScopes:
      return has_loop(c, ParallelType::kGridX) && std::ranges::any_of(c.compiled->scheduled, [](const Graph& s) {
               return std::ranges::any_of(s.tensors, [](const Tensor& t) { return t.memory == MemoryType::kShared; });
             });
    case RareFocus::kTwoClusterSums:
      return has_loop(c, ParallelType::kGridX) && std::ranges::any_of(c.module.step_lists, [](const StepList& list) {
               return std::ranges::any_of(list.steps, [](const Step& s) { return s.kind == StepKind::kCluster; });
             });
    case RareFocus::kFewMoments:
      return has([](const Op& op) { return op.kind == OpKind::kWelford; });
    case RareFocus::kStoredOverSegments:
      return c.compiled && std::ranges::any_of(c.compiled->segmentation.segments, [](const Segment& s) {
               return std::ranges::any_of(s.inputs, [](const Crossing& in) { return !in.alias.empty(); });
             });
    case RareFocus::kStoredOverGathered:
      return has([](const Op& op) { return index_operand(op.kind).has_value(); }) &&
             std::ranges::any_of(outputs(g), [](const OutputRef& o) { return bool(o.alias); });
    case RareFocus::kTwoWidths:
    case RareFocus::kFromTheLesser:
      return has_loop(c, ParallelType::kVectorize);
    case RareFocus::kConvertedTwice:
      return has_loop(c, ParallelType::kBlockX) && has([](const Op& op) { return op.kind == OpKind::kSum; });
    case RareFocus::kRoundedResult:
      return has([&](const Op& op) { return is_half(g[op.results[0]].dtype) && op.kind != OpKind::kInput; });
    case RareFocus::kResizedAlike:
      return c.compiled && std::ranges::any_of(c.compiled->scheduled, [](const Graph& s) {
               return std::ranges::any_of(s.transforms,
                                          [](const Transform& t) { return t.kind == TransformKind::kResize; });
             });
    case RareFocus::kLaterResult:
      return c.compiled && std::ranges::any_of(c.compiled->scheduled, [](const Graph& s) {
               return std::ranges::any_of(s.tensors,
                                          [](const Tensor& t) { return !t.allocation.empty() || t.inline_at; });
             });
    case RareFocus::kLayoutOfOne:
      return std::ranges::any_of(g.domains, [](const IterDomain& d) { return d.iter_type == IterType::kSymbolic; });
    case RareFocus::kStretchedSum:
      return has([](const Op& op) { return op.kind == OpKind::kExpand; }) &&
             count([](const Op& op) { return op.kind == OpKind::kSum || op.kind == OpKind::kMax; }) > 1;
    case RareFocus::kBehindColumns:
      return count([](const Op& op) { return op.kind == OpKind::kSum; }) > 1;
    case RareFocus::kSizesFoundEqual:
      return std::ranges::any_of(g.domains, [](const IterDomain& d) { return d.iter_type == IterType::kSymbolic; }) &&
             count([](const Op& op) { return demands(op.kind, kMetadata); }) > 2;
    case RareFocus::kLongSum:
      return std::ranges::any_of(c.inputs().specs, [](const InputSpec& s) {
        return std::ranges::any_of(s.shape, [](int64_t extent) { return extent > 200; });
      });
  }
  return false;
}

TEST(Situations, RareProgramsAreMet) {
  std::map<RareFocus, Count> counts;
  for (uint64_t seed = 6; seed < 8 * 72 * kRareFoci; seed += 8) {
    const Focus focus = focus_of(seed);
    ASSERT_TRUE(focus.rare) << seed;
    const Case c = generate_case(seed, {}).value;
    counts[*focus.rare].aimed += 1;
    counts[*focus.rare].met += is_met(*focus.rare, c);
  }
  EXPECT_EQ(counts.size(), kRareFoci);
  for (const auto& [rare, count] : counts) EXPECT_GT(count.met * 5, count.aimed) << static_cast<int>(rare);
}

}  // namespace
}  // namespace fusebox::fuzz
