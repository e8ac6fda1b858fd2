#include "fuzz/step_maker.h"

#include <algorithm>

#include "ir/canonical.h"
#include "ir/concretize.h"
#include "ir/domain.h"
#include "passes/apply_steps.h"
#include "passes/rewrite.h"
#include "passes/segment.h"

namespace fusebox::fuzz {

bool StepMaker::take(Step step) {
  if (step_refusal(g_, step)) return false;
  apply_step(g_, step);
  steps.push_back(std::move(step));
  return true;
}

void StepMaker::rewrite() {
  for (size_t count = 1 + random_.below(3); count > 0; --count) {
    const auto rows = rewrite_rows();
    take(rewrite_step(rows[random_.below(rows.size())].name,
                      random_.one_in(4) ? "limit=" + std::to_string(random_.below(3)) : ""));
  }
}

void StepMaker::concretize(const Graph& fusion, const Bindings& sizes) {
  const std::vector<Step> resolved = plan_concretize(g_, rebind(fusion, sizes, g_));
  apply(g_, resolved);
  g_ = canonical_order(g_);
}

void StepMaker::assign(size_t max_transforms) {
  const auto names = tensors(false);
  std::vector<size_t> cuts = {0, names.size()};
  for (size_t extra = 1 + random_.below(2); extra > 0; --extra) cuts.push_back(random_.below(names.size() + 1));
  std::sort(cuts.begin(), cuts.end());
  std::vector<Step> assigns;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i] == cuts[i + 1]) continue;
    Step step{StepKind::kAssign, {}, {}, {}};
    for (size_t k = cuts[i]; k < cuts[i + 1]; ++k) step.operands.push_back(StepOperand::of(names[k]));
    step.attrs.set(AttrKey::kName, "part" + std::to_string(i));
    step.attrs.set_enum(AttrKey::kExecutor, random_.one_in(4) ? SegmentExecutor::kAten : SegmentExecutor::kKernel);
    assigns.push_back(std::move(step));
  }
  const Segmentation parts = plan_assigned(g_, assigns);
  steps.insert(steps.end(), assigns.begin(), assigns.end());
  const Graph whole = std::move(g_);
  for (const Segment& part : parts.segments) {
    if (part.executor != SegmentExecutor::kKernel) continue;
    g_ = extract(whole, part);
    if (has_tensors()) schedule(max_transforms);
  }
}

void StepMaker::schedule(size_t max_transforms) {
  std::string name = target();
  if (!random_.one_in(8)) reduce_innermost();
  if (random_.one_in(2)) relate();
  if (random_.one_in(3)) prepare();
  if (max_transforms > 0) transform(name, 1 + random_.below(max_transforms));
  if (random_.one_in(4)) rfactor(name);
  const bool in_vectors = random_.one_in(5) && vectors(name);
  if (!random_.one_in(8)) take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
  if (random_.one_in(6)) noise();
  if (random_.one_in(5)) lay_out();
  threads(name);
  if (in_vectors) vectorize();
  if (!random_.one_in(8)) take({StepKind::kParallelizeLike, {StepOperand::of(name)}, {}, {}});
  if (random_.one_in(6)) noise();
  if (!random_.one_in(5)) take({StepKind::kInlineMost, {}, {}, {}});
  if (random_.one_in(8)) noise();
  // Lowering refuses a block's memory for what another block reads; the repair makes that global.
  if (!random_.one_in(8)) keep_visible(random_.one_in(4) ? MemoryType::kShared : MemoryType::kGlobal);
}

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

void StepMaker::spread() {
  const std::vector<OpId> ops = g_[Graph::body()].ops;
  for (OpId op : ops) {
    if (demands(g_[op].kind, kSignature) || g_[op].results.empty() || !g_.is_tensor(g_[op].results[0])) continue;
    for (Step& step : unfused_steps(g_, op)) take(std::move(step));
  }
}

