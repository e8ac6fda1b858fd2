// The shape rules behind infer.h. Not for use outside ir/.
//
// Invariants: a rule reads the operands' axes and returns one ResultSpec for each result, before the results are made.
// An axis describes a domain as a consumer sees it.
//
//   InferContext c{g, Graph::body(), OpKind::kAdd, {x, y}, attrs, {}, 1};
//   const ResultSpec sum = infer_pointwise(c)[0];   // sum.dtype, sum.axes
//   make_domains(g, tensor, sum);                   // i0, i1, …
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/reshape_groups.h"
#include "ir/scalar/scalar.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"

namespace fusebox {

struct Axis {
  IterType type = IterType::kIteration;
  ValueId extent;    // the extent of its loop: the constant 1 for a broadcast
  ValueId expanded;  // only for an expanded broadcast: its size
  // If set, the axis is a root axis of the extent above, resized by these two.
  ValueId left, right;

  bool is_broadcast() const { return type == IterType::kBroadcast; }
  ValueId size() const { return expanded ? expanded : extent; }
};

struct ResultSpec {
  ValueKind kind = ValueKind::kScalar;
  Dtype dtype = Dtype::kIndex;
  std::vector<Axis> axes;  // logical
  // Only for a reshape: `root` has the operand's axes. `groups` has pairs of counts: so many operand axes merge and
  // split into so many result axes. Axes of the constant extent 1 do not count. Without groups the axes are symbolic.
  bool is_reshape = false;
  std::vector<Axis> root;
  std::vector<int64_t> groups;
  std::vector<size_t> allocation;  // positions in `axes`, outermost first; empty: in order
  std::vector<Contiguity> contiguity;
  MemoryType memory = MemoryType::kUnset;
};

// An op that is being checked.
struct OpView {
  const Graph& g;
  OpKind kind;
  std::span<const ValueId> operands;
  const Attrs& attrs;
  std::array<SlotRange, kMaxSlots> slots{};

  std::span<const ValueId> slot(size_t i) const { return operands.subspan(slots[i].begin, slots[i].count); }
  ValueId operand(size_t i) const { return i < operands.size() ? operands[i] : ValueId(); }
};
// Checks that throw: the operands against the op's format (fills in `slots`), the attributes against its row, an output
// against its alias, and the operands of kernel and host ops.
void check_format(OpView& op);
void check_attrs(const OpView& op);
void check_output(const OpView& op);
void check_low_level(const OpView& op);

// One op under inference. A rule may replace operands (a −1 in the shape of a reshape) and emit scalars at `place`.
struct InferContext {
  Graph& g;
  scalar::Place place;
  OpKind kind;
  std::vector<ValueId> operands;
  const Attrs& attrs;
  std::optional<Dtype> declared;
  size_t name_count = 0;
  std::array<SlotRange, kMaxSlots> slots{};
  Defects defects = {};

  // The operands of a slot of the format. An absent optional operand is a null id.
  std::span<const ValueId> slot(size_t i) const { return {operands.data() + slots[i].begin, slots[i].count}; }
  ValueId operand(size_t i) const { return i < operands.size() ? operands[i] : ValueId(); }
  OpView view() const { return {g, kind, operands, attrs, slots}; }
};

[[noreturn]] void fail(const Graph& g, ErrorCode code, const std::string& message, ValueId place);
std::string op_text(OpKind kind);

// The axes that consumers see. Emits the extents of derived domains.
std::vector<Axis> axes_of(InferContext& c, ValueId tensor);
// Casts a shape operand to index. Throws if it is no integer or a negative constant.
ValueId checked_size(InferContext& c, ValueId size);
Axis axis_of_size(Graph& g, ValueId size);  // broadcast for the constant 1, else iteration
Axis broadcast_axis(Graph& g, ValueId expanded = {});
// A broadcast or symbolic axis becomes an iteration over its size. An iteration stays as it is.
Axis materialised(const Axis& axis);
bool is_one(const Graph& g, ValueId v);
// Whether this is the size of an axis that became a broadcast: `set 1`.
bool is_fixed_to_one(const Graph& g, ValueId size);
// The axis counted from 0; a negative axis counts from the end. Throws kBadAxis if it is out of range or named twice.
size_t checked_axis(const InferContext& c, int64_t axis, size_t rank);
std::vector<size_t> checked_axes(const InferContext& c, std::span<const int64_t> axes, size_t rank);
// The result's axis for the axes of pointwise operands. An error has one of `places`, the operands, as its place.
Axis combine(const InferContext& c, std::span<const Axis> axes, std::span<const ValueId> places, size_t index);

// -- rules by family
ResultSpec tensor_spec(const InferContext& c, Dtype dtype, std::vector<Axis> axes);
std::vector<ResultSpec> infer_pointwise(InferContext& c);
std::vector<ResultSpec> infer_reduction(InferContext& c);
ResultSpec infer_metadata(InferContext& c);  // broadcast … stride_order, pad
ResultSpec infer_reshape(InferContext& c);
ResultSpec infer_factory(InferContext& c);                 // full, iota, uniform, normal
ResultSpec infer_indexed(InferContext& c);                 // cat, select … triu
std::vector<ResultSpec> infer_library(InferContext& c);    // matmul, cumsum … index_put_accumulate
std::vector<ResultSpec> infer_low_level(InferContext& c);  // kernel and host ops

// Makes the domains of a tensor. Domains that it has already are discarded.
void make_domains(Graph& g, TensorId tensor, const ResultSpec& spec);

}  // namespace fusebox
