// The oracle for the decisions of the automatic plan: laws that hold whatever the kernels compute. A slip in a scheduler or
// in the cut mostly leaves a plan that is right and slow, so the results alone do not show it.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "codegen/cuda.h"
#include "fuzz/base/random_source.h"
#include "fuzz/mutate/mutate.h"
#include "fuzz/oracle/oracle.h"
#include "fuzz/oracle/planned.h"
#include "ir/canonical/canonical.h"
#include "ir/domain/domain.h"
#include "passes/automatic/cut_views.h"
#include "passes/schedule/apply_steps.h"
#include "passes/schedule/reduction_space.h"
#include "passes/segment/own_memory.h"
#include "passes/segment/segment.h"
#include "replay/run/aten_segment.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

// Refusals of a scheduler's own schedule that are known: the scheduler, a part of the reason, and where it happens. A row
// goes when its scheduler declines such fusions, or schedules them.
struct KnownRefusal {
  std::string_view scheduler, reason, where;
};
constexpr KnownRefusal kKnownRefusals[] = {
    {"pointwise", "do not lie side by side", "an output over an input that is not contiguous, beside others"},
    {"pointwise", "the loop is not the same one in consumer", "a copy that two stores read"},
    {"transpose", "the loop is not the same one in consumer",
     "a slice of one element unless there is none to take, which is stretched, beside what is transposed"},
    {"pointwise", "after another thread or iteration overwrote it", "an output over an input with gaps and even rows"},
    {"reduction", "a vector could reach over the end", "an output that is stored in vectors of a short axis"},
    {"reduction", "do not lie side by side", "the same, where the output is of all axes"},
    {"resize", "do not lie side by side", "an input that a slice or a pad reads with gaps"},
    {"resize", "can be followed from this tensor's axes", "a pad that cuts, behind a reshape"},
    {"pointwise", "its part in a thread has no constant size",
     "an input laid out in another order, behind a reshape of sizes that only a run knows"},
    {"resize", "its part in a thread has no constant size",
     "a joined axis of one element, beside an output over the other"},
    {"no_op", "its part in a thread has no constant size", "a squeezed axis beside an output without elements"},
    {"no_op", "can be followed from this tensor's axes", "a slice that leaves nothing, of a size"},
    // It is tried nevertheless, as the cut can give the output memory of its own.
    {"no_op", "after another thread or iteration overwrote it", "an output over an input, whose merged axes differ"},
};

class Laws {
 public:
  // `sizes`: of the case's fusion, as the plan was made for them.
  Laws(OracleRun& run, std::string_view oracle, const Compiled& c, const Bindings& sizes,
       const DeviceProperties& device)
      : run_(run), oracle_(oracle), c_(c), g_(c.concretized), device_(device), decisions_(c.automatic->decisions) {
    for (uint32_t i = 0; i < g_.values.size(); ++i)
      if (!g_.values[i].name.empty()) values_.try_emplace(g_.values[i].name, ValueId(i));
    for (const OutputRef& out : outputs(g_)) outputs_.insert(out.value);
    sizes_ = rebind(run.fusion(), sizes, g_);
    memory_ = memory_of_values();
  }

  void judge() {
    refused();
    copies();
    traffic();
    for (size_t i = 0; i < c_.kernels.size(); ++i)
      if (c_.segmentation.segments[i].executor == SegmentExecutor::kKernel) waits(i);
    for (const Segment& s : c_.segmentation.segments)
      if (const Decision* d = decision_of(s.name)) {
        choices(s, *d);
        facts(s, *d);
        rows(s, *d);
      }
  }

 private:
  void report(std::string_view check, const std::string& place, const std::string& message) {
    run_.report(oracle_, check, place, message);
  }

  const Decision* decision_of(const std::string& segment) const {
    const auto it = std::ranges::find(decisions_, segment, &Decision::segment);
    return it == decisions_.end() ? nullptr : &*it;
  }
  const Op& op_of(const std::string& result) const { return g_[g_[values_.at(result)].def]; }

