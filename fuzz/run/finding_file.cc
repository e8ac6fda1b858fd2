// Writes findings to files.
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <string_view>

#include "fuzz/run/runner.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "replay/data/file.h"
#include "replay/data/input.h"
#include "replay/record/record.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

void describe(Bundle& b, const Case& c, const Finding& finding) {
  b.options.push_back({"finding", text(finding.signature)});
  b.options.push_back({"message", finding.message.substr(0, 4096)});
  b.options.push_back({"lineage", print_lineage(c).substr(0, 60000)});
}

// A file name that every system accepts.
std::string file_name(const Signature& s) {
  std::string name;
  for (const char c : text(s)) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  while (name.ends_with('-')) name.pop_back();
  return name.substr(0, 120);
}

}  // namespace

std::string check_of_death(const std::string& death) {
  constexpr std::string_view kKilled = "killed by ";
  if (death.starts_with(kKilled)) return "crash " + death.substr(kKilled.size());
  if (death.starts_with("took longer")) return "timeout";
  if (death == fmt::format("exited with code {}", kDeviceLostExit)) return "device lost";
  return death == "ran out of memory" ? "memory" : death;
}

Bundle finding_bundle(const Case& c, const Finding& finding, const Defects& defects) {
  std::vector<Argument> arguments;
  for (const InputSpec& spec : c.inputs().specs) arguments.push_back(make_argument(spec, 1));
  const Run run =
      run_program(c.module, arguments, {.executor = Executor::kHost, .defects = defects, .keep_sources = false});
  Bundle b = make_bundle(run, c.module, recorded_inputs(c.fusion(), &c.inputs(), {}, arguments), arguments);
  describe(b, c, finding);
  return b;
}

FindingFile finding_file(const Case& c, const Finding& finding, const Defects& defects) {
  try {
    FindingFile file{encode(finding_bundle(c, finding, defects)), false};
    // Reading refuses a stage that does not verify. Then the program alone is more useful.
    decode_bundle(bytes_of(file.bytes));
    return file;
  } catch (const Error&) {
    return deadly_file(c, finding, defects);
  }
}

FindingFile deadly_file(const Case& c, const Finding& finding, const Defects& defects) {
  try {
    Bundle b;
    b.program = c.fusion().name;
    b.stages.push_back({Stage::kFusion, c.module});
    if (!defects.empty()) b.options.push_back({"defects", join(defects)});
    describe(b, c, finding);
    return {encode(b), false};
  } catch (const Error&) {
    return {print(c.module), true};
  }
}

std::string print_batch(std::span<const GpuCase> cases) {
  Module all;
  for (const GpuCase& c : cases) {
    const std::string name = "case_" + std::to_string(c.number);
    all.graphs.push_back(c.subject.fusion());
    all.graphs.back().name = name;
    if (const std::vector<Step>* steps = c.subject.steps()) all.step_lists.push_back({"", name, *steps});
    all.input_specs.push_back(c.subject.inputs());
    all.input_specs.back().graph = name;
  }
  return print(all);
}

void write_finding(const std::string& folder, KeptFinding& finding, const Statistics& s) {
  const auto is_taken = [&](const std::string& path) {
    return std::any_of(s.findings.begin(), s.findings.end(), [&](const KeptFinding& other) {
      return other.file == path && other.finding.signature != finding.finding.signature;
    });
  };
  const std::string stem = folder + "/" + file_name(finding.finding.signature);
  const char* extension = finding.saved.is_text ? ".fir" : ".fuse";
  std::string path = stem + extension;
  for (int i = 2; is_taken(path); ++i) path = stem + "-" + std::to_string(i) + extension;
  write_file(path, std::string_view(finding.saved.bytes));
  if (!finding.batch.empty())
    write_file(path.substr(0, path.rfind('.')) + ".batch.fir", std::string_view(finding.batch));
  finding.file = path;
  finding.saved = {};
  finding.batch = {};
}

}  // namespace fusebox::fuzz
