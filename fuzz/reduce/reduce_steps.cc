// Reductions of a schedule.
#include <algorithm>

#include "fuzz/reduce/reduce_rules.h"

namespace fusebox::fuzz {
namespace {

Edit at_step(size_t at, std::function<bool(std::vector<Step>&, size_t)> change) {
  return [at, change = std::move(change)](Case& to) {
    if (!to.steps() || at >= to.steps()->size()) return false;
    return change(steps_of(to), at);
  };
}

// Replaces a name in all later steps. A domain's name is replaced in every tensor, because propagation copies names.
void rename_after(std::vector<Step>& steps, size_t at, bool is_tensor, const std::string& from, const std::string& to) {
  for (size_t i = at; i < steps.size(); ++i)
    for (StepOperand& o : steps[i].operands) {
      std::string& name = is_tensor ? o.value : o.domain;
      if (name == from) name = to;
    }
}

// The old names that can stand for the results of a step: one list for each way.
std::vector<std::vector<std::string>> ways_back(const Step& s) {
  const auto domain = [&](size_t i) { return i < s.operands.size() ? s.operands[i].domain : std::string(); };
  switch (s.kind) {
    case StepKind::kSplit:
      return {{domain(0), "gone"}, {"gone", domain(0)}, {domain(0), domain(0)}};
    case StepKind::kMerge:
      return {{domain(0)}, {domain(1)}};
    case StepKind::kSwizzle:
      return {{domain(0), domain(1)}};
    case StepKind::kResize:
      return {{domain(0)}};
    default:  // any other: makes tensors, of which its row tells, or nothing that has a name
      if (row_of(s.kind).makes_tensors() && !s.operands.empty()) return {{s.operands[0].value}};
      return {};
  }
}

void erase_at(std::vector<Step>& steps, size_t at) { steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at)); }

// Moves the ops of one assign step to the segment of another.
void join_assigns(const std::vector<Step>& steps, size_t from, std::vector<Edit>& edits) {
  for (size_t to = 0; to < steps.size(); ++to) {
    if (to == from || steps[to].kind != StepKind::kAssign) continue;
    edits.push_back(at_step(from, [to](std::vector<Step>& list, size_t at) {
      if (to >= list.size() || list[at].kind != StepKind::kAssign || list[to].kind != StepKind::kAssign) return false;
      for (const StepOperand& o : list[at].operands) list[to].operands.push_back(o);
      erase_at(list, at);
      return true;
    }));
  }
}

// Lets ATen run a segment, which then needs no schedule.
bool leave_to_aten(std::vector<Step>& steps, size_t at) {
  const std::string segment(steps[at].attrs.string(AttrKey::kName));
  for (Step& s : steps)
    if (s.kind == StepKind::kAssign && s.attrs.string(AttrKey::kName) == segment)
      s.attrs.set_enum(AttrKey::kExecutor, SegmentExecutor::kAten);
  return true;
}

}  // namespace

std::vector<Edit> forget_schedule(const Case& c) {
  if (!c.steps()) return {};
  return {[](Case& to) {
    to.module.step_lists.clear();
    return true;
  }};
}

// Deleting the last step leaves one kernel of all ops.
std::vector<Edit> delete_steps(const Case& c) {
  std::vector<Edit> edits;
  for (size_t i = 0; c.steps() && i < c.steps()->size(); ++i)
    edits.push_back(at_step(i, [](std::vector<Step>& steps, size_t at) {
      erase_at(steps, at);
      return true;
    }));
  return edits;
}

std::vector<Edit> fold_steps(const Case& c) {
  std::vector<Edit> edits;
  for (size_t i = 0; c.steps() && i < c.steps()->size(); ++i) {
    if ((*c.steps())[i].kind == StepKind::kAssign) join_assigns(*c.steps(), i, edits);
    for (const auto& names : ways_back((*c.steps())[i]))
      edits.push_back(at_step(i, [names](std::vector<Step>& steps, size_t at) {
        const Step s = steps[at];
        erase_at(steps, at);
        for (size_t k = 0; k < s.results.size() && k < names.size(); ++k)
          rename_after(steps, at, row_of(s.kind).makes_tensors(), s.results[k], names[k]);
        for (size_t k = at; k < steps.size(); ++k)
          if (steps[k].kind == StepKind::kReorder || steps[k].kind == StepKind::kSetAllocation)
            std::erase_if(steps[k].operands, [](const StepOperand& o) { return o.domain == "gone"; });
        return true;
      }));
  }
  return edits;
}

std::vector<Edit> shorten_steps(const Case& c) {
  std::vector<Edit> edits;
  for (size_t i = 0; c.steps() && i < c.steps()->size(); ++i) {
    const Step& s = (*c.steps())[i];
    const auto slots = slot_ranges(*row_of(s.kind).format, s.operands.size());
    if (!slots) continue;
    for (size_t k = 0; k < row_of(s.kind).format->all().size(); ++k)
      if (row_of(s.kind).format->slots[k].list)
        for (size_t at = (*slots)[k].begin; at < (*slots)[k].begin + (*slots)[k].count; ++at)
          edits.push_back(at_step(i, [at](std::vector<Step>& steps, size_t step) {
            if (at >= steps[step].operands.size()) return false;
            steps[step].operands.erase(steps[step].operands.begin() + static_cast<std::ptrdiff_t>(at));
            return true;
          }));
  }
  return edits;
}

std::vector<Edit> shrink_factors(const Case& c) {
  std::vector<Edit> edits;
  for (size_t i = 0; c.steps() && i < c.steps()->size(); ++i) {
    const Step& s = (*c.steps())[i];
    for (size_t k = 0; k < s.operands.size(); ++k) {
      if (!s.operands[k].is_integer()) continue;
      const int64_t n = s.operands[k].integer;
      std::vector<int64_t> smaller =
          n < 0 ? std::vector<int64_t>{0, 1, n / 2, n + 1} : smaller_numbers(n, s.kind == StepKind::kSplit ? 1 : 0);
      for (int64_t m : smaller)
        edits.push_back(at_step(i, [k, n, m](std::vector<Step>& steps, size_t at) {
          if (k >= steps[at].operands.size() || steps[at].operands[k].integer != n) return false;
          steps[at].operands[k].integer = m;
          return true;
        }));
    }
  }
  return edits;
}

std::vector<Edit> simplify_steps(const Case& c) {
  std::vector<Edit> edits;
  for (size_t i = 0; c.steps() && i < c.steps()->size(); ++i) {
    const Step& s = (*c.steps())[i];
    if (s.kind == StepKind::kAssign) {
      edits.push_back(at_step(i, leave_to_aten));
      continue;
    }
    for (const Attr& a : s.attrs.list()) {
      if (a.key == AttrKey::kParallel) {
        for (ParallelType plain : {ParallelType::kBlockX, ParallelType::kGridX})
          edits.push_back(at_step(i, [plain](std::vector<Step>& steps, size_t at) {
            if (steps[at].attrs.enumerator<ParallelType>(AttrKey::kParallel) == plain) return false;
            steps[at].attrs.set_enum(AttrKey::kParallel, plain);
            return true;
          }));
        continue;
      }
      edits.push_back(at_step(i, [key = a.key](std::vector<Step>& steps, size_t at) {
        steps[at].attrs.erase(key);
        return true;
      }));
    }
  }
  return edits;
}

}  // namespace fusebox::fuzz
