// Measures a case, and adapts its inputs after an edit of the fusion.
#include <algorithm>
#include <cmath>

#include "fuzz/mutate/mutate_rules.h"
#include "fuzz/reduce/reduce_rules.h"
#include "ir/domain/domain.h"
#include "ir/scalar/numeric.h"

namespace fusebox::fuzz {
namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t e : shape) n *= std::max<int64_t>(e, 1);
  return n;
}

int64_t dtype_rank(Dtype d) { return d == Dtype::kFloat ? 0 : d == Dtype::kInt64 ? 1 : 2; }

int64_t detail_of(const Step& s) {
  int64_t detail = 0;
  for (const StepOperand& o : s.operands) detail += 1 + (o.is_integer() ? magnitude(o.integer) : 0);
  for (const Attr& a : s.attrs.list()) {
    detail += 2;
    if (a.key != AttrKey::kParallel) continue;
    const auto type = s.attrs.enumerator<ParallelType>(AttrKey::kParallel);
    detail += type == ParallelType::kBlockX ? 0 : type == ParallelType::kGridX ? 1 : 2;
  }
  return detail;
}

int64_t detail_of(const InputSpec& spec) {
  int64_t detail = value_rank(spec) + dtype_rank(spec.dtype);
  if (!spec.strides.empty()) {
    detail += 1;
    for (int64_t s : spec.strides) detail += magnitude(s);
  }
  return detail + magnitude(spec.offset);
}

// Strides for a new shape that keep the old gaps. `axes`: the old axis for each new one.
std::vector<int64_t> fitted_strides(const Graph& g, ValueId v, const InputSpec& old, const std::vector<int64_t>& shape,
                                    const std::vector<size_t>& axes) {
  const Tensor& t = g.tensor_of(v);
  const auto order = allocation_of(g, t);
  const auto contiguity = contiguity_of(g, t);
  std::vector<int64_t> strides(shape.size(), 1);
  int64_t next = 1, old_next = 1;
  for (size_t k = order.size(); k > 0; --k) {
    const size_t axis = position_in(t.logical, order[k - 1]);
    if (axis >= shape.size()) return {};
    strides[axis] = next;
    const int64_t before = old.strides.empty() ? old_next : old.strides[axes[axis]];
    if (contiguity[k - 1] == Contiguity::kFalse)
      strides[axis] = before == 0 ? 0 : next + std::max<int64_t>(before - old_next, 0);
    if (contiguity[k - 1] == Contiguity::kNone || strides[axis] == 0) continue;
    next = strides[axis] * std::max<int64_t>(shape[axis], 1);
    old_next = before * std::max<int64_t>(old.shape[axes[axis]], 1);
  }
  std::vector<int64_t> plain(shape.size(), 1);
  for (size_t i = plain.size(); i > 1; --i) plain[i - 2] = plain[i - 1] * std::max<int64_t>(shape[i - 1], 1);
  return strides == plain ? std::vector<int64_t>() : strides;
}

InputSpec spec_for(const Graph& g, ValueId v, const std::vector<int64_t>& shape, bool boundary) {
  InputSpec spec;
  spec.name = g[v].name;
  spec.dtype = g[v].dtype;
  spec.shape = shape;
  spec.seed = 1;
  if (boundary) {
    spec.generator = InputGenerator::kBoundary;
  } else {
    const bool negative = !is_boolean(spec.dtype) && !(is_integer(spec.dtype) && !is_signed(spec.dtype));
    spec.generator = InputGenerator::kIntegers;
    spec.low = negative ? -4 : 0;
    spec.high = is_boolean(spec.dtype) ? 2 : 5;
  }
  return spec;
}

}  // namespace

double CaseSize::product() const {
  return static_cast<double>(ops + steps) * static_cast<double>(std::max<int64_t>(elements, 1));
}

int64_t magnitude(int64_t n) {
  const uint64_t m = n < 0 ? 2 * static_cast<uint64_t>(-(n + 1)) + 3 : 2 * static_cast<uint64_t>(n);
  return static_cast<int64_t>(std::min<uint64_t>(m, 1 << 20));
}

std::vector<int64_t> smaller_numbers(int64_t n, int64_t least) {
  std::vector<int64_t> result;
  for (int64_t m : {least, int64_t{1}, int64_t{2}, int64_t{3}, n / 2, n - 2, n - 1})
    if (m >= least && m < n && std::find(result.begin(), result.end(), m) == result.end()) result.push_back(m);
  return result;
}

int64_t value_rank(const InputSpec& spec) {
  if (spec.is_scalar) {
    const bool real = !is_complex(spec.dtype);
    return real && to_double(spec.dtype, spec.value) == 1 ? 0 : real && to_double(spec.dtype, spec.value) == 2 ? 1 : 2;
  }
  switch (spec.generator) {
    case InputGenerator::kConstant:
      return spec.low == 1 ? 0 : 1;
    case InputGenerator::kIntegers:
      return (spec.seed == 1 ? 2 : 3) + (spec.high - spec.low > 4 ? 2 : 0);
    case InputGenerator::kUniform:
      return 8;
    case InputGenerator::kNormal:
      return 9;
    case InputGenerator::kBoundary:
      break;
  }
  return spec.seed == 1 ? 10 : 11;
}

