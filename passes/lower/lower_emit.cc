// Emission: the tree of loops and statements as regions of the kernel graph.
#include <algorithm>
#include <bit>

#include "ir/domain/domain.h"
#include "ir/graph/compact.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "passes/kernel/forward_local.h"
#include "passes/lower/lowering.h"

namespace fusebox::lowering {

Lowering::Lowering(const Graph& graph, const LowerOptions& lower_options)
    : g(graph),
      options(lower_options),
      plan(plan_nests(graph, lower_options.defects)),
      classes(graph, lower_options.defects, lower_options.sizes),
      algebra(lower_options.defects),
      kernel(graph.name, lower_options.index_bits),
      known_views(graph.ops.size()) {}

Lowered Lowering::run() {
  tree.nodes = plan.nodes;
  plan_threads();
  plan_buffers();
  plan_empty_threads();
  plan_replicas();
  check_sharing();
  tree = build_loop_tree(g, plan, alias_order());
  plan_shared_slots();
  plan_synchronisation();
  plan_cascades();
  declare_parameters();
  for (const Nest& nest : plan.nests)
    for (ValueId v : g[nest.op].results) {
      const Buffer& b = buffers[v.index];
      if (!b.is_parameter) at_home[b.memory == MemoryType::kShared ? LoopNode::kNoNode : b.home].push_back(v);
    }
  for (const Nest& nest : plan.nests)
    if (demands(g[nest.op].kind, kReduction))
      accumulators_at[nest.shared > 0 ? nest.path[nest.shared - 1] : LoopNode::kNoNode].push_back(nest.op);
  node_index.resize(tree.nodes.size());
  shared_end = kernel.index(0);
  emit_children(LoopNode::kNoNode);
  Graph launch = build_launch();
  std::vector<CheckNote> notes;
  if (options.explain) notes = check_notes();
  Graph finished = kernel.finish();
  forward_local(finished, options.defects);
  return {compacted(std::move(finished)), compacted(std::move(launch)), std::move(notes)};
}

void Lowering::declare_parameters() {
  const auto declare = [&](ValueId v) {
    buffers[v.index].kernel_value =
        kernel.tensor_parameter(data_dtype(g[v].dtype), "T" + std::to_string(g[v].tensor.index));
  };
  for (ValueId v : inputs(g))
    if (g.is_tensor(v)) declare(v);
  for (const Nest& nest : plan.nests)
    for (ValueId v : g[nest.op].results) {
      Buffer& b = buffers[v.index];
      if (!b.is_parameter) continue;
      if (b.storage == v)
        declare(v);
      else
        b.kernel_value = buffers[b.storage.index].kernel_value;
    }
}

ValueId Lowering::parameter(const ScalarParameter& p) {
  const auto it = parameters.find(p);
  if (it != parameters.end()) return it->second;
  const std::string name = p.scalar
                               ? "s" + std::to_string(p.scalar.index)
                               : "T" + std::to_string(g[p.stride_of].tensor.index) + "_stride" + std::to_string(p.axis);
  return parameters[p] = kernel.scalar_parameter(p.scalar ? g[p.scalar].dtype : Dtype::kIndex, name);
}

ValueId Lowering::scalar(ValueId v) {
  std::map<ValueId, ValueId> known;
  return scalar(v, known);
}

ValueId Lowering::scalar(ValueId v, std::map<ValueId, ValueId>& known) {
  if (g.is_constant(v)) return kernel.constant(g[v].dtype, *g[v].constant);
  if (const auto it = known.find(v); it != known.end()) return it->second;
  const Op& op = g[g[v].def];
  if (op.kind == OpKind::kInput || op.kind == OpKind::kSize) {
    const bool is_extent = g[v].dtype == Dtype::kIndex;
    return parameter({is_extent ? classes.representative(v) : v, {}, 0});
  }
  std::vector<ValueId> operands;
  for (ValueId operand : op.operands) operands.push_back(operand ? scalar(operand, known) : operand);
  if (op.kind == OpKind::kSet || op.kind == OpKind::kSegmentSet) return known[v] = operands[0];
  // What the program computes of constants alone.
  if (std::all_of(operands.begin(), operands.end(), [&](ValueId o) { return o && kernel.graph().is_constant(o); })) {
    std::vector<TypedBits> constants;
    for (ValueId o : operands) constants.push_back({kernel.graph()[o].dtype, *kernel.graph()[o].constant});
    if (const auto bits = evaluate_op(op.kind, g[v].dtype, constants))
      return known[v] = kernel.constant(g[v].dtype, *bits);
  }
  const auto is_truth = [&](ValueId o) { return kernel.graph()[o].dtype == Dtype::kBool; };
  if (op.kind == OpKind::kLogicalAnd && std::all_of(operands.begin(), operands.end(), is_truth))
    return known[v] = kernel.logical_and(operands[0], operands[1]);
  return known[v] = kernel.op(op.kind, operands, g[v].dtype, op.attrs);
}

ValueId Lowering::thread_index(ParallelType p) {
  Attrs attrs;
  attrs.set_enum(AttrKey::kParallel, p);
  return kernel.op(OpKind::kThreadIndex, {}, Dtype::kIndex, attrs);
}

ValueId Lowering::emit_form(Form form) {
  FormEmitter emitter(
      algebra, kernel,
      [&](int symbol) {
        if (const auto it = run_time_symbols.find(symbol); it != run_time_symbols.end()) return it->second;
        if (const auto it = stride_symbols.find(symbol); it != stride_symbols.end()) return parameter(it->second);
        return scalar(ValueId(static_cast<uint32_t>(symbol)));
      },
      [&](int node) { return node_index[static_cast<size_t>(node)]; });
  return emitter.emit(form);
}

std::vector<DomainCheck> Lowering::domain_checks(OpView& view, DomainValues& values) const {
  std::vector<DomainCheck> result;
  for (DomainCheck check : values.checks()) {
    if (g[check.domain].iter_type == IterType::kReduction && options.defects.has(Defect::kReductionUnchecked)) continue;
    if (options.defects.has(Defect::kPredicateOffByOne))
      check.extent = view.algebra.add(check.extent, view.algebra.constant(1));
    result.push_back(check);
  }
  return result;
}

std::vector<Lowering::Condition> Lowering::conditions(OpView& view) {
  std::vector<Condition> result;
  const Statement& s = view.statement;
  const auto& loop = loop_of(g.tensor_of(g[s.op].results[0]));
  // A launch may be larger than a loop, because another tensor made it so.
  for (size_t i = 0; i < s.path.size(); ++i) {
    if (s.path[i] == LoopNode::kNoNode || !is_thread(tree.nodes[s.path[i]].parallel)) continue;
    // The thread's own index: the form of a loop of one iteration is 0 whatever the launch.
    const ParallelType p = tree.nodes[s.path[i]].parallel;
    if (is_replicated(loop[i]) && !has_place_for(plan.of(s.op), p) && !options.defects.has(Defect::kReplicatedChecked))
      continue;
    const auto extent = algebra.constant_value(view.own.extent(loop[i]));
    if (!exact_launch[p] && !(extent && *extent > 0 && extent == largest_launch[p]) &&
        !options.defects.has(Defect::kThreadLoopUnchecked))
      result.push_back({OpKind::kLt, Form{}, view.own.extent(loop[i]), p, CheckKind::kLoopExtent, loop[i],
                        CheckReason::kLaunchLarger});
  }
  for (const DomainCheck& check : domain_checks(view, view.own)) {
    const CheckReason reason = view.own.reason(check.domain);
    if (check.lower)
      result.push_back({OpKind::kGe, check.value, Form{}, std::nullopt, CheckKind::kDomain, check.domain, reason});
    result.push_back({OpKind::kLt, check.value, check.extent, std::nullopt, CheckKind::kDomain, check.domain, reason});
  }
  bool is_global = false, is_shared = false, reads_expanded = false;
  for (ValueId v : g[s.op].results) {
    is_global |= buffers[v.index].memory == MemoryType::kGlobal;
    is_shared |= buffers[v.index].memory == MemoryType::kShared;
  }
  for (ValueId v : g[s.op].operands)
    if (v && g.is_tensor(v))
      for (DomainId d : g.tensor_of(v).logical) reads_expanded |= static_cast<bool>(g[d].expanded);
  // What is expanded to nothing has no element to store, and none that could be read.
  if (is_global || reads_expanded)
    for (DomainId d : logical_without_reductions(g, g.tensor_of(g[s.op].results[0]))) {
      if (!g[d].expanded) continue;
      const Form size = view.own.size(d);
      if (!algebra.prove_less(Form{}, size))
        result.push_back({OpKind::kNe, size, Form{}, {}, CheckKind::kDomain, d, CheckReason::kExpanded});
    }
  // Memory that several threads see is stored once: by index 0 of each dimension that this nest leaves out. What a
  // reduction accumulates is the thread's own.
  if (demands(g[s.op].kind, kReduction) && s.kind != StatementKind::kFinal) return result;
  // A broadcast that was split and merged with what is reduced has no value once the reduction's loops are left out:
  // what remains of it is stored at index 0.
  if (s.kind == StatementKind::kFinal)
    for (size_t i = 0; i < s.path.size(); ++i) {
      if (s.path[i] == LoopNode::kNoNode || g[loop[i]].iter_type != IterType::kBroadcast) continue;
      const auto of = leaves(g, loop[i]);
      if (std::all_of(of.begin(), of.end(), [&](DomainId d) { return view.own.known(d) || plan.promoted.contains(d); }))
        continue;
      result.push_back(
          {OpKind::kLt, view.loop(i), algebra.constant(1), {}, CheckKind::kDomain, loop[i], CheckReason::kSplitInput});
    }
  // Threads that compute the same again share an element where the allocation has no place for their loop.
  for (size_t i = 0; is_shared && i < s.path.size(); ++i) {
    if (s.path[i] == LoopNode::kNoNode || !is_replicated(loop[i])) continue;
    const ParallelType p = tree.nodes[s.path[i]].parallel;
    const auto has_place = [&](ValueId v) {
      const auto& places = buffers[v.index].places;
      return std::find(places.begin(), places.end(), loop[i]) != places.end();
    };
    if (is_thread(p) && is_block(p) && !std::all_of(g[s.op].results.begin(), g[s.op].results.end(), has_place))
      result.push_back({OpKind::kEq, Form{}, Form{}, p, CheckKind::kThread, {}, CheckReason::kOneThread});
  }
  for (ParallelType p : used_threads)
    if ((is_global || (is_shared && is_block(p))) && !view.thread_loop(p) &&
        !options.defects.has(Defect::kThreadZeroUnchecked))
      result.push_back({OpKind::kEq, Form{}, Form{}, p, CheckKind::kThread, {}, CheckReason::kOneThread});
  return result;
}

ValueId Lowering::emit_condition(const Condition& c) {
  if (c.guard) {
    const ValueId bound = emit_form(c.bound);
    return kernel.compare(c.compare, thread_index(*c.guard), bound);
  }
  const ValueId value = emit_form(c.value);
  return kernel.compare(c.compare, value, emit_form(c.bound));
}

ValueId Lowering::emit_conditions(OpView& view, MemoryType stored) {
  ValueId all = kernel.bit(true);
  const auto known = settled.find(statement_index(view.statement));
  const auto list = conditions(view);
  const auto is_needed = [&](const Condition& c) {
    return c.kind != CheckKind::kThread || stored == MemoryType::kGlobal ||
           (stored == MemoryType::kShared && is_block(*c.guard));
  };
  for (size_t i = 0; i < list.size(); ++i)
    if ((known == settled.end() || !known->second.contains(i)) && is_needed(list[i])) {
      const ValueId predicate = emit_condition(list[i]);
      if (options.explain) emitted.try_emplace({statement_index(view.statement), i}, Emitted{predicate});
      const bool joined = kernel.constant_of(all) != 1 && options.defects.has(Defect::kChecksJoinedByOr);
      all = joined ? kernel.op(OpKind::kLogicalOr, {all, predicate}, Dtype::kBool) : kernel.logical_and(all, predicate);
    }
  return all;
}

ValueId Lowering::buffer_of(ValueId v) { return buffers[v.index].kernel_value; }

Form Lowering::elements_of(Symbols& symbols, const Buffer& b) {
  Form elements = algebra.constant(1);
  DomainValues extents(g, plan, symbols, algebra, g[g[g[b.value].def].results[0]].tensor);
  for (DomainId d : b.places) elements = algebra.mul(elements, extents.extent(d));
  if (algebra.prove_less(algebra.constant(1), elements) && options.defects.has(Defect::kBufferShort))
    elements = algebra.sub(elements, algebra.constant(1));
  return elements;
}

void Lowering::allocate_local(Buffer& b) {
  const std::string name = "T" + std::to_string(g[b.value].tensor.index);
  const int64_t bytes = size_bytes(g[b.value].dtype);
  // Nearly always constants multiplied, for which nothing need be known of the nest.
  algebra.clear();
  Symbols symbols(g, classes, algebra);
  auto count = algebra.constant_value(elements_of(symbols, b));
  if (!count) {
    const Statement s{g[b.value].def, StatementKind::kMain, plan.of(g[b.value].def).path};
    OpView view(*this, s);
    count = algebra.constant_value(elements_of(view.symbols, b));
  }
  if (!count)
    throw Error(ErrorCode::kIllegalAllocation,
                "its part in a thread has no constant size; split by constants, inline it further in, or keep it in "
                "shared or global memory",
                place_of(b.value));
  if (*count * bytes > 65536)
    throw Error(
        ErrorCode::kIllegalAllocation,
        "its part in a thread takes " + std::to_string(*count * bytes) + " bytes, over 65536; inline it further in",
        place_of(b.value));
  // A vector of any width that fits may be read from it, whatever is left over.
  const auto align = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(16, *count * bytes))));
  b.kernel_value =
      kernel.allocate(data_dtype(g[b.value].dtype), MemoryType::kLocal, kernel.index(*count), {}, align, name);
}

