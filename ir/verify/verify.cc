#include "ir/verify/verify.h"

#include <algorithm>

#include "ir/scalar/numeric.h"
#include "ir/verify/verify_rules.h"

namespace fusebox {
namespace {

constexpr size_t kMaxNesting = 200;

template <class Tag>
void need(Id<Tag> id, size_t size, const char* what) {
  if (id && id.index >= size) invalid(std::string(what) + " points to nothing");
}

template <class Tag>
void need_all(const std::vector<Id<Tag>>& ids, size_t size, const char* what) {
  for (Id<Tag> id : ids)
    if (id.index >= size) invalid(std::string(what) + " points to nothing");
}

template <class E>
void need_enum(E e) {
  if (static_cast<size_t>(e) >= enum_texts<E>().size()) invalid("an enumeration has a number that it does not know");
}

void check_value_ids(const Graph& g) {
  for (size_t i = 0; i < g.values.size(); ++i) {
    const Value& v = g.values[i];
    need_enum(v.kind);
    if (static_cast<size_t>(v.dtype) >= dtype_rows().size()) invalid("a value has an unknown dtype");
    need(v.def, g.ops.size(), "the op of a value");
    need(v.index_of, g.regions.size(), "the region of an index");
    need(v.tensor, g.tensors.size(), "the tensor of a value");
    if ((v.kind == ValueKind::kTensor) != static_cast<bool>(v.tensor))
      invalid("a value is a tensor without domains, or has domains and is none");
    if (v.tensor && g[v.tensor].value != ValueId(i)) invalid("two values share the domains of a tensor");
    if (v.constant) {
      if (v.kind != ValueKind::kScalar || v.def || v.index_of || !v.name.empty())
        invalid("a constant is a scalar without name and definition");
      if (!is_canonical(v.dtype, *v.constant)) invalid("a constant has bits beyond its dtype");
    }
  }
}

void check_domain_ids(const Graph& g) {
  const auto scalar = [&](ValueId v, const char* what) {
    need(v, g.values.size(), what);
    if (v && g[v].kind != ValueKind::kScalar) invalid(std::string(what) + " is no scalar");
  };
  for (const Tensor& t : g.tensors) {
    if (!t.value || t.value.index >= g.values.size()) invalid("a tensor belongs to no value");
    for (const auto* list : {&t.root, &t.logical, &t.allocation, &t.loop, &t.loop_broadcasts})
      need_all(*list, g.domains.size(), "a domain list of a tensor");
    need_all(t.transforms, g.transforms.size(), "the transforms of a tensor");
    need_enum(t.memory);
    for (Contiguity c : t.contiguity) need_enum(c);
    need(t.inline_at, g.domains.size(), "inline_at");
  }
  for (const IterDomain& d : g.domains) {
    if (!d.tensor || d.tensor.index >= g.tensors.size()) invalid("a domain belongs to no tensor");
    need_enum(d.iter_type);
    need_enum(d.parallel);
    scalar(d.extent, "an extent");
    scalar(d.expanded, "an expanded extent");
    need(d.def, g.transforms.size(), "the transform of a domain");
    need(d.stands_for, g.domains.size(), "the domain that a loop broadcast stands for");
  }
  for (const Transform& t : g.transforms) {
    need_enum(t.kind);
    need_enum(t.swizzle);
    need_all(t.inputs, g.domains.size(), "an input of a transform");
    need_all(t.outputs, g.domains.size(), "an output of a transform");
    scalar(t.factor, "the factor of a transform");
    scalar(t.right, "the right side of a resize");
  }
}

// A loop broadcast follows from the domain that it stands for, and other domains follow from the domains that they are
// made of. Checks that no loop broadcast follows from itself.
void check_stand_ins(const Graph& g) {
  const auto is_stand_in = [](const IterDomain& d) { return bool(d.stands_for); };
  if (std::none_of(g.domains.begin(), g.domains.end(), is_stand_in)) return;
  const auto for_each_source = [&](DomainId d, auto visit) {
    if (g[d].stands_for) visit(g[d].stands_for);
    if (g[d].def) std::for_each(g[g[d].def].inputs.begin(), g[g[d].def].inputs.end(), visit);
  };
  std::vector<uint32_t> followers(g.domains.size());
  for (size_t i = 0; i < g.domains.size(); ++i)
    for_each_source(DomainId(i), [&](DomainId source) { ++followers[source.index]; });
  std::vector<DomainId> ready;
  for (size_t i = 0; i < g.domains.size(); ++i)
    if (followers[i] == 0) ready.push_back(DomainId(i));
  while (!ready.empty()) {
    const DomainId d = ready.back();
    ready.pop_back();
    for_each_source(d, [&](DomainId source) {
      if (--followers[source.index] == 0) ready.push_back(source);
    });
  }
  for (size_t i = 0; i < g.domains.size(); ++i)
    if (followers[i] != 0 && g.domains[i].stands_for)
      invalid("a loop broadcast stands for a domain that follows from it", place_of(g, DomainId(i)));
}

// Checks places, also of nodes that the body does not reach: an op stands in at most one region, a region belongs to at
// most one op, and the body to none.
void check_places(const Graph& g) {
  std::vector<bool> placed(g.ops.size()), owned(g.regions.size());
  for (const Region& r : g.regions)
    for (OpId op : r.ops) {
      if (placed[op.index]) invalid("an op stands in two places");
      placed[op.index] = true;
    }
  owned[Graph::body().index] = true;
  for (const Op& op : g.ops)
    for (RegionId r : op.regions) {
      if (owned[r.index]) invalid("a region belongs to two ops, or is the body");
      owned[r.index] = true;
    }
}

// Checks order, scopes and names. Values that an op's regions define are not visible after the op.
class OrderChecker {
 public:
  explicit OrderChecker(const Graph& g)
      : g_(g), values_(g.values.size()), ops_(g.ops.size()), regions_(g.regions.size()) {}

