#include "passes/identity/domain_views.h"

#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "passes/identity/id_graphs.h"

namespace fusebox {
namespace {

constexpr size_t kMaxViews = 16;

}  // namespace

DomainViews::DomainViews(const Graph& g, const NestPlan& plan, const ExtentClasses& extents, Start start,
                         TensorId tensor, bool with_facts)
    : g_(g), plan_(plan), symbols_(g, extents, algebra) {
  const auto list = [&](TensorId t) -> const std::vector<DomainId>& {
    return start == Start::kLoops ? loop_of(g[t]) : g[t].logical;
  };
  if (with_facts) {
    // There is a point, so no extent of the start is 0. A reshape keeps the product of all extents, so its factors
    // divide if no other axis is empty.
    DomainValues of_start = begin(tensor);
    for (DomainId d : list(tensor)) algebra.assume_le(algebra.constant(1), of_start.extent(d), "");
    for (uint32_t i = 0; i < g.tensors.size(); ++i) take_facts(TensorId(i));
  }
  const auto& given = list(tensor);
  DomainValues values = begin(tensor);
  std::vector<Form> sizes, forms;
  for (DomainId d : given) sizes.push_back(values.extent(d));
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string name = "%" + g[g[tensor].value].name + "." + g[given[i]].name;
    forms.push_back(algebra.declare_loop(next_, name, sizes[i]));
    variables_.push_back({next_++, name});
  }
  // The results of one op are made at the same points.
  for (TensorId t : siblings(g, tensor)) {
    if (list(t).size() != given.size()) continue;
    DomainValues at = begin(t);
    for (size_t i = 0; i < given.size(); ++i) at.set(list(t)[i], forms[i]);
    // The loops decide their own tensor's domains, a broadcast's too: if it is split with holes, it leaves its extent.
    if (start == Start::kLoops) at.propagate();
    finish(t, std::move(at), start);
  }
}

void DomainViews::take_facts(TensorId t) {
  const auto facts = facts_of(g_, t);
  if (facts.empty()) return;
  DomainValues values = begin(t);
  for (const DivisibilityFact& f : facts) {
    const auto& root = root_of(g_[t]);
    const bool holds = std::all_of(root.begin(), root.end(), [&](DomainId d) {
      return follows_from(g_, f.domain, d) || algebra.prove_le(algebra.constant(1), values.extent(d));
    });
    if (holds) assume(std::span(&f, 1), values, symbols_, algebra);
  }
}

std::vector<std::pair<Form, Form>> DomainViews::divides() {
  std::vector<std::pair<Form, Form>> result;
  for (uint32_t i = 0; i < g_.tensors.size(); ++i) {
    DomainValues values = begin(TensorId(i));
    for (const DivisibilityFact& f : facts_of(g_, TensorId(i)))
      result.emplace_back(symbols_.of(f.divisor), values.extent(f.domain));
  }
  return result;
}

Form DomainViews::free_variable(DomainId d, DomainValues& values) {
  const auto it = free_.find(d);
  if (it != free_.end()) return algebra.loop(it->second);
  const Form extent = values.extent(d);
  if (algebra.constant_value(extent) == 1) return {};
  free_.emplace(d, next_);
  return algebra.declare_loop(next_++, g_[d].name, extent);
}

void DomainViews::finish(TensorId t, DomainValues values, Start known_by) {
  // Loop broadcasts are in no op's result. They have one index, and so has a broadcast that a reshape makes.
  const auto set_to_0 = [&](DomainId d) {
    if (plan_.promoted.contains(d) || (known_by == Start::kLoops && values.known(d))) return;
    values.set(d, Form{});
  };
  for (DomainId d : g_[t].loop_broadcasts) set_to_0(d);
  for (DomainId d : g_[t].logical)
    if (!g_[d].def && g_[d].iter_type == IterType::kBroadcast) set_to_0(d);
  values.propagate();
  auto& views = views_[t];
  const auto all = domains_of(g_, g_[t]);
  for (const DomainValues& other : views)
    if (std::all_of(all.begin(), all.end(),
                    [&](DomainId d) { return other.known(d) == values.known(d) && other.value(d) == values.value(d); }))
      return;
  if (views.size() == kMaxViews)
    cut_[t] = true;
  else
    views.push_back(std::move(values));
}

