// The shape rules behind infer.h: what the results of an op are, before they are made. Not for use outside ir/.
//
// A rule reads the operands' axes and answers with one ResultSpec a result. An axis is what a consumer sees of a
// domain.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"

namespace fusebox {

struct Axis {
  IterType type = IterType::kIteration;
  ValueId extent;    // of a loop over it: the constant 1 at a broadcast
  ValueId expanded;  // of an expanded broadcast
  // Set: the axis is a resize of a root axis with the extent above.
  ValueId left, right;

  bool is_broadcast() const { return type == IterType::kBroadcast; }
  ValueId size() const { return expanded ? expanded : extent; }
};

struct ResultSpec {
  ValueKind kind = ValueKind::kScalar;
  Dtype dtype = Dtype::kIndex;
  std::vector<Axis> axes;  // logical
  // A reshape: the operand's axes, and how those of an extent other than the constant 1 merge and split, as pairs of
  // counts. Without groups the axes are symbolic.
  bool is_reshape = false;
  std::vector<Axis> root;
  std::vector<int64_t> groups;
  std::vector<size_t> allocation;  // axes, outermost first; empty: in order
  std::vector<Contiguity> contiguity;
  MemoryType memory = MemoryType::kUnset;
};

// An op to be checked.
struct OpView {
  const Graph& g;
  OpKind kind;
  std::span<const ValueId> operands;
  const Attrs& attrs;
  std::array<SlotRange, kMaxSlots> slots{};

  std::span<const ValueId> slot(size_t i) const { return operands.subspan(slots[i].begin, slots[i].count); }
  ValueId operand(size_t i) const { return i < operands.size() ? operands[i] : ValueId(); }
};
// Operands against the op's format (fills in `slots`), attributes against its row, an alias against its output, and
// what kernel and host ops ask of their operands. Throw.
void check_format(OpView& op);
void check_attrs(const OpView& op);
void check_output(const OpView& op);
void check_low_level(const OpView& op);

// One op under inference. Operands may be rewritten (a −1 in the shape of a reshape); scalars may be emitted at
// `place`.
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

  // The operands of a slot of the format; an absent optional one is a null id.
  std::span<const ValueId> slot(size_t i) const { return {operands.data() + slots[i].begin, slots[i].count}; }
  ValueId operand(size_t i) const { return i < operands.size() ? operands[i] : ValueId(); }
  OpView view() const { return {g, kind, operands, attrs, slots}; }
};

[[noreturn]] void fail(const Graph& g, ErrorCode code, const std::string& message, ValueId place);
std::string op_text(OpKind kind);

// The axes that consumers see; extents of derived domains are emitted.
std::vector<Axis> axes_of(InferContext& c, ValueId tensor);
// A shape operand as an extent: an integer, 0 or more, made an index.
ValueId checked_size(InferContext& c, ValueId size);
Axis axis_of_size(Graph& g, ValueId size);  // broadcast for the constant 1, else iteration
Axis broadcast_axis(Graph& g, ValueId expanded = {});
// A broadcast made an iteration over its size; any other axis as it is.
Axis materialised(const Axis& axis);
bool is_one(const Graph& g, ValueId v);
// An axis from 0 to rank − 1, given as such or counted from the end.
size_t checked_axis(const InferContext& c, int64_t axis, size_t rank);
std::vector<size_t> checked_axes(const InferContext& c, std::span<const int64_t> axes, size_t rank);
// What axes of pointwise operands become together; `places` names the operands.
Axis combine(const InferContext& c, std::span<const Axis> axes, std::span<const ValueId> places, size_t index);

// -- rules by family; each is called for the ops it names
ResultSpec tensor_spec(const InferContext& c, Dtype dtype, std::vector<Axis> axes);
std::vector<ResultSpec> infer_pointwise(InferContext& c);
std::vector<ResultSpec> infer_reduction(InferContext& c);
ResultSpec infer_metadata(InferContext& c);  // broadcast … stride_order, pad
ResultSpec infer_reshape(InferContext& c);
ResultSpec infer_factory(InferContext& c);                 // full, iota
ResultSpec infer_indexed(InferContext& c);                 // cat, select … triu
std::vector<ResultSpec> infer_low_level(InferContext& c);  // kernel and host ops

// Groups of a reshape between these sizes, those of the constant 1 left out; nothing if the products are not provably
// equal.
std::optional<std::vector<int64_t>> reshape_groups(std::span<const ScalarForm> from, std::span<const ScalarForm> to);
// Makes the domains of a tensor that has none (or discards those it has).
void make_domains(Graph& g, TensorId tensor, const ResultSpec& spec);

}  // namespace fusebox
