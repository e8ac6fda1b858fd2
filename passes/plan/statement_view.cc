#include "passes/plan/statement_view.h"

#include <algorithm>
#include <optional>
#include <span>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"

namespace fusebox {
namespace {

constexpr int kSelected = kLoadedSymbol - 1;  // the index of a select whose scalar is not constant

// Whether the op states facts in the algebra of its statement, which then cannot be another's.
bool has_own_facts(const Op& op) { return op.kind == OpKind::kReshape; }

void assume_launch(const KernelPlan& plan, Symbols& symbols, IndexAlgebra& algebra) {
  for (const Divisibility& d : plan.divisibilities) {
    if (std::ranges::any_of(d.product, [](const ScalarParameter& p) { return static_cast<bool>(p.stride_of); }))
      continue;
    Form product = algebra.constant(1);
    for (const ScalarParameter& p : d.product) product = algebra.mul(product, symbols.of(p.scalar));
    algebra.assume_divides(algebra.constant(d.divisor), product, "the launch checks it for a vectorized access");
  }
}

// The algebra of nests of these ops, all with this path. Its members are the ops whose loops have the extents of the
// first's. An op that states facts comes alone.
std::shared_ptr<PathAlgebra> make_algebra(const KernelPlan& plan, const std::vector<uint32_t>& path,
                                          std::span<const OpId> ops) {
  const Graph& g = *plan.graph;
  auto made = std::make_shared<PathAlgebra>(plan.defects(), plan.knows_launch);
  IndexAlgebra& algebra = made->algebra;
  Symbols symbols(g, plan.classes, algebra);
  const auto tensor_of = [&](OpId op) { return g[g[op].results[0]].tensor; };
  DomainValues of_first(g, plan.nest_plan, symbols, algebra, tensor_of(ops.front()));
  // Facts and symbols come first: a fact learnt later does not simplify forms that exist already.
  assume(plan.facts, symbols, algebra, plan.defects());
  if (has_own_facts(g[ops.front()]))
    for (TransformId id : op_transforms(g, g[tensor_of(ops.front())]))
      if (g[id].kind == TransformKind::kSplit)
        algebra.assume_divides(symbols.of(g[id].factor), of_first.extent(g[id].inputs[0]),
                               "a reshape keeps every element");
  if (plan.knows_launch) assume_launch(plan, symbols, algebra);
  const auto extents_of = [&](OpId op, DomainValues& values) {
    std::vector<Form> extents;
    for (DomainId loop : plan.loops_of(op)) extents.push_back(values.extent(loop));
    return extents;
  };
  const std::vector<Form> extents = extents_of(ops.front(), of_first);
  made->members.emplace(ops.front(), of_first.knowledge());
  for (OpId op : ops.subspan(1)) {
    DomainValues values(g, plan.nest_plan, symbols, algebra, tensor_of(op));
    if (extents_of(op, values) == extents) made->members.emplace(op, values.knowledge());
  }
  const auto& loops = plan.loops_of(ops.front());
  for (size_t i = 0; i < loops.size(); ++i)
    if (path[i] != LoopNode::kNoNode) algebra.declare_loop(static_cast<int>(path[i]), g[loops[i]].name, extents[i]);
  return made;
}

// The algebra that the op's nest shares with others, or none.
std::shared_ptr<PathAlgebra> shared_algebra(const KernelPlan& plan, OpId op, const std::vector<uint32_t>& path) {
  auto& ops_at = plan.views->ops_at;
  if (ops_at.empty())
    for (const Nest& nest : plan.nest_plan.nests)
      if (!has_own_facts((*plan.graph)[nest.op])) ops_at[nest.path].push_back(nest.op);
  // The exchange of a reduction, for one, has a path that no nest has.
  const auto ops = ops_at.find(path);
  if (ops == ops_at.end()) return nullptr;
  auto& algebra = plan.views->algebras[{path, plan.knows_launch}];
  if (!algebra) algebra = make_algebra(plan, path, ops->second);
  return algebra->members.contains(op) ? algebra : nullptr;
}

ViewState& state_of(const KernelPlan& plan, OpId op, const std::vector<uint32_t>& path) {
  auto& known = plan.views->of_op[op.index];
  const auto it = std::find_if(known.begin(), known.end(), [&](const auto& k) {
    return k->path == path && k->shared->knows_launch == plan.knows_launch;
  });
  if (it != known.end()) return **it;
  ViewState made = view_state(plan, op, path, shared_algebra(plan, op, path));
  known.push_back(std::make_unique<ViewState>(std::move(made)));
  return *known.back();
}

}  // namespace

ViewState view_state(const KernelPlan& plan, OpId op, const std::vector<uint32_t>& path,
                     std::shared_ptr<PathAlgebra> algebra) {
  if (!algebra) algebra = make_algebra(plan, path, std::span(&op, 1));
  DomainValues::Knowledge extents = algebra->members.at(op);
  return {path, std::move(algebra), std::move(extents), false};
}

std::vector<uint32_t> path_around_reduction(const KernelPlan& plan, OpId op) {
  std::vector<uint32_t> path = plan.nest_of(op).path;
  const auto& loops = plan.loops_of(op);
  for (size_t i = 0; i < path.size(); ++i)
    if (is_reduction(*plan.graph, loops[i])) path[i] = LoopNode::kNoNode;
  return path;
}

StatementView::StatementView(const KernelPlan& plan, OpId statement_op, const std::vector<uint32_t>& statement_path)
    : StatementView(plan, statement_op, state_of(plan, statement_op, statement_path)) {}

StatementView::StatementView(const KernelPlan& plan, OpId statement_op, ViewState& state)
    : plan_(plan),
      state_(state),
      algebra(state_.shared->algebra),
      symbols(*plan.graph, plan.classes, algebra),
      op(statement_op),
      path(state_.path),
      own(*plan.graph, plan.nest_plan, symbols, algebra, (*plan.graph)[(*plan.graph)[statement_op].results[0]].tensor) {
  own.learn(state_.own);
  if (state_.is_ready) return;
  set_loops();
  own.propagate();
  state_.own = own.knowledge();
  state_.is_ready = true;
}

void StatementView::set_loops() {
  const Graph& g = *plan_.graph;
  const auto& loops = plan_.loops_of(op);
  // Every domain between a replicated axis and its loops or its places is 0 at every loop point.
  if (!plan_.replicated.empty())
    for (const auto* list : {&loops, &g.tensor_of(g[op].results[0]).allocation})
      for (DomainId d : ancestors(g, *list))
        if (position_in(loops, d) == loops.size() && plan_.is_replicated(d))
          own.set(d, Form{}, CheckReason::kReplicated);
  for (size_t i = 0; i < loops.size(); ++i)
    if (path[i] != LoopNode::kNoNode) own.set(loops[i], algebra.loop(static_cast<int>(path[i])));
}

Form StatementView::place(DomainId d) const {
  const IterDomain& domain = (*plan_.graph)[d];
  return domain.iter_type == IterType::kBroadcast && !domain.expanded && !domain.def ? Form{} : own.value(d);
}

std::optional<Form> StatementView::thread_loop(ParallelType p) const {
  for (uint32_t n : path)
    if (n != LoopNode::kNoNode && plan_.parallel_of(n) == p) return algebra.loop(static_cast<int>(n));
  return std::nullopt;
}

Form StatementView::loaded() {
  return algebra.has_symbol(kLoadedSymbol) ? algebra.symbol(kLoadedSymbol)
                                           : algebra.declare_symbol(kLoadedSymbol, "loaded");
}

Form StatementView::cat_offset(size_t operand) {
  return fusebox::cat_offset(*plan_.graph, plan_.nest_plan, symbols, algebra, (*plan_.graph)[op], operand);
}

DomainValues StatementView::feed(size_t operand, std::optional<Form> at_axis) {
  const Graph& g = *plan_.graph;
  const Op& consumer = g[op];
  const Tensor& producer = g.tensor_of(consumer.operands[operand]);
  const Tensor& result = g.tensor_of(consumer.results[0]);
  DomainValues values(g, plan_.nest_plan, symbols, algebra, g[consumer.operands[operand]].tensor);
  const auto logical = logical_without_reductions(g, producer);
  const size_t axis = consumer.attrs.has(AttrKey::kAxis) ? axis_of(g, consumer) : 0;
  const AxisRule rule = rule_of(consumer.kind, consumer.operands.size(), operand).axes;
  // The axes of the result that some operand broadcasts. Only a defect uses them.
  std::set<DomainId> broadcast_elsewhere;
  if (plan_.defects().has(Defect::kBroadcastMapped))
    for (size_t k = 0; k < consumer.operands.size(); ++k) {
      if (!consumer.operands[k] || !g.is_tensor(consumer.operands[k])) continue;
      for (const auto& [from, to] : map_producer_to_consumer(g, op, k))
        if (g[from].iter_type == IterType::kBroadcast) broadcast_elsewhere.insert(to);
    }
  const auto feed_one = [&](DomainId d, Form value, DomainId of = {}) {
    // A broadcast is read at index 0 unless it is promoted.
    const bool is_broadcast = (g[d].iter_type == IterType::kBroadcast && !g[d].def) || broadcast_elsewhere.contains(of);
    const bool zeroed = is_broadcast && !plan_.nest_plan.promoted.contains(d);
    values.set(d, zeroed && !plan_.defects().has(Defect::kBroadcastNotZeroed) ? Form{} : value);
  };
  // Whether a stretching op reads an axis that is not a broadcast along a broadcast axis of the result. Its element 0
  // then serves. Any other op reads the axis at the result's place.
  const auto repeats = [&](DomainId from, DomainId to) {
    return g[from].iter_type != IterType::kBroadcast && g[to].iter_type == IterType::kBroadcast &&
           stretches(consumer.kind);
  };
  // The domain of the result that gives an operand's domain its value.
  const auto source = [&](DomainId from, DomainId to) {
    const auto in_order = [&](const std::vector<DomainId>& list) { return list[position_in(logical, from)]; };
    if (consumer.kind == OpKind::kPermute && plan_.defects().has(Defect::kPermuteIgnored))
      return in_order(root_of(result));
    if (consumer.kind == OpKind::kSlice && plan_.defects().has(Defect::kSliceStartDropped))
      return in_order(result.logical);
    if (consumer.kind == OpKind::kPad && plan_.defects().has(Defect::kPadLeftDropped)) return in_order(result.logical);
    return to;
  };
  if (at_axis && axis < logical.size()) {
    const bool shifted = logical.size() > 1 && plan_.defects().has(Defect::kIndexedAxisWrong);
    feed_one(logical[shifted ? (axis + 1) % logical.size() : axis], *at_axis);
  }
  // Only a constant index tells where `select` reads. A symbol stands for any other index.
  if (rule == AxisRule::kSelected && !at_axis) {
    const auto index = constant_integer(g, consumer.operands[*index_operand(consumer.kind)]);
    const Form length = values.size(logical[axis]);
    const auto selected = [&] {
      return algebra.has_symbol(kSelected) ? algebra.symbol(kSelected) : algebra.declare_symbol(kSelected, "selected");
    };
    Form at = index ? algebra.constant(*index) : selected();
    if (index && *index < 0) at = algebra.add(length, at);
    feed_one(logical[axis], at);
  }
  for (const auto& [from, to] : map_producer_to_consumer(g, op, operand)) {
    if (g[from].iter_type == IterType::kBroadcast)
      feed_one(from, own.value(source(from, to)), to);
    else
      feed_one(from, repeats(from, to) ? Form{} : place(source(from, to)), to);
  }
  const auto& root = root_of(result);
  if (rule == AxisRule::kJoined) feed_one(logical[axis], algebra.sub(place(root[axis]), cat_offset(operand)));
  // Axes that are not mapped because an index of the result's rank lets them be longer than the result's. They are read
  // at the result's place. The axis along which data choose is none of them: without `at_axis` no loop tells its place.
  const auto relation = axis_relation(rule, consumer.attrs, logical.size(), root.size());
  for (size_t i = 0; i < logical.size(); ++i)
    if (relation[i].relation == AxisRelation::kWithin && !values.known(logical[i]))
      feed_one(logical[i], place(root[relation[i].result]));
  // Domains that have no value yet. A loop broadcast takes the value of the domain that it stands for. The rest are
  // broadcasts, read at 0.
  for (DomainId d : producer.loop_broadcasts)
    if (const DomainId fed = plan_.nest_plan.fed_by(d, op); fed && own.known(fed)) feed_one(d, own.value(fed));
  for (const auto* list : {&logical, &producer.loop_broadcasts})
    for (DomainId d : *list)
      if (!values.known(d)) values.set(d, Form{});
  // Axes of one element that the operand's own op removed.
  for (DomainId d : root_of(producer))
    if (!values.known(d) && g[d].iter_type == IterType::kBroadcast && !g[d].expanded &&
        !plan_.nest_plan.promoted.contains(d))
      values.set(d, Form{});
  values.propagate();
  return values;
}

DomainValues StatementView::values_of_leader(ValueId sibling, const DomainValues& values) {
  const Graph& g = *plan_.graph;
  const Tensor& from = g.tensor_of(sibling);
  const ValueId leader = g[g[sibling].def].results[0];
  const Tensor& to = g.tensor_of(leader);
  DomainValues its(g, plan_.nest_plan, symbols, algebra, g[leader].tensor);
  const auto axes = logical_without_reductions(g, from), own = logical_without_reductions(g, to);
  for (size_t i = 0; i < own.size(); ++i) its.set(own[i], values.value(axes[i]));
  for (size_t i = 0; i < to.loop_broadcasts.size(); ++i) {
    const bool is_known = i < from.loop_broadcasts.size() && values.known(from.loop_broadcasts[i]);
    its.set(to.loop_broadcasts[i], is_known ? values.value(from.loop_broadcasts[i]) : Form{});
  }
  its.propagate();
  return its;
}

Form StatementView::index_of(const Buffer& buffer, DomainValues& values) {
  if (buffer.memory == MemoryType::kGlobal) return global_index(buffer, values);
  // All results of an op are laid out by the domains of the first.
  const Graph& g = *plan_.graph;
  const ValueId leader = g[g[buffer.value].def].results[0];
  if (leader != buffer.value && values.tensor() == g[buffer.value].tensor) {
    DomainValues its = values_of_leader(buffer.value, values);
    return index_of(buffer, its);
  }
  // A place that is no loop may be made of a replicated loop, whose threads keep the one element of a broadcast each, or of
  // a broadcast that a loop which reduces has taken in. The axes then tell the place, with the broadcast at 0.
  const Tensor& t = g.tensor_of(leader);
  const auto& loops = loop_of(t);
  const auto is_replicated_loop = [&](DomainId d) {
    return position_in(loops, d) < loops.size() && plan_.is_replicated(d);
  };
  std::optional<DomainValues> by_axes;
  const auto value_at = [&](DomainId d) {
    if (position_in(loops, d) < loops.size() ||
        (values.known(d) && std::ranges::none_of(ancestors(g, std::span(&d, 1)), is_replicated_loop)))
      return values.value(d);
    if (!by_axes) {
      by_axes.emplace(g, plan_.nest_plan, symbols, algebra, g[leader].tensor);
      auto axes = logical_without_reductions(g, t);
      axes.insert(axes.end(), t.loop_broadcasts.begin(), t.loop_broadcasts.end());
      for (DomainId axis : axes)
        by_axes->set(axis, values.known(axis) && !plan_.is_replicated(axis) ? values.value(axis) : Form{});
      by_axes->propagate();
    }
    return by_axes->value(d);
  };
  Form index = algebra.constant(0);
  for (DomainId d : buffer.places) index = algebra.add(algebra.mul(index, values.extent(d)), value_at(d));
  return index;
}

Form StatementView::global_index(const Buffer& buffer, DomainValues& values) {
  const Graph& g = *plan_.graph;
  const Tensor& layout = g.tensor_of(buffer.storage);
  const bool is_input = g[g[buffer.storage].def].kind == OpKind::kInput;
  const bool in_order = !is_input && !layout.allocation.empty() && plan_.defects().has(Defect::kAllocationOrder);
  const auto order = in_order ? logical_without_reductions(g, layout) : allocation_of(g, layout);
  const auto contiguity = contiguity_of(g, layout);
  DomainValues extents(g, plan_.nest_plan, symbols, algebra, g[buffer.storage].tensor);
  // An in-place output is indexed like the input that it overwrites: axis by axis.
  std::vector<Form> at;
  if (buffer.storage == buffer.value) {
    for (DomainId d : order) at.push_back(values.value(d));
  } else {
    const auto from = logical_without_reductions(g, g.tensor_of(buffer.value));
    const auto to = logical_without_reductions(g, layout);
    for (DomainId d : order) {
      const size_t i = position_in(to, d);
      at.push_back(i < from.size() ? values.value(from[i]) : Form{});
    }
  }
  Form index = algebra.constant(0), run = algebra.constant(1);
  for (size_t i = order.size(); i-- > 0;) {
    const IterDomain& d = g[order[i]];
    if (d.iter_type == IterType::kBroadcast && !d.def) continue;
    Form stride = run;
    const bool has_next = i + 1 < order.size();
    if (is_input && contiguity[i] != Contiguity::kTrue && !plan_.defects().has(Defect::kStrideAssumed) &&
        !(has_next && plan_.defects().has(Defect::kContiguityMerged))) {
      const size_t axis = i == 0 && has_next && plan_.defects().has(Defect::kStrideOfNextAxis) ? 1 : i;
      const int id = kStrideSymbols + static_cast<int>(order[axis].index);  // no two axes share a domain
      stride = algebra.has_symbol(id) ? algebra.symbol(id) : algebra.declare_symbol(id, "stride");
    }
    index = algebra.add(index, algebra.mul(at[i], stride));
    run = algebra.mul(stride, extents.extent(order[i]));
  }
  return index;
}

Form elements_of(const KernelPlan& plan, Symbols& symbols, IndexAlgebra& algebra, const Buffer& buffer) {
  const Graph& g = *plan.graph;
  DomainValues extents(g, plan.nest_plan, symbols, algebra, g[g[g[buffer.value].def].results[0]].tensor);
  Form elements = extents.elements(buffer.places);
  if (algebra.prove_less(algebra.constant(1), elements) && plan.defects().has(Defect::kBufferShort))
    elements = algebra.sub(elements, algebra.constant(1));
  return elements;
}

Form OpenExtents::elements_of(const Buffer& buffer) { return fusebox::elements_of(plan_, symbols, algebra, buffer); }

}  // namespace fusebox