void StepMaker::keep_visible(MemoryType memory) {
  const auto out = outputs(g_);
  for (const std::string& name : tensors(false)) {
    const ValueId v = *find_value(g_, name);
    const Tensor& t = g_.tensor_of(v);
    const bool is_output = std::any_of(out.begin(), out.end(), [&](const OutputRef& o) { return o.value == v; });
    if (t.memory != MemoryType::kUnset || t.inline_at || is_output) continue;
    Step step{StepKind::kSetMemoryType, {StepOperand::of(name)}, {}, {}};
    step.attrs.set_enum(AttrKey::kMemory, memory);
    take(std::move(step));
  }
}

// An output, or a reduction: what a planner would schedule the others by.
std::string StepMaker::target() {
  const auto out = outputs(g_);
  if (!random_.one_in(4))
    for (OpId id : g_[Graph::body()].ops)
      if (demands(g_[id].kind, kReduction)) return g_[g_[id].results[0]].name;
  const ValueId last = out.empty() ? ValueId() : out[random_.below(out.size())].value;
  if (last && g_.is_tensor(last) && g_[g_[last].def].kind != OpKind::kInput) return g_[last].name;
  return any_tensor();
}

// Loops shared across ops that move elements.
void StepMaker::relate() {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (OpId id : g_[Graph::body()].ops) {
    const Op& op = g_[id];
    if (!demands(op.kind, kMetadata)) continue;
    for (ValueId x : op.operands)
      if (x && g_.is_tensor(x) && g_[g_[x].def].kind != OpKind::kInput)
        pairs.emplace_back(g_[op.results[0]].name, g_[x].name);
  }
  for (auto& [result, read] : pairs) {
    if (random_.one_in(2)) continue;
    if (random_.one_in(2)) std::swap(result, read);
    take({StepKind::kSetLoopDomain, {StepOperand::of(result), StepOperand::of(read)}, {}, {}});
  }
}

void StepMaker::rfactor(const std::string& name) {
  std::vector<DomainId> reduced;
  for (DomainId d : loop_of(tensor(name)))
    if (g_[d].iter_type == IterType::kReduction) reduced.push_back(d);
  if (reduced.empty()) return;
  const DomainId d = random_.pick(reduced);
  const std::string outer = fresh(), inner = fresh();
  if (!take({StepKind::kSplit, {StepOperand::domain_of(name, g_[d].name), factor(d)}, {outer, inner}, {}})) return;
  take({StepKind::kRfactor,
        {StepOperand::of(name), StepOperand::domain_of(name, random_.one_in(2) ? outer : inner)},
        {fresh()},
        {}});
}

// Copies of what is read and written, and a factor split off the target for them to be made in vectors of it.
bool StepMaker::vectors(const std::string& name) {
  std::string output = name;
  for (const auto& out : outputs(g_)) output = g_[out.value].name;
  copies_.clear();
  for (const std::string& x : tensors(true))
    if (g_[g_[*find_value(g_, x)].def].kind == OpKind::kInput && !random_.one_in(3) &&
        take({StepKind::kCacheAfter, {StepOperand::of(x)}, {fresh()}, {}}))
      copies_.push_back(steps.back().results[0]);
  if (take({StepKind::kCacheBefore, {StepOperand::of(output)}, {fresh()}, {}})) copies_.push_back(output);
  if (!find_value(g_, name)) return false;
  const auto& loop = loop_of(tensor(name));
  if (loop.empty()) return false;
  vector_ = fresh();
  return take({StepKind::kSplit,
               {StepOperand::domain_of(name, g_[loop.back()].name),
                StepOperand::number(int64_t{2} << random_.below(random_.one_in(4) ? 4 : 2))},
               {fresh(), vector_},
               {}});
}

void StepMaker::vectorize() {
  for (const std::string& copy : copies_) {
    Step step{StepKind::kParallelize, {StepOperand::domain_of(copy, vector_)}, {}, {}};
    step.attrs.set_enum(AttrKey::kParallel, ParallelType::kVectorize);
    take(std::move(step));
  }
}

std::vector<std::string> StepMaker::tensors(bool with_inputs) const {
  std::vector<std::string> result;
  for (OpId op : g_[Graph::body()].ops)
    for (ValueId v : g_[op].results)
      if (g_.is_tensor(v) && (with_inputs || g_[op].kind != OpKind::kInput)) result.push_back(g_[v].name);
  return result;
}