void Lowering::emit_children(uint32_t node) {
  if (const auto it = at_home.find(node); it != at_home.end())
    for (ValueId v : it->second)
      if (buffers[v.index].memory == MemoryType::kLocal) allocate_local(buffers[v.index]);
  if (const auto it = accumulators_at.find(node); it != accumulators_at.end())
    for (OpId op : it->second) allocate_accumulator(op);
  if (node == LoopNode::kNoNode) {
    allocate_shared();
    plan_block_workspaces();
  }
  const auto& children = node == LoopNode::kNoNode ? tree.top : tree.children[node];
  for (size_t i = 0; i < children.size(); ++i) {
    if (sync_points.contains({node, i, true})) {
      if (!grid_counters) grid_counters = kernel.tensor_parameter(Dtype::kUint32, "grid_counters");
      Attrs attrs;
      attrs.set(AttrKey::kSlot, grid_slots++);
      kernel.effect(OpKind::kGridBarrier, {grid_counters}, {}, attrs);
    } else if (sync_points.contains({node, i, false})) {
      if (!children[i].is_node && options.defects.has(Defect::kBarrierDivergent)) {
        OpView view(*this, tree.statements[children[i].index]);
        guarded(emit_conditions(view), [&] { kernel.effect(OpKind::kBarrier, {}, {}); });
      } else {
        kernel.effect(OpKind::kBarrier, {}, {});
      }
    }
    if (children[i].is_node)
      emit_node(children[i].index);
    else
      emit_statement(tree.statements[children[i].index]);
  }
}

