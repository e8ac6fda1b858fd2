// A compiled fusion that serves other sizes is the one that compilation would make for them, byte for byte.
#include <gtest/gtest.h>

#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/real_programs.h"

namespace fusebox {
namespace {

// The inputs' shapes where the k-th size has the k-th of these values, or nothing if they do not fit the program.
std::optional<std::vector<BoundInput>> shapes(const Graph& g, const std::vector<int64_t>& values) {
  Bindings sizes(g.values.size());
  size_t next = 0;
  for (OpId id : g[Graph::body()].ops)
    if (g[id].kind == OpKind::kSize)
      for (ValueId v : g[id].results)
        sizes[v.index] = ConstantBits{static_cast<uint64_t>(values[next++ % values.size()]), 0};
  std::vector<BoundInput> given;
  for (ValueId v : inputs(g)) {
    BoundInput input;
    input.is_scalar = !g.is_tensor(v);
    if (input.is_scalar) input.bits = {1, 0};
    if (!input.is_scalar)
      for (DomainId d : logical_without_reductions(g, g.tensor_of(v))) {
        const auto size = evaluate_size(g, d, sizes);
        if (!size) return std::nullopt;
        input.shape.push_back(*size);
      }
    given.push_back(input);
  }
  return given;
}

std::string bytes_of(const Compiled& c) {
  std::string all = text(digest(c.host)) + " " + std::to_string(c.index_bits);
  for (const Graph& k : c.kernels) all += " " + text(digest(k));
  return all;
}

TEST(PlanReuse, WhatServesIsWhatCompilationWouldMake) {
  const std::vector<std::vector<int64_t>> choices = {{4, 6}, {8, 16, 24}, {1},
                                                     {0, 5}, {7, 1},      {int64_t{1} << 20, 4096}};
  size_t served = 0, refused = 0;
  for (const auto& program : testing::real_programs()) {
    if (program.module.graphs.empty()) continue;
    const Graph& g = main_graph(program.module);
    if (g.level != Level::kMath) continue;
    SCOPED_TRACE(program.path);
    const StepList* const list = find_steps(program.module, g.name);
    struct Known {
      CompileOptions options;
      Bindings sizes;
      Compiled compiled;
    };
    std::vector<Known> known;
    for (const auto& values : choices) {
      try {
        const auto given = shapes(g, values);
        if (!given) continue;
        Known k;
        k.options.inputs = *given;
        if (list != nullptr) k.options.steps = list->steps;
        k.sizes = bind_sizes(g, *given);
        k.compiled = compile(g, k.sizes, k.options);
        known.push_back(std::move(k));
      } catch (const Error&) {
        // These sizes do not fit the program.
      }
    }
    for (const Known& a : known)
      for (const Known& b : known) {
        const bool serves_b = serves(a.compiled, g, b.sizes, b.options);
        const bool is_same = bytes_of(a.compiled) == bytes_of(b.compiled);
        EXPECT_TRUE(is_same || !serves_b);
        // Where only the width was tried in vain, the same program may still be refused; never one of 32 bits.
        EXPECT_FALSE(is_same && !serves_b && a.compiled.index_bits == 32);
        ++(serves_b ? served : refused);
      }
  }
  EXPECT_GT(served, 100u);
  EXPECT_GT(refused, 20u);
}

}  // namespace
}  // namespace fusebox
