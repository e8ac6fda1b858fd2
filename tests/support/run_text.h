// Compiles and runs a program that is given as text with steps and inputs, as tests of one rule of lowering do.
//
//   const RunOfText r = run_text("fusion @f { … } steps @f { … } inputs @f host { … }", defects);
//   r.compiled.kernels.at(0).ops, r.outputs
#pragma once

#include <string>
#include <vector>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "tests/support/run_compiled.h"

namespace fusebox::testing {

struct RunOfText {
  Compiled compiled;
  std::vector<Digest> outputs;  // empty: the run was stopped
};

inline RunOfText run_text(const std::string& text, const Defects& defects = {}) {
  const Module m = parse_module(text);
  std::vector<Argument> inputs;
  for (const InputSpec& s : m.input_specs[0].specs) inputs.push_back(make_argument(s));
  const Graph& g = m.graphs[0];
  RunOfText ran;
  ran.compiled = compile(g, bind_sizes(g, bound_inputs(inputs)), {.steps = m.step_lists[0].steps, .defects = defects});
  try {
    const auto host = make_host_device();
    ran.outputs = output_digests(ran.compiled, *host, inputs);
  } catch (const Error&) {
    ran.outputs.clear();
  }
  return ran;
}

}  // namespace fusebox::testing
