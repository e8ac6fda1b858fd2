// Id graphs say which iteration domains of a graph are one, by five rules, as union-find classes.
//
// exact         the same by definition: an op reads both at one place, or the same transform makes both from domains
//               that are one
// almost-exact  exact, and two exact classes become one if every pair of members that this brings together is proved
//               equal at every loop point, holes included, in every nest that the pair shares
// broadcast     exact, and a broadcast domain is one with the domain that concretizes it
// permissive    broadcast, and a domain stays itself through a split or merge with a broadcast or of extent 1
// loop          loop domains that inlining makes one loop
//
// Invariants. A nest is the loop points of one tensor. A pair shares a nest if both are domains of its tensor. In the
// exact and the almost-exact graph, two domains of one tensor and one class have the same value at every loop point of
// its nest; the law test evaluates this on the closed classes. A union that would break it is refused, even if a
// definition asks for it. Unions are tried in the order of ids. An equal extent is never a reason. The other three
// graphs are for pictures and for choosing what to try; they prove nothing about an index.
//
//   %y.i0 split by 1 -> o, t;   exact: {i0} {o} {t}   almost-exact: {i0, o} {t}, proof "both are `o`" in the nest of %y
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

enum class IdGraphKind : uint8_t { kExact, kAlmostExact, kBroadcast, kPermissive, kLoop };

// "exact", "almost-exact", "broadcast", "permissive", "loop".
std::string_view text(IdGraphKind kind);
std::optional<IdGraphKind> parse_id_graph_kind(std::string_view text);

// Why two classes became one beyond exact.
struct IdProof {
  DomainId a, b;
  TensorId nest;                   // the nest that compared the forms; none: one transform makes both
  std::string reason;              // one sentence
  std::vector<std::string> facts;  // facts beyond arithmetic that it rests on: "a reshape keeps every element"
  bool operator==(const IdProof&) const = default;
};

struct IdGraph {
  IdGraphKind kind = IdGraphKind::kExact;
  // By domain index: the smallest member of the class; none if the domain belongs to no tensor.
  std::vector<DomainId> representative;
  std::vector<IdProof> proofs;  // almost-exact: the unions beyond exact, in the order in which they were made

  bool same(DomainId a, DomainId b) const { return a == b || representative[a.index] == representative[b.index]; }
  // Members ascending, classes by their first member.
  std::vector<std::vector<DomainId>> classes() const;
};

// Throws what `plan_nests` throws if the schedule has no nests.
IdGraph id_graph(const Graph& g, IdGraphKind kind, const Defects& defects = {});

// All domains of a tensor, without repetition: root, loop broadcasts, logical, allocation and loop domains, and all
// between. Each stands after the domains that it follows from.
std::vector<DomainId> domains_of(const Graph& g, const Tensor& t);

}  // namespace fusebox