  // A scheduler that takes a fusion makes a legal schedule of it.
  void refused() {
    for (const Decision& d : decisions_)
      for (const Declined& why : d.declined)
        if (why.why.starts_with("its schedule is refused") &&
            std::ranges::none_of(kKnownRefusals, [&](const KnownRefusal& known) {
              return known.scheduler == why.scheduler && why.why.find(known.reason) != std::string::npos;
            }))
          report("refused-" + why.scheduler, "", "@" + d.segment + ", " + why.scheduler + ": " + why.why);
  }

  // Ops that are computed again where they are read are cheap, and no outputs. A segment_set ends its segment.
  void copies() {
    std::map<std::string, std::string> first;
    for (const Segment& s : c_.segmentation.segments) {
      const std::set<std::string> inside(s.ops.begin(), s.ops.end());
      for (const std::string& name : s.ops) {
        const Op& op = op_of(name);
        for (ValueId v : op.operands)
          if (v && g_[v].def && g_[g_[v].def].kind == OpKind::kSegmentSet && inside.contains(g_[v].name))
            report("segment-set", "%" + name, "@" + s.name + " has a segment_set and %" + name + ", which reads it");
        if (first.try_emplace(name, s.name).second) continue;
        const bool is_output = std::ranges::any_of(op.results, [&](ValueId v) { return outputs_.contains(v); });
        if (is_output || !is_cheap(op))
          report("recomputed", "%" + name, "%" + name + " is computed in @" + first[name] + " and again in @" + s.name);
      }
    }
  }

  // Reads at most one tensor that is not stretched or filled, whose elements have no more bits, and computes nothing of it, or
  // adds, multiplies and compares.
  bool is_cheap(const Op& op) const {
    static constexpr std::array kLight{OpKind::kNeg, OpKind::kAbs,     OpKind::kAdd,     OpKind::kSub,
                                       OpKind::kMul, OpKind::kMinimum, OpKind::kMaximum, OpKind::kWhere};
    if (std::ranges::count(kLight, op.kind) > 0) {
      std::set<ValueId> whole;
      for (ValueId v : op.operands)
        if (v && g_.is_tensor(v) && !is_stretched(v)) whole.insert(v);
      return whole.empty() || (whole.size() == 1 && bits(g_[*whole.begin()].dtype) <= bits(g_[op.results[0]].dtype));
    }
    const auto reads = std::ranges::count_if(op.operands, [&](ValueId v) { return v && g_.is_tensor(v); });
    if (reads == 0) return op.kind == OpKind::kFull || op.kind == OpKind::kIota;
    if (op.kind == OpKind::kCast) return is_widening(op);
    return reads == 1 && demands(op.kind, kMetadata);
  }
  bool is_stretched(ValueId v) const {
    const Op& made = g_[g_[v].def];
    if (made.kind == OpKind::kCast) return is_stretched(made.operands[0]);
    static constexpr std::array kStretching{OpKind::kFull, OpKind::kIota, OpKind::kBroadcast, OpKind::kBroadcastInDim,
                                            OpKind::kExpand};
    return std::ranges::count(kStretching, made.kind) > 0;
  }
  bool is_widening(const Op& op) const {
    return op.kind == OpKind::kCast && bits(g_[op.operands[0]].dtype) < bits(g_[op.results[0]].dtype);
  }

  double bytes(const Segmentation& segmentation) const {
    double total = 0;
    for (const Segment& s : segmentation.segments)
      for (const auto* list : {&s.inputs, &s.outputs})
        for (const Crossing& c : *list) {
          const ValueId v = values_.at(c.value);
          double elements = static_cast<double>(bits(g_[v].dtype)) / 8;
          // An axis that is expanded has one element in memory, or none if the tensor is empty.
          for (DomainId d : logical_without_reductions(g_, g_.tensor_of(v)))
            elements *= evaluate_size(g_, d, sizes_) == 0
                            ? 0.0
                            : static_cast<double>(evaluate_extent(g_, d, sizes_).value_or(0));
          total += elements;
        }
    return total;
  }

