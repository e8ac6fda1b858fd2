// Edits of a tensor's domains that keep the graph's invariants. Steps are made of them.
//
// Invariants:
// - Names of domains stay unique in their tensor. A loop that equals the logical domain is stored as empty.
// - Ids do not change. A domain or transform that nothing needs any more is emptied in place, and `compact` drops it.
// - The loops, axes and loop broadcasts of siblings correspond position by position. A change of one sibling's loops
//   therefore changes all of them. All results of an op that a kernel computes are siblings.
//
//   Transform t{.kind = TransformKind::kSplit, .inputs = {i1}, .factor = constant_index(g, 128)};
//   TransformId split = add_transform(g, y, t, {"o", "t"});   // makes %y.o and %y.t
//   set_loop(g, y, {i0, g[split].outputs[0], g[split].outputs[1]});
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

using DomainMap = std::map<DomainId, DomainId>;

// The results of the op that makes `t` with the axes of `t`, itself included. Only ops without a kernel make others.
std::vector<TensorId> siblings(const Graph& g, TensorId t);
// The loop, axis or loop broadcast of a sibling that stands where `d` stands; none if `d` is none of these.
DomainId in_sibling(const Graph& g, TensorId sibling, DomainId d);
// The number of leading loops that inlining has fixed: loops shared with consumers, or with producers that are inlined
// here.
size_t fixed_loops(const Graph& g, TensorId t);

// `wanted` if it is free, else the first free of wanted_1, wanted_2, …
std::string free_domain_name(const Graph& g, TensorId t, std::string_view wanted);
// The iteration type of a merge, or nothing if the two cannot be merged.
std::optional<IterType> merged_type(IterType outer, IterType inner);
// Whether the iteration types of its inputs allow the transform.
bool can_transform(const Graph& g, const Transform& transform);
// The type of the domains that it makes.
IterType made_type(const Graph& g, const Transform& transform);
// Adds a transform, which has no outputs yet, and makes its outputs. They get the given names, numbered if taken.
TransformId add_transform(Graph& g, TensorId t, Transform transform, std::span<const std::string> names);
// Adds a loop broadcast that stands for `like`, a domain of another tensor. If `like` is a loop broadcast itself, the
// new one stands for the same domain as `like`. The caller puts it into the loop.
DomainId add_loop_broadcast(Graph& g, TensorId t, DomainId like, std::string_view name);

void set_loop(Graph& g, TensorId t, std::vector<DomainId> loop);
// The domains that schedule transforms made the loops from, without loop broadcasts: the logical domain, or the root
// after set_loop_domain.
std::vector<DomainId> loop_base(const Graph& g, TensorId t);
// `copied` leads from domains to their copies. A loop broadcast that stands for a copied domain now stands for the
// copy, if the domain has left its tensor's root and logical domain.
void move_stand_ins(Graph& g, const DomainMap& copied);
// The domains in the tensor's lists and transforms. Some stand there more than once.
std::vector<DomainId> domains_of(const Graph& g, TensorId t);
// Drops the transforms and loop broadcasts that the domain lists do not need, and empties each domain of `had` that
// they do not need. `had` is domains_of(g, t) from before the lists changed.
void prune(Graph& g, TensorId t, std::span<const DomainId> had);
// Adds a tensor with copies of the domains and with the same marks. No op makes it yet. `copied` receives the map from
// old domains to new ones.
ValueId copy_tensor(Graph& g, ValueId tensor, std::string_view name, DomainMap* copied = nullptr);

}  // namespace fusebox
