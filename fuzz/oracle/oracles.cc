// The oracles that run programs.
#include <algorithm>

#include "codegen/hoist.h"
#include "codegen/same_bits.h"
#include "fuzz/field_laws/changes.h"
#include "fuzz/field_laws/laws.h"
#include "fuzz/oracle/oracle.h"
#include "ir/canonical/canonical.h"
#include "ir/graph/name_index.h"
#include "ir/infer/concretize.h"
#include "ir/scalar/numeric.h"
#include "ir/table/families.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/rewrite/rewrite.h"
#include "passes/schedule/apply_steps.h"
#include "replay/device/module_loader.h"
#include "replay/record/record.h"
#include "replay/record/replay.h"
#include "replay/run/aten_segment.h"
#include "replay/run/compare.h"
#include "replay/run/judge.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {

namespace {

// Ops that a library computes count too: some of them refuse an index, as grouped_mm does the end of a group.
size_t indexed_ops(const Graph& g) {
  const auto& body = g[Graph::body()].ops;
  return static_cast<size_t>(
      std::count_if(body.begin(), body.end(), [&](OpId id) { return demands(g[id].kind, kIndexed | kLibrary); }));
}

// The results of an ATen segment are within bounds but need not be bit-exact.
bool runs_kernels_alone(OracleRun& run) {
  return std::ranges::all_of(run.compiled()->segmentation.segments,
                             [](const Segment& s) { return s.executor == SegmentExecutor::kKernel; });
}

// True if every data-dependent read is needed and uses all its indices, and these are integers computed from integers.
// Then the reference and every executor have the same indices.
bool reads_known_indices(OracleRun& run) {
  const Graph& g = run.fusion();
  Graph needed = g;
  dead_code(needed);
  if (indexed_ops(needed) != indexed_ops(g)) return false;
  std::vector<bool> is_exact(g.values.size(), true);
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    bool all = true;
    for (ValueId v : op.operands) all = all && (!v || is_exact[v.index]);
    for (ValueId v : op.results) is_exact[v.index] = all && (is_integer(g[v].dtype) || is_boolean(g[v].dtype));
    if (demands(op.kind, kLibrary))
      for (ValueId v : op.operands)
        if (v && is_integer(g[v].dtype) && !is_exact[v.index]) return false;
    if (!demands(op.kind, kIndexed)) continue;
    const auto shape = evaluate_shape(g, op.results[0], run.sizes());
    if (!is_exact[op.operands[1].index] || !shape || element_count(*shape) == 0) return false;
  }
  return true;
}

// The host executor must find an index outside its axis exactly if the reference does.
void judge_indices(OracleRun& run, const HostRun& r) {
  if (r.failure->code != ErrorCode::kIndexOutOfRange) return;
  if (!run.reads_out_of_range()) {
    if (run.reference() && run.reference()->ambiguous == 0)
      run.report("host-checks", *r.failure, "the reference reads inside the axis");
    return;
  }
  if (!reads_known_indices(run)) return;
  const HostRun unfused = run.run_unfused(run.fusion());
  if (unfused.ok())
    run.report("host-checks", "index", r.failure->place, "the unfused plan reads outside an axis, and nothing says so");
}

// Whether the facts of a step `assume` hold, computed from its operands. Nothing if a size is not known here.
std::optional<bool> facts_hold(const Graph& fusion, const Bindings& sizes, const Step& step) {
  const auto number = [&](const StepOperand& o) -> std::optional<int64_t> {
    if (o.is_integer()) return o.integer;
    const auto v = find_value(fusion, o.value);
    return v ? evaluate_integer(fusion, *v, sizes) : std::nullopt;
  };
  constexpr size_t kKinds = 4;  // multiple of, at most, below, equal
  const size_t first = step.operands.size() - kKinds;
  __int128 product = 1;
  for (size_t i = 0; i < first; ++i) {
    const auto factor = number(step.operands[i]);
    if (!factor || product > INT64_MAX) return std::nullopt;
    product *= *factor;
  }
  bool holds = true;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const StepOperand& o = step.operands[first + kind];
    if (o == StepOperand{}) continue;
    const auto bound = number(o);
    if (!bound) return std::nullopt;
    holds &= kind == 0   ? product % *bound == 0
             : kind == 1 ? product <= *bound
             : kind == 2 ? product < *bound
                         : product == *bound;
  }
  return holds;
}