  void traffic() {
    const Segmentation unfused = plan_unfused(g_);
    const size_t kernels = c_.segmentation.segments.size();
    if (kernels > unfused.segments.size())
      report("kernels", "", std::to_string(kernels) + " kernels, unfused " + std::to_string(unfused.segments.size()));
    const double now = bytes(c_.segmentation), then = bytes(unfused);
    if (now > then) report("bytes", "", std::to_string(now) + " bytes through memory, unfused " + std::to_string(then));
  }

  // The steps of the automatic plan for one segment, as its scheduler made them.
  std::vector<Step> steps_of(const std::string& segment) const {
    std::vector<Step> steps;
    const auto& all = c_.automatic->steps;
    for (size_t i = leading_rewrites(all); i < all.size(); ++i) {
      Step step = all[i];
      if (step.kind == StepKind::kAssign) continue;
      if (step.attrs.has(AttrKey::kSegment)) {
        if (step.attrs.string(AttrKey::kSegment) != segment) continue;
        step.attrs.erase(AttrKey::kSegment);
      }
      steps.push_back(std::move(step));
    }
    return steps;
  }

  // The choices as text give the same steps.
  void choices(const Segment& s, const Decision& d) {
    const Scheduler* scheduler = find_scheduler(d.heuristics.scheduler);
    if (!scheduler) return;
    const Heuristics parsed = parse_heuristics(text(d.heuristics));
    if (parsed != d.heuristics)
      return report("choices-text", "", "the choices read back as others: " + text(d.heuristics) + "; " + text(parsed));
    const Graph fusion = extract(g_, s);
    const SizeClasses classes(fusion, rebind(g_, sizes_, fusion), run_.options().defects);
    const ScheduleView view{fusion, classes, memory_, device_, run_.options().defects};
    try {
      if (scheduler->plan(view, parsed) != without_own_memory(s, steps_of(s.name)))
        report("choices", "", "the choices of @" + s.name + " give other steps: " + text(parsed));
    } catch (const Error& e) {
      report("choices", "", "the choices of @" + s.name + " give no steps: " + text(parsed) + ": " + e.what());
    }
  }

  // The steps without those at the end that give outputs memory of their own. Schedulers do not write these.
  static std::vector<Step> without_own_memory(const Segment& s, std::vector<Step> steps) {
    const auto is_last = [&](const Crossing& c) {
      if (!c.alias.empty() || steps.empty()) return false;
      const std::span<const Step> before = std::span<const Step>(steps).first(steps.size() - 1);
      return steps.back() == own_memory_step(output_after(before, c.value));
    };
    while (std::ranges::any_of(s.outputs, is_last)) steps.pop_back();
    return steps;
  }

  // A view lies in the memory that it is taken of, and a value that is stored over an input in the input's.
  MemoryClasses memory_of_values() const {
    const Defects& defects = run_.options().defects;
    const CutViews views(g_, CutViews::of(g_, c_.segmentation), SizeClasses(g_, sizes_, defects), c_.automatic->memory,
                         defects);
    return views.memory_in(c_.segmentation);
  }

  // A kernel that may begin early waits before all else, and no load of it may be moved in front of the wait.
  void waits(size_t i) {
    const bool depends = has_in_body(c_.scheduled[i], OpKind::kDependentLaunch);
    const std::string& name = c_.segmentation.segments[i].name;
    if (depends != has_in_body(c_.kernels[i], OpKind::kDependentLaunch))
      return report("dependent", "",
                    "the kernel of @" + name + " depends on the launches in front, or its schedule, not both");
    if (!depends || i != run_.subject().seed % c_.kernels.size()) return;
    const std::string text = emit_cuda(c_.kernels[i], {.defects = run_.options().defects}).text;
    const size_t body = text.find(" {\n", text.find("__global__"));
    if (body == std::string::npos || text.find("  wait_for_launches_in_front();\n", body) == std::string::npos)
      report("unwaited", "", "@" + name + " begins early and does not wait:\n" + text);
    if (text.find("__restrict__") != std::string::npos)
      report("restricts", "", "@" + name + " begins early, and its loads may be moved in front of the wait:\n" + text);
  }

