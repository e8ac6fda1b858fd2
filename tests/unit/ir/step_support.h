// Small programs, and the effects of steps on them as text.
//
//   Graph g = scheduled(kRows, "split %s.i1 by 4 -> o, t\nparallelize %s.t on block.x");
//   loops(g, "s") == "i0, o reduce, t reduce block.x"
//   refusal(g, "split %s.i1 by 4 -> a, b") == "E0302 %s.i1"
#pragma once

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "ir/module/step.h"
#include "ir/step/apply.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"

namespace fusebox::testing {

inline constexpr std::string_view kRows = R"(fusion @rows {
  %m, %n = size
  %x = input bf16[%m, %n] contiguous
  %w = input f32[%n] contiguous
  %f = cast %x as f32
  %s = sum %f over [1]
  %sb = broadcast %s mask [0, 1]
  %d = sub %f, %sb
  %wb = broadcast %w mask [1, 0]
  %y = mul %d, %wb
  output %y
})";

inline std::string exp_then_neg(int64_t extent) {
  return "fusion @f {\n  %x = input f32[" + std::to_string(extent) +
         "] contiguous\n  %y = exp %x\n  %z = neg %y\n  output %z\n}";
}
inline const std::string kChain = exp_then_neg(64);

// %y.c and %z.c have the extent 2 and are different functions of the elements: i / 4 and i / 3.
inline const std::string kFive = exp_then_neg(5);
inline constexpr std::string_view kFiveInThrees =
    "split %y.i0 by 2 -> a, b\nsplit %y.a by 2 -> c, d\nsplit %z.i0 by 3 -> c, d";

// %x is read along two ways.
inline constexpr std::string_view kSymmetric = R"(fusion @symmetric {
  %n = size
  %x = input f32[%n, %n] contiguous
  %t = permute %x dims [1, 0]
  %y = add %x, %t
  output %y
})";

// Applies steps, one in each line, and verifies after each.
inline void run_steps(Graph& g, std::string_view steps) {
  for (const Step& step : parse_steps(steps)) {
    const auto refusal = inapplicable(g, step);
    ASSERT_FALSE(refusal) << print(step) << ": " << refusal->message << " at " << refusal->place;
    apply(g, step);
    const auto error = find_error(g);
    ASSERT_FALSE(error) << print(step) << ": " << error->what() << " at " << error->place << "\n" << print(g);
  }
}

inline Graph scheduled(std::string_view program, std::string_view steps) {
  Graph g = parse_graph(program);
  run_steps(g, steps);
  return g;
}

inline const Tensor& tensor_named(const Graph& g, std::string_view name) {
  return g.tensor_of(find_value(g, name).value());
}
inline DomainId domain_named(const Graph& g, std::string_view tensor, std::string_view name) {
  return find_domain(g, g[find_value(g, tensor).value()].tensor, name).value();
}

inline std::string list_text(const Graph& g, const std::vector<DomainId>& list) {
  std::string result;
  for (DomainId d : list) {
    result += (result.empty() ? "" : ", ") + g[d].name;
    if (g[d].iter_type != IterType::kIteration) result += " " + std::string(text(g[d].iter_type));
    if (g[d].parallel != ParallelType::kSerial) result += " " + std::string(text(g[d].parallel));
  }
  return result;
}
inline std::string loops(const Graph& g, std::string_view name) { return list_text(g, loop_of(tensor_named(g, name))); }
// The name of the innermost loop shared with consumers, or "none".
inline std::string inlined_at(const Graph& g, std::string_view name) {
  const DomainId d = tensor_named(g, name).inline_at;
  return d ? g[d].name : "none";
}

// Code and place of a refusal; "applies" if there is none.
inline std::string refusal(const Graph& g, const Step& step) {
  const auto why = inapplicable(g, step);
  if (!why) return "applies";
  return code_text(why->code) + (why->place.empty() ? "" : " " + why->place);
}
inline std::string refusal(const Graph& g, std::string_view step) { return refusal(g, parse_step(step)); }

// Each line has a step and its refusal: `split %y.t by 0 -> a, b => E0302`.
inline void expect_refusals(const Graph& g, std::string_view lines) {
  constexpr std::string_view kArrow = " => ";
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) continue;
    const size_t arrow = line.find(kArrow);
    ASSERT_NE(arrow, std::string_view::npos) << line;
    EXPECT_EQ(refusal(g, line.substr(0, arrow)), line.substr(arrow + kArrow.size())) << line;
  }
}

}  // namespace fusebox::testing
