#include "tests/support/random_module.h"

#include <algorithm>

#include "ir/scalar/numeric.h"

namespace fusebox::testing {
namespace {

int64_t random_integer(Random& random) {
  switch (random.below(6)) {
    case 0:
      return 0;
    case 1:
      return -1;
    case 2:
      return INT64_MIN;
    case 3:
      return static_cast<int64_t>(random.next());
    default:
      return static_cast<int64_t>(random.below(130));
  }
}

std::vector<int64_t> random_integers(Random& random) {
  std::vector<int64_t> list(random.below(4));
  for (int64_t& i : list) i = random_integer(random);
  return list;
}

Dtype random_dtype(Random& random) { return static_cast<Dtype>(random.below(dtype_rows().size())); }

ConstantBits random_constant(Random& random, Dtype dtype) {
  return canonical_bits(dtype, {random.one_in(4) ? 0 : random.next(), random.next()});
}

Attrs random_attrs(Random& random, std::span<const AttrKey> keys, const RandomModuleOptions& options) {
  Attrs attrs;
  for (AttrKey key : keys)
    if (random.one_in(2)) attrs.set(key, random_attr(random, key).value);
  if (options.any_attrs && random.one_in(4)) {
    const auto key = static_cast<AttrKey>(random.below(attr_rows().size()));
    attrs.set(key, random_attr(random, key).value);
  }
  return attrs;
}

class GraphMaker {
 public:
  GraphMaker(Random& random, const RandomModuleOptions& options) : random_(random), options_(options) {}

  Graph make(std::string name) {
    g_.name = std::move(name);
    g_.level = random_.pick<Level>();
    g_.index_bits = random_.one_in(2) ? 32 : 64;
    for (int i = 0; i < 3; ++i) scalars_.push_back(constant());
    left_ = 1 + random_.below(options_.ops);
    fill(Graph::body(), 0);
    if (options_.dead_nodes && random_.one_in(2)) dead_nodes();
    return std::move(g_);
  }

 private:
  // The underscore separates the number from an odd name, which may be a digit: s1 followed by 0 would be s10.
  std::string fresh(const std::string& stem) {
    const std::string name = stem + std::to_string(names_++);
    return random_.one_in(16) ? name + "_" + random_name(random_, options_) : name;
  }

  ValueId constant() {
    Value v;
    v.dtype = random_.one_in(2) ? Dtype::kIndex : random_dtype(random_);
    v.constant = random_constant(random_, v.dtype);
    g_.values.push_back(v);
    return ValueId(g_.values.size() - 1);
  }

  ValueId scalar(Dtype dtype) {
    Value v;
    v.dtype = dtype;
    v.name = fresh("s");
    g_.values.push_back(v);
    return ValueId(g_.values.size() - 1);
  }

  DomainId domain(TensorId tensor) {
    IterDomain d;
    d.name = fresh("i");
    d.tensor = tensor;
    d.iter_type = random_.pick<IterType>();
    d.parallel = random_.pick<ParallelType>();
    if (!random_.one_in(8)) d.extent = random_.pick(scalars_);
    if (d.iter_type == IterType::kBroadcast && random_.one_in(2)) d.expanded = random_.pick(scalars_);
    g_.domains.push_back(d);
    return DomainId(g_.domains.size() - 1);
  }

