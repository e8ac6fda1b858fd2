#include "tests/support/schedule_cases.h"

#include <algorithm>
#include <random>

#include "fuzz/generate/generate_steps.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/step/apply.h"
#include "ir/text/parse.h"
#include "passes/rewrite/rewrite.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"
#include "tests/support/program_text.h"

namespace fusebox::test {
namespace {

using testing::replaced;

// Programs with %m and %n left open. Integers keep every sum exact in any order.
struct Family {
  const char* name;
  const char* text;
  const char* inputs;  // `$m`, `$n`: the sizes; `$1m`, `$1n`: the size or 1
  const char* target;  // the tensor that is scheduled first
  int64_t least = 0;   // of both extents
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
    {"copies", R"(fusion @f {
  %m, %n = size
  %x = input bf16[%m, %n] contiguous
  %a = set %x
  %b = add %a, 1.0_bf16
  %y = set %b
  output %y
})",
     "%x = bf16[$m, $n] integers -8 8 seed 1", "y"},
    {"rotate_half", R"(fusion @f {
  %m, %n = size
  %h = floor_div %n, 2
  %x = input f32[%m, %n] contiguous
  %a = mul %x, 2.0_f32
  %lo = slice %a from [0, 0] to [%m, %h] by [1, 1]
  %hi = slice %a from [0, %h] to [%m, %n] by [1, 1]
  %nh = neg %hi
  %c = cat [%nh, %lo] axis 1
  %y = add %c, 1.0_f32
  output %y
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "y"},
    {"padded_sum", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %a = add %x, 1.0_f32
  %p = pad %a value 2.0_f32 by [3, 1, 1, 0]
  %s = sum %p over [1]
  output %s
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "s"},
    {"slice", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %a = neg %x
  %s = slice %a from [1, 0] to [%m, 1] by [1, 1]
  %y = mul %s, 3.0_f32
  output %y
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "y", 1},
    {"rows", R"(fusion @f {
  %m, %n = size
  %w = input f32[%m, %n] contiguous
  %i = input i64[%n] contiguous
  %r = index_select %w, %i axis 0
  %y = add %r, 1.0_f32
  output %y
})",
     "%w = f32[$m, $n] integers -8 8 seed 1\n%i = i64[$n] integers 0 $m seed 2", "y", 1},
    {"in_place", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %s = sum %x over [1]
  %a = add %x, 1.0_f32
  %y = set %a
  output %y alias %x
  output %s
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "y"},
    {"maybe_broadcast", R"(fusion @f {
  %m, %n, %k, %l = size
  %x = input f32[%m, %n] contiguous
  %b = input f32[symbolic %k, symbolic %l]
  %e = expand %b to [%m, %n]
  %y = add %x, %e
  output %y
})",
     "%x = f32[$m, $n] integers -8 8 seed 1\n%b = f32[$1m, $1n] integers -8 8 seed 2", "y", 1},
    {"reshape_between", R"(fusion @f {
  %m, %n, %p, %q = size
  %x = input f32[%m, %n] contiguous
  %z = input f32[%p, %q] contiguous
  %a = add %x, 1.0_f32
  %r = reshape %a to [%p, %q]
  %y = mul %r, %z
  output %y
})",
     "%x = f32[$m, $n] integers -8 8 seed 1\n%z = f32[$n, $m] integers -8 8 seed 2", "y"},
    {"rewritable", R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %one = set %x
  %p = permute %one dims [1, 0]
  %q = permute %p dims [1, 0]
  %c = cast %q as f64
  %d = cast %c as f32
  %u = add %d, 2.0_f32
  %v = add %d, 2.0_f32
  %w = neg %x
  %y = sub %u, %v
  %z = mul %y, %u
  output %z
})",
     "%x = f32[$m, $n] integers -8 8 seed 1", "z"},
};

class CaseMaker {
 public:
  explicit CaseMaker(uint64_t seed) : random_(seed) {}

