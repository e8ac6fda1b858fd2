// Steps that copy a tensor or the op that makes it.
#include <algorithm>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/domain/domain_replay.h"
#include "ir/infer/infer.h"
#include "ir/scalar/scalar.h"
#include "ir/step/step_rules.h"

namespace fusebox {
namespace {

Op set_op(const Step& step, ValueId from) {
  Op op;
  op.kind = OpKind::kSet;
  op.operands = {from};
  for (AttrKey key : {AttrKey::kCopyKind, AttrKey::kCacheOp})
    if (const AttrValue* v = step.attrs.find(key)) op.attrs.set(key, *v);
  return op;
}

void replace_operand(Graph& g, OpId op, ValueId from, ValueId to) {
  std::replace(g[op].operands.begin(), g[op].operands.end(), from, to);
}

// Adds `name = set from` before the op `before`. The copy has the loops of `from`, unless `from` is an input.
ValueId add_copy(Graph& g, const Step& step, ValueId from, OpId before, const std::string& name) {
  Op set = set_op(step, from);
  // The copy is made before anything else, so that nothing takes its name.
  const ValueId copy = add_tensor(g, g[from].dtype, name);
  set.results = {copy};
  const OpId op = insert_before(g, before, std::move(set));
  infer(g, op);
  const TensorId source = g[from].tensor, t = g[copy].tensor;
  g[t].devices = g[source].devices;
  if (is_input(g, source)) return copy;
  ReplayAxes axes{g[source].logical, {}};
  for (DomainPair pair : map_producer_to_consumer(g, op, 0)) axes.pairs.emplace_back(pair.producer, pair.consumer);
  replay_loops(g, source, t, axes, {StandIn::kNone, LoopStart::kLogical, true});
  return copy;
}

// The loops of a tensor without reductions. Nothing if the logical axes without reductions (and loop broadcasts) do not
// give exactly these loops.
std::optional<std::vector<DomainId>> loops_after_copy(const Graph& g, const Tensor& t) {
  const auto visible = logical_without_reductions(g, t);
  std::vector<DomainId> kept;
  for (DomainId d : loop_of(t)) {
    if (g[d].iter_type == IterType::kReduction) continue;
    kept.push_back(d);
  }
  std::vector<DomainId> from = visible;
  from.insert(from.end(), t.loop_broadcasts.begin(), t.loop_broadcasts.end());
  std::vector<DomainId> all = kept;
  for (DomainId d : t.loop_broadcasts)
    if (std::none_of(kept.begin(), kept.end(), [&](DomainId k) { return follows_from(g, k, d); })) std::erase(from, d);
  if (!is_complete(g, from, all)) return std::nullopt;
  return kept;
}

}  // namespace

void step_cache_before(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const ValueId y = c.g[t].value;
  const auto loops = loops_after_copy(c.g, c.g[t]);
  if (!loops)
    c.refuse("the loops of this tensor are not its own axes', so a copy cannot have them; use cache_before earlier",
             c.place(t));
  if (c.g[t].inline_at && position_in(*loops, c.g[t].inline_at) == loops->size())
    c.refuse("the tensor is inlined at a loop that its copy will not have; use cache_before earlier", c.place(t));
  for (DomainId d : logical_without_reductions(c.g, c.g[t]))
    if (c.g[d].iter_type == IterType::kSymbolic) c.refuse("this domain is symbolic; concretize it first", c.place(d));
  if (!c.target) return;
  c.begin();
  Graph& g = *c.target;
  const OpId def = g[y].def;
  DomainMap copied;
  const std::vector<DomainId> had = domains_of(g, t);
  const ValueId made = copy_tensor(g, y, c.step.results[0], &copied);
  Tensor& cache = g.tensor_of(made);
  cache.allocation.clear();
  cache.contiguity.clear();
  cache.memory = MemoryType::kUnset;
  cache.inline_at = DomainId();
  cache.circular_depth = 0;
  std::replace(g[def].results.begin(), g[def].results.end(), y, made);
  g[made].def = def;
  Op copy = set_op(c.step, made);
  copy.results = {y};
  const OpId set = insert_after(g, def, std::move(copy));
  // The logical domains get extents of their own, because the op's transforms and reductions stay with the cache. They
  // are those of the cache: a reshape states its extents, and of no elements its splits would find others.
  const auto visible = logical_without_reductions(g, g[t]);
  for (DomainId d : visible) {
    if (!g[d].def) continue;
    const ValueId extent = emit_extent(g, scalar::Place::before_op(g, set), copied.at(d));
    g[d].extent = extent;
    g[d].def = TransformId();
  }
  g[t].root.clear();
  g[t].logical = visible;
  set_loop(g, t, *loops);
  if (g[t].allocation == visible) g[t].allocation.clear();
  move_stand_ins(g, copied);
  prune(g, t, had);
}

void step_cache_after(StepContext& c) {
  const TensorId t = c.tensor(0);
  const ValueId x = c.g[t].value;
  if (!c.g[x].def) c.refuse("nothing makes this tensor", c.place(t));
  const auto all = readers(c.g, x);
  if (all.empty()) c.refuse("nothing reads this tensor, so a copy would be of no use", c.place(t));
  if (c.g[t].inline_at)
    c.refuse("the tensor is inlined into its consumers; use cache_after before inlining", c.place(t));
  if (!c.target) return;
  c.begin();
  Graph& g = *c.target;
  // Data may choose any element of an input, so what reads it by data stays with the input if other ops read it too. A
  // copy of the whole input would have to lie in global memory.
  std::vector<std::pair<OpId, size_t>> moved, stays;
  for (OpId op : all)
    for (size_t k = 0; k < g[op].operands.size(); ++k)
      if (g[op].operands[k] == x) (is_input(g, t) && reads_by_data(g, g[op], k) ? stays : moved).emplace_back(op, k);
  if (moved.empty()) moved = std::move(stays);
  const ValueId copy = add_copy(g, c.step, x, all.front(), c.step.results[0]);
  if (is_reduced_float(g[x].dtype) && bits(g[x].dtype) == 16 && c.defects.has(Defect::kCacheDtype))
    g[copy].dtype = Dtype::kFloat8E5m2;
  for (const auto& [op, k] : moved) g[op].operands[k] = copy;
}

void step_cache_fork(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0);
  const ValueId y = c.g[t].value;
  if (!is_output(c.g, y)) c.refuse("cache_fork is for an output; this tensor is none", c.place(t));
  if (readers(c.g, y).empty()) c.refuse("nothing else reads this output; use cache_before", c.place(t));
  if (!c.target) return;
  c.begin();
  Graph& g = *c.target;
  std::vector<OpId> writers;
  for (OpId op : g[Graph::body()].ops)
    if (g[op].kind == OpKind::kOutput && g[op].operands[0] == y) writers.push_back(op);
  const ValueId copy = add_copy(g, c.step, y, writers.front(), c.step.results[0]);
  // The output keeps its layout.
  const Tensor& from = g.tensor_of(y);
  const auto axes = logical_without_reductions(g, from), copied = logical_without_reductions(g, g.tensor_of(copy));
  std::vector<DomainId> allocation;
  for (DomainId d : from.allocation)
    if (const size_t i = position_in(axes, d); i < axes.size()) allocation.push_back(copied[i]);
  if (allocation.size() == from.allocation.size()) {
    g.tensor_of(copy).contiguity = from.contiguity;
    g.tensor_of(copy).allocation = std::move(allocation);
  }
  for (OpId op : writers) g[op].operands[0] = copy;
}

void step_recompute(StepContext& c) {
  const TensorId t = c.scheduled_tensor(0), user = c.tensor(1);
  const ValueId x = c.g[t].value;
  const OpId consumer = c.g[c.g[user].value].def;
  const auto all = readers(c.g, x);
  if (std::find(all.begin(), all.end(), consumer) == all.end())
    c.refuse("this tensor is not made from " + c.place(t) + "; name one of its consumers", c.place(user));
  if (all.size() == 1 && !is_output(c.g, x))
    c.refuse("this consumer is the only one, so it has the tensor for itself already", c.place(user));
  if (c.g[t].inline_at) c.refuse("the tensor is inlined into its consumers; recompute it before inlining", c.place(t));
  if (!c.target) return;
  c.begin();
  Graph& g = *c.target;
  Op copy = g[g[x].def];
  const ValueId own = copy_tensor(g, x, c.step.results[0]);
  for (ValueId& result : copy.results) result = result == x ? own : copy_tensor(g, result, std::string(g[result].name));
  insert_before(g, consumer, std::move(copy));
  replace_operand(g, consumer, x, own);
}

}  // namespace fusebox
