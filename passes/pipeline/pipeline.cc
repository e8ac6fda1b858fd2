#include "passes/pipeline/pipeline.h"

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>

#include "ir/canonical/canonical.h"
#include "ir/domain/domain.h"
#include "ir/graph/compact.h"
#include "ir/graph/name_index.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/step/apply.h"
#include "ir/step/step_applier.h"
#include "ir/table/error.h"
#include "passes/host/host_program.h"
#include "passes/host/index_range.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan_stages.h"
#include "passes/plan/print_plan.h"
#include "passes/schedule/apply_steps.h"
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

// The places where segments read values, by name and in order.
struct CrossingPlace {
  size_t segment, input;
};
using CrossingPlaces = std::unordered_map<std::string, std::vector<CrossingPlace>>;

CrossingPlaces places_of_inputs(const Segmentation& s) {
  CrossingPlaces places;
  for (size_t i = 0; i < s.segments.size(); ++i)
    for (size_t k = 0; k < s.segments[i].inputs.size(); ++k) places[s.segments[i].inputs[k].value].push_back({i, k});
  return places;
}

// Passes on the layout that a segment's steps gave its outputs: to the allocation, and to the segments that read them.
void take_layouts(const Graph& fusion, NameIndex& names, const CrossingPlaces& places, const Graph& scheduled,
                  Segmentation& s, size_t index, const Defects& defects) {
  // By position, because a step may have put another tensor in an output's place.
  const auto made = outputs(scheduled);
  for (size_t k = 0; k < made.size(); ++k) {
    Crossing& out = s.segments[index].outputs[k];
    const ValueId v = made[k].value;
    if (!scheduled.is_tensor(v)) continue;
    // An output that is in order here and in the fusion needs no allocation order.
    const auto in_fusion = names.find(out.value);
    const bool was_in_order =
        in_fusion && fusion.tensor_of(*in_fusion).allocation.empty() && out.allocation_order.empty();
    if (scheduled.tensor_of(v).allocation.empty() && was_in_order) continue;
    const auto logical = logical_without_reductions(scheduled, scheduled.tensor_of(v));
    std::vector<int64_t> order;
    for (DomainId d : allocation_of(scheduled, scheduled.tensor_of(v)))
      if (const size_t axis = position_in(logical, d); axis < logical.size())
        order.push_back(static_cast<int64_t>(axis));
    if (order.size() != logical.size())
      throw Error(
          ErrorCode::kIllegalAllocation,
          "what crosses a kernel's border is laid out by its logical axes; set the allocation to an order of them",
          "%" + out.value);
    out.allocation_order = order;
    if (defects.has(Defect::kCrossingOrderDropped)) continue;
    if (const auto it = places.find(out.value); it != places.end())
      for (const CrossingPlace& place : it->second)
        if (place.segment > index) s.segments[place.segment].inputs[place.input].allocation_order = order;
  }
}

bool all_fit(const Compiled& c, const Bindings& bindings, const Graph& fusion, const std::vector<BoundInput>& given,
             const Defects& defects) {
  InputStrides strides;
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
    if (!fits_in_32_bits(c.kernels[i], launch, known, strides, defects)) return false;
  }
  return true;
}

