#include "serde/structure.h"

#include <algorithm>
#include <optional>
#include <string>

#include "ir/table/error.h"
#include "serde/limits.h"

namespace fusebox {
namespace {

[[noreturn]] void invalid(const Place& place, const std::string& message) {
  throw Error(ErrorCode::kInvalidField, message, place.text());
}

enum class Presence { kRequired, kOptional };

// Walks the edges of nodes 0 … count−1 that `edges(node, visit)` names. Returns the length of the longest path to each
// node, or the first node that it cannot reach because of a cycle.
struct Walk {
  std::vector<uint32_t> depth;
  std::optional<size_t> stuck;
};
template <class Edges>
Walk walk(size_t count, Edges edges) {
  Walk result;
  result.depth.assign(count, 0);
  std::vector<uint32_t> waits_for(count, 0), ready;
  for (size_t node = 0; node < count; ++node) edges(node, [&](size_t to) { ++waits_for[to]; });
  for (size_t node = 0; node < count; ++node)
    if (waits_for[node] == 0) ready.push_back(static_cast<uint32_t>(node));
  size_t done = 0;
  for (; !ready.empty(); ++done) {
    const uint32_t node = ready.back();
    ready.pop_back();
    edges(node, [&](size_t to) {
      result.depth[to] = std::max(result.depth[to], result.depth[node] + 1);
      if (--waits_for[to] == 0) ready.push_back(static_cast<uint32_t>(to));
    });
  }
  if (done < count)
    result.stuck = static_cast<size_t>(
        std::find_if(waits_for.begin(), waits_for.end(), [](uint32_t n) { return n != 0; }) - waits_for.begin());
  return result;
}

class StructureCheck {
 public:
  StructureCheck(const Graph& g, const Place& place, const Defects& defects)
      : g_(g), place_(place), defects_(defects) {}

  void run() {
    if (g_.regions.empty()) invalid(Place(place_, "regions"), "a graph has a body; its first region is missing");
    if (g_.index_bits != 32 && g_.index_bits != 64) invalid(Place(place_, "index_bits"), "an index has 32 or 64 bits");
    // Ranges come first: the later checks follow the ids.
    each(g_.values, "values", [&](const Value& v, const Place& at) { ranges(v, at); });
    each(g_.tensors, "tensors", [&](const Tensor& t, const Place& at) { ranges(t, at); });
    each(g_.domains, "domains", [&](const IterDomain& d, const Place& at) { ranges(d, at); });
    each(g_.transforms, "transforms", [&](const Transform& t, const Place& at) { ranges(t, at); });
    each(g_.ops, "ops", [&](const Op& op, const Place& at) { ranges(op, at); });
    each(g_.regions, "regions", [&](const Region& r, const Place& at) { ranges(r, at); });
    back_references();
    nesting();
    domain_depth();
    value_cycles();
  }

 private:
  template <class T, class Check>
  void each(const std::vector<T>& nodes, const char* field, Check check) {
    const Place list(place_, field);
    for (size_t i = 0; i < nodes.size(); ++i) check(nodes[i], Place(list, i));
  }

  template <class IdType, class Node>
  void in_range(IdType id, const std::vector<Node>& nodes, const Place& place,
                Presence presence = Presence::kRequired) {
    if (!id && presence == Presence::kOptional) return;
    if (id.index >= nodes.size())
      invalid(place,
              id ? "id " + std::to_string(id.index) + " is out of range; there are " + std::to_string(nodes.size())
                 : "the id is missing");
  }
  template <class IdType, class Node>
  void in_range(const std::vector<IdType>& ids, const std::vector<Node>& nodes, const Place& place,
                Presence presence = Presence::kRequired) {
    for (size_t i = 0; i < ids.size(); ++i) in_range(ids[i], nodes, Place(place, i), presence);
  }
  void scalar(ValueId id, const Place& place) {
    in_range(id, g_.values, place, Presence::kOptional);
    if (id && g_[id].kind != ValueKind::kScalar) invalid(place, "an extent or a factor is a scalar");
  }

  void ranges(const Value& v, const Place& at) {
    in_range(v.def, g_.ops, Place(at, "def"), Presence::kOptional);
    in_range(v.index_of, g_.regions, Place(at, "index_of"), Presence::kOptional);
    const Place tensor(at, "tensor");
    if (v.kind == ValueKind::kTensor)
      in_range(v.tensor, g_.tensors, tensor);
    else if (v.tensor)
      invalid(tensor, "a value that is no tensor has none");
  }