  std::vector<OpId> run() {
    order_.reserve(g_.ops.size());
    region(Graph::body(), 0);
    check_extents();
    check_names();
    return std::move(order_);
  }

 private:
  enum State : uint8_t { kUnseen, kVisible, kHidden };

  void region(RegionId id, size_t depth) {
    if (depth > kMaxNesting) throw Error(ErrorCode::kTooLarge, "regions are nested too deep; flatten the program");
    if (regions_[id.index]) invalid("a region belongs to two ops");
    regions_[id.index] = true;
    const size_t first = scope_.size();
    const Region& r = g_[id];
    if (r.index) {
      const Value& v = g_[r.index];
      if (v.kind != ValueKind::kScalar || v.dtype != Dtype::kIndex || v.def || v.constant || v.index_of != id)
        invalid("the index of a region is a scalar of dtype index that nothing else defines", place_of(g_, r.index));
      define(r.index);
    }
    for (OpId op : r.ops) visit(op, depth);
    for (size_t i = first; i < scope_.size(); ++i) values_[scope_[i].index] = kHidden;
    scope_.resize(first);
  }

  void visit(OpId id, size_t depth) {
    if (ops_[id.index]) invalid("an op stands in two places");
    ops_[id.index] = true;
    order_.push_back(id);
    const Op& op = g_[id];
    for (ValueId v : op.operands) {
      if (!v || g_.is_constant(v)) continue;
      if (values_[v.index] != kVisible)
        throw Error(ErrorCode::kNotDominated,
                    "a value is used where it is not defined yet, or not any more; move its definition before its use",
                    place_of(g_, v));
    }
    for (RegionId r : op.regions) region(r, depth + 1);
    for (ValueId v : op.results) {
      if (g_[v].def != id) invalid("a result does not say which op defines it", place_of(g_, v));
      if (op.kind == OpKind::kInput && g_.is_tensor(v)) visible_extents(v);
      if (g_[v].constant || g_[v].index_of) invalid("a result is a constant or an index", place_of(g_, v));
      define(v);
    }
  }

  // Checks that the extents of an input are defined before it. Extents of other results follow from operands.
  void visible_extents(ValueId v) const {
    for (DomainId d : g_.tensor_of(v).logical)
      for (ValueId extent : {g_[d].extent, g_[d].expanded})
        if (extent && !g_.is_constant(extent) && values_[extent.index] != kVisible)
          throw Error(ErrorCode::kNotDominated,
                      "an input has an extent that is not defined yet; define it before the input", place_of(g_, v));
  }

  void define(ValueId v) {
    if (values_[v.index] != kUnseen) invalid("a value is defined twice", place_of(g_, v));
    values_[v.index] = kVisible;
    scope_.push_back(v);
    defined_.push_back(v);
  }

