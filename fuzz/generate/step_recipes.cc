// Whole schedules as people write them. Steps drawn one by one rarely add up to one of these.
#include <algorithm>

#include "fuzz/generate/step_maker.h"
#include "ir/domain/domain.h"
#include "ir/table/families.h"

namespace fusebox::fuzz {
namespace {

Step parallelized(const std::string& tensor, const std::string& domain, ParallelType p) {
  Step step{StepKind::kParallelize, {StepOperand::domain_of(tensor, domain)}, {}, {}};
  step.attrs.set_enum(AttrKey::kParallel, p);
  return step;
}

}  // namespace

bool StepMaker::recipe() {
  // Clusters of one segment are rare otherwise.
  if (in_part_ && names_part_ && random_.one_in(2) && clustered_rows()) return true;
  switch (random_.below(5)) {
    case 0:
      return vector_rows();
    case 1:
      return block_reductions();
    case 2:
      return clustered_rows();
    case 3:
      return loads_ahead();
    default:
      return one_parallel_axis();
  }
}

void StepMaker::finish(const std::string& name, bool in_vectors) {
  take({StepKind::kParallelizeLike, {StepOperand::of(name)}, {}, {}});
  if (in_vectors) vectorize();
  if (random_.one_in(6)) random_step();
  take({StepKind::kInlineMost, {}, {}, {}});
  // The recipes mostly aim at values in registers.
  if (random_.one_in(3)) keep_visible(random_.one_in(3) ? MemoryType::kShared : MemoryType::kGlobal);
  if (random_.one_in(2)) bound_accumulators();
}

// Merges neighbouring loops that are all kept or all reduced, from `first` up to `last`. Returns the merged loop's
// name.
std::string StepMaker::merge_loops(const std::string& name, size_t first, size_t last) {
  std::string merged = g_[loop_of(tensor(name))[first]].name;
  for (size_t i = first + 1; i < last; ++i) {
    const std::string next = g_[loop_of(tensor(name))[first + 1]].name;
    const std::string both = fresh();
    if (!take(
            {StepKind::kMerge, {StepOperand::domain_of(name, merged), StepOperand::domain_of(name, next)}, {both}, {}}))
      return merged;
    merged = both;
  }
  return merged;
}

// Stores an output in vectors from copies in registers; operands may have a lower rank. Rows and their chunks become
// one loop over threads.
bool StepMaker::vector_rows() {
  std::vector<std::string> made;
  for (const auto& out : outputs(g_))
    if (g_.is_tensor(out.value) && g_[g_[out.value].def].kind != OpKind::kInput) made.push_back(g_[out.value].name);
  if (made.empty()) return false;
  const std::string name = random_.pick(made);
  if (!vectors(name)) return false;
  const size_t count = loop_of(tensor(name)).size();
  const size_t first = random_.one_in(4) ? random_.below(count - 1) : 0;
  const std::string chunks = merge_loops(name, first, count - 1);
  const auto d = find_domain(g_, g_[*find_value(g_, name)].tensor, chunks);
  const std::string outer = fresh(), inner = fresh();
  const bool is_split =
      d && take({StepKind::kSplit, {StepOperand::domain_of(name, chunks), factor(*d)}, {outer, inner}, {}});
  take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
  if (is_split) {
    take(parallelized(name, outer, ParallelType::kGridX));
    if (!random_.one_in(4)) take(parallelized(name, inner, ParallelType::kBlockX));
  } else {
    take(parallelized(name, chunks, ParallelType::kGridX));
  }
  finish(name, true);
  return true;
}

// Gives each block some rows. Its threads reduce each row as often as the fusion does; both sides of the next reduction
// read the result of the previous one.
bool StepMaker::block_reductions() {
  std::vector<std::string> reductions;
  for (OpId id : g_[Graph::body()].ops)
    if (demands(g_[id].kind, kReduction)) reductions.push_back(g_[g_[id].results[0]].name);
  if (reductions.empty()) return false;
  const std::string name = random_.pick(reductions);
  reduce_innermost();
  for (size_t count = random_.below(3); count > 0; --count) {
    const auto [read, reader] = read_and_reader();
    take({StepKind::kRecompute, {StepOperand::of(read), StepOperand::of(reader)}, {fresh()}, {}});
  }
  const auto& loop = loop_of(tensor(name));
  const auto is_kept = [&](DomainId d) { return g_[d].iter_type != IterType::kReduction; };
  const auto kept = static_cast<size_t>(std::find_if_not(loop.begin(), loop.end(), is_kept) - loop.begin());
  if (kept == loop.size()) return false;
  std::string reduced = random_.one_in(3) ? g_[loop[kept]].name : merge_loops(name, kept, loop.size());
  if (!random_.one_in(3)) {
    const auto d = find_domain(g_, g_[*find_value(g_, name)].tensor, reduced);
    const std::string outer = fresh(), inner = fresh();
    if (take({StepKind::kSplit, {StepOperand::domain_of(name, reduced), factor(*d)}, {outer, inner}, {}}))
      reduced = random_.one_in(6) ? outer : inner;
  }
  // Rows of part of a warp, several in each: a constant number of lanes, and of rows. Some have two parts.
  if (kept > 0 && random_.one_in(4)) {
    const std::string row = merge_loops(name, 0, kept), blocks = fresh(), z = fresh(), rest = fresh(), lanes = fresh();
    const auto split = [&](const std::string& d, int64_t by, const std::string& outer, const std::string& inner) {
      return take({StepKind::kSplit, {StepOperand::domain_of(name, d), StepOperand::number(by)}, {outer, inner}, {}});
    };
    const bool is_split = split(reduced, int64_t{1} << (1 + random_.below(4)), rest, lanes) &&
                          split(row, int64_t{2} << random_.below(5), blocks, z);
    const std::string serial = fresh(), part = fresh();
    const bool has_parts = is_split && random_.one_in(3) && split(rest, 2, serial, part);
    take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
    if (is_split) {
      const bool is_along_z = random_.one_in(4);
      take(parallelized(name, blocks, ParallelType::kGridX));
      take(parallelized(name, z, is_along_z ? ParallelType::kBlockZ : ParallelType::kBlockY));
      take(parallelized(name, lanes, ParallelType::kBlockX));
      if (has_parts) take(parallelized(name, part, is_along_z ? ParallelType::kBlockY : ParallelType::kBlockZ));
    }
    finish(name, false);
    return true;
  }
  const std::string rows = kept == 0           ? std::string()
                           : random_.one_in(2) ? g_[loop_of(tensor(name))[0]].name
                                               : merge_loops(name, 0, kept);
  take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
  if (!rows.empty()) take(parallelized(name, rows, random_.one_in(6) ? ParallelType::kBlockY : ParallelType::kGridX));
  take(parallelized(name, reduced, random_.one_in(8) ? ParallelType::kGridY : ParallelType::kBlockX));
  finish(name, false);
  return true;
}

// Shares each row among the blocks of a cluster, and a block's part of it among threads. Now and then the cluster does not
// fit its axis, or rows lie along several axes of the grid.
bool StepMaker::clustered_rows() {
  std::vector<std::string> reductions;
  for (OpId id : g_[Graph::body()].ops)
    if (demands(g_[id].kind, kReduction)) {
      reductions.push_back(g_[g_[id].results[0]].name);
      // Sets of three values are rarer than sums.
      if (is_moment(g_[id].kind)) reductions.insert(reductions.end(), 2, reductions.back());
    }
  if (reductions.empty()) return false;
  const std::string name = random_.pick(reductions);
  reduce_innermost();
  const auto loop = loop_of(tensor(name));
  const auto is_kept = [&](DomainId d) { return g_[d].iter_type != IterType::kReduction; };
  const auto kept = static_cast<size_t>(std::find_if_not(loop.begin(), loop.end(), is_kept) - loop.begin());
  if (kept == loop.size()) return false;
  const std::string first = g_[loop[0]].name;
  std::string reduced = random_.one_in(3) ? g_[loop[kept]].name : merge_loops(name, kept, loop.size());
  const int64_t blocks = int64_t{2} << random_.below(3);
  const std::string part = fresh(), rest = fresh();
  Step split{StepKind::kSplit,
             {StepOperand::domain_of(name, reduced), StepOperand::number(random_.one_in(12) ? blocks + 1 : blocks)},
             {part, rest},
             {}};
  split.attrs.set_flag(AttrKey::kOuter);
  if (!take(std::move(split))) return false;
  const std::string outer = fresh(), inner = fresh();
  const auto d = find_domain(g_, g_[*find_value(g_, name)].tensor, rest);
  const bool has_threads =
      !random_.one_in(4) && d &&
      take({StepKind::kSplit, {StepOperand::domain_of(name, rest), factor(*d)}, {outer, inner}, {}});
  take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
  const ParallelType axis = random_.one_in(4) ? ParallelType::kGridY : ParallelType::kGridX;
  take(parallelized(name, part, axis));
  if (has_threads) take(parallelized(name, random_.one_in(4) ? outer : inner, ParallelType::kBlockX));
  if (has_threads && random_.one_in(5))
    take(parallelized(name, outer, ParallelType::kGridZ));
  else if (kept > 0 && !random_.one_in(4))
    take(parallelized(name, first, random_.one_in(2) ? ParallelType::kBlockY : ParallelType::kGridZ));
  cluster(blocks, axis);
  finish(name, false);
  return true;
}

// Puts one loop of a nest on threads, whether kept or reduced. All others are serial.
bool StepMaker::one_parallel_axis() {
  const std::string name = target();
  const auto loop = loop_of(tensor(name));
  if (loop.empty()) return false;
  if (random_.one_in(2)) reduce_innermost();
  const std::string axis = g_[random_.pick(loop)].name;
  take(parallelized(name, axis, random_.one_in(3) ? ParallelType::kBlockX : ParallelType::kGridX));
  if (random_.one_in(2)) take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
  finish(name, false);
  return true;
}

// Loads copies of inputs ahead of a serial loop that reads them. The threads take parts of another loop, or of none.
bool StepMaker::loads_ahead() {
  std::vector<std::string> copies;
  for (const ValueId v : inputs(g_)) {
    if (!g_.is_tensor(v) || (!copies.empty() && random_.one_in(2))) continue;
    const std::string copy = fresh();
    if (take({StepKind::kCacheAfter, {StepOperand::of(g_[v].name)}, {copy}, copy_attrs()})) copies.push_back(copy);
  }
  const std::string name = target();
  if (copies.empty() || loop_of(tensor(name)).empty()) return false;
  transform(name, 1 + random_.below(2));
  take({StepKind::kTransformLike, {StepOperand::of(name)}, {}, {}});
  const auto loop = loop_of(tensor(name));
  const size_t serial = random_.below(loop.size());
  const std::string home = g_[loop[serial]].name;
  if (const size_t other = random_.below(loop.size()); other != serial)
    take(parallelized(name, g_[loop[other]].name, random_.one_in(2) ? ParallelType::kBlockX : ParallelType::kGridX));
  take({StepKind::kParallelizeLike, {StepOperand::of(name)}, {}, {}});
  Step others{StepKind::kInlineMost, {}, {}, {}};
  for (const std::string& t : tensors(false))
    if (std::ranges::count(copies, t) == 0) others.operands.push_back(StepOperand::of(t));
  const int64_t depth = random_.one_in(2) ? 2 : 2 + static_cast<int64_t>(random_.below(4));
  for (const std::string& copy : copies) {
    if (!take({StepKind::kInlineAt, {StepOperand::domain_of(copy, home)}, {}, {}})) continue;
    Step ahead{StepKind::kCircularBuffer, {StepOperand::of(copy)}, {}, {}};
    ahead.attrs.set(AttrKey::kDepth, random_.one_in(12) ? depth + 1 : depth);
    take(std::move(ahead));
  }
  if (!others.operands.empty()) take(std::move(others));
  if (random_.one_in(3)) keep_visible(MemoryType::kGlobal);
  bound_accumulators();
  return true;
}

}  // namespace fusebox::fuzz
