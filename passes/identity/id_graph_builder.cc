#include "passes/identity/id_graph_builder.h"

#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/scalar/scalar.h"
#include "passes/nest/tensor_nest.h"

namespace fusebox {

void IdGraphBuilder::start(const Graph& g, NestVisitor visit, const Defects& defects) {
  g_ = &g;
  visit_ = std::move(visit);
  extents_.emplace(g);
  plan_ = plan_nests(g);
  plan_.defects = defects;
  scalars_.clear();
  symbols_.emplace(g, *extents_, scalars_);
  values_.clear();
}

IdGraph IdGraphBuilder::make(IdGraphKind kind, bool with_reasons) {
  const bool guarded = kind == IdGraphKind::kExact || kind == IdGraphKind::kAlmostExact;
  DomainClasses classes(graph(), guarded ? values() : std::vector<DomainId>(), guarded);
  IdGraph result;
  result.kind = kind;
  switch (kind) {
    case IdGraphKind::kExact:
    case IdGraphKind::kAlmostExact:
      join_axes(classes, false);
      close(classes, nullptr);
      if (kind == IdGraphKind::kExact) break;
      join_equal(classes, result.proofs);
      close(classes, &result.proofs);
      if (with_reasons) give_reasons(result.proofs);
      break;
    case IdGraphKind::kBroadcast:
      join_axes(classes, true);
      close(classes, nullptr);
      break;
    case IdGraphKind::kPermissive:
      join_axes(classes, true);
      join_trivial(classes);
      close(classes, nullptr);
      break;
    case IdGraphKind::kLoop:
      join_loops(classes);
      break;
  }
  result.representative.resize(graph().domains.size());
  for (const Tensor& t : graph().tensors)
    for (DomainId d : domains_of(graph(), t)) result.representative[d.index] = classes.find(d);
  return result;
}

const std::vector<DomainId>& IdGraphBuilder::values() {
  if (!values_.empty()) return values_;
  values_.resize(graph().domains.size());
  for (uint32_t i = 0; i < graph().tensors.size(); ++i) {
    TensorNest nest(graph(), plan_, *extents_, algebra_, TensorId(i));
    find_equal(nest);
    if (visit_) visit_(nest, values_);
  }
  return values_;
}

void IdGraphBuilder::find_equal(TensorNest& nest) {
  // Two points of the constant loops. Domains that differ at one of them need no comparison.
  const Tensor& t = graph()[nest.tensor];
  std::vector<int64_t> last, within;
  for (DomainId d : loop_of(t)) {
    const int64_t extent = algebra_.constant_value(nest.values.extent(d)).value_or(1);
    last.push_back(extent - 1);
    within.push_back(extent * 2 / 3);
  }
  struct Value {
    DomainId domain;
    Form form;
    std::optional<int64_t> last, within;
  };
  std::vector<Value> firsts;
  for (DomainId d : domains_of(graph(), t)) {
    DomainId& first = values_[d.index];
    first = d;
    // A domain without a value is equal to none.
    if (!nest.values.known(d)) continue;
    const Form form = nest.values.value(d);
    const Value v{d, form, algebra_.evaluate(form, last, {}), algebra_.evaluate(form, within, {})};
    const auto same = std::find_if(firsts.begin(), firsts.end(), [&](const Value& f) {
      if (f.form == form) return true;
      const bool differ = (f.last && v.last && f.last != v.last) || (f.within && v.within && f.within != v.within);
      return !differ && algebra_.equal(f.form, form);
    });
    if (same != firsts.end())
      first = same->domain;
    else
      firsts.push_back(v);
  }
}

void IdGraphBuilder::join_axes(DomainClasses& classes, bool concretized) {
  for (OpId id : graph()[Graph::body()].ops) {
    const Op& op = graph()[id];
    for (size_t r = 0; r < op.results.size(); ++r) {
      if (!graph().is_tensor(op.results[r])) continue;
      for (size_t k = 0; k < op.operands.size(); ++k)
        for (DomainPair pair : map_producer_to_consumer(graph(), id, k, r))
          if (concretized || !is_concretized(graph(), pair)) classes.unite(pair.producer, pair.consumer);
      // The results of one op are made at one loop point, as far as they have the same axes.
      const TensorId t = graph()[op.results[r]].tensor;
      const auto &first = root_of(graph()[siblings(graph(), t).front()]), &other = root_of(graph()[t]);
      if (first.size() != other.size()) continue;
      for (size_t i = 0; i < first.size(); ++i) classes.unite(first[i], other[i]);
    }
  }
  if (!concretized) return;
  for (const Tensor& t : graph().tensors)
    for (DomainId d : t.loop_broadcasts)
      if (graph()[d].stands_for) classes.unite(d, graph()[d].stands_for);
}

IdGraphBuilder::Key IdGraphBuilder::key_of(const DomainClasses& classes, const Transform& t) {
  Key key{t.kind, t.inner_split, t.swizzle, classes.find(t.inputs[0]), {}, {}, {}};
  if (t.inputs.size() > 1) key.second = classes.find(t.inputs[1]);
  if (t.factor) key.factor = symbols_->of(t.factor);
  if (t.right) key.right = symbols_->of(t.right);
  return key;
}

void IdGraphBuilder::close(DomainClasses& classes, std::vector<IdProof>* proofs) {
  // If the outputs of transforms with one key could not be united, all are kept: a later transform may fit any of them.
  std::map<Key, std::vector<TransformId>> seen;
  for (bool changed = true; changed;) {
    changed = false;
    seen.clear();
    for (const Tensor& tensor : graph().tensors) {
      for (TransformId id : tensor.transforms) {
        const Transform& t = graph()[id];
        auto& same = seen[key_of(classes, t)];
        bool is_new = true;
        for (TransformId other : same) {
          const auto& outputs = graph()[other].outputs;
          bool all = true;
          for (size_t i = 0; i < outputs.size(); ++i) {
            if (classes.unite(outputs[i], t.outputs[i])) {
              changed = true;
              if (proofs) proofs->push_back({outputs[i], t.outputs[i], {}, {}, {}});
            }
            all = all && classes.find(outputs[i]) == classes.find(t.outputs[i]);
          }
          is_new = is_new && !all;
        }
        if (is_new) same.push_back(id);
      }
    }
  }
}

void IdGraphBuilder::join_equal(DomainClasses& classes, std::vector<IdProof>& proofs) {
  const auto& value = values();
  for (uint32_t i = 0; i < graph().tensors.size(); ++i) {
    const auto domains = domains_of(graph(), graph().tensors[i]);
    for (size_t x = 0; x < domains.size(); ++x)
      for (size_t y = x + 1; y < domains.size(); ++y) {
        if (value[domains[x].index] != value[domains[y].index]) continue;
        if (classes.unite(domains[x], domains[y])) proofs.push_back({domains[x], domains[y], TensorId(i), {}, {}});
      }
  }
}

bool IdGraphBuilder::is_unit(DomainId d) const {
  return graph()[d].iter_type == IterType::kBroadcast || evaluate_extent(graph(), d) == 1;
}

void IdGraphBuilder::join_trivial(DomainClasses& classes) {
  for (const Tensor& tensor : graph().tensors)
    for (TransformId id : tensor.transforms) {
      const Transform& t = graph()[id];
      if (t.kind == TransformKind::kMerge) {
        for (size_t i = 0; i < 2; ++i)
          if (is_unit(t.inputs[1 - i])) classes.unite(t.inputs[i], t.outputs[0]);
      } else if (t.kind == TransformKind::kSplit) {
        for (size_t i = 0; i < 2; ++i)
          if (evaluate_extent(graph(), t.outputs[1 - i]) == 1) classes.unite(t.inputs[0], t.outputs[i]);
      }
    }
  for (OpId id : graph()[Graph::body()].ops)
    for (size_t k = 0; k < graph()[id].operands.size(); ++k) join_present(classes, id, k);
}

// A consumer may merge an axis that its operand has with one that the operand lacks or broadcasts. Unites the axis with
// the merged domain.
void IdGraphBuilder::join_present(DomainClasses& classes, OpId op, size_t operand) {
  if (graph()[op].results.empty() || !graph().is_tensor(graph()[op].results[0])) return;
  const auto axes = map_producer_to_consumer(graph(), op, operand);
  if (axes.empty()) return;
  const Tensor& consumer = graph().tensor_of(graph()[op].results[0]);
  std::vector<DomainId> present;
  for (DomainPair pair : axes)
    if (!is_concretized(graph(), pair)) present.push_back(pair.consumer);
  const auto holds = [&](DomainId d) { return position_in(present, d) < present.size(); };
  for (TransformId id : consumer.transforms) {
    const Transform& t = graph()[id];
    const bool first = holds(t.inputs[0]);
    if (t.kind == TransformKind::kMerge) {
      const bool second = holds(t.inputs[1]);
      if (!first && !second) continue;
      if (first != second) classes.unite(t.inputs[first ? 0 : 1], t.outputs[0]);
    } else if (!first) {
      continue;
    }
    present.insert(present.end(), t.outputs.begin(), t.outputs.end());
  }
}

void IdGraphBuilder::join_loops(DomainClasses& classes) {
  std::vector<DomainId> of_node(plan_.nodes.size());
  for (const Nest& nest : plan_.nests)
    for (TensorId t : siblings(graph(), graph()[graph()[nest.op].results[0]].tensor)) {
      const auto& loop = loop_of(graph()[t]);
      for (size_t i = 0; i < loop.size() && i < nest.path.size(); ++i) {
        DomainId& first = of_node[nest.path[i]];
        if (first) classes.unite(first, loop[i]);
        first = first ? first : loop[i];
      }
    }
}

void IdGraphBuilder::give_reasons(std::vector<IdProof>& proofs) {
  std::optional<TensorNest> nest;
  for (IdProof& p : proofs) {
    if (!p.nest) {
      p.reason =
          "the same " + std::string(text(graph()[graph()[p.a].def].kind)) + " makes them of domains that are one";
      continue;
    }
    if (!nest || nest->tensor != p.nest) nest.emplace(graph(), plan_, *extents_, algebra_, p.nest);
    const Form a = nest->values.value(p.a), b = nest->values.value(p.b);
    algebra_.equal(a, b);
    p.facts = algebra_.last_reasons();
    p.reason = a == b ? "both are `" + algebra_.to_string(a) + "` at every loop point"
                      : "`" + algebra_.to_string(a) + "` is `" + algebra_.to_string(b) + "` at every loop point";
  }
}

}  // namespace fusebox
