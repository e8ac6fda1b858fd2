// Small programs, and the effects of steps on them as text.
//
//   Graph g = scheduled(kRows, "split %s.i1 by 4 -> o, t\nparallelize %s.t on block.x");
//   loops(g, "s") == "i0, o reduce, t reduce block.x"
//   refusal(g, "split %s.i1 by 4 -> a, b") == "E0302 %s.i1"
#pragma once

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

}  // namespace fusebox::testing