// A launch runs if and only if the facts hold that its schedule states.
void judge_facts(OracleRun& run, const HostRun& r) {
  if (!run.subject().steps() || run.refusal()) return;
  // A program without a kernel has no launch, and takes no step of a schedule.
  const auto is_kernel = [](const Segment& s) { return s.executor == SegmentExecutor::kKernel; };
  if (std::ranges::none_of(run.compiled()->segmentation.segments, is_kernel)) return;
  const bool is_refused = !r.ok() && r.failure->code == ErrorCode::kAssumptionFailed;
  bool all_hold = true;
  for (const Step& step : *run.subject().steps()) {
    if (step.kind == StepKind::kBoundLaunch) all_hold &= !is_refused;  // threads are not counted here
    if (step.kind != StepKind::kAssume) continue;
    const auto holds = facts_hold(run.fusion(), run.sizes(), step);
    if (!holds) return;
    all_hold &= *holds;
  }
  if (is_refused && all_hold)
    run.report("host-checks", "facts", "", "the launch is refused, although all facts hold that the schedule states");
  if (r.ok() && !all_hold)
    run.report("host-checks", "facts", "", "the launch runs, although a fact does not hold that the schedule states");
}

}  // namespace

void host_checks(OracleRun& run) {
  const HostRun& r = run.scheduled();
  judge_facts(run, r);
  if (r.ok()) return;
  if (run.refusal()) {
    // A schedule may be refused with a coded error.
    if (row_of(run.refusal()->code).outcome == Outcome::kInternal) run.report("compile", *run.refusal());
  } else if (!is_launch_refusal(r.failure->code)) {
    run.report("host-checks", *r.failure);
  } else {
    judge_indices(run, r);
  }
}

namespace {

// Reports outputs that lie outside of the reference's bounds.
void judge_by_reference(OracleRun& run, const HostRun& actual, std::string_view stage) {
  const Evaluation* expected = actual.ok() ? run.reference() : nullptr;
  if (!expected) return;
  const auto wanted = outputs(run.fusion());
  for (size_t i = 0; i < actual.outputs.size(); ++i) {
    const std::string& name = run.fusion()[wanted[i].value].name;
    try {
      const Comparison c = compare(as_tensor(actual.outputs[i]), expected->outputs[i], 1);
      run.compared += c.count;
      run.ambiguous += c.ambiguous;
      run.unconstrained += c.unconstrained;
      if (!c.ok) run.report(stage, "differs", "%" + name, c.message(name));
    } catch (const Error& e) {
      run.report(stage, e, "%" + name);
    }
  }
}

}  // namespace

void aten(OracleRun& run) { judge_by_reference(run, run.scheduled(), "aten"); }

void schedules(OracleRun& run) {
  const HostRun& a = run.scheduled();
  if (!a.ok() || !is_order_free(run.fusion())) return;
  const HostRun& b = run.unfused();
  if (!b.ok()) {
    // The steps may begin with rewrites that drop what does not fit once axes are resolved.
    const auto& steps = run.subject().steps();
    const bool may_heal =
        is_size_refusal(b.failure->code) && has_symbolic_axes(run.fusion()) && steps && leading_rewrites(*steps) > 0;
    if (!may_heal && !is_launch_refusal(b.failure->code)) run.report("schedules", *b.failure, "the unfused plan");
    return;
  }
  if (!runs_kernels_alone(run)) return;
  const auto wanted = outputs(run.fusion());
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const TensorData x = as_tensor(a.outputs[i]), y = as_tensor(b.outputs[i]);
    const auto at = first_difference(x, y);
    const std::string& name = run.fusion()[wanted[i].value].name;
    if (!at) continue;
    if (*at < 0)
      run.report("schedules", "layout", "%" + name, describe(x) + ", unfused " + describe(y));
    else
      run.report("schedules", "differs", "%" + name,
                 "element " + std::to_string(*at) + " of %" + name + " differs from the unfused plan's");
  }
}