void Lowering::emit_node(uint32_t n) {
  const LoopNode& node = tree.nodes[n];
  if (is_thread(node.parallel)) {
    node_index[n] = thread_index(node.parallel);
    emit_children(n);
    return;
  }
  // The loop of a vectorized copy is the copy's width.
  const auto& children = tree.children[n];
  if (node.parallel == ParallelType::kVectorize && children.size() == 1 && !children[0].is_node &&
      is_vector_copy(tree.statements[children[0].index])) {
    node_index[n] = kernel.index(0);
    emit_children(n);
    return;
  }
  if (node.parallel == ParallelType::kUnswitch && emit_unswitched(n)) return;
  emit_loop(n, node.parallel == ParallelType::kUnroll || node.parallel == ParallelType::kVectorize);
}

// Whether it is, or is made from, a broadcast that a shared loop gives another extent.
bool Lowering::is_promoted(DomainId domain) const {
  if (plan.promoted.empty()) return false;
  const auto from = leaves(g, domain);
  return std::any_of(from.begin(), from.end(), [&](DomainId d) { return plan.promoted.contains(d); });
}

void Lowering::emit_loop(uint32_t n, bool unroll) {
  const LoopNode& node = tree.nodes[n];
  // A constant extent needs nothing that is known of the nest.
  algebra.clear();
  Symbols symbols(g, classes, algebra);
  DomainValues extents(g, plan, symbols, algebra, g[node.domain].tensor);
  const auto constant = algebra.constant_value(extents.extent(node.domain));
  ValueId extent = constant ? kernel.index(*constant) : ValueId();
  if (!constant) {
    const Statement s{node.op, StatementKind::kMain, plan.of(node.op).path};
    OpView view(*this, s);
    extent = emit_form(view.own.extent(node.domain));
  }
  if (is_promoted(node.domain) && options.defects.has(Defect::kPromotedWrongDomain)) extent = kernel.index(1);
  // A sum's plan may know less of the count than this: its strip ends all the same.
  if (kernel.constant_of(extent) == 1 && !strips.contains(n)) {
    node_index[n] = kernel.index(0);
    emit_children(n);
    return;
  }
  const bool is_short = node.parallel == ParallelType::kSerial && options.defects.has(Defect::kLoopShort);
  const ValueId end = is_short ? kernel.sub(extent, kernel.index(1)) : extent;
  if (strips.contains(n)) return emit_strips(n, end, unroll);
  node_index[n] = kernel.begin_for(kernel.index(0), end, kernel.index(1), unroll);
  emit_children(n);
  kernel.end();
}

void Lowering::emit_statement(const Statement& s) {
  if (demands(g[s.op].kind, kReduction)) {
    OpView view(*this, s);
    emit_reduction(view);
    return;
  }
  if (is_vector_copy(s)) {
    OpView view(*this, s);
    emit_vector_copy(view);
    return;
  }
  OpView view(*this, s);
  emit_pointwise(view);
}

}  // namespace fusebox::lowering

namespace fusebox {

Lowered lower(const Graph& scheduled, const LowerOptions& options) {
  for (const IterDomain& d : scheduled.domains)
    if (d.iter_type == IterType::kSymbolic)
      throw Error(ErrorCode::kNotConcretized, "this axis is not resolved; concretize the program for its inputs first",
                  (d.tensor ? "%" + scheduled[scheduled[d.tensor].value].name + "." : "") + d.name);
  return lowering::Lowering(scheduled, options).run();
}

std::optional<Error> legal(const Graph& scheduled, const LowerOptions& options) {
  try {
    lower(scheduled, options);
    return std::nullopt;
  } catch (const Error& e) {
    return e;
  }
}

}  // namespace fusebox