// The schedule of the same segment in another program of the same graph, if it is planned the same there. Layouts of
// its outputs are not compared, because they follow from the schedule.
const Graph* find_schedule(const Compiled& known, const Segment& segment, size_t index) {
  if (index >= known.scheduled.size()) return nullptr;
  const Segment& other = known.segmentation.segments[index];
  const auto is_same = [](const Crossing& a, const Crossing& b) {
    return a.value == b.value && a.contiguity == b.contiguity && a.alias == b.alias;
  };
  if (segment.name != other.name || segment.executor != other.executor || segment.ops != other.ops ||
      segment.inputs != other.inputs || segment.steps != other.steps ||
      !std::ranges::equal(segment.outputs, other.outputs, is_same))
    return nullptr;
  return &known.scheduled[index];
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

void compile_into(CompileAttempt& attempt, const Graph& fusion, const Bindings& bindings,
                  const CompileOptions& options) {
  Compiled& compiled = attempt.made;
  const std::span<const Step> steps = options.steps ? std::span<const Step>(*options.steps) : std::span<const Step>();
  const size_t rewrites = leading_rewrites(steps);
  const std::span<const Step> schedule = steps.subspan(rewrites);
  compiled.concretized = fusion;
  apply_steps(compiled.concretized, steps.first(rewrites), options.defects);
  compiled.concretize = plan_concretize(
      compiled.concretized, rewrites > 0 ? rebind(fusion, bindings, compiled.concretized) : bindings, options.defects);
  apply(compiled.concretized, compiled.concretize, options.defects);
  compiled.concretized = canonical_order(compiled.concretized);
  const Bindings sizes = rebind(fusion, bindings, compiled.concretized);
  // An axis just resolved to *iteration* must match the extents it meets.
  if (!compiled.concretize.empty()) check_sizes(compiled.concretized, sizes);
  compiled.index_bits = options.index_bits != 0 ? options.index_bits : choose_index_bits(compiled.concretized, sizes);
  if (options.segmentation)
    compiled.segmentation = *options.segmentation;
  else if (!options.steps || (rewrites > 0 && schedule.empty()))
    compiled.segmentation = plan_unfused(compiled.concretized, options.defects);
  else
    compiled.segmentation = plan_steps(compiled.concretized, schedule, options.defects);
  const bool is_known =
      options.known && options.defects.empty() && same_members(compiled.concretized, options.known->concretized);
  SegmentExtractor extractor(compiled.concretized);
  NameIndex names(compiled.concretized);
  const CrossingPlaces places = places_of_inputs(compiled.segmentation);
  for (size_t i = 0; i < compiled.segmentation.segments.size(); ++i) {
    const Segment& segment = compiled.segmentation.segments[i];
    const Graph* same = is_known ? find_schedule(*options.known, segment, i) : nullptr;
    attempt.segment = i;
    attempt.steps = same ? segment.steps.size() : 0;
    Graph& scheduled = compiled.scheduled.emplace_back(same ? *same : extractor.extract(segment));
    StepApplier applier(scheduled, options.defects);
    for (; attempt.steps < segment.steps.size(); ++attempt.steps) applier.apply(segment.steps[attempt.steps]);
    take_layouts(compiled.concretized, names, places, scheduled, compiled.segmentation, i, options.defects);
  }
  attempt.is_scheduled = true;
  const LowerSegmentsOptions lowering{
      .defects = options.defects, .sizes = sizes, .known = options.known, .digest_plans = options.digest_plans};
  lower_segments(compiled, lowering);
  if (options.index_bits == 0 && compiled.index_bits == 32 &&
      !all_fit(compiled, bindings, fusion, options.inputs, options.defects) &&
      !options.defects.has(Defect::kIndexWidthNarrow)) {
    compiled.index_bits = 64;
    lower_segments(compiled, lowering);
  }
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
  const size_t rewrites = leading_rewrites(steps);
  if (rewrites == 0) return plan_concretize(fusion, bindings, options.defects);
  Graph rewritten = fusion;
  apply_steps(rewritten, steps.first(rewrites), options.defects);
  return plan_concretize(rewritten, rebind(fusion, bindings, rewritten), options.defects);
}

bool serves(const Compiled& compiled, const Graph& fusion, const Bindings& bindings, const CompileOptions& options) {
  if (!options.defects.empty()) return false;  // a defect may read the sizes
  if (plan_concretization(fusion, bindings, options) != compiled.concretize) return false;
  const Bindings sizes = rebind(fusion, bindings, compiled.concretized);
  if (!compiled.concretize.empty()) check_sizes(compiled.concretized, sizes);
  if (options.index_bits != 0) return options.index_bits == compiled.index_bits;
  if (choose_index_bits(compiled.concretized, sizes) == 64) return compiled.index_bits == 64;
  // A program with 64 bits does not tell whether 32 would do here.
  return compiled.index_bits == 32 && all_fit(compiled, bindings, fusion, options.inputs, options.defects);
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
