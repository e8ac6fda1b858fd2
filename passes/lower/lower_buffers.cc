// Where tensors live, which threads there are, and what crosses them.
#include <algorithm>
#include <iterator>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/lower/correspondence.h"
#include "passes/lower/lowering.h"

namespace fusebox::lowering {
namespace {

bool has_place(const Lowering& l, const Buffer& b, uint32_t shared, size_t position, ParallelType p) {
  if (!is_thread(p))
    return position > shared || (position == shared && !l.options.defects.has(Defect::kInlineOneDeeper));
  return is_block(p) && (b.memory == MemoryType::kShared) && l.used_threads.contains(p) &&
         !l.options.defects.has(Defect::kBufferSharedLoop);
}

// x, y → x, y xor x permutes the points of y only if y has a power of two of them, and x no more.
void check_swizzle(const Graph& g, IndexAlgebra& algebra, DomainValues& values, ValueId v, const Transform& t) {
  if (t.kind != TransformKind::kSwizzle || t.swizzle != SwizzleType::kXor) return;
  const auto x = algebra.constant_value(values.extent(t.inputs[0])),
             y = algebra.constant_value(values.extent(t.inputs[1]));
  if (x && y && *y > 0 && (*y & (*y - 1)) == 0 && *x <= *y) return;
  throw Error(ErrorCode::kIllegalSwizzle,
              "an xor swizzle needs a second domain of a constant power of two, and a first one that is no larger; "
              "split by such factors first, or use a cyclic one",
              "%" + g[v].name + "." + g[t.inputs[1]].name);
}

}  // namespace

void Lowering::plan_threads() {
  check_coverage(g, plan);
  IndexAlgebra extents(options.defects);  // no loops: equal forms are equal extents
  std::map<ParallelType, Form> first;
  for (const Nest& nest : plan.nests) {
    const ValueId v = g[nest.op].results[0];
    Symbols symbols(g, classes, extents);
    DomainValues values(g, plan, symbols, extents, g[v].tensor);
    const auto& loop = loop_of(g.tensor_of(v));
    for (TransformId id : g.tensor_of(v).transforms) check_swizzle(g, extents, values, v, g[id]);
    if (g.tensor_of(v).circular_depth > 0)
      throw Error(ErrorCode::kUnsupportedSchedule,
                  "lowering does not pipeline circular buffers yet; leave the step out", place_of(v));
    for (size_t i = 0; i < loop.size(); ++i) {
      const ParallelType p = plan.nodes[nest.path[i]].parallel;
      if (p == ParallelType::kBulk || p == ParallelType::kMma || p == ParallelType::kGroup ||
          p == ParallelType::kStream || (p >= ParallelType::kMeshX && p <= ParallelType::kMeshZ))
        throw Error(ErrorCode::kUnsupportedSchedule,
                    "lowering does not know loops that are " + std::string(text(p)) +
                        " yet; use grid, block, unroll or vectorize",
                    place_of(v) + "." + g[loop[i]].name);
      if (!is_thread(p)) continue;
      used_threads.insert(p);
      const Form e = values.extent(loop[i]);
      const auto [it, is_new] = first.emplace(p, e);
      if (is_new)
        exact_launch[p] = true;
      else if (!(it->second == e))
        exact_launch[p] = false;
      const auto constant = extents.constant_value(e);
      if (is_new) largest_launch[p] = constant;
      auto& largest = largest_launch[p];
      largest = largest && constant ? std::optional(std::max(*largest, *constant)) : std::nullopt;
    }
  }
}

// Where no thread is launched because a loop is empty, an element that the loop is not part of would not be written: a
// sum over nothing, or what another nest makes.
void Lowering::plan_empty_threads() {
  IndexAlgebra extents(options.defects);
  std::set<ParallelType> may_be_empty, needed;
  for (const Nest& nest : plan.nests) {
    const ValueId v = g[nest.op].results[0];
    Symbols symbols(g, classes, extents);
    DomainValues values(g, plan, symbols, extents, g[v].tensor);
    const auto& loop = loop_of(g.tensor_of(v));
    const bool is_seen = std::any_of(g[nest.op].results.begin(), g[nest.op].results.end(),
                                     [&](ValueId r) { return buffers[r.index].memory == MemoryType::kGlobal; });
    std::set<ParallelType> over;
    for (size_t i = 0; i < loop.size(); ++i) {
      const ParallelType p = plan.nodes[nest.path[i]].parallel;
      if (!is_thread(p)) continue;
      if (!extents.prove_less(extents.constant(0), values.extent(loop[i]))) may_be_empty.insert(p);
      if (!is_reduction(g, loop[i])) over.insert(p);
    }
    for (ParallelType p : used_threads)
      if (is_seen && !over.contains(p)) needed.insert(p);
  }
  std::set_intersection(may_be_empty.begin(), may_be_empty.end(), needed.begin(), needed.end(),
                        std::inserter(launched_empty, launched_empty.end()));
  for (ParallelType p : launched_empty) exact_launch[p] = false;
}

void Lowering::plan_buffers() {
  buffers.resize(g.values.size());
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.kind != OpKind::kInput || !g.is_tensor(op.results[0])) continue;
    Buffer& b = buffers[op.results[0].index];
    b.value = b.storage = op.results[0];
    b.memory = MemoryType::kGlobal;
    b.is_parameter = true;
  }
  std::map<ValueId, ValueId> alias;
  std::set<ValueId> is_output;
  for (const OutputRef& out : outputs(g)) {
    if (!g.is_tensor(out.value)) continue;
    if (!is_output.insert(out.value).second)
      throw Error(ErrorCode::kUnsupportedSchedule, "this tensor is an output twice; copy it with `set` for the second",
                  place_of(out.value));
    if (out.alias) alias[out.value] = out.alias;
  }
  for (const Nest& nest : plan.nests) {
    const ValueId first = g[nest.op].results[0];
    const auto& loop = loop_of(g.tensor_of(first));
    for (ValueId v : g[nest.op].results) {
      const Tensor& t = g.tensor_of(v);
      Buffer& b = buffers[v.index];
      b.value = b.storage = v;
      b.memory = t.memory;
      if (is_output.contains(v)) {
        if (t.memory != MemoryType::kUnset && t.memory != MemoryType::kGlobal)
          throw Error(ErrorCode::kIllegalAllocation,
                      "an output is kept in global memory; cache it before for other memory", place_of(v));
        b.memory = MemoryType::kGlobal;
        b.is_parameter = true;
        if (const auto it = alias.find(v); it != alias.end()) b.storage = it->second;
      }
      if (b.memory == MemoryType::kUnset) b.memory = MemoryType::kLocal;
      if (b.memory == MemoryType::kSymmetric)
        throw Error(ErrorCode::kUnsupportedSchedule, "symmetric memory is not supported by lowering yet", place_of(v));
      b.home = nest.shared > 0 ? nest.path[nest.shared - 1] : LoopNode::kNoNode;
      if (b.memory == MemoryType::kGlobal) {
        b.is_parameter = true;
        auto broadcasts = logical_without_reductions(g, t);
        broadcasts.insert(broadcasts.end(), t.loop_broadcasts.begin(), t.loop_broadcasts.end());
        for (DomainId d : broadcasts)
          if (plan.promoted.contains(d))
            throw Error(ErrorCode::kIllegalAllocation,
                        "a global tensor is computed again along a broadcast axis that its consumers concretize; "
                        "inline it outside that axis",
                        place_of(v) + "." + g[d].name);
        continue;
      }
      // What nobody reads is there for its siblings alone: each value may take the place of the one before.
      if (g[nest.op].results.size() > 1 && b.memory == MemoryType::kLocal && plan.readers[v.index].empty()) continue;
      // The siblings of a first result share its loops, and so its places.
      const Tensor& leader = g.tensor_of(first);
      const auto placed = [&](DomainId d) {
        const size_t i = position_in(loop, d);
        if (i == loop.size()) return true;
        const ParallelType p = plan.nodes[nest.path[i]].parallel;
        return !is_reduction(g, d) && has_place(*this, b, nest.shared, i, p);
      };
      for (DomainId d : leader.allocation.empty() ? loop : leader.allocation)
        if (placed(d) && g[d].iter_type != IterType::kReduction) b.places.push_back(d);
    }
  }
}

