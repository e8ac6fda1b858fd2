// Mutations of schedules.
#include <algorithm>

#include "fuzz/mutate/mutate_rules.h"
#include "ir/infer/concretize.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/schedule/apply_steps.h"

namespace fusebox::fuzz {
namespace {

// The concretized fusion after the first `count` steps, skipping those that do not apply. Does not follow segments.
Graph graph_before(const Case& c, size_t count) {
  Graph g = c.fusion();
  if (c.compiled) g = c.compiled->concretized;
  for (size_t i = 0; i < count && c.steps(); ++i)
    if (const Step& s = (*c.steps())[i]; !changes_fusion(s.kind)) try_step(g, s);
  return g;
}

// Values near the current factor and near the extent that it splits.
int64_t perturbed(RandomSource& random, const Graph& g, const Step& step, int64_t factor) {
  std::vector<int64_t> choices = {factor - 1, factor + 1, 1, 2 * factor};
  if (!step.operands.empty() && !step.operands[0].domain.empty())
    if (const auto v = find_value(g, step.operands[0].value); v && g.is_tensor(*v))
      if (const auto d = find_domain(g, g[*v].tensor, step.operands[0].domain))
        if (const auto extent = evaluate_extent(g, *d)) choices.insert(choices.end(), {*extent, *extent + 1});
  const int64_t chosen = random.pick(choices);
  return step.kind == StepKind::kSplit ? std::max<int64_t>(chosen, 1) : chosen;
}

// Replaces a tensor, a domain, a number, a parallel type or a memory type.
bool replace_part(RandomSource& random, const Graph& g, Step& step) {
  if (step.attrs.has(AttrKey::kParallel) && random.one_in(2)) {
    constexpr ParallelType kTypes[] = {ParallelType::kSerial, ParallelType::kBlockX,  ParallelType::kBlockY,
                                       ParallelType::kGridX,  ParallelType::kGridY,   ParallelType::kVectorize,
                                       ParallelType::kUnroll, ParallelType::kUnswitch};
    step.attrs.set_enum(AttrKey::kParallel, random.pick(kTypes));
    return true;
  }
  if (step.attrs.has(AttrKey::kMemory)) {
    constexpr MemoryType kMemory[] = {MemoryType::kLocal, MemoryType::kShared, MemoryType::kGlobal};
    step.attrs.set_enum(AttrKey::kMemory, random.pick(kMemory));
    return true;
  }
  if (step.kind == StepKind::kSplit && random.one_in(4)) {
    if (step.attrs.has(AttrKey::kOuter))
      step.attrs.erase(AttrKey::kOuter);
    else
      step.attrs.set_flag(AttrKey::kOuter);
    return true;
  }
  if (step.operands.empty()) return false;
  StepOperand& o = step.operands[random.below(step.operands.size())];
  if (o.is_integer()) {
    o.integer = perturbed(random, g, step, o.integer);
    return true;
  }
  std::vector<ValueId> tensors;
  for (size_t i = 0; i < g.values.size(); ++i)
    if (g.is_tensor(ValueId(i))) tensors.push_back(ValueId(i));
  if (tensors.empty()) return false;
  const auto old = find_value(g, o.value);
  const ValueId v = old && g.is_tensor(*old) && !o.domain.empty() && !random.one_in(3) ? *old : random.pick(tensors);
  o.value = g[v].name;
  if (o.domain.empty()) return true;
  const auto& loop = loop_of(g.tensor_of(v));
  if (loop.empty()) return false;
  o.domain = g[random.pick(loop)].name;
  return true;
}

}  // namespace

bool draw_for_steps(RandomSource& random, MutationKind kind, const Case& from, const Case& other, Parameters& p) {
  static const std::vector<Step> kNone;
  const std::vector<Step>& steps = from.steps() ? *from.steps() : kNone;
  const auto position = [&](size_t end) { return random.below(end); };
  switch (kind) {
    case MutationKind::kInsertStep: {
      const size_t at = position(steps.size() + 1);
      const auto step = draw_step(random, graph_before(from, at));
      if (!step) return false;
      p = {std::to_string(at), print(*step)};
      return true;
    }
    case MutationKind::kDeleteStep:
      if (steps.empty()) return false;
      p = {std::to_string(position(steps.size()))};
      return true;
    case MutationKind::kSwapSteps:
      if (steps.size() < 2) return false;
      p = {std::to_string(position(steps.size())), std::to_string(position(steps.size()))};
      return true;
    case MutationKind::kReplaceStep: {
      if (steps.empty()) return false;
      const size_t at = position(steps.size());
      Step step = steps[at];
      if (!replace_part(random, graph_before(from, at), step)) return false;
      p = {std::to_string(at), print(step)};
      return true;
    }
    case MutationKind::kSplice: {
      if (!other.steps() || other.steps()->empty()) return false;
      const auto& theirs = *other.steps();
      p = {std::to_string(position(steps.size() + 1))};
      for (size_t i = position(theirs.size()); i < theirs.size(); ++i) p.push_back(print(theirs[i]));
      return true;
    }
    case FUSEBOX_FUSION_MUTATIONS:
    case FUSEBOX_INPUT_MUTATIONS:
      return false;
  }
  return false;
}

bool apply_to_steps(Case& c, MutationKind kind, const Parameters& p) {
  if (p.empty()) return false;
  if (c.module.step_lists.empty()) c.module.step_lists.push_back({"", c.fusion().name, {}});
  std::vector<Step>& steps = c.module.step_lists[0].steps;
  const bool may_end = kind == MutationKind::kInsertStep || kind == MutationKind::kSplice;
  const auto at = parse_position(p[0], steps.size() + (may_end ? 1 : 0));
  if (!at) return false;
  const auto place = steps.begin() + static_cast<std::ptrdiff_t>(*at);
  switch (kind) {
    case MutationKind::kInsertStep:
      if (p.size() != 2) return false;
      steps.insert(place, parse_step(p[1]));
      return true;
    case MutationKind::kDeleteStep:
      steps.erase(place);
      return true;
    case MutationKind::kSwapSteps: {
      const auto second = p.size() == 2 ? parse_position(p[1], steps.size()) : std::nullopt;
      if (!second || *second == *at) return false;
      std::swap(steps[*at], steps[*second]);
      return true;
    }
    case MutationKind::kReplaceStep: {
      if (p.size() != 2) return false;
      Step step = parse_step(p[1]);
      if (step == *place) return false;
      *place = std::move(step);
      return true;
    }
    case MutationKind::kSplice:
      steps.erase(place, steps.end());
      for (size_t i = 1; i < p.size(); ++i) steps.push_back(parse_step(p[i]));
      return true;
    case FUSEBOX_FUSION_MUTATIONS:
    case FUSEBOX_INPUT_MUTATIONS:
      return false;
  }
  return false;
}

}  // namespace fusebox::fuzz