void DomainViews::down(OpId id, size_t operand, ValueId result, const DomainValues& from) {
  const Op& op = g_[id];
  const TensorId t = g_[result].tensor;
  size_t position = 0;
  while (op.results[position] != result) ++position;
  DomainValues values = begin(t);
  for (DomainPair pair : map_producer_to_consumer(g_, id, operand, position))
    if (!is_concretized(g_, pair) && from.known(pair.producer)) values.set(pair.consumer, from.value(pair.producer));
  const auto& root = root_of(g_[t]);
  if (op.kind == OpKind::kCat) {
    const size_t axis = axis_of(g_, op);
    const DomainId d = logical_without_reductions(g_, g_.tensor_of(op.operands[operand]))[axis];
    if (from.known(d))
      values.set(root[axis], algebra.add(from.value(d), cat_offset(g_, plan_, symbols_, algebra, op, operand)));
  }
  for (DomainId d : root)
    if (!values.known(d)) values.set(d, free_variable(d, values));
  finish(t, std::move(values));
}

void DomainViews::up(OpId id, size_t operand, size_t result, const DomainValues& from) {
  const Op& op = g_[id];
  const TensorId t = g_[op.operands[operand]].tensor;
  DomainValues values = begin(t);
  const auto set = [&](DomainId d, Form value) {
    // A broadcast that is not promoted is read at index 0.
    const bool is_broadcast = g_[d].iter_type == IterType::kBroadcast && !g_[d].def;
    values.set(d, is_broadcast && !plan_.promoted.contains(d) ? Form{} : value);
  };
  for (DomainPair pair : map_producer_to_consumer(g_, id, operand, result))
    if (from.known(pair.consumer)) set(pair.producer, from.value(pair.consumer));
  if (op.kind == OpKind::kCat) {
    const size_t axis = axis_of(g_, op);
    const DomainId d = root_of(g_.tensor_of(op.results[result]))[axis];
    if (from.known(d))
      set(logical_without_reductions(g_, g_[t])[axis],
          algebra.sub(from.value(d), cat_offset(g_, plan_, symbols_, algebra, op, operand)));
  }
  for (DomainId d : g_[t].loop_broadcasts)
    if (const DomainId fed = plan_.fed_by(d, id); fed && plan_.promoted.contains(d) && from.known(fed))
      values.set(d, from.value(fed));
  for (DomainId d : g_[t].logical)
    if (!values.known(d)) values.set(d, free_variable(d, values));
  finish(t, std::move(values));
}

void DomainViews::go_up() {
  const auto& ops = g_[Graph::body()].ops;
  for (size_t i = ops.size(); i-- > 0;) {
    const Op& op = g_[ops[i]];
    for (size_t r = 0; r < op.results.size(); ++r) {
      const auto it = g_.is_tensor(op.results[r]) ? views_.find(g_[op.results[r]].tensor) : views_.end();
      if (it == views_.end()) continue;
      for (size_t k = 0; k < op.operands.size(); ++k)
        if (op.operands[k] && g_.is_tensor(op.operands[k]))
          for (const DomainValues& values : it->second) up(ops[i], k, r, values);
    }
  }
}

void DomainViews::go_down() {
  for (OpId id : g_[Graph::body()].ops) {
    const Op& op = g_[id];
    for (size_t k = 0; k < op.operands.size(); ++k) {
      if (!op.operands[k] || !g_.is_tensor(op.operands[k])) continue;
      const auto it = views_.find(g_[op.operands[k]].tensor);
      if (it == views_.end()) continue;
      for (ValueId result : op.results)
        if (g_.is_tensor(result))
          for (const DomainValues& values : it->second) down(id, k, result, values);
    }
  }
}

std::vector<Form> DomainViews::of(DomainId d) {
  std::vector<Form> result;
  const auto it = views_.find(g_[d].tensor);
  if (it == views_.end()) return result;
  for (const DomainValues& values : it->second) {
    if (!values.known(d)) continue;
    const Form form = values.value(d);
    const bool is_free =
        std::any_of(free_.begin(), free_.end(), [&](const auto& f) { return algebra.depends_on(form, f.second); });
    if (!is_free && std::find(result.begin(), result.end(), form) == result.end()) result.push_back(form);
  }
  return result;
}

}  // namespace fusebox