  // Replaces domains of a list by the results of a random transform.
  void transform(TensorId tensor, std::vector<DomainId>& list) {
    Transform t;
    t.kind = random_.pick<TransformKind>();
    const bool two_in = t.kind == TransformKind::kMerge || t.kind == TransformKind::kSwizzle;
    const bool two_out = t.kind == TransformKind::kSplit || t.kind == TransformKind::kSwizzle;
    if (list.size() < (two_in ? 2u : 1u)) return;
    const size_t at = random_.below(list.size() - (two_in ? 1 : 0));
    t.inputs.assign(list.begin() + static_cast<ptrdiff_t>(at),
                    list.begin() + static_cast<ptrdiff_t>(at) + (two_in ? 2 : 1));
    t.swizzle = random_.pick<SwizzleType>();
    t.inner_split = random_.one_in(2);
    if (t.kind == TransformKind::kSplit || t.kind == TransformKind::kResize) t.factor = random_.pick(scalars_);
    if (t.kind == TransformKind::kResize) t.right = random_.pick(scalars_);
    const TransformId id(g_.transforms.size());
    for (int i = 0; i < (two_out ? 2 : 1); ++i) {
      const DomainId out = domain(tensor);
      g_[out].extent = ValueId();
      g_[out].expanded = ValueId();
      g_[out].def = id;
      t.outputs.push_back(out);
    }
    list.erase(list.begin() + static_cast<ptrdiff_t>(at), list.begin() + static_cast<ptrdiff_t>(at + t.inputs.size()));
    list.insert(list.begin() + static_cast<ptrdiff_t>(at), t.outputs.begin(), t.outputs.end());
    g_.transforms.push_back(std::move(t));
    g_[tensor].transforms.push_back(id);
  }

  ValueId tensor() {
    const TensorId id(g_.tensors.size());
    const ValueId value = scalar(random_dtype(random_));
    g_[value].kind = ValueKind::kTensor;
    g_[value].tensor = id;
    g_.tensors.emplace_back();
    std::vector<DomainId> list;
    for (size_t rank = random_.below(4); rank > 0; --rank) list.push_back(domain(id));
    g_[id].value = value;
    if (random_.one_in(4)) {
      g_[id].root = list;
      transform(id, list);
    }
    g_[id].logical = list;
    std::vector<DomainId> loop = list;
    if (random_.one_in(4) && !g_.domains.empty()) {
      const DomainId stand_in = domain(id);
      g_[stand_in].stands_for = DomainId(random_.below(g_.domains.size() - 1));
      g_[id].loop_broadcasts.push_back(stand_in);
      loop.push_back(stand_in);
    }
    for (size_t n = random_.below(4); n > 0; --n) transform(id, loop);
    if (loop != list || random_.one_in(4)) g_[id].loop = loop;
    if (random_.one_in(4)) g_[id].allocation.assign(list.rbegin(), list.rend());
    if (random_.one_in(4))
      for (size_t i = 0; i < list.size(); ++i) g_[id].contiguity.push_back(random_.pick<Contiguity>());
    g_[id].memory = random_.pick<MemoryType>();
    if (random_.one_in(8)) g_[id].devices = random_integers(random_);
    if (!loop.empty() && random_.one_in(4)) g_[id].inline_at = random_.pick(loop);
    if (random_.one_in(8)) g_[id].circular_depth = random_integer(random_);
    return value;
  }

  ValueId operand(const Slot& slot) {
    if (slot.optional && random_.one_in(2)) return ValueId();
    if (slot.kind == 's' || tensors_.empty()) return random_.pick(scalars_);
    if (slot.kind == 't') return random_.pick(tensors_);
    return random_.one_in(2) ? random_.pick(tensors_) : random_.pick(scalars_);
  }

  ValueId result() {
    if (random_.one_in(2)) {
      tensors_.push_back(tensor());
      return tensors_.back();
    }
    const ValueId value = scalar(random_dtype(random_));
    g_[value].kind = random_.pick<ValueKind>();
    if (g_[value].kind == ValueKind::kTensor) g_[value].kind = ValueKind::kScalar;
    if (g_[value].kind == ValueKind::kScalar) scalars_.push_back(value);
    return value;
  }

  OpKind kind() {
    for (;;) {
      const OpRow& row = op_rows()[random_.below(op_rows().size())];
      if (row.at(g_.level)) return row.kind;
    }
  }

