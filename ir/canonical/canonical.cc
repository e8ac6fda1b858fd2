#include "ir/canonical/canonical.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "ir/graph/compact.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

// The ops of each region in canonical order.
class CanonicalWalk {
 public:
  // An op, or a size, which becomes an op of its own.
  struct Place {
    OpId op;
    ValueId size;
  };

  CanonicalWalk(const Graph& g, const Defects& defects)
      : g_(g),
        defects_(defects),
        lists_(g.regions.size()),
        emitted_(g.ops.size()),
        sizes_(g.values.size()),
        home_(g.ops.size()) {
    for (size_t r = 0; r < g_.regions.size(); ++r)
      for (OpId op : g_.regions[r].ops) home_[op.index] = RegionId(r);
    for (OpId op : g_[Graph::body()].ops)
      if (g_[op].kind == OpKind::kInput) require_op(op);
    region(Graph::body());
  }

  const std::vector<Place>& places(RegionId region) const { return lists_[region.index]; }

 private:
  // Whether the op keeps its order among the other anchors of its region.
  static bool is_anchor(OpKind kind) {
    return kind != OpKind::kSize && demands(kind, kEffect | kSignature | kSync | kControl | kRead);
  }

  void region(RegionId id) {
    for (OpId op : g_[id].ops)
      if (!emitted_[op.index] && g_[op].kind != OpKind::kSize &&
          (is_anchor(g_[op].kind) || defects_.has(Defect::kCanonicalOrder)))
        require_op(op);
  }

  // The values that an op needs before it: its operands, then the scalars in the domains of its results.
  std::vector<ValueId> needs(OpId id) const {
    std::vector<ValueId> result = g_[id].operands;
    for (ValueId v : g_[id].results) {
      if (!g_.is_tensor(v)) continue;
      const Tensor& t = g_.tensor_of(v);
      for (const auto* list : {&t.root, &t.logical, &t.loop_broadcasts})
        for (DomainId d : *list)
          for (ValueId e : {g_[d].extent, g_[d].expanded}) result.push_back(e);
      for (TransformId f : t.transforms)
        for (ValueId e : {g_[f].factor, g_[f].right}) result.push_back(e);
    }
    std::erase_if(result, [&](ValueId v) { return !v || !g_[v].def; });
    return result;
  }

  void size(ValueId v) {
    if (sizes_[v.index]) return;
    sizes_[v.index] = true;
    lists_[Graph::body().index].push_back({{}, v});
  }

  // Emits the ops that an op needs, depth first, then the op. The walk has a stack of its own, because a program may be
  // deeper than the machine's stack.
  void require_op(OpId root) {
    struct Frame {
      OpId op;
      std::vector<ValueId> needs;
      size_t next = 0;
    };
    std::vector<Frame> stack;
    const auto enter = [&](OpId op) {
      emitted_[op.index] = true;
      stack.push_back({op, needs(op)});
    };
    enter(root);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.needs.size()) {
        const ValueId v = top.needs[top.next++];
        const OpId def = g_[v].def;
        if (g_[def].kind == OpKind::kSize)
          size(v);
        else if (!emitted_[def.index] && !is_anchor(g_[def].kind))
          enter(def);  // its region emits an anchor: earlier, or later if only an extent refers to it
        continue;
      }
      const OpId op = top.op;
      stack.pop_back();
      for (RegionId r : g_[op].regions) region(r);
      lists_[home_[op.index].index].push_back({op, {}});
    }
  }

  const Graph& g_;
  const Defects& defects_;
  std::vector<std::vector<Place>> lists_;  // by region
  std::vector<bool> emitted_, sizes_;
  std::vector<RegionId> home_;
};

class Canonicalizer {
 public:
  Canonicalizer(const Graph& g, const Defects& defects) : g_(g), defects_(defects), out_(g), names_(g.values.size()) {}

  enum class Names { kCanonical, kKept };

  void run(Names names = Names::kCanonical) {
    const CanonicalWalk walk(g_, defects_);
    for (size_t r = 0; r < g_.regions.size(); ++r) {
      std::vector<OpId>& ops = out_.regions[r].ops;
      ops.clear();
      for (const CanonicalWalk::Place& place : walk.places(RegionId(r)))
        ops.push_back(place.size ? size_op(place.size) : place.op);
    }
    merge_constants();
    leave_defaults_out();
    leave_dead_out();
    if (names == Names::kKept) return;
    out_.name.clear();
    name(Graph::body());
  }

  Graph graph() { return compacted(std::move(out_)); }
  std::vector<std::string> names() { return std::move(names_); }

 private:
  OpId size_op(ValueId v) {
    const OpId id(out_.ops.size());
    Op op;
    op.kind = OpKind::kSize;
    op.results = {v};
    out_.ops.push_back(std::move(op));
    out_[v].def = id;
    return id;
  }

  // Makes equal constants one value.
  void merge_constants() {
    std::vector<ValueId> constants;
    for (size_t i = 0; i < out_.values.size(); ++i)
      if (out_.values[i].constant) constants.push_back(ValueId(i));
    const auto key = [&](ValueId v) {
      return std::tuple(out_[v].dtype, out_[v].constant->low, out_[v].constant->high, v);
    };
    std::sort(constants.begin(), constants.end(), [&](ValueId a, ValueId b) { return key(a) < key(b); });
    std::vector<ValueId> first(out_.values.size());
    bool any = false;
    for (size_t i = 1; i < constants.size(); ++i) {
      const ValueId a = constants[i - 1], b = constants[i];
      if (out_[a].dtype != out_[b].dtype || out_[a].constant != out_[b].constant) continue;
      first[b.index] = first[a.index] ? first[a.index] : a;
      any = true;
    }
    if (!any) return;
    const auto replace = [&](ValueId& v) {
      if (v && v.index < first.size() && first[v.index]) v = first[v.index];
    };
    for (Op& op : out_.ops)
      for (ValueId& v : op.operands) replace(v);
    for (IterDomain& d : out_.domains) replace(d.extent), replace(d.expanded);
    for (Transform& t : out_.transforms) replace(t.factor), replace(t.right);
  }

