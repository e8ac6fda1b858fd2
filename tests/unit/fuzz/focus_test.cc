// Foci: all combinations occur equally often, and a case that aims at one meets it.
#include "fuzz/generate/focus.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "fuzz/coverage/coverage_classes.h"
#include "fuzz/generate/case.h"
#include "fuzz/oracle/oracle.h"
#include "ir/scalar/numeric.h"

namespace fusebox::fuzz {
namespace {

TEST(Focus, CasesWalkAllCombinations) {
  std::map<std::pair<OpKind, Dtype>, int> ops;
  std::set<std::array<Dtype, 3>> casts;
  std::set<std::pair<TransformKind, TransformKind>> transforms;
  std::set<std::string> forms;
  std::set<std::tuple<OpKind, Dtype, double>> functions;
  size_t far_indices = 0, far_swizzles = 0;
  size_t empty = 0;
  constexpr uint64_t kSeeds = 6000, kFirst = 424242;
  for (uint64_t seed = kFirst; seed < kFirst + kSeeds; ++seed) {
    const Focus focus = focus_of(seed);
    empty += focus.empty();
    for (const OpFocus& o : focus.ops) ++ops[{o.kind, o.dtype}];
    if (focus.casts) casts.insert({focus.casts->from, focus.casts->through, focus.casts->to});
    if (focus.form) forms.insert(text(*focus.form));
    for (const ArgumentRange& r : focus.arguments) functions.insert({r.kind, r.dtype, r.low});
    far_indices += focus.far_indices;
    far_swizzles += focus.swizzle && focus.swizzle->is_far;
    if (focus.transforms) transforms.insert({focus.transforms->first, focus.transforms->second});
  }
  EXPECT_EQ(empty, kSeeds * 2 / 8);
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
  EXPECT_EQ(forms.size(), all_forms().size());
  EXPECT_TRUE(forms.contains("where of a constant condition"));
  EXPECT_TRUE(forms.contains("floor of trunc"));
  EXPECT_TRUE(functions.contains({OpKind::kErfcinv, Dtype::kDouble, 1e-230}));
  EXPECT_TRUE(functions.contains({OpKind::kPow, Dtype::kFloat, 0}));
  EXPECT_GT(far_indices, kSeeds / 64);
  EXPECT_GT(far_swizzles, kSeeds / 64);
  EXPECT_EQ(transforms.size(), enum_texts<TransformKind>().size() * enum_texts<TransformKind>().size());
}

// A focus has the cases of one remainder by 16. Each oracle judges its share of them, whatever the remainder.
TEST(Focus, OraclesJudgeCasesOfEachRemainder) {
  constexpr uint64_t kRemainders = 16, kRounds = 4096;
  for (const OracleRow& row : oracle_rows()) {
    if (row.every > 64) continue;
    for (uint64_t remainder = 0; remainder < kRemainders; ++remainder) {
      uint64_t due = 0;
      for (uint64_t round = 0; round < kRounds; ++round) due += is_due(row, kRemainders * round + remainder);
      EXPECT_EQ(due, kRounds / row.every) << row.text << " " << remainder;
    }
  }
}

TEST(Focus, FormsAndArgumentsAreMet) {
  size_t forms = 0, form_met = 0, arguments = 0, argument_met = 0, far = 0, far_met = 0;
  for (uint64_t seed = 1; seed <= 1600; ++seed) {
    const Focus focus = focus_of(seed);
    if (!focus.form && focus.arguments.empty() && !focus.far_indices && !(focus.swizzle && focus.swizzle->is_far))
      continue;
    const Case c = generate_case(seed, {}).value;
    if (focus.form) {
      const auto all = all_forms();
      const auto classes = form_classes(c.fusion());
      ++forms;
      form_met += std::any_of(classes.begin(), classes.end(), [&](size_t i) { return all[i] == *focus.form; });
    }
    arguments += focus.arguments.size();
    argument_met += std::min(focus.arguments.size(), function_classes(c).size());
    const auto classes = index_classes(c);
    const size_t wanted = focus.far_indices ? 3 : 6;  // small ones from large ones; far apart by a swizzled loop
    if (!focus.far_indices && !focus.swizzle) continue;
    ++far;
    far_met += std::find(classes.begin(), classes.end(), wanted) != classes.end();
  }
  EXPECT_GT(form_met * 10, forms * 7);
  EXPECT_GT(argument_met * 10, arguments * 9);
  EXPECT_GT(far_met * 10, far * 7);
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