  ScheduleCase run() {
    const Family& family = kFamilies[pick(std::size(kFamilies))];
    case_.family = family.name;
    constexpr int64_t kExtents[] = {1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 65, 0, 1, 32, 128};
    const int64_t m = std::max(kExtents[pick(std::size(kExtents))], family.least);
    const int64_t n = std::max(kExtents[pick(std::size(kExtents))], family.least);
    std::string inputs = replaced(replaced(family.inputs, "$m", m), "$n", n);
    // An extent is the other's extent, or 1.
    inputs = replaced(replaced(inputs, "$1m", chance(2) ? 1 : m), "$1n", chance(2) ? 1 : n);
    case_.module = parse_module(std::string(family.text) + "\ninputs @f host {\n" + inputs + "\n}\n");
    g_ = case_.module.graphs[0];
    if (chance(family.name == std::string("rewritable") ? 2 : 8)) rewrite();
    concretize();
    if (chance(8)) {
      assigned();
    } else {
      schedule(find_value(g_, family.target) ? family.target : any_tensor());
    }
    return std::move(case_);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  bool chance(size_t one_in) { return pick(one_in) == 0; }

  // Applies a step if it applies.
  bool take(Step step) {
    if (step_refusal(g_, step)) return false;
    apply_step(g_, step);
    case_.steps.push_back(std::move(step));
    return true;
  }

  void rewrite() {
    for (size_t count = 1 + pick(3); count > 0; --count) {
      const RewriteRow& row = rewrite_rows()[pick(rewrite_rows().size())];
      take(rewrite_step(row.name, chance(4) ? "limit=" + std::to_string(pick(3)) : ""));
    }
  }

  // Concretizes as `compile` does; the following steps work on the concretized fusion.
  void concretize() {
    std::vector<BoundInput> given;
    for (const InputSpec& s : case_.module.input_specs[0].specs) given.push_back({.shape = s.shape});
    const Graph& fusion = case_.module.graphs[0];
    const Bindings bindings = bind_sizes(fusion, given);
    const std::vector<Step> resolved = plan_resolution(fusion, bindings, g_);
    apply(g_, resolved);
    g_ = canonical_order(g_);
  }

  // Assigns the ops to two or three segments, some run by ATen, and schedules each.
  void assigned() {
    std::vector<Step> assigns;
    const auto names = tensors(false);
    const size_t count = 2 + pick(2);
    std::vector<size_t> cuts = {0, names.size()};
    for (size_t i = 1; i < count; ++i) cuts.push_back(pick(names.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i] == cuts[i + 1]) continue;
      Step step{StepKind::kAssign, {}, {}, {}};
      for (size_t k = cuts[i]; k < cuts[i + 1]; ++k) step.operands.push_back(StepOperand::of(names[k]));
      step.attrs.set(AttrKey::kName, "part" + std::to_string(i));
      step.attrs.set_enum(AttrKey::kExecutor, chance(4) ? SegmentExecutor::kAten : SegmentExecutor::kKernel);
      assigns.push_back(std::move(step));
    }
    case_.steps.insert(case_.steps.end(), assigns.begin(), assigns.end());
    const Segmentation parts = plan_assigned(g_, assigns);
    const Graph whole = g_;
    for (const Segment& part : parts.segments) {
      if (part.executor != SegmentExecutor::kKernel) continue;
      g_ = extract(whole, part);
      schedule(any_tensor());
    }
  }

  void schedule(const std::string& target) {
    if (chance(2)) relate();
    if (chance(3)) prepare();
    transform(target, 1 + pick(5));
    if (chance(4)) rfactor(target);
    const bool in_vectors = chance(5) && vectors(target);
    if (!chance(6)) take({StepKind::kTransformLike, {StepOperand::of(target)}, {}, {}});
    if (chance(4)) random_step();
    threads(target);
    if (in_vectors) vectorize();
    if (!chance(6)) take({StepKind::kParallelizeLike, {StepOperand::of(target)}, {}, {}});
    if (chance(4)) random_step();
    if (!chance(5)) take({StepKind::kInlineMost, {}, {}, {}});
    if (chance(6)) random_step();
  }

  // Shares loops across an op that moves elements: makes a reshape, pad, slice or cat in its operand's loops, or the
  // reverse.
  void relate() {
    for (auto [result, operand] : fuzz::moved_pairs(g_)) {
      if (chance(2)) continue;
      if (chance(2)) std::swap(result, operand);
      take({StepKind::kSetLoopDomain, {StepOperand::of(result), StepOperand::of(operand)}, {}, {}});
    }
  }