  void fill(RegionId region, size_t depth) {
    while (left_ > 0) {
      --left_;
      const OpKind op_kind = kind();
      const FormatRow& format = *row_of(op_kind).format;
      Op op;
      op.kind = op_kind;
      const size_t list_length = random_.below(3);
      for (const Slot& slot : format.all())
        for (size_t n = slot.list ? list_length : 1; n > 0; --n) op.operands.push_back(operand(slot));
      for (size_t n = format.results < 0 ? random_.below(4) : static_cast<size_t>(format.results); n > 0; --n)
        op.results.push_back(result());
      op.attrs = random_attrs(random_, row_of(op_kind).attrs, options_);
      const OpId id(g_.ops.size());
      for (ValueId r : op.results) g_[r].def = id;
      g_.ops.push_back(op);
      g_[region].ops.push_back(id);
      const size_t regions = depth > 5            ? 0
                             : format.regions < 0 ? 1 + random_.below(2)
                                                  : static_cast<size_t>(format.regions);
      for (size_t n = 0; n < regions; ++n) {
        const RegionId inner(g_.regions.size());
        g_.regions.emplace_back();
        g_[id].regions.push_back(inner);
        if (random_.one_in(2)) {
          g_[inner].index = scalar(Dtype::kIndex);
          g_[g_[inner].index].index_of = inner;
          scalars_.push_back(g_[inner].index);
        }
        fill(inner, depth + 1);
      }
      if (depth > 0 && random_.one_in(3)) return;
    }
  }

  void dead_nodes() {
    constant();
    tensor();
    Op op;
    op.kind = kind();
    g_.ops.push_back(op);
    g_.regions.emplace_back();
  }