CaseSize size_of(const Case& c) {
  CaseSize size;
  const Graph& g = c.fusion();
  const Bindings sizes = sizes_of(g, c.inputs());
  const auto out = outputs(g);
  size.ops = static_cast<int64_t>(tensor_ops(g).size());
  size.steps = c.steps() ? static_cast<int64_t>(c.steps()->size()) : 0;
  size.signature = static_cast<int64_t>(out.size() + inputs(g).size());
  for (const OutputRef& o : out) {
    if (g.is_tensor(o.value))
      if (const auto shape = evaluate_shape(g, o.value, sizes)) size.elements += product(*shape);
    size.detail += o.alias ? 1 : 0;
  }
  for (OpId id : ops_in_order(g)) {
    const Op& op = g[id];
    if (op.kind == OpKind::kSize) size.detail += static_cast<int64_t>(op.results.size());
    for (ValueId v : op.results) {
      // Inference makes index scalars and comparisons of them, for extents and clamped bounds, so they do not count.
      const bool compares_indices =
          is_boolean(g[v].dtype) && !op.operands.empty() && g[op.operands[0]].dtype == Dtype::kIndex;
      size.scalars += !g.is_tensor(v) && !op.operands.empty() && g[v].dtype != Dtype::kIndex && !compares_indices;
      if (!g.is_tensor(v)) continue;
      const auto shape = evaluate_shape(g, v, sizes);
      if (!shape) continue;
      size.axes += static_cast<int64_t>(g.tensor_of(v).logical.size());
      (op.kind == OpKind::kInput ? size.elements : size.inner) += product(*shape);
      size.detail += dtype_rank(g[v].dtype) + (g.tensor_of(v).allocation.empty() ? 0 : 1);
      for (Contiguity m : contiguity_of(g, g.tensor_of(v)))
        size.detail += m == Contiguity::kFalse && op.kind == OpKind::kInput;
    }
    for (ValueId v : op.operands)
      if (const auto n = v ? constant_integer(g, v) : std::nullopt)
        size.detail += magnitude(*n);
      else if (v && g.is_constant(v) && !is_complex(g[v].dtype))
        size.detail += to_double(g[v].dtype, *g[v].constant) == 1 ? 1 : 2;
  }
  size.detail += static_cast<int64_t>(c.lineage.size()) + (c.seed != 0);
  for (const InputSpec& spec : c.inputs().specs) size.detail += detail_of(spec);
  if (c.steps()) {
    size.detail += 1;
    for (const Step& s : *c.steps()) size.detail += detail_of(s);
  }
  return size;
}

std::vector<Step>& steps_of(Case& c) {
  if (c.module.step_lists.empty()) c.module.step_lists.push_back({"", c.fusion().name, {}});
  return c.module.step_lists[0].steps;
}

std::optional<OpId> op_making(const Graph& g, const std::string& name) {
  const auto v = find_value(g, name);
  if (!v || !g.is_tensor(*v) || !g[*v].def || demands(g[g[*v].def].kind, kSignature)) return std::nullopt;
  return g[*v].def;
}

InputSpec* spec_of(Case& c, const std::string& name) {
  for (InputSpec& s : c.module.input_specs[0].specs)
    if (s.name == name) return &s;
  return nullptr;
}

bool change_fusion(Case& c, const FusionChange& change) {
  const Graph old = c.fusion();
  const InputSpecs old_specs = c.inputs();
  const Bindings sizes = sizes_of(old, old_specs);
  Graph made = remake(old, change, sizes);
  bool boundary = false;
  for (const InputSpec& s : old_specs.specs) boundary |= s.generator == InputGenerator::kBoundary;
  std::vector<InputSpec> specs;
  for (ValueId v : inputs(made)) {
    const auto was = find_value(old, made[v].name);
    const auto it = std::find_if(old_specs.specs.begin(), old_specs.specs.end(),
                                 [&](const InputSpec& s) { return s.name == made[v].name; });
    if (it == old_specs.specs.end()) {
      const auto shape = was ? evaluate_shape(old, *was, sizes) : std::nullopt;
      if (!shape) return false;
      specs.push_back(spec_for(made, v, *shape, boundary));
      continue;
    }
    InputSpec spec = *it;
    if (spec.dtype != made[v].dtype) {
      if (spec.is_scalar) spec.value = convert(spec.dtype, spec.value, made[v].dtype);
      spec.dtype = made[v].dtype;
      if (!spec.is_scalar && spec.generator == InputGenerator::kConstant) spec.value = ConstantBits{};
    }
    if (spec.is_scalar) {
      specs.push_back(std::move(spec));
      continue;
    }
    const auto removed = change.removed_axes.find(*was);
    const auto extents = change.extents.find(*was);
    std::vector<size_t> axes;
    std::vector<int64_t> shape;
    for (size_t i = 0; i < it->shape.size(); ++i) {
      if (removed != change.removed_axes.end() && removed->second.contains(i)) continue;
      axes.push_back(i);
      shape.push_back(it->shape[i]);
      if (extents == change.extents.end()) continue;
      if (const auto e = extents->second.find(i); e != extents->second.end()) shape.back() = e->second;
    }
    if (change.plain.contains(*was)) {
      spec.strides.clear();
      spec.offset = 0;
    } else if (shape != it->shape || axes.size() != it->shape.size()) {
      spec.strides = fitted_strides(made, v, *it, shape, axes);
    }
    spec.shape = std::move(shape);
    specs.push_back(std::move(spec));
  }
  c.module.graphs[0] = std::move(made);
  c.module.input_specs[0].specs = std::move(specs);
  return true;
}

}  // namespace fusebox::fuzz
