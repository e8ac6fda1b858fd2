// Emits the loops, conditions and memory of the kernel graph.
#include "passes/lower/kernel_emitter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/graph/operands_first.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "passes/plan/parameters.h"

namespace fusebox {

KernelEmitter::KernelEmitter(const KernelPlan& kernel_plan, const EmitOptions& emit_options)
    : plan_(kernel_plan),
      g_(*plan_.graph),
      open_(plan_),
      options_(emit_options),
      kernel_(g_.name, emit_options.index_bits),
      tensors_(g_.values.size()),
      node_index_(plan_.tree.nodes.size()) {}

std::optional<LaunchBound> launch_bound(const KernelPlan& plan) {
  const Graph& g = *plan.graph;
  for (OpId id : g[Graph::body()].ops)
    if (g[id].kind == OpKind::kLaunchBound)
      return LaunchBound{g[id].attrs.integer(AttrKey::kMostThreads), g[id].attrs.integer(AttrKey::kLeastBlocks, 1),
                         true};
  constexpr int64_t kMostThreads = 1024;
  int64_t threads = 1;
  for (ParallelType p : plan.used_threads) {
    if (!is_block(p)) continue;
    const auto extent = plan.largest_launch.at(p);
    if (!extent || *extent > kMostThreads) return std::nullopt;
    threads *= std::max<int64_t>(*extent, 1);
  }
  if (threads == 1 || threads > kMostThreads) return std::nullopt;
  return LaunchBound{threads, 1, false};
}

void KernelEmitter::run() {
  declare_parameters();
  if (const auto bound = launch_bound(plan_)) {
    Attrs attrs;
    attrs.set(AttrKey::kMostThreads, bound->most_threads);
    if (bound->least_blocks > 1) attrs.set(AttrKey::kLeastBlocks, bound->least_blocks);
    kernel_.effect(OpKind::kLaunchBound, {}, {}, attrs);
  }
  if (plan_.cluster) {
    Attrs attrs;
    attrs.set_enum(AttrKey::kParallel, plan_.cluster->axis);
    attrs.set(AttrKey::kClusterBlocks, plan_.cluster->blocks);
    kernel_.effect(OpKind::kCluster, {}, {}, attrs);
  }
  if (has_in_body(*plan_.graph, OpKind::kDependentLaunch) && !plan_.defects().has(Defect::kDependentLaunchLost))
    kernel_.effect(OpKind::kDependentLaunch, {}, {});
  shared_end_ = kernel_.index(0);
  emit_children(LoopNode::kNoNode);
  if (plan_.cluster_places().lists > 0) kernel_.effect(OpKind::kClusterWait, {}, {});
  if (const int64_t bytes = parameter_bytes(); bytes > kMostParameterBytes)
    throw Error(ErrorCode::kUnsupportedSchedule, "its " + std::to_string(signature_.parameters.size()) +
                                                     " parameters take " + std::to_string(bytes) +
                                                     " bytes, and a kernel has " + std::to_string(kMostParameterBytes) +
                                                     "; assign its ops to several segments");
}

int64_t KernelEmitter::parameter_bytes() const {
  int64_t bytes = 0;
  for (const KernelParameter& p : signature_.parameters) {
    int64_t size = kPointerBytes;  // also of a prepared divisor
    if (p.kind == KernelParameter::Kind::kScalar) {
      const Dtype dtype = p.scalar.scalar ? g_[p.scalar.scalar].dtype : Dtype::kIndex;
      size = dtype == Dtype::kIndex ? options_.index_bits / 8 : size_bytes(dtype);
    }
    bytes = (bytes + size - 1) / size * size + size;
  }
  return bytes;
}

void KernelEmitter::declare_parameters() {
  const auto declare = [&](ValueId v) {
    tensors_[v.index] = kernel_.tensor_parameter(data_dtype(g_[v].dtype), "T" + std::to_string(g_[v].tensor.index));
    signature_.parameters.push_back({.kind = KernelParameter::Kind::kTensor, .tensor = v});
  };
  for (ValueId v : inputs(g_))
    if (g_.is_tensor(v)) declare(v);
  for (const Nest& nest : plan_.nest_plan.nests)
    for (ValueId v : g_[nest.op].results) {
      const Buffer& b = plan_.buffer_of(v);
      if (!b.is_parameter) continue;
      if (b.storage == v)
        declare(v);
      else
        tensors_[v.index] = tensor(b.storage);
    }
}

ValueId KernelEmitter::parameter(const ScalarParameter& p) {
  const auto it = scalars_.find(p);
  if (it != scalars_.end()) return it->second;
  const std::string name =
      p.scalar ? "s" + std::to_string(p.scalar.index)
               : "T" + std::to_string(g_[p.stride_of].tensor.index) + "_stride" + std::to_string(p.axis);
  signature_.parameters.push_back({.kind = KernelParameter::Kind::kScalar, .scalar = p});
  return scalars_[p] = kernel_.scalar_parameter(p.scalar ? g_[p.scalar].dtype : Dtype::kIndex, name);
}

KernelEmitter::Counters& KernelEmitter::counters(KernelParameter::Kind kind) {
  Counters& c = counters_[kind];
  if (!c.parameter) {
    c.parameter = kernel_.tensor_parameter(
        Dtype::kUint32, kind == KernelParameter::Kind::kArrivals ? "arrival_counters" : "grid_counters");
    c.position = signature_.parameters.size();
    signature_.parameters.push_back({.kind = kind});
  }
  return c;
}

int64_t KernelEmitter::take_slot(const Counters& c, int64_t least) {
  int64_t& slots = signature_.parameters[c.position].slots;
  const int64_t slot = std::max(slots, least);
  slots = slot + 1;
  return slot;
}

ValueId KernelEmitter::scalar(ValueId v) {
  std::map<ValueId, ValueId> known;
  const auto is_made = [&](ValueId x) { return known.contains(x); };
  operands_first(g_, v, is_made, [&](ValueId x) { known[x] = scalar(x, known); });
  return known.at(v);
}

ValueId KernelEmitter::scalar(ValueId v, const std::map<ValueId, ValueId>& known) {
  if (g_.is_constant(v)) return kernel_.constant(g_[v].dtype, *g_[v].constant);
  const Op& op = g_[g_[v].def];
  if (op.kind == OpKind::kInput || op.kind == OpKind::kSize) {
    const bool is_extent = g_[v].dtype == Dtype::kIndex;
    if (const auto number = constant_integer(g_, plan_.classes.representative(v)); is_extent && number)
      return kernel_.index(*number);
    return parameter({is_extent ? plan_.classes.representative(v) : v, {}, 0});
  }
  std::vector<ValueId> operands;
  for (ValueId operand : op.operands) operands.push_back(operand ? known.at(operand) : operand);
  if (op.kind == OpKind::kSet || op.kind == OpKind::kSegmentSet) return operands[0];
  // Folds what the program computes from constants alone.
  if (std::all_of(operands.begin(), operands.end(), [&](ValueId o) { return o && kernel_.graph().is_constant(o); })) {
    std::vector<TypedBits> constants;
    for (ValueId o : operands) constants.push_back({kernel_.graph()[o].dtype, *kernel_.graph()[o].constant});
    if (const auto bits = evaluate_op(op.kind, g_[v].dtype, constants)) return kernel_.constant(g_[v].dtype, *bits);
  }
  const auto is_truth = [&](ValueId o) { return kernel_.graph()[o].dtype == Dtype::kBool; };
  if (op.kind == OpKind::kLogicalAnd && std::all_of(operands.begin(), operands.end(), is_truth))
    return kernel_.logical_and(operands[0], operands[1]);
  return kernel_.op(op.kind, operands, g_[v].dtype, op.attrs);
}

ValueId KernelEmitter::thread_index(ParallelType p) {
  Attrs attrs;
  attrs.set_enum(AttrKey::kParallel, p);
  return kernel_.op(OpKind::kThreadIndex, {}, Dtype::kIndex, attrs);
}

ValueId KernelEmitter::emit_form(IndexAlgebra& algebra, Form form, ValueId loaded) {
  FormEmitter emitter(
      algebra, kernel_,
      [&](int symbol) {
        const auto p = parameter_of(g_, symbol);
        if (!p) return loaded;
        return p->stride_of ? parameter(*p) : scalar(p->scalar);
      },
      [&](int node) { return node_index_[static_cast<size_t>(node)]; }, launch_scalars_of());
  return emitter.emit(form);
}

LaunchScalars KernelEmitter::launch_scalars_of() {
  const auto value = [this](IndexAlgebra& a, Form f) { return launch_scalar(a, f, false); };
  // A prepared division is right for dividends below 2^31 alone.
  if (options_.index_bits != 32) return {value, {}};
  return {value, [this](IndexAlgebra& a, Form f) { return launch_scalar(a, f, true); }};
}

ValueId KernelEmitter::launch_scalar(IndexAlgebra& algebra, Form form, bool is_prepared) {
  bool is_known = true;
  FormEmitter spell(
      algebra, signature_.spelled,
      [&](int symbol) {
        is_known &= parameter_of(g_, symbol).has_value();
        const auto [it, is_new] = signature_.symbols.try_emplace(symbol);
        if (is_new) it->second = signature_.spelled.scalar_parameter(Dtype::kIndex, "s");
        return it->second;
      },
      [](int) -> ValueId { throw Error(ErrorCode::kInternal, "a loop in a scalar of a launch"); });
  const ValueId value = spell.emit(form);
  if (!is_known || signature_.spelled.constant_of(value)) return {};
  ValueId& made = launched_[value][is_prepared ? 1 : 0];
  if (made) return made;
  if (is_prepared && defects().has(Defect::kPreparedOfOther))
    for (const auto& [other, parameters] : launched_)
      if (parameters[1]) return parameters[1];
  signature_.parameters.push_back(
      {.kind = KernelParameter::Kind::kLaunched, .spelled = value, .is_prepared = is_prepared});
  return made = is_prepared ? kernel_.scalar_parameter(Dtype::kInt64, "prepared")
                            : kernel_.scalar_parameter(Dtype::kIndex, "launched");
}

ValueId KernelEmitter::emit_condition(IndexAlgebra& algebra, const Condition& c, OpId op) {
  if (c.kind == CheckKind::kLastBlock) {
    if (!defects().has(Defect::kLastBlockByNumber)) return came_last_.at(plan_.last_block_of(op));
    Attrs attrs;
    attrs.set_enum(AttrKey::kParallel, *c.guard);
    const ValueId blocks = kernel_.op(OpKind::kThreadCount, {}, Dtype::kIndex, attrs);
    return kernel_.compare(OpKind::kEq, thread_index(*c.guard), kernel_.sub(blocks, kernel_.index(1)));
  }
  if (c.guard) {
    const ValueId bound = emit_form(algebra, c.bound);
    return kernel_.compare(c.compare, thread_index(*c.guard), bound);
  }
  if (c.holds_before && kernel_.constant_of(node_index_[plan_.buffer_of(g_[op].results[0]).home]))
    return kernel_.bit(true);
  const ValueId value = emit_form(algebra, c.value);
  const ValueId holds = kernel_.compare(c.compare, value, emit_form(algebra, c.bound));
  if (c.begins == 0 || kernel_.constant_of(holds)) return holds;
  const ValueId early = kernel_.compare(OpKind::kLt, node_index_[c.node], kernel_.index(c.begins));
  if (const auto known = kernel_.constant_of(early)) return *known != 0 ? early : holds;
  if (early == holds) return holds;
  return kernel_.op(OpKind::kLogicalOr, {early, holds}, Dtype::kBool);
}

ValueId KernelEmitter::emit_conditions(Site& site, MemoryType stored) {
  ValueId all = kernel_.bit(true);
  const auto known = settled_.find(site.statement);
  const auto& list = site.plan.conditions;
  const auto is_needed = [&](const Condition& c) {
    return c.kind != CheckKind::kThread || stored == MemoryType::kGlobal ||
           (stored == MemoryType::kShared && is_block(*c.guard));
  };
  for (size_t i = 0; i < list.size(); ++i)
    if ((known == settled_.end() || !known->second.contains(i)) && is_needed(list[i])) {
      const ValueId predicate = emit_condition(site.view.algebra, list[i], site.place.op);
      if (options_.explain) emitted_.try_emplace({site.statement, i}, Emitted{predicate});
      const bool joined = kernel_.constant_of(all) != 1 && defects().has(Defect::kChecksJoinedByOr);
      all =
          joined ? kernel_.op(OpKind::kLogicalOr, {all, predicate}, Dtype::kBool) : kernel_.logical_and(all, predicate);
    }
  return all;
}

void KernelEmitter::guarded(ValueId predicate, const std::function<void()>& emit) {
  const auto known = kernel_.constant_of(predicate);
  if (known && *known != 0) {
    emit();
    return;
  }
  const OpId last = kernel_.last();
  // If the last op is an `if` with the same predicate, it is reopened. Only pure scalars could stand between, and none
  // does.
  if (last && kernel_.graph()[last].kind == OpKind::kIf && kernel_.graph()[last].operands[0] == predicate &&
      kernel_.graph()[last].regions.size() == 1)
    kernel_.reopen_if();
  else
    kernel_.begin_if(predicate);
  emit();
  kernel_.end();
}

void KernelEmitter::allocate_local(const Buffer& b) {
  const int64_t bytes = b.elements * size_bytes(g_[b.value].dtype);
  // A copy may read vectors from it, so it is aligned for the widest vector that fits.
  const auto align = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(16, bytes))));
  tensors_[b.value.index] =
      kernel_.allocate(data_dtype(g_[b.value].dtype), MemoryType::kLocal, kernel_.index(b.elements), {}, align,
                       "T" + std::to_string(g_[b.value].tensor.index));
}

