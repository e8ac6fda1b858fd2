// Transforms in random schedules: splits, merges, swizzles, resizes, and the pairs that a focus aims at.
#include "fuzz/generate/step_maker.h"
#include "passes/schedule/apply_steps.h"

namespace fusebox::fuzz {

// A usual factor, or a constant extent or its neighbour. Splits that put most of their iterations outside the tensor
// are rarely nested: a run would mainly skip iterations.
StepOperand StepMaker::factor(DomainId d) {
  constexpr int64_t kFactors[] = {2, 3, 4, 1, 4, 5, 7, 8, 16, 32, 32, 64, 128};
  constexpr int64_t kMostIdle = 12;  // iterations per element of the tensor
  const auto constant = random_.one_in(3) ? evaluate_extent(g_, d) : std::nullopt;
  if (constant && *constant > 1) return StepOperand::number(*constant - 1 + static_cast<int64_t>(random_.below(3)));
  const int64_t extent = std::max<int64_t>(evaluate_extent(g_, d, sizes_).value_or(1), 1);
  const auto idle = [&](int64_t f) { return (extent + f - 1) / f * f / extent; };
  int64_t factor = random_.pick(kFactors);
  if (idle_ * idle(factor) > kMostIdle) factor = 1 + static_cast<int64_t>(random_.below(4));
  idle_ *= idle(factor);
  return StepOperand::number(factor);
}

void StepMaker::split(const std::string& name, DomainId d) {
  Step step{StepKind::kSplit, {StepOperand::domain_of(name, g_[d].name), factor(d)}, {fresh(), fresh()}, {}};
  if (random_.one_in(4)) step.attrs.set_flag(AttrKey::kOuter);
  take(std::move(step));
}

// Swizzles any two loops, or parts of two loops whose extents make it a permutation.
void StepMaker::swizzle(const std::string& name) {
  auto loop = loop_of(tensor(name));
  if (loop.size() < 2) return;
  if (random_.one_in(2)) {
    const int64_t second = int64_t{2} << random_.below(3);
    const int64_t first = random_.one_in(2) ? second : random_.between(2, second);
    return swizzle_parts(name, {random_.pick<SwizzleType>(), first, second});
  }
  random_.shuffle(loop);
  take_swizzle(random_.pick<SwizzleType>(), StepOperand::domain_of(name, g_[loop[0]].name),
               StepOperand::domain_of(name, g_[loop[1]].name));
}

bool StepMaker::take_swizzle(SwizzleType type, const StepOperand& first, const StepOperand& second) {
  // Lowering refuses an xor that does not permute its domains.
  if (type == SwizzleType::kXor && !random_.one_in(16)) {
    const int64_t x = extent_of(first).value_or(0), y = extent_of(second).value_or(0);
    if (x == 0 || (y & (y - 1)) != 0 || x > y) type = SwizzleType::kCyclic;
  }
  Step step{StepKind::kSwizzle, {first, second}, {fresh(), fresh()}, {}};
  step.attrs.set_enum(AttrKey::kSwizzle, type);
  return take(std::move(step));
}

void StepMaker::swizzle_parts(const std::string& name, const SwizzleFocus& parts) {
  auto loop = loop_of(tensor(name));
  if (loop.empty()) return;
  if (!parts.is_far) random_.shuffle(loop);
  // A swizzle cannot mix loops of two kinds.
  const IterType type = g_[loop[0]].iter_type;
  std::erase_if(loop, [&](DomainId d) { return g_[d].iter_type != type; });
  std::vector<StepOperand> whole;
  for (DomainId d : loop) whole.push_back(StepOperand::domain_of(name, g_[d].name));
  if (whole.size() == 1) {
    if (!take({StepKind::kSplit, {whole[0], StepOperand::number(8)}, {fresh(), fresh()}, {}})) return;
    const auto& made = steps.back().results;
    whole = {StepOperand::domain_of(name, made[0]), StepOperand::domain_of(name, made[1])};
  }
  const int64_t extents[] = {parts.first, parts.second};
  for (size_t i = 0; i < 2; ++i) {
    const std::string inner = fresh();
    if (!take({StepKind::kSplit, {whole[i], StepOperand::number(extents[i])}, {fresh(), inner}, {}})) return;
    whole[i] = StepOperand::domain_of(name, inner);
  }
  take_swizzle(parts.type, whole[0], whole[1]);
}

std::optional<StepOperand> StepMaker::transform_of(TransformKind kind, const std::string& name,
                                                   const StepOperand& domain) {
  const auto& loop = loop_of(tensor(name));
  const auto made = [&](bool is_taken) {
    if (!is_taken) return std::optional<StepOperand>();
    return std::optional(StepOperand::domain_of(name, random_.pick(steps.back().results)));
  };
  size_t at = 0;
  while (at < loop.size() && g_[loop[at]].name != domain.domain) ++at;
  if (at == loop.size()) return std::nullopt;
  const auto operand = [&](size_t i) { return StepOperand::domain_of(name, g_[loop[i]].name); };
  switch (kind) {
    case TransformKind::kSplit: {
      Step step{StepKind::kSplit, {domain, factor(loop[at])}, {fresh(), fresh()}, {}};
      if (random_.one_in(4)) step.attrs.set_flag(AttrKey::kOuter);
      return made(take(std::move(step)));
    }
    case TransformKind::kMerge: {
      if (loop.size() < 2) return std::nullopt;
      const size_t outer = at + 1 < loop.size() && (at == 0 || random_.one_in(2)) ? at : at - 1;
      return made(take({StepKind::kMerge, {operand(outer), operand(outer + 1)}, {fresh()}, {}}));
    }
    case TransformKind::kSwizzle: {
      if (loop.size() < 2) return std::nullopt;
      const size_t other = (at + 1 + random_.below(loop.size() - 1)) % loop.size();
      const SwizzleType type = random_.pick<SwizzleType>();
      return made(random_.one_in(2) ? take_swizzle(type, domain, operand(other))
                                    : take_swizzle(type, operand(other), domain));
    }
    case TransformKind::kResize: {
      const int64_t least = random_.one_in(4) ? -1 : 0;
      const auto by = [&] { return StepOperand::number(random_.between(least, 2)); };
      return made(take({StepKind::kResize, {domain, by(), by()}, {fresh()}, {}}));
    }
  }
  return std::nullopt;
}

void StepMaker::pair_of(const std::string& name, const TransformFocus& kinds) {
  const auto& loop = loop_of(tensor(name));
  if (loop.empty()) return;
  StepOperand at = StepOperand::domain_of(name, g_[random_.pick(loop)].name);
  // A merge or a swizzle needs two loops.
  if (loop.size() == 1 && kinds.first != TransformKind::kSplit)
    if (const auto part = transform_of(TransformKind::kSplit, name, at)) at = *part;
  const auto made = transform_of(kinds.first, name, at);
  if (made) transform_of(kinds.second, name, *made);
}

void StepMaker::resize(const std::string& name) {
  // A cutting resize is refused if the loops would then miss an element.
  const int64_t least = random_.one_in(4) ? -1 : 0;
  const auto by = [&] { return StepOperand::number(random_.between(least, 2)); };
  take({StepKind::kResize, {any_domain(name), by(), by()}, {fresh()}, {}});
}

void StepMaker::transform(const std::string& name, size_t count) {
  for (; count > 0; --count) {
    auto loop = loop_of(tensor(name));
    if (loop.empty()) return;
    const size_t way = random_.below(12);
    if (way < 6) {
      split(name, random_.pick(loop));
    } else if (way < 8 && loop.size() > 1) {
      const size_t at = random_.below(loop.size() - 1);
      take({StepKind::kMerge,
            {StepOperand::domain_of(name, g_[loop[at]].name), StepOperand::domain_of(name, g_[loop[at + 1]].name)},
            {fresh()},
            {}});
    } else if (way < 10) {
      random_.shuffle(loop);
      Step step{StepKind::kReorder, {StepOperand::of(name)}, {}, {}};
      for (DomainId d : loop) step.operands.push_back(StepOperand::domain_of(name, g_[d].name));
      take(std::move(step));
    } else if (way == 10) {
      swizzle(name);
    } else if (random_.one_in(2)) {
      resize(name);
    } else {
      take({StepKind::kRfactor, {StepOperand::of(name), any_domain(name)}, {fresh()}, {}});
    }
  }
}

}  // namespace fusebox::fuzz
