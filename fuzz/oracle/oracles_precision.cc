// The oracle for the precision of ops: `precision` steps make the ops fast that they name, and kernels keep what they say.
#include <algorithm>
#include <set>
#include <string>

#include "fuzz/oracle/oracle.h"
#include "ir/step/apply.h"
#include "passes/schedule/apply_steps.h"

namespace fusebox::fuzz {
namespace {

bool may_be_fast(const Op& op) { return row_of(op.kind).accepts(AttrKey::kFast); }

std::set<std::string> fast_tensors(const Graph& g) {
  std::set<std::string> names;
  for (OpId id : g[Graph::body()].ops)
    if (g[id].attrs.flag(AttrKey::kFast)) names.insert(g[g[id].results[0]].name);
  return names;
}

// The dtypes whose arithmetic has approximations, by their names, so that no rule of the step is repeated.
bool is_short_float(Dtype d) {
  constexpr std::string_view kNames[] = {"f32", "bf16", "f16", "f8e4m3", "f8e5m2"};
  return std::find(std::begin(kNames), std::end(kNames), text(d)) != std::end(kNames);
}

// Updates the names of fast tensors by a step. The last step that lists a tensor decides.
void follow(std::set<std::string>& fast, const Graph& g, const Step& step) {
  const auto set = [&](const std::string& name) {
    if (step.attrs.flag(AttrKey::kFast))
      fast.insert(name);
    else
      fast.erase(name);
  };
  for (const StepOperand& o : step.operands) set(o.value);
  if (!step.operands.empty()) return;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (may_be_fast(op) && g.is_tensor(op.results[0]) && is_short_float(g[op.results[0]].dtype))
      set(g[op.results[0]].name);
  }
}

// Kinds of ops that occur in a graph, fast or exact. Normal numbers are made of exact ones.
std::set<OpKind> kinds(const Graph& g, bool fast) {
  std::set<OpKind> result;
  for (const Op& op : g.ops) {
    if (may_be_fast(op) && op.attrs.flag(AttrKey::kFast) == fast) result.insert(op.kind);
    if (op.kind == OpKind::kNormal && !fast) result.insert({OpKind::kLog, OpKind::kSqrt, OpKind::kCos});
  }
  return result;
}

}  // namespace

void precision(OracleRun& run) {
  const Compiled* c = run.compiled();
  if (!c) return;
  if (run.subject().steps()) {
    Graph g = run.fusion();
    std::set<std::string> expected = fast_tensors(g);
    for (const Step& step : *run.subject().steps()) {
      if (step.kind != StepKind::kPrecision) break;
      follow(expected, g, step);
      apply(g, step, run.options().defects);
      if (fast_tensors(g) != expected)
        return run.report("precision", "step", "", "after a precision step, other ops are fast than it names");
    }
  }
  for (size_t i = 0; i < c->kernels.size(); ++i) {
    // The lowering makes divisions of its own, which are exact.
    for (const bool fast : {false, true}) {
      const std::set<OpKind> given = kinds(c->scheduled[i], fast);
      for (OpKind kind : kinds(c->kernels[i], fast))
        if (!given.contains(kind) && (fast || kinds(c->scheduled[i], true).contains(kind)))
          return run.report("precision", fast ? "kernel-fast" : "kernel-exact", "",
                            "a kernel computes " + std::string(row_of(kind).text) + (fast ? " fast" : " exactly") +
                                ", and its program does not");
    }
  }
}

}  // namespace fusebox::fuzz