void KernelEmitter::allocate_shared() {
  for (const auto& slot : plan_.shared_slots) {
    ValueId size;
    for (ValueId v : slot) {
      // The count must be computed as the host computes it. The host knows nothing of a nest, so it cannot assume that
      // the loops run.
      const ValueId count = emit_form(open_.algebra, open_.elements_of(plan_.buffer_of(v)));
      const ValueId bytes = kernel_.mul(count, kernel_.index(size_bytes(g_[v].dtype)));
      const ValueId rounded = kernel_.mul(kernel_.ceil_div(bytes, kernel_.index(128)), kernel_.index(128));
      size = size ? kernel_.maximum(size, rounded) : rounded;
      tensors_[v.index] = kernel_.allocate(data_dtype(g_[v].dtype), MemoryType::kShared, count, shared_end_, 16,
                                           "T" + std::to_string(g_[v].tensor.index));
    }
    shared_end_ = kernel_.add(shared_end_, size);
  }
}

void KernelEmitter::allocate_at(uint32_t node) {
  if (const auto it = plan_.at_home.find(node); it != plan_.at_home.end())
    for (ValueId v : it->second)
      if (plan_.buffer_of(v).memory == MemoryType::kLocal) allocate_local(plan_.buffer_of(v));
  if (const auto it = plan_.accumulators_at.find(node); it != plan_.accumulators_at.end())
    for (OpId op : it->second) allocate_accumulator(op);
}