const Correspondence& Lowering::correspondence(OpId consumer, size_t operand) {
  const auto key = std::pair(consumer, operand);
  const auto it = correspondences.find(key);
  if (it != correspondences.end()) return it->second;
  return correspondences.emplace(key, correspondence_of(*this, consumer, operand)).first->second;
}

bool Lowering::crosses_threads(OpId producer, OpId consumer, bool grid) {
  const Nest& from = plan.of(producer);
  const auto& loop = loop_of(g.tensor_of(g[producer].results[0]));
  const auto& results = g[producer].results;
  for (size_t k = 0; k < g[consumer].operands.size(); ++k) {
    const ValueId operand = g[consumer].operands[k];
    if (!operand || std::find(results.begin(), results.end(), operand) == results.end()) continue;
    if (demands(g[consumer].kind, kIndexed) && (k == 0 || g[consumer].kind == OpKind::kScatter)) return true;
    const Correspondence& same = correspondence(consumer, k);
    for (ParallelType p : used_threads) {
      if (is_grid(p) != grid) continue;
      bool found = false;
      for (size_t i = 0; i < loop.size(); ++i) {
        if (plan.nodes[from.path[i]].parallel != p || is_reduction(g, loop[i])) continue;
        found = true;
        if (!same.thread[i]) return true;
      }
      // Stored by index 0 alone of a dimension that the producer's loops leave out.
      if (!found) return true;
    }
  }
  return false;
}

