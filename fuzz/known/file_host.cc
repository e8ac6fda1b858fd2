// The file tests of host programs and launch records (file_kinds.h).
#include <fmt/format.h>
#include <regex>
#include <sstream>

#include "fuzz/known/file_kinds.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/table/op.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/host/launch_code.h"
#include "replay/data/input.h"
#include "replay/run/aten_segment.h"

namespace fusebox::fuzz {
namespace {

// The listing, with the ops of `compute` by name: their numbers change with the table of ops.
std::string record_text(const Graph& host, const std::vector<std::string>& kernels) {
  const auto record = launch_code(host, kernels);
  if (!record) return "no launch record\n";
  if (const auto why = objection(*record)) return "a broken launch record: " + *why + "\n";
  static const std::regex compute("(compute r[0-9]+ )([0-9]+)( [^\n]*)");
  std::string out;
  std::istringstream lines(text(*record));
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (std::regex_search(line, m, compute))
      line =
          m.prefix().str() + m[1].str() + std::string(row_of(static_cast<OpKind>(std::stoi(m[2]))).text) + m[3].str();
    out += line + "\n";
  }
  return out;
}

}  // namespace

const InputSpecs& host_specs(const Module& m, const Graph& g) {
  const InputSpecs* specs = find_input_specs(m, g.name, "host");
  if (specs == nullptr)
    throw Error(ErrorCode::kMissingInput, "the file has no inputs `host`; write them", "@" + g.name);
  return *specs;
}

std::vector<Argument> host_arguments(const Module& m, const Graph& g) {
  std::vector<Argument> arguments;
  for (const InputSpec& spec : host_specs(m, g).specs) arguments.push_back(make_argument(spec, 1));
  return arguments;
}

Compiled compiled_for_host(const Module& m, const FileRequest& r) {
  const Graph& g = main_graph(m);
  CompileOptions options;
  options.inputs = bound_inputs(host_arguments(m, g));
  if (r.has("automatic")) options.device = default_device();
  if (r.has("layouts")) options.infer = infer_by_aten();
  if (const StepList* list = find_steps(m, g.name); list != nullptr && !r.has("unfused") && !r.has("automatic"))
    options.steps = list->steps;
  return compile(g, bind_sizes(g, options.inputs), options);
}

std::string host_text(const Module& m, const FileRequest& r) {
  verify(m);
  const Graph& g = main_graph(m);
  if (g.level == Level::kHost) return record_text(g, r.options);
  const Compiled c = compiled_for_host(m, r);
  std::vector<std::string> names;
  for (const Segment& s : c.segmentation.segments) names.push_back(s.name);
  return fmt::format("{}\n{}\nindex {}\n", print(c.host), record_text(c.host, names), c.index_bits);
}

}  // namespace fusebox::fuzz
