// How much memory a thread keeps, what is combined across threads, and which copies take several elements at once: the
// last decisions that a schedule may be refused for. Buffers and ops are visited in the order of the loop tree.
#include <algorithm>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/plan/ahead.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/statement_view.h"
#include "passes/plan/vector_copy.h"

namespace fusebox {
namespace {

constexpr int64_t kLargestLocal = 65536;  // bytes of one buffer in a thread

class StoragePlanner {
 public:
  explicit StoragePlanner(KernelPlan& plan) : plan_(plan), g_(*plan.graph) {}

  void run() {
    plan_.statements.resize(plan_.tree.statements.size());
    place_in_loops(plan_);
    check_ahead(plan_);
    body(LoopNode::kNoNode);
    leave_implied_out(plan_.divisibilities);
    // With the facts that the launch checks, forms are spelled otherwise, and a spelling may hide that elements lie side
    // by side. A later stage cannot refuse, so such a copy is refused here.
    if (plan_.divisibilities.empty()) return;
    plan_.knows_launch = true;
    for (uint32_t i = 0; i < plan_.statements.size(); ++i) {
      if (!plan_.statements[i].vector) continue;
      StatementView view(plan_, plan_.tree.statements[i]);
      VectorNeeds needs;
      plan_vector_copy(plan_, view, needs);
    }
    plan_.knows_launch = false;
  }

 private:
  // 8 divides n, so 4 divides n, and 8 divides n*m. The algebra would spell n by both facts, as 4 times 2 times a third, and
  // what is known of n would not be known of that.
  static void leave_implied_out(std::set<Divisibility>& facts) {
    std::erase_if(facts, [&](const Divisibility& d) {
      return std::ranges::any_of(facts, [&](const Divisibility& other) {
        return other != d && other.divisor % d.divisor == 0 && std::ranges::includes(d.product, other.product);
      });
    });
  }

  void body(uint32_t node) {
    if (const auto it = plan_.at_home.find(node); it != plan_.at_home.end())
      for (ValueId v : it->second)
        if (plan_.buffer_of(v).memory == MemoryType::kLocal) local_size(plan_.buffers[v.index]);
    if (const auto it = plan_.accumulators_at.find(node); it != plan_.accumulators_at.end())
      for (OpId op : it->second) accumulator(op);
    for (const TreeChild& c : node == LoopNode::kNoNode ? plan_.tree.top : plan_.tree.children[node])
      c.is_node ? body(c.index) : vector_copy(c.index);
  }

  void local_size(Buffer& b) {
    // The size is nearly always a product of constants, which needs no knowledge of the nest.
    OpenExtents open(plan_);
    auto count = open.algebra.constant_value(open.elements_of(b));
    if (!count) {
      StatementView view(plan_, g_[b.value].def, path_around_reduction(plan_, g_[b.value].def));
      count = view.algebra.constant_value(elements_of(plan_, view.symbols, view.algebra, b));
    }
    if (!count)
      throw Error(ErrorCode::kIllegalAllocation,
                  "its part in a thread has no constant size; split by constants, inline it further in, or keep it in "
                  "shared or global memory",
                  plan_.place_of(b.value));
    const int64_t bytes = size_bytes(g_[b.value].dtype);
    if (*count > kLargestLocal / bytes)
      throw Error(ErrorCode::kIllegalAllocation,
                  "its part in a thread takes " + std::to_string(*count) + " elements of " + std::to_string(bytes) +
                      " bytes, over " + std::to_string(kLargestLocal) + " bytes; inline it further in",
                  plan_.place_of(b.value));
    b.elements = *count;
  }

  void accumulator(OpId op) {
    const auto& loop = plan_.loops_of(op);
    Accumulator a{accumulator_places(plan_, op), 1};
    StatementView view(plan_, op, path_around_reduction(plan_, op));
    std::vector<DomainId> domains;
    for (size_t i : a.places) domains.push_back(loop[i]);
    const auto elements = view.algebra.constant_value(view.own.elements(domains));
    if (!elements || *elements > kLargestLocal / 16)
      throw Error(ErrorCode::kIllegalReduction,
                  "a thread would keep an accumulator for each of a " + std::string(elements ? "large" : "symbolic") +
                      " number of elements; parallelize its iteration loops, or inline it further in",
                  plan_.place_of(g_[op].results[0]));
    a.elements = *elements;
    plan_.accumulators.emplace(op, std::move(a));
    Exchange e;
    e.threads = combined_threads(plan_, op);
    e.is_grid = std::ranges::any_of(e.threads, is_grid);
    if (!e.threads.empty()) plan_.exchanges.emplace(op, std::move(e));
  }

  void vector_copy(uint32_t index) {
    const Statement& s = plan_.tree.statements[index];
    if (demands(g_[s.op].kind, kReduction) || !is_vector_copy(plan_, s.op)) return;
    StatementView view(plan_, s);
    VectorNeeds needs;
    plan_.statements[index].vector = plan_vector_copy(plan_, view, needs);
    plan_.divisibilities.insert(needs.divisibilities.begin(), needs.divisibilities.end());
    for (const auto& [storage, bytes] : needs.alignments) {
      int64_t& align = plan_.alignments[storage];
      align = std::max(align, bytes);
    }
  }

  KernelPlan& plan_;
  const Graph& g_;
};

}  // namespace

void place_in_loops(KernelPlan& plan) {
  const Graph& g = *plan.graph;
  for (const Nest& nest : plan.nest_plan.nests) {
    for (ValueId v : g[nest.op].results) {
      const Buffer& b = plan.buffer_of(v);
      if (!b.is_parameter) plan.at_home[b.memory == MemoryType::kShared ? LoopNode::kNoNode : b.home].push_back(v);
    }
    if (demands(g[nest.op].kind, kReduction))
      plan.accumulators_at[nest.shared > 0 ? nest.path[nest.shared - 1] : LoopNode::kNoNode].push_back(nest.op);
  }
}

// The loops from the outermost reduction loop inwards, except reductions and threads. The result's memory does not
// matter.
std::vector<size_t> accumulator_places(const KernelPlan& plan, OpId op) {
  const Graph& g = *plan.graph;
  const Nest& nest = plan.nest_of(op);
  const auto& loop = plan.loops_of(op);
  std::vector<size_t> places;
  for (size_t i = std::max<size_t>(nest.shared, first_reduction_loop(g, plan.nest_plan, nest)); i < loop.size(); ++i)
    if (!is_reduction(g, loop[i]) && !is_thread(plan.parallel_of(nest.path[i]))) places.push_back(i);
  return places;
}

std::vector<ParallelType> combined_threads(const KernelPlan& plan, OpId op) {
  const auto& loop = plan.loops_of(op);
  std::vector<ParallelType> threads;
  for (size_t i = 0; i < loop.size(); ++i) {
    const ParallelType p = plan.parallel_of(plan.nest_of(op).path[i]);
    if (is_reduction(*plan.graph, loop[i]) && is_thread(p)) threads.push_back(p);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

KernelPlan plan_storage(KernelPlan plan) {
  StoragePlanner(plan).run();
  return plan;
}

}  // namespace fusebox
