// Shape rules of ops that ATen alone computes: domains from the description in library_shape.h.
#include "ir/infer/infer_rules.h"
#include "ir/infer/library_shape.h"

namespace fusebox {
namespace {

// Refuses two axes whose known extents differ. A symbolic axis is checked once it is resolved.
void check_equal(const InferContext& c, const std::vector<std::vector<Axis>>& axes, OperandPlace a, OperandPlace b) {
  const Axis &x = axes[a.operand][a.axis], &y = axes[b.operand][b.axis];
  if (x.type == IterType::kSymbolic || y.type == IterType::kSymbolic) return;
  const auto n = constant_integer(c.g, x.size()), m = constant_integer(c.g, y.size());
  if (n && m && *n != *m)
    fail(c.g, ErrorCode::kShapeMismatch,
         op_text(c.kind) + " needs equal extents, here " + std::to_string(*n) + " on axis " + std::to_string(a.axis) +
             " and " + std::to_string(*m) + " on axis " + std::to_string(b.axis) + " of its operands",
         c.operands[b.operand]);
}

// Refuses a first axis that is known to be longer than the second.
void check_within(const InferContext& c, const std::vector<std::vector<Axis>>& axes, OperandPlace a, OperandPlace b) {
  const Axis &x = axes[a.operand][a.axis], &y = axes[b.operand][b.axis];
  if (x.type == IterType::kSymbolic || y.type == IterType::kSymbolic) return;
  const auto n = constant_integer(c.g, x.size()), m = constant_integer(c.g, y.size());
  if (n && m && *n > *m)
    fail(c.g, ErrorCode::kShapeMismatch,
         op_text(c.kind) + " has extent " + std::to_string(*n) + " on axis " + std::to_string(a.axis) +
             " where the tensor has " + std::to_string(*m) + "; it must not be longer",
         c.operands[a.operand]);
}

}  // namespace

std::vector<ResultSpec> infer_library(InferContext& c) {
  const LibraryShape shape = library_shape(c.view());
  std::vector<std::vector<Axis>> axes(c.operands.size());
  for (size_t k = 0; k < c.operands.size(); ++k)
    if (c.operands[k] && c.g.is_tensor(c.operands[k])) axes[k] = axes_of(c, c.operands[k]);
  for (const auto& [a, b] : shape.equal) check_equal(c, axes, a, b);
  for (const auto& [count, place] : shape.at_most) {
    const Axis& axis = axes[place.operand][place.axis];
    const auto n = constant_integer(c.g, c.operands[count]), m = constant_integer(c.g, axis.size());
    if (n && m && axis.type != IterType::kSymbolic && *n > *m)
      fail(c.g, ErrorCode::kShapeMismatch,
           op_text(c.kind) + " takes " + std::to_string(*n) + " elements of an axis of " + std::to_string(*m) +
               "; take no more than it has",
           c.operands[count]);
  }
  for (const auto& [a, b] : shape.within) check_within(c, axes, a, b);
  std::vector<ResultSpec> specs;
  for (const LibraryResult& result : shape.results) {
    std::vector<Axis> made;
    for (size_t i = 0; i < result.axes.size(); ++i) {
      const LibraryAxis& from = result.axes[i];
      if (from.from.empty()) {
        made.push_back(axis_of_size(c.g, checked_size(c, c.operands[from.extent])));
        continue;
      }
      std::vector<Axis> meeting;
      std::vector<ValueId> places;
      for (const OperandPlace& p : from.from) {
        meeting.push_back(axes[p.operand][p.axis]);
        places.push_back(c.operands[p.operand]);
      }
      const Axis axis = combine(c, meeting, places, i);
      // ATen's results repeat no element.
      made.push_back(axis.expanded ? materialised(axis) : axis);
    }
    specs.push_back(tensor_spec(c, result.dtype, std::move(made)));
  }
  return specs;
}

}  // namespace fusebox
