#include "passes/identity/explain.h"

#include <algorithm>
#include <map>

#include "ir/table/error.h"
#include "passes/nest/nest.h"

namespace fusebox {
namespace {

std::string name_of(const Graph& g, DomainId d) { return "%" + g[g[g[d].tensor].value].name + "." + g[d].name; }

// The proofs by which one class of the exact graph reaches another, in order.
std::vector<const IdProof*> proofs_between(const IdGraph& exact, const IdGraph& almost, DomainId a, DomainId b) {
  std::map<DomainId, const IdProof*> reached;  // exact class → the proof that led there
  const auto class_of = [&](DomainId d) { return exact.representative[d.index]; };
  const DomainId from = class_of(a), to = class_of(b);
  std::vector<DomainId> queue = {from};
  reached[from] = nullptr;
  for (size_t i = 0; i < queue.size() && !reached.contains(to); ++i)
    for (const IdProof& p : almost.proofs)
      for (const auto& [x, y] : {std::pair(class_of(p.a), class_of(p.b)), std::pair(class_of(p.b), class_of(p.a))})
        if (x == queue[i] && reached.emplace(y, &p).second) queue.push_back(y);
  std::vector<const IdProof*> path;
  if (!reached.contains(to)) return path;
  for (DomainId at = to; at != from;) {
    const IdProof* p = reached[at];
    path.insert(path.begin(), p);
    at = class_of(p->a) == at ? class_of(p->b) : class_of(p->a);
  }
  return path;
}

std::string text_of(const Graph& g, const IdProof& p) {
  std::string text = name_of(g, p.a) + " and " + name_of(g, p.b) + ": " + p.reason;
  if (p.nest) text += " of the nest of %" + g[g[p.nest].value].name;
  for (const std::string& fact : p.facts) text += "; " + fact;
  return text;
}

// Why two classes were not united: a pair that the union would bring together although a nest tells its members apart.
std::string obstacle(const Graph& g, const IdGraph& almost, DomainId a, DomainId b) {
  constexpr int kMostPairs = 64;
  std::vector<TensorId> order = {g[a].tensor, g[b].tensor};
  for (uint32_t i = 0; i < g.tensors.size(); ++i) order.emplace_back(i);
  const auto members = [&](TensorId t, DomainId of) {
    std::vector<DomainId> result = domains_of(g, g[t]);
    std::erase_if(result, [&](DomainId d) { return !almost.same(d, of); });
    return result;
  };
  int pairs = 0;
  for (TensorId t : order) {
    for (DomainId x : members(t, a))
      for (DomainId y : members(t, b)) {
        if (pairs++ == kMostPairs) return "it would bring many pairs together, and some nest tells one apart";
        const Agreement r = agree_in_nest(g, x, y);
        if (r.proved) continue;
        return "it would make " + name_of(g, x) + " and " + name_of(g, y) + " one: " + r.verdict +
               (r.difference ? " in the nest of %" + g[g[t].value].name : "");
      }
  }
  return "no nest has a pair of theirs that is equal there";
}

}  // namespace

Explanation explain(const Graph& given, DomainId a, DomainId b) {
  Explanation result;
  Graph g = given;
  try {
    plan_nests(g);
  } catch (const Error& e) {
    result.note = code_text(e.code) + " " + e.place + ": " + e.what() + "; what follows leaves inlining out";
    for (Tensor& t : g.tensors) t.inline_at = {};
  }
  result.elements = agree_at_elements(g, a, b);
  result.nest = agree_in_nest(g, a, b);
  const auto in = [&](IdGraphKind kind) -> Explanation::InGraph& { return result.graphs[static_cast<size_t>(kind)]; };
  const IdGraph exact = id_graph(g, IdGraphKind::kExact), almost = id_graph(g, IdGraphKind::kAlmostExact);
  in(IdGraphKind::kExact).one = exact.same(a, b);
  in(IdGraphKind::kExact).because = {
      a == b             ? "they are the same domain"
      : exact.same(a, b) ? "ops read them at one place, or the same transforms make them of domains that are one"
                         : "no definition makes them one"};
  Explanation::InGraph& nearly = in(IdGraphKind::kAlmostExact);
  nearly.one = almost.same(a, b);
  if (exact.same(a, b))
    nearly.because = {"they are one in the exact graph"};
  else if (nearly.one)
    for (const IdProof* p : proofs_between(exact, almost, a, b)) nearly.because.push_back(text_of(g, *p));
  else
    nearly.because = {obstacle(g, almost, a, b)};
  const auto say = [&](IdGraphKind kind, const char* yes, const char* no) {
    in(kind).one = id_graph(g, kind).same(a, b);
    in(kind).because = {in(kind).one ? yes : no};
  };
  say(IdGraphKind::kBroadcast, "they are one where a broadcast is one with what concretizes it",
      "not even where a broadcast is one with what concretizes it");
  say(IdGraphKind::kPermissive, "they are one where a domain stays itself through splits and merges with broadcasts",
      "not even through splits and merges with broadcasts");
  say(IdGraphKind::kLoop, "inlining makes them one loop", "inlining does not make them one loop");
  return result;
}

}  // namespace fusebox