  // Checks that extents and factors are constants, or scalars that the program defines.
  void check_extents() const {
    const auto known = [&](ValueId v, ValueId of) {
      if (!v || g_.is_constant(v)) return;
      if (values_[v.index] == kUnseen)
        throw Error(ErrorCode::kNotDominated, "an extent or factor is a scalar that the program does not define",
                    place_of(g_, of));
    };
    for (ValueId v : defined_) {
      if (!g_.is_tensor(v)) continue;
      const Tensor& t = g_.tensor_of(v);
      for (const auto* list : {&t.root, &t.logical, &t.loop_broadcasts})
        for (DomainId d : *list) known(g_[d].extent, v), known(g_[d].expanded, v);
      for (TransformId id : t.transforms) known(g_[id].factor, v), known(g_[id].right, v);
    }
  }

  void check_names() const {
    std::vector<std::string_view> names;
    names.reserve(defined_.size());
    for (ValueId v : defined_) {
      if (g_[v].name.empty()) invalid("a value has no name; give it one");
      names.push_back(g_[v].name);
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      throw Error(ErrorCode::kDuplicateName, "two values have this name; rename one", "%" + std::string(*twice));
  }

  const Graph& g_;
  std::vector<uint8_t> values_;
  std::vector<bool> ops_, regions_;
  std::vector<ValueId> scope_, defined_;
  std::vector<OpId> order_;
};

}  // namespace

bool has_unknown_rows(const Attr& a) {
  const size_t rows = a.key == AttrKey::kThreads      ? enum_texts<ParallelType>().size()
                      : a.key == AttrKey::kContiguity ? enum_texts<Contiguity>().size()
                                                      : 0;
  const auto* list = std::get_if<std::vector<int64_t>>(&a.value);
  return rows > 0 && list &&
         std::any_of(list->begin(), list->end(), [&](int64_t i) { return i < 0 || static_cast<size_t>(i) >= rows; });
}

void check_ids(const Graph& g) {
  need_enum(g.level);
  if (g.index_bits != 32 && g.index_bits != 64) invalid("the index of a kernel has 32 or 64 bits");
  if (g.regions.empty()) invalid("a program has no body");
  constexpr size_t kMaxNodes = 1u << 28;
  for (size_t count :
       {g.values.size(), g.tensors.size(), g.domains.size(), g.transforms.size(), g.ops.size(), g.regions.size()})
    if (count > kMaxNodes) throw Error(ErrorCode::kTooLarge, "a program has too many nodes");
  check_value_ids(g);
  check_domain_ids(g);
  check_stand_ins(g);
  for (const Op& op : g.ops) {
    if (static_cast<size_t>(op.kind) >= op_rows().size())
      throw Error(ErrorCode::kUnknownOp, "an op has a number that no op has");
    for (ValueId v : op.operands) need(v, g.values.size(), "an operand");
    need_all(op.results, g.values.size(), "a result");
    need_all(op.regions, g.regions.size(), "a region of an op");
    for (const Attr& a : op.attrs.list())
      if (static_cast<size_t>(a.key) >= attr_rows().size())
        throw Error(ErrorCode::kBadAttribute, "an attribute has a number that no attribute has");
      else if (has_unknown_rows(a))
        throw Error(ErrorCode::kBadAttribute, "a list has a number that no row of its enumeration has; correct it");
  }
  for (const Region& r : g.regions) {
    need(r.index, g.values.size(), "the index of a region");
    need_all(r.ops, g.ops.size(), "an op of a region");
  }
  if (g[Graph::body()].index) invalid("the body has an index");
  check_places(g);
}

std::vector<OpId> check_order(const Graph& g) { return OrderChecker(g).run(); }

void verify(const Graph& g, const Defects& defects) {
  check_ids(g);
  const std::vector<OpId> order = check_order(g);
  // Tensors come first, because the rules of ops read their operands' domains.
  TensorChecker tensors(g);
  for (OpId op : order)
    for (ValueId v : g[op].results)
      if (g.is_tensor(v)) tensors.check(v);
  for (OpId op : order) {
    check_op(g, op, defects);
    if (g.level != Level::kKernel) check_siblings(g, op);
  }
}

std::optional<Error> find_error(const Graph& g, const Defects& defects) {
  try {
    verify(g, defects);
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

}  // namespace fusebox
