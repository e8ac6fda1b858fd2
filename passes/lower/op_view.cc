#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/lower/lowering.h"

namespace fusebox::lowering {
namespace {

// Ids of symbols that are no scalar of the graph start above these.
constexpr int kStrideBase = 1 << 24;
constexpr int kRunTimeBase = 1 << 28;
constexpr int kSelected = (1 << 29) - 1;

}  // namespace

OpView::OpView(Lowering& lowering, const Statement& statement)
    : algebra(lowering.algebra),
      symbols(lowering.g, lowering.classes, algebra),
      statement(statement),
      own(lowering.g, lowering.plan, symbols, algebra, lowering.g[lowering.g[statement.op].results[0]].tensor),
      l_(lowering) {
  auto& known = l_.known_views[statement.op.index];
  const auto it = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.path == statement.path; });
  if (it != known.end()) {
    algebra = it->algebra;
    own.learn(it->own);
    return;
  }
  algebra.clear();
  declare_loops();
  own.propagate();
  known.push_back({statement.path, algebra, own.knowledge()});
}

void OpView::declare_loops() {
  const Graph& g = l_.g;
  const Tensor& t = g.tensor_of(g[statement.op].results[0]);
  const auto& loops = loop_of(t);
  // Facts and symbols first: what is learnt later does not simplify forms that exist.
  if (g[statement.op].kind == OpKind::kReshape)
    for (TransformId id : op_transforms(g, t))
      if (g[id].kind == TransformKind::kSplit)
        algebra.assume_divides(symbols.of(g[id].factor), own.extent(g[id].inputs[0]), "a reshape keeps every element");
  std::vector<Form> extents;
  for (size_t i = 0; i < loops.size(); ++i) extents.push_back(own.extent(loops[i]));
  // All that stands between a replicated axis and its loops is 0, whatever the loops are at.
  if (!l_.replicated.empty())
    for (DomainId d : ancestors(g, loops))
      if (position_in(loops, d) == loops.size() && l_.is_replicated(d)) own.set(d, Form{}, CheckReason::kReplicated);
  for (size_t i = 0; i < loops.size(); ++i) {
    const uint32_t n = statement.path[i];
    if (n == LoopNode::kNoNode) continue;
    own.set(loops[i], algebra.declare_loop(static_cast<int>(n), g[loops[i]].name, extents[i]));
  }
}

Form OpView::place(DomainId d) const {
  const IterDomain& domain = l_.g[d];
  return domain.iter_type == IterType::kBroadcast && !domain.expanded && !domain.def ? Form{} : own.value(d);
}

Form OpView::loop(size_t position) const { return algebra.loop(static_cast<int>(statement.path[position])); }

std::optional<Form> OpView::thread_loop(ParallelType p) const {
  for (uint32_t n : statement.path)
    if (n != LoopNode::kNoNode && l_.tree.nodes[n].parallel == p) return algebra.loop(static_cast<int>(n));
  return std::nullopt;
}

Form OpView::run_time_symbol(ValueId kernel_value) {
  const int id = kRunTimeBase + static_cast<int>(kernel_value.index);
  l_.run_time_symbols[id] = kernel_value;
  return algebra.has_symbol(id) ? algebra.symbol(id) : algebra.declare_symbol(id, "loaded");
}

Form OpView::cat_offset(size_t operand) {
  return fusebox::cat_offset(l_.g, l_.plan, symbols, algebra, l_.g[statement.op], operand);
}