  // Splits a reduced loop and reduces one part first.
  void rfactor(const std::string& target) {
    std::vector<DomainId> reduced;
    for (DomainId d : loop_of(g_.tensor_of(*find_value(g_, target))))
      if (g_[d].iter_type == IterType::kReduction) reduced.push_back(d);
    if (reduced.empty()) return;
    const std::string outer = fresh(), inner = fresh();
    const auto split = StepOperand::domain_of(target, g_[reduced[pick(reduced.size())]].name);
    if (!take({StepKind::kSplit, {split, StepOperand::number(factor())}, {outer, inner}, {}})) return;
    take({StepKind::kRfactor,
          {StepOperand::of(target), StepOperand::domain_of(target, chance(2) ? outer : inner)},
          {fresh()},
          {}});
  }

  // Copies inputs and the output, and splits a factor off the target; the copies will be vectors of that size.
  bool vectors(const std::string& target) {
    std::string output = target;
    for (const auto& out : outputs(g_)) output = g_[out.value].name;
    copies_.clear();
    for (const std::string& x : tensors(true))
      if (g_[g_[*find_value(g_, x)].def].kind == OpKind::kInput && !chance(3) &&
          take({StepKind::kCacheAfter, {StepOperand::of(x)}, {fresh()}, {}}))
        copies_.push_back(case_.steps.back().results[0]);
    if (take({StepKind::kCacheBefore, {StepOperand::of(output)}, {fresh()}, {}})) copies_.push_back(output);
    if (!find_value(g_, target)) return false;
    const auto& loop = loop_of(g_.tensor_of(*find_value(g_, target)));
    if (loop.empty()) return false;
    vector_ = fresh();
    return take({StepKind::kSplit,
                 {StepOperand::domain_of(target, g_[loop.back()].name),
                  StepOperand::number(int64_t{2} << pick(chance(4) ? 4 : 2))},
                 {fresh(), vector_},
                 {}});
  }
  void vectorize() {
    for (const std::string& copy : copies_) {
      Step step{StepKind::kParallelize, {StepOperand::domain_of(copy, vector_)}, {}, {}};
      step.attrs.set_enum(AttrKey::kParallel, ParallelType::kVectorize);
      take(step);
    }
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

  // A tensor that an op reads, with that op's result.
  std::pair<std::string, std::string> read_and_reader() {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (OpId id : g_[Graph::body()].ops)
      for (ValueId x : g_[id].operands)
        if (x && g_.is_tensor(x) && !g_[id].results.empty() && g_[g_[x].def].kind != OpKind::kInput)
          pairs.emplace_back(g_[x].name, g_[g_[id].results[0]].name);
    return pairs.empty() ? std::pair(any_tensor(), any_tensor()) : pairs[pick(pairs.size())];
  }

  void prepare() {
    switch (pick(5)) {
      case 2: {
        const auto [read, reader] = read_and_reader();
        take({StepKind::kRecompute, {StepOperand::of(read), StepOperand::of(reader)}, {fresh()}, {}});
        break;
      }
      case 3: {
        const auto out = outputs(g_);
        take({StepKind::kCacheFork, {StepOperand::of(g_[out[pick(out.size())].value].name)}, {fresh()}, {}});
        break;
      }
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
          } else if (chance(3)) {
            const auto by = [&] { return StepOperand::number(static_cast<int64_t>(pick(4)) - 1); };
            take({StepKind::kResize, {any_domain(t), by(), by()}, {fresh()}, {}});
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

  void random_step() {
    const std::string t = any_tensor();
    switch (pick(10)) {
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
      case 5:
        return prepare();
      case 6:
        take({StepKind::kPropagate, {StepOperand::of(t)}, {}, {}});
        return;
      case 7:
        take({StepKind::kSetLoopDomain, {StepOperand::of(t), StepOperand::of(any_tensor())}, {}, {}});
        return;
      case 8: {
        if (!chance(4)) return;
        Step step{StepKind::kCircularBuffer, {StepOperand::of(t)}, {}, {}};
        step.attrs.set(AttrKey::kDepth, int64_t{2});
        take(step);
        return;
      }
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
  std::vector<std::string> copies_;  // tensors to make in vectors of the domain `vector_`
  std::string vector_;
  int next_ = 0;
};

}  // namespace

ScheduleCase make_schedule_case(uint64_t seed) { return CaseMaker(seed).run(); }

}  // namespace fusebox::test
