// Oracles: each judges a case and reports what is wrong. To add one, add a row of oracle_table.inc and its function.
//
// Invariants: an oracle does not change the case and is deterministic; shared results (the runs, the reference) are
// computed once, on first use.
//
//   OracleRun run(case, {});
//   for (const OracleRow& row : oracle_rows()) row.judge(run);
//   run.findings                              // each with a signature: stage, check, place class
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/base/random_source.h"
#include "fuzz/generate/case.h"
#include "ir/table/defect.h"
#include "replay/device/aten_api.h"
#include "replay/device/device.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"

namespace fusebox::fuzz {

// The part of two findings that is equal if they probably are the same bug: where it shows, what differs, and at what
// kind of place (the op that makes the value, not its name).
struct Signature {
  std::string stage;  // an oracle's name, or `generate`, `compile`
  std::string check;  // an error code, or the thing that differed
  std::string place;  // an op, an input, or empty
  auto operator<=>(const Signature&) const = default;
};
std::string text(const Signature& s);

struct Finding {
  Signature signature;
  std::string message;
};

class OracleRun;
struct OracleRow {
  std::string_view text;
  void (*judge)(OracleRun&);
  uint32_t every;  // it judges one case in so many
  std::string_view summary;
};
std::span<const OracleRow> oracle_rows();
// Whether an oracle judges the case of this number if no oracle was asked for by name. A costly one judges the last of
// so many cases, so a short campaign does without it.
bool is_due(const OracleRow& row, uint64_t number);
// Positions in oracle_rows. Throws kUnknownName for a name that no row has.
std::vector<size_t> parse_oracles(std::string_view joined);

struct JudgeOptions {
  uint64_t number = 0;  // of the case in its campaign
  Defects defects = {};
  int64_t step_limit = int64_t{1} << 28;  // per launch, in thread-instructions
  // Bytes, per launch. A legal schedule may need any number of blocks at once, also at sizes that no schedule was drawn
  // for; a process of a campaign has 4 GiB.
  int64_t memory_limit = int64_t{1} << 28;
  int field_changes = 2;  // how many single members each of `digests` and `fields` changes in a case
  Device* gpu = nullptr;  // for the oracle `gpu`, which is silent without one
};

// The host executor for a case, within the limits of the campaign. Every oracle that runs kernels has it from here, so
// that a launch beyond the limits is refused wherever it was drawn.
HostDeviceOptions host_options(const JudgeOptions& options);

// The number of changes when one case is judged alone: enough to reach most members of a small case.
inline constexpr int kFieldChangesAlone = 4000;

// One run on the host executor or a GPU: its outputs, or the reason why there are none.
struct HostRun {
  std::vector<Argument> outputs;
  std::optional<Error> failure;
  std::vector<AtenResult> by_aten;                            // the layouts that ATen chose
  std::vector<std::pair<std::string, TensorData>> allocated;  // without memory
  bool ok() const { return !failure; }
};

// A case being judged. Shared results are computed on first use.
class OracleRun {
 public:
  OracleRun(const Case& c, const JudgeOptions& options);

  const Case& subject() const { return case_; }
  // The random numbers of one oracle. `oracle` is a number of its own.
  RandomSource random(uint64_t oracle) const { return RandomSource(case_.seed + oracle * case_.lineage.size()); }
  const JudgeOptions& options() const { return options_; }
  const Graph& fusion() const { return case_.fusion(); }
  const Bindings& sizes() const { return sizes_; }
  std::span<const Argument> arguments();

  // Nothing if the program is refused. Then the case is not valid, which is no finding.
  const Compiled* compiled();
  // The compiled program's segments that are kernels; none without a compiled program.
  std::vector<size_t> compiled_kernels();
  // One of them by chance, if there is one.
  std::optional<size_t> one_kernel(RandomSource& random);
  const std::optional<Error>& refusal() { return compiled(), refusal_; }
  // The automatic plan for the default device; nothing if it is refused.
  const Compiled* planned();
  const std::optional<Error>& planned_refusal() { return planned(), planned_refusal_; }
  CompileOptions automatic_options();
  const HostRun& scheduled();
  const HostRun& unfused();
  // The fusion after its `precision` steps: the program that results are judged by.
  const Graph& judged();
  // Nothing if the module is missing or the evaluator has no answer.
  const Evaluation* reference();
  // `given`: other arguments with the same layouts.
  HostRun run_unfused(const Graph& fusion, std::span<const Argument> given = {});
  // True if the reference finds that data name a place outside an axis.
  bool reads_out_of_range();
  // Runs the scheduled program with other kernels on the host executor.
  HostRun run_compiled(const Compiled& c) { return run_host(fusion(), c, arguments()); }
  // Runs the scheduled program on another device, also with other kernels. The program must have compiled.
  HostRun run_on(Device& device) { return run_on(device, *compiled()); }
  HostRun run_on(Device& device, const Compiled& c) { return run_program_on(device, fusion(), c, arguments()); }

  void report(std::string_view stage, std::string_view check, std::string_view place, std::string message);
  void report(std::string_view stage, const Error& e, std::string_view context = {});

  std::vector<Finding> findings;
  // Elements compared with the reference; elements that pass because a discontinuity is near; elements without a fixed
  // value.
  int64_t compared = 0, ambiguous = 0, unconstrained = 0;

  bool is_planned() const { return is_planned_; }  // whether the automatic plan was asked for

 private:
  HostRun run_host(const Graph& fusion, const Compiled& compiled, std::span<const Argument> given);
  HostRun run_program_on(Device& device, const Graph& fusion, const Compiled& compiled,
                         std::span<const Argument> given);

  const Case& case_;
  JudgeOptions options_;
  Bindings sizes_;
  std::vector<Argument> arguments_;
  std::optional<Compiled> own_;
  const Compiled* compiled_ = nullptr;
  bool is_compiled_ = false;
  std::optional<Error> refusal_;
  std::optional<Compiled> planned_;
  bool is_planned_ = false;
  std::optional<Error> planned_refusal_;
  std::optional<HostRun> scheduled_, unfused_;
  std::optional<Graph> judged_;
  std::optional<Evaluation> reference_;
  bool asked_reference_ = false;
  std::optional<Error> out_of_range_;  // from the reference: an index outside its axis
};

#define FUSEBOX_ORACLE(name, text, every, summary) void name(OracleRun& run);
#include "fuzz/oracle/oracle_table.inc"
#undef FUSEBOX_ORACLE

}  // namespace fusebox::fuzz
