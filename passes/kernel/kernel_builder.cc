#include "passes/kernel/kernel_builder.h"

#include <algorithm>

#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"

namespace fusebox {

KernelBuilder::KernelBuilder(std::string name, int index_bits) {
  graph_.name = std::move(name);
  graph_.level = Level::kKernel;
  graph_.index_bits = index_bits;
  scopes_.push_back({Graph::body(), {}});
}

ValueId KernelBuilder::constant(Dtype dtype, ConstantBits bits) {
  const auto [it, is_new] = constants_.try_emplace({dtype, bits.low, bits.high});
  if (is_new) {
    Value v;
    v.dtype = dtype;
    v.constant = bits;
    it->second = ValueId(graph_.values.size());
    graph_.values.push_back(std::move(v));
  }
  return it->second;
}

ValueId KernelBuilder::new_value(Dtype dtype, std::string_view name) {
  // Values that were put into the graph without the builder have names too.
  for (; named_ < graph_.values.size(); ++named_)
    if (!graph_.values[named_].name.empty()) names_.insert(graph_.values[named_].name);
  Value v;
  v.dtype = dtype;
  v.name = name;
  for (int i = 1; !names_.insert(v.name).second; ++i) v.name = std::string(name) + "_" + std::to_string(i);
  graph_.values.push_back(std::move(v));
  return ValueId(graph_.values.size() - 1);
}

ValueId KernelBuilder::new_scalar(Dtype dtype, char prefix) {
  return new_value(dtype, prefix + std::to_string(next_name_++));
}

ValueId KernelBuilder::new_buffer(Dtype dtype, MemoryType memory, std::string_view name, ValueId extent) {
  const ValueId buffer = new_value(dtype, name);
  const TensorId t(graph_.tensors.size());
  graph_[buffer].kind = ValueKind::kTensor;
  graph_[buffer].tensor = t;
  IterDomain domain;
  domain.tensor = t;
  domain.extent = extent;
  domain.name = "i0";
  Tensor tensor;
  tensor.value = buffer;
  tensor.memory = memory;
  tensor.logical = {DomainId(graph_.domains.size())};
  graph_.domains.push_back(std::move(domain));
  graph_.tensors.push_back(std::move(tensor));
  return buffer;
}

std::optional<ValueId> KernelBuilder::find(const Key& key) const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (const auto it = scopes_[i].numbered.find(key); it != scopes_[i].numbered.end()) return it->second;
  return std::nullopt;
}

ValueId KernelBuilder::op(OpKind kind, std::vector<ValueId> operands, Dtype result, Attrs attrs) {
  if (kind == OpKind::kCast) attrs.set(AttrKey::kDtypeAttr, result);  // a cast names its dtype at every level
  // A copy of a scalar is the scalar: a host program has no op for it.
  if ((kind == OpKind::kSet || kind == OpKind::kSegmentSet) && graph_.level == Level::kHost) return operands[0];
  // No dtype holds both u64 and a signed integer. In a fusion the signed operand is a scalar, and takes the dtype of
  // the tensors beside it. Beside a real number it takes that number's dtype.
  const auto is_u64 = [&](ValueId v) { return v && graph_[v].dtype == Dtype::kUint64; };
  if (demands(kind, kPointwise) && std::any_of(operands.begin(), operands.end(), is_u64)) {
    std::optional<Dtype> real;
    for (ValueId v : operands)
      if (v && (is_floating(graph_[v].dtype) || is_complex(graph_[v].dtype)))
        real = real ? promote(*real, graph_[v].dtype) : graph_[v].dtype;
    for (ValueId& v : operands)
      if (v && is_integer(graph_[v].dtype) && is_signed(graph_[v].dtype))
        v = op(OpKind::kCast, {v}, real ? compute_dtype(*real) : Dtype::kUint64);
  }
  Key key{kind, result, operands, {}};
  for (const Attr& a : attrs.list()) {
    key.attrs.push_back(static_cast<int64_t>(a.key));
    if (const auto* number = std::get_if<int64_t>(&a.value)) key.attrs.push_back(*number);
    if (const auto* dtype = std::get_if<Dtype>(&a.value)) key.attrs.push_back(static_cast<int64_t>(*dtype));
  }
  if (const auto known = find(key)) return *known;
  const ValueId v = new_scalar(result, result == Dtype::kIndex ? 'i' : result == Dtype::kBool ? 'p' : 'v');
  append(graph_, region(), Op{kind, std::move(operands), {v}, std::move(attrs), {}});
  scopes_.back().numbered.emplace(std::move(key), v);
  return v;
}

