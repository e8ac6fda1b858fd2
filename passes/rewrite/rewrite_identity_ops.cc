// identity_ops skips pointwise ops that give one of their operands back, bit by bit. −0 is not 0, so floats keep x + 0.
#include "ir/scalar/constant_number.h"
#include "ir/scalar/numeric.h"
#include "passes/rewrite/rewrite_edit.h"
#include "passes/rewrite/wide_product.h"

namespace fusebox {
namespace {

bool is_all_ones(const Graph& g, ValueId v) {
  return g.is_constant(v) && is_signed(g[v].dtype) && to_int64(g[v].dtype, *g[v].constant) == -1;
}

bool rounds_to_integer(OpKind kind) {
  return kind == OpKind::kCeil || kind == OpKind::kFloor || kind == OpKind::kRound || kind == OpKind::kTrunc;
}

// The position of the operand that the op gives back, or −1.
int same_operand(const Graph& g, const Op& op, const std::vector<ValueId>& operands, const Defects& defects) {
  const Dtype dtype = g[op.results[0]].dtype;
  const auto first_or_second = [&](const auto& is_neutral) {
    return is_neutral(operands[1]) ? 0 : is_neutral(operands[0]) ? 1 : -1;
  };
  switch (op.kind) {
    case OpKind::kSet:
      return op.attrs.empty() ? 0 : -1;
    case OpKind::kCast:
      return 0;  // `fits` refuses a cast to another dtype
    case OpKind::kWhere:
      if (operands[1] == operands[2]) return 1;
      if (!g.is_constant(operands[0])) return -1;
      return to_bool(g[operands[0]].dtype, *g[operands[0]].constant) ? 1 : 2;
    default:  // any other: is looked at below
      break;
  }
  if (!is_real(dtype)) return -1;
  const bool integral = !is_floating(dtype);
  switch (op.kind) {
    case OpKind::kAdd:
      return first_or_second([&](ValueId c) {
        return is_number(g, c, integral ? 0.0 : -0.0) ||
               (is_number(g, c, 0.0) && defects.has(Defect::kIdentityNegativeZero));
      });
    case OpKind::kSub:
      return is_number(g, operands[1], 0.0) ? 0 : -1;
    case OpKind::kMul:
      return first_or_second([&](ValueId c) { return is_number(g, c, 1.0); });
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return is_number(g, operands[1], 1.0) ? 0 : -1;
    case OpKind::kBitwiseOr:
    case OpKind::kBitwiseXor:
      if (op.kind == OpKind::kBitwiseOr && operands[0] == operands[1]) return 0;
      return first_or_second([&](ValueId c) { return is_number(g, c, 0.0); });
    case OpKind::kBitwiseAnd:
      if (operands[0] == operands[1]) return 0;
      return first_or_second([&](ValueId c) { return is_all_ones(g, c); });
    case OpKind::kBitwiseLeftShift:
    case OpKind::kBitwiseRightShift:
    case OpKind::kLogicalRightShift:
      return is_number(g, operands[1], 0.0) ? 0 : -1;
    case OpKind::kLogicalAnd:
    case OpKind::kLogicalOr:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
      return operands[0] == operands[1] ? 0 : -1;
    default:  // any other: stays, which is never wrong
      return -1;
  }
}

// neg (neg x) is x, floor (ceil x) is ceil x, and abs (abs x) is abs x.
ValueId through_unary(const Graph& g, const Rewriter& r, OpId id) {
  const Op& op = g[id];
  const ValueId inner = r.operand(id, 0);
  if (!g[inner].def || !is_real(g[op.results[0]].dtype)) return ValueId();
  const OpKind below = g[g[inner].def].kind;
  if (op.kind == OpKind::kNeg && below == OpKind::kNeg) return r.operand(g[inner].def, 0);
  const bool again = (op.kind == OpKind::kAbs && below == OpKind::kAbs) ||
                     (op.kind == OpKind::kRelu && below == OpKind::kRelu) ||
                     (rounds_to_integer(op.kind) && rounds_to_integer(below));
  return again ? inner : ValueId();
}

void skip_identities(Graph& g, Rewriter& r, const RewriteOptions& options) {
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (!demands(op.kind, kPointwise) || op.results.size() != 1 || op.operands.empty()) continue;
    std::vector<ValueId> operands;
    for (size_t i = 0; i < op.operands.size(); ++i) operands.push_back(r.operand(id, i));
    const ValueId v = op.results[0];
    // The seeded defect: x · 0 becomes 0, with the shape of x.
    if (op.kind == OpKind::kMul && is_number(g, operands[1], 0.0) && g.is_tensor(operands[0]) &&
        options.defects.has(Defect::kIdentityTimesZero) && r.take(v)) {
      const ValueId never = constant(g, Dtype::kBool, {});
      r.set_operands(id, {never, operands[0], operands[1]});
      g[id].kind = OpKind::kWhere;
      continue;
    }
    ValueId by = operands[0] ? through_unary(g, r, id) : ValueId();
    if (const int same = by ? -1 : same_operand(g, op, operands, options.defects); same >= 0)
      by = operands[static_cast<size_t>(same)];
    // A product of 16 bits may stay wide. Then this op's rounding is the only one, so it stays.
    const bool copies = op.kind == OpKind::kSet || op.kind == OpKind::kCast || op.kind == OpKind::kWhere;
    if (by && !copies && has_numbers_of_wide_product(g, r, by)) continue;
    if (by && r.fits(v, by)) r.replace(v, by);
  }
}

}  // namespace

bool identity_ops(Graph& g, const RewriteOptions& options) { return rewrite_readers(g, options, skip_identities); }

}  // namespace fusebox
