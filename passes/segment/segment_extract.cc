#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/domain/domain.h"
#include "ir/graph/compact.h"
#include "ir/graph/name_index.h"
#include "ir/graph/operands_first.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "passes/segment/segment.h"

namespace fusebox {

// The state that all extractions from one fusion share.
struct ExtractionSource {
  ExtractionSource(const Graph& g, const Defects& seeded) : original(g), defects(seeded), names(g) {
    const auto& body = g[Graph::body()].ops;
    for (size_t i = 0; i < body.size(); ++i) positions.emplace(body[i].index, i);
  }

  ValueId value(const std::string& name) { return *names.find(name); }
  const Graph& fusion() const { return extended ? *extended : original; }
  Graph& extend() {
    if (!extended) extended = original;
    return *extended;
  }
  // Removes the values that a segment has added, so that the next segment finds the fusion unchanged.
  void restore() {
    if (!extended) return;
    extended->values.resize(original.values.size());
    extended->ops.resize(original.ops.size());
    (*extended)[Graph::body()].ops.resize(original[Graph::body()].ops.size());
  }

  const Graph& original;
  const Defects defects;
  std::optional<Graph> extended;  // the fusion with the extents that segments need at their borders; made on demand
  NameIndex names;
  std::unordered_map<uint32_t, size_t> positions;  // by op: its position in the body
};

namespace {

// Copies a part of a graph into a new one: scalars on demand, border tensors as inputs, ops with the domains of their
// results.
class Extractor {
 public:
  Extractor(ExtractionSource& source, const Segment& segment) : source_(source), segment_(segment) {}

  Graph run() {
    to_.name = segment_.name;
    to_.level = from().level;
    std::map<size_t, OpId> ops;  // in the order of the body
    for (const std::string& name : segment_.ops) {
      const OpId op = from()[source_.value(name)].def;
      if (const auto at = source_.positions.find(op.index); at != source_.positions.end()) ops.emplace(at->second, op);
    }
    // The inputs of the segment keep the order that they have in the fusion.
    std::vector<ValueId> crossing;
    std::set<ValueId> given;
    for (const Crossing& c : segment_.inputs) {
      crossing.push_back(source_.value(c.value));
      given.insert(crossing.back());
      inputs_.emplace(crossing.back(), &c);
    }
    for (const Crossing& c : segment_.outputs) {
      if (c.alias.empty()) continue;
      if (const ValueId v = source_.value(c.alias); given.insert(v).second) crossing.push_back(v);
    }
    std::sort(crossing.begin(), crossing.end());
    for (ValueId v : crossing) border(v);
    named_scalars();
    for (const auto& [at, op] : ops) copy(op);
    for (const Crossing& c : segment_.outputs) {
      const ValueId v = values_.at(source_.value(c.value));
      const ValueId alias = c.alias.empty() ? ValueId() : values_.at(source_.value(c.alias));
      append(to_, Graph::body(), Op{OpKind::kOutput, {v, alias}, {}, {}, {}});
    }
    return compacted(std::move(to_));
  }

 private:
  const Graph& from() const { return source_.fusion(); }

  // Steps may split and resize by scalars that no op of the segment reads, or that one reads behind the tensor. A fact about
  // such a scalar would help no kernel. A tensor that a step makes may have the name of a scalar elsewhere in the fusion.
  void named_scalars() {
    std::set<std::string> made;
    for (const Step& step : segment_.steps) {
      if (row_of(step.kind).makes_tensors()) made.insert(step.results.begin(), step.results.end());
      if (step.kind == StepKind::kAssume) continue;
      for (const StepOperand& operand : step.operands) {
        if (operand.is_integer() || !operand.domain.empty() || made.contains(operand.value)) continue;
        const std::optional<ValueId> named = source_.names.find(operand.value);
        if (named && from()[*named].def && !from().is_tensor(*named)) value(*named);
      }
    }
  }

  ValueId value(ValueId v) {
    if (!v) return v;
    operands_first(from(), v, [&](ValueId x) { return values_.contains(x); }, [&](ValueId x) { make(x); });
    return values_.at(v);
  }

  // The value, of which the operands are there.
  void make(ValueId v) {
    const Value& old = from()[v];
    if (old.constant) {
      values_[v] = constant(to_, old.dtype, *old.constant);
      return;
    }
    const Op& op = from()[old.def];
    if (op.kind == OpKind::kSize) {
      values_[v] = add_scalar(to_, old.dtype, old.name);
      return insert_head(Op{OpKind::kSize, {}, {values_[v]}, {}, {}});
    }
    Op next{op.kind, {}, {}, op.attrs, {}};
    for (ValueId operand : op.operands) next.operands.push_back(operand ? values_.at(operand) : operand);
    for (ValueId r : op.results) {
      values_[r] = add_scalar(to_, from()[r].dtype, from()[r].name);
      next.results.push_back(values_[r]);
    }
    append(to_, Graph::body(), next);
  }

  void insert_head(Op op) {
    const OpId id(to_.ops.size());
    for (ValueId r : op.results) to_[r].def = id;
    to_.ops.push_back(std::move(op));
    auto& body = to_[Graph::body()].ops;
    body.insert(body.begin() + heads_++, id);
  }

