// The oracle for the output of commands: JSON, drawings, pictures, explanations, notes of checks, CUDA text and bank
// conflicts. Small readers that only know each format read it back.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "codegen/cuda.h"
#include "fuzz/oracle/oracle.h"
#include "ir/canonical/canonical.h"
#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "ir/text/dot.h"
#include "ir/text/json.h"
#include "passes/identity/explain.h"
#include "passes/identity/id_graphs.h"
#include "passes/lower/lower.h"
#include "replay/data/json_value.h"
#include "replay/host/bank_conflicts.h"
#include "replay/picture/render.h"

namespace fusebox::fuzz {
namespace {

// -- JSON
void judge_json(OracleRun& run, const Graph& g) {
  const JsonValue read = parse_json(to_json(g));
  const auto check = [&](std::string_view key, size_t count) {
    if (read.at(key).list().size() != count)
      run.report("views", "json", std::string(key),
                 "JSON of @" + g.name + " has another number of " + std::string(key));
  };
  const Graph all = compact(g);
  if (read.at("name").string() != g.name) run.report("views", "json", "name", "JSON has another name than @" + g.name);
  check("values", all.values.size());
  check("tensors", all.tensors.size());
  check("domains", all.domains.size());
  check("transforms", all.transforms.size());
  check("ops", all.ops.size());
  check("regions", all.regions.size());
  // Names, and well-formed UTF-8 in them, come back as they are.
  for (size_t d = 0; d < all.domains.size(); ++d)
    if (read.at("domains").list()[d].at("name").string() != all.domains[d].name)
      return run.report("views", "json", "domain", "JSON has another name than that of a domain of @" + g.name);
  Graph renamed = all;
  for (const std::string_view name : {"d\u00e9j\u00e0", "\u20ac5", "\U0001f600", "tab\tquote\"back\\slash"}) {
    renamed.name = name;
    if (parse_json(to_json(renamed)).at("name").string() != name)
      return run.report("views", "json", "escapes", "JSON has another name than " + renamed.name);
  }
}

// -- drawings for Graphviz: collects declared nodes and the ends of edges; skips strings
struct Drawn {
  std::map<std::string, int> nodes;
  std::vector<std::string> ends;
  bool is_balanced = true;
};

Drawn read_dot(std::string_view dot) {
  Drawn drawn;
  int depth = 0;
  std::string word, last;
  bool is_end = false;
  for (size_t i = 0; i < dot.size(); ++i) {
    const char c = dot[i];
    if (c == '"') {
      for (++i; i < dot.size() && dot[i] != '"'; ++i) i += dot[i] == '\\';
      if (i >= dot.size()) drawn.is_balanced = false;
      continue;
    }
    const bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (is_word) {
      word += c;
      continue;
    }
    if (!word.empty()) {
      if (is_end) drawn.ends.push_back(word);
      is_end = false;
      last = std::exchange(word, {});
    }
    if (c == '-' && i + 1 < dot.size() && dot[i + 1] == '>') {
      drawn.ends.push_back(last);
      is_end = true;
      last.clear();
      ++i;
    }
    if (c == '[' && !last.empty() && last != "node" && last != "edge" && last != "graph" &&
        (drawn.ends.empty() || drawn.ends.back() != last))
      ++drawn.nodes[last];
    if (c == ';' || c == '{' || c == '}' || c == ']') last.clear();
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    drawn.is_balanced = drawn.is_balanced && depth >= 0;
  }
  drawn.is_balanced = drawn.is_balanced && depth == 0;
  return drawn;
}

// `edges`: at least so many are drawn.
void judge_dot(OracleRun& run, std::string_view what, const std::string& dot, std::optional<size_t> nodes,
               size_t edges = 0) {
  const Drawn drawn = read_dot(dot);
  if (drawn.ends.size() / 2 < edges)
    run.report("views", "dot", what,
               std::to_string(drawn.ends.size() / 2) + " edges are drawn where there are " + std::to_string(edges) +
                   "\n" + dot);
  if (!drawn.is_balanced)
    run.report("views", "dot", what, "a drawing of " + std::string(what) + " does not close\n" + dot);
  for (const auto& [name, count] : drawn.nodes)
    if (count != 1)
      return run.report("views", "dot", what, name + " is drawn " + std::to_string(count) + " times\n" + dot);
  for (const std::string& end : drawn.ends)
    if (!drawn.nodes.contains(end))
      return run.report("views", "dot", what, "an edge ends at " + end + ", which is not drawn\n" + dot);
  if (nodes && drawn.nodes.size() != *nodes)
    run.report(
        "views", "dot", what,
        std::to_string(drawn.nodes.size()) + " nodes are drawn where there are " + std::to_string(*nodes) + "\n" + dot);
}

// -- XML: tags close in order, attributes are quoted, and text contains no markup
std::optional<std::string> xml_fault(std::string_view xml) {
  std::vector<std::string> open;
  for (size_t i = 0; i < xml.size(); ++i) {
    if (xml[i] == '&') {
      const size_t end = xml.find(';', i);
      if (end == xml.npos || end > i + 10 || end == i + 1) return "a bare &";
      continue;
    }
    if (xml[i] == '>') return "a bare >";
    if (xml[i] != '<') continue;
    if (xml.substr(i).starts_with("<?") || xml.substr(i).starts_with("<!")) {
      i = xml.find('>', i);
      if (i == xml.npos) return "a declaration that does not end";
      continue;
    }
    const bool closes = xml.substr(i).starts_with("</");
    size_t at = i + (closes ? 2 : 1);
    const size_t name = at;
    while (at < xml.size() && xml[at] != '>' && xml[at] != ' ' && xml[at] != '/' && xml[at] != '\n') ++at;
    const std::string tag(xml.substr(name, at - name));
    char quote = 0;
    bool is_alone = false;
    for (; at < xml.size() && (quote != 0 || xml[at] != '>'); ++at) {
      if (quote == 0 && xml[at] == '"')
        quote = '"';
      else if (quote == xml[at])
        quote = 0;
      else if (xml[at] == '<')
        return "a < inside of <" + tag;
      is_alone = quote == 0 && xml[at] == '/';
    }
    if (at == xml.size()) return "<" + tag + " does not end";
    if (tag == "style" && !closes) at = std::max(at, xml.find("</style>", at) - 1);
    if (closes) {
      if (open.empty() || open.back() != tag) return "</" + tag + "> closes nothing";
      open.pop_back();
    } else if (!is_alone) {
      open.push_back(tag);
    }
    i = at;
  }
  return open.empty() ? std::nullopt : std::optional("<" + open.back() + "> is left open");
}

constexpr IdGraphKind kKinds[] = {IdGraphKind::kExact, IdGraphKind::kAlmostExact, IdGraphKind::kBroadcast,
                                  IdGraphKind::kPermissive, IdGraphKind::kLoop};

void judge_picture(OracleRun& run, RandomSource& random, const Graph& scheduled) {
  const picture::Picture p = picture::describe(scheduled, run.options().defects);
  const IdGraphKind kind = random.pick(kKinds);
  for (const picture::DomainPicture& d : p.domains) {
    const std::string listed = picture::to_text(p, kind);
    if (listed.find(d.name) == listed.npos)
      return run.report("views", "picture", "text", "a listing leaves out " + d.full_name);
    if (d.may_leave && d.index.empty())
      return run.report("views", "picture", "leaves", d.full_name + " may leave its extent, and has no index");
  }
  std::set<size_t> seen;
  for (const picture::TensorPicture& t : p.tensors)
    for (size_t d : t.domains)
      if (!seen.insert(d).second || d >= p.domains.size())
        return run.report("views", "picture", "domains", "a domain is in a picture twice");
  if (seen.size() != p.domains.size())
    run.report("views", "picture", "domains", "a domain of the picture belongs to no tensor");
  judge_dot(run, "picture", picture::to_dot(p, kind), std::nullopt);
  const picture::Picture all[] = {p};
  if (const auto fault = xml_fault(picture::to_svg(all, kind)))
    run.report("views", "picture", "svg", "an SVG document has " + *fault);
  const std::string html = picture::to_html(all, kind);
  if (html.find("</html>") == html.npos) run.report("views", "picture", "html", "a page does not end");
}

// -- explanations: symmetric in a pair, and trivial for a domain with itself
void judge_agreement(OracleRun& run, const char* where, const Agreement& a, const Agreement& turned) {
  const std::string place(where);
  if (a.comparable != turned.comparable || a.proved != turned.proved)
    run.report("views", "explain", place,
               place + ": the pair turned around is answered otherwise: " + a.verdict + "; " + turned.verdict);
  if (a.proved && (!a.comparable || a.difference))
    run.report("views", "explain", place,
               place + ": what is proved has a difference, or cannot be compared: " + a.verdict);
  if (a.difference && a.difference->a == a.difference->b)
    run.report("views", "explain", place, place + ": the difference that is named is none: " + a.verdict);
  if (a.verdict.empty() || (a.comparable && (a.a_value.empty() || a.b_value.empty())))
    run.report("views", "explain", place, place + ": an answer without its sentence or its values");
}

void judge_explanations(OracleRun& run, RandomSource& random, const Graph& g) {
  std::vector<DomainId> domains;
  for (const Tensor& t : g.tensors)
    for (DomainId d : domains_of(g, t)) domains.push_back(d);
  if (domains.empty()) return;
  const DomainId a = random.pick(domains), b = random.pick(domains);
  const Explanation there = explain(g, a, b), back = explain(g, b, a), same = explain(g, a, a);
  judge_agreement(run, "nest", there.nest, back.nest);
  judge_agreement(run, "elements", there.elements, back.elements);
  for (const IdGraphKind kind : kKinds) {
    if (there[kind].one != back[kind].one)
      run.report("views", "explain", std::string(text(kind)), "two domains are one in one order alone");
    if (!same[kind].one) run.report("views", "explain", std::string(text(kind)), "a domain is not itself");
    if (there[kind].because.empty())
      run.report("views", "explain", std::string(text(kind)), "an answer without its reason");
  }
}

// -- notes of checks: they name values of the kernel, and the kernel is the same without them
void judge_notes(OracleRun& run, const Compiled& c, size_t k) {
  const Graph scheduled = canonical_order(c.scheduled[k]);
  const Lowered lowered =
      lower(scheduled, {.index_bits = c.index_bits, .defects = run.options().defects, .explain = true});
  if (!(lowered.kernel == c.kernels[k]))
    run.report("views", "notes", "kernel", "a kernel that is explained is another one");
  for (const CheckNote& note : lowered.notes) {
    const std::string of = note.value + "." + note.domain;
    if (!note.predicate.empty() && !note.checked)
      run.report("views", "notes", "predicate", of + " is not checked, and has the predicate " + note.predicate);
    // A list, if a statement is emitted more than once.
    for (std::string_view rest = note.predicate; !rest.empty();) {
      const size_t comma = std::min(rest.find(", "), rest.size());
      const std::string_view name = rest.substr(1, comma - 1);
      if (!rest.starts_with('%') || !find_value(lowered.kernel, name))
        return run.report("views", "notes", "predicate",
                          of + " is checked by " + note.predicate + ", which the kernel does not have");
      rest.remove_prefix(std::min(comma + 2, rest.size()));
    }
  }
}

// -- bank conflicts by definition: counts the words of each bank for every group of threads
int64_t wavefronts(std::span<const int64_t> addresses, int64_t bytes) {
  int64_t most = 0;
  for (int64_t bank = 0; bank < 32; ++bank) {
    std::set<int64_t> words;
    for (const int64_t at : addresses)
      for (int64_t byte = at; at >= 0 && byte < at + bytes; ++byte)
        if (byte / 4 % 32 == bank) words.insert(byte / 4);
    most = std::max(most, static_cast<int64_t>(words.size()));
  }
  return most;
}

void judge_bank_count(OracleRun& run, RandomSource& random) {
  const int64_t bytes = int64_t{1} << random.below(5);
  const int64_t stride = random.pick({1, 2, 3, 4, 8, 16, 17, 31, 32, 33, 64});
  std::vector<int64_t> addresses(1 + random.below(96));
  for (size_t t = 0; t < addresses.size(); ++t) {
    const int64_t at = random.one_in(4) ? random.between(0, 255) : static_cast<int64_t>(t) * stride;
    addresses[t] = random.one_in(8) ? -1 : at * bytes;
  }
  BankTotals expected;
  const size_t together = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  for (size_t first = 0; first < addresses.size(); first += together) {
    const auto some = std::span(addresses).subspan(first, std::min(together, addresses.size() - first));
    const int64_t n = wavefronts(some, bytes);
    expected.wavefronts += n;
    expected.ideal += n > 0;
    expected.ways = std::max(expected.ways, n);
  }
  for (size_t first = 0; first < addresses.size(); first += 32) {
    const auto warp = std::span(addresses).subspan(first, std::min<size_t>(32, addresses.size() - first));
    expected.accesses += std::any_of(warp.begin(), warp.end(), [](int64_t at) { return at >= 0; });
  }
  const BankTotals counted = bank_conflicts(addresses, bytes);
  if (!(counted == expected))
    run.report("views", "banks", "",
               std::to_string(counted.wavefronts) + " wavefronts are counted where there are " +
                   std::to_string(expected.wavefronts));
}

// For the whole program: each access takes at least the time without conflicts and at most that of its worst one.
void judge_banks(OracleRun& run) {
  if (!run.scheduled().ok()) return;
  std::vector<BankCounter> counted;
  HostDeviceOptions options = host_options(run.options());
  options.banks = &counted;
  const auto device = make_host_device(options);
  if (const HostRun r = run.run_on(*device); !r.ok()) return run.report("views", *r.failure, "with banks counted");
  for (const BankCounter& kernel : counted)
    for (const BankAccess& a : kernel.accesses()) {
      const BankTotals& t = a.totals;
      const bool is_reached = t.accesses > 0;
      if (t.ways < (is_reached ? 1 : 0) || t.ways > (is_reached ? 32 : 0) || t.ideal < t.accesses ||
          t.wavefronts < t.ideal || t.wavefronts > t.ideal * t.ways)
        run.report("views", "banks", "",
                   a.buffer + ", line " + std::to_string(a.line) + ": " + std::to_string(t.accesses) + " accesses, " +
                       std::to_string(t.wavefronts) + " wavefronts for " + std::to_string(t.ideal) + ", " +
                       std::to_string(t.ways) + " ways");
    }
}

void judge_cuda(OracleRun& run, const Graph& kernel) {
  const std::string text = emit_cuda(kernel).text;
  if (std::count(text.begin(), text.end(), '{') != std::count(text.begin(), text.end(), '}'))
    run.report("views", "cuda", "", "braces do not match");
}

}  // namespace

void views(OracleRun& run) {
  RandomSource random = run.random(61);
  const auto kernel = run.one_kernel(random);
  if (!kernel) return;
  const Compiled* c = run.compiled();
  const size_t k = *kernel;
  struct Part {
    std::string_view name;
    std::function<void()> judge;
  };
  const Part parts[] = {
      {"JSON",
       [&] {
         for (const Graph* g : {&run.fusion(), &c->kernels[k], &c->host}) judge_json(run, *g);
         parse_json(to_json(run.subject().module));
       }},
      {"drawings",
       [&] {
         for (const Graph* g : {&run.fusion(), &c->kernels[k], &c->host})
           judge_dot(run, "ops", ops_to_dot(*g), compact(*g).ops.size());
         const Graph scheduled = compact(c->scheduled[k]);
         size_t edges = 0;
         for (const Transform& t : scheduled.transforms) edges += t.inputs.size() + t.outputs.size();
         judge_dot(run, "domains", domains_to_dot(scheduled), scheduled.domains.size() + scheduled.transforms.size(),
                   edges);
       }},
      {"pictures", [&] { judge_picture(run, random, c->scheduled[k]); }},
      {"explanations", [&] { judge_explanations(run, random, c->scheduled[k]); }},
      {"notes", [&] { judge_notes(run, *c, k); }},
      {"CUDA text", [&] { judge_cuda(run, c->kernels[k]); }},
      {"bank conflicts",
       [&] {
         judge_bank_count(run, random);
         judge_banks(run);
       }},
  };
  // Judges one part, or all when a case is judged alone.
  const bool is_alone = run.options().field_changes >= kFieldChangesAlone;
  const size_t drawn = random.below(std::size(parts));
  for (size_t i = 0; i < std::size(parts); ++i) {
    if (i != drawn && !is_alone) continue;
    try {
      parts[i].judge();
    } catch (const Error& e) {
      run.report("views", e, parts[i].name);
    }
  }
}

}  // namespace fusebox::fuzz
