// Builds the loop tree. Its order makes every value before it is read, and reads an input before an output overwrites
// it.
#include <algorithm>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/plan/correspondence.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"

namespace fusebox {
namespace {

std::vector<OrderConstraint> alias_order(const KernelPlan& plan) {
  const Graph& g = *plan.graph;
  std::vector<OrderConstraint> result;
  for (const OutputRef& out : outputs(g)) {
    if (!out.alias || !g.is_tensor(out.value)) continue;
    const OpId writer = g[out.value].def;
    if (!plan.has_nest(writer)) continue;
    for (OpId reader : plan.nest_plan.readers[out.alias.index]) {
      // All results of an op share the loops of the first, whose axes stand where theirs do.
      const Tensor& leader = g.tensor_of(g[writer].results[0]);
      const auto& loop = loop_of(leader);
      if (reader != writer) result.push_back({reader, writer});
      // The reader must read the element that the writer overwrites, in the same thread and in the same iteration of
      // shared loops.
      StatementView view(plan, reader);
      IndexAlgebra& algebra = view.algebra;
      for (size_t k = 0; k < g[reader].operands.size(); ++k) {
        if (g[reader].operands[k] != out.alias) continue;
        if (reads_by_data(g, g[reader], k))
          throw Error(ErrorCode::kIllegalAliasOrder,
                      "tensor " + plan.place_of(g[reader].results[0]) + " reads " + plan.place_of(out.alias) +
                          " along an axis where data tell it to; make the copy in a kernel of its own",
                      plan.place_of(out.value));
        const auto from = logical_without_reductions(g, g.tensor_of(out.alias));
        const auto to = logical_without_reductions(g, leader);
        // The loops of the writer, where it overwrites what the view's statement reads.
        const auto written_by = [&](StatementView& at) {
          DomainValues read = at.feed(k);
          DomainValues written(g, plan.nest_plan, at.symbols, at.algebra, g[leader.value].tensor);
          for (size_t i = 0; i < to.size() && i < from.size(); ++i) written.set(to[i], read.value(from[i]));
          written.propagate();
          return written;
        };
        DomainValues written = written_by(view);
        // An output without elements overwrites nothing. Its loops never run, so their forms do not say what would be
        // read.
        if (std::any_of(to.begin(), to.end(), [&](DomainId d) { return algebra.constant_value(written.size(d)) == 0; }))
          continue;
        // An op reads at its elements only, so it is enough if the loops agree there. Threads along a broadcast compute
        // its element again, and are no elements.
        std::optional<ViewState> state;
        std::optional<StatementView> at_elements;
        std::optional<DomainValues> written_there;
        const auto agrees_at_elements = [&](DomainId mine, DomainId its) {
          for (DomainId leaf : leaves(g, mine))
            if (g[leaf].iter_type == IterType::kBroadcast) return false;
          if (!state) {
            state.emplace(state_at_elements(plan, reader));
            at_elements.emplace(plan, reader, *state);
            stand_at_elements(plan, reader, *at_elements);
            written_there.emplace(written_by(*at_elements));
          }
          return at_elements->own.known(mine) && written_there->known(its) &&
                 at_elements->algebra.equal(at_elements->own.value(mine), written_there->value(its));
        };
        const auto& path = plan.nest_of(writer).path;
        for (ParallelType p : plan.used_threads)
          if (std::none_of(path.begin(), path.end(), [&](uint32_t n) { return plan.nest_plan.nodes[n].parallel == p; }))
            throw Error(ErrorCode::kIllegalAliasOrder,
                        "threads along " + std::string(text(p)) + " may read " + plan.place_of(out.alias) +
                            " after another one overwrote it; parallelize a loop of the output with it too",
                        plan.place_of(out.value));
        for (size_t i = 0; i < loop.size(); ++i) {
          const ParallelType p = plan.nest_plan.nodes[path[i]].parallel;
          const auto& read_path = plan.nest_of(reader).path;
          const bool shared = i < read_path.size() && read_path[i] == path[i];
          if (!is_thread(p) && !shared) continue;
          const auto own = is_thread(p) ? view.thread_loop(p) : std::optional<Form>(view.loop(i));
          // A replicated loop reads in every thread.
          const auto& read_loop = loop_of(g.tensor_of(g[reader].results[0]));
          bool by_all = false;
          DomainId mine = is_thread(p) ? DomainId() : read_loop[i];
          for (size_t r = 0; r < read_path.size(); ++r) {
            if (plan.nest_plan.nodes[read_path[r]].parallel != p) continue;
            by_all |= plan.is_replicated(read_loop[r]);
            if (is_thread(p)) mine = read_loop[r];
          }
          if (own && !by_all && written.known(loop[i]) && algebra.equal(written.value(loop[i]), *own)) continue;
          if (mine && !by_all && agrees_at_elements(mine, loop[i])) continue;
          throw Error(
              ErrorCode::kIllegalAliasOrder,
              "tensor " + plan.place_of(g[reader].results[0]) + " may read an element of " + plan.place_of(out.alias) +
                  " after another thread or iteration overwrote it; read it at the same place, or copy it first",
              plan.place_of(out.value));
        }
      }
    }
  }
  return result;
}

}  // namespace

KernelPlan plan_loops(KernelPlan plan) {
  plan.tree = build_loop_tree(*plan.graph, plan.nest_plan, alias_order(plan));
  return plan;
}

}  // namespace fusebox
