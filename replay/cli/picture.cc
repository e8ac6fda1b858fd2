#include "replay/cli/picture.h"

#include "ir/table/error.h"
#include "ir/text/print.h"
#include "passes/schedule/apply_steps.h"
#include "replay/cli/json.h"
#include "replay/picture/render.h"

namespace fusebox::cli {
namespace {

using picture::DomainPicture;
using picture::Picture;

std::vector<std::string> step_texts(const std::vector<Step>& steps) {
  std::vector<std::string> out;
  for (const Step& step : steps) out.push_back(print(step));
  return out;
}

// A line for each domain.
std::string json_lines(const Picture& p, IdGraphKind kind) {
  std::string out;
  for (const DomainPicture& d : p.domains) {
    std::vector<std::string> reads;
    for (const picture::Read& r : d.reads) reads.push_back(JsonObject().add("by", r.by).add("index", r.index).text());
    out += JsonObject()
               .add("program", p.name)
               .add("graph", text(kind))
               .add("tensor", p.tensors[d.tensor].name)
               .add("domain", d.full_name)
               .add("iter_type", text(d.iter_type))
               .add("extent", d.extent)
               .add("parallel", text(d.parallel))
               .add("group", static_cast<int64_t>(d.group[static_cast<size_t>(kind)]))
               .add("index", d.index)
               .add("holes", d.may_leave)
               .add("check", d.check)
               .add("rule", d.rule)
               .raw("reads", json_list(reads))
               .text() +
           "\n";
  }
  return out;
}

}  // namespace

std::vector<Picture> describe_all(const std::vector<Graph>& scheduled, const Segmentation* segmentation,
                                  const Defects& defects) {
  std::vector<Picture> out;
  for (size_t i = 0; i < scheduled.size(); ++i) {
    out.push_back(picture::describe(scheduled[i], defects));
    if (!segmentation || i >= segmentation->segments.size()) continue;
    const Segment& segment = segmentation->segments[i];
    out.back().steps = step_texts(segment.steps);
    // Such a segment has no kernel, so notes about lowering do not apply.
    if (segment.executor == SegmentExecutor::kView)
      out.back().note = "a view of its operand's memory: no kernel is made of it";
    else if (segment.executor != SegmentExecutor::kKernel)
      out.back().note = "run by " + std::string(text(segment.executor)) + ": no kernel is made of it";
  }
  return out;
}

Picture describe_uncompiled(const Module& module, const Defects& defects) {
  Graph g = main_graph(module);
  const StepList* list = find_steps(module, g.name);
  if (list) apply_steps(g, list->steps, defects);
  Picture out = picture::describe(g, defects);
  if (list) out.steps = step_texts(list->steps);
  return out;
}

std::string drawn(const std::vector<Picture>& pictures, IdGraphKind kind, const std::string& format) {
  if (format == "svg") return picture::to_svg(pictures, kind);
  if (format == "html") return picture::to_html(pictures, kind);
  std::string out;
  for (const Picture& p : pictures) {
    if (format == "text" && !out.empty()) out += "\n";
    out += format == "text"  ? picture::to_text(p, kind)
           : format == "dot" ? picture::to_dot(p, kind)
                             : json_lines(p, kind);
  }
  return out;
}

}  // namespace fusebox::cli
