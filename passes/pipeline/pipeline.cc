#include "passes/pipeline/pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "ir/canonical/canonical.h"
#include "ir/graph/compact.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/step/apply.h"
#include "ir/step/step_applier.h"
#include "ir/table/error.h"
#include "passes/automatic/finest_axes.h"
#include "passes/automatic/two_passes.h"
#include "passes/host/host_program.h"
#include "passes/host/index_range.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/crossing_layouts.h"
#include "passes/segment/segment.h"

namespace fusebox {

int choose_index_bits(const Graph& g, const Bindings& bindings) {
  constexpr int64_t kRoom = int64_t{1} << 30;
  for (size_t i = 0; i < g.values.size(); ++i) {
    const Value& v = g.values[i];
    if (v.kind != ValueKind::kTensor) {
      // Arithmetic on a large index scalar needs its width too.
      const auto known = v.dtype == Dtype::kIndex ? evaluate_integer(g, ValueId(i), bindings) : std::nullopt;
      if (known && (*known >= kRoom || *known <= -kRoom)) return 64;
      continue;
    }
    // Data of dtype index may be any 64-bit number.
    if (v.dtype == Dtype::kIndex) return 64;
    int64_t elements = 1;
    const Tensor& t = g[v.tensor];
    for (const auto* list : {&t.logical, &t.root}) {
      elements = 1;
      for (DomainId d : *list) {
        const auto size = evaluate_size(g, d, bindings);
        if (!size || __builtin_mul_overflow(elements, std::max<int64_t>(*size, 1), &elements) || elements >= kRoom)
          return 64;
      }
    }
  }
  return 32;
}

namespace {

// Whether `fits` holds of all kernels. `crossings`: the layouts of tensors that ATen segments make and read.
bool all_fit(decltype(fits_in_32_bits)& fits, const Compiled& c, const Bindings& bindings, const Graph& fusion,
             const std::vector<BoundInput>& given, const Defects& defects,
             const std::map<std::string, TensorLayout>& crossings) {
  InputStrides strides;
  for (const auto& [name, layout] : crossings) strides[name] = layout.strides;
  const Rebinder rebinder(fusion, bindings);
  const auto names = inputs(fusion);
  for (size_t i = 0; i < names.size() && i < given.size(); ++i)
    if (fusion.is_tensor(names[i]) && !given[i].strides.empty()) strides[fusion[names[i]].name] = given[i].strides;
  for (size_t i = 0; i < c.launches.size(); ++i) {
    const Graph& launch = c.launches[i];
    if (launch.ops.empty()) continue;
    // Sizes and inputs are bound by name. Scalars that the launch computes follow from them.
    Bindings known = rebinder.to(launch);
    for (size_t v = 0; v < known.size(); ++v) {
      const OpId def = launch.values[v].def;
      const bool is_given = def && (launch[def].kind == OpKind::kInput || launch[def].kind == OpKind::kSize);
      if (!is_given) known[v].reset();
    }
    if (!fits(c.kernels[i], launch, known, strides, defects)) return false;
  }
  return true;
}

// Whether both are the same part of one graph, with the same steps. Layouts of outputs are not compared, because they
// follow from the schedule.
bool is_same_schedule(const Segment& a, const Segment& b) {
  const auto is_same = [](const Crossing& x, const Crossing& y) {
    return x.value == y.value && x.contiguity == y.contiguity && x.alias == y.alias;
  };
  return a.name == b.name && a.executor == b.executor && a.ops == b.ops && a.inputs == b.inputs && a.steps == b.steps &&
         std::ranges::equal(a.outputs, b.outputs, is_same);
}

// The schedule of the same segment in another program of the same graph, if it is planned the same there.
const Graph* find_schedule(const Compiled& known, const Segment& segment, size_t index) {
  if (index >= known.scheduled.size()) return nullptr;
  return is_same_schedule(known.segmentation.segments[index], segment) ? &known.scheduled[index] : nullptr;
}

using PlannedByName = std::map<std::string, PlannedSegment>;

// Moves the schedule of a segment out of the automatic plan, if the plan has it with the same steps in the same order.
std::optional<Graph> take_planned(PlannedByName& planned, const Segment& segment) {
  const auto it = planned.find(segment.name);
  if (it == planned.end() || !is_same_schedule(it->second.segment, segment)) return std::nullopt;
  return std::move(it->second.scheduled);
}

// The kernel of a segment in another program, if the segment is scheduled the same there.
std::optional<Lowered> take_known(const Compiled& c, size_t segment, const Compiled& known) {
  if (segment >= known.scheduled.size() || known.index_bits != c.index_bits ||
      known.segmentation.segments[segment].executor != SegmentExecutor::kKernel ||
      !same_members(c.scheduled[segment], known.scheduled[segment]))
    return std::nullopt;
  return Lowered{known.kernels[segment], known.launches[segment], {}};
}

Lowered lower_segment(Compiled& c, size_t segment, const LowerSegmentsOptions& options) {
  const Graph g = canonical_order(c.scheduled[segment]);
  PlanOptions planning{.defects = options.defects};
  if (!options.sizes.empty() && options.defects.has(Defect::kSymbolsByHint))
    planning.sizes = rebind(c.concretized, options.sizes, g);
  const KernelPlan plan = plan_kernel(g, planning);
  if (options.digest_plans) c.plans.push_back(digest(plan));
  return emit_kernel(plan, {.index_bits = c.index_bits});
}

}  // namespace

void lower_segments(Compiled& c, const LowerSegmentsOptions& options) {
  c.kernels.clear();
  c.launches.clear();
  c.plans.clear();
  const bool may_take = options.known && options.defects.empty() && !options.digest_plans;
  for (size_t i = 0; i < c.scheduled.size(); ++i) {
    Lowered lowered;
    if (c.segmentation.segments[i].executor == SegmentExecutor::kKernel) {
      std::optional<Lowered> same = may_take ? take_known(c, i, *options.known) : std::nullopt;
      lowered = same ? *std::move(same) : lower_segment(c, i, options);
    }
    c.kernels.push_back(std::move(lowered.kernel));
    c.launches.push_back(std::move(lowered.launch));
  }
}

namespace {

bool has_schedule(const Graph& fusion, const CompileOptions& options) {
  if (!options.steps) return fusion.level == Level::kScheduled;
  // An empty list is a schedule: one kernel without any step.
  return options.steps->empty() || leading_rewrites(*options.steps) < options.steps->size();
}

}  // namespace

bool is_automatic(const Graph& fusion, const CompileOptions& options) {
  return options.device && !options.segmentation && !has_schedule(fusion, options);
}

namespace {

// Applies the leading steps to a fusion, brings it into canonical order, and returns the steps that resolve its symbolic
// axes for the bindings. Inference then finds the same scalars, whatever the order in which the ops were written.
std::vector<Step> rewrite(Graph& fusion, const Bindings& bindings, std::span<const Step> leading,
                          const Defects& defects) {
  if (leading.empty() && !has_symbolic_axes(fusion)) return {};
  const Graph before = fusion;
  if (!leading.empty()) apply_steps(fusion, leading, defects);
  return plan_resolution(before, bindings, fusion, defects);
}

CrossingOptions crossing_options(const CompileOptions& options, const Bindings& sizes) {
  return {.infer = options.infer, .sizes = sizes, .inputs = options.inputs, .defects = options.defects};
}

// Whether values cross whose strides follow from the inputs' and not from types alone: those that ATen makes, views, and
// those that lie over inputs.
bool has_layouts(const Segmentation& s) {
  return std::ranges::any_of(s.segments, [](const Segment& x) {
    return x.executor == SegmentExecutor::kAten || x.executor == SegmentExecutor::kView ||
           std::ranges::any_of(x.outputs, [](const Crossing& c) { return !c.alias.empty(); });
  });
}

// Applies the leading steps and resolves symbolic axes.
void concretize(Compiled& compiled, const Graph& fusion, const Bindings& bindings, const std::vector<Step>& steps,
                const CompileOptions& options) {
  compiled.concretized = fusion;
  const std::span<const Step> leading = std::span(steps).first(leading_rewrites(steps));
  compiled.concretize = rewrite(compiled.concretized, bindings, leading, options.defects);
  apply(compiled.concretized, compiled.concretize, options.defects);
  compiled.concretized = canonical_order(compiled.concretized);
  const Bindings sizes = rebind(fusion, bindings, compiled.concretized);
  // An axis just resolved to *iteration* must match the extents it meets.
  if (!compiled.concretize.empty()) check_sizes(compiled.concretized, sizes);
  compiled.index_bits = options.index_bits != 0 ? options.index_bits : choose_index_bits(compiled.concretized, sizes);
}

bool has_rewrites(const std::vector<Step>& steps) {
  return std::ranges::any_of(steps, [](const Step& x) { return x.kind == StepKind::kRewrite; });
}

// The same with the rewrites that the automatic plan begins with, which are added to the steps. They may find that a size is
// 1, so that a reshape keeps an expanded axis, and an output over that cannot overwrite an input. Such a program is planned as
// it is written, and the result is false.
bool concretize_rewritten(Compiled& compiled, const Graph& fusion, const Bindings& bindings, std::vector<Step>& steps,
                          const CompileOptions& options) {
  std::vector<Step> more = automatic_rewrites(fusion, steps, options.defects);
  more.insert(more.begin(), steps.begin(), steps.end());
  try {
    concretize(compiled, fusion, bindings, more, options);
    steps = std::move(more);
    return true;
  } catch (const Error& e) {
    if (e.code != ErrorCode::kBadAlias || !has_symbolic_axes(fusion)) throw;
    compiled = {};
    concretize(compiled, fusion, bindings, steps, options);
    return false;
  }
}

// Whether the automatic plan begins with these rewrites for these bindings. It always does if no output overwrites an input.
bool begins_with(std::span<const Step> leading, const Graph& fusion, const Bindings& bindings,
                 const CompileOptions& options) {
  const std::vector<Step> given = options.steps.value_or(std::vector<Step>());
  const auto overwrites = [](const OutputRef& out) { return bool(out.alias); };
  if (!has_symbolic_axes(fusion) || std::ranges::none_of(outputs(fusion), overwrites) || has_rewrites(given))
    return true;
  const std::vector<Step> own = automatic_rewrites(fusion, given, options.defects);
  if (own.empty()) return true;
  const bool is_rewritten = has_rewrites({leading.begin(), leading.end()});
  Graph rewritten = fusion;
  try {
    rewrite(rewritten, bindings, own, options.defects);
    return is_rewritten;
  } catch (const Error& e) {
    if (e.code != ErrorCode::kBadAlias) throw;
    return !is_rewritten;
  }
}

void compile_into(CompileAttempt& attempt, const Graph& fusion, const Bindings& bindings,
                  const CompileOptions& options) {
  Compiled& compiled = attempt.made;
  std::vector<Step> steps = options.steps.value_or(std::vector<Step>());
  const bool automatic = is_automatic(fusion, options);
  bool may_rewrite = automatic && !has_rewrites(steps);
  if (may_rewrite)
    may_rewrite = concretize_rewritten(compiled, fusion, bindings, steps, options);
  else
    concretize(compiled, fusion, bindings, steps, options);
  PlannedByName planned;
  if (automatic) {
    const auto planning = [&](const Compiled& c) {
      return AutomaticOptions{.sizes = rebind(fusion, bindings, c.concretized),
                              .memory = memory_classes(fusion, options.inputs, options.defects),
                              .device = *options.device,
                              .heuristics = options.heuristics,
                              .others = options.others,
                              .defects = options.defects,
                              .infer = options.infer,
                              .inputs = options.inputs};
    };
    AutomaticPlan plan = plan_automatic(compiled.concretized, planning(compiled));
    // Takes the plan of the fusion with more rewrites, if it is the better one. Nothing changes where there is no such plan.
    const auto try_rewrites = [&](std::vector<Step> more, auto&& may_win, auto&& is_better) {
      if (more.empty()) return;
      more.insert(more.begin(), steps.begin(), steps.end());
      Compiled other;
      AutomaticPlan second;
      try {
        concretize(other, fusion, bindings, more, options);
        const AutomaticOptions of_other = planning(other);
        if (!may_win(other.concretized, of_other)) return;
        second = plan_automatic(other.concretized, of_other);
        if (!is_better(second, other.concretized, of_other)) return;
      } catch (const Error& e) {
        if (e.code == ErrorCode::kInternal) throw;
        return;
      }
      compiled = std::move(other);
      steps = std::move(more);
      plan = std::move(second);
    };
    if (may_rewrite && plan.decisions.size() > 1 &&
        may_take_finest_axes(fusion, compiled.concretized, planning(compiled)))
      try_rewrites(
          finest_axes_rewrites(fusion, steps, options.defects),
          [](const Graph&, const AutomaticOptions&) { return true; },
          [&](const AutomaticPlan& second, const Graph& rewritten, const AutomaticOptions& of_second) {
            return cost_of(second, rewritten, of_second) < cost_of(plan, compiled.concretized, planning(compiled));
          });
    if (may_rewrite && may_keep_rows(plan))
      try_rewrites(
          two_pass_rewrites(fusion, steps, options.defects),
          [&](const Graph& rewritten, const AutomaticOptions& of_second) {
            return may_be_better_in_two_passes(plan, rewritten, of_second);
          },
          [&](const AutomaticPlan& second, const Graph&, const AutomaticOptions&) {
            return is_better_in_two_passes(plan, second);
          });
    const size_t leading = steps.size();
    steps.insert(steps.end(), plan.steps.begin(), plan.steps.end());
    compiled.automatic = {
        steps, std::move(plan.decisions),
        SizeClasses(compiled.concretized, rebind(fusion, bindings, compiled.concretized), options.defects),
        memory_classes(fusion, options.inputs, options.defects)};
    for (PlannedSegment& p : plan.planned) {
      std::string name = p.segment.name;
      planned.emplace(std::move(name), std::move(p));
    }
    check_internal(leading_rewrites(steps) == leading, "a schedule of the automatic plan begins with a rewrite");
  }
  compiled.defects = options.defects;
  const size_t rewrites = leading_rewrites(steps);
  const Bindings sizes = rebind(fusion, bindings, compiled.concretized);
  const std::span<const Step> schedule = std::span<const Step>(steps).subspan(rewrites);
  if (options.segmentation)
    compiled.segmentation = *options.segmentation;
  else if (schedule.empty() && !has_schedule(fusion, options))
    compiled.segmentation = plan_unfused(compiled.concretized, options.defects);
  else
    compiled.segmentation = plan_steps(compiled.concretized, schedule, options.defects);
  const bool is_known =
      options.known && options.defects.empty() && same_members(compiled.concretized, options.known->concretized);
  SegmentExtractor extractor(compiled.concretized, options.defects);
  CrossingLayouts layouts(compiled.concretized, compiled.segmentation, crossing_options(options, sizes));
  for (size_t i = 0; i < compiled.segmentation.segments.size(); ++i) {
    const Segment& segment = compiled.segmentation.segments[i];
    const Graph* same = is_known ? find_schedule(*options.known, segment, i) : nullptr;
    attempt.segment = i;
    std::optional<Graph> made = same ? *same : take_planned(planned, segment);
    attempt.steps = made ? segment.steps.size() : 0;
    Graph& scheduled = compiled.scheduled.emplace_back(made ? *std::move(made) : extractor.extract(segment));
    StepApplier applier(scheduled, options.defects);
    for (; attempt.steps < segment.steps.size(); ++attempt.steps) applier.apply(segment.steps[attempt.steps]);
    layouts.take(compiled.segmentation, i, scheduled);
  }
  attempt.is_scheduled = true;
  const LowerSegmentsOptions lowering{
      .defects = options.defects, .sizes = sizes, .known = options.known, .digest_plans = options.digest_plans};
  lower_segments(compiled, lowering);
  if (options.index_bits == 0 && compiled.index_bits == 32 &&
      !all_fit(fits_in_32_bits, compiled, bindings, fusion, options.inputs, options.defects, layouts.known()) &&
      !options.defects.has(Defect::kIndexWidthNarrow)) {
    compiled.index_bits = 64;
    lower_segments(compiled, lowering);
  }
  if (compiled.index_bits == 64 &&
      !all_fit(loops_fit_in_64_bits, compiled, bindings, fusion, options.inputs, options.defects, layouts.known()))
    throw Error(ErrorCode::kScalarOverflow, "a loop of the schedule ends beyond 64 bits; split by smaller factors",
                "@" + fusion.name);
  compiled.host = build_host_program(compiled.concretized, compiled.segmentation, compiled.launches, options.defects);
}

}  // namespace

Compiled compile(const Graph& fusion, const Bindings& bindings, const CompileOptions& options) {
  CompileAttempt attempt;
  compile_into(attempt, fusion, bindings, options);
  return std::move(attempt.made);
}

std::vector<Step> plan_concretization(const Graph& fusion, const Bindings& bindings, const CompileOptions& options) {
  const std::span<const Step> steps = options.steps ? std::span<const Step>(*options.steps) : std::span<const Step>();
  Graph rewritten = fusion;
  return rewrite(rewritten, bindings, steps.first(leading_rewrites(steps)), options.defects);
}

bool serves(const Compiled& compiled, const Graph& fusion, const Bindings& bindings, const CompileOptions& options) {
  const Defects& defects = options.defects;
  if (defects.has(Defect::kSymbolsByHint)) return false;  // it reads the sizes
  std::span<const Step> steps = options.steps ? std::span<const Step>(*options.steps) : std::span<const Step>();
  if (is_automatic(fusion, options) != compiled.automatic.has_value()) return false;
  if (compiled.automatic) steps = compiled.automatic->steps;
  const std::span<const Step> leading = steps.first(leading_rewrites(steps));
  if (compiled.automatic && !begins_with(leading, fusion, bindings, options)) return false;
  Graph rewritten = fusion;
  try {
    if (rewrite(rewritten, bindings, leading, defects) != compiled.concretize) return false;
  } catch (const Error& e) {
    // The finest axes may be those of other sizes. Then the plan for these is made without.
    if (e.code == ErrorCode::kInternal || !compiled.automatic || !has_finest_axes(leading)) throw;
    return false;
  }
  const Bindings sizes = rebind(fusion, bindings, compiled.concretized);
  if (const auto& plan = compiled.automatic) {
    if (plan->sizes != SizeClasses(compiled.concretized, sizes, defects) && !defects.has(Defect::kServesAnySize))
      return false;
    if (plan->memory != memory_classes(fusion, options.inputs, defects) && !defects.has(Defect::kServesAnyMemory))
      return false;
  }
  if (!compiled.concretize.empty()) check_sizes(compiled.concretized, sizes);
  // The strides that ATen chooses depend on the sizes. Kernels are made for their contiguity.
  std::map<std::string, TensorLayout> crossings;
  if (has_layouts(compiled.segmentation)) {
    Segmentation again = compiled.segmentation;
    CrossingLayouts layouts(compiled.concretized, again, crossing_options(options, sizes));
    for (size_t i = 0; i < again.segments.size(); ++i) layouts.take(again, i, compiled.scheduled[i]);
    if (again != compiled.segmentation) return false;
    crossings = layouts.known();
  }
  const auto fit = [&](decltype(fits_in_32_bits)& fits) {
    return all_fit(fits, compiled, bindings, fusion, options.inputs, options.defects, crossings);
  };
  if (compiled.index_bits == 64 && !fit(loops_fit_in_64_bits)) return false;
  if (options.index_bits != 0) return options.index_bits == compiled.index_bits;
  if (choose_index_bits(compiled.concretized, sizes) == 64) return compiled.index_bits == 64;
  // A program with 64 bits does not tell whether 32 would do here.
  return compiled.index_bits == 32 && fit(fits_in_32_bits);
}

CompileAttempt try_compile(const Graph& fusion, const Bindings& bindings, const CompileOptions& options) {
  CompileAttempt attempt;
  try {
    compile_into(attempt, fusion, bindings, options);
  } catch (const Error& e) {
    attempt.error = e;
    const Compiled& c = attempt.made;
    if (attempt.is_scheduled) attempt.segment = std::min(c.kernels.size(), c.scheduled.size() - 1);
  }
  return attempt;
}

}  // namespace fusebox