  // A schedule of a reduction states its threads, and how long the rows may be that it keeps.
  void facts(const Segment& s, const Decision& d) {
    const std::string& scheduler = d.heuristics.scheduler;
    if (scheduler != "reduction" && scheduler != "persistent") return;
    const auto of_kind = [&](StepKind kind) {
      return std::ranges::any_of(s.steps, [&](const Step& step) { return step.kind == kind; });
    };
    if (!of_kind(StepKind::kBoundLaunch)) report("bound", "", "@" + s.name + " does not bound its launch");
    if (d.heuristics.word("form") != "registers" || of_kind(StepKind::kAssume)) return;
    const Graph fusion = extract(g_, s);
    std::string why;
    const auto space = ReductionSpace::find(fusion, why);
    if (!space) return;
    bool is_known = true, is_any = false;
    for (DomainId axis : space->reduced) {
      const ValueId extent = fusion[axis].extent;
      if (extent && constant_integer(fusion, extent)) continue;
      is_any = true;
      is_known &= extent && fusion[extent].dtype == Dtype::kIndex && !fusion[extent].name.empty();
    }
    if (is_any && is_known)
      report("fact", "", "@" + s.name + " keeps rows of any length in registers: " + text(d.heuristics));
  }

  // A row that threads keep fits into their registers, whatever length its class allows. The choice is asked for longer
  // rows too, which no case of the fuzzer runs.
  void rows(const Segment& s, const Decision& d) {
    const Scheduler* scheduler = find_scheduler(d.heuristics.scheduler);
    if (!scheduler || (scheduler->name != "reduction" && scheduler->name != "persistent")) return;
    const Graph fusion = extract(g_, s);
    std::string why;
    const auto space = ReductionSpace::find(fusion, why);
    if (!space) return;
    for (const int64_t factor : {1, 7, 60, 900}) {
      const SizeClasses classes(fusion, scaled(fusion, factor), run_.options().defects);
      const ScheduleView view{fusion, classes, memory_, device_, run_.options().defects};
      if (scheduler->declines(view)) continue;
      const Heuristics chosen = scheduler->choose(view);
      if (chosen.word("form") != "registers") continue;
      const int64_t row = most_of(classes, space->reduced);
      if (chosen.number("longest") < row)
        report("row", "",
               "@" + s.name + ": a row of " + std::to_string(row) + " elements does not fit: " + text(chosen));
    }
  }

  // The sizes of a segment, each multiplied by the factor, and the scalars computed from them.
  Bindings scaled(const Graph& fusion, int64_t factor) const {
    Bindings result = rebind(g_, sizes_, fusion);
    for (const Op& op : fusion.ops)
      for (ValueId v : op.results) {
        if (!v || op.kind == OpKind::kInput || fusion.is_tensor(v)) continue;
        auto& bits = result[v.index];
        if (op.kind == OpKind::kSize && bits)
          bits->low *= static_cast<uint64_t>(factor);
        else
          bits.reset();
      }
    return result;
  }

  OracleRun& run_;
  std::string_view oracle_;
  const Compiled& c_;
  const Graph& g_;
  const DeviceProperties& device_;
  const std::vector<Decision>& decisions_;
  std::map<std::string, ValueId> values_;
  std::set<ValueId> outputs_;
  Bindings sizes_;
  MemoryClasses memory_;  // of inputs, views, and what is stored over inputs
};

// -- reuse: a compiled program that serves other inputs is the one that compilation makes for them

std::string digest_of(const Compiled& c) {
  std::string all = text(digest(c.host)) + " " + std::to_string(c.index_bits);
  for (const Graph& k : c.kernels) all += " " + text(digest(k));
  return all;
}

