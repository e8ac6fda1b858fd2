#include "ir/domain/joined_axis.h"

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"

namespace fusebox {

std::optional<JoinedAxis> joined_axis(const Graph& g, OpId id, size_t operand) {
  const Op& op = g[id];
  if (op.kind != OpKind::kCat || operand >= op.operands.size()) return std::nullopt;
  const auto& to = root_of(g.tensor_of(op.results[0]));
  const size_t axis = named_axis(op.attrs.integer(AttrKey::kAxis), to.size());
  JoinedAxis result;
  std::optional<ScalarForm> left = ScalarForm::of(0), right = ScalarForm::of(0);
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const auto axes = logical_without_reductions(g, g.tensor_of(op.operands[k]));
    if (axis >= axes.size() || axis >= to.size()) return std::nullopt;
    if (k == operand) {
      result.operand = axes[axis];
      continue;
    }
    const auto length = size_form(g, axes[axis]);
    auto& side = k < operand ? left : right;
    side = length && side ? add(*side, *length) : std::nullopt;
  }
  if (!left || !right || g[result.operand].iter_type != IterType::kIteration) return std::nullopt;
  result.result = to[axis];
  result.left = *std::move(left);
  result.right = *std::move(right);
  return result;
}

TransformId joining_resize(const Graph& g, TensorId operand, const JoinedAxis& axis) {
  for (TransformId id : g[operand].transforms) {
    const Transform& t = g[id];
    if (t.kind == TransformKind::kResize && t.inputs[0] == axis.operand && form_of(g, t.factor).equals(axis.left) &&
        form_of(g, t.right).equals(axis.right))
      return id;
  }
  return {};
}

}  // namespace fusebox