ValueId KernelBuilder::add(ValueId a, ValueId b) {
  const auto x = constant_of(a), y = constant_of(b);
  int64_t sum = 0;
  if (x && y && !__builtin_add_overflow(*x, *y, &sum)) return index(sum);
  if (x == 0) return b;
  if (y == 0) return a;
  if (y && *y < 0 && *y != INT64_MIN) return op(OpKind::kSub, {a, index(-*y)}, Dtype::kIndex);
  return op(OpKind::kAdd, {a, b}, Dtype::kIndex);
}

ValueId KernelBuilder::sub(ValueId a, ValueId b) {
  const auto x = constant_of(a), y = constant_of(b);
  int64_t difference = 0;
  if (x && y && !__builtin_sub_overflow(*x, *y, &difference)) return index(difference);
  if (y == 0) return a;
  if (a == b) return index(0);
  return op(OpKind::kSub, {a, b}, Dtype::kIndex);
}

ValueId KernelBuilder::mul(ValueId a, ValueId b) {
  const auto x = constant_of(a), y = constant_of(b);
  int64_t product = 0;
  if (x && y && !__builtin_mul_overflow(*x, *y, &product)) return index(product);
  if (x == 0 || y == 0) return index(0);
  if (x == 1) return b;
  if (y == 1) return a;
  return op(OpKind::kMul, {a, b}, Dtype::kIndex);
}

namespace {

// Euclidean; division by 0 has a result too.
int64_t constant_quotient(OpKind kind, int64_t a, int64_t b) {
  const TypedBits operands[] = {{Dtype::kIndex, from_int64(Dtype::kIndex, a)},
                                {Dtype::kIndex, from_int64(Dtype::kIndex, b)}};
  return to_int64(Dtype::kIndex, evaluate_op(kind, Dtype::kIndex, operands).value());
}

}  // namespace

ValueId KernelBuilder::floor_div(ValueId a, ValueId b, bool nonnegative) {
  const auto x = constant_of(a), y = constant_of(b);
  if (y == 1) return a;
  if (x == 0) return a;
  if (x && y) return index(constant_quotient(OpKind::kFloorDiv, *x, *y));
  Attrs attrs;
  if (nonnegative) attrs.set_flag(AttrKey::kNonNegative);
  return op(OpKind::kFloorDiv, {a, b}, Dtype::kIndex, attrs);
}

ValueId KernelBuilder::floor_mod(ValueId a, ValueId b, bool nonnegative) {
  const auto x = constant_of(a), y = constant_of(b);
  if (y == 1) return index(0);
  if (x == 0) return a;
  if (x && y) return index(constant_quotient(OpKind::kFloorMod, *x, *y));
  Attrs attrs;
  if (nonnegative) attrs.set_flag(AttrKey::kNonNegative);
  return op(OpKind::kFloorMod, {a, b}, Dtype::kIndex, attrs);
}

ValueId KernelBuilder::ceil_div(ValueId a, ValueId b) {
  const auto x = constant_of(a), y = constant_of(b);
  if (y == 1) return a;
  if (x && y && *x >= 0 && *y > 0) return index(*x / *y + (*x % *y != 0));
  return op(OpKind::kCeilDiv, {a, b}, Dtype::kIndex);
}

ValueId KernelBuilder::minimum(ValueId a, ValueId b) {
  const auto x = constant_of(a), y = constant_of(b);
  if (x && y) return index(std::min(*x, *y));
  return a == b ? a : op(OpKind::kMinimum, {a, b}, Dtype::kIndex);
}

ValueId KernelBuilder::maximum(ValueId a, ValueId b) {
  const auto x = constant_of(a), y = constant_of(b);
  if (x && y) return index(std::max(*x, *y));
  return a == b ? a : op(OpKind::kMaximum, {a, b}, Dtype::kIndex);
}

ValueId KernelBuilder::compare(OpKind kind, ValueId a, ValueId b) {
  const auto x = constant_of(a), y = constant_of(b);
  if (x && y && kind == OpKind::kLt) return bit(*x < *y);
  if (x && y && kind == OpKind::kGe) return bit(*x >= *y);
  if (x && y && kind == OpKind::kEq) return bit(*x == *y);
  if (x && y && kind == OpKind::kNe) return bit(*x != *y);
  return op(kind, {a, b}, Dtype::kBool);
}