void Lowering::check_sharing() {
  // A loop that reduces cannot tell the elements of a promoted broadcast apart.
  for (const Nest& nest : plan.nests) {
    const ValueId leader = g[nest.op].results[0];
    if (!demands(g[nest.op].kind, kReduction)) continue;
    for (DomainId d : loop_of(g.tensor_of(leader))) {
      if (!is_reduction(g, d)) continue;
      const auto reduced = leaves(g, d);
      for (DomainId leaf : reduced)
        if (plan.promoted.contains(leaf))
          throw Error(
              ErrorCode::kIllegalInline,
              "a loop that reduces is made of a broadcast axis that the shared loops concretize; inline outside "
              "that axis",
              place_of(leader) + "." + g[d].name);
      // Nor can a check of a broadcast's bounds stand at the store, where a part of it is no loop any more and the
      // other is the same loop as an axis that is kept.
      const auto is_broadcast = [&](DomainId leaf) { return g[leaf].iter_type == IterType::kBroadcast; };
      for (DomainId other : loop_of(g.tensor_of(leader))) {
        const auto kept = leaves(g, other);
        if (is_reduction(g, other) || std::all_of(kept.begin(), kept.end(), is_broadcast)) continue;
        for (DomainId leaf : kept)
          if (is_broadcast(leaf) && std::find(reduced.begin(), reduced.end(), leaf) != reduced.end())
            throw Error(ErrorCode::kIllegalReduction,
                        "a broadcast axis is made part of a loop that reduces and of one that does not; merge it with "
                        "one of them whole",
                        place_of(leader) + "." + g[d].name);
      }
    }
  }
  for (const Nest& nest : plan.nests) {
    const OpId consumer = nest.op;
    const Op& op = g[consumer];
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const ValueId p = op.operands[k];
      if (!p || !g.is_tensor(p) || !plan.has_nest(g[p].def)) continue;
      const Nest& from = plan.of(g[p].def);
      const ValueId leader = g[g[p].def].results[0];
      const auto& loop = loop_of(g.tensor_of(leader));
      const bool at_scalar = op.kind == OpKind::kSelect && !g.is_tensor(op.operands[1]);
      const bool by_data = demands(op.kind, kIndexed) && (k == 0 || op.kind == OpKind::kScatter) &&
                           op.kind != OpKind::kTriu && !at_scalar;
      const Buffer& b = buffers[p.index];
      if (by_data && b.memory != MemoryType::kGlobal)
        throw Error(ErrorCode::kIllegalExchange,
                    "data choose which element is read, so the tensor must be in global memory", place_of(p));
      const Correspondence& same = correspondence(consumer, k);
      const size_t together = common_loops(from, nest);
      for (size_t i = 0; i < loop.size(); ++i) {
        const std::string place = place_of(leader) + "." + g[loop[i]].name;
        const ParallelType parallel = plan.nodes[from.path[i]].parallel;
        if (i < together && (i < from.shared || !is_thread(parallel))) {
          if (is_reduction(g, loop[i]))
            throw Error(ErrorCode::kIllegalInline,
                        "a consumer cannot stand inside the loop that reduces the tensor; inline outside it", place);
          if (!same.shared[i] || (same.at_every_point[i] && !is_replicated(loop[i])))
            throw Error(ErrorCode::kIllegalInline,
                        "the loop is not the same one in consumer " + place_of(op.results[0]) +
                            "; give both the same transforms or inline further out",
                        place);
          if (parallel == ParallelType::kVectorize)
            throw Error(ErrorCode::kIllegalVectorize, "a vectorized loop cannot be shared; inline outside it", place);
        }
        if (is_reduction(g, loop[i]) || !is_thread(parallel)) continue;
        // A dimension without a place: the reader must be the thread that made the value.
        const bool place_for_threads =
            b.memory == MemoryType::kGlobal || (b.memory == MemoryType::kShared && is_block(parallel));
        if (!place_for_threads && !same.thread[i] && !is_replicated(loop[i]))
          throw Error(ErrorCode::kIllegalExchange,
                      "consumer " + place_of(op.results[0]) + " reads a value of another " +
                          (is_grid(parallel) ? "block" : "thread") + " through " + std::string(text(b.memory)) +
                          " memory; put the tensor in " + (is_grid(parallel) ? "global" : "shared") +
                          " memory or give both one " + std::string(text(parallel)) + " loop",
                      place);
      }
    }
  }
}

