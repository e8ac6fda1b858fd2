// The canonical form of a program: what digests, cache keys and generated code are made from, so that the order of
// creation, a dead node or a new name changes none of them.
//
// Its roots are the signature (inputs in order, used or not; outputs in order, with aliases) and every effect. Pure
// nodes that a root needs are numbered depth-first in operand order; effects and reads of a region keep their order;
// each size is an op of its own, at its first use. Values are named v0, v1, … in text order, the domains of a tensor
// d0, d1, …; a program has no name. A list that says what its default says is left out.
//
// Laws: canonicalize(canonicalize(g)) == canonicalize(g); same_program(a, b) exactly if their canonical bytes are
// equal; two programs of equal canonical bytes generate the same code. All of it is for graphs that verify.
//
//   Graph a = …; Graph b = a; b[x].name = "renamed";  same_program(a, b) && digest(a) == digest(b) && !(a == b)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/canonical/digest.h"
#include "ir/graph/graph.h"
#include "ir/module/module.h"
#include "ir/module/step.h"
#include "ir/table/defect.h"

namespace fusebox {

Graph canonicalize(const Graph& g, const Defects& defects = {});
// In the canonical order and without what is dead, but with the program's own names: what planning and lowering start
// from, so that nothing they make depends on the order of creation.
Graph canonical_order(const Graph& g, const Defects& defects = {});
// For each value of `g` its name in the canonical form; empty for constants and for what is dead.
std::vector<std::string> canonical_names(const Graph& g);
// Every field of the canonical form but names, as bytes: a format of its own, compared and hashed, never decoded.
std::string canonical_bytes(const Graph& g, const Defects& defects = {});
bool same_program(const Graph& a, const Graph& b);

// Steps as they stand, names included; those of a graph with its values' and domains' names replaced by canonical ones.
std::string canonical_bytes(std::span<const Step> steps, const Defects& defects = {});
std::string canonical_bytes(const Graph& g, std::span<const Step> steps, const Defects& defects = {});
// A segmentation of a graph: segments in the canonical order of their ops, without names and dead ops.
std::string canonical_bytes(const Graph& g, const Segmentation& s, const Defects& defects = {});

Digest digest(const Graph& g, const Defects& defects = {});
Digest digest(std::span<const Step> steps, const Defects& defects = {});
Digest digest(const Graph& g, std::span<const Step> steps, const Defects& defects = {});
Digest digest(const Graph& g, const Segmentation& s, const Defects& defects = {});
// Of text, such as generated code.
Digest digest(std::string_view text);

}  // namespace fusebox
