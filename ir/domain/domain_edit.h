// Edits of a tensor's domains that keep the graph's invariants; what steps are made of.
//
// Invariants: names of domains stay unique in their tensor; a loop that equals the logical domain is stored as empty;
// ids stay what they are: a domain or transform that nothing needs any more is emptied where it stands, and `compact`
// drops it. The loops, axes and loop broadcasts of all results of one op correspond position by position: what changes
// one's loops changes all.
//
//   Transform t{.kind = TransformKind::kSplit, .inputs = {i1}, .factor = constant_index(g, 128)};
//   TransformId split = add_transform(g, y, t, {"o", "t"});   // makes %y.o and %y.t; the caller puts them into the
//   loop
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

using DomainMap = std::map<DomainId, DomainId>;

// The tensors that the op that makes this one makes, itself included.
std::vector<TensorId> siblings(const Graph& g, TensorId t);
// The loop, axis or loop broadcast of a sibling that stands where `d` stands; none if `d` is none of these.
DomainId in_sibling(const Graph& g, TensorId sibling, DomainId d);
// How many leading loops inlining has fixed: those shared with consumers, or with producers that are inlined here.
size_t fixed_loops(const Graph& g, TensorId t);

// `wanted`, or wanted_1, wanted_2, … where it is taken.
std::string free_domain_name(const Graph& g, TensorId t, std::string_view wanted);
// What a merge of two domains iterates over; nothing if they cannot be merged.
std::optional<IterType> merged_type(IterType outer, IterType inner);
// Whether the transform can stand on its inputs, by their kinds.
bool can_transform(const Graph& g, const Transform& transform);
// Adds a transform without outputs and makes these, with the names given, or free ones near to them.
TransformId add_transform(Graph& g, TensorId t, Transform transform, std::span<const std::string> names);
// A broadcast domain in no op's result that stands for `like`, another tensor's; the caller puts it into the loop.
DomainId add_loop_broadcast(Graph& g, TensorId t, DomainId like, std::string_view name);

void set_loop(Graph& g, TensorId t, std::vector<DomainId> loop);
// The loop without what schedule transforms made of it: the logical domain, or, after set_loop_domain, the root.
std::vector<DomainId> loop_base(const Graph& g, TensorId t);
// Loop broadcasts that stand for a domain that has a copy stand for that, if the domain is in none of its tensor's
// lists any more.
void move_stand_ins(Graph& g, const DomainMap& copied);
// The tensor's domains: those in its lists and those in its transforms, some of them twice.
std::vector<DomainId> domains_of(const Graph& g, TensorId t);
// Drops the transforms and loop broadcasts that the domain lists do not need, and empties each domain of `had` that is
// needed no more. `had`: domains_of(g, t) before its lists were changed.
void prune(Graph& g, TensorId t, std::span<const DomainId> had);
// A tensor with the same domains and marks, made by nothing yet. `copied`: from the old domains to the new ones.
ValueId copy_tensor(Graph& g, ValueId tensor, std::string_view name, DomainMap* copied = nullptr);

}  // namespace fusebox
