#include "fuzz/reduce/remake.h"

#include <algorithm>
#include <span>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"

namespace fusebox::fuzz {
namespace {

// The values that ops with effects, or values with a kept name, need: operands and extents, from the last op to the
// first.
std::vector<bool> needed_values(const Graph& g, const std::set<std::string>& kept = {}) {
  std::vector<bool> needed(g.values.size());
  const auto need = [&](ValueId v) {
    if (v) needed[v.index] = true;
  };
  const auto ops = ops_in_order(g);
  for (size_t i = ops.size(); i > 0; --i) {
    const Op& op = g[ops[i - 1]];
    const bool is_kept = demands(op.kind, kEffect) || std::any_of(op.results.begin(), op.results.end(), [&](ValueId v) {
                           return needed[v.index] || kept.contains(g[v].name);
                         });
    if (!is_kept) continue;
    for (ValueId v : op.operands) need(v);
    for (ValueId v : op.results) {
      if (!g.is_tensor(v)) continue;
      const Tensor& t = g.tensor_of(v);
      for (const auto* list : {&t.root, &t.logical, &t.allocation, &t.loop})
        for (DomainId d : *list) need(g[d].extent), need(g[d].expanded);
      for (TransformId id : t.transforms) need(g[id].factor), need(g[id].right);
    }
  }
  return needed;
}

class Remaker {
 public:
  Remaker(const Graph& from, const FusionChange& change, const Bindings& sizes)
      : from_(from), change_(change), sizes_(sizes), now_(from.values.size()), to_(fusion(from.name)) {}

  Graph run() {
    for (OpId id : from_[Graph::body()].ops) one(id);
    keep_names();
    sweep();
    return compact(to_);
  }

 private:
  void one(OpId id) {
    const Op& op = from_[id];
    if (op.kind == OpKind::kSize) return take_sizes(op);
    if (op.kind == OpKind::kInput) return take_input(op.results[0]);
    if (op.kind == OpKind::kOutput) {
      if (!change_.dropped.contains(id)) take_output(id);
      return;
    }
    if (change_.cut.contains(id)) {
      for (ValueId v : op.results) cut(v);
      return;
    }
    if (const auto it = change_.replaced.find(id); it != change_.replaced.end()) {
      now_[op.results[0].index] = value(it->second);
      return;
    }
    // Scalars are taken over on first use, because inference makes most of them.
    if (op.results.empty() || !from_.is_tensor(op.results[0])) return;
    take_op(id);
  }

  // The new value for an old one. A scalar is computed on first use.
  ValueId value(ValueId v) {
    if (!v) return v;
    if (now_[v.index]) return now_[v.index];
    if (from_.is_constant(v)) return now_[v.index] = take_constant(v);
    check_internal(static_cast<bool>(from_[v].def) && !from_.is_tensor(v), "a remade op reads what is not there yet");
    const Op& op = from_[from_[v].def];
    if (const auto it = change_.replaced.find(from_[v].def); it != change_.replaced.end())
      return now_[v.index] = value(it->second);
    std::vector<ValueId> operands;
    for (ValueId x : op.operands) operands.push_back(value(x));
    // An op that already had only constant operands is not folded.
    const bool was_known = of_constants(from_, op.operands) && !change_.folded.contains(from_[v].def);
    if (!was_known && of_constants(to_, operands))
      return now_[v.index] = scalar::make(to_, Graph::body(), op.kind, operands, {}, op.attrs);
    const OpId added = add_op(to_, Graph::body(), op.kind, operands, op.attrs, names_of(op));
    for (size_t i = 0; i < op.results.size(); ++i) now_[op.results[i].index] = to_[added].results[i];
    return now_[v.index];
  }

  static bool of_constants(const Graph& g, std::span<const ValueId> operands) {
    return std::all_of(operands.begin(), operands.end(), [&](ValueId x) { return !x || g.is_constant(x); });
  }

  ValueId take_constant(ValueId v) {
    const Value& old = from_[v];
    const auto it = change_.dtypes.find(old.dtype);
    if (const auto other = change_.literals.find(v); other != change_.literals.end())
      return constant(to_, old.dtype, other->second);
    if (it == change_.dtypes.end()) return constant(to_, old.dtype, *old.constant);
    return constant(to_, it->second, convert(old.dtype, *old.constant, it->second));
  }

  Dtype dtype_now(Dtype d) const {
    const auto it = change_.dtypes.find(d);
    return it == change_.dtypes.end() ? d : it->second;
  }

  std::vector<std::string> names_of(const Op& op) const {
    std::vector<std::string> names;
    for (ValueId v : op.results) names.push_back(from_[v].name);
    return names;
  }

