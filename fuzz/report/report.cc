#include "fuzz/report/report.h"

#include <fmt/format.h>
#include <map>

#include "fuzz/reduce/reduce.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "passes/schedule/apply_steps.h"
#include "replay/gate/gate_workers.h"
#include "replay/picture/render.h"

namespace fusebox::fuzz {
namespace {

using picture::escaped;

constexpr size_t kPictureBytes = 1 << 20;
constexpr double kPictureSeconds = 20;

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Fusebox: a campaign</title>
<style>
:root { color-scheme: light; font: 15px/1.45 system-ui, sans-serif; color: #1d2330; background: #fff; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; border-bottom: 1px solid #d5d9e2; }
h3 { font: 600 1rem ui-monospace, monospace; margin-bottom: .3rem; }
table { border-collapse: collapse; } td, th { padding: .15rem .9rem .15rem 0; text-align: left; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } th { font-weight: 600; color: #566; }
pre, code { font: 13px/1.4 ui-monospace, monospace; } pre { background: #f4f5f8; padding: .6rem; overflow: auto; max-height: 20rem; white-space: pre-wrap; }
.bar { display: inline-block; width: 12rem; height: .7rem; background: #f3d9d3; } .bar i { display: block; height: 100%; background: #3a7a5b; }
.chart { width: 100%; } .chart text { font: 12px system-ui, sans-serif; fill: #566; } .grid { stroke: #e4e7ee; }
.line { fill: none; stroke: #2457a6; stroke-width: 2; } .all { stroke: #3a7a5b; stroke-dasharray: 4 4; } .chart circle { fill: #b3261e; }
img { max-width: 100%; border: 1px solid #d5d9e2; } .missing { columns: 3; margin: .3rem 0; padding-left: 1.2rem; } .ok { color: #3a7a5b; } .bad { color: #b3261e; }
</style></head><body>
)";

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// The picture of a finding's schedule as an <img> element that contains it; empty if it cannot be drawn.
std::string picture_of(const std::string& file) {
  try {
    const Case c = load_finding(file).subject;
    Graph g = c.fusion();
    if (c.steps()) apply_steps(g, *c.steps());
    const picture::Picture p = picture::describe(g);
    const std::string svg = picture::to_svg({&p, 1}, IdGraphKind::kExact);
    if (svg.size() > kPictureBytes) return "";
    return "<img alt=\"iteration domains of the schedule\" src=\"data:image/svg+xml;base64," + base64(svg) + "\">";
  } catch (const Error&) {
    return "";
  }
}

// One picture for each finding. Each is drawn in a process of its own, because the bug may break drawing too.
std::vector<std::string> pictures_of(const std::vector<KeptFinding>& findings) {
  std::vector<std::string> out(findings.size());
  run_in_workers(
      findings.size(), {.timeout_s = kPictureSeconds},
      [&](size_t i) { return findings[i].file.empty() ? std::string() : picture_of(findings[i].file); },
      [&](WorkerAnswer a) { out[a.task] = std::move(a.answer); });
  return out;
}

std::string figure(std::string_view name, const std::string& value) {
  return fmt::format("<tr><th>{}</th><td class=\"n\">{}</td></tr>\n", name, value);
}

double percent(uint64_t part, uint64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string figures(const CampaignState& state) {
  const Statistics& s = state.statistics;
  std::string out = "<h2>Figures</h2>\n<table>\n";
  out += figure("cases", fmt::format("{}", s.cases)) + figure("seconds", fmt::format("{:.1f}", s.seconds));
  out += figure("cases a second", fmt::format("{:.0f}", s.cases_per_second()));
  out += figure("valid", fmt::format("{:.1f} %", 100 * s.valid_rate()));
  out += figure("mutated", fmt::format("{:.1f} %", percent(s.mutated, s.cases)));
  out += figure("mutations that are valid", fmt::format("{:.1f} %", percent(s.mutated_valid, s.mutated)));
  out +=
      figure("schedules that compile as drawn", fmt::format("{:.1f} %", percent(s.drawn_legal, s.cases - s.mutated)));
  out += figure("elements compared with ATen", fmt::format("{}", s.compared));
  out += figure("of them near a jump", fmt::format("{:.2f} %", percent(s.ambiguous, s.compared)));
  out += figure("of them free", fmt::format("{:.2f} %", percent(s.unconstrained, s.compared)));
  out += figure("cases that ended their process", fmt::format("{}", s.died)) + "</table>\n";
  out += "<details><summary>Oracles and refusals</summary><table>\n<tr><th>oracle</th><th>cases</th></tr>\n";
  for (size_t i = 0; i < s.judged.size(); ++i) out += figure(oracle_rows()[i].text, fmt::format("{}", s.judged[i]));
  out += "<tr><th>refused</th><th>cases</th></tr>\n";
  for (const auto& [code, count] : s.refusals) out += figure(escaped(code), fmt::format("{}", count));
  return out + "</table></details>\n<details><summary>Configuration</summary><pre>" + escaped(state.configuration) +
         "</pre></details>\n";
}

std::string coverage_tables(const Statistics& s) {
  struct Group {
    uint64_t rows = 0, covered = 0;
    std::string missing, all;
  };
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  for (const CoverageRow& row : s.coverage.rows()) {
    if (!groups.contains(row.group)) order.push_back(row.group);
    Group& g = groups[row.group];
    ++g.rows;
    g.covered += row.count > 0 ? 1 : 0;
    if (row.count == 0) g.missing += "<li>" + escaped(row.name) + "</li>";
    g.all += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td></tr>", escaped(row.name), row.count);
  }
  std::string out = "<table>\n<tr><th>group</th><th>rows</th><th>produced</th><th></th></tr>\n";
  for (const std::string& name : order) {
    const Group& g = groups[name];
    out += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td><span class=\"bar\"><i "
        "style=\"width:{:.1f}%\"></i></span></td></tr>\n",
        escaped(name), g.rows, g.covered, percent(g.covered, g.rows));
  }
  out += "</table>\n";
  for (const std::string& name : order) {
    const Group& g = groups[name];
    if (!g.missing.empty())
      out += fmt::format(
          "<details class=\"missing-rows\"><summary>{}: {} rows not produced yet</summary><ul "
          "class=\"missing\">{}</ul></details>\n",
          escaped(name), g.rows - g.covered, g.missing);
    out += fmt::format("<details><summary>{}: all counts</summary><table>{}</table></details>\n", escaped(name), g.all);
  }
  return out;
}

std::string finding_section(const KeptFinding& f, const std::string& picture, const std::string& folder) {
  std::string out =
      fmt::format("<section class=\"finding\"><h3 class=\"bad\">{}</h3>\n<p>{} case{}; first case {}, after {:.1f} s",
                  escaped(text(f.finding.signature)), f.count, f.count == 1 ? "" : "s", f.number, f.seconds);
  if (!f.file.empty()) {
    const std::string link = f.file.starts_with(folder + "/") ? f.file.substr(folder.size() + 1) : f.file;
    out += fmt::format("; <a href=\"{0}\">{0}</a>", escaped(link));
  }
  out += "</p>\n<pre>" + escaped(f.finding.message) + "</pre>\n";
  if (!f.lineage.empty()) out += "<details><summary>lineage</summary><pre>" + escaped(f.lineage) + "</pre></details>\n";
  if (!picture.empty()) out += "<details open><summary>schedule</summary>" + picture + "</details>\n";
  return out + "</section>\n";
}

}  // namespace

std::string campaign_report(const CampaignState& state, const std::string& folder) {
  const Statistics& s = state.statistics;
  const std::vector<std::string> pictures = pictures_of(s.findings);
  std::string out = std::string(kHead) + "<h1>Fusebox: a campaign</h1>\n<p>" + escaped(progress_line(s)) + "</p>\n";
  out += figures(state) + "<h2>Coverage</h2>\n" + coverage_chart(state.series, s.coverage.row_count()) + "\n";
  out += coverage_tables(s) + "<h2>Findings</h2>\n";
  if (s.findings.empty()) out += "<p class=\"ok\">Nothing was found.</p>\n";
  for (size_t i = 0; i < s.findings.size(); ++i) out += finding_section(s.findings[i], pictures[i], folder);
  return out + "</body></html>\n";
}

}  // namespace fusebox::fuzz
