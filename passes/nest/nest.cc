#include "passes/nest/nest.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

class NestPlanner {
 public:
  NestPlanner(const Graph& g, const Defects& defects) : g_(g) { plan_.defects = defects; }

  NestPlan run() {
    collect();
    match_loop_broadcasts();
    for (size_t i = plan_.nests.size(); i-- > 0;) place(plan_.nests[i]);
    resolve();
    for (size_t i = plan_.nests.size(); i-- > 0;) promote(plan_.nests[i]);
    return std::move(plan_);
  }

 private:
  void collect() {
    plan_.nest_of.assign(g_.ops.size(), LoopNode::kNoNode);
    plan_.readers.resize(g_.values.size());
    for (OpId id : g_[Graph::body()].ops) {
      const Op& op = g_[id];
      if (op.kind == OpKind::kInput || op.results.empty() || !g_.is_tensor(op.results[0])) continue;
      plan_.nest_of[id.index] = static_cast<uint32_t>(plan_.nests.size());
      plan_.nests.push_back({id, {}, 0});
      for (ValueId v : op.operands)
        if (v && g_.is_tensor(v) && (plan_.readers[v.index].empty() || plan_.readers[v.index].back() != id))
          plan_.readers[v.index].push_back(id);
    }
  }

  void match_loop_broadcasts() {
    std::optional<AxisClasses> classes;
    for (const Nest& nest : plan_.nests) {
      const Op& op = g_[nest.op];
      const Tensor& reader = g_.tensor_of(op.results[0]);
      for (size_t k = 0; k < op.operands.size(); ++k) {
        const ValueId v = op.operands[k];
        if (!v || !g_.is_tensor(v) || g_.tensor_of(v).loop_broadcasts.empty()) continue;
        std::optional<std::vector<DomainPair>> pairs;
        for (DomainId d : g_.tensor_of(v).loop_broadcasts) {
          const DomainId own = own_domain(reader, g_[d].stands_for);
          if (own) {
            plan_.stands_for.emplace(std::pair(d, nest.op), own);
            continue;
          }
          // Inlining steps use the same match. Two readers may broadcast one tensor, each along an axis of its own.
          if (!classes) classes.emplace(g_);
          if (!pairs) pairs = match_domains(g_, nest.op, k, 0, {.through_resize = false, .classes = &*classes});
          for (const DomainPair& pair : *pairs)
            if (pair.producer == d) plan_.stands_for.emplace(std::pair(d, nest.op), pair.consumer);
        }
      }
    }
  }

  // The domain itself, or the loop broadcast that stands for it. None if the tensor has neither.
  DomainId own_domain(const Tensor& t, DomainId like) const {
    if (!like) return {};
    for (DomainId b : t.loop_broadcasts)
      if (g_[b].stands_for == like) return b;
    return g_[like].tensor == g_[t.value].tensor ? like : DomainId();
  }

  static std::string place_of(const Graph& g, ValueId v) { return "%" + g[v].name; }

  uint32_t new_node(OpId op, DomainId domain, uint32_t depth) {
    plan_.nodes.push_back({LoopNode::kNoNode, depth, ParallelType::kSerial, op, domain});
    parent_.push_back(static_cast<uint32_t>(parent_.size()));
    return parent_.back();
  }

  uint32_t find(uint32_t n) {
    while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
    return n;
  }

  void place(Nest& nest) {
    const ValueId v = g_[nest.op].results[0];
    const Tensor& t = g_.tensor_of(v);
    const auto& loop = loop_of(t);
    if (t.inline_at) {
      const auto at = std::find(loop.begin(), loop.end(), t.inline_at);
      if (at == loop.end())
        throw Error(ErrorCode::kIllegalInline,
                    "the inline position is no loop domain any more; inline after the last transform", place_of(g_, v));
      nest.shared = static_cast<uint32_t>(at - loop.begin()) + 1;
    }
    std::vector<OpId> readers;
    for (ValueId result : g_[nest.op].results)
      for (OpId reader : plan_.readers[result.index]) readers.push_back(reader);
    if (nest.shared > 0 && readers.empty())
      throw Error(ErrorCode::kIllegalInline, "no op reads this tensor, so it has no loops to be inlined into",
                  place_of(g_, v));
    for (uint32_t i = 0; i < loop.size(); ++i) {
      if (i >= nest.shared) {
        nest.path.push_back(new_node(nest.op, loop[i], i));
        continue;
      }
      const auto& first = plan_.of(readers[0]).path;
      for (OpId reader : readers) {
        const auto& path = plan_.of(reader).path;
        if (i >= path.size())
          throw Error(ErrorCode::kIllegalInline,
                      "a consumer, " + place_of(g_, g_[reader].results[0]) +
                          ", has fewer loops than are to be shared; inline further out",
                      place_of(g_, v) + "." + g_[loop[i]].name);
        parent_[find(path[i])] = find(first[i]);
      }
      nest.path.push_back(first[i]);
    }
  }