void KernelEmitter::emit_children(uint32_t node) {
  allocate_at(node);
  if (node == LoopNode::kNoNode) {
    allocate_shared();
    allocate_block_workspaces();
    allocate_cluster_places();
  }
  const auto& children = node == LoopNode::kNoNode ? plan_.tree.top : plan_.tree.children[node];
  emit_ahead(node);
  for (size_t i = 0; i < children.size(); ++i) {
    if (plan_.sync_points.contains({node, i, SyncScope::kGrid})) {
      Attrs attrs;
      const Counters& c = counters(KernelParameter::Kind::kCounters);
      attrs.set(AttrKey::kSlot, take_slot(c));
      kernel_.effect(OpKind::kGridBarrier, {c.parameter}, {}, attrs);
    } else if (plan_.sync_points.contains({node, i, SyncScope::kBlock})) {
      if (!children[i].is_node && defects().has(Defect::kBarrierDivergent)) {
        Site site = site_of(children[i].index);
        guarded(emit_conditions(site), [&] { kernel_.effect(OpKind::kBarrier, {}, {}); });
      } else {
        kernel_.effect(OpKind::kBarrier, {}, {});
      }
    }
    size_t end = i;  // of the exchanges in a block that begin here, with no barrier between them
    while (end < children.size() && reduces_one_value(children[end]) && (end == i || !is_synchronized(node, end)))
      ++end;
    if (end > i + 1) {
      emit_results(std::span(children).subspan(i, end - i));
      i = end - 1;
    } else if (!is_ahead(node, i)) {
      emit_child(children[i]);
    }
  }
}

