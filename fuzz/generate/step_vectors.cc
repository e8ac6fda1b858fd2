// Copies of inputs and of an output in random schedules, which become vector accesses.
#include "fuzz/generate/step_maker.h"
#include "ir/domain/domain.h"

namespace fusebox::fuzz {

std::string StepMaker::stored_output(const std::string& otherwise) {
  std::string last = otherwise;
  for (const auto& out : outputs(g_)) {
    if (!g_.is_tensor(out.value) || g_[g_[out.value].def].kind == OpKind::kInput) continue;
    last = g_[out.value].name;
    if (out.alias) break;
  }
  return last;
}

// Copies inputs and the output, and splits a factor off the target; the copies will be vectors of that size.
bool StepMaker::vectors(const std::string& name, int64_t width) {
  const std::string output = stored_output(name);
  copies_.clear();
  for (const std::string& x : tensors(true))
    if (g_[g_[*find_value(g_, x)].def].kind == OpKind::kInput && !random_.one_in(3) &&
        take({StepKind::kCacheAfter, {StepOperand::of(x)}, {fresh()}, {}}))
      copy_again(copies_.emplace_back(steps.back().results[0]));
  if (take({StepKind::kCacheBefore, {StepOperand::of(output)}, {fresh()}, {}})) copies_.push_back(output);
  if (!find_value(g_, name)) return false;
  const auto& loop = loop_of(tensor(name));
  if (loop.empty()) return false;
  vector_ = fresh();
  vector_width_ = width > 0 ? width : int64_t{2} << random_.below(random_.one_in(4) ? 4 : 2);
  return take({StepKind::kSplit,
               {StepOperand::domain_of(name, g_[loop.back()].name), StepOperand::number(vector_width_)},
               {fresh(), vector_},
               {}});
}

// Makes a second copy of an input, for one reader of the first copy.
void StepMaker::copy_again(std::string copy) {
  std::vector<std::string> readers;
  for (OpId id : g_[Graph::body()].ops)
    for (ValueId v : g_[id].operands)
      if (v == *find_value(g_, copy) && !g_[id].results.empty()) readers.push_back(g_[g_[id].results[0]].name);
  if (readers.size() > 1 && !random_.one_in(4) &&
      take({StepKind::kRecompute, {StepOperand::of(copy), StepOperand::of(random_.pick(readers))}, {fresh()}, {}}))
    copies_.push_back(steps.back().results[0]);
}

// The loop of a copy's vectors. Sometimes they are narrower than those of other copies.
std::string StepMaker::vector_of(const std::string& copy) {
  if (vector_width_ <= 2 || !random_.one_in(2)) return vector_;
  const StepOperand whole = StepOperand::domain_of(copy, vector_);
  return take({StepKind::kSplit, {whole, StepOperand::number(2)}, {fresh(), fresh()}, {}}) ? steps.back().results[1]
                                                                                           : vector_;
}

void StepMaker::vectorize() {
  for (const std::string& copy : copies_) {
    const auto v = find_value(g_, copy);
    if (!v || vector_width_ * size_bytes(g_[*v].dtype) > (random_.one_in(16) ? 32 : 16)) continue;
    Step step{StepKind::kParallelize, {StepOperand::domain_of(copy, vector_of(copy))}, {}, {}};
    step.attrs.set_enum(AttrKey::kParallel, ParallelType::kVectorize);
    take(std::move(step));
  }
}

}  // namespace fusebox::fuzz
