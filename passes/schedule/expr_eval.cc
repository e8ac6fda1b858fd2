// One op that ATen alone computes, or a product of matrices with what follows it as one call: its segment calls ATen and
// needs no steps.
#include "ir/infer/is_library.h"
#include "ir/infer/product_call.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

std::optional<std::string> expr_eval_declines(const ScheduleView& view) {
  const Graph& g = view.fusion;
  if (product_call(g, view.defects)) return std::nullopt;
  const Op* only = nullptr;
  for (OpId id : g[Graph::body()].ops) {
    if (!makes_tensor(g, id)) continue;
    const std::string name = "%" + g[g[id].results[0]].name;
    if (!is_library(g, g[id])) return name + " is an op that kernels compute";
    if (only) return name + " is not the only op; each call of ATen is a segment of its own";
    only = &g[id];
  }
  if (!only) return "no op makes a tensor";
  return std::nullopt;
}

Heuristics expr_eval_choose(const ScheduleView& view) {
  Heuristics h{.scheduler = "expr_eval", .choices = {}};
  if (const auto call = product_call(view.fusion, view.defects)) h.set("epilogue", epilogue_text(view.fusion, *call));
  return h;
}

std::vector<Step> expr_eval_plan(const ScheduleView&, const Heuristics&) { return {}; }

}  // namespace fusebox
