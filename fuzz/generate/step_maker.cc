#include "fuzz/generate/step_maker.h"

#include <algorithm>
#include <utility>

#include "fuzz/field_laws/match.h"
#include "ir/canonical/canonical.h"
#include "ir/domain/domain.h"
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
  const std::vector<Step> resolved = plan_resolution(fusion, sizes, g_);
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
  cut_at_views(names, cuts);
  // What ATen reads lies over an input only if it lies there as it does elsewhere. Kernels read it anywhere, also if ATen
  // makes it.
  const bool is_stored_over = focus.rare == RareFocus::kStoredOverSegments;
  bool makes = is_stored_over;
  std::vector<Step> assigns = assigns_of(names, cuts, [&](const std::string& first) {
    const bool is_aimed = (focus.rare == RareFocus::kDeclaredOrder && !random_.one_in(4)) ||
                          (std::exchange(makes, false) && random_.one_in(2));
    return is_library_op(first) ? !random_.one_in(16) : is_aimed || random_.one_in(is_stored_over ? 5 : 4);
  });
  // An op may be in several segments.
  if (random_.one_in(4))
    for (size_t i = 1; i < assigns.size(); ++i) {
      const auto& before = assigns[random_.below(i)].operands;
      const std::string name = before[random_.below(before.size())].value;
      if (!is_library_op(name)) assigns[i].operands.push_back(StepOperand::of(name));
    }
  assign_views(assigns);
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
    g_ = unscheduled_ = extract(whole, part);
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
  if (focus.rare == RareFocus::kSumOfAllBlocks && sum_of_all_blocks()) return;
  if (focus.rare == RareFocus::kTwoScopes && !random_.one_in(8) && two_scopes()) return;
  if (focus.rare == RareFocus::kTwoClusterSums && !random_.one_in(8) && two_cluster_sums()) return;
  if (focus.rare == RareFocus::kGappedVectors && !random_.one_in(8) && rows_in_vectors()) return;
  if (focus.rare == RareFocus::kTwoWidths && !random_.one_in(8) && two_widths()) return;
  if (focus.rare == RareFocus::kConvertedTwice && !random_.one_in(8) && rows_of_threads()) return;
  if (focus.rare == RareFocus::kResizedAlike && !random_.one_in(8) && resized_alike()) return;
  if (focus.rare == RareFocus::kFromTheLesser && !random_.one_in(8) && slice_in_vectors()) return;
  if (focus.rare == RareFocus::kLaterResult && !random_.one_in(8) && later_result()) return;
  if (focus.rare == RareFocus::kTwoRandomOps || focus.rare == RareFocus::kAddedProduct ||
      focus.rare == RareFocus::kRoundedResult)
    if (!random_.one_in(4) && inlined()) return;
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

}  // namespace fusebox::fuzz
