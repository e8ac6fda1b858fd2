// The automatic plan of a program, for tests of schedulers: what it decided, and what its kernels do.
//
//   const Planned p = plan_of(R"(fusion @f { … })", {{.shape = {64, 32}}});
//   p.scheduler(), p.choice("vector"), p.widths("y")
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/program_text.h"

namespace fusebox::testing {

struct Planned {
  Graph fusion;
  Compiled compiled;

  // "unfused" if there are several segments or no scheduler took the fusion.
  std::string scheduler() const {
    const auto& d = compiled.automatic->decisions;
    return d.size() == 1 ? d[0].heuristics.scheduler : "unfused";
  }
  // 0 if the scheduler did not choose it.
  int64_t choice(const std::string& key) const {
    for (const Decision& d : compiled.automatic->decisions)
      for (const Heuristic& h : d.heuristics.choices)
        if (h.key == key) return h.number;
    return 0;
  }
  // Why a scheduler declined; empty if it did not.
  std::string why(const std::string& name) const {
    for (const Decision& d : compiled.automatic->decisions)
      for (const Declined& s : d.declined)
        if (s.scheduler == name) return s.why;
    return {};
  }
  // By number of bytes: the vector accesses of the kernels.
  std::map<int64_t, int> vectors() const {
    std::map<int64_t, int> result;
    for (const Graph& kernel : compiled.kernels)
      for (const Op& op : kernel.ops)
        if (op.kind == OpKind::kCopy)
          ++result[op.attrs.integer(AttrKey::kWidth, 1) * size_bytes(kernel[op.operands[0]].dtype)];
    return result;
  }
};

inline Planned plan_of(const Graph& fusion, const std::vector<BoundInput>& inputs, CompileOptions options = {}) {
  options.device = default_device();
  options.inputs = inputs;
  return {fusion, compile(fusion, bind_sizes(fusion, inputs), options)};
}
inline Planned plan_of(const std::string& program, const std::vector<BoundInput>& inputs) {
  return plan_of(main_graph(parse_module(program)), inputs);
}

// Inputs of these shapes, contiguous and aligned.
inline std::vector<BoundInput> contiguous(const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<BoundInput> result;
  for (const auto& shape : shapes) result.push_back({.shape = shape, .align = 256});
  return result;
}

inline Module read_program(const std::string& path) { return parse_module(file_text(path)); }

// The plan of a file's program for contiguous inputs of these shapes.
inline Planned plan_of_file(const std::string& path, const std::vector<std::vector<int64_t>>& shapes) {
  return plan_of(main_graph(read_program(path)), contiguous(shapes));
}

}  // namespace fusebox::testing
