// The file tests of explanations (file_kinds.h).
#include <fmt/format.h>

#include "fuzz/known/file_kinds.h"
#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/identity/explain.h"

namespace fusebox::fuzz {
namespace {

std::string name_of(const Graph& g, DomainId d) { return g[g[g[d].tensor].value].name + "." + g[d].name; }

DomainId domain_named(const Graph& g, std::string_view name) {
  for (uint32_t d = 0; d < g.domains.size(); ++d)
    if (g.domains[d].tensor && name_of(g, DomainId(d)) == name) return DomainId(d);
  throw Error(ErrorCode::kStepReferent, "no domain has this name", std::string(name));
}

std::string values_text(const std::vector<NamedValue>& values) {
  std::string out;
  for (const NamedValue& v : values) out += (out.empty() ? "" : ", ") + v.name + " = " + std::to_string(v.value);
  return out;
}

void add(std::string& out, std::string_view head, const std::string& text) {
  out += fmt::format("  {:<14}{}\n", head, text);
}

void add(std::string& out, const Graph& g, std::string_view head, const Agreement& a) {
  std::string what = a.proved ? "yes" : "no";
  if (a.points) what += ", at %" + g[g[a.points].value].name;
  if (a.ways != 1) what += ", " + std::to_string(a.ways) + " ways";
  add(out, head, what + ": " + a.verdict);
  if (a.comparable) add(out, "", a.a_value + " | " + a.b_value);
  for (const Reason& r : a.reasons)
    add(out, "", (r.kind == Reason::Kind::kFact ? "fact " : "theorem ") + r.name + ": " + r.text);
  if (a.difference)
    add(out, "",
        fmt::format("with {} at {}: {} and {}", values_text(a.difference->sizes), values_text(a.difference->point),
                    a.difference->a, a.difference->b));
}

std::string all_of_pair(const Graph& g, DomainId a, DomainId b) {
  const Explanation e = explain(g, a, b);
  std::string out = name_of(g, a) + " and " + name_of(g, b) + "\n";
  if (!e.note.empty()) add(out, "note", e.note);
  add(out, g, "in a nest", e.nest);
  add(out, g, "at elements", e.elements);
  for (const IdGraphKind kind : {IdGraphKind::kExact, IdGraphKind::kAlmostExact, IdGraphKind::kBroadcast,
                                 IdGraphKind::kPermissive, IdGraphKind::kLoop})
    for (size_t i = 0; i < e[kind].because.size(); ++i)
      add(out, i == 0 ? text(kind) : "", (i > 0 ? "" : e[kind].one ? "yes: " : "no: ") + e[kind].because[i]);
  return out;
}

std::string short_text(std::string_view where, const Agreement& there, const Agreement& back) {
  if (!there.comparable && !back.comparable) return {};
  const bool is_same = there.comparable == back.comparable && there.proved == back.proved &&
                       there.difference.has_value() == back.difference.has_value() && there.a_value == back.b_value &&
                       there.b_value == back.a_value;
  return fmt::format(" {} {} {} {}{};", where, there.a_value,
                     there.proved       ? "="
                     : there.difference ? "|"
                                        : "?",
                     there.b_value, is_same ? "" : ", but not back");
}

}  // namespace

std::string explain_text(const Graph& scheduled, const FileRequest& r) {
  std::string out;
  std::vector<std::string> names = r.options;
  std::erase(names, "compiled");
  for (size_t i = 0; i + 1 < names.size(); i += 2)
    out += all_of_pair(scheduled, domain_named(scheduled, names[i]), domain_named(scheduled, names[i + 1]));
  if (!names.empty()) return out;
  std::vector<DomainId> all;
  for (const Tensor& t : scheduled.tensors)
    for (DomainId d : domains_of(scheduled, t)) all.push_back(d);
  // One line a pair: `x.i0 c.i0: nest %c.i0 = %c.i0; elements %x.i0 | %c.i0 - 4`.
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      const DomainId a = all[k], b = all[i];
      const std::string line =
          short_text("nest", agree_in_nest(scheduled, a, b), agree_in_nest(scheduled, b, a)) +
          short_text("elements", agree_at_elements(scheduled, a, b), agree_at_elements(scheduled, b, a));
      if (!line.empty()) out += name_of(scheduled, a) + " " + name_of(scheduled, b) + ":" + line + "\n";
    }
  return out;
}

}  // namespace fusebox::fuzz