  void ranges(const Tensor& t, const Place& at) {
    in_range(t.value, g_.values, Place(at, "value"));
    in_range(t.root, g_.domains, Place(at, "root"));
    in_range(t.logical, g_.domains, Place(at, "logical"));
    in_range(t.allocation, g_.domains, Place(at, "allocation"));
    in_range(t.loop, g_.domains, Place(at, "loop"));
    in_range(t.loop_broadcasts, g_.domains, Place(at, "loop_broadcasts"));
    in_range(t.transforms, g_.transforms, Place(at, "transforms"));
    in_range(t.inline_at, g_.domains, Place(at, "inline_at"), Presence::kOptional);
  }

  void ranges(const IterDomain& d, const Place& at) {
    in_range(d.tensor, g_.tensors, Place(at, "tensor"), Presence::kOptional);
    scalar(d.extent, Place(at, "extent"));
    scalar(d.expanded, Place(at, "expanded"));
    in_range(d.def, g_.transforms, Place(at, "def"), Presence::kOptional);
    in_range(d.stands_for, g_.domains, Place(at, "like"), Presence::kOptional);
  }

  void ranges(const Transform& t, const Place& at) {
    const bool two_in = t.kind == TransformKind::kMerge || t.kind == TransformKind::kSwizzle;
    const bool two_out = t.kind == TransformKind::kSplit || t.kind == TransformKind::kSwizzle;
    if (t.inputs.size() != (two_in ? 2u : 1u))
      invalid(Place(at, "inputs"), "this kind takes another number of domains");
    if (t.outputs.size() != (two_out ? 2u : 1u))
      invalid(Place(at, "outputs"), "this kind gives another number of domains");
    in_range(t.inputs, g_.domains, Place(at, "inputs"));
    in_range(t.outputs, g_.domains, Place(at, "outputs"));
    scalar(t.factor, Place(at, "factor"));
    scalar(t.right, Place(at, "right"));
  }

  void ranges(const Op& op, const Place& at) {
    in_range(op.operands, g_.values, Place(at, "operands"), Presence::kOptional);
    if (!defects_.has(Defect::kDecodeRange)) in_range(op.results, g_.values, Place(at, "results"));
    in_range(op.regions, g_.regions, Place(at, "regions"));
  }

  void ranges(const Region& r, const Place& at) {
    in_range(r.index, g_.values, Place(at, "index"), Presence::kOptional);
    in_range(r.ops, g_.ops, Place(at, "ops"));
  }

  void same_tensor(const std::vector<DomainId>& domains, TensorId tensor, const Place& place) {
    for (size_t i = 0; i < domains.size(); ++i)
      if (g_[domains[i]].tensor != tensor) invalid(Place(place, i), "the domain is of another tensor");
  }

  void back_references() {
    each(g_.values, "values", [&](const Value& v, const Place& at) {
      if (v.tensor && &g_[g_[v.tensor].value] != &v) invalid(Place(at, "tensor"), "the tensor is of another value");
    });
    const Place tensors(place_, "tensors");
    for (size_t i = 0; i < g_.tensors.size(); ++i) {
      const Tensor& t = g_.tensors[i];
      const TensorId id(i);
      const Place at(tensors, i);
      if (g_[t.value].tensor != id) invalid(Place(at, "value"), "the value is of another tensor, or of none");
      same_tensor(t.root, id, Place(at, "root"));
      same_tensor(t.logical, id, Place(at, "logical"));
      same_tensor(t.allocation, id, Place(at, "allocation"));
      same_tensor(t.loop, id, Place(at, "loop"));
      same_tensor(t.loop_broadcasts, id, Place(at, "loop_broadcasts"));
      if (t.inline_at) same_tensor({t.inline_at}, id, Place(at, "inline_at"));
      const Place transforms(at, "transforms");
      for (size_t k = 0; k < t.transforms.size(); ++k)
        same_tensor(g_[t.transforms[k]].inputs, id, Place(transforms, k));
    }
    const Place transforms(place_, "transforms");
    for (size_t i = 0; i < g_.transforms.size(); ++i) {
      const Transform& t = g_.transforms[i];
      const Place at(transforms, i);
      const TensorId tensor = g_[t.inputs[0]].tensor;
      same_tensor(t.inputs, tensor, Place(at, "inputs"));
      same_tensor(t.outputs, tensor, Place(at, "outputs"));
      for (size_t k = 0; k < t.outputs.size(); ++k)
        if (g_[t.outputs[k]].def != TransformId(i))
          invalid(Place(Place(at, "outputs"), k), "the domain names another transform as its definition");
    }
  }

