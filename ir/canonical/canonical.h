// The canonical form of a program. Digests, cache keys and generated code are made from it, so the order of creation,
// dead nodes and new names change none of them.
//
// The roots of the form are the signature (inputs in order, used or not; outputs in order, with aliases) and every
// effect. Pure nodes that a root needs are numbered depth first in operand order. Effects and reads of a region keep
// their order. Each size is an op of its own and stands at its first use. Values are named v0, v1, … in text order, the
// domains of a tensor d0, d1, …; the program has no name. A list that equals its default is left out.
//
// Invariants: canonicalize(canonicalize(g)) == canonicalize(g). same_program(a, b) holds exactly if the canonical bytes
// are equal. Programs of equal canonical bytes generate the same code. The functions take graphs that verify.
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
// The program in canonical order, without dead nodes, but with its own names. Planning and lowering start from it, so
// their results do not depend on the order of creation.
Graph canonical_order(const Graph& g, const Defects& defects = {});
// For each value that an op of the body of `g` makes: the place of that op in canonical order, from 1 on. Dead ops follow
// in the order of the body. 0 for constants.
std::vector<size_t> canonical_places(const Graph& g);
// For each value of `g` its name in the canonical form. The name is empty for constants and dead values.
std::vector<std::string> canonical_names(const Graph& g);
// Every field of the canonical form but names, as bytes. The bytes are compared and hashed, and never decoded.
std::string canonical_bytes(const Graph& g, const Defects& defects = {});
bool same_program(const Graph& a, const Graph& b);

// The bytes of steps, names included. With a graph, canonical names replace the names of the graph's values and
// domains.
std::string canonical_bytes(std::span<const Step> steps, const Defects& defects = {});
std::string canonical_bytes(const Graph& g, std::span<const Step> steps, const Defects& defects = {});
// The bytes of a segmentation: its segments in the canonical order of their ops, without names and dead ops.
std::string canonical_bytes(const Graph& g, const Segmentation& s, const Defects& defects = {});

Digest digest(const Graph& g, const Defects& defects = {});
Digest digest(std::span<const Step> steps, const Defects& defects = {});
Digest digest(const Graph& g, std::span<const Step> steps, const Defects& defects = {});
Digest digest(const Graph& g, const Segmentation& s, const Defects& defects = {});
// The digest of a text, such as generated code.
Digest digest(std::string_view text);

}  // namespace fusebox