  void leave_defaults_out() {
    for (Tensor& t : out_.tensors) {
      if (!t.allocation.empty() && t.allocation == logical_without_reductions(out_, t)) t.allocation.clear();
      if (t.contiguity.empty()) continue;
      const std::vector<Contiguity> written = std::exchange(t.contiguity, {});
      if (written != contiguity_of(out_, t) && !defects_.has(Defect::kCanonicalContiguity)) t.contiguity = written;
    }
  }

  // A loop broadcast that stands for a dead domain takes over the domain that this one stands for, or none.
  void leave_dead_out() {
    if (std::none_of(out_.domains.begin(), out_.domains.end(), [](const IterDomain& d) { return bool(d.stands_for); }))
      return;
    std::vector<bool> is_live(out_.domains.size());
    const auto mark = [&](const std::vector<DomainId>& list) {
      for (DomainId d : list) is_live[d.index] = true;
    };
    for (const Region& region : out_.regions)
      for (OpId op : region.ops)
        for (ValueId v : out_[op].results) {
          if (!out_.is_tensor(v)) continue;
          const Tensor& t = out_.tensor_of(v);
          for (const auto* list : {&t.root, &t.logical, &t.allocation, &t.loop, &t.loop_broadcasts}) mark(*list);
          for (TransformId f : t.transforms) mark(out_[f].inputs), mark(out_[f].outputs);
        }
    for (IterDomain& d : out_.domains)
      while (d.stands_for && !is_live[d.stands_for.index]) d.stands_for = out_[d.stands_for].stands_for;
  }

  void name(ValueId v) {
    names_[v.index] = out_[v].name = "v" + std::to_string(count_++);
    if (!out_.is_tensor(v)) return;
    Tensor& t = out_.tensor_of(v);
    size_t next = 0;
    for (const auto* list : {&t.root, &t.logical, &t.loop_broadcasts})
      for (DomainId d : *list) out_[d].name.clear();
    const auto give = [&](DomainId d) {
      if (out_[d].name.empty()) out_[d].name = "d" + std::to_string(next++);
    };
    for (const auto* list : {&t.root, &t.logical, &t.loop_broadcasts})
      for (DomainId d : *list) give(d);
    for (TransformId f : t.transforms)
      for (DomainId d : out_[f].outputs)
        if (std::find(t.logical.begin(), t.logical.end(), d) == t.logical.end())
          out_[d].name = "d" + std::to_string(next++);
  }

  void name(RegionId id) {
    if (out_[id].index) name(out_[id].index);
    for (OpId op : out_[id].ops) {
      // The kernel or segment that a host op runs is named by another program. Here it gets a number by first use.
      if (const OpKind kind = out_[op].kind; kind == OpKind::kLaunch || kind == OpKind::kRunAten) {
        const std::string called(out_[op].attrs.string(AttrKey::kName));
        const auto at = std::find(callees_.begin(), callees_.end(), called);
        out_[op].attrs.set(AttrKey::kName, "p" + std::to_string(at - callees_.begin()));
        if (at == callees_.end()) callees_.push_back(called);
      }
      for (ValueId v : out_[op].results) name(v);
      for (RegionId r : out_[op].regions) name(r);
    }
  }

  const Graph& g_;
  const Defects& defects_;
  Graph out_;
  std::vector<std::string> names_, callees_;
  size_t count_ = 0;
};

}  // namespace

Graph canonicalize(const Graph& g, const Defects& defects) {
  Canonicalizer c(g, defects);
  c.run();
  return c.graph();
}

Graph canonical_order(const Graph& g, const Defects& defects) {
  Canonicalizer c(g, defects);
  c.run(Canonicalizer::Names::kKept);
  return c.graph();
}

std::vector<size_t> canonical_places(const Graph& g) {
  std::vector<size_t> result(g.values.size());
  size_t count = 0;
  const Defects none;
  const CanonicalWalk walk(g, none);
  for (const CanonicalWalk::Place& place : walk.places(Graph::body())) {
    ++count;
    if (place.size) result[place.size.index] = count;
    if (!place.op) continue;
    for (ValueId v : g[place.op].results) result[v.index] = count;
  }
  for (OpId op : g[Graph::body()].ops)
    for (ValueId v : g[op].results)
      if (result[v.index] == 0) result[v.index] = ++count;
  return result;
}

std::vector<std::string> canonical_names(const Graph& g) {
  const Defects none;
  Canonicalizer c(g, none);
  c.run();
  return c.names();
}

bool same_program(const Graph& a, const Graph& b) { return canonical_bytes(a) == canonical_bytes(b); }

Digest digest(const Graph& g, const Defects& defects) { return digest_bytes(canonical_bytes(g, defects)); }
Digest digest(std::span<const Step> steps, const Defects& defects) {
  return digest_bytes(canonical_bytes(steps, defects));
}
Digest digest(const Graph& g, std::span<const Step> steps, const Defects& defects) {
  return digest_bytes(canonical_bytes(g, steps, defects));
}
Digest digest(const Graph& g, const Segmentation& s, const Defects& defects) {
  return digest_bytes(canonical_bytes(g, s, defects));
}
Digest digest(std::string_view text) { return digest_bytes(text); }

}  // namespace fusebox
