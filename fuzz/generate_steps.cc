#include "fuzz/generate_steps.h"

#include <algorithm>

#include "fuzz/step_maker.h"
#include "passes/apply_steps.h"

namespace fusebox::fuzz {
namespace {

bool is_inline(const Step& s) { return s.kind == StepKind::kInlineMost || s.kind == StepKind::kInlineAt; }
bool is_parallel(const Step& s) { return s.kind == StepKind::kParallelize || s.kind == StepKind::kParallelizeLike; }

// The tensor of a place such as `%y.i0`.
std::string tensor_of_place(std::string_view place) {
  if (place.empty() || place[0] != '%') return {};
  const size_t end = place.find_first_of(".[ ");
  return std::string(place.substr(1, end == std::string_view::npos ? end : end - 1));
}

// Whether the refusal asks for memory that all threads share, and a step that gives it.
std::optional<Step> set_global(const std::vector<Step>& steps, const Error& refusal) {
  if (refusal.code != ErrorCode::kIllegalAllocation && refusal.code != ErrorCode::kIllegalExchange) return std::nullopt;
  const std::string name = tensor_of_place(refusal.place);
  if (name.empty()) return std::nullopt;
  Step step{StepKind::kSetMemoryType, {StepOperand::of(name)}, {}, {}};
  step.attrs.set_enum(AttrKey::kMemory, MemoryType::kGlobal);
  if (std::find(steps.begin(), steps.end(), step) != steps.end()) return std::nullopt;
  return step;
}

// Takes out the last step that names the tensor of the refusal, or else the last one.
void take_out(std::vector<Step>& steps, size_t keep, const Error& refusal) {
  const std::string name = tensor_of_place(refusal.place);
  size_t at = steps.size();
  for (size_t i = steps.size(); i > keep && at == steps.size(); --i)
    for (const StepOperand& o : steps[i - 1].operands)
      if (!name.empty() && o.value == name && steps[i - 1].kind != StepKind::kAssign) at = i - 1;
  if (at == steps.size() && at > keep) --at;
  if (at < steps.size()) steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at));
}

// Mends what most likely caused the refusal; later tries take out more.
void repair(std::vector<Step>& steps, const Error& refusal, size_t tries) {
  const size_t keep = leading_rewrites(steps);
  const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(keep);
  if (auto step = set_global(steps, refusal))
    steps.push_back(*std::move(step));
  else if (tries == 10)
    steps.erase(std::remove_if(begin, steps.end(), [](const Step& s) { return is_inline(s) || is_parallel(s); }),
                steps.end());
  else if (tries == 8)
    steps.erase(std::remove_if(begin, steps.end(), is_parallel), steps.end());
  else
    take_out(steps, keep, refusal);
}

constexpr size_t kLastRepair = 12;

// As little as lowering the fusion as one kernel takes.
std::vector<Step> plain_steps(RandomSource& random, const Graph& fusion, const Bindings& sizes) {
  StepMaker maker(random, fusion);
  try {
    maker.concretize(fusion, sizes);
    maker.spread();
    maker.keep_visible(MemoryType::kGlobal);
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal) throw;
  }
  return std::move(maker.steps);
}

}  // namespace

GeneratedSteps generate_steps(RandomSource& random, const Graph& fusion, const Bindings& sizes,
                              const StepsOptions& options) {
  GeneratedSteps result;
  StepMaker maker(random, fusion);
  try {
    if (options.rewrites && random.one_in(5)) maker.rewrite();
    maker.concretize(fusion, sizes);
    if (maker.has_tensors()) {
      if (options.segments && random.one_in(8))
        maker.assign(options.max_transforms);
      else
        maker.schedule(options.max_transforms);
    }
  } catch (const Error& e) {
    // Segments that cannot be ordered, say.
    if (row_of(e.code).outcome == Outcome::kInternal) throw;
  }
  result.steps = std::move(maker.steps);
  for (;; ++result.repairs) {
    try {
      result.compiled = compile(
          fusion, sizes, {.steps = result.steps, .inputs = options.inputs, .defects = options.defects});
      result.refusal.reset();
      return result;
    } catch (const Error& e) {
      if (row_of(e.code).outcome == Outcome::kInternal) throw;
      result.refusal = e;
      if (result.repairs > kLastRepair) return result;
      if (result.repairs == kLastRepair)
        result.steps = plain_steps(random, fusion, sizes);
      else
        repair(result.steps, e, result.repairs);
    }
  }
}

std::optional<Step> draw_step(RandomSource& random, const Graph& graph) {
  for (int tries = 0; tries < 6; ++tries) {
    StepMaker maker(random, graph);
    if (!maker.has_tensors()) return std::nullopt;
    maker.noise();
    if (!maker.steps.empty()) return maker.steps.front();
  }
  return std::nullopt;
}

}  // namespace fusebox::fuzz
