// Reads and writes findings.
#include <algorithm>

#include "fuzz/reduce/reduce.h"
#include "fuzz/run/runner.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "replay/data/file.h"
#include "replay/record/record.h"
#include "serde/decode.h"

namespace fusebox::fuzz {
namespace {

const Graph& only_fusion(const Module& m, const std::string& path) {
  if (m.graphs.empty()) throw Error(ErrorCode::kUsage, "the file holds no program; give a finding", path);
  return main_graph(m);
}

Module module_of(std::span<const uint8_t> bytes) {
  return is_module(bytes) ? decode_module(bytes)
                          : parse_module(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// A case with only the fusion, its schedule and its inputs.
Case case_of(const Module& m, const Graph& fusion) {
  Case c;
  if (fusion.level != Level::kMath)
    throw Error(ErrorCode::kWrongLevel, "what is reduced is a fusion of level math; give the program before its steps",
                "@" + fusion.name);
  c.module.graphs.push_back(fusion);
  if (const StepList* steps = find_steps(m, fusion.name))
    c.module.step_lists.push_back({"", fusion.name, steps->steps});
  const InputSpecs* specs = find_input_specs(m, fusion.name, "host");
  if (!specs) specs = find_input_specs(m, fusion.name, "gpu");
  c.module.input_specs.push_back(specs ? *specs : InputSpecs{fusion.name, "host", {}});
  c.module.input_specs[0].where = "host";
  return c;
}

void put_inputs_in_order(Case& c, const std::string& path) {
  std::vector<InputSpec>& specs = c.module.input_specs[0].specs;
  std::vector<InputSpec> ordered;
  for (ValueId v : inputs(c.fusion())) {
    const std::string& name = c.fusion()[v].name;
    const auto it = std::find_if(specs.begin(), specs.end(), [&](const InputSpec& s) { return s.name == name; });
    if (it == specs.end())
      throw Error(ErrorCode::kMissingInput, "nothing says what values this input has; add it to the inputs of " + path,
                  "%" + name);
    ordered.push_back(*it);
  }
  specs = std::move(ordered);
}

}  // namespace

LoadedFinding load_finding(const std::string& path) {
  const std::vector<std::byte> raw = read_file(path);
  return read_finding({reinterpret_cast<const uint8_t*>(raw.data()), raw.size()}, path);
}

std::vector<Case> load_batch(const std::string& path) {
  const std::vector<std::byte> raw = read_file(path);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(raw.data()), raw.size());
  std::vector<Case> cases;
  if (is_bundle(bytes)) return cases;
  const Module m = module_of(bytes);
  if (std::count_if(m.graphs.begin(), m.graphs.end(), [](const Graph& g) { return g.level == Level::kMath; }) < 2)
    return cases;
  for (const Graph& g : m.graphs) {
    if (g.level != Level::kMath) continue;
    verify(g);
    put_inputs_in_order(cases.emplace_back(case_of(m, g)), path);
  }
  return cases;
}

LoadedFinding read_finding(std::span<const uint8_t> bytes, const std::string& path) {
  LoadedFinding f;
  if (is_bundle(bytes)) {
    const Bundle b = decode_bundle(bytes);
    const Module* given = find_stage(b, Stage::kFusion);
    if (!given) throw Error(ErrorCode::kUsage, "the bundle holds no fusion; record one with its program", path);
    // The record knows what ran, whatever schedule and inputs the file itself has.
    Module m = *given;
    const Graph& fusion = only_fusion(m, path);
    take_recorded_schedule(b, m);
    f.subject = case_of(m, fusion);
    if (!b.ranks.empty() && !b.ranks[0].inputs.empty()) {
      f.subject.module.input_specs[0].specs.clear();
      for (const InputRecord& r : b.ranks[0].inputs) {
        f.subject.module.input_specs[0].specs.push_back(r.spec);
        f.has_other_inputs = f.has_other_inputs || r.bytes;
      }
    }
    if (const std::string* defects = find_value(b.options, "defects")) f.defects = parse_defect_list(*defects);
    if (const std::string* finding = find_value(b.options, "finding")) f.signature = *finding;
    if (const std::string* lineage = find_value(b.options, "lineage")) parse_lineage(*lineage, f.subject);
  } else {
    const Module m = module_of(bytes);
    f.subject = case_of(m, only_fusion(m, path));
  }
  verify(f.subject.fusion());
  put_inputs_in_order(f.subject, path);
  return f;
}

void write_reduced(const Reduction& r, const Defects& defects, const std::string& path) {
  if (path.ends_with(".fir")) return write_file(path, std::string_view(print(r.result.module)));
  const FindingFile file =
      r.is_deadly ? deadly_file(r.result, r.finding, defects) : finding_file(r.result, r.finding, defects);
  write_file(path, std::string_view(file.bytes));
}

}  // namespace fusebox::fuzz
