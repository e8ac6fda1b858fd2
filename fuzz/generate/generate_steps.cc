#include "fuzz/generate/generate_steps.h"

#include <algorithm>

#include "fuzz/base/error_form.h"
#include "fuzz/generate/step_maker.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/infer/is_library.h"
#include "passes/schedule/apply_steps.h"
#include "replay/run/aten_segment.h"

namespace fusebox::fuzz {
namespace {

bool is_inline(const Step& s) { return s.kind == StepKind::kInlineMost || s.kind == StepKind::kInlineAt; }
bool is_parallel(const Step& s) { return s.kind == StepKind::kParallelize || s.kind == StepKind::kParallelizeLike; }
bool is_vectorized(const Step& s) {
  return s.kind == StepKind::kParallelize &&
         s.attrs.enumerator<ParallelType>(AttrKey::kParallel) == ParallelType::kVectorize;
}
bool is_global(const Step& s) {
  return s.kind == StepKind::kSetMemoryType && s.attrs.enumerator<MemoryType>(AttrKey::kMemory) == MemoryType::kGlobal;
}

// The tensor in a place such as `%y.i0`.
std::string tensor_of_place(std::string_view place) {
  if (place.empty() || place[0] != '%') return {};
  const size_t end = place.find_first_of(".[ ");
  return std::string(place.substr(1, end == std::string_view::npos ? end : end - 1));
}

bool names(const Step& s, const std::string& tensor) {
  return std::any_of(s.operands.begin(), s.operands.end(), [&](const StepOperand& o) { return o.value == tensor; });
}

// Removes the step that most likely caused a refusal, or moves the tensor in the refusal to memory that all threads
// share.
class Culprit {
 public:
  Culprit(std::vector<Step>& steps, const Error& refusal)
      : steps_(steps), keep_(leading_rewrites(steps)), tensor_(tensor_of_place(refusal.place)) {}

  void take_out(ErrorCode code) {
    switch (code) {
      case ErrorCode::kIllegalSwizzle:
        if (take_out_last([](const Step& s) { return s.kind == StepKind::kSwizzle; })) return;
        break;
      case ErrorCode::kIllegalVectorize:
        if (take_out_all(is_vectorized)) return;
        break;
      case ErrorCode::kIllegalCluster:
        if (take_out_all([](const Step& s) { return s.kind == StepKind::kCluster; })) return;
        break;
      case ErrorCode::kIllegalInline:
        if (take_out_last([](const Step& s) { return s.kind == StepKind::kResize; })) return;
        break;
      case ErrorCode::kIllegalAllocation:
      case ErrorCode::kIllegalExchange:
        if (set_global()) return;
        break;
      default:  // any other: any step may be its cause
        break;
    }
    const auto is_any = [](const Step& s) { return s.kind != StepKind::kAssign && !is_global(s); };
    const auto is_named = [&](const Step& s) { return is_any(s) && names(s, tensor_); };
    if (!take_out_last(is_named) && !take_out_last(is_any) && steps_.size() > keep_) steps_.pop_back();
  }

  template <typename Predicate>
  bool take_out_all(Predicate is_bad) {
    const auto begin = steps_.begin() + static_cast<std::ptrdiff_t>(keep_);
    return steps_.erase(std::remove_if(begin, steps_.end(), is_bad), steps_.end()), true;
  }

 private:
  bool set_global() {
    const auto is_its_memory = [&](const Step& s) { return s.kind == StepKind::kSetMemoryType && names(s, tensor_); };
    if (tensor_.empty() ||
        std::any_of(steps_.begin(), steps_.end(), [&](const Step& s) { return is_its_memory(s) && is_global(s); }))
      return false;
    take_out_all(is_its_memory);
    Step step{StepKind::kSetMemoryType, {StepOperand::of(tensor_)}, {}, {}};
    step.attrs.set_enum(AttrKey::kMemory, MemoryType::kGlobal);
    steps_.push_back(std::move(step));
    return true;
  }

  // Removes the last matching step that names the tensor in the refusal, or else the last matching step: steps affect
  // other tensors too.
  template <typename Predicate>
  bool take_out_last(Predicate is_bad) {
    for (const bool named : {true, false})
      for (size_t i = steps_.size(); i > keep_; --i)
        if (is_bad(steps_[i - 1]) && (!named || names(steps_[i - 1], tensor_))) {
          steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(i - 1));
          return true;
        }
    return false;
  }

