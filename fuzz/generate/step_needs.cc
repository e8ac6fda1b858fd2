// Steps that nearly every fusion needs to be lowered as one kernel.
#include <algorithm>

#include "fuzz/generate/step_maker.h"
#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "passes/segment/segment.h"

namespace fusebox::fuzz {

void StepMaker::reduce_innermost() {
  for (const std::string& name : tensors(false)) {
    const auto& loop = loop_of(tensor(name));
    const auto is_kept = [&](DomainId d) { return g_[d].iter_type != IterType::kReduction; };
    if (std::is_partitioned(loop.begin(), loop.end(), is_kept)) continue;
    Step step{StepKind::kReorder, {StepOperand::of(name)}, {}, {}};
    for (const bool kept : {true, false})
      for (DomainId d : loop)
        if (is_kept(d) == kept) step.operands.push_back(StepOperand::domain_of(name, g_[d].name));
    take(std::move(step));
  }
}

// A thread keeps one accumulator for each iteration of the serial loops inside the outermost reducing loop. Their
// number must not be symbolic.
void StepMaker::bound_accumulators() {
  for (const std::string& name : tensors(false)) {
    const Tensor& t = tensor(name);
    const auto loop = loop_of(t);
    if (!demands(g_[g_[*find_value(g_, name)].def].kind, kReduction)) continue;
    size_t first = 0;
    while (first < loop.size() &&
           (g_[loop[first]].iter_type != IterType::kReduction || is_thread(g_[loop[first]].parallel)))
      ++first;
    for (size_t i = std::max(first, shared_loops(t)); i < loop.size(); ++i) {
      const IterDomain& d = g_[loop[i]];
      if (d.iter_type == IterType::kReduction || is_thread(d.parallel) || evaluate_extent(g_, loop[i])) continue;
      std::vector<ParallelType> types = {ParallelType::kBlockX, ParallelType::kBlockY, ParallelType::kGridX,
                                         ParallelType::kGridY, ParallelType::kGridZ};
      random_.shuffle(types);
      for (const ParallelType p : types) {
        const auto has = [&](DomainId other) { return g_[other].parallel == p; };
        if (std::any_of(loop.begin(), loop.end(), has)) continue;
        Step step{StepKind::kParallelize, {StepOperand::domain_of(name, d.name)}, {}, {}};
        step.attrs.set_enum(AttrKey::kParallel, p);
        if (take(std::move(step))) break;
      }
    }
  }
}

void StepMaker::spread() {
  const std::vector<OpId> ops = g_[Graph::body()].ops;
  for (OpId op : ops) {
    if (demands(g_[op].kind, kSignature) || g_[op].results.empty() || !g_.is_tensor(g_[op].results[0])) continue;
    for (Step& step : unfused_steps(g_, op)) take(std::move(step));
  }
}

// The number of loops that the tensor shares with its readers through its own inlining.
size_t StepMaker::shared_loops(const Tensor& t) const {
  return t.inline_at ? position_in(loop_of(t), t.inline_at) + 1 : 0;
}

// True if one iteration of the shared loops makes a constant number of elements.
bool StepMaker::has_constant_part(const Tensor& t) const {
  const auto& loop = loop_of(t);
  return std::all_of(
      loop.begin() + static_cast<std::ptrdiff_t>(std::min(shared_loops(t), loop.size())), loop.end(), [&](DomainId d) {
        return g_[d].iter_type == IterType::kReduction || is_thread(g_[d].parallel) || evaluate_extent(g_, d);
      });
}

void StepMaker::keep_visible(MemoryType memory) {
  const auto out = outputs(g_);
  for (const std::string& name : tensors(false)) {
    const ValueId v = *find_value(g_, name);
    const Tensor& t = g_.tensor_of(v);
    const bool is_output = std::any_of(out.begin(), out.end(), [&](const OutputRef& o) { return o.value == v; });
    const bool is_indexed = std::any_of(g_.ops.begin(), g_.ops.end(), [&](const Op& op) {
      for (size_t k = 0; k < op.operands.size(); ++k)
        if (op.operands[k] == v && reads_by_data(g_, op, k)) return true;
      return false;
    });
    if (t.memory == MemoryType::kGlobal || is_output) continue;
    if (!is_indexed && (t.memory != MemoryType::kUnset || (t.inline_at && has_constant_part(t)))) continue;
    Step step{StepKind::kSetMemoryType, {StepOperand::of(name)}, {}, {}};
    step.attrs.set_enum(AttrKey::kMemory, is_indexed ? MemoryType::kGlobal : memory);
    take(std::move(step));
  }
}

}  // namespace fusebox::fuzz
