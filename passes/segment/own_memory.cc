#include "passes/segment/own_memory.h"

namespace fusebox {
namespace {

struct OutputState {
  std::string name;
  bool is_kept_in_global = false;
};

OutputState follow(std::span<const Step> steps, std::string output) {
  OutputState state{std::move(output)};
  for (const Step& step : steps) {
    if (step.operands.empty() || step.operands[0].value != state.name) continue;
    if (step.kind == StepKind::kCacheFork && !step.results.empty())
      state = {step.results[0]};
    else if (step.kind == StepKind::kSetMemoryType && step.attrs.has(AttrKey::kMemory))
      state.is_kept_in_global = step.attrs.enumerator<MemoryType>(AttrKey::kMemory) == MemoryType::kGlobal;
  }
  return state;
}

}  // namespace

std::string output_after(std::span<const Step> steps, std::string output) {
  return follow(steps, std::move(output)).name;
}

bool has_own_memory(std::span<const Step> steps, std::string output) {
  return follow(steps, std::move(output)).is_kept_in_global;
}

Step own_memory_step(const std::string& output) {
  Step step{StepKind::kSetMemoryType, {StepOperand::of(output)}, {}, {}};
  step.attrs.set_enum(AttrKey::kMemory, MemoryType::kGlobal);
  return step;
}

}  // namespace fusebox