  void border(ValueId v) {
    const Tensor& old = from().tensor_of(v);
    const ValueId made = add_tensor(to_, from()[v].dtype, from()[v].name);
    values_[v] = made;
    std::vector<DomainId> logical;
    std::map<DomainId, DomainId> domains;
    for (DomainId d : logical_without_reductions(from(), old)) {
      IterDomain copy;
      copy.iter_type = from()[d].iter_type;
      copy.name = "i" + std::to_string(logical.size());
      copy.extent = value(extent(d));
      if (!source_.defects.has(Defect::kCrossingExpandedDropped)) copy.expanded = value(from()[d].expanded);
      logical.push_back(add_domain(to_, to_[made].tensor, copy));
      domains[d] = logical.back();
    }
    Tensor& t = to_.tensor_of(made);
    t.logical = logical;
    t.devices = old.devices;
    for (DomainId d : old.allocation)
      if (domains.contains(d)) t.allocation.push_back(domains.at(d));
    const auto [begin, end] = inputs_.equal_range(v);
    for (auto it = begin; it != end; ++it) {
      const Crossing& c = *it->second;
      if (c.allocation_order.empty()) continue;
      t.allocation.clear();
      for (int64_t axis : c.allocation_order) t.allocation.push_back(logical.at(static_cast<size_t>(axis)));
    }
    const bool is_input = from()[from()[v].def].kind == OpKind::kInput;
    if (is_input) t.contiguity = old.contiguity;
    for (auto it = begin; it != end && !is_input; ++it)
      if (!it->second->contiguity.empty()) t.contiguity = it->second->contiguity;
    for (auto it = begin; it != end; ++it)
      if (!it->second->alias.empty()) take_layout(t, source_.value(it->second->alias));
    append(to_, Graph::body(), Op{OpKind::kInput, {}, {made}, {}, {}});
  }

  // A value that is stored over an input has the layout of that input.
  void take_layout(Tensor& t, ValueId input) {
    const Tensor& old = from().tensor_of(input);
    const auto axes = logical_without_reductions(from(), old);
    const auto contiguity = contiguity_of(from(), old);
    const auto order = allocation_of(from(), old);
    t.allocation.clear();
    t.contiguity.assign(order.size(), Contiguity::kNone);
    // An axis that is a broadcast here has no stride. If its stride in the input may be any, so may the next outer
    // axis's.
    bool follows_any = false;
    for (size_t i = order.size(); i-- > 0;) {
      const DomainId d = t.logical.at(position_in(axes, order[i]));
      t.allocation.insert(t.allocation.begin(), d);
      if (to_[d].iter_type == IterType::kBroadcast) {
        follows_any |= contiguity[i] == Contiguity::kFalse;
        continue;
      }
      // One that is a broadcast in the input alone has one element, whatever its stride there, and is passed over.
      if (contiguity[i] == Contiguity::kNone) {
        t.contiguity[i] = Contiguity::kTrue;
        continue;
      }
      const bool is_contiguous =
          contiguity[i] == Contiguity::kTrue || source_.defects.has(Defect::kAliasContiguityKept);
      t.contiguity[i] = is_contiguous && !follows_any ? Contiguity::kTrue : Contiguity::kFalse;
      follows_any = false;
    }
  }

  // The extent of a derived domain is a scalar of a copy of the fusion. It is made there once.
  ValueId extent(DomainId d) {
    if (from()[d].extent) return from()[d].extent;
    return emit_extent(source_.extend(), Graph::body(), d);
  }

  void copy(OpId id) {
    const Op op = from()[id];
    Op next{op.kind, {}, {}, op.attrs, {}};
    for (ValueId operand : op.operands) next.operands.push_back(value(operand));
    for (ValueId r : op.results) next.results.push_back(tensor(r));
    append(to_, Graph::body(), next);
  }

  DomainId domain(DomainId d, TensorId owner, std::map<DomainId, DomainId>& made) {
    if (!d) return d;
    if (const auto it = made.find(d); it != made.end()) return it->second;
    IterDomain next = from()[d];
    next.def = TransformId();
    next.extent = value(next.extent);
    next.expanded = value(next.expanded);
    next.stands_for = DomainId();
    next.tensor = owner;
    return made[d] = add_domain(to_, owner, next);
  }

  ValueId tensor(ValueId v) {
    const Tensor old = from().tensor_of(v);
    const ValueId result = add_tensor(to_, from()[v].dtype, from()[v].name);
    values_[v] = result;
    const TensorId owner = to_[result].tensor;
    std::map<DomainId, DomainId> made;
    Tensor next = old;
    next.value = result;
    for (auto list : {&Tensor::root, &Tensor::logical})
      for (DomainId& d : next.*list) d = domain(d, owner, made);
    for (TransformId& t : next.transforms) {
      Transform copy = from()[t];
      for (DomainId& d : copy.inputs) d = domain(d, owner, made);
      for (DomainId& d : copy.outputs) d = domain(d, owner, made);
      copy.factor = value(copy.factor);
      copy.right = value(copy.right);
      to_.transforms.push_back(copy);
      t = TransformId(to_.transforms.size() - 1);
      for (DomainId d : copy.outputs) to_[d].def = t;
    }
    for (auto list : {&Tensor::allocation, &Tensor::loop, &Tensor::loop_broadcasts})
      for (DomainId& d : next.*list) d = domain(d, owner, made);
    next.inline_at = domain(next.inline_at, owner, made);
    to_[owner] = std::move(next);
    return result;
  }

  ExtractionSource& source_;
  const Segment& segment_;
  Graph to_;
  std::multimap<ValueId, const Crossing*> inputs_;
  std::map<ValueId, ValueId> values_;
  std::ptrdiff_t heads_ = 0;
};

}  // namespace

SegmentExtractor::SegmentExtractor(const Graph& fusion, const Defects& defects)
    : source_(std::make_unique<ExtractionSource>(fusion, defects)) {}
SegmentExtractor::~SegmentExtractor() = default;

Graph SegmentExtractor::extract(const Segment& segment) {
  source_->restore();
  return Extractor(*source_, segment).run();
}

Graph extract(const Graph& fusion, const Segment& segment, const Defects& defects) {
  return SegmentExtractor(fusion, defects).extract(segment);
}

}  // namespace fusebox