  void nesting() {
    std::vector<RegionId> region_of_op(g_.ops.size());
    const Place regions(place_, "regions");
    for (size_t r = 0; r < g_.regions.size(); ++r)
      for (size_t i = 0; i < g_.regions[r].ops.size(); ++i) {
        RegionId& owner = region_of_op[g_.regions[r].ops[i].index];
        if (owner) invalid(Place(Place(Place(regions, r), "ops"), i), "the op stands in a region already");
        owner = RegionId(r);
      }
    std::vector<OpId> op_of_region(g_.regions.size());
    const Place ops(place_, "ops");
    for (size_t i = 0; i < g_.ops.size(); ++i)
      for (size_t k = 0; k < g_.ops[i].regions.size(); ++k) {
        const RegionId region = g_.ops[i].regions[k];
        if (region == Graph::body() || op_of_region[region.index])
          invalid(Place(Place(Place(ops, i), "regions"), k), "the region is the body, or belongs to an op already");
        op_of_region[region.index] = OpId(i);
      }
    const Walk result = walk(g_.regions.size(), [&](size_t region, auto visit) {
      for (OpId op : g_.regions[region].ops)
        for (RegionId inner : g_[op].regions) visit(inner.index);
    });
    acyclic(result, regions);
    shallow(result, regions, limits::kRegionDepth);
  }

  void domain_depth() {
    const Place domains(place_, "domains");
    const Walk result = walk(g_.domains.size(), [&](size_t domain, auto visit) {
      if (const TransformId def = g_.domains[domain].def)
        for (DomainId input : g_[def].inputs) visit(input.index);
      if (const DomainId like = g_.domains[domain].stands_for) visit(like.index);
    });
    acyclic(result, domains);
    shallow(result, domains, limits::kDomainDepth);
    const auto stand_ins =
        std::count_if(g_.domains.begin(), g_.domains.end(), [](const auto& d) { return bool(d.stands_for); });
    if (static_cast<size_t>(stand_ins) > limits::kLoopBroadcasts)
      throw Error(ErrorCode::kTooLarge,
                  "more than " + std::to_string(limits::kLoopBroadcasts) + " domains stand for others", domains.text());
  }

  void value_cycles() {
    // From an op to the ops that make its operands.
    const Walk result = walk(g_.ops.size(), [&](size_t op, auto visit) {
      for (ValueId operand : g_.ops[op].operands)
        if (operand && g_[operand].def) visit(g_[operand].def.index);
    });
    acyclic(result, Place(place_, "ops"));
  }

  static void acyclic(const Walk& result, const Place& list) {
    if (result.stuck) invalid(Place(list, *result.stuck), "it depends on itself");
  }
  static void shallow(const Walk& result, const Place& list, size_t limit) {
    for (size_t i = 0; i < result.depth.size(); ++i)
      if (result.depth[i] > limit)
        throw Error(ErrorCode::kTooLarge, "is nested deeper than " + std::to_string(limit), Place(list, i).text());
  }

  const Graph& g_;
  const Place& place_;
  const Defects& defects_;
};

}  // namespace

void check_structure(const Graph& g, const Place& place, const Defects& defects) {
  StructureCheck(g, place, defects).run();
}

void check_layout(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, const Place& place) {
  int64_t elements = 1;
  const Place extents(place, "shape");
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] < 0 || __builtin_mul_overflow(elements, std::max<int64_t>(shape[i], 1), &elements))
      invalid(Place(extents, i),
              "an extent of " + std::to_string(shape[i]) + " is negative or makes too many elements");
  if (!strides.empty() && strides.size() != shape.size())
    invalid(Place(place, "strides"), "there have to be as many strides as extents, or none");
}

}  // namespace fusebox
