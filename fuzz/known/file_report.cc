// The file tests of automatic plans (file_kinds.h).
#include <fmt/format.h>

#include "fuzz/generate/generate_inputs.h"
#include "fuzz/known/file_kinds.h"
#include "ir/infer/bind.h"
#include "ir/verify/verify.h"
#include "passes/automatic/plan_report.h"
#include "passes/schedule/apply_steps.h"

namespace fusebox::fuzz {
namespace {

std::string tensors_text(const std::vector<PlanTensor>& tensors) {
  std::string out;
  for (const PlanTensor& t : tensors) out += fmt::format(" %{} {}", t.name, t.bytes);
  return out;
}

std::string own_memory_text(const std::vector<std::string>& outputs) {
  std::string out;
  for (const std::string& name : outputs) out += "  with memory of its own for %" + name + "\n";
  return out;
}

std::string declined_text(const std::vector<Declined>& declined) {
  std::string out;
  for (const Declined& d : declined) out += fmt::format("  not {}: {}\n", d.scheduler, d.why);
  return out;
}

}  // namespace

DeviceProperties device_of(const FileRequest& r) {
  for (const DeviceProperties& d : device_presets())
    if (r.has(d.name)) return d;
  return default_device();
}

std::string report_text(const Module& m, const FileRequest& r) {
  verify(m);
  const Graph& g = main_graph(m);
  const CompileOptions options{.device = device_of(r), .inputs = bound_inputs(host_specs(m, g))};
  const Bindings sizes = bind_sizes(g, options.inputs);
  const Compiled c = compile(g, sizes, options);
  const AutomaticOptions planning{.sizes = rebind(g, sizes, c.concretized),
                                  .memory = c.automatic->memory,
                                  .device = *options.device,
                                  .heuristics = {},
                                  .others = false,
                                  .defects = {},
                                  .infer = nullptr,
                                  .inputs = options.inputs};
  const PlanReport report = report_plan(c.concretized, c.segmentation, c.automatic->decisions, planning);
  std::string out;
  for (const PlanPart& p : report.parts) {
    out += fmt::format("@{} {} {}\n  computes", p.segment, text(p.executor), p.heuristics);
    for (const std::string& op : p.ops) out += " %" + op;
    out += fmt::format("\n  reads{}\n  writes{}\n{}", tensors_text(p.reads), tensors_text(p.writes),
                       declined_text(p.declined));
  }
  for (const PlanMerge& merge : report.merges)
    out += fmt::format("@{} and @{} at{}: {}\n{}{}", report.parts[merge.from].segment, report.parts[merge.to].segment,
                       tensors_text(merge.crossing),
                       merge.heuristics.empty() ? "no kernel" : "possible, " + merge.heuristics,
                       own_memory_text(merge.own_memory), declined_text(merge.declined));
  for (const PlanCopy& copy : report.copies)
    out += fmt::format("%{} {} is copied over %{}\n", copy.from.name, copy.from.bytes, copy.to);
  const PlanningWork work = plan_automatic(c.concretized, planning).work;
  return out + fmt::format("work: {} stretches, {} cuts, {} extractions, {} steps, {} kernel plans\n", work.stretches,
                           work.tried_cuts, work.extractions, work.steps, work.kernel_plans);
}

}  // namespace fusebox::fuzz