std::vector<OrderConstraint> Lowering::alias_order() {
  std::vector<OrderConstraint> result;
  for (const OutputRef& out : outputs(g)) {
    if (!out.alias || !g.is_tensor(out.value)) continue;
    const OpId writer = g[out.value].def;
    if (!plan.has_nest(writer)) continue;
    for (OpId reader : plan.readers[out.alias.index]) {
      const auto& loop = loop_of(g.tensor_of(g[writer].results[0]));
      if (reader != writer) result.push_back({reader, writer});
      // The reader's element must be the writer's, in the same thread and the same iteration of what they share.
      Statement s{reader, StatementKind::kMain, plan.of(reader).path};
      OpView view(*this, s);
      for (size_t k = 0; k < g[reader].operands.size(); ++k) {
        if (g[reader].operands[k] != out.alias) continue;
        const OpKind kind = g[reader].kind;
        const bool at_tensor = kind == OpKind::kSelect && g.is_tensor(g[reader].operands[1]);
        const bool anywhere = kind == OpKind::kScatter
                                  ? k > 0
                                  : k == 0 && (kind == OpKind::kGather || kind == OpKind::kIndexSelect ||
                                               kind == OpKind::kTakeAlongAxis || at_tensor);
        if (anywhere)
          throw Error(ErrorCode::kIllegalAliasOrder,
                      "tensor " + place_of(g[reader].results[0]) + " reads " + place_of(out.alias) +
                          " along an axis where data tell it to; make the copy in a kernel of its own",
                      place_of(out.value));
        DomainValues read = view.feed(k);
        DomainValues written(g, plan, view.symbols, algebra, g[g[writer].results[0]].tensor);
        const auto from = logical_without_reductions(g, g.tensor_of(out.alias));
        const auto to = logical_without_reductions(g, g.tensor_of(out.value));
        // Of no elements, none is overwritten; and loops that never run say nothing of the places that they would read.
        if (std::any_of(to.begin(), to.end(), [&](DomainId d) { return algebra.constant_value(written.size(d)) == 0; }))
          continue;
        for (size_t i = 0; i < to.size() && i < from.size(); ++i) written.set(to[i], read.value(from[i]));
        written.propagate();
        const auto& path = plan.of(writer).path;
        for (ParallelType p : used_threads)
          if (std::none_of(path.begin(), path.end(), [&](uint32_t n) { return plan.nodes[n].parallel == p; }))
            throw Error(ErrorCode::kIllegalAliasOrder,
                        "threads along " + std::string(text(p)) + " may read " + place_of(out.alias) +
                            " after another one overwrote it; parallelize a loop of the output with it too",
                        place_of(out.value));
        for (size_t i = 0; i < loop.size(); ++i) {
          const ParallelType p = plan.nodes[path[i]].parallel;
          const auto& read_path = plan.of(reader).path;
          const bool shared = i < read_path.size() && read_path[i] == path[i];
          if (!is_thread(p) && !shared) continue;
          const auto own = is_thread(p) ? view.thread_loop(p) : std::optional<Form>(view.loop(i));
          // Every thread reads along a replicated loop.
          const auto& read_loop = loop_of(g.tensor_of(g[reader].results[0]));
          bool by_all = false;
          for (size_t r = 0; r < read_path.size(); ++r)
            by_all |= plan.nodes[read_path[r]].parallel == p && is_replicated(read_loop[r]);
          if (own && !by_all && written.known(loop[i]) && algebra.equal(written.value(loop[i]), *own)) continue;
          throw Error(
              ErrorCode::kIllegalAliasOrder,
              "tensor " + place_of(g[reader].results[0]) + " may read an element of " + place_of(out.alias) +
                  " after another thread or iteration overwrote it; read it at the same place, or copy it first",
              place_of(out.value));
        }
      }
    }
  }
  return result;
}

}  // namespace fusebox::lowering
