// Single steps of random schedules: one of any kind, and functions that draw the steps of one kind.
#include <algorithm>

#include "fuzz/generate/step_maker.h"
#include "ir/domain/domain.h"

namespace fusebox::fuzz {

void StepMaker::random_step() {
  const std::string name = any_tensor();
  switch (random_.below(17)) {
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
    case 6: {
      Step step{StepKind::kPropagate, {StepOperand::of(name)}, {}, {}};
      if (random_.one_in(2)) step.operands.push_back(StepOperand::of(any_tensor()));
      take(std::move(step));
      return;
    }
    case 7:
      take({StepKind::kSetLoopDomain, {StepOperand::of(name), StepOperand::of(any_tensor())}, {}, {}});
      return;
    case 8: {
      const std::string other = any_tensor();
      take({StepKind::kLoopBroadcast, {StepOperand::of(name), any_domain(other)}, {fresh()}, {}});
      return;
    }
    case 9:
      return set_mesh(any_needed_tensor());
    case 10:
      return like_some(name);
    case 11:
      take({StepKind::kTransformLike, {StepOperand::of(name), StepOperand::of(any_tensor())}, {}, {}});
      return;
    case 12: {
      Step step{StepKind::kInlineMost, {StepOperand::of(name)}, {}, {}};
      if (const std::string other = any_tensor(); other != name) step.operands.push_back(StepOperand::of(other));
      take(std::move(step));
      return;
    }
    case 13:
      return facts();
    case 14:
      return random_.one_in(2) ? bound_launch() : dependent_launch();
    case 15:
      return cluster(int64_t{2} << random_.below(3), random_.one_in(2) ? ParallelType::kGridX : ParallelType::kGridY);
    default:
      permute_allocation(name);
  }
}

void StepMaker::prepare() {
  switch (random_.below(5)) {
    case 0:
      if (take({StepKind::kCacheAfter, {StepOperand::of(any_needed_tensor())}, {fresh()}, copy_attrs()}) &&
          random_.one_in(2))
        memory(steps.back().results[0]);
      return;
    case 1:
      take({StepKind::kCacheBefore, {StepOperand::of(any_tensor())}, {fresh()}, copy_attrs()});
      return;
    case 2: {
      const auto [read, reader] = read_and_reader();
      take({StepKind::kRecompute, {StepOperand::of(read), StepOperand::of(reader)}, {fresh()}, {}});
      return;
    }
    case 3: {
      const auto out = outputs(g_);
      if (out.empty()) return;
      take({StepKind::kCacheFork,
            {StepOperand::of(g_[out[random_.below(out.size())].value].name)},
            {fresh()},
            fork_attrs()});
      return;
    }
    default:
      memory(any_tensor());
  }
}

// The kind of copy and its cache policy.
Attrs StepMaker::copy_attrs() {
  Attrs attrs;
  if (!random_.one_in(6)) return attrs;
  // Only these two run on the host executor.
  constexpr CopyKind kKinds[] = {CopyKind::kSet, CopyKind::kCpAsync};
  if (random_.one_in(2)) attrs.set_enum(AttrKey::kCopyKind, random_.pick(kKinds));
  if (random_.one_in(2)) attrs.set_enum(AttrKey::kCacheOp, random_.pick<CacheOp>());
  return attrs;
}

Attrs StepMaker::fork_attrs() {
  Attrs attrs;
  if (random_.one_in(2)) attrs.set_enum(AttrKey::kCacheOp, random_.pick<CacheOp>());
  return attrs;
}

// Propagates loops across ops that move elements.
void StepMaker::relate() {
  for (auto [result, read] : moved_pairs(g_)) {
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
  // One name for each result of the first stage.
  std::vector<std::string> made(g_[g_[*find_value(g_, name)].def].results.size());
  for (std::string& result : made) result = fresh();
  take({StepKind::kRfactor,
        {StepOperand::of(name), StepOperand::domain_of(name, random_.one_in(2) ? outer : inner)},
        std::move(made),
        {}});
}

// A sum in an unrolled loop of known length, which is no multiple of the number of terms added at once.
void StepMaker::unroll_sum() {
  constexpr int64_t kCounts[] = {17, 19, 23, 29};
  for (const std::string& name : tensors(false)) {
    const Value& v = g_[*find_value(g_, name)];
    const bool is_sum = g_[v.def].kind == OpKind::kSum || g_[v.def].kind == OpKind::kWelford;
    if (!is_sum || !is_floating(v.dtype) || g_[v.def].results[0] != *find_value(g_, name)) continue;
    for (DomainId d : loop_of(tensor(name))) {
      const bool is_serial = g_[d].iter_type == IterType::kReduction && g_[d].parallel == ParallelType::kSerial;
      if (!is_serial || evaluate_extent(g_, d, sizes_).value_or(0) < kCounts[0]) continue;
      const std::string inner = fresh();
      if (!take({StepKind::kSplit,
                 {StepOperand::domain_of(name, g_[d].name), StepOperand::number(random_.pick(kCounts))},
                 {fresh(), inner},
                 {}}))
        return;
      Step unroll{StepKind::kParallelize, {StepOperand::domain_of(name, inner)}, {}, {}};
      unroll.attrs.set_enum(AttrKey::kParallel, ParallelType::kUnroll);
      take(std::move(unroll));
      return;
    }
  }
}

void StepMaker::memory(const std::string& name) {
  Step step{StepKind::kSetMemoryType, {StepOperand::of(name)}, {}, {}};
  constexpr MemoryType kMemory[] = {MemoryType::kShared, MemoryType::kLocal, MemoryType::kShared, MemoryType::kGlobal};
  step.attrs.set_enum(AttrKey::kMemory, random_.pick(kMemory));
  take(std::move(step));
}

void StepMaker::permute_allocation(const std::string& name) {
  Step step{StepKind::kSetAllocation, {StepOperand::of(name)}, {}, {}};
  auto axes = logical_without_reductions(g_, tensor(name));
  random_.shuffle(axes);
  for (DomainId d : axes) step.operands.push_back(StepOperand::domain_of(name, g_[d].name));
  if (random_.one_in(2)) {
    std::vector<int64_t> contiguity;
    for (DomainId d : axes) {
      const bool is_broadcast = g_[d].iter_type == IterType::kBroadcast;
      contiguity.push_back(static_cast<int64_t>(is_broadcast        ? Contiguity::kNone
                                                : random_.one_in(4) ? Contiguity::kFalse
                                                                    : Contiguity::kTrue));
    }
    step.attrs.set(AttrKey::kContiguity, contiguity);
  }
  take(std::move(step));
}

// Gives a tensor a layout of its own. It may differ from its readers' loops: they find its elements through its
// transforms. In global memory each result of an op has its own layout, elsewhere all have that of the first.
void StepMaker::lay_out() {
  const std::string name = any_tensor();
  constexpr MemoryType kMemory[] = {MemoryType::kShared, MemoryType::kLocal, MemoryType::kShared, MemoryType::kGlobal};
  Step memory{StepKind::kSetMemoryType, {StepOperand::of(name)}, {}, {}};
  memory.attrs.set_enum(AttrKey::kMemory, random_.pick(kMemory));
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
  if (random_.one_in(2)) return;
  auto kept = loop_of(tensor(name));
  std::erase_if(kept, [&](DomainId d) { return g_[d].iter_type == IterType::kReduction; });
  random_.shuffle(kept);
  Step layout{StepKind::kSetAllocation, {StepOperand::of(name)}, {}, {}};
  for (DomainId d : kept) layout.operands.push_back(StepOperand::domain_of(name, g_[d].name));
  if (!take(std::move(layout))) return;
  if (random_.one_in(4)) return loop_like_a_reader(name);
  transform(name, random_.below(2));
}

// Takes the loops of a reader, so that the tensor's layout is made of domains that are no loops any more.
void StepMaker::loop_like_a_reader(const std::string& name) {
  std::vector<std::string> readers;
  const ValueId v = *find_value(g_, name);
  for (OpId id : g_[Graph::body()].ops)
    if (const Op& op = g_[id];
        std::ranges::count(op.operands, v) > 0 && !op.results.empty() && g_.is_tensor(op.results[0]))
      readers.push_back(g_[op.results[0]].name);
  if (readers.empty()) return;
  take({StepKind::kSetLoopDomain, {StepOperand::of(name), StepOperand::of(random_.pick(readers))}, {}, {}});
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
    // Vectorizing a loop that was not split for it is rarely legal.
    if (p == ParallelType::kVectorize && !random_.one_in(6)) continue;
    Step step{StepKind::kParallelize, {StepOperand::domain_of(name, g_[d].name)}, {}, {}};
    step.attrs.set_enum(AttrKey::kParallel, p);
    take(std::move(step));
  }
}

// Copies only some of the parallel types, or copies them only to some tensors.
void StepMaker::like_some(const std::string& name) {
  Step step{StepKind::kParallelizeLike, {StepOperand::of(name)}, {}, {}};
  if (random_.one_in(2)) {
    std::vector<int64_t> types;
    for (size_t p = 0; p < enum_texts<ParallelType>().size(); ++p)
      if (random_.one_in(2)) types.push_back(static_cast<int64_t>(p));
    if (!types.empty()) step.attrs.set(AttrKey::kThreads, types);
  }
  if (random_.one_in(2)) step.operands.push_back(StepOperand::of(any_tensor()));
  take(std::move(step));
}

void StepMaker::set_mesh(const std::string& name) {
  Step step{StepKind::kSetMesh, {StepOperand::of(name)}, {}, {}};
  std::vector<int64_t> devices;
  for (int64_t d = random_.between(0, 3); d < 6; d += random_.between(1, 4)) devices.push_back(d);
  step.attrs.set(AttrKey::kDevices, devices);
  take(std::move(step));
}

}  // namespace fusebox::fuzz