void KernelEmitter::emit_child(const TreeChild& child) {
  child.is_node ? emit_node(child.index) : emit_statement(child.index);
}

bool KernelEmitter::is_synchronized(uint32_t node, size_t child) const {
  return plan_.sync_points.contains({node, child, SyncScope::kGrid}) ||
         plan_.sync_points.contains({node, child, SyncScope::kBlock});
}

void KernelEmitter::emit_node(uint32_t n) {
  const LoopNode& node = plan_.tree.nodes[n];
  if (is_thread(node.parallel)) {
    node_index_[n] = thread_index(node.parallel);
    emit_children(n);
    return;
  }
  // A vectorized copy covers the whole loop, so no loop is emitted.
  const auto& children = plan_.tree.children[n];
  if (node.parallel == ParallelType::kVectorize && children.size() == 1 && !children[0].is_node &&
      plan_.statements[children[0].index].vector) {
    node_index_[n] = kernel_.index(0);
    emit_children(n);
    return;
  }
  if (plan_.unswitched.contains(n)) return emit_unswitched(n);
  if (const auto columns = columns_of(n)) return emit_columns(n, *columns);
  emit_loop(n, node.parallel == ParallelType::kUnroll || node.parallel == ParallelType::kVectorize);
}

// A constant extent needs no knowledge of the nest.
std::optional<int64_t> KernelEmitter::constant_count(uint32_t n) {
  const DomainId d = plan_.tree.nodes[n].domain;
  return open_.algebra.constant_value(open_.of(g_[g_[d].tensor].value).extent(d));
}

