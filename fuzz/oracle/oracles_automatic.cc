// The oracle for the automatic plan: it takes every program that the unfused plan takes, gives the same results, and its
// steps repeat it without any scheduler. And the oracle for the neighbours of what schedulers choose.
#include <algorithm>
#include <string>

#include "fuzz/oracle/oracle.h"
#include "fuzz/oracle/planned.h"
#include "ir/canonical/canonical.h"
#include "passes/schedule/apply_steps.h"
#include "passes/schedule/neighbours.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

std::string plan_text(const Compiled& c) {
  std::string out;
  for (const Decision& d : c.automatic->decisions) out += (out.empty() ? "" : "; ") + text(d.heuristics);
  return out;
}

void check_repeats(OracleRun& run, const Compiled& planned, CompileOptions options) {
  options.device.reset();
  options.steps = planned.automatic->steps;
  const Compiled repeated = compile(run.fusion(), run.sizes(), options);
  if (digest(repeated.host) != digest(planned.host))
    return run.report("automatic", "repeated", "", "the steps of the automatic plan alone give another host program");
  for (size_t i = 0; i < planned.kernels.size(); ++i)
    if (digest(repeated.kernels[i]) != digest(planned.kernels[i]))
      return run.report("automatic", "repeated", "", "the steps of the automatic plan alone give another kernel");
}

// Whether the unfused plan of the program after the plan's rewrites gives an output this layout. Rewrites may find that a
// size is 1, as in `%n | %n`. Then a reshape keeps an expanded axis, which stays expanded in memory.
bool is_layout_of_rewritten(OracleRun& run, const Compiled& c, const TensorData& x, size_t output) {
  const std::vector<Step>& steps = c.automatic->steps;
  Graph rewritten = run.fusion();
  apply_steps(rewritten, std::span(steps).first(leading_rewrites(steps)), run.options().defects);
  const HostRun unfused = run.run_unfused(rewritten);
  return unfused.ok() && has_same_layout(x, as_tensor(unfused.outputs[output]));
}

void compare_outputs(OracleRun& run, std::string_view oracle, const Compiled& c, const HostRun& actual) {
  const bool same_bits = is_order_free(run.fusion()) && run.unfused().ok();
  const Evaluation* expected = run.reference();
  const auto wanted = outputs(run.fusion());
  for (size_t i = 0; i < actual.outputs.size(); ++i) {
    const std::string& name = run.fusion()[wanted[i].value].name;
    const TensorData x = as_tensor(actual.outputs[i]);
    if (run.unfused().ok()) {
      const TensorData y = as_tensor(run.unfused().outputs[i]);
      if (!has_same_layout(x, y) && !is_layout_of_rewritten(run, c, x, i))
        run.report(oracle, "layout", "%" + name, describe(x) + ", unfused " + describe(y));
      else if (const auto at = same_bits ? first_difference(x, y) : std::nullopt)
        run.report(oracle, "bits", "%" + name,
                   "element " + std::to_string(*at) + " of %" + name +
                       " differs from the unfused plan's; the plan is " + plan_text(c));
    }
    if (!expected) continue;
    const Comparison found = compare(x, expected->outputs[i], 1);
    if (!found.ok) run.report(oracle, "differs", "%" + name, found.message(name) + "; the plan is " + plan_text(c));
  }
}

}  // namespace

void judge_planned(OracleRun& run, std::string_view oracle, const Compiled& c, const PlannedRun& how) {
  if (run.reads_out_of_range()) return;
  HostDeviceOptions options = host_options(run.options());
  if (how.step_limit > 0) options.step_limit = how.step_limit;
  const auto device = make_host_device(options);
  const HostRun actual = run.run_on(*device, c);
  if (actual.ok()) return compare_outputs(run, oracle, c, actual);
  // A plan for a GPU has many threads. Too many for the limit of a case is no fault.
  if (actual.failure->code == ErrorCode::kStepLimit) return;
  if ((run.unfused().ok() && !how.may_refuse) || !is_launch_refusal(actual.failure->code))
    run.report(oracle, *actual.failure, "the plan " + plan_text(c));
}

bool are_same_programs(const Compiled& a, const Compiled& b) {
  return digest(a.host) == digest(b.host) &&
         std::ranges::equal(a.kernels, b.kernels,
                            [](const Graph& x, const Graph& y) { return digest(x) == digest(y); });
}

void automatic(OracleRun& run) {
  const HostRun& unfused = run.unfused();
  const CompileOptions options = run.automatic_options();
  if (!run.planned()) {
    if (unfused.ok())
      run.report("automatic", *run.planned_refusal(), "the automatic plan refuses what the unfused plan runs");
    return;
  }
  const Compiled& c = *run.planned();
  try {
    check_repeats(run, c, options);
  } catch (const Error& e) {
    run.report("automatic", e, "the steps of the automatic plan alone");
  }
  // A program with 64-bit indices does not tell whether 32 bits would do.
  if (c.index_bits == 32 && !serves(c, run.fusion(), run.sizes(), options))
    run.report("automatic", "serves", "", "a plan does not serve the sizes that it was made for");
  judge_planned(run, "automatic", c);
}

// The neighbours of heuristics are as right as what a scheduler chooses. Goes a few steps from the choice for one of the
// segments. A neighbour without a legal schedule is passed over, as a search for the fastest one does.
void tune(OracleRun& run) {
  constexpr int kHops = 3;
  if (!run.unfused().ok()) return;
  CompileOptions options = run.automatic_options();
  options.others = true;
  std::optional<Compiled> reached;
  try {
    Compiled at = compile(run.fusion(), run.sizes(), options);
    uint64_t draw = digest(run.fusion()).low;
    for (int hop = 0; hop < kHops && !at.automatic->decisions.empty(); ++hop) {
      const Decision d = at.automatic->decisions[draw % at.automatic->decisions.size()];
      auto next = neighbours(d.heuristics);
      next.insert(next.end(), d.others.begin(), d.others.end());
      draw /= 5;
      if (next.empty()) continue;
      const Heuristics& taken = next[draw % next.size()];
      const auto before = options.heuristics;
      const auto [it, is_new] = options.heuristics.try_emplace(d.segment, Replacement{d.heuristics, taken});
      it->second.taken = taken;
      at = compile(run.fusion(), run.sizes(), options);
      const auto now = std::ranges::find(at.automatic->decisions, d.segment, &Decision::segment);
      if (now != at.automatic->decisions.end() && now->heuristics == taken)
        reached = at;
      else
        options.heuristics = before;
    }
  } catch (const Error& e) {
    return run.report("tune", e, "neighbours of the chosen heuristics");
  }
  if (reached) judge_planned(run, "tune", *reached);
}

}  // namespace fusebox::fuzz