  void take_sizes(const Op& op) {
    for (ValueId v : op.results) {
      const auto it = change_.constants.find(v);
      now_[v.index] = it != change_.constants.end() ? constant_index(to_, it->second) : size(to_, from_[v].name);
    }
  }

  void take_input(ValueId v) {
    if (!from_.is_tensor(v)) {
      now_[v.index] = input_scalar(to_, from_[v].name, dtype_now(from_[v].dtype));
      return;
    }
    const Tensor& old = from_.tensor_of(v);
    const ValueId made = add_tensor(to_, dtype_now(from_[v].dtype), from_[v].name);
    now_[v.index] = made;
    const TensorId t = to_[made].tensor;
    const auto removed = change_.removed_axes.find(v);
    const auto extents = change_.extents.find(v);
    std::map<DomainId, DomainId> kept;
    for (size_t i = 0; i < old.logical.size(); ++i) {
      if (removed != change_.removed_axes.end() && removed->second.contains(i)) continue;
      IterDomain d = from_[old.logical[i]];
      d.name = "i" + std::to_string(to_[t].logical.size());
      const ValueId size = d.size();
      d.extent = value(d.extent);
      d.expanded = value(d.expanded);
      if (from_.is_constant(size) && extents != change_.extents.end())
        if (const auto it = extents->second.find(i); it != extents->second.end()) set_extent(d, it->second);
      if (constant_integer(to_, d.extent) == 1 && !d.expanded) d.iter_type = IterType::kBroadcast;
      const DomainId made_domain = add_domain(to_, t, std::move(d));
      to_[t].logical.push_back(made_domain);
      kept[old.logical[i]] = made_domain;
    }
    to_[t].devices = old.devices;
    if (!change_.plain.contains(v)) take_layout(old, kept, t);
    append_input(made);
  }

  void set_extent(IterDomain& d, int64_t extent) {
    if (d.expanded && extent != 1) {
      d.expanded = constant_index(to_, extent);
      return;
    }
    d.expanded = ValueId();
    d.extent = constant_index(to_, extent);
    d.iter_type = extent == 1 ? IterType::kBroadcast : IterType::kIteration;
  }

  void take_layout(const Tensor& old, const std::map<DomainId, DomainId>& kept, TensorId t) {
    const auto order = allocation_of(from_, old);
    const auto contiguity = contiguity_of(from_, old);
    std::vector<DomainId> allocation;
    std::vector<Contiguity> marks;
    for (size_t k = 0; k < order.size(); ++k) {
      const auto it = kept.find(order[k]);
      if (it == kept.end()) continue;
      allocation.push_back(it->second);
      const bool broadcast = to_[it->second].iter_type == IterType::kBroadcast;
      marks.push_back(broadcast                            ? Contiguity::kNone
                      : contiguity[k] == Contiguity::kNone ? Contiguity::kTrue
                                                           : contiguity[k]);
    }
    if (allocation != to_[t].logical) to_[t].allocation = allocation;
    if (marks != contiguity_of(to_, to_[t])) to_[t].contiguity = marks;
  }

  void append_input(ValueId v) {
    Op op;
    op.kind = OpKind::kInput;
    op.results = {v};
    append(to_, Graph::body(), std::move(op));
  }

  // Makes an input of the same shape. Extents that were symbols stay symbols.
  void cut(ValueId v) {
    const Tensor& old = from_.tensor_of(v);
    const ValueId made = add_tensor(to_, dtype_now(from_[v].dtype), from_[v].name);
    now_[v.index] = made;
    const TensorId t = to_[made].tensor;
    for (DomainId id : logical_without_reductions(from_, old)) {
      const auto extent = evaluate_extent(from_, id, sizes_);
      const auto size = evaluate_size(from_, id, sizes_);
      if (!extent || !size) throw Error(ErrorCode::kNotConcretized, "an extent is not known", "%" + from_[v].name);
      IterDomain d;
      d.name = "i" + std::to_string(to_[t].logical.size());
      const bool is_size =
          from_[id].extent && from_[from_[id].extent].def && from_[from_[from_[id].extent].def].kind == OpKind::kSize;
      if (is_size)
        d.extent = value(from_[id].extent);
      else
        d.extent = constant_index(to_, *extent);
      if (*size != *extent) d.expanded = constant_index(to_, *size);
      if (constant_integer(to_, d.extent) == 1) d.iter_type = IterType::kBroadcast;
      if (d.expanded && d.iter_type != IterType::kBroadcast)
        throw Error(ErrorCode::kNotConcretized, "an expanded extent is not known", "%" + from_[v].name);
      const DomainId made_domain = add_domain(to_, t, std::move(d));
      to_[t].logical.push_back(made_domain);
    }
    append_input(made);
  }

