// `explain FILE --plan`: the automatic plan as text, JSON or a page.
#include <algorithm>

#include "ir/infer/bind.h"
#include "passes/automatic/plan_report.h"
#include "passes/schedule/apply_steps.h"
#include "replay/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/load.h"
#include "replay/cli/report.h"
#include "replay/picture/render.h"
#include "replay/run/aten_segment.h"

namespace fusebox::cli {
namespace {

std::string bytes_text(int64_t bytes) {
  if (bytes < 10000) return fmt::format("{} B", bytes);
  if (bytes < 10000000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

int64_t sum(const std::vector<PlanTensor>& tensors) {
  int64_t total = 0;
  for (const PlanTensor& t : tensors) total += t.bytes;
  return total;
}

std::string names(const std::vector<PlanTensor>& tensors) {
  std::string out;
  for (const PlanTensor& t : tensors) out += (out.empty() ? "%" : ", %") + t.name + " " + bytes_text(t.bytes);
  return out.empty() ? "nothing" : out;
}

std::string names(const std::vector<std::string>& ops) {
  std::string out;
  for (const std::string& name : ops) out += (out.empty() ? "%" : " %") + name;
  return out;
}

std::string why(const PlanMerge& m) {
  std::string out;
  for (const std::string& name : m.own_memory) out += (out.empty() ? "; it copies %" : ", %") + name;
  if (!out.empty()) out += " at the end";
  if (!m.heuristics.empty()) return "possible (" + m.heuristics + out + "), but the plan as it is costs less";
  for (const Declined& d : m.declined)
    out += (out.empty() ? "" : "; ") + (d.scheduler == "any" ? d.why : "not " + d.scheduler + ": " + d.why);
  return out;
}

std::string copy_text(const PlanCopy& c) {
  return "%" + c.from.name + " " + bytes_text(c.from.bytes) + " is copied over %" + c.to + " at the end";
}

std::string head(const std::string& program, const PlanReport& r) {
  int64_t moved = 0;
  for (const PlanPart& p : r.parts)
    if (p.executor != SegmentExecutor::kView) moved += sum(p.reads) + sum(p.writes);
  for (const PlanCopy& c : r.copies) moved += 2 * c.from.bytes;
  return fmt::format("@{}: {} segment{}, {} through memory", program, r.parts.size(), r.parts.size() == 1 ? "" : "s",
                     bytes_text(moved));
}

std::string as_text(const std::string& program, const PlanReport& r) {
  std::string out = head(program, r) + "\n";
  for (const PlanPart& p : r.parts) {
    out += "@" + p.segment + "  " + (p.heuristics.empty() ? std::string(text(p.executor)) : p.heuristics) + "\n";
    out += "  computes " + names(p.ops) + "\n  reads    " + names(p.reads) + "\n  writes   " + names(p.writes) + "\n";
    for (const Declined& d : p.declined) out += "  not " + d.scheduler + ": " + d.why + "\n";
  }
  for (const PlanMerge& m : r.merges)
    out += "@" + r.parts[m.from].segment + " and @" + r.parts[m.to].segment + " are apart at " + names(m.crossing) +
           ": " + why(m) + "\n";
  for (const PlanCopy& c : r.copies) out += copy_text(c) + "\n";
  return out;
}

std::string tensors_json(const std::vector<PlanTensor>& tensors) {
  std::vector<std::string> all;
  for (const PlanTensor& t : tensors) all.push_back(JsonObject().add("name", t.name).add("bytes", t.bytes).text());
  return json_list(all);
}

std::string declined_json(const std::vector<Declined>& declined) {
  std::vector<std::string> all;
  for (const Declined& d : declined) all.push_back(JsonObject().add("scheduler", d.scheduler).add("why", d.why).text());
  return json_list(all);
}

std::vector<std::string> quoted(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) all.push_back(json_string(name));
  return all;
}

std::string as_json(const std::string& program, const PlanReport& r) {
  std::vector<std::string> parts, merges, copies;
  for (const PlanPart& p : r.parts) {
    parts.push_back(JsonObject()
                        .add("segment", p.segment)
                        .add("executor", text(p.executor))
                        .add("heuristics", p.heuristics)
                        .raw("ops", json_list(quoted(p.ops)))
                        .raw("reads", tensors_json(p.reads))
                        .raw("writes", tensors_json(p.writes))
                        .raw("declined", declined_json(p.declined))
                        .text());
  }
  for (const PlanMerge& m : r.merges)
    merges.push_back(JsonObject()
                         .add("from", r.parts[m.from].segment)
                         .add("to", r.parts[m.to].segment)
                         .raw("crossing", tensors_json(m.crossing))
                         .add("possible", m.heuristics)
                         .raw("own_memory", json_list(quoted(m.own_memory)))
                         .raw("declined", declined_json(m.declined))
                         .text());
  for (const PlanCopy& c : r.copies)
    copies.push_back(JsonObject().add("name", c.from.name).add("bytes", c.from.bytes).add("over", c.to).text());
  return JsonObject()
      .add("program", program)
      .raw("segments", json_list(parts))
      .raw("merges", json_list(merges))
      .raw("copies", json_list(copies))
      .text();
}

// A page of its own: a box for each segment, and for each tensor that crosses an arc as wide as its bytes.
std::string as_page(const std::string& program, const PlanReport& r) {
  using picture::escaped;
  // A letter of the fixed pitch font is 7.3 pixels wide.
  constexpr int kWidth = 920, kHeight = 118, kGap = 40, kArc = 46, kLines = 5;
  constexpr size_t kMostLetters = 122;
  int64_t most = 1;
  size_t reach = 1;
  for (const PlanMerge& m : r.merges) {
    most = std::max(most, sum(m.crossing));
    reach = std::max(reach, m.to - m.from);
  }
  const int rows = static_cast<int>(r.parts.size());
  const int width = kWidth + 180 + static_cast<int>(reach) * kArc;
  std::string svg = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\">\n", width,
                                rows * (kHeight + kGap) + 20);
  const auto top = [](size_t i) { return 10 + static_cast<int>(i) * (kHeight + kGap); };
  for (const PlanMerge& m : r.merges) {
    const int y0 = top(m.from) + kHeight * 2 / 3, y1 = top(m.to) + kHeight / 3;
    const int x = kWidth + 10, far = x + 20 + static_cast<int>(m.to - m.from) * kArc;
    const double thick = 1.5 + 6.0 * static_cast<double>(sum(m.crossing)) / static_cast<double>(most);
    svg += fmt::format(
        "<path d=\"M{} {}C{} {} {} {} {} {}\" class=\"arc\" style=\"stroke-width:{:.1f}\"><title>{}</title></path>\n",
        x, y0, far, y0, far, y1, x, y1, thick, escaped(names(m.crossing) + " — " + why(m)));
    svg += fmt::format("<text x=\"{}\" y=\"{}\" class=\"bytes\">{}</text>\n", (x + 3 * far) / 4 + 8, (y0 + y1) / 2 + 4,
                       escaped(bytes_text(sum(m.crossing))));
  }
  const auto shortened = [](std::string s, size_t most_letters) {
    if (s.size() > most_letters) s = s.substr(0, most_letters - 1) + "…";
    return s;
  };
  for (size_t i = 0; i < r.parts.size(); ++i) {
    const PlanPart& p = r.parts[i];
    const int y = top(i);
    svg += fmt::format("<g><title>{}</title><rect x=\"10\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n",
                       escaped(p.heuristics + " — " + names(p.ops)), y, kWidth, kHeight);
    // The scheduler stands beside the name, and its choices below.
    const size_t space = std::min(p.heuristics.find(' '), p.heuristics.size());
    const std::string scheduler = p.heuristics.empty() ? std::string(text(p.executor)) : p.heuristics.substr(0, space);
    const std::string lines[kLines] = {"@" + p.segment + "  " + scheduler,
                                       p.heuristics.substr(std::min(space + 1, p.heuristics.size())), names(p.ops),
                                       "reads " + names(p.reads), "writes " + names(p.writes)};
    for (int k = 0; k < kLines; ++k)
      svg += fmt::format("<text x=\"22\" y=\"{}\" class=\"{}\">{}</text>\n", y + 22 + 21 * k, k == 0 ? "name" : "line",
                         escaped(shortened(lines[k], kMostLetters)));
    svg += "</g>\n";
  }
  std::string reasons;
  for (const PlanPart& p : r.parts)
    for (const Declined& d : p.declined)
      reasons += "<tr><td>@" + escaped(p.segment) + "</td><td>not " + escaped(d.scheduler) + "</td><td>" +
                 escaped(d.why) + "</td></tr>\n";
  for (const PlanMerge& m : r.merges)
    reasons += "<tr><td>@" + escaped(r.parts[m.from].segment) + " + @" + escaped(r.parts[m.to].segment) +
               "</td><td>apart</td><td>" + escaped(why(m)) + "</td></tr>\n";
  for (const PlanCopy& c : r.copies)
    reasons += "<tr><td>%" + escaped(c.from.name) + "</td><td>copy</td><td>" + escaped(copy_text(c)) + "</td></tr>\n";
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped("@" + program) +
         "</title>\n<style>\nbody{font:14px/1.45 system-ui,sans-serif;margin:24px;color:#1d2733;background:#fff}\n"
         "rect{fill:#eef4fb;stroke:#5b7da6}\ntext{font:12px ui-monospace,monospace;fill:#1d2733}\n"
         "text.name{font-weight:600}\n.line{fill:#43566b}\n.bytes{font-size:12px;fill:#8a4b00}\n.arc{fill:none;stroke:#"
         "d58a2e;opacity:.75}\n"
         "table{border-collapse:collapse;margin-top:16px}\ntd{border-top:1px solid #dde5ee;padding:4px 12px 4px 0;"
         "vertical-align:top}\n"
         "td:nth-child(-n+2){white-space:nowrap}\nth{text-align:left;padding:4px 12px 4px "
         "0}\n</style></head>\n<body><h1>" +
         escaped(head(program, r)) + "</h1>\n" + svg +
         "</svg>\n<table>\n<tr><th>segment</th><th>scheduler</th><th>why</th></tr>\n" + reasons +
         "</table>\n</body></html>\n";
}

}  // namespace

void explain_plan(const ExplainArguments& arguments, Common& common) {
  LoadedFile file = load_file(arguments.file);
  common.subject = subject_of(file);
  PlanArguments plan = arguments.device;
  plan.plan = "automatic";
  choose_plan(file.module, plan);
  const Graph& fusion = main_graph(file.module);
  CompileOptions options;
  options.inputs = default_sizes(file.module, arguments.where);
  options.device = planned_device(plan, Executor::kHost);
  options.infer = infer_by_aten();
  const Bindings bindings = bind_sizes(fusion, options.inputs);
  const Compiled c = compile(fusion, bindings, options);
  const PlanReport report = report_plan(c.concretized, c.segmentation, c.automatic->decisions,
                                        {.sizes = rebind(fusion, bindings, c.concretized),
                                         .memory = c.automatic->memory,
                                         .device = *options.device,
                                         .defects = {}});
  if (common.json || arguments.format == "json")
    print_line(as_json(fusion.name, report));
  else
    print_text(arguments.format == "html" ? as_page(fusion.name, report) : as_text(fusion.name, report));
}

}  // namespace fusebox::cli