  std::vector<Step>& steps_;
  const size_t keep_;
  const std::string tensor_;
};

// Later tries remove more. The remaining list is replayed step by step, so that steps that depended on a removed one go
// too. Then the steps that every kernel needs are added.
void repair(std::vector<Step>& steps, const Error& refusal, size_t tries, RandomSource& random, const Graph& fusion,
            const Bindings& sizes) {
  const auto replay = [&] {
    StepMaker maker(random, fusion);
    maker.replay_list(steps, sizes);
    const bool is_changed = maker.steps != steps;
    return steps = std::move(maker.steps), is_changed;
  };
  if (tries == 0 && replay()) return;
  Culprit culprit(steps, refusal);
  if (tries == 3)
    culprit.take_out_all(is_parallel);
  else if (tries == 4)
    culprit.take_out_all([](const Step& s) { return is_inline(s) || is_parallel(s); });
  else
    culprit.take_out(refusal.code);
  replay();
}

constexpr size_t kLastRepair = 6;

// Drops the list if its rewrites or segments no longer fit.
void mend(GeneratedSteps& result, RandomSource& random, const Graph& fusion, const Bindings& sizes) {
  try {
    repair(result.steps, *result.refusal, result.repairs, random, fusion, sizes);
  } catch (const Error& e) {
    expect_refusal(e);
    result.steps.clear();
  }
}

bool has_library_ops(const Graph& fusion) {
  return std::ranges::any_of(fusion.ops, [&](const Op& op) { return is_library(fusion, op); });
}

// The schedule of one kernel, or of one kernel between each two ops that ATen alone computes.
void plain(StepMaker& maker, const Graph& fusion) {
  if (has_library_ops(fusion)) return maker.assign_plain();
  maker.spread();
  maker.keep_visible(MemoryType::kGlobal);
}

// The steps that are just enough to lower the fusion.
std::vector<Step> plain_steps(RandomSource& random, const Graph& fusion, const Bindings& sizes) {
  StepMaker maker(random, fusion);
  try {
    maker.concretize(fusion, sizes);
    plain(maker, fusion);
  } catch (const Error& e) {
    expect_refusal(e);
  }
  return std::move(maker.steps);
}

// Whether the sizes fit once the axes are resolved for them. A symbolic axis that is sliced whole stays one; an op that stretched
// it to 1 leaves one element to slice, and what is sliced stretches for no reader.
bool fits_resolved(const Graph& fusion, const Bindings& sizes) {
  try {
    Graph resolved = fusion;
    apply_steps(resolved, plan_resolution(fusion, sizes, resolved));
    check_sizes(resolved, rebind(fusion, sizes, resolved));
    return true;
  } catch (const Error& e) {
    expect_refusal(e);
    return false;
  }
}

// Whether rewrites may find that an axis is expanded, over which an output cannot overwrite an input.
bool may_expand_output(const Graph& fusion, const std::vector<Step>& steps) {
  return leading_rewrites(steps) > 0 && has_symbolic_axes(fusion);
}

// True if lists may get this code although each step applied when it was drawn: lowering decides legality, and segments
// take steps that were tried elsewhere. A plain list is legal, except for outputs in place.
bool is_expected(ErrorCode code, const std::vector<Step>& steps, bool is_plain) {
  if (is_plain) return code == ErrorCode::kIllegalAliasOrder || code == ErrorCode::kIllegalOrder;
  if (code == ErrorCode::kStepReferent || code == ErrorCode::kStepNotApplicable)
    return std::any_of(steps.begin(), steps.end(), [](const Step& s) { return s.kind == StepKind::kAssign; });
  return code >= ErrorCode::kIllegalInline && code <= ErrorCode::kIllegalCluster;
}

}  // namespace

GeneratedSteps generate_steps(RandomSource& random, const Graph& fusion, const Bindings& sizes,
                              const StepsOptions& options) {
  GeneratedSteps result;
  StepMaker maker(random, fusion);
  maker.focus = options.focus;
  try {
    if (random.one_in(6)) maker.precision();
    if (options.rewrites_one_in > 0 && random.one_in(options.rewrites_one_in)) maker.rewrite();
    maker.concretize(fusion, sizes);
    if (maker.has_tensors()) {
      // Outputs in place get several segments more often, so that several kernels read and write the same memory.
      const auto out = outputs(fusion);
      const bool in_place = std::any_of(out.begin(), out.end(), [](const OutputRef& o) { return bool(o.alias); });
      const bool is_aimed = options.focus.segments > 0 ||
                            (options.focus.in_place && options.focus.in_place->in_segments) ||
                            options.focus.rare == RareFocus::kDeclaredOrder;
      const bool must_cut = has_library_ops(fusion);
      if (options.plain) {
        plain(maker, fusion);
      } else if (must_cut || (options.segments && (is_aimed || random.one_in(in_place ? 4 : 8)))) {
        maker.assign(options.max_transforms);
      } else {
        maker.schedule(options.max_transforms);
      }
    }
  } catch (const Error& e) {
    // For example, segments that cannot be ordered.
    expect_refusal(e);
  }
  result.steps = std::move(maker.steps);
  for (;; ++result.repairs) {
    if (options.compiles && !options.compiles()) return result;
    try {
      result.compiled = compile(
          fusion, sizes,
          {.steps = result.steps, .inputs = options.inputs, .defects = options.defects, .infer = infer_by_aten()});
      result.refusal.reset();
      return result;
    } catch (const Error& e) {
      expect_refusal(e);
      const bool may_not_fit =
          e.code == ErrorCode::kSizeMismatch && has_symbolic_axes(fusion) && !fits_resolved(fusion, sizes);
      const bool is_expanded = e.code == ErrorCode::kBadAlias && may_expand_output(fusion, result.steps);
      if (!may_not_fit && !is_expanded && !is_expected(e.code, result.steps, result.repairs > kLastRepair))
        result.surprise = e;
      result.refusal = e;
      if (result.surprise) return result;
      if (result.repairs > kLastRepair) return result;
      // Outputs in place rarely permit any order but the plain one.
      if (e.code == ErrorCode::kIllegalAliasOrder) result.repairs = std::max(result.repairs, kLastRepair);
      if (result.repairs == kLastRepair)
        result.steps = plain_steps(random, fusion, sizes);
      else
        mend(result, random, fusion, sizes);
    }
  }
}

std::optional<Step> draw_step(RandomSource& random, const Graph& graph) {
  for (int tries = 0; tries < 6; ++tries) {
    StepMaker maker(random, graph);
    if (!maker.has_tensors()) return std::nullopt;
    maker.random_step();
    if (!maker.steps.empty()) return maker.steps.front();
  }
  return std::nullopt;
}

}  // namespace fusebox::fuzz
