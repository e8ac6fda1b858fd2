#include <algorithm>

#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/token/printer.h"
#include "passes/identity/explain.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"
#include "replay/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/load.h"
#include "replay/cli/report.h"

namespace fusebox::cli {
namespace {

struct DomainName {
  std::string tensor, domain;
};

// A domain as steps write it, with quotes where a name needs them. Without quotes, the last dot ends the tensor's name,
// whatever the name holds.
DomainName parse_name(const std::string& text) {
  if (text.find('"') != std::string::npos) {
    try {
      const std::vector<Step> steps = parse_steps("parallelize " + text + " on serial");
      if (steps.size() == 1 && steps[0].operands.size() == 1)
        return {steps[0].operands[0].value, steps[0].operands[0].domain};
    } catch (const Error&) {
      // A name that holds a quote, without quotes around it.
    }
  }
  const size_t dot = text.rfind('.');
  const size_t begin = text.starts_with("%") ? 1 : 0;
  if (dot == std::string::npos || dot <= begin || dot + 1 == text.size())
    throw Error(ErrorCode::kUsage, "this is no domain; write it as steps do, such as %y.i0", text);
  return {text.substr(begin, dot - begin), text.substr(dot + 1)};
}

std::string written(const DomainName& name) {
  Printer p;
  p.add_name('%', name.tensor);
  p.add('.');
  p.add_word(name.domain);
  return std::move(p.out);
}

std::optional<DomainId> find(const Graph& g, const DomainName& name) {
  const auto v = find_value(g, name.tensor);
  if (!v || !g.is_tensor(*v)) return std::nullopt;
  return find_domain(g, g[*v].tensor, name.domain);
}

// The fusion as given. If the module has its inputs' sizes, they decide its symbolic shapes.
Graph concretized(const Module& module, std::span<const Step> rewrites) {
  Graph g = main_graph(module);
  apply_steps(g, rewrites);
  std::vector<BoundInput> sizes;
  try {
    sizes = default_sizes(module);
  } catch (const Error& e) {
    if (e.code == ErrorCode::kMissingInput) return g;
    throw;
  }
  const Bindings bindings = bind_sizes(main_graph(module), sizes);
  apply_steps(g, plan_resolution(main_graph(module), bindings, g));
  return g;
}

// Applies the steps except inlining that is not legal, which the note names with the reason.
void apply_but_illegal_inlining(Graph& g, std::span<const Step> steps, std::string& note) {
  for (const Step& step : steps) {
    const bool inlines = step.kind == StepKind::kInlineAt || step.kind == StepKind::kInlineMost;
    const auto refusal = inlines ? step_refusal(g, step) : std::nullopt;
    if (refusal)
      note += (note.empty() ? "" : "; ") + ("`" + print(step) + "` is left out: " + code_text(refusal->code) + " ") +
              refusal->place + ": " + refusal->message;
    else
      apply_step(g, step);
  }
}

// The program at the level of schedules: one graph for each kernel. Last comes the whole program with all steps, for
// two domains that no kernel has together.
std::vector<Graph> scheduled(const LoadedFile& file, const std::string& steps_file, std::string& note) {
  if (file.bundle && steps_file.empty())
    if (const Module* m = find_stage(*file.bundle, Stage::kScheduled)) return m->graphs;
  const StepList* list = find_steps(file.module, main_graph(file.module).name);
  std::vector<Step> steps = list ? list->steps : std::vector<Step>();
  if (!steps_file.empty()) steps = read_steps(steps_file, main_graph(file.module));
  const size_t rewrites = leading_rewrites(steps);
  const std::span<const Step> schedule = std::span<const Step>(steps).subspan(rewrites);
  const Graph whole = concretized(file.module, std::span<const Step>(steps).first(rewrites));
  std::vector<Graph> result;
  const bool assigns =
      std::any_of(schedule.begin(), schedule.end(), [](const Step& s) { return s.kind == StepKind::kAssign; });
  if (assigns)
    for (const Segment& segment : plan_steps(whole, schedule).segments) {
      result.push_back(extract(whole, segment));
      apply_but_illegal_inlining(result.back(), segment.steps, note);
    }
  result.push_back(whole);
  if (!assigns) apply_but_illegal_inlining(result.back(), schedule, note);
  return result;
}

std::string names_of(const Graph& g, ValueId v) {
  std::string result;
  for (DomainId d : domains_of(g, g.tensor_of(v))) result += (result.empty() ? "" : ", ") + g[d].name;
  return result;
}

Error unknown(const std::vector<Graph>& graphs, const DomainName& name) {
  const std::string place = written(name);
  for (const Graph& g : graphs)
    if (const auto v = find_value(g, name.tensor); v && g.is_tensor(*v))
      return {ErrorCode::kStepReferent, "this tensor has no such domain; it has " + names_of(g, *v), place};
  return {ErrorCode::kStepReferent,
          "the scheduled program has no tensor of this name; `show --graph exact` has all tensors and domains", place};
}

// -- text

std::string values_text(const std::vector<NamedValue>& values) {
  std::string result;
  for (const NamedValue& v : values) result += (result.empty() ? "" : ", ") + v.name + " = " + std::to_string(v.value);
  return result;
}

std::string answer(bool yes) { return yes ? "yes: " : "no: "; }

void add_line(std::string& out, std::string_view head, const std::string& text) {
  out += fmt::format("{:<14}{}\n", head, text);
}

void add_agreement(std::string& out, const char* head, const Agreement& a) {
  add_line(out, head, answer(a.proved) + a.verdict);
  for (const Reason& r : a.reasons)
    add_line(out, "", (r.kind == Reason::Kind::kFact ? "fact: " : "theorem " + r.name + ": ") + r.text);
  if (!a.difference) return;
  if (!a.difference->sizes.empty()) add_line(out, "", "with " + values_text(a.difference->sizes));
  const std::string where = a.difference->point.empty() ? "everywhere" : "at " + values_text(a.difference->point);
  add_line(out, "", fmt::format("{} they are {} and {}", where, a.difference->a, a.difference->b));
}

constexpr IdGraphKind kKinds[] = {IdGraphKind::kExact, IdGraphKind::kAlmostExact, IdGraphKind::kBroadcast,
                                  IdGraphKind::kPermissive, IdGraphKind::kLoop};

std::string as_text(const std::string& heading, const Explanation& e) {
  std::string out = heading + "\n";
  if (!e.note.empty()) out += e.note + "\n";
  add_agreement(out, "in a nest", e.nest);
  add_agreement(out, "at elements", e.elements);
  for (const IdGraphKind kind : kKinds) {
    const auto& in = e[kind];
    for (size_t i = 0; i < in.because.size(); ++i)
      add_line(out, i == 0 ? text(kind) : "", (i == 0 ? answer(in.one) : "") + in.because[i]);
  }
  return out;
}

// -- JSON

std::string values_json(const std::vector<NamedValue>& values) {
  JsonObject object;
  for (const NamedValue& v : values) object.add(v.name, v.value);
  return object.text();
}

std::string as_json(const Graph& g, const Agreement& a) {
  std::vector<std::string> reasons;
  for (const Reason& r : a.reasons)
    reasons.push_back(JsonObject()
                          .add("kind", r.kind == Reason::Kind::kFact ? "fact" : "theorem")
                          .add("name", r.name)
                          .add("text", r.text)
                          .text());
  JsonObject object;
  object.add("comparable", a.comparable).add("proved", a.proved).add("verdict", a.verdict);
  if (a.comparable) object.add("of", "%" + g[g[a.points].value].name).add("a", a.a_value).add("b", a.b_value);
  object.raw("reasons", json_list(reasons));
  if (a.difference)
    object.raw("difference", JsonObject()
                                 .raw("sizes", values_json(a.difference->sizes))
                                 .raw("point", values_json(a.difference->point))
                                 .add("a", a.difference->a)
                                 .add("b", a.difference->b)
                                 .text());
  else
    object.raw("difference", "null");
  return object.text();
}

std::string as_json(const Graph& g, const std::string& a, const std::string& b, const Explanation& e) {
  JsonObject graphs;
  for (const IdGraphKind kind : kKinds) {
    std::vector<std::string> because;
    for (const std::string& sentence : e[kind].because) because.push_back(json_string(sentence));
    graphs.raw(text(kind), JsonObject().add("one", e[kind].one).raw("because", json_list(because)).text());
  }
  return JsonObject()
      .add("program", g.name)
      .add("a", a)
      .add("b", b)
      .add("note", e.note)
      .raw("nest", as_json(g, e.nest))
      .raw("elements", as_json(g, e.elements))
      .raw("graphs", graphs.text())
      .text();
}

}  // namespace

int explain_command(const ExplainArguments& arguments, Common& common) {
  if (arguments.plan) {
    if (!arguments.a.empty() || !arguments.steps.empty())
      throw Error(ErrorCode::kUsage, "--plan explains the whole program; leave the domains and --steps out", "--plan");
    explain_plan(arguments, common);
    return 0;
  }
  if (arguments.b.empty())
    throw Error(ErrorCode::kUsage, "name two domains, such as %y.i1 %x.i1; --plan explains the automatic plan",
                arguments.file);
  const LoadedFile file = load_file(arguments.file);
  common.subject = subject_of(file);
  const DomainName first = parse_name(arguments.a), second = parse_name(arguments.b);
  std::string note;
  const std::vector<Graph> graphs = scheduled(file, arguments.steps, note);
  const std::string a = written(first), b = written(second);
  for (const Graph& g : graphs) {
    const auto x = find(g, first), y = find(g, second);
    if (!x || !y) continue;
    Explanation e = explain(g, *x, *y);
    if (e.note.empty()) e.note = note;
    if (common.json)
      print_line(as_json(g, a, b, e));
    else
      print_text(as_text(a + " and " + b + " in @" + g.name, e));
    return 0;
  }
  for (const DomainName* name : {&first, &second})
    if (std::none_of(graphs.begin(), graphs.end(), [&](const Graph& g) { return find(g, *name).has_value(); }))
      throw unknown(graphs, *name);
  throw Error(ErrorCode::kStepReferent, "the two are made by the steps of different kernels, and no program has both",
              a + ", " + b);
}

}  // namespace fusebox::cli
