// Fusions without an element to compute, as the classes of sizes show. Their kernel has a grid of no block, and is not
// launched. An output that is an input is in no kernel at all: the segmentation leaves it to the host program.
#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/scalar/scalar_form.h"
#include "passes/schedule/elementwise.h"
#include "passes/schedule/prepared.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {
namespace {

// A tensor with a broadcast axis that stays one in an output, and that a reader elsewhere stretches. The loops of both
// readers merge that axis, so they are not the same, and the tensor cannot stand in both.
std::optional<std::string> stretched_beside_output(const Graph& g) {
  std::vector<bool> is_kept(g.domains.size()), is_stretched(g.domains.size());  // axes that are broadcasts
  for (const OutputRef& out : outputs(g))
    if (g.is_tensor(out.value))
      for (DomainId d : g.tensor_of(out.value).logical) is_kept[d.index] = true;
  const auto& ops = g[Graph::body()].ops;
  for (size_t i = ops.size(); i-- > 0;) {
    const Op& op = g[ops[i]];
    if (!makes_tensor(g, ops[i])) continue;
    for (DomainId d : g.tensor_of(op.results[0]).logical)
      if (g[d].iter_type == IterType::kBroadcast && is_kept[d.index] && is_stretched[d.index])
        return "%" + g[op.results[0]].name + " is stretched along " + g[d].name +
               " where one op reads it, and not where an output needs it";
    for (size_t k = 0; k < op.operands.size(); ++k)
      for (const DomainPair& pair : map_producer_to_consumer(g, ops[i], k)) {
        if (is_concretized(g, pair) || is_stretched[pair.consumer.index]) is_stretched[pair.producer.index] = true;
        if (!is_concretized(g, pair) && is_kept[pair.consumer.index]) is_kept[pair.producer.index] = true;
      }
  }
  return std::nullopt;
}

// An axis that an op stretches nothing along, though its extent and the operand's are equal in some runs only: the sizes
// say so, and the loops of both tensors cannot be proved the same.
std::optional<std::string> equal_by_size(const Graph& g) {
  const auto is_iteration = [&](DomainId d) { return g[d].iter_type == IterType::kIteration; };
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (!stretches(op.kind)) continue;
    for (const auto& [from, to] : map_producer_to_consumer(g, id, 0)) {
      if (!is_iteration(from) || !is_iteration(to)) continue;
      const auto n = size_form(g, from), m = size_form(g, to);
      if (!n || !m || !n->equals(*m))
        return "%" + g[op.results[0]].name + " has another extent along " + g[to].name + " than its operand";
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> no_op_declines(const ScheduleView& view) {
  const Graph& g = view.fusion;
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    if (!has_no_elements(view, out.value)) return "the output %" + g[out.value].name + " has elements";
  }
  if (auto why = elementwise_declines(view)) return why;
  if (auto why = equal_by_size(g)) return why;
  return stretched_beside_output(g);
}

Heuristics no_op_choose(const ScheduleView& view) {
  Heuristics h{.scheduler = "no_op", .choices = {}};
  h.set("reference", "%" + view.fusion[reference_of(view)].name);
  h.set("axes", 1);
  h.set("vector", 1);
  h.set("threads", view.device.warp);
  h.set("unroll", 1);
  h.set("outer", 0);
  h.set("reuse", 1);
  return h;
}

std::vector<Step> no_op_plan(const ScheduleView& view, const Heuristics& heuristics) {
  return elementwise_plan(view, heuristics);
}

}  // namespace fusebox
