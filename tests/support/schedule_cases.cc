#include "tests/support/schedule_cases.h"

#include <algorithm>
#include <random>

#include "ir/parse.h"

namespace fusebox::test {
namespace {

// Programs with %m, %n (and %k) left open; integers keep every sum exact, whatever its order.
struct Family {
  const char* name;
  const char* text;
  const char* inputs;  // of `$m`, `$n`
  const char* target;  // the tensor that is scheduled first
};

constexpr Family kFamilies[] = {
    {"pointwise", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %b = input f32[%n] contiguous
  %a = add %x, 1.0_f32
  %bb = broadcast %b mask [1, 0]
  %c = mul %a, %bb
  %y = sub %c, %x
  output %y
})",
     "%x = f32[$m, $n] integers -8 8 seed 1\n%b = f32[$n] integers -8 8 seed 2", "y"},
    {"row_sum", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %a = mul %x, 2.0_f32
  %s = sum %a over [1]
  %t = add %s, 3.0_f32
  output %t
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "s"},
    {"column_max", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %s = max %x over [0]
  %t = neg %s
  output %t
})",
     "%x = f32[$m, $n] integers -50 50 seed 1", "s"},
    {"normalise", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %s = sum %x over [1]
  %sb = broadcast %s mask [0, 1]
  %y = sub %x, %sb
  output %y
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "y"},
    {"transpose", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %z = input f32[%n, %m] contiguous
  %p = permute %z dims [1, 0]
  %y = add %x, %p
  output %y
})",
     "%x = f32[$m, $n] integers -8 8 seed 1\n%z = f32[$n, $m] integers -8 8 seed 2", "y"},
    {"flatten", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %mn = mul %m, %n
  %r = reshape %x to [%mn]
  %y = add %r, 1.0_f32
  output %y
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "y"},
    {"pad_slice", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %p = pad %x value 5.0_f32 by [1, 2, 0, 1]
  %y = mul %p, 2.0_f32
  output %y
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "y"},
    {"diamond", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %a = abs %x
  %u = add %a, 1.0_f32
  %v = mul %a, 3.0_f32
  %y = sub %u, %v
  output %y
  output %v
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "y"},
    {"total", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %s = sum %x over [0, 1]
  output %s
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "s"},
};

std::string with_extents(std::string text, int64_t m, int64_t n) {
  for (const auto& [mark, value] : {std::pair<std::string, int64_t>{"$m", m}, {"$n", n}})
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
      text.replace(at, 2, std::to_string(value));
  return text;
}

class CaseMaker {
 public:
  explicit CaseMaker(uint64_t seed) : random_(seed) {}