ValueId KernelBuilder::logical_and(ValueId a, ValueId b) {
  const auto x = constant_of(a), y = constant_of(b);
  if (x == 0 || y == 0) return bit(false);
  if (x || a == b) return b;
  if (y) return a;
  // The conjunction may contain `b` already, because conditions are added one after another.
  for (ValueId part = a;;) {
    const OpId def = graph_[part].def;
    if (!def || graph_[def].kind != OpKind::kLogicalAnd) break;
    if (graph_[def].operands[1] == b || graph_[def].operands[0] == b) return a;
    part = graph_[def].operands[0];
  }
  return op(OpKind::kLogicalAnd, {a, b}, Dtype::kBool);
}

ValueId KernelBuilder::where(ValueId condition, ValueId a, ValueId b) {
  if (const auto known = constant_of(condition)) return *known != 0 ? a : b;
  return a == b ? a : op(OpKind::kWhere, {condition, a, b}, Dtype::kIndex);
}

std::vector<ValueId> KernelBuilder::effect(OpKind kind, std::vector<ValueId> operands, std::vector<Dtype> results,
                                           Attrs attrs) {
  std::vector<ValueId> values;
  for (Dtype d : results) values.push_back(new_scalar(d, 'v'));
  append(graph_, region(), Op{kind, std::move(operands), values, std::move(attrs), {}});
  return values;
}

ValueId KernelBuilder::load(ValueId buffer, ValueId at, ValueId predicate, ValueId otherwise, Attrs attrs) {
  return effect(OpKind::kLoad, {buffer, at, predicate, otherwise}, {graph_[buffer].dtype}, std::move(attrs))[0];
}

void KernelBuilder::store(ValueId buffer, ValueId at, ValueId value, ValueId predicate, Attrs attrs) {
  effect(OpKind::kStore, {buffer, at, value, predicate}, {}, std::move(attrs));
}

ValueId KernelBuilder::begin_for(ValueId start, ValueId stop, ValueId step, bool unroll) {
  Attrs attrs;
  if (unroll) attrs.set_flag(AttrKey::kUnroll);
  const RegionId body = add_region(graph_);
  const ValueId index = new_scalar(Dtype::kIndex, 'i');
  graph_[body].index = index;
  graph_[index].index_of = body;
  append(graph_, region(), Op{OpKind::kFor, {start, stop, step}, {}, std::move(attrs), {body}});
  scopes_.push_back({body, {}});
  return index;
}

void KernelBuilder::begin_if(ValueId predicate) {
  const RegionId body = add_region(graph_);
  append(graph_, region(), Op{OpKind::kIf, {predicate}, {}, {}, {body}});
  scopes_.push_back({body, {}});
}

void KernelBuilder::begin_else() {
  const RegionId body = add_region(graph_);
  graph_[last()].regions.push_back(body);
  scopes_.push_back({body, {}});
}

void KernelBuilder::end() {
  ended_ = std::move(scopes_.back());
  scopes_.pop_back();
}

OpId KernelBuilder::last() const {
  const auto& ops = graph_[region()].ops;
  return ops.empty() ? OpId() : ops.back();
}

void KernelBuilder::reopen_if() {
  const RegionId inside = graph_[last()].regions[0];
  scopes_.push_back(ended_.region == inside ? std::move(ended_) : Scope{inside, {}});
}

ValueId KernelBuilder::allocate(Dtype dtype, MemoryType memory, ValueId size, ValueId offset, int64_t align,
                                std::string_view name) {
  const ValueId buffer = new_buffer(dtype, memory, name, size);
  Attrs attrs;
  attrs.set_enum(AttrKey::kMemory, memory);
  if (align > 0) attrs.set(AttrKey::kAlign, align);
  append(graph_, region(), Op{OpKind::kAllocate, {size, offset}, {buffer}, std::move(attrs), {}});
  return buffer;
}

ValueId KernelBuilder::tensor_parameter(Dtype dtype, std::string_view name) {
  const ValueId buffer = new_buffer(dtype, MemoryType::kGlobal, name, {});
  parameters_.push_back(OpId(graph_.ops.size()));
  graph_[buffer].def = parameters_.back();
  graph_.ops.push_back(Op{OpKind::kInput, {}, {buffer}, {}, {}});
  return buffer;
}

ValueId KernelBuilder::scalar_parameter(Dtype dtype, std::string_view name) {
  const ValueId v = new_value(dtype, name);
  parameters_.push_back(OpId(graph_.ops.size()));
  graph_[v].def = parameters_.back();
  graph_.ops.push_back(Op{OpKind::kInput, {}, {v}, {}, {}});
  return v;
}

Graph KernelBuilder::finish() {
  auto& body = graph_[Graph::body()].ops;
  body.insert(body.begin(), parameters_.begin(), parameters_.end());
  return std::move(graph_);
}

}  // namespace fusebox