void relower(OracleRun& run) {
  const Compiled* c = run.compiled();
  if (!c) return;
  try {
    const Graph fusion = parse_graph(print(run.fusion()));
    CompileOptions options{
        .inputs = bound_inputs(run.subject().inputs()), .defects = run.options().defects, .infer = infer_by_aten()};
    if (const auto* steps = run.subject().steps()) options.steps = parse_steps(print_steps(*steps));
    const Compiled again = compile(fusion, sizes_of(fusion, run.subject().inputs()), options);
    const auto check = [&](bool same, std::string_view stage) {
      if (!same) run.report("relower", stage, "", "compiled again, stage " + std::string(stage) + " differs");
      return same;
    };
    if (!check(digest(c->concretized) == digest(again.concretized), "concretized")) return;
    if (!check(c->kernels.size() == again.kernels.size(), "segments")) return;
    for (size_t i = 0; i < c->kernels.size(); ++i) {
      if (!check(digest(c->scheduled[i]) == digest(again.scheduled[i]), "scheduled")) return;
      if (c->segmentation.segments[i].executor != SegmentExecutor::kKernel) continue;
      if (!check(digest(c->kernels[i]) == digest(again.kernels[i]), "kernel")) return;
    }
    check(digest(c->host) == digest(again.host), "host");
  } catch (const Error& e) {
    run.report("relower", e);
  }
}

namespace {

// Changes one member of a bundle, which must survive encoding and decoding.
void change_bundle(OracleRun& run, const Bundle& bundle) {
  RandomSource random = run.random(41);
  for (int i = 0; i < 2; ++i) {
    Bundle changed = bundle;
    const FieldChange change = draw_change(random, changed, {}, [](const FieldKind& k) { return !k.use.printed; });
    Asked asked;
    if (const Broken broken = broken_by(bundle, changed, asked))
      run.report("replay", text(field_kinds()[change.kind]), "",
                 text(change) + ": " + broken->law + ": " + broken->message);
  }
}

}  // namespace

void replay_digests(OracleRun& run) {
  // The replay has no step limit, so run it only if the first run ended.
  if (!run.scheduled().ok()) return;
  try {
    RunOptions options{.executor = Executor::kHost, .defects = run.options().defects, .keep_sources = false};
    const Run recorded = run_program(run.subject().module, run.arguments(), options);
    if (recorded.failure)
      return run.report("replay", code_text(recorded.failure->code), recorded.failure->place,
                        recorded.failure->message);
    const auto specs = recorded_inputs(run.fusion(), &run.subject().inputs(), {}, run.arguments());
    const Bundle bundle = make_bundle(recorded, run.subject().module, specs, run.arguments());
    if (run.subject().seed % 4 == 0) change_bundle(run, bundle);
    const std::string bytes = encode(bundle);
    const Replay again = replay(decode_bundle(bytes_of(bytes)), {});
    for (const StageVerdict& v : again.stages)
      if (v.verdict == Verdict::kDifferent)
        return run.report("replay", v.stage, "", "stage " + v.stage + " differs: " + v.difference);
  } catch (const Error& e) {
    run.report("replay", e);
  }
}