  ScheduleCase run() {
    const Family& family = kFamilies[pick(std::size(kFamilies))];
    case_.family = family.name;
    constexpr int64_t kExtents[] = {1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 65};
    const int64_t m = kExtents[pick(std::size(kExtents))], n = kExtents[pick(std::size(kExtents))];
    case_.module =
        parse_module(std::string(family.text) + "\ninputs @f host {\n" + with_extents(family.inputs, m, n) + "\n}\n");
    g_ = case_.module.graphs[0];
    const std::string target = family.target;
    if (chance(3)) prepare();
    transform(target, 1 + pick(5));
    if (!chance(6)) take({StepKind::kTransformLike, {StepOperand::of(target)}, {}, {}});
    if (chance(4)) noise();
    threads(target);
    if (!chance(6)) take({StepKind::kParallelizeLike, {StepOperand::of(target)}, {}, {}});
    if (chance(4)) noise();
    if (!chance(5)) take({StepKind::kInlineMost, {}, {}, {}});
    if (chance(6)) noise();
    return std::move(case_);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  bool chance(size_t one_in) { return pick(one_in) == 0; }

  // Applies a step if it applies.
  bool take(Step step) {
    if (inapplicable(g_, step)) return false;
    apply(g_, step);
    case_.steps.push_back(std::move(step));
    return true;
  }

  std::vector<std::string> tensors(bool with_inputs) const {
    std::vector<std::string> result;
    for (OpId op : g_[Graph::body()].ops)
      for (ValueId v : g_[op].results)
        if (g_.is_tensor(v) && (with_inputs || g_[op].kind != OpKind::kInput)) result.push_back(g_[v].name);
    return result;
  }
  std::string any_tensor(bool with_inputs = false) {
    const auto list = tensors(with_inputs);
    return list[pick(list.size())];
  }
  StepOperand any_domain(const std::string& tensor) {
    const auto& loop = loop_of(g_.tensor_of(*find_value(g_, tensor)));
    return StepOperand::domain_of(tensor, loop.empty() ? "none" : g_[loop[pick(loop.size())]].name);
  }
  int64_t factor() {
    constexpr int64_t kFactors[] = {1, 2, 3, 4, 4, 5, 7, 8, 16, 32, 32, 64, 128};
    return kFactors[pick(std::size(kFactors))];
  }
  std::string fresh() { return "s" + std::to_string(next_++); }

  void prepare() {
    switch (pick(3)) {
      case 0:
        if (take({StepKind::kCacheAfter, {StepOperand::of(any_tensor(true))}, {fresh()}, {}}) && chance(2))
          memory(case_.steps.back().results[0]);
        break;
      case 1:
        take({StepKind::kCacheBefore, {StepOperand::of(any_tensor())}, {fresh()}, {}});
        break;
      default:
        memory(any_tensor());
    }
  }

  void memory(const std::string& tensor) {
    Step step{StepKind::kSetMemoryType, {StepOperand::of(tensor)}, {}, {}};
    constexpr MemoryType kMemory[] = {MemoryType::kLocal, MemoryType::kShared, MemoryType::kShared,
                                      MemoryType::kGlobal};
    step.attrs.set_enum(AttrKey::kMemory, kMemory[pick(4)]);
    take(step);
  }

  void transform(const std::string& t, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      switch (pick(6)) {
        case 0:
        case 1:
        case 2: {
          Step step{StepKind::kSplit, {any_domain(t), StepOperand::number(factor())}, {fresh(), fresh()}, {}};
          if (chance(4)) step.attrs.set_flag(AttrKey::kOuter);
          take(step);
          break;
        }
        case 3: {
          const auto& loop = loop_of(g_.tensor_of(*find_value(g_, t)));
          if (loop.size() < 2) break;
          const size_t at = pick(loop.size() - 1);
          take({StepKind::kMerge,
                {StepOperand::domain_of(t, g_[loop[at]].name), StepOperand::domain_of(t, g_[loop[at + 1]].name)},
                {fresh()},
                {}});
          break;
        }
        case 4: {
          auto loop = loop_of(g_.tensor_of(*find_value(g_, t)));
          std::shuffle(loop.begin(), loop.end(), random_);
          Step step{StepKind::kReorder, {StepOperand::of(t)}, {}, {}};
          for (DomainId d : loop) step.operands.push_back(StepOperand::domain_of(t, g_[d].name));
          take(step);
          break;
        }
        default:
          if (chance(3)) {
            Step step{StepKind::kSwizzle, {any_domain(t), any_domain(t)}, {fresh(), fresh()}, {}};
            step.attrs.set_enum(AttrKey::kSwizzle, chance(2) ? SwizzleType::kXor : SwizzleType::kCyclic);
            take(step);
          } else if (chance(2)) {
            take({StepKind::kRfactor, {StepOperand::of(t), any_domain(t)}, {fresh()}, {}});
          }
      }
    }
  }

  void threads(const std::string& t) {
    constexpr ParallelType kTypes[] = {ParallelType::kGridX,     ParallelType::kGridY,  ParallelType::kGridZ,
                                       ParallelType::kBlockX,    ParallelType::kBlockX, ParallelType::kBlockY,
                                       ParallelType::kBlockZ,    ParallelType::kUnroll, ParallelType::kUnswitch,
                                       ParallelType::kVectorize, ParallelType::kSerial};
    const auto loop = loop_of(g_.tensor_of(*find_value(g_, t)));
    for (DomainId d : loop) {
      if (chance(4)) continue;
      Step step{StepKind::kParallelize, {StepOperand::domain_of(t, g_[d].name)}, {}, {}};
      step.attrs.set_enum(AttrKey::kParallel, kTypes[pick(std::size(kTypes))]);
      take(step);
    }
  }

  void noise() {
    const std::string t = any_tensor();
    switch (pick(9)) {
      case 0:
        return prepare();
      case 1:
        return transform(t, 1);
      case 2:
        return threads(t);
      case 3:
        take({StepKind::kInlineAt, {any_domain(t)}, {}, {}});
        return;
      case 4:
        take({StepKind::kRecompute, {StepOperand::of(t), StepOperand::of(any_tensor())}, {fresh()}, {}});
        return;
      case 5:
        take({StepKind::kCacheFork, {StepOperand::of(t)}, {fresh()}, {}});
        return;
      case 6:
        take({StepKind::kPropagate, {StepOperand::of(t)}, {}, {}});
        return;
      case 7:
        take({StepKind::kSetLoopDomain, {StepOperand::of(t), StepOperand::of(any_tensor())}, {}, {}});
        return;
      default: {
        Step step{StepKind::kSetAllocation, {StepOperand::of(t)}, {}, {}};
        auto axes = logical_without_reductions(g_, g_.tensor_of(*find_value(g_, t)));
        std::shuffle(axes.begin(), axes.end(), random_);
        for (DomainId d : axes) step.operands.push_back(StepOperand::domain_of(t, g_[d].name));
        take(step);
      }
    }
  }

  std::mt19937_64 random_;
  ScheduleCase case_;
  Graph g_;
  int next_ = 0;
};

}  // namespace

ScheduleCase make_schedule_case(uint64_t seed) { return CaseMaker(seed).run(); }

}  // namespace fusebox::test
