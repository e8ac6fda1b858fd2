#include "ir/scalar/scalar.h"

#include <algorithm>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/type_rule.h"

namespace fusebox {
namespace scalar {
namespace {

bool is_integral(const Graph& g, ValueId v) { return is_integer(g[v].dtype); }
bool is_integer_constant(const Graph& g, ValueId v, int64_t wanted) {
  return g.is_constant(v) && is_integral(g, v) && constant_integer(g, v) == wanted;
}

// The same value, or equal constants: a graph read from bytes may hold one constant under several ids.
bool is_same(const Graph& g, ValueId a, ValueId b) {
  return a == b ||
         (a && b && g.is_constant(a) && g.is_constant(b) && g[a].dtype == g[b].dtype && g[a].constant == g[b].constant);
}

Dtype infer_dtype(const Graph& g, OpKind kind, const std::vector<ValueId>& operands, const Attrs& attrs) {
  std::vector<OperandType> types;
  types.reserve(operands.size());
  for (ValueId v : operands) types.push_back({g[v].dtype, true, g[v].name});
  return result_dtype(kind, types, attrs);
}

std::optional<ValueId> fold(Graph& g, OpKind kind, const std::vector<ValueId>& operands, Dtype dtype) {
  std::vector<TypedBits> bits;
  for (ValueId v : operands) {
    if (!g.is_constant(v)) return std::nullopt;
    bits.push_back({g[v].dtype, *g[v].constant});
  }
  const auto value = evaluate_op(kind, dtype, bits);
  if (!value) return std::nullopt;
  return constant(g, dtype, *value);
}

// The operand or constant that the op always equals, or nothing. The laws hold for all integer and bool operands.
std::optional<ValueId> simplify(Graph& g, OpKind kind, const std::vector<ValueId>& v, Dtype dtype) {
  if (kind == OpKind::kWhere) {
    if (g.is_constant(v[0])) return to_bool(Dtype::kBool, *g[v[0]].constant) ? v[1] : v[2];
    if (is_same(g, v[1], v[2])) return v[1];
    return std::nullopt;
  }
  if (kind == OpKind::kLogicalAnd || kind == OpKind::kLogicalOr) {
    // One operand decides alone: false for `and`, true for `or`.
    const bool decides = kind == OpKind::kLogicalOr;
    for (int i : {0, 1}) {
      const ValueId c = v[static_cast<size_t>(i)], other = v[static_cast<size_t>(1 - i)];
      if (!g.is_constant(c) || g[c].dtype != Dtype::kBool || g[other].dtype != Dtype::kBool) continue;
      return to_bool(Dtype::kBool, *g[c].constant) == decides ? c : other;
    }
    if (v[0] == v[1] && g[v[0]].dtype == Dtype::kBool) return v[0];
    return std::nullopt;
  }
  if (v.size() != 2 || !is_integral(g, v[0]) || !is_integral(g, v[1])) return std::nullopt;
  const ValueId a = v[0], b = v[1];
  const auto zero = [&] { return constant(g, dtype, {}); };
  switch (kind) {
    case OpKind::kAdd:
      if (is_integer_constant(g, a, 0)) return b;
      if (is_integer_constant(g, b, 0)) return a;
      return std::nullopt;
    case OpKind::kSub:
      if (is_integer_constant(g, b, 0)) return a;
      if (a == b) return zero();
      return std::nullopt;
    case OpKind::kMul:
      if (is_integer_constant(g, a, 1)) return b;
      if (is_integer_constant(g, b, 1)) return a;
      if (is_integer_constant(g, a, 0) || is_integer_constant(g, b, 0)) return zero();
      return std::nullopt;
    case OpKind::kFloorDiv:
    case OpKind::kCeilDiv:
    case OpKind::kDiv:
      if (is_integer_constant(g, b, 1)) return a;
      if (is_integer_constant(g, a, 0) || is_integer_constant(g, b, 0)) return zero();
      return std::nullopt;
    case OpKind::kFloorMod:
    case OpKind::kMod:
      if (is_integer_constant(g, b, 1) || is_integer_constant(g, a, 0) || is_integer_constant(g, b, 0)) return zero();
      return std::nullopt;
    case OpKind::kMinimum:
    case OpKind::kMaximum:
      if (a == b) return a;
      return std::nullopt;
    case OpKind::kBitwiseXor:
      if (is_integer_constant(g, a, 0)) return b;
      if (is_integer_constant(g, b, 0)) return a;
      return std::nullopt;
    case OpKind::kEq:
    case OpKind::kLe:
    case OpKind::kGe:
      if (a == b) return constant(g, Dtype::kBool, {1, 0});
      return std::nullopt;
    case OpKind::kNe:
    case OpKind::kLt:
    case OpKind::kGt:
      if (a == b) return constant(g, Dtype::kBool, {0, 0});
      return std::nullopt;
    default:  // any other: is not simplified, and that is never wrong
      return std::nullopt;
  }
}

// The result of the same op on the same scalars before the place, or nothing. With it, inference that runs again gives
// the same scalars as before.
std::optional<ValueId> find_same(const Graph& g, Place place, OpKind kind, const std::vector<ValueId>& operands,
                                 const Attrs& attrs, Dtype dtype) {
  const auto same = [&](ValueId a, ValueId b) { return is_same(g, a, b); };
  for (OpId id : g[place.region].ops) {
    if (place.before && id == place.before) break;
    const Op& op = g[id];
    if (op.kind == kind && op.results.size() == 1 && g[op.results[0]].kind == ValueKind::kScalar &&
        g[op.results[0]].dtype == dtype && op.attrs == attrs && std::ranges::equal(op.operands, operands, same))
      return op.results[0];
  }
  return std::nullopt;
}

}  // namespace

Place Place::before_op(const Graph& g, OpId op) {
  for (size_t r = 0; r < g.regions.size(); ++r) {
    const auto& ops = g.regions[r].ops;
    if (std::find(ops.begin(), ops.end(), op) == ops.end()) continue;
    Place place{RegionId(r)};
    place.before = op;
    return place;
  }
  throw Error(ErrorCode::kInternal, "a scalar was asked for before an op that stands in no region");
}

ValueId make(Graph& g, Place place, OpKind kind, std::vector<ValueId> operands, std::optional<Dtype> declared,
             Attrs attrs) {
  const Dtype dtype = declared ? *declared : infer_dtype(g, kind, operands, attrs);
  if (const auto folded = fold(g, kind, operands, dtype)) return *folded;
  if (const auto same = simplify(g, kind, operands, dtype); same && g[*same].dtype == dtype) return *same;
  if (const auto same = find_same(g, place, kind, operands, attrs, dtype)) return *same;
  Op op;
  op.kind = kind;
  op.operands = std::move(operands);
  op.attrs = std::move(attrs);
  const ValueId result = add_scalar(g, dtype, {});
  op.results = {result};
  if (place.before)
    insert_before(g, place.before, std::move(op));
  else
    append(g, place.region, std::move(op));
  return result;
}

namespace {
Attrs nonnegative_attrs(bool nonnegative) {
  Attrs attrs;
  if (nonnegative) attrs.set_flag(AttrKey::kNonNegative);
  return attrs;
}
}  // namespace

ValueId add(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kAdd, {a, b}); }
ValueId sub(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kSub, {a, b}); }
ValueId mul(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kMul, {a, b}); }
ValueId neg(Graph& g, Place p, ValueId a) { return make(g, p, OpKind::kNeg, {a}); }
ValueId floor_div(Graph& g, Place p, ValueId a, ValueId b, bool nonnegative) {
  return make(g, p, OpKind::kFloorDiv, {a, b}, {}, nonnegative_attrs(nonnegative));
}
ValueId floor_mod(Graph& g, Place p, ValueId a, ValueId b, bool nonnegative) {
  return make(g, p, OpKind::kFloorMod, {a, b}, {}, nonnegative_attrs(nonnegative));
}
ValueId ceil_div(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kCeilDiv, {a, b}); }
ValueId minimum(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kMinimum, {a, b}); }
ValueId maximum(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kMaximum, {a, b}); }
ValueId bit_xor(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kBitwiseXor, {a, b}); }
ValueId lt(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kLt, {a, b}); }
ValueId le(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kLe, {a, b}); }
ValueId ge(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kGe, {a, b}); }
ValueId eq(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kEq, {a, b}); }
ValueId logical_and(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kLogicalAnd, {a, b}); }
ValueId logical_or(Graph& g, Place p, ValueId a, ValueId b) { return make(g, p, OpKind::kLogicalOr, {a, b}); }
ValueId logical_not(Graph& g, Place p, ValueId a) { return make(g, p, OpKind::kLogicalNot, {a}); }
ValueId where(Graph& g, Place p, ValueId condition, ValueId a, ValueId b) {
  return make(g, p, OpKind::kWhere, {condition, a, b});
}
ValueId cast(Graph& g, Place p, ValueId a, Dtype dtype) {
  if (g[a].dtype == dtype) return a;
  Attrs attrs;
  attrs.set(AttrKey::kDtypeAttr, dtype);
  return make(g, p, OpKind::kCast, {a}, dtype, std::move(attrs));
}

}  // namespace scalar
}  // namespace fusebox