  // Replaces paths by representatives, and fills in the nodes' parents, first members and parallel types.
  void resolve() {
    for (Nest& nest : plan_.nests) {
      const ValueId v = g_[nest.op].results[0];
      const auto& loop = loop_of(g_.tensor_of(v));
      uint32_t parent = LoopNode::kNoNode;
      for (size_t i = 0; i < nest.path.size(); ++i) {
        const uint32_t n = nest.path[i] = find(nest.path[i]);
        LoopNode& node = plan_.nodes[n];
        node.parent = parent;
        parent = n;
        if (std::pair(nest.op.index, loop[i].index) < std::pair(node.op.index, node.domain.index)) {
          node.op = nest.op;
          node.domain = loop[i];
        }
        const ParallelType p = g_[loop[i]].parallel;
        if (p == ParallelType::kSerial || p == node.parallel) continue;
        if (node.parallel != ParallelType::kSerial)
          throw Error(ErrorCode::kIllegalParallel,
                      "a shared loop is both " + std::string(text(p)) + " and " + std::string(text(node.parallel)) +
                          "; give the tensors that share it one parallel type",
                      place_of(g_, v) + "." + g_[loop[i]].name);
        node.parallel = p;
      }
    }
    // This check needs all types: a loop may take its type from a later member.
    for (const Nest& nest : plan_.nests) {
      const ValueId v = g_[nest.op].results[0];
      std::set<ParallelType> seen;
      for (uint32_t n : nest.path)
        if (is_thread(plan_.nodes[n].parallel) && !seen.insert(plan_.nodes[n].parallel).second)
          throw Error(ErrorCode::kIllegalParallel,
                      "two loops of one nest are " + std::string(text(plan_.nodes[n].parallel)) + "; keep one of them",
                      place_of(g_, v));
    }
  }

  ValueId concrete_extent(DomainId d) const {
    if (const ValueId promoted = plan_.promoted_extent(d)) return promoted;
    return g_[d].iter_type == IterType::kBroadcast ? ValueId() : g_[d].extent;
  }

  void promote(const Nest& nest) {
    if (nest.shared == 0) return;
    const auto& loop = loop_of(g_.tensor_of(g_[nest.op].results[0]));
    for (uint32_t i = 0; i < nest.shared; ++i)
      for (DomainId d : leaves(g_, loop[i]))
        if (g_[d].iter_type == IterType::kBroadcast) promote(nest.op, d);
  }

  // All results of an op share the loops of the first, so a reader of any of them decides. `d` is of the first.
  void promote(OpId op, DomainId d) {
    std::vector<DomainId> by_result;
    for (ValueId v : g_[op].results) by_result.push_back(in_sibling(g_, g_[v].tensor, d));
    ValueId kept;  // a result of which a reader reads the one element
    for (size_t r = 0; r < by_result.size(); ++r) {
      const ValueId v = g_[op].results[r];
      for (OpId reader : plan_.readers[v.index]) {
        const ValueId extent = by_result[r] ? concretized_by(g_.tensor_of(v), by_result[r], reader) : ValueId();
        if (!extent && !kept) kept = v;
        take(d, extent, v);
      }
    }
    const ValueId promoted = plan_.promoted_extent(d);
    if (!promoted) return;
    if (kept && constant_integer(g_, promoted).value_or(0) < 1)
      throw Error(ErrorCode::kIllegalInline,
                  "one consumer reads the element of this broadcast axis, and another may read it no time, as its "
                  "extent may be 0; inline it outside that axis, or recompute it for one of them",
                  place_of(g_, kept) + "." + g_[d].name);
    for (DomainId own : by_result)
      if (own) plan_.promoted.emplace(own, promoted);
  }

  // The extent that a reader gives to a broadcast domain of its operand, or none.
  ValueId concretized_by(const Tensor& t, DomainId d, OpId reader) const {
    const Op& op = g_[reader];
    if (g_[d].stands_for) {
      const DomainId fed = plan_.fed_by(d, reader);
      return fed ? concrete_extent(fed) : ValueId();
    }
    for (size_t k = 0; k < op.operands.size(); ++k) {
      if (op.operands[k] != t.value) continue;
      for (const auto& [from, to] : map_producer_to_consumer(g_, reader, k))
        if (from == d) return concrete_extent(to);
    }
    return ValueId();
  }

  void take(DomainId d, ValueId extent, ValueId v) {
    if (!extent) return;
    const auto [it, is_new] = plan_.promoted.emplace(d, extent);
    if (!is_new && it->second != extent && !equal_extent(it->second, extent))
      throw Error(ErrorCode::kIllegalInline,
                  "its consumers give this broadcast axis different extents; inline it outside that axis, or recompute "
                  "it for one of them",
                  place_of(g_, v) + "." + g_[d].name);
  }

  bool equal_extent(ValueId a, ValueId b) const { return classes_.representative(a) == classes_.representative(b); }

  const Graph& g_;
  ExtentClasses classes_{g_};
  NestPlan plan_;
  std::vector<uint32_t> parent_;
};

}  // namespace

NestPlan plan_nests(const Graph& g, const Defects& defects) { return NestPlanner(g, defects).run(); }

}  // namespace fusebox
