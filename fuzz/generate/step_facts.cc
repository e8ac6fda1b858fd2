#include <algorithm>
#include <numeric>

#include "fuzz/generate/step_maker.h"
#include "ir/scalar/scalar.h"
#include "passes/segment/segment.h"

namespace fusebox::fuzz {
namespace {

constexpr size_t kMultipleOf = 0, kAtMost = 1, kBelow = 2, kEqual = 3, kKinds = 4;  // the optional slots, in order

}  // namespace

// Most facts hold at the sizes of the case, many of them only just. One in twelve fails, which the launch must find.
void StepMaker::facts() {
  std::vector<ValueId> sizes;
  for (OpId op : g_[Graph::body()].ops)
    if (g_[op].kind == OpKind::kSize) sizes.insert(sizes.end(), g_[op].results.begin(), g_[op].results.end());
  std::erase_if(sizes, [&](ValueId v) { return !evaluate_integer(g_, v, sizes_); });
  // A kernel has only the sizes that it needs. Steps that were taken before may have added ops, so they do not tell. It has
  // no input that it only overwrites if a step gives the output memory of its own.
  if (!sizes.empty()) {
    const Graph& fusion = unscheduled_.ops.empty() ? g_ : unscheduled_;
    Segmentation whole = plan_single(fusion, {});
    if (whole.segments.empty()) return;
    for (Crossing& c : whole.segments[0].outputs) c.alias.clear();
    const Graph kernel = extract(fusion, whole.segments[0]);
    std::erase_if(sizes, [&](ValueId v) { return !find_value(kernel, g_[v].name); });
  }
  if (sizes.empty()) return;
  Step step{StepKind::kAssume, {}, {}, {}};
  int64_t product = 1;
  for (uint64_t left = random_.one_in(4) ? 2 : 1; left > 0; --left) {
    const ValueId v = random_.pick(sizes);
    if (__builtin_mul_overflow(product, *evaluate_integer(g_, v, sizes_), &product) || product > INT32_MAX) return;
    step.operands.push_back(StepOperand::of(g_[v].name));
  }
  const size_t first = step.operands.size();
  step.operands.resize(first + kKinds);
  const auto state = [&](size_t kind, int64_t bound) {
    if (bound >= 1) step.operands[first + kind] = StepOperand::number(bound);
  };
  const int64_t wrong = random_.one_in(12) ? 1 : 0;
  // A number that one size is larger than, or as large as, most often only just.
  if (first == 1 && product > 0 && random_.one_in(3)) {
    const size_t kind = random_.one_in(2) ? kAtMost : kBelow;
    const int64_t slack = random_.one_in(2) ? 0 : random_.between(0, 9);
    const int64_t least = product + wrong - slack - (kind == kBelow ? 1 : 0);
    if (least < 1) return;
    step.operands[first + kind] = step.operands[0];
    step.operands[0] = StepOperand::number(least);
    take(std::move(step));
    return;
  }
  for (uint64_t count = random_.one_in(4) ? 2 : 1; count > 0; --count) {
    switch (random_.below(kKinds)) {
      case kMultipleOf:
        state(kMultipleOf, std::gcd(product, random_.one_in(2) ? 64 : product) + wrong);
        break;
      case kAtMost:
        state(kAtMost, product + (random_.one_in(2) ? 0 : random_.between(0, 9)) - wrong * (1 + product));
        break;
      case kBelow:
        state(kBelow, product + 1 - wrong + (random_.one_in(2) ? 0 : random_.between(0, 9)));
        break;
      case kEqual: {
        const ValueId other = random_.pick(sizes);
        if (evaluate_integer(g_, other, sizes_) == product && random_.one_in(2))
          step.operands[first + kEqual] = StepOperand::of(g_[other].name);
        else
          state(kEqual, product + wrong);
      }
    }
  }
  take(std::move(step));
}

// A bound that names no tensor is for every kernel, and a kernel takes one.
void StepMaker::bound_launch() {
  if (std::ranges::any_of(steps, [](const Step& s) { return s.kind == StepKind::kBoundLaunch; })) return;
  const int64_t threads = random_.one_in(3) ? random_.between(1, 1024) : int64_t{32} << random_.below(6);
  Step step{StepKind::kBoundLaunch, {}, {}, {}};
  if (const auto made = tensors(false); !made.empty() && random_.one_in(2))
    step.operands.push_back(StepOperand::of(random_.pick(made)));
  step.operands.push_back(StepOperand::number(threads));
  step.operands.push_back(StepOperand::number(random_.between(1, 4)));
  take(std::move(step));
}

void StepMaker::dependent_launch() {
  if (std::ranges::any_of(steps, [](const Step& s) { return s.kind == StepKind::kDependentLaunch; })) return;
  Step step{StepKind::kDependentLaunch, {}, {}, {}};
  if (const auto made = tensors(false); !made.empty() && random_.one_in(2))
    step.operands.push_back(StepOperand::of(random_.pick(made)));
  take(std::move(step));
}

// A kernel has clusters of one kind.
void StepMaker::cluster(int64_t blocks, ParallelType axis) {
  if (std::ranges::any_of(steps, [](const Step& s) { return s.kind == StepKind::kCluster; })) return;
  Step step{StepKind::kCluster, {}, {}, {}};
  if (const auto made = tensors(false); !made.empty() && random_.one_in(2))
    step.operands.push_back(StepOperand::of(random_.pick(made)));
  step.operands.push_back(StepOperand::number(blocks));
  step.attrs.set_enum(AttrKey::kParallel, axis);
  take(std::move(step));
}

}  // namespace fusebox::fuzz
