// Compares the host executor's checks with naive ones, on kernels as they are and with one thing changed.
#include <algorithm>

#include "fuzz/oracle/oracle.h"
#include "fuzz/planted/naive_checks.h"
#include "fuzz/planted/plants.h"

namespace fusebox::fuzz {
namespace {

// The errors that both checkers know. Only the executor reports others (an index overflow, too many steps).
bool is_judged(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOutOfBounds:
    case ErrorCode::kMisaligned:
    case ErrorCode::kRace:
    case ErrorCode::kDoubleStore:
    case ErrorCode::kUnwrittenRead:
    case ErrorCode::kDivergentBarrier:
    case ErrorCode::kIndexOutOfRange:
      return true;
    default:  // any other: found by one checker only
      return false;
  }
}

std::string describe(const std::optional<Error>& e) {
  return e ? code_text(e->code) + " " + e->place + " (" + e->what() + ")" : "no finding";
}

std::string describe(const NaiveChecks::Violation& v) {
  return code_text(v.code) + (v.place.empty() ? "" : " " + v.place);
}

// Whether ATen reads this value by its data in a segment of its own. The naive checks see kernels only.
bool is_read_by_aten(const Compiled& c, std::string_view place) {
  for (size_t s = 0; s < c.kernels.size(); ++s) {
    if (c.segmentation.segments[s].executor == SegmentExecutor::kKernel) continue;
    const Graph& g = c.scheduled[s];
    for (const Op& op : g.ops)
      if (std::ranges::any_of(op.operands, [&](ValueId v) { return v && "%" + g[v].name == place; })) return true;
  }
  return false;
}

// `what`: the change that was made to the program.
void judge(OracleRun& run, RandomSource& random, const Compiled& c, std::string_view what) {
  constexpr int64_t kSteps = 1 << 15;  // per launch, in thread-instructions
  HostDeviceOptions options = host_options(run.options());
  options.step_limit = kSteps;
  HostDeviceOptions in_parallel = options;
  in_parallel.threads = 2;
  const auto device = make_host_device(options);
  const HostRun judged = run.run_on(*device, c);
  NaiveChecks naive;
  options.checks = {.unwritten = false, .races = false, .index_overflow = false};
  options.observer = &naive;
  const auto observed = make_host_device(options);
  const HostRun watched = run.run_on(*observed, c);
  if (naive.gave_up()) return;
  if (watched.failure && watched.failure->code != ErrorCode::kUnwrittenOutput && naive.found().empty() &&
      !is_judged(watched.failure->code))
    return;  // the run was cut short
  naive.finish();

  const auto report = [&](std::string_view check, std::string message) {
    run.report("planted", check, "", std::string(what) + ": " + std::move(message));
  };
  if (!naive.wrong_mark().empty())
    report("marks", "an element is marked as written that is not, or the other way: " + naive.wrong_mark());
  const auto& failure = judged.failure;
  if (failure && failure->code != ErrorCode::kUnwrittenOutput && !is_judged(failure->code)) return;
  if (failure && failure->code == ErrorCode::kIndexOutOfRange && naive.found().empty() &&
      is_read_by_aten(c, failure->place))
    return;
  const bool is_finding = failure && is_judged(failure->code);
  if (naive.found().empty()) {
    if (is_finding)
      report(code_text(failure->code),
             "the host executor says " + describe(failure) + " of a launch without a violation");
    return;
  }
  const auto is_same = [&](const NaiveChecks::Violation& v) {
    return v.code == failure->code && (v.place.empty() || v.place == failure->place);
  };
  if (!is_finding || std::none_of(naive.found().begin(), naive.found().end(), is_same))
    report(code_text(naive.found()[0].code),
           "there is " + describe(naive.found()[0]) + ", and the host executor says " + describe(failure));
  // Two threads must give the same finding.
  if (!random.one_in(4)) return;
  const auto parallel = make_host_device(in_parallel);
  const HostRun again = run.run_on(*parallel, c);
  if (describe(again.failure) != describe(failure))
    report("threads", "on two threads " + describe(again.failure) + ", on one " + describe(failure));
}

}  // namespace

void planted(OracleRun& run) {
  const std::vector<size_t> kernels = run.compiled_kernels();
  if (kernels.empty()) return;
  const Compiled* compiled = run.compiled();
  RandomSource random = run.random(47);
  if (random.one_in(4)) return judge(run, random, *compiled, "as it is");
  const size_t k = random.pick(kernels);
  const auto& ops = compiled->kernels[k].ops;
  // Few kernels exchange values between threads. They get more changes, because the checks are made for them.
  const bool exchanges = std::any_of(ops.begin(), ops.end(), [](const Op& op) { return demands(op.kind, kSync); });
  for (int i = 0; i < (exchanges ? 4 : 1); ++i) {
    Compiled c = *compiled;
    if (const std::string_view what = plant(random, c.kernels[k]); !what.empty()) judge(run, random, c, what);
  }
}

}  // namespace fusebox::fuzz
