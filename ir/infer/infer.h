// Type and shape rules: from an op's kind, operands and attributes to its result values with dtype and domains. The
// rules are ATen's, with names and argument order of OPS.md; pointwise operands have equal rank (builder.h aligns ranks
// as NumPy does).
//
// Invariants: what `add_op` accepts also passes `verify`; what it refuses leaves the graph as it was, apart from
// scalars that nothing refers to. A result's domains are named i0, i1, … in its logical domain, r0, r1, … where it has
// a root domain of its own (reshape, slice, pad), m0, … between the two.
// - A pointwise axis is iteration if one operand's is, with the extent of the first such; else symbolic if one is; else
//   broadcast, expanded if one is. Two constant extents must be equal; two different symbols are compared by
//   bind_sizes (scalar.h).
// - A scalar operand of the same or a lower class (bool < integer < floating < complex) than the tensors leaves their
//   dtype, and takes it; a constant that this cannot hold is refused (scalar_operand.h).
// - A reduction's result keeps its reduced axes in `logical` as IterType::kReduction; consumers see the others.
// - Extents that follow from transforms are emitted before their first consumer as scalar ops, one for each value.
// - Slice bounds are ATen's: negative ones count from the end, all clamp, and a stop before its start leaves nothing.
//   One size by itself does not clamp, so that the slice is as long as whatever else has that size: bind_sizes checks
//   that it lies in the extent. `minimum %m, %n` clamps.
// - A reshape drops and makes broadcast axes of extent 1 without a transform; the others merge and split in groups. If
//   the groups do not follow from the extents, the result's axes are symbolic until concretize_reshape (concretize.h).
//   A reshape to or from rank 0 has no root: every operand axis has extent 1 and is read at index 0.
// - Ops of kernel and host level take scalars where a fusion has tensors; `declared` is then the result's dtype.
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

// Appends an op with its results, named as given (an empty or missing name: a fresh one), and the regions that its
// format asks for (`for`, `post`: one; `if`: one, a second is the caller's; a `for` region has its index). `declared`:
// the dtype of what cannot be inferred (allocate, allocate_tensor, communicate) and, at kernel level, the dtype to
// which a pointwise result is rounded. `size` has one result for each name. `input` is not made here: its type is not
// inferred (see input() in builder.h).
OpId add_op(Graph& g, RegionId region, OpKind kind, std::vector<ValueId> operands, Attrs attrs = {},
            std::vector<std::string> names = {}, std::optional<Dtype> declared = {});

// Infers again the results of an op that stands in a region, keeping their ids and names: after an operand's domains
// changed. Results that the op does not have yet are made. What was concretized at an expand or broadcast_in_dim stays
// so.
void infer(Graph& g, OpId op, std::optional<Dtype> declared = {}, const Defects& defects = {});

// The op of this name; throws kUnsupportedOp for names of OPS.md that have no row (random, scan, matmul, sort,
// attention, quantize), kUnknownOp for others.
OpKind op_named(std::string_view text);

}  // namespace fusebox