// Another extent of the same class, or any other one near it.
std::optional<Mutation> draw_extent(RandomSource& random, const Case& from) {
  auto drawn = draw_mutation(random, MutationKind::kExtent, from, from);
  if (!drawn || random.one_in(3)) return drawn;
  const Bindings sizes = sizes_of(from.fusion(), from.inputs());
  const auto now = evaluate_integer(from.fusion(), *find_value(from.fusion(), drawn->parameters[0]), sizes);
  if (!now) return drawn;
  const SizeClass own = class_of_size(*now);
  // A class of large sizes has more of them than can be listed.
  constexpr int kAbove = 256, kBelow = 64;
  std::vector<int64_t> same;
  const int64_t first = std::max<int64_t>(*now - own.divisor * kBelow, 0);
  const int64_t steps = std::min<int64_t>((own.most - first) / own.divisor, kBelow + kAbove);
  for (int64_t i = 0; i <= steps; ++i)
    if (const int64_t n = first + i * own.divisor; n != *now && class_of_size(n) == own) same.push_back(n);
  if (!same.empty()) drawn->parameters[1] = std::to_string(random.pick(same));
  return drawn;
}

class Reuse {
 public:
  Reuse(OracleRun& run, const Compiled& c, const CompileOptions& options, std::string_view plan)
      : run_(run), c_(c), options_(options), plan_(plan) {}

  void judge(RandomSource& random) {
    constexpr int kTries = 3;
    for (int i = 0; i < kTries; ++i) {
      const Case& from = run_.subject();
      const auto drawn = random.one_in(3)   ? draw_mutation(random, MutationKind::kLayout, from, from)
                         : random.one_in(3) ? draw_mutation(random, MutationKind::kValues, from, from)
                                            : draw_extent(random, from);
      if (!drawn) continue;
      auto changed = apply_mutation(from, *drawn);
      if (!changed || changed->inputs() == from.inputs()) continue;
      const std::string how = drawn->name + " " + drawn->parameters[0] + " " + drawn->parameters[1];
      if (!serves_and_agrees(*changed, how)) continue;
      return;
    }
  }

 private:
  // Whether the program serves the changed inputs, and is judged.
  bool serves_and_agrees(Case& changed, const std::string& how) {
    CompileOptions options = options_;
    options.inputs = bound_inputs(changed.inputs());
    Bindings sizes;
    try {
      sizes = sizes_of(changed.fusion(), changed.inputs());
      if (!serves(c_, changed.fusion(), sizes, options)) return false;
    } catch (const Error&) {
      return false;  // the inputs do not fit the program
    }
    std::optional<Compiled> other;
    try {
      other = compile(changed.fusion(), sizes, options);
    } catch (const Error& e) {
      run_.report("decisions", "served", "",
                  std::string(plan_) + " serves inputs that compilation refuses; " + how + ": " + e.what());
      return true;
    }
    if (digest_of(*other) != digest_of(c_))
      run_.report("decisions", "served", "",
                  std::string(plan_) + " serves inputs for which compilation makes another program; " + how);
    if (c_.automatic) changed.module.step_lists.clear();
    changed.compiled = c_;
    OracleRun run(changed, run_.options());
    host_checks(run);
    aten(run);
    for (Finding& f : run.findings)
      run_.findings.push_back({{"decisions", "reused-" + f.signature.check, f.signature.place},
                               std::string(plan_) + " run with " + how + ": " + f.message});
    return true;
  }

  OracleRun& run_;
  const Compiled& c_;
  const CompileOptions& options_;
  std::string_view plan_;
};

}  // namespace

void check_decisions(OracleRun& run, std::string_view oracle, const Compiled& c, const Bindings& sizes,
                     const DeviceProperties& device) {
  Laws(run, oracle, c, sizes, device).judge();
}

void decisions(OracleRun& run) {
  RandomSource random = run.random(7);
  if (const Compiled* c = run.compiled()) {
    CompileOptions options{.defects = run.options().defects, .infer = infer_by_aten()};
    if (run.subject().steps()) options.steps = *run.subject().steps();
    Reuse(run, *c, options, "the schedule").judge(random);
  }
  const Compiled* c = run.planned();
  if (!c) return;
  check_decisions(run, "decisions", *c, run.sizes(), default_device());
  Reuse(run, *c, run.automatic_options(), "the automatic plan").judge(random);
}

}  // namespace fusebox::fuzz