namespace {

// Applies the rewrite one change at a time. It must end like the unlimited run, and each change may remove at most one
// op. A change may be refused alone and accepted beside another: then an unlimited run goes on from where the changes one
// by one ended.
void rewrite_by_ones(OracleRun& run, const RewriteRow& row, Graph g, const Graph& after) {
  constexpr int kMostChanges = 64;
  const std::string stage = "rewrite " + std::string(row.name);
  const auto ops = [&] { return g[Graph::body()].ops.size(); };
  for (int i = 0; i < kMostChanges; ++i) {
    const size_t before = ops();
    if (!row.run(g, {.limit = 1, .defects = run.options().defects})) {
      row.run(g, {.defects = run.options().defects});
      // Where axes are symbolic, inference finds extents equal by their forms. It may refuse one change once it has taken
      // another, so that the order decides where changes end.
      const bool may_differ = has_symbolic_axes(run.fusion());
      if (may_differ ? row.run(g, {.defects = run.options().defects}) : digest(g) != digest(after))
        run.report(stage, "by-ones", "", stage + " by one change after another ends elsewhere");
      return;
    }
    if (ops() + 1 < before)
      return run.report(stage, "limit", "", stage + " takes out several ops where it may change one");
  }
}

// The outputs, by number, in whose bits two runs differ.
std::vector<size_t> outputs_of_other_bits(const HostRun& was, const HostRun& now) {
  std::vector<size_t> result;
  for (size_t i = 0; i < now.outputs.size(); ++i)
    if (first_difference(as_tensor(was.outputs[i]), as_tensor(now.outputs[i]))) result.push_back(i);
  return result;
}

// Reports a run that does not give the bits of another one. It may refuse its launch.
void report_other_bits(OracleRun& run, const HostRun& was, const HostRun& now, std::string_view stage,
                       const std::string& how) {
  if (!now.ok()) {
    if (!is_launch_refusal(now.failure->code)) run.report(stage, *now.failure);
    return;
  }
  const auto wanted = outputs(run.fusion());
  for (size_t i : outputs_of_other_bits(was, now)) {
    const std::string name = "%" + run.fusion()[wanted[i].value].name;
    run.report(stage, "differs", name, "the bits of " + name + " " + how);
  }
}

// The inputs and outputs, by name.
std::vector<std::string> signature(const Graph& g) {
  std::vector<std::string> names;
  for (ValueId v : inputs(g)) names.push_back(g[v].name);
  for (const OutputRef& out : outputs(g)) {
    names.push_back(g[out.value].name);
    names.push_back(out.alias ? g[out.alias].name : "");
  }
  return names;
}

// Whether the same ops make two scalars of the same sizes and numbers. Not for deep ones.
bool is_made_alike(const Graph& a, ValueId x, const Graph& b, ValueId y, int depth = 8) {
  if (!x || !y) return x == y;
  if (a[x].constant || b[y].constant) return a[x].constant == b[y].constant && a[x].dtype == b[y].dtype;
  const Op &p = a[a[x].def], &q = b[b[y].def];
  if (p.kind != q.kind || a[x].dtype != b[y].dtype || p.operands.size() != q.operands.size() || depth == 0)
    return false;
  if (p.operands.empty()) return a[x].name == b[y].name;
  for (size_t i = 0; i < p.operands.size(); ++i)
    if (!is_made_alike(a, p.operands[i], b, q.operands[i], depth - 1)) return false;
  return true;
}

// The program with its axes resolved, as the unfused plan has it. A size that is 1 is a number there, unless an input has it.
Graph resolved(OracleRun& run, const Graph& g) {
  Graph result = g;
  apply_steps(result, plan_resolution(g, sizes_of(g, run.subject().inputs()), result));
  return result;
}

// Whether a rewrite changed how the extent of a reduction is made. What is known of an extent decides in which parts a
// kernel adds: their length divides a number, as 2 in place of `floor_div 2, %c`, and is at most what bounds a scalar.
bool adds_in_other_parts(const Graph& was, const Graph& now) {
  NameIndex names(was);
  for (const Op& op : now.ops) {
    if (op.results.empty() || !demands(op.kind, kReduction)) continue;
    const auto same = names.find(now[op.results[0]].name);
    if (!same || !was.is_tensor(*same)) continue;
    const auto& a = was.tensor_of(*same).logical;
    const auto& b = now.tensor_of(op.results[0]).logical;
    for (size_t i = 0; i < a.size() && i < b.size(); ++i)
      if (now[b[i]].iter_type == IterType::kReduction && !is_made_alike(was, was[a[i]].size(), now, now[b[i]].size()))
        return true;
  }
  return false;
}

}  // namespace

void rewrites(OracleRun& run) {
  Graph all = run.fusion();
  for (const RewriteRow& row : rewrite_rows()) {
    const std::string stage = "rewrite " + std::string(row.name);
    try {
      const Graph before = all;
      const bool changed = row.run(all, {.defects = run.options().defects});
      if (!changed && !(all == before)) run.report(stage, "unchanged", "", stage + " says unchanged and changed");
      const Graph after = all;
      if (changed) rewrite_by_ones(run, row, before, after);
      if (signature(before) != signature(after))
        run.report(stage, "signature", "", stage + " changes what is given out");
      if (row.run(all, {.defects = run.options().defects}) || !(all == after))
        run.report(stage, "again", "", stage + " changes again what it changed");
      if (row.outputs != RewrittenOutputs::kKeepsBits) all = before;
    } catch (const Error& e) {
      return run.report(stage, e);
    }
  }
  if (all == run.fusion()) return;
  Module rewritten;
  rewritten.graphs = {all};
  try {
    parse_module(print(rewritten));
  } catch (const Error& e) {
    return run.report("rewritten text", e);
  }
  if (!run.unfused().ok()) return;
  const HostRun now = run.run_unfused(all);
  // Rewrites may find that a size is 1. Then a reshape keeps an expanded axis, and an output over that cannot overwrite an input.
  if (!now.ok() && now.failure->code == ErrorCode::kBadAlias && has_symbolic_axes(run.fusion())) return;
  // A library adds in an order that depends on how its operands lie, and a rewrite may hand it another tensor.
  const bool calls_library = std::ranges::any_of(all.ops, [](const Op& op) { return demands(op.kind, kLibrary); });
  const auto adds_otherwise = [&] {
    return !outputs_of_other_bits(run.unfused(), now).empty() &&
           adds_in_other_parts(resolved(run, run.fusion()), resolved(run, all));
  };
  if (now.ok() && (calls_library || adds_otherwise()))
    judge_by_reference(run, now, "rewrites");
  else
    report_other_bits(run, run.unfused(), now, "rewrites", "changed with the rewrites");
}

