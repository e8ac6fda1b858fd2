// The verifier: every invariant of graph.h, the op table, the type and shape rules, and the domains of tensors. It
// answers for any Graph value, also one whose ids point nowhere: decoders and fuzzers lean on it.
//
// What a graph that verifies guarantees:
// - every id is in range; a value is defined once, before its uses, in a region that encloses them; names are there and
//   unique;
// - ops stand at a level that they may stand at, with the operands, attributes, results and regions of their row;
// - results have the dtypes of type_rule.h (in a kernel a pointwise result may be rounded further) and the ranks of
//   infer.h; corresponding axes have equal constant extents, and no operand's axis is longer than a broadcast axis of
//   its result;
// - a tensor's transforms stand in an order in which they can be applied, make each domain once, and lead from root to
//   logical domain; its loop domain gives every logical axis (broadcasts aside) exactly one way to be computed; so does
//   its allocation domain.
// Not checked: what depends on values (bind_sizes, scalar.h) and whether a schedule computes the right thing (`legal`,
// passes).
//
//   if (auto e = find_error(g)) report(code_text(e->code), e->place);
#pragma once

#include <optional>

#include "ir/graph/graph.h"
#include "ir/infer/bind.h"
#include "ir/module/module.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"

namespace fusebox {

// Nothing, or the first thing that is wrong.
std::optional<Error> find_error(const Graph& g, const Defects& defects = {});
void verify(const Graph& g, const Defects& defects = {});

// Of a module: each graph; names unique at each level; step lists, segmentations and input specs name a graph that is
// there, and values of it; a launch names a kernel of the module whose inputs are of the kinds and dtypes that it is
// given.
std::optional<Error> find_error(const Module& m);
void verify(const Module& m);

}  // namespace fusebox