std::string StepMaker::any_tensor(bool with_inputs) {
  const auto list = tensors(with_inputs);
  return list[random_.below(list.size())];
}

StepOperand StepMaker::any_domain(const std::string& name) {
  const auto& loop = loop_of(tensor(name));
  return StepOperand::domain_of(name, loop.empty() ? "none" : g_[loop[random_.below(loop.size())]].name);
}

// Usual factors; of a constant extent also itself and its neighbours.
StepOperand StepMaker::factor(DomainId d) {
  constexpr int64_t kFactors[] = {2, 3, 4, 1, 4, 5, 7, 8, 16, 32, 32, 64, 128};
  const auto extent = random_.one_in(3) ? evaluate_extent(g_, d) : std::nullopt;
  if (extent && *extent > 1) return StepOperand::number(*extent - 1 + static_cast<int64_t>(random_.below(3)));
  return StepOperand::number(random_.pick(kFactors));
}

std::string StepMaker::fresh() {
  for (;;) {
    std::string name = "s" + std::to_string(next_++);
    const auto taken = [&](const IterDomain& d) { return d.name == name; };
    if (!find_value(g_, name) && std::none_of(g_.domains.begin(), g_.domains.end(), taken)) return name;
  }
}

std::pair<std::string, std::string> StepMaker::read_and_reader() {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (OpId id : g_[Graph::body()].ops)
    for (ValueId x : g_[id].operands)
      if (x && g_.is_tensor(x) && !g_[id].results.empty() && g_[g_[x].def].kind != OpKind::kInput)
        pairs.emplace_back(g_[x].name, g_[g_[id].results[0]].name);
  return pairs.empty() ? std::pair(any_tensor(), any_tensor()) : random_.pick(pairs);
}

void StepMaker::prepare() {
  switch (random_.below(5)) {
    case 0:
      if (take({StepKind::kCacheAfter, {StepOperand::of(any_tensor(true))}, {fresh()}, {}}) && random_.one_in(2))
        memory(steps.back().results[0]);
      return;
    case 1:
      take({StepKind::kCacheBefore, {StepOperand::of(any_tensor())}, {fresh()}, {}});
      return;
    case 2: {
      const auto [read, reader] = read_and_reader();
      take({StepKind::kRecompute, {StepOperand::of(read), StepOperand::of(reader)}, {fresh()}, {}});
      return;
    }
    case 3: {
      const auto out = outputs(g_);
      if (out.empty()) return;
      take({StepKind::kCacheFork, {StepOperand::of(g_[out[random_.below(out.size())].value].name)}, {fresh()}, {}});
      return;
    }
    default:
      memory(any_tensor());
  }
}

void StepMaker::memory(const std::string& name) {
  Step step{StepKind::kSetMemoryType, {StepOperand::of(name)}, {}, {}};
  constexpr MemoryType kMemory[] = {MemoryType::kShared, MemoryType::kLocal, MemoryType::kShared, MemoryType::kGlobal};
  step.attrs.set_enum(AttrKey::kMemory, random_.pick(kMemory));
  take(std::move(step));
}

void StepMaker::split(const std::string& name, DomainId d) {
  Step step{StepKind::kSplit, {StepOperand::domain_of(name, g_[d].name), factor(d)}, {fresh(), fresh()}, {}};
  if (random_.one_in(4)) step.attrs.set_flag(AttrKey::kOuter);
  take(std::move(step));
}

// Of any two loops; or of parts of two that are equally long, as one that permutes its domains wants them.
void StepMaker::swizzle(const std::string& name) {
  auto loop = loop_of(tensor(name));
  if (loop.size() < 2) return;
  random_.shuffle(loop);
  StepOperand first = StepOperand::domain_of(name, g_[loop[0]].name);
  StepOperand second = StepOperand::domain_of(name, g_[loop[1]].name);
  if (random_.one_in(2)) {
    const StepOperand by = StepOperand::number(int64_t{2} << random_.below(3));
    const std::string names[] = {g_[loop[0]].name, g_[loop[1]].name};
    StepOperand* parts[] = {&first, &second};
    for (size_t i = 0; i < 2; ++i) {
      const std::string inner = fresh();
      if (!take({StepKind::kSplit, {StepOperand::domain_of(name, names[i]), by}, {fresh(), inner}, {}})) return;
      *parts[i] = StepOperand::domain_of(name, inner);
    }
  }
  Step step{StepKind::kSwizzle, {first, second}, {fresh(), fresh()}, {}};
  step.attrs.set_enum(AttrKey::kSwizzle, random_.pick<SwizzleType>());
  take(std::move(step));
}

