// Type and shape rules: an op's kind, operands and attributes give the dtypes and domains of its results. The rules are
// ATen's. Pointwise operands have equal rank (builder.h aligns ranks as NumPy does).
//
// Invariants: `verify` accepts every op that `add_op` accepts. If `add_op` throws, the graph stays as it was, apart
// from scalars that nothing refers to. A result's domains are named i0, i1, … in its logical domain, r0, r1, … in a
// root domain of its own (reshape, slice, pad), and m0, m1, … between the two.
// - A pointwise axis is an iteration if an operand's axis is one, with the extent of the first such axis. Otherwise it
//   is symbolic if an operand's axis is; otherwise it is a broadcast, expanded if an operand's axis is. Two constant
//   extents must be equal. bind_sizes (bind.h) compares different symbols.
// - A scalar operand takes the tensors' dtype if its class is not higher (bool < integer < floating < complex). A
//   constant that this dtype cannot hold is refused (scalar_operand.h).
// - A reduction's result keeps its reduced axes in `logical` as IterType::kReduction. Consumers see the other axes.
// - Extents that follow from transforms become scalar ops before their first consumer, one op for each value.
// - Slice bounds are ATen's: a negative bound counts from the end, each bound is clamped, and a stop before its start
//   leaves nothing. A bound that is one size is not clamped, so that the slice's extent keeps this size; bind_sizes
//   checks that the size lies in the axis. Write `minimum %m, %n` to clamp it.
// - A reshape drops and makes axes of extent 1 without a transform. Its other axes merge and split in groups. If the
//   groups do not follow from the extents, the result's axes are symbolic until concretize_reshape (concretize.h). A
//   reshape to or from rank 0 merges and splits nothing: each axis has extent 1 and is read at index 0.
// - Ops of kernel and host level take scalars where a fusion has tensors. `declared` is then the result's dtype.
//
//   // f32[%m, %n] from f32[%m, %n] and bf16[1, %n]
//   OpId op = add_op(g, Graph::body(), OpKind::kMul, {x, y}, {}, {"z"});
//   ValueId z = g[op].results[0];
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/bind.h"
#include "ir/table/defect.h"

namespace fusebox {

// Appends an op with its results and regions. Results get the given names; an empty or missing name asks for a fresh
// one. `size` has one result for each name. `for` and `post` get one region, and that of `for` gets its index; `if`
// gets one region, and the caller may add a second. `declared` is the dtype of a result that cannot be inferred
// (allocate, allocate_tensor, communicate) or, at kernel level, the dtype that a pointwise result is rounded to. The
// type of `input` is not inferred: input() in builder.h makes it.
OpId add_op(Graph& g, RegionId region, OpKind kind, std::vector<ValueId> operands, Attrs attrs = {},
            std::vector<std::string> names = {}, std::optional<Dtype> declared = {});

// Infers the results of an op in a region again, after an operand's domains changed. Results keep their ids and names;
// missing results are made. Axes of an expand or broadcast_in_dim that are concretized stay so.
void infer(Graph& g, OpId op, std::optional<Dtype> declared = {}, const Defects& defects = {});

// The op of this name. Throws kUnsupportedOp for a known op without a row (rand_like, scan, matmul, sort,
// attention, quantize), kUnknownOp for any other name.
OpKind op_named(std::string_view text);

}  // namespace fusebox
