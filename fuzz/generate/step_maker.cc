#include "fuzz/generate/step_maker.h"

#include <algorithm>

#include "fuzz/field_laws/match.h"
#include "ir/canonical/canonical.h"
#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/infer/concretize.h"
#include "ir/step/apply.h"
#include "passes/rewrite/rewrite.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"

namespace fusebox::fuzz {

bool StepMaker::take(Step step) {
  if (!in_part_) step.attrs.erase(AttrKey::kSegment);
  if (in_part_ && names_part_ && row_of(step.kind).accepts(AttrKey::kSegment) && !step.attrs.has(AttrKey::kSegment))
    step.attrs.set(AttrKey::kSegment, part_);
  if (step.attrs.has(AttrKey::kSegment)) {
    if (step.attrs.string(AttrKey::kSegment) != part_) return false;
  } else if (in_part_) {
    // `inline_most` of all tensors would reach other segments, so name the tensors of this one. A step whose tensors
    // all occur in earlier segments belongs to those.
    if (step.kind == StepKind::kInlineMost && step.operands.empty())
      for (const std::string& name : tensors(false)) step.operands.push_back(StepOperand::of(name));
    const auto is_elsewhere = [&](const StepOperand& o) { return o.is_integer() || elsewhere_.contains(o.value); };
    if (std::all_of(step.operands.begin(), step.operands.end(), is_elsewhere)) return false;
  }
  if (step.kind == StepKind::kParallelize && (step_refusal(g_, step) || !is_small_launch(step))) return false;
  if (!try_step(g_, step)) return false;
  steps.push_back(std::move(step));
  return true;
}

std::optional<int64_t> StepMaker::extent_of(const StepOperand& domain, const Bindings& sizes) const {
  const auto d = find_domain(g_, g_[*find_value(g_, domain.value)].tensor, domain.domain);
  return d ? evaluate_extent(g_, *d, sizes) : std::nullopt;
}

// The host executor runs blocks one after another, and each computes everything in the kernel.
bool StepMaker::is_small_launch(const Step& parallelize) {
  constexpr int64_t kMostBlocks = 32, kMostThreads = 2048;
  const auto p = parallelize.attrs.enumerator<ParallelType>(AttrKey::kParallel);
  if (!is_thread(p)) return true;
  auto launch = launch_;
  for (const StepOperand& o : parallelize.operands) {
    int64_t& extent = launch[p];
    extent = std::max(extent, extent_of(o, sizes_).value_or(1));
  }
  int64_t blocks = 1, threads = 1;
  for (const auto& [type, extent] : launch) {
    if (is_grid(type)) blocks *= std::max<int64_t>(extent, 1);
    threads *= std::max<int64_t>(extent, 1);
  }
  if (blocks > kMostBlocks || threads > kMostThreads) return false;
  launch_ = std::move(launch);
  return true;
}

void StepMaker::precision() {
  for (size_t count = 1 + random_.below(3); count > 0; --count) {
    Step step{StepKind::kPrecision, {}, {}, {}};
    step.attrs.set_flag(random_.one_in(4) ? AttrKey::kExact : AttrKey::kFast);
    if (!random_.one_in(3))
      for (const std::string& name : tensors(false))
        if (const Value& v = g_[*find_value(g_, name)];
            row_of(g_[v.def].kind).accepts(AttrKey::kFast) && is_floating(v.dtype) && random_.one_in(2))
          step.operands.push_back(StepOperand::of(name));
    take(std::move(step));
  }
}

void StepMaker::rewrite() {
  if (!focus.rewrite.empty() && !random_.one_in(3)) take(rewrite_step(focus.rewrite, ""));
  for (size_t count = 1 + random_.below(3); count > 0; --count) {
    const auto rows = rewrite_rows();
    const std::string_view name = rows[random_.below(rows.size())].name;
    const std::string options = random_.one_in(4) ? "limit=" + std::to_string(random_.below(3)) : "";
    if (!take(rewrite_step(name, options)))
      throw Error(ErrorCode::kInternal, "a rewrite that was drawn by its name and its options is refused",
                  std::string(name) + " " + options);
  }
}

void StepMaker::concretize(const Graph& fusion, const Bindings& sizes) {
  const std::vector<Step> resolved = plan_concretize(g_, rebind(fusion, sizes, g_));
  apply(g_, resolved);
  g_ = canonical_order(g_);
  sizes_ = rebind(fusion, sizes, g_);
}

void StepMaker::assign(size_t max_transforms) {
  const auto names = tensors(false);
  std::vector<size_t> cuts = {0, names.size()};
  if (focus.segments > 0)
    cut_apart(cuts);
  else
    for (size_t extra = 1 + random_.below(2); extra > 0; --extra) cuts.push_back(random_.below(names.size() + 1));
  cut_at_library_ops(names, cuts);
  std::vector<Step> assigns = assigns_of(names, cuts, [&](const std::string& first) {
    return is_library_op(first) ? !random_.one_in(16) : random_.one_in(4);
  });
  // An op may be in several segments.
  if (random_.one_in(4))
    for (size_t i = 1; i < assigns.size(); ++i) {
      const auto& before = assigns[random_.below(i)].operands;
      const std::string name = before[random_.below(before.size())].value;
      if (!is_library_op(name)) assigns[i].operands.push_back(StepOperand::of(name));
    }
  each_part(assigns, [&] {
    schedule(max_transforms);
    if (focus.segments > 0) return permute_crossings();
    // Values that leave a segment in an order other than that of their axes.
    const auto out = outputs(g_);
    if (out.empty() || !random_.one_in(3)) return;
    const ValueId v = random_.pick(out).value;
    if (g_.is_tensor(v) && rank_of(g_, v) > 1 && g_[g_[v].def].kind != OpKind::kInput) permute_allocation(g_[v].name);
  });
}

void StepMaker::each_part(const std::vector<Step>& assigns, const std::function<void()>& schedule_part) {
  const Segmentation parts = plan_assigned(g_, assigns);
  steps.insert(steps.end(), assigns.begin(), assigns.end());
  const Graph whole = std::move(g_);
  const Bindings sizes = std::move(sizes_);
  in_part_ = true;
  for (const Segment& part : parts.segments) {
    part_ = part.name;
    names_part_ = random_.one_in(3);
    g_ = extract(whole, part);
    sizes_ = rebind(whole, sizes, g_);
    launch_.clear();
    if (part.executor == SegmentExecutor::kKernel && has_tensors()) schedule_part();
    for (const std::string& name : tensors(true)) elsewhere_.insert(name);
  }
}

void StepMaker::schedule(size_t max_transforms) {
  idle_ = 1;
  if (!in_part_) unscheduled_ = g_;
  if (random_.one_in(5)) facts();
  if (random_.one_in(12)) bound_launch();
  if (focus.block && block_dimensions(*focus.block)) return;
  if (focus.shared_in && !random_.one_in(8) && shared_in_loop(*focus.shared_in)) return;
  const bool is_aimed_at = focus.in_place || focus.transforms || focus.swizzle;
  if (!is_aimed_at && random_.one_in(6) && recipe()) return;
  std::string name = target();
  if (!random_.one_in(8)) reduce_innermost();
  if (random_.one_in(2)) relate();
  if (random_.one_in(3)) prepare();
  if (focus.in_place && !tensors(false).empty()) name = stored_output(name);
  if (focus.transforms)
    pair_of(name, *focus.transforms);
  else if (focus.swizzle)
    swizzle_parts(name, *focus.swizzle);
  else if (max_transforms > 0)
    transform(name, 1 + random_.below(max_transforms));
  if (random_.one_in(4)) rfactor(name);
  if (!is_aimed_at && random_.one_in(6)) unroll_sum();
  const bool is_aimed = focus.in_place && focus.in_place->in_vectors;
  const bool in_vectors = (is_aimed || random_.one_in(5)) && vectors(name, is_aimed ? focus.in_place->width : 0);
  if (!random_.one_in(8)) take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
  if (random_.one_in(6)) random_step();
  if (random_.one_in(5)) lay_out();
  threads(name);
  if (in_vectors) vectorize();
  if (!random_.one_in(8)) {
    if (random_.one_in(8)) like_some(name);
    take({StepKind::kParallelizeLike, {StepOperand::of(name)}, {}, {}});
  }
  if (random_.one_in(6)) random_step();
  if (!random_.one_in(5)) take({StepKind::kInlineMost, {}, {}, {}});
  if (random_.one_in(8)) random_step();
  // Lowering refuses a block's own memory for a tensor that other blocks read; the repair moves it to global memory.
  if (!random_.one_in(24)) keep_visible(random_.one_in(4) ? MemoryType::kShared : MemoryType::kGlobal);
  if (!random_.one_in(16)) bound_accumulators();
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

void StepMaker::replay_list(std::span<const Step> list, const Bindings& sizes) {
  const Graph fusion = g_;
  const auto is_assign = [](const Step& s) { return s.kind == StepKind::kAssign; };
  const auto close = [&] {
    keep_visible(MemoryType::kGlobal);
    bound_accumulators();
  };
  const size_t rewrites = leading_rewrites(list);
  for (const Step& s : list.first(rewrites)) take(s);
  concretize(fusion, sizes);
  list = list.subspan(rewrites);
  const size_t count = static_cast<size_t>(std::find_if_not(list.begin(), list.end(), is_assign) - list.begin());
  const std::vector<Step> assigns(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count));
  const auto take_rest = [&] {
    names_part_ = false;  // the list says which of its steps are for one segment
    for (Step s : list.subspan(count)) {
      // One step states a fact to every kernel that has its sizes, so only the first part lists it.
      const bool is_for_other = s.attrs.has(AttrKey::kSegment) && s.attrs.string(AttrKey::kSegment) != part_;
      if (s.kind == StepKind::kAssume && !is_for_other && std::find(steps.begin(), steps.end(), s) != steps.end()) {
        try_step(g_, s);
        continue;
      }
      // Keep only the tensors that still exist.
      if (s.kind == StepKind::kInlineMost && !s.operands.empty() &&
          std::erase_if(s.operands, [&](const StepOperand& o) { return !find_value(g_, o.value); }) > 0 &&
          s.operands.empty())
        continue;
      take(std::move(s));
    }
    close();
  };
  if (assigns.empty()) return take_rest();
  each_part(assigns, take_rest);
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

// An output or a reduction: a planner would derive the other schedules from it.
std::string StepMaker::target() {
  const auto out = outputs(g_);
  if (!random_.one_in(4))
    for (OpId id : g_[Graph::body()].ops)
      if (demands(g_[id].kind, kReduction)) return g_[g_[id].results[0]].name;
  const ValueId last = out.empty() ? ValueId() : out[random_.below(out.size())].value;
  if (last && g_.is_tensor(last) && g_[g_[last].def].kind != OpKind::kInput) return g_[last].name;
  return any_tensor();
}

std::vector<std::pair<std::string, std::string>> moved_pairs(const Graph& graph) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (OpId id : graph[Graph::body()].ops) {
    const Op& op = graph[id];
    if (!demands(op.kind, kMetadata)) continue;
    for (ValueId x : op.operands)
      if (x && graph.is_tensor(x) && graph[graph[x].def].kind != OpKind::kInput)
        pairs.emplace_back(graph[op.results[0]].name, graph[x].name);
  }
  return pairs;
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

std::vector<std::string> StepMaker::tensors(bool with_inputs) const {
  std::vector<std::string> result;
  for (OpId op : g_[Graph::body()].ops)
    for (ValueId v : g_[op].results)
      if (g_.is_tensor(v) && (with_inputs || g_[op].kind != OpKind::kInput)) result.push_back(g_[v].name);
  return result;
}

std::string StepMaker::any_tensor() {
  const auto list = tensors(false);
  return list[random_.below(list.size())];
}

// Any tensor, inputs included, but no input that only dead ops read: a segment has no such input.
std::string StepMaker::any_needed_tensor() {
  const std::vector<bool> is_needed = needed_values(g_);
  const auto readers = uses(g_);
  const auto is_read = [&](ValueId v) {
    return std::any_of(readers[v.index].begin(), readers[v.index].end(), [&](OpId op) {
      const auto& results = g_[op].results;
      return std::any_of(results.begin(), results.end(), [&](ValueId r) { return is_needed[r.index]; });
    });
  };
  auto list = tensors(true);
  std::erase_if(list, [&](const std::string& name) {
    const ValueId v = *find_value(g_, name);
    return !is_needed[v.index] || (g_[g_[v].def].kind == OpKind::kInput && !is_read(v));
  });
  return list.empty() ? any_tensor() : list[random_.below(list.size())];
}

StepOperand StepMaker::any_domain(const std::string& name) {
  const auto& loop = loop_of(tensor(name));
  return StepOperand::domain_of(name, loop.empty() ? "none" : g_[loop[random_.below(loop.size())]].name);
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

// Gives a tensor a layout in shared or local memory. It may differ from its readers' loops: they find its elements
// through its transforms.
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

void StepMaker::random_step() {
  const std::string name = any_tensor();
  switch (random_.below(16)) {
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
      return bound_launch();
    default:
      permute_allocation(name);
  }
}

}  // namespace fusebox::fuzz
