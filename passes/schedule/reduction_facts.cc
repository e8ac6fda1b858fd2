#include "passes/schedule/reduction_facts.h"

#include <algorithm>

#include "ir/module/architecture.h"
#include "passes/plan/kernel_plan.h"
#include "passes/schedule/column_values.h"
#include "passes/schedule/known_divisors.h"
#include "passes/schedule/loop_space.h"
#include "passes/schedule/reduction_limits.h"
#include "passes/schedule/reduction_passes.h"

namespace fusebox {

ReductionFacts::ReductionFacts(const ScheduleView& view, const ReductionSpace& space)
    : view_(view),
      space_(space),
      access_(find_access(view, space)),
      sizes_{most_of(view.sizes, space.reduced), most_of(view.sizes, space.kept)} {}

bool ReductionFacts::is_inner() const { return space_.is_reduced(access_.innermost); }

bool ReductionFacts::fills_gpu(int64_t cluster) const {
  return sizes_.rows >= (cluster > 0 ? 1 : 2) * view_.device.multiprocessors;
}

bool ReductionFacts::are_many_clusters(int64_t cluster) const { return cluster > 0 && fills_gpu(cluster); }

bool ReductionFacts::has_full_vectors() const { return access_.vector * access_.bytes >= kVectorBytes; }

bool ReductionFacts::moves_halves() const {
  int64_t bytes = 0;
  for (ValueId v : space_.full_inputs(view_.fusion)) bytes = std::max(bytes, size_bytes(view_.fusion[v].dtype));
  return access_.vector * bytes <= kNarrowestBytes;
}

bool ReductionFacts::stores_rows() const { return fusebox::stores_rows(view_.fusion, space_); }

bool ReductionFacts::has_moments() const { return fusebox::has_moments(view_.fusion, space_); }

bool ReductionFacts::sums_alone() const {
  const Graph& g = view_.fusion;
  return std::ranges::all_of(space_.reductions, [&](ValueId v) { return g[g[v].def].kind == OpKind::kSum; });
}

int64_t ReductionFacts::bytes_of_loads() const { return loaded_bytes(view_.fusion, space_); }

int64_t ReductionFacts::loads_of_pass() const { return static_cast<int64_t>(space_.full_inputs(view_.fusion).size()); }

int64_t ReductionFacts::accesses_of_warp() const { return ceil_div(sizes_.row, access_.vector * view_.device.warp); }

bool ReductionFacts::states_rows() const { return sizes_of(view_.fusion, space_.kept).has_value(); }

int64_t ReductionFacts::columns() const { return most_of(view_.sizes, access_.columns); }

int64_t ReductionFacts::widest_load() const {
  int64_t bytes = 1;
  for (ValueId v : space_.full_inputs(view_.fusion))
    bytes = std::max<int64_t>(bytes, size_bytes(view_.fusion[v].dtype));
  return bytes;
}

Columns ReductionFacts::columns_of(int64_t lanes) const {
  return {sizes_.row, columns(),      most_of(view_.sizes, kept_beside(space_, access_)),
          lanes,      access_.vector, bytes_of_loads()};
}

int64_t ReductionFacts::bytes_in_registers(int64_t bytes) const { return std::max(bytes, ceil_div(4, access_.vector)); }

ColumnBytes ReductionFacts::bytes_of_kept_columns() const {
  const Graph& g = view_.fusion;
  // What is made of a row takes the registers of the row.
  const int64_t kept = std::min(kept_bytes(g, space_), widest_kept_bytes(g, space_) * loads_of_pass());
  const bool may_repeat = makes_again_cheaply(g, space_) && are_passes_connected(g, space_);
  return {.load = widest_load(),
          .kept = bytes_in_registers(kept),
          .inputs = may_repeat ? repeated_bytes(g, space_, ceil_div(4, access_.vector)) : 0,
          .once = once_bytes(g, space_),
          .are_made_by_arithmetic = makes_again_by_arithmetic(g, space_)};
}

int64_t ReductionFacts::blocks_of_columns(int64_t lanes) const { return columns_of(lanes).blocks(); }

int64_t ReductionFacts::lanes_of_short_row(int64_t least) const {
  const int64_t lanes = std::max(power_of_two_from(ceil_div(sizes_.row, access_.vector)), least);
  return lanes < view_.device.warp && sizes_.rows >= view_.device.warp / lanes ? lanes : 0;
}

int64_t ReductionFacts::lanes_of_runs() const {
  constexpr int64_t kMostRuns = 8;
  if (access_.reduced.size() < 2 || access_.merges_first || access_.kept.empty()) return 0;
  const int64_t run = std::max<int64_t>(view_.sizes.of(access_.reduced.back()).most, 1);
  const int64_t lanes = power_of_two_from(ceil_div(run, access_.vector));
  const bool are_few = sizes_.row <= kMostRuns * run, are_short = lanes < view_.device.warp / 2;
  return are_few && are_short && sizes_.rows >= view_.device.warp / lanes ? lanes : 0;
}

bool ReductionFacts::is_for_half_warps() const {
  const int64_t half = view_.device.warp / 2, accesses = ceil_div(sizes_.row, access_.vector);
  const int64_t held = view_.device.multiprocessors * view_.device.threads;
  if (accesses <= half || accesses > 3 * half) return false;
  return access_.vector <= 2 ? sizes_.rows > held / half : accesses > 2 * half && sizes_.rows > held / (2 * half);
}

ThreadsOfRows ReductionFacts::threads_of_rows() const {
  if (stores_rows()) return {is_for_half_warps() ? view_.device.warp / 2 : view_.device.warp, kThreadsOfKeptRows};
  return threads_of_read_rows(sizes_.row, access_.vector, sizes_.row * bytes_of_loads(), view_.device);
}

bool ReductionFacts::is_for_one_warp(int64_t warps, int64_t accesses) const {
  return warps == 2 && !stores_rows() && accesses * access_.vector <= kElementsOfOneWarp;
}

int64_t ReductionFacts::lanes_of_one_wave() const {
  const int64_t held = view_.device.multiprocessors * (view_.device.registers / kRegistersOfMoments) * 5 / 4;
  int64_t lanes = kSlicedStripThreads;
  while (lanes > view_.device.warp && sizes_.rows > held / lanes) lanes /= 2;
  return sizes_.rows > held / lanes ? 2 * view_.device.warp : lanes;
}

SharedRows ReductionFacts::share_rows(int64_t accesses) const {
  const bool is_one_for_a_row = 2 * sizes_.rows > view_.device.multiprocessors;
  if (!has_clusters(view_.device.architecture) || (has_moments() && is_one_for_a_row)) return {};
  const LongRows rows{.rows = sizes_.rows, .accesses = accesses, .bytes = access_.vector * bytes_of_loads()};
  return share_long_rows(rows, view_.device.multiprocessors);
}

bool ReductionFacts::exchanges_twice() const { return space_.passes > 2 && kept_bytes(view_.fusion, space_) <= 4; }

bool ReductionFacts::reads_any_rows_alone() const {
  return fills_gpu() && has_full_vectors() && !stores_rows() && !has_moments();
}

bool ReductionFacts::reads_rows_alone() const {
  return reads_any_rows_alone() && ceil_div(sizes_.row, access_.vector) < kManyAccesses;
}

bool ReductionFacts::finds_rows_again() const { return reads_rows_alone() && fit_in_cache(); }

bool ReductionFacts::loses_rows() const { return reads_any_rows_alone() && !fit_in_cache(); }

bool ReductionFacts::fit_in_cache() const {
  const int64_t blocks = kLeastHeld * view_.device.multiprocessors;
  return sizes_.row <= view_.device.l2_bytes * 2 / 3 / (blocks * bytes_of_loads());
}

bool ReductionFacts::has_few_rows() const { return sizes_.rows < kLeastWalk * view_.device.multiprocessors / 4; }

bool ReductionFacts::has_rows_to_share() const {
  return leaves_most_idle() && states_rows() &&
         (has_moments() || ceil_div(sizes_.row, access_.vector) >= kSharedAccesses);
}

bool ReductionFacts::are_few_single_moments() const {
  const bool is_in_cluster =
      has_clusters(view_.device.architecture) && sizes_.row <= kBlocksOfCluster * kLongRow * view_.device.block_threads;
  return sizes_.rows <= 2 && access_.vector == 1 && has_moments() && !is_in_cluster && has_rows_to_share();
}

bool ReductionFacts::leaves_most_idle() const {
  return sizes_.row > kLongRow * view_.device.block_threads && sizes_.rows < view_.device.multiprocessors / 4;
}

bool ReductionFacts::has_few_wide_rows() const {
  return stores_rows() && sizes_.rows < view_.device.multiprocessors / 4 && accesses_of_warp() >= kAccessesOfCluster &&
         sizes_.row > kWideRow;
}

int64_t ReductionFacts::longest_summed_once() const { return sizes_.row <= kCascadeStrip ? sizes_.row : 0; }

int64_t ReductionFacts::walkers() const { return 4 * view_.device.multiprocessors; }

}  // namespace fusebox