void KernelEmitter::emit_loop(uint32_t n, bool unroll) {
  const LoopNode& node = plan_.tree.nodes[n];
  const auto constant = constant_count(n);
  ValueId extent = constant ? kernel_.index(*constant) : ValueId();
  if (!constant) {
    StatementView view(plan_, node.op);
    extent = emit_form(view.algebra, view.own.extent(node.domain));
  }
  if (plan_.is_promoted(node.domain) && defects().has(Defect::kPromotedWrongDomain)) extent = kernel_.index(1);
  // A loop of one iteration disappears, unless it has strips: the plan of a sum may not know the count, and the strip
  // must end.
  if (kernel_.constant_of(extent) == 1 && !plan_.strips.contains(n)) {
    node_index_[n] = kernel_.index(0);
    emit_children(n);
    return;
  }
  const bool is_short = node.parallel == ParallelType::kSerial && defects().has(Defect::kLoopShort);
  const ValueId end = is_short ? kernel_.sub(extent, kernel_.index(1)) : extent;
  begin_ahead(n, end);
  if (plan_.strips.contains(n)) return emit_strips(n, end, unroll);
  node_index_[n] = kernel_.begin_for(kernel_.index(0), end, kernel_.index(1), unroll);
  emit_children(n);
  kernel_.end();
}

namespace {

// The number of statements in the loop.
size_t statements_in(const LoopTree& tree, uint32_t node) {
  size_t count = 0;
  for (const TreeChild& c : tree.children[node]) count += c.is_node ? statements_in(tree, c.index) : 1;
  return count;
}

}  // namespace

// Emits the loop in two branches. One lacks the conditions that hold at the loop's last point; the other has all
// conditions. It is left out where all statements have the same ones, which no point of the loop changes.
void KernelEmitter::emit_unswitched(uint32_t node) {
  ValueId all = kernel_.bit(true), all_but_last = all;
  std::map<uint32_t, std::set<size_t>> holds;
  std::map<uint32_t, std::set<ValueId>> predicates;
  bool changes = false;
  for (const Hoisted& h : plan_.unswitched.at(node)) {
    Site site = site_of(h.statement);
    holds[h.statement].insert(h.condition);
    const auto& own = site.plan.conditions;  // an accumulator's first value has none here
    changes |= h.condition >= own.size() || h.at_last_point != own[h.condition];
    const ValueId predicate = emit_condition(site.view.algebra, h.at_last_point, site.place.op);
    predicates[h.statement].insert(predicate);
    if (options_.explain) emitted_[{h.statement, h.condition}] = {predicate, true};
    all_but_last = std::exchange(all, kernel_.logical_and(all, predicate));
  }
  if (kernel_.constant_of(all)) return emit_loop(node, false);
  if (defects().has(Defect::kUnswitchForgets)) all = all_but_last;
  const auto outer = settled_;
  kernel_.begin_if(all);
  for (const auto& [s, list] : holds) settled_[s].insert(list.begin(), list.end());
  emit_loop(node, true);
  kernel_.end();
  settled_ = outer;
  const bool are_same =
      predicates.size() == statements_in(plan_.tree, node) &&
      std::ranges::all_of(predicates, [&](const auto& p) { return p.second == predicates.begin()->second; });
  if ((!changes && are_same) || defects().has(Defect::kUnswitchNoTail)) return;
  kernel_.begin_else();
  emit_loop(node, true);
  kernel_.end();
}

Site KernelEmitter::site_of(uint32_t statement) {
  const Statement& s = plan_.tree.statements[statement];
  return {statement, s, plan_.statements[statement], g_[s.op], StatementView(plan_, s)};
}

void KernelEmitter::emit_statement(uint32_t statement) {
  Site site = site_of(statement);
  if (demands(site.op.kind, kReduction))
    emit_reduction(site);
  else if (site.plan.vector)
    emit_vector_copy(site);
  else
    emit_pointwise(site);
}

}  // namespace fusebox