DomainValues OpView::feed(size_t operand, std::optional<Form> at_axis) {
  const Graph& g = l_.g;
  const Op& op = g[statement.op];
  const Tensor& p = g.tensor_of(op.operands[operand]);
  const Tensor& c = g.tensor_of(op.results[0]);
  DomainValues values(g, l_.plan, symbols, algebra, g[op.operands[operand]].tensor);
  const auto logical = logical_without_reductions(g, p);
  const size_t axis = op.attrs.has(AttrKey::kAxis) ? axis_of(g, op) : 0;
  // The axes of the result at which another operand is a broadcast.
  std::set<DomainId> broadcast_elsewhere;
  if (l_.options.defects.has(Defect::kBroadcastMapped))
    for (size_t k = 0; k < op.operands.size(); ++k) {
      if (!op.operands[k] || !g.is_tensor(op.operands[k])) continue;
      for (const auto& [from, to] : map_producer_to_consumer(g, statement.op, k))
        if (g[from].iter_type == IterType::kBroadcast) broadcast_elsewhere.insert(to);
    }
  const auto feed_one = [&](DomainId d, Form value, DomainId of = {}) {
    // A broadcast that is not promoted is read at index 0.
    const bool is_broadcast = (g[d].iter_type == IterType::kBroadcast && !g[d].def) || broadcast_elsewhere.contains(of);
    const bool zeroed = is_broadcast && !l_.plan.promoted.contains(d);
    values.set(d, zeroed && !l_.options.defects.has(Defect::kBroadcastNotZeroed) ? Form{} : value);
  };
  // One element serves a broadcast, though its own axis is none: another op reads that as it is.
  const auto stretches = [&](DomainId from, DomainId to) {
    return g[from].iter_type != IterType::kBroadcast && g[to].iter_type == IterType::kBroadcast &&
           (op.kind == OpKind::kExpand || op.kind == OpKind::kBroadcastInDim);
  };
  // The domain of the result whose value an operand's domain takes.
  const auto source = [&](DomainId from, DomainId to) {
    const auto in_order = [&](const std::vector<DomainId>& list) { return list[position_in(logical, from)]; };
    if (op.kind == OpKind::kPermute && l_.options.defects.has(Defect::kPermuteIgnored)) return in_order(root_of(c));
    if (op.kind == OpKind::kSlice && l_.options.defects.has(Defect::kSliceStartDropped)) return in_order(c.logical);
    if (op.kind == OpKind::kPad && l_.options.defects.has(Defect::kPadLeftDropped)) return in_order(c.logical);
    return to;
  };
  if (at_axis && axis < logical.size()) {
    const bool shifted = logical.size() > 1 && l_.options.defects.has(Defect::kIndexedAxisWrong);
    feed_one(logical[shifted ? (axis + 1) % logical.size() : axis], *at_axis);
  }
  // Where a select reads is known of a constant alone: any other place is no loop's.
  if (op.kind == OpKind::kSelect && operand == 0 && !at_axis) {
    const auto index = constant_integer(g, op.operands[1]);
    const Form length = values.size(logical[axis]);
    const auto selected = [&] {
      return algebra.has_symbol(kSelected) ? algebra.symbol(kSelected) : algebra.declare_symbol(kSelected, "selected");
    };
    Form at = index ? algebra.constant(*index) : selected();
    if (index && *index < 0) at = algebra.add(length, at);
    feed_one(logical[axis], at);
  }
  for (const auto& [from, to] : map_producer_to_consumer(g, statement.op, operand)) {
    if (g[from].iter_type == IterType::kBroadcast)
      feed_one(from, own.value(source(from, to)), to);
    else
      feed_one(from, stretches(from, to) ? Form{} : place(source(from, to)), to);
  }
  const auto& root = root_of(c);
  if (op.kind == OpKind::kCat) feed_one(logical[axis], algebra.sub(place(root[axis]), cat_offset(operand)));
  if (op.kind == OpKind::kGather || op.kind == OpKind::kTakeAlongAxis || op.kind == OpKind::kScatter)
    for (size_t i = 0; i < logical.size(); ++i)
      if (!values.known(logical[i])) feed_one(logical[i], place(root[i]));
  // What nothing feeds: broadcasts, and loop broadcasts, which take the value of the domain that they stand for.
  for (DomainId d : p.loop_broadcasts)
    if (const DomainId fed = l_.plan.fed_by(d, statement.op); fed && own.known(fed)) feed_one(d, own.value(fed));
  for (const auto* list : {&logical, &p.loop_broadcasts})
    for (DomainId d : *list)
      if (!values.known(d)) values.set(d, Form{});
  // Axes of one element that the operand's own op let go.
  for (DomainId d : root_of(p))
    if (!values.known(d) && g[d].iter_type == IterType::kBroadcast && !g[d].expanded && !l_.plan.promoted.contains(d))
      values.set(d, Form{});
  values.propagate();
  return values;
}

DomainValues OpView::values_of_leader(ValueId sibling, const DomainValues& values) {
  const Graph& g = l_.g;
  const Tensor& from = g.tensor_of(sibling);
  const ValueId leader = g[g[sibling].def].results[0];
  const Tensor& to = g.tensor_of(leader);
  DomainValues its(g, l_.plan, symbols, algebra, g[leader].tensor);
  const auto axes = logical_without_reductions(g, from), own = logical_without_reductions(g, to);
  for (size_t i = 0; i < own.size(); ++i) its.set(own[i], values.value(axes[i]));
  for (size_t i = 0; i < to.loop_broadcasts.size(); ++i) {
    const bool is_known = i < from.loop_broadcasts.size() && values.known(from.loop_broadcasts[i]);
    its.set(to.loop_broadcasts[i], is_known ? values.value(from.loop_broadcasts[i]) : Form{});
  }
  its.propagate();
  return its;
}

Form OpView::index_of(const Buffer& buffer, DomainValues& values) {
  if (buffer.memory == MemoryType::kGlobal) return global_index(buffer, values);
  // A sibling of a first result is laid out by that one's domains.
  const Graph& g = l_.g;
  const ValueId leader = g[g[buffer.value].def].results[0];
  if (leader != buffer.value && values.tensor() == g[buffer.value].tensor) {
    DomainValues its = values_of_leader(buffer.value, values);
    return index_of(buffer, its);
  }
  Form index = algebra.constant(0);
  for (DomainId d : buffer.places) index = algebra.add(algebra.mul(index, values.extent(d)), values.value(d));
  return index;
}

Form OpView::global_index(const Buffer& buffer, DomainValues& values) {
  const Graph& g = l_.g;
  const Tensor& layout = g.tensor_of(buffer.storage);
  const bool is_input = g[g[buffer.storage].def].kind == OpKind::kInput;
  const bool in_order = !is_input && !layout.allocation.empty() && l_.options.defects.has(Defect::kAllocationOrder);
  const auto order = in_order ? logical_without_reductions(g, layout) : allocation_of(g, layout);
  const auto contiguity = contiguity_of(g, layout);
  DomainValues extents(g, l_.plan, symbols, algebra, g[buffer.storage].tensor);
  // An in-place output is indexed as the input that it overwrites: axis by axis.
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
    if (is_input && contiguity[i] != Contiguity::kTrue && !l_.options.defects.has(Defect::kStrideAssumed) &&
        !(has_next && l_.options.defects.has(Defect::kContiguityMerged))) {
      const size_t axis = i == 0 && has_next && l_.options.defects.has(Defect::kStrideOfNextAxis) ? 1 : i;
      const int id = kStrideBase + static_cast<int>(order[axis].index);  // no two axes share a domain
      l_.stride_symbols[id] = {ValueId(), buffer.storage, static_cast<uint32_t>(axis)};
      stride = algebra.has_symbol(id) ? algebra.symbol(id) : algebra.declare_symbol(id, "stride");
    }
    index = algebra.add(index, algebra.mul(at[i], stride));
    run = algebra.mul(stride, extents.extent(order[i]));
  }
  return index;
}

}  // namespace fusebox::lowering
