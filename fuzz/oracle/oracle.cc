#include "fuzz/oracle/oracle.h"

#include <algorithm>

#include "ir/table/error.h"
#include "passes/schedule/apply_steps.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/aten_segment.h"
#include "replay/run/host_program.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

constexpr OracleRow kRows[] = {
#define FUSEBOX_ORACLE(name, text, every, summary) {text, name, every, summary},
#include "fuzz/oracle/oracle_table.inc"
#undef FUSEBOX_ORACLE
};

}  // namespace

std::span<const OracleRow> oracle_rows() { return kRows; }

bool is_due(const OracleRow& row, uint64_t number) {
  constexpr uint32_t kCostly = 256;
  // A focus has the cases of one remainder by 4 or 8 (focus.h). The upper digits change the lowest one, so that no
  // oracle always judges the same remainders. Each 16 numbers are still permuted among themselves.
  constexpr uint64_t kDigit = 15;
  uint64_t digit = 0;
  for (uint64_t rest = number; rest > 0; rest >>= 4) digit ^= rest & kDigit;
  const uint64_t mixed = (number & ~kDigit) | digit;
  return mixed % row.every == (row.every > kCostly ? row.every - 1 : 0);
}

std::vector<size_t> parse_oracles(std::string_view joined) {
  std::vector<size_t> result;
  while (!joined.empty()) {
    const size_t comma = joined.find(',');
    const std::string_view word = joined.substr(0, comma);
    const auto it =
        std::find_if(std::begin(kRows), std::end(kRows), [&](const OracleRow& r) { return r.text == word; });
    if (it == std::end(kRows)) {
      std::string known;
      for (const OracleRow& r : kRows) known += (known.empty() ? "" : ", ") + std::string(r.text);
      throw Error(ErrorCode::kUnknownName, "no oracle has this name; there are " + known, std::string(word));
    }
    result.push_back(static_cast<size_t>(it - std::begin(kRows)));
    joined = comma == std::string_view::npos ? std::string_view() : joined.substr(comma + 1);
  }
  return result;
}

std::string text(const Signature& s) { return s.stage + " " + s.check + (s.place.empty() ? "" : " " + s.place); }

HostDeviceOptions host_options(const JudgeOptions& options) {
  return {.step_limit = options.step_limit, .memory_limit = options.memory_limit, .defects = options.defects};
}

OracleRun::OracleRun(const Case& c, const JudgeOptions& options)
    : case_(c), options_(options), sizes_(sizes_of(c.fusion(), c.inputs())) {}

std::span<const Argument> OracleRun::arguments() {
  if (arguments_.empty())
    for (const InputSpec& s : case_.inputs().specs) arguments_.push_back(make_argument(s, 1));
  return arguments_;
}

std::vector<size_t> OracleRun::compiled_kernels() {
  std::vector<size_t> kernels;
  const Compiled* c = compiled();
  for (size_t k = 0; c && k < c->kernels.size(); ++k)
    if (c->segmentation.segments[k].executor == SegmentExecutor::kKernel) kernels.push_back(k);
  return kernels;
}

std::optional<size_t> OracleRun::one_kernel(RandomSource& random) {
  const std::vector<size_t> kernels = compiled_kernels();
  if (kernels.empty()) return std::nullopt;
  return random.pick(kernels);
}

const Compiled* OracleRun::compiled() {
  if (is_compiled_) return compiled_;
  is_compiled_ = true;
  if (case_.compiled) return compiled_ = &*case_.compiled;
  try {
    CompileOptions options{
        .inputs = bound_inputs(case_.inputs()), .defects = options_.defects, .infer = infer_by_aten()};
    if (case_.steps()) options.steps = *case_.steps();
    own_ = compile(fusion(), sizes_, options);
    compiled_ = &*own_;
  } catch (const Error& e) {
    refusal_ = e;
  }
  return compiled_;
}

CompileOptions OracleRun::automatic_options() {
  CompileOptions options;
  options.inputs = bound_inputs(arguments());
  options.defects = options_.defects;
  options.device = default_device();
  options.infer = infer_by_aten();
  return options;
}

