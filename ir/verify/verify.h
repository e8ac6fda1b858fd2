// The verifier checks every invariant of graph.h, the op table, the type and shape rules, and the domains of tensors.
// It takes any Graph value, even one whose ids point nowhere: decoders and fuzzers rely on this.
//
// A graph that verifies guarantees:
// - Every id is in range. A value is defined once, before its uses, in a region that encloses them. Every defined value
//   has a name, and names are unique.
// - An op stands at a level of its row, and has the operands, attributes, results and regions of its row.
// - Results have the dtypes of type_rule.h (in a kernel a pointwise result may be rounded further) and the ranks of
//   infer.h. Corresponding axes have equal constant extents. No operand's axis is longer than a broadcast axis of its
//   result.
// - A tensor's transforms stand in an order in which they can be applied, make each domain once, and lead from the root
//   to the logical domain. The loop domain gives every logical axis but broadcasts in exactly one way. The allocation
//   domain gives every logical axis but broadcasts and reductions in exactly one way.
// The verifier does not check extents that depend on inputs: bind_sizes (bind.h) does. It does not check whether a
// schedule computes the right thing: `legal` (passes) does.
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

// The first error, or nothing. `verify` throws this error.
std::optional<Error> find_error(const Graph& g, const Defects& defects = {});
void verify(const Graph& g, const Defects& defects = {});

// The same for a module. Each graph verifies, and graphs of one level have different names. Step lists, segmentations
// and input specs name graphs of the module and values of these graphs. A launch names a kernel of the module and gives
// it arguments of the right kinds and dtypes.
std::optional<Error> find_error(const Module& m);
void verify(const Module& m);

}  // namespace fusebox
