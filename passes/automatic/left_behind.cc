#include "passes/automatic/left_behind.h"

#include <algorithm>
#include <vector>

#include "ir/domain/domain.h"

namespace fusebox {
namespace {

constexpr int64_t kShort = 64;  // iterations that a thread may walk alone

bool is_axis(const Graph& g, DomainId d) {
  return !g[d].def && (g[d].iter_type == IterType::kIteration || g[d].iter_type == IterType::kReduction);
}

// Calls `visit` for each tensor that an op of the body makes.
template <class Visit>
void each_made(const Graph& g, Visit&& visit) {
  for (OpId op : g[Graph::body()].ops) {
    if (g[op].kind == OpKind::kInput) continue;
    for (ValueId v : g[op].results)
      if (g.is_tensor(v)) visit(g.tensor_of(v));
  }
}

// The axes that are long serial loops as they are.
std::vector<DomainId> whole_loops(const Graph& g) {
  std::vector<DomainId> result;
  each_made(g, [&](const Tensor& t) {
    for (DomainId d : loop_of(t)) {
      if (!is_axis(g, d) || is_thread(g[d].parallel)) continue;
      const auto extent = constant_integer(g, g[d].extent);
      if (!extent || *extent > kShort) result.push_back(d);
    }
  });
  return result;
}

// The axes from which loops of threads are made.
std::vector<DomainId> shared_axes(const Graph& g) {
  std::vector<DomainId> loops, result;
  each_made(g, [&](const Tensor& t) {
    std::ranges::copy_if(loop_of(t), std::back_inserter(loops), [&](DomainId d) { return is_thread(g[d].parallel); });
  });
  std::ranges::copy_if(ancestors(g, loops), std::back_inserter(result), [&](DomainId d) { return is_axis(g, d); });
  return result;
}

}  // namespace

std::optional<Error> left_behind(const Graph& scheduled) {
  const Graph& g = scheduled;
  const std::vector<DomainId> whole = whole_loops(g);
  if (whole.empty()) return std::nullopt;
  const AxisClasses classes(g);
  const std::vector<DomainId> shared = shared_axes(g);
  for (DomainId d : whole)
    if (std::ranges::any_of(shared, [&](DomainId other) { return classes.same(d, other); })) {
      const std::string place = "%" + g[g[g[d].tensor].value].name;
      return Error(ErrorCode::kUnsupportedSchedule,
                   "a thread would walk all of this axis, which other tensors share out among threads",
                   place + "." + g[d].name);
    }
  return std::nullopt;
}

}  // namespace fusebox