void hoisted(OracleRun& run) {
  if (!run.scheduled().ok()) return;
  Compiled c = *run.compiled();
  try {
    bool changed = false;
    for (size_t k = 0; k < c.kernels.size(); ++k) {
      if (c.segmentation.segments[k].executor != SegmentExecutor::kKernel) continue;
      Graph& kernel = c.kernels[k] = canonicalize(c.kernels[k]);
      changed |= hoist(kernel, run.options().defects);
      const Graph once = kernel;
      if (hoist(kernel, run.options().defects) || !(kernel == once))
        run.report("hoisted", "again", "", "hoisted again, a kernel changes");
      verify(kernel);
    }
    if (!changed) return;
  } catch (const Error& e) {
    return run.report("hoisted", e);
  }
  report_other_bits(run, run.scheduled(), run.run_compiled(c), "hoisted", "changed where scalars were hoisted");
}

namespace {

// True if the GPU must give the host executor's bits: every op is exact (codegen/same_bits.h), and sums of floats have one
// order.
bool is_bit_exact(OracleRun& run) {
  const Graph& g = run.judged();
  if (!runs_kernels_alone(run) || !is_order_free(g)) return false;
  return std::all_of(g.ops.begin(), g.ops.end(), [&](const Op& op) {
    // This covers scalars too: a function's result depends on the library that computes it.
    if (op.results.empty() || !demands(op.kind, kPointwise)) return true;
    const Dtype d = g[op.results[0]].dtype;
    if (!is_floating(d) && !is_complex(d)) return true;
    const bool is_of_complex = !op.operands.empty() && op.operands[0] && is_complex(g[op.operands[0]].dtype);
    if (is_random(op.kind)) return true;  // made of exact ops alone
    return !is_complex(d) && !is_of_complex && is_scalar_math(op.kind) && gives_same_bits(op.kind, op.attrs);
  });
}

}  // namespace

void gpu(OracleRun& run) {
  if (!run.options().gpu || !run.scheduled().ok()) return;
  Device& device = *run.options().gpu;
  const HostRun actual = run.run_on(device);
  if (const std::string beside = actual.ok() ? device.strayed() : ""; !beside.empty())
    run.report("gpu", "stray", "", beside);
  if (!actual.ok()) {
    // The GPU may have no room for a cooperative grid; the host executor always has.
    if (!is_launch_refusal(actual.failure->code)) run.report("gpu", *actual.failure);
    return;
  }
  const auto wanted = outputs(run.fusion());
  const Evaluation* expected = run.reference();
  std::optional<Evaluation> by_cuda;
  if (const auto names = computed_by_aten(*run.compiled()); expected && !names.empty())
    expected = &by_cuda.emplace(
        find_aten()->evaluate(run.judged(), run.arguments(), {.bounds = true, .intermediates = {}, .by_cuda = names}));
  const bool same_bits = is_bit_exact(run);
  for (size_t i = 0; i < actual.outputs.size(); ++i) {
    const std::string& name = run.fusion()[wanted[i].value].name;
    const TensorData x = as_tensor(actual.outputs[i]), y = as_tensor(run.scheduled().outputs[i]);
    if (!has_same_layout(x, y) || x.dtype != y.dtype)
      run.report("gpu", "layout", "%" + name, describe(x) + ", on the host " + describe(y));
    else if (const auto at = same_bits ? first_difference(x, y) : std::nullopt)
      run.report("gpu", "bits", "%" + name,
                 "element " + std::to_string(*at) + " of %" + name + " differs from the host executor's");
    if (!expected) continue;
    const Comparison c = compare(x, expected->outputs[i], 1);
    if (!c.ok) run.report("gpu", "differs", "%" + name, c.message(name));
  }
}

}  // namespace fusebox::fuzz