  void take_output(OpId id) {
    const Op& op = from_[id];
    const auto patch = change_.patched.find(id);
    if (patch != change_.patched.end()) return output(to_, value(patch->second.operands[0].value));
    output(to_, value(op.operands[0]), op.operands.size() > 1 ? value(op.operands[1]) : ValueId());
  }

  void take_op(OpId id) {
    const Op& op = from_[id];
    std::vector<ValueId> operands;
    Attrs attrs = op.attrs;
    const auto patch = change_.patched.find(id);
    if (patch != change_.patched.end()) {
      attrs = patch->second.attrs;
      for (const Scalar& s : patch->second.operands)
        operands.push_back(s.value ? value(s.value) : s.number == kAbsent ? ValueId() : constant_index(to_, s.number));
    } else {
      for (ValueId v : op.operands) operands.push_back(value(v));
    }
    if (const AttrValue* d = attrs.find(AttrKey::kDtypeAttr))
      attrs.set(AttrKey::kDtypeAttr, dtype_now(std::get<Dtype>(*d)));
    const OpId made = add_op(to_, Graph::body(), op.kind, std::move(operands), std::move(attrs), names_of(op));
    for (size_t i = 0; i < op.results.size(); ++i) {
      now_[op.results[i].index] = to_[made].results[i];
      to_.tensor_of(to_[made].results[i]).devices = from_.tensor_of(op.results[i]).devices;
    }
    if (patch == change_.patched.end()) take_extents(op.results[0], to_[made].results[0]);
  }

  // Later ops also read extents that inference computed.
  void take_extents(ValueId was, ValueId made) {
    const auto old = logical_without_reductions(from_, from_.tensor_of(was));
    const auto now = logical_without_reductions(to_, to_.tensor_of(made));
    for (size_t i = 0; i < old.size() && old.size() == now.size(); ++i) {
      const ValueId extent = from_[old[i]].extent;
      if (extent && !from_.is_constant(extent) && !now_[extent.index]) now_[extent.index] = to_[now[i]].extent;
    }
  }

  // Inference may have used a name that a later op has.
  void keep_names() {
    std::map<ValueId, std::string> wanted;
    std::set<std::string> taken;
    for (size_t i = 0; i < now_.size(); ++i) {
      const std::string& name = from_.values[i].name;
      if (!now_[i] || name.empty() || to_.is_constant(now_[i]) || wanted.contains(now_[i])) continue;
      // A replaced value does not pass on its name.
      if (const OpId def = from_.values[i].def; def && change_.replaced.contains(def)) continue;
      wanted[now_[i]] = name;
      taken.insert(name);
    }
    size_t next = 0;
    for (size_t i = 0; i < to_.values.size(); ++i) {
      Value& v = to_.values[i];
      if (const auto it = wanted.find(ValueId(i)); it != wanted.end()) {
        v.name = it->second;
      } else if (!v.name.empty()) {
        std::string name;
        do name = "k" + std::to_string(next++);
        while (taken.contains(name));
        v.name = name;
        taken.insert(name);
      }
    }
  }

  void sweep() {
    std::set<std::string> before = unread_values(from_);
    for (const std::string& name : change_.swept) before.erase(name);
    for (OpId id : change_.cut)
      for (ValueId v : from_[id].results) before.erase(from_[v].name);
    const std::vector<bool> needed = needed_values(to_, before);
    const auto goes = [&](ValueId v) { return !needed[v.index] && !before.contains(to_[v].name); };
    std::erase_if(to_[Graph::body()].ops, [&](OpId id) {
      Op& op = to_[id];
      if (demands(op.kind, kEffect)) return false;
      if (op.kind == OpKind::kSize) std::erase_if(op.results, goes);
      return std::all_of(op.results.begin(), op.results.end(), goes);
    });
  }

  const Graph& from_;
  const FusionChange& change_;
  const Bindings& sizes_;
  std::vector<ValueId> now_;
  Graph to_;
};

}  // namespace

Graph remake(const Graph& from, const FusionChange& change, const Bindings& sizes) {
  return Remaker(from, change, sizes).run();
}

std::set<std::string> unread_values(const Graph& g) {
  const std::vector<bool> needed = needed_values(g);
  std::set<std::string> names;
  for (size_t i = 0; i < g.values.size(); ++i)
    if (!needed[i] && !g.values[i].name.empty()) names.insert(g.values[i].name);
  return names;
}

}  // namespace fusebox::fuzz