  Random& random_;
  const RandomModuleOptions& options_;
  Graph g_;
  std::vector<ValueId> scalars_, tensors_;
  size_t left_ = 0;
  size_t names_ = 0;
};

Crossing random_crossing(Random& random, const RandomModuleOptions& options) {
  Crossing c;
  c.value = random_name(random, options);
  c.allocation_order = random_integers(random);
  for (size_t n = random.below(3); n > 0; --n) c.contiguity.push_back(random.pick<Contiguity>());
  if (random.one_in(3)) c.alias = random_name(random, options);
  return c;
}

Segmentation random_segmentation(Random& random, const std::string& graph, const RandomModuleOptions& options) {
  Segmentation segmentation;
  segmentation.graph = graph;
  for (size_t n = random.below(4); n > 0; --n) {
    Segment s;
    s.name = "segment" + std::to_string(n);
    s.executor = random.pick<SegmentExecutor>();
    for (size_t k = random.below(3); k > 0; --k) s.ops.push_back(random_name(random, options));
    for (size_t k = random.below(3); k > 0; --k) s.inputs.push_back(random_crossing(random, options));
    for (size_t k = random.below(3); k > 0; --k) s.outputs.push_back(random_crossing(random, options));
    for (size_t k = random.below(3); k > 0; --k) s.steps.push_back(random_step(random, options));
    segmentation.segments.push_back(std::move(s));
  }
  return segmentation;
}

}  // namespace

std::string random_name(Random& random, const RandomModuleOptions& options) {
  static const std::vector<std::string> kOdd = {
      "a b", "\"q\\", "größe", "%x.y", "0", "end}", std::string("nul\0byte", 8), "\xff\xfe", "→"};
  if (options.odd_names && random.one_in(8)) return random.pick(kOdd);
  std::string name(1, static_cast<char>('a' + random.below(26)));
  for (size_t n = random.one_in(8) ? 40 : random.below(6); n > 0; --n)
    name += static_cast<char>('a' + random.below(26));
  return name;
}

Attr random_attr(Random& random, AttrKey key) {
  const AttrKind kind = row_of(key).kind;
  switch (kind) {
    case AttrKind::kInt:
      return {key, random_integer(random)};
    case AttrKind::kBool:
      return {key, int64_t{1}};
    case AttrKind::kDtype:
      return {key, random_dtype(random)};
    case AttrKind::kString:
      return {key, random_name(random)};
    case AttrKind::kInts: {
      std::vector<int64_t> list;
      if (key == AttrKey::kThreads) {
        for (size_t p = 0; p < enum_texts<ParallelType>().size(); ++p)
          if (random.one_in(6)) list.push_back(static_cast<int64_t>(p));
      } else if (key == AttrKey::kContiguity) {
        for (size_t n = random.below(4); n > 0; --n) list.push_back(static_cast<int64_t>(random.pick<Contiguity>()));
      } else {
        list = random_integers(random);
      }
      return {key, list};
    }
    default:  // any other: its values are enumerators
      return {key, static_cast<int64_t>(random.below(enum_texts_of(kind).size()))};
  }
}

Step random_step(Random& random, const RandomModuleOptions& options) {
  Step step;
  const StepRow& row = step_rows()[random.below(step_rows().size())];
  step.kind = row.kind;
  const size_t list_length = random.below(3);
  for (const Slot& slot : row.format->all())
    for (size_t n = slot.list ? list_length : 1; n > 0; --n) {
      if (slot.kind == 'x' && random.one_in(2))
        step.operands.push_back(StepOperand::number(random_integer(random)));
      else if (slot.kind == 'd')
        step.operands.push_back(StepOperand::domain_of(random_name(random, options), random_name(random, options)));
      else
        step.operands.push_back(StepOperand::of(random_name(random, options)));
    }
  for (char c : row.results) {
    if (c == 'd' || c == 't') step.results.push_back(random_name(random, options));
    if (c == '*' && random.one_in(2)) step.results.push_back(random_name(random, options));
  }
  step.attrs = random_attrs(random, row.attrs, options);
  return step;
}

StepList random_step_list(Random& random, const RandomModuleOptions& options) {
  StepList list;
  if (random.one_in(2)) list.name = random_name(random, options);
  list.graph = random_name(random, options);
  for (size_t n = random.below(5); n > 0; --n) list.steps.push_back(random_step(random, options));
  return list;
}

InputSpec random_input_spec(Random& random) {
  InputSpec spec;
  spec.name = random_name(random);
  spec.dtype = random_dtype(random);
  spec.is_scalar = random.one_in(3);
  if (spec.is_scalar) {
    spec.value = random_constant(random, spec.dtype);
  } else {
    for (size_t n = random.below(4); n > 0; --n) spec.shape.push_back(static_cast<int64_t>(random.below(9)));
    if (random.one_in(2))
      for (size_t i = 0; i < spec.shape.size(); ++i) spec.strides.push_back(static_cast<int64_t>(random.below(40)));
    spec.offset = random.one_in(3) ? static_cast<int64_t>(random.below(9)) : 0;
    spec.generator = random.pick<InputGenerator>();
    spec.seed = random.next();
    if (random.one_in(2)) spec.low = random.one_in(3) ? -0.0 : static_cast<double>(random_integer(random)) / 3;
    if (random.one_in(2)) spec.high = static_cast<double>(random_integer(random));
  }
  return spec;
}

Graph random_graph(Random& random, std::string name, const RandomModuleOptions& options) {
  return GraphMaker(random, options).make(std::move(name));
}

Module random_module(uint64_t seed, const RandomModuleOptions& options) {
  Random random(seed);
  Module m;
  for (size_t n = random.below(options.graphs + 1); n > 0; --n) {
    const std::string name = "g" + std::to_string(n);
    m.graphs.push_back(random_graph(random, name, options));
    if (random.one_in(2)) m.step_lists.push_back(random_step_list(random, options));
    if (random.one_in(2)) m.segmentations.push_back(random_segmentation(random, name, options));
    if (random.one_in(2)) {
      InputSpecs specs;
      specs.graph = name;
      specs.where = random.one_in(2) ? "host" : "gpu";
      for (size_t k = random.below(4); k > 0; --k) specs.specs.push_back(random_input_spec(random));
      m.input_specs.push_back(std::move(specs));
    }
  }
  return m;
}

bool identical(const Graph& a, const Graph& b) {
  return a.name == b.name && a.level == b.level && a.index_bits == b.index_bits && a.values == b.values &&
         a.tensors == b.tensors && a.domains == b.domains && a.transforms == b.transforms && a.ops == b.ops &&
         a.regions == b.regions;
}

bool identical(const Module& a, const Module& b) {
  return std::equal(a.graphs.begin(), a.graphs.end(), b.graphs.begin(), b.graphs.end(),
                    [](const Graph& x, const Graph& y) { return identical(x, y); }) &&
         a.step_lists == b.step_lists && a.segmentations == b.segmentations && a.input_specs == b.input_specs;
}

}  // namespace fusebox::testing
