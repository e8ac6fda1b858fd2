// What cases are aimed at: every combination as often as every other, and met by the case that is aimed at it.
#include "fuzz/focus.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "fuzz/case.h"
#include "fuzz/coverage_classes.h"
#include "ir/numeric.h"

namespace fusebox::fuzz {
namespace {

TEST(Focus, CasesWalkAllCombinations) {
  std::map<std::pair<OpKind, Dtype>, int> ops;
  std::set<std::array<Dtype, 3>> casts;
  std::set<std::pair<TransformKind, TransformKind>> transforms;
  size_t empty = 0;
  constexpr uint64_t kSeeds = 6000, kFirst = 424242;
  for (uint64_t seed = kFirst; seed < kFirst + kSeeds; ++seed) {
    const Focus focus = focus_of(seed);
    empty += focus.empty();
    for (const OpFocus& o : focus.ops) ++ops[{o.kind, o.dtype}];
    if (focus.casts) casts.insert({focus.casts->from, focus.casts->through, focus.casts->to});
    if (focus.transforms) transforms.insert({focus.transforms->first, focus.transforms->second});
  }
  EXPECT_EQ(empty, kSeeds / 2);
  int least = 1 << 20, most = 0;
  for (const auto& [cell, count] : ops) {
    least = std::min(least, count);
    most = std::max(most, count);
  }
  EXPECT_LE(most - least, 1);
  EXPECT_TRUE(ops.contains({OpKind::kRemainder, Dtype::kBfloat16}));
  EXPECT_TRUE(ops.contains({OpKind::kFmod, Dtype::kHalf}));
  EXPECT_TRUE(casts.contains({Dtype::kInt32, Dtype::kFloat, Dtype::kInt32}));
  EXPECT_TRUE(casts.contains({Dtype::kInt64, Dtype::kDouble, Dtype::kUint8}));
  EXPECT_EQ(transforms.size(), enum_texts<TransformKind>().size() * enum_texts<TransformKind>().size());
}

TEST(Focus, IsMet) {
  size_t ops = 0, met = 0, casts = 0, cast_met = 0, in_place = 0, in_place_met = 0, uneven = 0, uneven_met = 0;
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    const Focus focus = focus_of(seed);
    if (focus.empty()) continue;
    const Case c = generate_case(seed, {}).value;
    const Graph& g = c.fusion();
    for (const OpFocus& o : focus.ops) {
      ++ops;
      met += std::any_of(g.ops.begin(), g.ops.end(), [&](const Op& op) {
        const auto has_dtype = [&](ValueId v) { return v && g[v].dtype == o.dtype; };
        return op.kind == o.kind && (std::any_of(op.operands.begin(), op.operands.end(), has_dtype) ||
                                     std::any_of(op.results.begin(), op.results.end(), has_dtype));
      });
    }
    if (focus.casts) {
      ++casts;
      const auto classes = cast_classes(g);
      cast_met += std::find(classes.begin(), classes.end(), 0u) != classes.end();
    }
    if (focus.in_place) {
      ++in_place;
      const auto out = outputs(g);
      in_place_met += std::any_of(out.begin(), out.end(), [](const OutputRef& o) { return bool(o.alias); });
    }
    if (focus.swizzle && focus.swizzle->first != focus.swizzle->second && c.compiled) {
      ++uneven;
      for (const Graph& s : c.compiled->scheduled)
        if (const auto classes = swizzle_classes(s); !classes.empty()) {
          uneven_met += 1;
          break;
        }
    }
  }
  EXPECT_GT(met * 10, ops * 9);
  EXPECT_GT(cast_met * 10, casts * 9);
  EXPECT_GT(in_place_met * 10, in_place * 7);
  EXPECT_GT(uneven_met * 2, uneven);
}

}  // namespace
}  // namespace fusebox::fuzz
