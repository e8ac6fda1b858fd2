// Judges a PythonProgram: runs its schedule on the host executor, compares with ATen's bounds and with the unfused
// plan, and checks that the program survives text and bytes.
#include <algorithm>

#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/schedule/apply_steps.h"
#include "replay/device/module_loader.h"
#include "replay/python/program.h"
#include "replay/run/aten_segment.h"
#include "replay/run/compare.h"
#include "replay/run/host_program.h"
#include "replay/run/judge.h"

namespace fusebox::python {
namespace {

// The limit of thread-instructions of a launch: they take under a second.
constexpr int64_t kStepLimit = int64_t{1} << 25;

bool is_internal(const Error& e) { return row_of(e.code).outcome == Outcome::kInternal; }

struct Finding {
  Judgement value;
};

[[noreturn]] void found(const Graph& g, std::string stage, std::string check, std::string_view place,
                        std::string message) {
  throw Finding{{"failed", std::move(stage), std::move(check), place_class(g, place), std::move(message)}};
}

[[noreturn]] void found(const Graph& g, std::string stage, const Error& e) {
  found(g, std::move(stage), code_text(e.code), e.place, code_text(e.code) + " " + e.place + ": " + e.what());
}

[[noreturn]] void refused(const Graph& g, std::string stage, const Error& e) {
  throw Finding{{"refused", std::move(stage), code_text(e.code), place_class(g, e.place),
                 code_text(e.code) + " " + e.place + ": " + e.what()}};
}

std::vector<TensorData> run_host(const Compiled& c, std::span<const Argument> arguments) {
  const std::vector<NamedKernel> kernels = named_kernels(c);
  HostProgramOptions options;
  options.run_aten = run_aten_segments(c);
  const auto device = make_host_device({.step_limit = kStepLimit});
  std::vector<TensorData> result;
  for (const ProgramOutput& out : run_host_program(c.host, kernels, *device, arguments, options).outputs)
    result.push_back(as_tensor(out.value));
  return result;
}

void check_text(const Graph& fusion, const Module& m, const Graph* scheduled) {
  try {
    const std::string written = print(m);
    if (!(parse_module(written) == m))
      found(fusion, "text", "differs", "", "the program's text reads as another program:\n" + written);
    if (!scheduled) return;
    verify(*scheduled);
    const std::string steps_left = print(*scheduled);
    if (print(parse_graph(steps_left)) != steps_left)
      found(fusion, "text", "scheduled", "", "the scheduled fusion's text reads as another:\n" + steps_left);
  } catch (const Error& e) {
    found(fusion, "text", e);
  }
}

void check_aten(const Graph& fusion, std::span<const Argument> arguments, std::span<const TensorData> actual) {
  const AtenApi* api = find_aten();
  if (!api) return;
  std::optional<Evaluation> expected;
  try {
    expected = api->evaluate(fusion, arguments);
  } catch (const Error& e) {
    if (is_internal(e)) found(fusion, "aten", e);
    return;  // ATen does not have this op on this dtype
  }
  const auto wanted = outputs(fusion);
  for (size_t i = 0; i < actual.size(); ++i) {
    const std::string& name = fusion[wanted[i].value].name;
    try {
      const Comparison c = compare(actual[i], expected->outputs[i], 1);
      if (!c.ok) found(fusion, "aten", "differs", "%" + name, c.message(name));
    } catch (const Error& e) {
      found(fusion, "aten", e);
    }
  }
}

}  // namespace

Judgement PythonProgram::judge(const py::list& given) {
  const std::vector<Argument> arguments = arguments_of(given);
  py::gil_scoped_release no_gil;
  try {
    check_text(graph, module(), scheduled && segments_.empty() ? &*scheduled : nullptr);
    std::vector<TensorData> actual;
    std::shared_ptr<const Compiled> made;
    try {
      made = plan(arguments, -1)->compiled;
    } catch (const Error& e) {
      if (is_internal(e)) found(graph, "compile", e);
      refused(graph, "compile", e);
    }
    try {
      actual = run_host(*made, arguments);
    } catch (const Error& e) {
      if (is_launch_refusal(e.code)) refused(graph, "launch", e);
      found(graph, "host-checks", e);
    }
    check_aten(with_precision(graph, steps), arguments, actual);
    const auto& segments = made->segmentation.segments;
    const bool by_kernels = std::all_of(segments.begin(), segments.end(),
                                        [](const Segment& s) { return s.executor == SegmentExecutor::kKernel; });
    if (!steps.empty() && by_kernels && is_order_free(graph)) {
      std::vector<TensorData> unfused;
      try {
        const Compiled plain = compile(graph, bind_sizes(graph, bound_inputs(arguments)), {.defects = defects});
        unfused = run_host(plain, arguments);
      } catch (const Error& e) {
        if (!is_launch_refusal(e.code)) found(graph, "schedules", e);
      }
      const auto wanted = outputs(graph);
      for (size_t i = 0; i < unfused.size(); ++i)
        if (const auto at = first_difference(actual[i], unfused[i])) {
          const std::string& name = graph[wanted[i].value].name;
          if (*at < 0)
            found(graph, "schedules", "layout", "%" + name, describe(actual[i]) + ", unfused " + describe(unfused[i]));
          found(graph, "schedules", "differs", "%" + name,
                "element " + std::to_string(*at) + " of %" + name + " differs from the unfused plan's");
        }
    }
  } catch (const Finding& f) {
    return f.value;
  }
  return {"passed", "", "", "", ""};
}

std::optional<std::tuple<std::string, std::string, std::string>> PythonProgram::compile_refusal(const py::list& given) {
  const std::vector<Argument> arguments = arguments_of(given);
  py::gil_scoped_release no_gil;
  try {
    plan(arguments, -1);
  } catch (const Error& e) {
    if (is_internal(e)) return std::nullopt;  // `judge` finds it
    return std::tuple(code_text(e.code), std::string(e.what()), e.place);
  }
  return std::nullopt;
}

}  // namespace fusebox::python
