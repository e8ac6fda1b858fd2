// Products of matrices as generated kernels. There is none yet, so the row says why ATen computes them.
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {

std::optional<std::string> matmul_declines(const ScheduleView& view) {
  const Graph& g = view.fusion;
  for (OpId id : g[Graph::body()].ops)
    if (is_product(g[id].kind))
      return "no kernel of %" + g[g[id].results[0]].name + ", a " + std::string(row_of(g[id].kind).text) +
             ", is generated yet";
  return "no op multiplies matrices";
}

Heuristics matmul_choose(const ScheduleView&) {
  throw Error(ErrorCode::kInternal, "the scheduler matmul takes no fusion yet");
}

std::vector<Step> matmul_plan(const ScheduleView&, const Heuristics&) {
  throw Error(ErrorCode::kInternal, "the scheduler matmul takes no fusion yet");
}

}  // namespace fusebox
