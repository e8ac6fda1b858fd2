// Makes the domains of a result: logical domains from its axes, and for an op that moves elements also root domains and
// transforms.
#include <algorithm>

#include "ir/domain/domain_edit.h"
#include "ir/infer/infer_rules.h"

namespace fusebox {
namespace {

class DomainMaker {
 public:
  DomainMaker(Graph& g, TensorId tensor) : g_(g), tensor_(tensor) {}

  DomainId make(const Axis& axis, std::string name) {
    IterDomain d;
    d.name = std::move(name);
    d.iter_type = axis.type;
    d.extent = axis.extent;
    d.expanded = axis.expanded;
    return add_domain(g_, tensor_, std::move(d));
  }

  DomainId derived(std::string name) {
    IterDomain d;
    d.name = std::move(name);
    return add_domain(g_, tensor_, std::move(d));
  }

  void apply(Transform t) {
    const TransformId id(g_.transforms.size());
    for (DomainId d : t.outputs) g_[d].def = id;
    g_.transforms.push_back(std::move(t));
    g_[tensor_].transforms.push_back(id);
  }

  std::string middle() { return "m" + std::to_string(middles_++); }

 private:
  Graph& g_;
  TensorId tensor_;
  size_t middles_ = 0;
};

std::string numbered(char letter, size_t i) { return letter + std::to_string(i); }

void make_resized(Graph& g, TensorId tensor, const ResultSpec& spec) {
  DomainMaker maker(g, tensor);
  std::vector<DomainId> root, logical;
  for (size_t i = 0; i < spec.axes.size(); ++i) {
    const Axis& axis = spec.axes[i];
    if (!axis.left) {
      logical.push_back(maker.make(axis, numbered('i', i)));
      root.push_back(logical.back());
      continue;
    }
    const DomainId from = maker.make(axis, numbered('r', i));
    const DomainId to = maker.derived(numbered('i', i));
    Transform t;
    t.kind = TransformKind::kResize;
    t.inputs = {from};
    t.outputs = {to};
    t.factor = axis.left;
    t.right = axis.right;
    maker.apply(std::move(t));
    root.push_back(from);
    logical.push_back(to);
  }
  g[tensor].logical = std::move(logical);
  if (root != g[tensor].logical) g[tensor].root = std::move(root);
}

// Positions of axes whose size is not the constant 1.
std::vector<size_t> counted(const Graph& g, const std::vector<Axis>& axes) {
  std::vector<size_t> result;
  for (size_t i = 0; i < axes.size(); ++i)
    if (!form_of(g, axes[i].size()).equals(ScalarForm::of(1))) result.push_back(i);
  return result;
}

void make_group(Graph& g, DomainMaker& maker, const ResultSpec& spec, std::span<const size_t> from,
                std::span<const size_t> to, std::vector<DomainId>& root, std::vector<DomainId>& logical) {
  if (from.size() == 1 && to.size() == 1) {
    logical[to[0]] = root[from[0]] = maker.make(spec.root[from[0]], numbered('i', to[0]));
    return;
  }
  if (to.empty()) {
    // These axes have extent 1 and leave. The op reads them at index 0.
    for (size_t i : from) root[i] = maker.make(broadcast_axis(g), numbered('r', i));
    return;
  }
  if (from.empty()) {
    for (size_t i : to) logical[i] = maker.make(broadcast_axis(g), numbered('i', i));
    return;
  }
  for (size_t i : from) root[i] = maker.make(materialised(spec.root[i]), numbered('r', i));
  DomainId whole = root[from[0]];
  for (size_t k = 1; k < from.size(); ++k) {
    const bool last = k + 1 == from.size() && to.size() == 1;
    const DomainId merged = maker.derived(last ? numbered('i', to[0]) : maker.middle());
    Transform t;
    t.kind = TransformKind::kMerge;
    t.inputs = {whole, root[from[k]]};
    t.outputs = {merged};
    maker.apply(std::move(t));
    whole = merged;
  }
  // The axes outside an axis of extent 0 are split off from the outside by their own extents: dividing 0 elements by an
  // inner extent 0 would not give them.
  size_t first = to.size();
  while (first > 0 && !form_of(g, spec.axes[to[first - 1]].size()).equals(ScalarForm::of(0))) --first;
  first = first == 0 ? 0 : first - 1;
  for (size_t k = 0; k < first; ++k) {
    const DomainId outer = maker.derived(numbered('i', to[k]));
    const DomainId inner = maker.derived(k + 2 == to.size() ? numbered('i', to[k + 1]) : maker.middle());
    Transform t;
    t.inputs = {whole};
    t.outputs = {outer, inner};
    t.factor = spec.axes[to[k]].extent;
    t.inner_split = false;
    maker.apply(std::move(t));
    logical[to[k]] = outer;
    whole = inner;
  }
  for (size_t k = to.size(); k-- > first + 1;) {
    const DomainId outer = maker.derived(k == first + 1 ? numbered('i', to[first]) : maker.middle());
    const DomainId inner = maker.derived(numbered('i', to[k]));
    Transform t;
    t.inputs = {whole};
    t.outputs = {outer, inner};
    t.factor = spec.axes[to[k]].extent;
    maker.apply(std::move(t));
    logical[to[k]] = inner;
    whole = outer;
  }
  logical[to[first]] = whole;
}

void make_reshaped(Graph& g, TensorId tensor, const ResultSpec& spec) {
  DomainMaker maker(g, tensor);
  std::vector<DomainId> root(spec.root.size()), logical(spec.axes.size());
  const auto from = counted(g, spec.root), to = counted(g, spec.axes);
  size_t i = 0, j = 0;
  for (size_t k = 0; k + 1 < spec.groups.size(); k += 2) {
    const size_t a = static_cast<size_t>(spec.groups[k]), b = static_cast<size_t>(spec.groups[k + 1]);
    make_group(g, maker, spec, std::span(from).subspan(i, a), std::span(to).subspan(j, b), root, logical);
    i += a;
    j += b;
  }
  // Axes of extent 1: an axis between the same neighbours on both sides stays. The others leave or are new.
  for (size_t a = 0, b = 0; a < root.size() || b < logical.size();) {
    const bool open_a = a < root.size() && !root[a], open_b = b < logical.size() && !logical[b];
    const bool unit_a = open_a && !std::binary_search(from.begin(), from.end(), a);
    const bool unit_b = open_b && !std::binary_search(to.begin(), to.end(), b);
    if (unit_a && unit_b) {
      logical[b] = root[a] = maker.make(broadcast_axis(g), numbered('i', b));
      ++a, ++b;
    } else if (unit_a) {
      root[a] = maker.make(broadcast_axis(g), numbered('r', a));
      ++a;
    } else if (unit_b) {
      logical[b] = maker.make(broadcast_axis(g), numbered('i', b));
      ++b;
    } else {
      // Without groups the axes are symbolic.
      if (open_a) root[a] = maker.make(materialised(spec.root[a]), numbered('r', a));
      if (open_b) logical[b] = maker.make(spec.axes[b], numbered('i', b));
      if (a < root.size()) ++a;
      if (b < logical.size()) ++b;
    }
  }
  g[tensor].logical = std::move(logical);
  if (root != g[tensor].logical) g[tensor].root = std::move(root);
}

}  // namespace

void make_domains(Graph& g, TensorId tensor, const ResultSpec& spec) {
  Tensor fresh;
  fresh.value = g[tensor].value;
  fresh.memory = spec.memory;
  fresh.devices = g[tensor].devices;
  // The old domains leave the program: without names nothing finds them.
  for (DomainId d : domains_of(g, tensor)) g[d].name.clear();
  g[tensor] = std::move(fresh);
  if (spec.is_reshape)
    make_reshaped(g, tensor, spec);
  else
    make_resized(g, tensor, spec);
  for (size_t i : spec.allocation) g[tensor].allocation.push_back(g[tensor].logical[i]);
  g[tensor].contiguity = spec.contiguity;
}

}  // namespace fusebox