const Compiled* OracleRun::planned() {
  if (!is_planned_) {
    is_planned_ = true;
    try {
      planned_ = compile(fusion(), sizes_, automatic_options());
    } catch (const Error& e) {
      planned_refusal_ = e;
    }
  }
  return planned_ ? &*planned_ : nullptr;
}

HostRun OracleRun::run_program_on(Device& device, const Graph& g, const Compiled& c, std::span<const Argument> given) {
  HostRun run;
  const std::vector<NamedKernel> kernels = named_kernels(c);
  try {
    HostProgramOptions host;
    host.run_aten = run_aten_segments(c);
    ProgramResult result = run_host_program(c.host, kernels, device, given, host);
    check_internal(result.outputs.size() == outputs(g).size(), "a run gives another number of outputs than the fusion");
    for (ProgramOutput& out : result.outputs) run.outputs.push_back(std::move(out.value));
    run.by_aten = std::move(result.by_aten);
    run.allocated = std::move(result.allocated);
  } catch (const Error& e) {
    run.failure = e;
  }
  return run;
}

HostRun OracleRun::run_host(const Graph& g, const Compiled& c, std::span<const Argument> given) {
  const auto device = make_host_device(host_options(options_));
  return run_program_on(*device, g, c, given);
}

// A data-dependent read outside its axis has no result that could be judged.
bool OracleRun::reads_out_of_range() {
  // Some ops that ATen computes take places too.
  const bool reads_by_data = std::any_of(fusion().ops.begin(), fusion().ops.end(),
                                         [](const Op& op) { return demands(op.kind, kIndexed | kLibrary); });
  if (reads_by_data) reference();
  return out_of_range_.has_value();
}

const HostRun& OracleRun::scheduled() {
  if (!scheduled_) {
    scheduled_.emplace();
    if (compiled() && reads_out_of_range())
      scheduled_->failure = out_of_range_;
    else if (const Compiled* c = compiled())
      scheduled_ = run_host(fusion(), *c, arguments());
    else
      scheduled_->failure = refusal_;
  }
  return *scheduled_;
}

HostRun OracleRun::run_unfused(const Graph& g, std::span<const Argument> given) {
  try {
    const Bindings sizes = sizes_of(g, case_.inputs());
    const Compiled c = compile(
        g, sizes, {.inputs = bound_inputs(case_.inputs()), .defects = options_.defects, .infer = infer_by_aten()});
    return run_host(g, c, given.empty() ? arguments() : given);
  } catch (const Error& e) {
    HostRun run;
    run.failure = e;
    return run;
  }
}

const HostRun& OracleRun::unfused() {
  if (!unfused_) {
    if (reads_out_of_range())
      unfused_.emplace().failure = out_of_range_;
    else
      unfused_ = run_unfused(fusion());
  }
  return *unfused_;
}

const Graph& OracleRun::judged() {
  if (!judged_) judged_ = case_.steps() ? with_precision(fusion(), *case_.steps()) : fusion();
  return *judged_;
}

const Evaluation* OracleRun::reference() {
  if (!asked_reference_) {
    asked_reference_ = true;
    if (const AtenApi* api = find_aten()) {
      try {
        reference_ = api->evaluate(judged(), arguments());
      } catch (const Error& e) {
        if (row_of(e.code).outcome == Outcome::kInternal) report("aten", e, "the evaluator");
        if (e.code == ErrorCode::kIndexOutOfRange) out_of_range_ = e;
      }
    }
  }
  return reference_ ? &*reference_ : nullptr;
}

void OracleRun::report(std::string_view stage, std::string_view check, std::string_view place, std::string message) {
  findings.push_back({{std::string(stage), std::string(check), place_class(fusion(), place)}, std::move(message)});
}

void OracleRun::report(std::string_view stage, const Error& e, std::string_view context) {
  report(stage, code_text(e.code), e.place,
         (context.empty() ? "" : std::string(context) + ": ") + code_text(e.code) + " " + e.place + ": " + e.what());
}

}  // namespace fusebox::fuzz
