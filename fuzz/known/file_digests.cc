#include "fuzz/known/file_digests.h"

#include <fmt/format.h>
#include <vector>

#include "codegen/cuda.h"
#include "fuzz/known/file_kinds.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "ir/token/literal.h"
#include "passes/lower/lower.h"
#include "passes/pipeline/pipeline.h"
#include "replay/picture/render.h"
#include "replay/run/aten_segment.h"
#include "replay/run/host_program.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

constexpr int64_t kStepLimit = int64_t{1} << 22;

std::string short_digest(std::string_view t) { return text(digest(t)).substr(0, 8); }

// `name DIGEST` of the text that `make` gives, or the error that it throws.
template <class Make>
std::string stage(std::string_view name, const Make& make) {
  try {
    return fmt::format(", {} {}", name, short_digest(make()));
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;
    return fmt::format(", {} {} {} {}", name, code_text(e.code), e.place, short_digest(e.what()));
  }
}

bool uses_aten(const Compiled& c) {
  for (const Segment& s : c.segmentation.segments)
    if (s.executor != SegmentExecutor::kKernel) return true;
  return false;
}

template <class Text>
std::string each_kernel(const Compiled& c, const Text& text_of) {
  std::string all;
  for (size_t i = 0; i < c.kernels.size(); ++i)
    if (c.segmentation.segments[i].executor == SegmentExecutor::kKernel) all += text_of(i) + "\n";
  return all;
}

std::string notes_text(const Graph& scheduled) {
  std::string all;
  for (const CheckNote& n : lower(canonical_order(scheduled), {.explain = true}).notes)
    all += fmt::format("{} {} {} {} {} {} {}\n", static_cast<int>(n.kind), n.value, n.domain, n.checked,
                       static_cast<int>(n.reason), n.predicate, n.settled);
  return all;
}

std::string pictures_text(const Graph& scheduled) {
  const picture::Picture p = picture::describe(scheduled);
  std::string all;
  for (const IdGraphKind kind : {IdGraphKind::kExact, IdGraphKind::kLoop})
    all += picture::to_text(p, kind) + picture::to_svg({{p}}, kind);
  return all;
}

// The states that every program has, however it was scheduled.
std::string program_stages(const Compiled& c) {
  std::string line;
  line += stage("scheduled", [&] { return each_kernel(c, [&](size_t i) { return print(c.scheduled[i]); }); });
  line += stage("kernels", [&] { return each_kernel(c, [&](size_t i) { return print(c.kernels[i]); }); });
  line += stage("cuda", [&] { return each_kernel(c, [&](size_t i) { return emit_cuda(c.kernels[i]).text; }); });
  line += stage("host", [&] { return print(c.segmentation) + print(c.host); });
  return line;
}

std::string outputs_text(const Compiled& c, const std::vector<Argument>& arguments) {
  const std::vector<NamedKernel> kernels = named_kernels(c);
  const auto device = make_host_device({.step_limit = kStepLimit});
  std::string all;
  for (const ProgramOutput& out : run_host_program(c.host, kernels, *device, arguments, {}).outputs) {
    const TensorData t = as_tensor(out.value);
    all += describe(t);
    for_each_run(t, [&](int64_t position, int64_t stride, int64_t count) {
      for (int64_t i = 0; i < count; ++i) all += print_literal(t.dtype, load_element(t, position + i * stride)) + " ";
    });
  }
  return all;
}

std::string decisions_text(const Automatic& a) {
  std::string all;
  for (const Decision& d : a.decisions) {
    all += d.segment + ": " + text(d.heuristics) + "\n";
    for (const Declined& other : d.declined) all += "not " + other.scheduler + ": " + other.why + "\n";
  }
  for (const Step& s : a.steps) all += print(s) + "\n";
  return all;
}

std::string digests_of(const Module& m, const Graph& g) {
  const std::vector<Argument> arguments = host_arguments(m, g);
  std::string line = "@" + g.name + ": fusion " + short_digest(print(g));
  const auto compiled = [&](bool automatic) {
    CompileOptions options;
    options.inputs = bound_inputs(arguments);
    options.infer = infer_by_aten();
    if (automatic)
      options.device = default_device();
    else if (const StepList* list = find_steps(m, g.name))
      options.steps = list->steps;
    return compile(g, bind_sizes(g, options.inputs), options);
  };
  try {
    const Compiled c = compiled(false);
    line += program_stages(c);
    line += stage("checks", [&] { return each_kernel(c, [&](size_t i) { return notes_text(c.scheduled[i]); }); });
    line += stage("pictures", [&] { return each_kernel(c, [&](size_t i) { return pictures_text(c.scheduled[i]); }); });
    // What ATen computes may have other bits on another machine.
    if (!uses_aten(c)) line += stage("outputs", [&] { return outputs_text(c, arguments); });
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;
    line += fmt::format(", {} {} {}", code_text(e.code), e.place, short_digest(e.what()));
  }
  const Compiled planned = compiled(true);
  line += "\n  automatic " + short_digest(decisions_text(*planned.automatic)) + program_stages(planned);
  return line + "\n";
}

}  // namespace

std::string digests_of(const Module& m) {
  std::string all;
  for (const Graph& g : m.graphs) all += digests_of(m, g);
  return all;
}

}  // namespace fusebox::fuzz