// A tensor in a block's or a thread's own memory, whose layout and loops need not be its readers': they find its
// elements through its transforms.
void StepMaker::lay_out() {
  const std::string name = any_tensor();
  Step memory{StepKind::kSetMemoryType, {StepOperand::of(name)}, {}, {}};
  memory.attrs.set_enum(AttrKey::kMemory, random_.one_in(3) ? MemoryType::kLocal : MemoryType::kShared);
  if (!take(std::move(memory))) return;
  transform(name, random_.below(3));
  switch (random_.below(3)) {
    case 0:
      swizzle(name);
      break;
    case 1:
      resize(name);
      break;
    default:
      break;
  }
  auto loop = loop_of(tensor(name));
  const auto is_reduced = [&](DomainId d) { return g_[d].iter_type == IterType::kReduction; };
  if (random_.one_in(2) || std::any_of(loop.begin(), loop.end(), is_reduced)) return;
  random_.shuffle(loop);
  Step layout{StepKind::kSetAllocation, {StepOperand::of(name)}, {}, {}};
  for (DomainId d : loop) layout.operands.push_back(StepOperand::domain_of(name, g_[d].name));
  if (take(std::move(layout))) transform(name, random_.below(2));
}

void StepMaker::resize(const std::string& name) {
  const auto by = [&] { return StepOperand::number(random_.between(-1, 2)); };
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

void StepMaker::threads(const std::string& name) {
  constexpr ParallelType kTypes[] = {ParallelType::kBlockX,    ParallelType::kGridX,  ParallelType::kGridY,
                                     ParallelType::kGridZ,     ParallelType::kBlockX, ParallelType::kBlockY,
                                     ParallelType::kBlockZ,    ParallelType::kUnroll, ParallelType::kUnswitch,
                                     ParallelType::kVectorize, ParallelType::kSerial};
  const auto loop = loop_of(tensor(name));
  const bool in_one_block = random_.one_in(4);
  for (DomainId d : loop) {
    if (random_.one_in(4)) continue;
    const ParallelType p = random_.pick(kTypes);
    if (in_one_block && is_grid(p)) continue;
    Step step{StepKind::kParallelize, {StepOperand::domain_of(name, g_[d].name)}, {}, {}};
    step.attrs.set_enum(AttrKey::kParallel, p);
    take(std::move(step));
  }
}

void StepMaker::noise() {
  const std::string name = any_tensor();
  switch (random_.below(10)) {
    case 0:
    case 1:
    case 2:
      return prepare();
    case 3:
      return transform(name, 1);
    case 4:
      return threads(name);
    case 5:
      take({StepKind::kInlineAt, {any_domain(name)}, {}, {}});
      return;
    case 6:
      take({StepKind::kPropagate, {StepOperand::of(name)}, {}, {}});
      return;
    case 7:
      take({StepKind::kSetLoopDomain, {StepOperand::of(name), StepOperand::of(any_tensor())}, {}, {}});
      return;
    case 8: {
      const std::string other = any_tensor();
      take({StepKind::kLoopBroadcast, {StepOperand::of(name), any_domain(other)}, {fresh()}, {}});
      return;
    }
    default: {
      Step step{StepKind::kSetAllocation, {StepOperand::of(name)}, {}, {}};
      auto axes = logical_without_reductions(g_, tensor(name));
      random_.shuffle(axes);
      for (DomainId d : axes) step.operands.push_back(StepOperand::domain_of(name, g_[d].name));
      take(std::move(step));
    }
  }
}

}  // namespace fusebox::fuzz
