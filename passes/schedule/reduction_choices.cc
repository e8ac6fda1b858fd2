#include "passes/schedule/reduction_choices.h"

#include <algorithm>
#include <bit>

#include "ir/module/architecture.h"
#include "passes/plan/kernel_plan.h"
#include "passes/schedule/column_ends.h"
#include "passes/schedule/column_parts.h"
#include "passes/schedule/kept_bytes.h"
#include "passes/schedule/kept_columns.h"
#include "passes/schedule/kept_rows.h"
#include "passes/schedule/known_divisors.h"
#include "passes/schedule/long_columns.h"
#include "passes/schedule/loop_space.h"
#include "passes/schedule/reduction_facts.h"
#include "passes/schedule/reduction_limits.h"

namespace fusebox {

namespace {

class Chooser : public ReductionFacts {
 public:
  Chooser(const ScheduleView& view, const ReductionSpace& space, std::string_view scheduler)
      : ReductionFacts(view, space) {
    h_.scheduler = scheduler;
  }

  // A row in registers. Nothing if no block holds one.
  std::optional<Heuristics> in_registers() {
    // A thread has a row of one access for itself, and exchanges nothing. The launch checks that rows are no longer.
    if (const int64_t lanes = lanes_of_short_row(sizes_of(view_.fusion, space_.reduced) ? 1 : 2))
      return plan("registers",
                  {.lanes = lanes,
                   .chunks = 1,
                   .rows = rows_of_warps(
                       lanes, lanes == 1 ? kThreadsOfKeptRows : std::min(kThreadsOfKeptRows, kMostKeptRows * lanes), 1),
                   .longest = lanes * access_.vector - (view_.defects.has(Defect::kLongestShort) ? 1 : 0)});
    return in_block(0);
  }

  Heuristics in_strips(bool may_slice) {
    if (may_slice)
      for (const int64_t lanes : {lanes_of_runs(), lanes_of_short_row(2)})
        if (lanes > 0) return in_lanes(lanes);
    const int64_t accesses = std::max<int64_t>(ceil_div(sizes_.row, access_.vector), 1);
    const int64_t warp = view_.device.warp;
    const bool is_longest = accesses >= kManyAccesses && !has_moments();
    const bool is_found_again = !may_slice && finds_rows_again();
    const int64_t most = may_slice ? kSlicedStripThreads : is_longest ? kLongestStripThreads : kStripThreads;
    // Running moments of narrow accesses wait for arithmetic. More loads then pass beside it, and threads of other rows
    // would wait in the same barriers: on an H100, moments of [2880, 118954] in f16 took 277 µs so, and 351 µs otherwise.
    const bool is_busy = may_slice && has_moments() && !has_full_vectors();
    const int64_t wanted = (may_slice && !is_busy) || loads_of_pass() > 1 ? kUnroll : kLongUnroll;
    int64_t lanes = std::clamp(power_of_two_from(ceil_div(accesses, wanted)), warp, most);
    // A few blocks alone on the GPU: each takes all threads that it can have.
    if (!may_slice && leaves_most_idle() && !has_moments())
      lanes = std::clamp(power_of_two_from(ceil_div(accesses, kUnroll)), warp, view_.device.block_threads);
    const bool are_of_one_wave = may_slice && has_moments() && has_full_vectors();
    if (are_of_one_wave) lanes = std::min(lanes, lanes_of_one_wave());
    int64_t slices = 1;
    const bool waits = may_slice && are_awaited(view_.fusion, space_);
    if (may_slice && sizes_.rows < 2 * view_.device.multiprocessors) {
      // Blocks that share a row wait for one another's results, which pays only for long rows.
      if (ceil_div(accesses, kThreadsOfFewRows * kUnroll) <= kMostRounds || (waits && !states_rows()))
        lanes = std::clamp(power_of_two_from(ceil_div(accesses, kUnroll)), warp, kThreadsOfFewRows);
      else if (const SharedRows shared = share_rows(accesses); shared.slices > 0)
        return plan("passes", {.lanes = shared.lanes,
                               .unroll = shared.unroll,
                               .slices = shared.slices,
                               .cluster = shared.slices > 1 ? shared.slices : 0});
      else
        slices = std::clamp<int64_t>(
            most_blocks(kSlicesOfRow, waits, is_busy ? 1 : blocks_of_multiprocessor(lanes)) / sizes_.rows, 1,
            ceil_div(accesses, lanes * kUnroll));
    }
    int64_t unroll = std::min(wanted, power_of_two_from(ceil_div(accesses, lanes)));
    // A walk of one round and a part of another leaves most threads idle in that part. Where two blocks share a
    // multiprocessor, the other one is busy meanwhile.
    while (!is_found_again && unroll > kUnroll && 2 * lanes * unroll > accesses) unroll /= 2;
    const int64_t most_threads = may_slice && !are_of_one_wave ? kThreadsOfSums : kThreadsOfShortRows;
    const int64_t rows = is_busy ? 1 : rows_of_block(lanes, most_threads);
    // Rows that are walked again need registers for what they keep from pass to pass.
    const int64_t blocks = is_busy           ? 1
                           : are_of_one_wave ? blocks_of_moments(lanes * rows)
                           : may_slice       ? blocks_of_multiprocessor(lanes * rows)
                           : is_found_again  ? kLeastHeld
                                             : 1;
    return plan("passes", {.lanes = lanes,
                           .unroll = unroll,
                           .rows = rows,
                           .slices = slices,
                           .most_rows = waits && slices > 1 ? sizes_.rows : 0,
                           .blocks = blocks});
  }

  // Short rows that are read once: several in each warp, and a thread reads its row at once.
  Heuristics in_lanes(int64_t lanes) {
    const int64_t rows = rows_of_warps(lanes, kThreadsOfSums, 2), blocks = blocks_of_multiprocessor(lanes * rows);
    const int64_t accesses = power_of_two_from(ceil_div(ceil_div(sizes_.row, access_.vector), lanes));
    return plan("passes", {.lanes = lanes, .unroll = std::min(accesses, kUnroll), .rows = rows, .blocks = blocks});
  }

  // Few long rows, each shared by several blocks. They wait for one another at every reduction, so all of them must be on
  // the GPU at once: one on each multiprocessor, at most.
  Heuristics in_shared_strips() {
    const int64_t accesses = std::max<int64_t>(ceil_div(sizes_.row, access_.vector), 1);
    const int64_t slices = std::clamp<int64_t>(ceil_div(accesses, kSharedStripThreads * kSharedUnroll), 2,
                                               view_.device.multiprocessors / sizes_.rows);
    const int64_t lanes = threads_of_shared_strips(accesses / slices, view_.device.block_threads);
    return plan("passes", {.lanes = lanes, .unroll = kSharedUnroll, .slices = slices, .most_rows = sizes_.rows});
  }

  // Rows each in the registers of so many blocks, which are a cluster. Nothing if it does not hold one.
  std::optional<Heuristics> in_cluster_of(int64_t blocks) {
    if (!has_clusters(view_.device.architecture)) return std::nullopt;
    Chooser part = *this;
    part.sizes_.row = ceil_div(ceil_div(sizes_.row, access_.vector), blocks) * access_.vector;
    return part.in_block(blocks);
  }

  // Few long rows, each in the registers of several blocks, which are a cluster. Nothing if it does not hold one. Where a
  // multiprocessor has registers for one of its blocks only, all clusters should be on the GPU at once: a layer norm of
  // [17, 101248] in f32 took 16.9 µs by eight blocks of 896 threads on an H100, and 14.5 by four. Rms norm of [26, 94400] in
  // bf16 took no less by four blocks of 768 threads.
  std::optional<Heuristics> in_cluster() {
    if (!leaves_most_idle() && !has_few_wide_rows()) return std::nullopt;
    const auto h = in_cluster_of(kBlocksOfCluster);
    if (!h) return h;
    const bool is_alone = view_.device.registers / (2 * h->number("threads")) < kOtherRegisters + kLeastElements;
    if (is_alone && sizes_.rows * kBlocksOfCluster > view_.device.multiprocessors)
      if (auto fewer = in_cluster_of(kBlocksOfCluster / 2)) return fewer;
    return h;
  }

  // Rows fewer than multiprocessors, which no block holds: each in the smallest cluster that does. On an H100, softmax of
  // [64, 34048] in f16 took 9.6 µs so, and 11.4 in blocks that read rows again; a loss of [64, 110757] in bf16 took 20.4 and
  // 28.0. But layer norm of [128, 56064] in bf16 took no less in clusters, nor did moments, which can be read once.
  std::optional<Heuristics> in_smallest_cluster() {
    if ((!stores_rows() && sums_alone()) || sizes_.rows > view_.device.multiprocessors * 3 / 4) return std::nullopt;
    for (int64_t blocks = 2; blocks <= kBlocksOfCluster; blocks *= 2)
      if (auto h = in_cluster_of(blocks)) return h;
    return std::nullopt;
  }

  // Many long rows, each in a cluster, if a multiprocessor holds several of its blocks, so that some load while others
  // exchange. On an H200, rms norm of [1216, 56448] in bf16 took 157 µs so, and 182 µs in blocks that read rows again. On an
  // H100, batch norm of [32, 256, 3136] in f32 took 79 µs so, and 109 µs in blocks that read channels again.
  std::optional<Heuristics> in_many_clusters() {
    if (!fills_gpu(kBlocksOfCluster) || !(stores_rows() || loses_rows() || !has_full_vectors())) return std::nullopt;
    // Softmax of [3000, 12000] in f32 took 99.6 µs by eight blocks of three warps on an H100, and 93.2 by two of twelve;
    // [3000, 30000] took 250 by four of sixteen, and 236 by eight of eight.
    std::optional<Heuristics> best;
    for (int64_t blocks = kBlocksOfCluster; blocks > 1; blocks /= 2)
      if (const auto h = in_cluster_of(blocks)) {
        best = h;
        const int64_t warps = h->number("warps");
        if (warps >= kWarpsOfCluster || (h->has("keep") && warps >= kLeastWarpsOfCluster)) break;
      }
    return best;
  }

  // Whether a multiprocessor holds but one block of those that keep rows, after `in_registers`.
  bool is_held_once() const { return is_held_once_; }

  // The kept axes lie innermost: neighbouring threads take neighbouring columns.
  Heuristics in_columns() {
    if (sizes_.row <= (access_.vector == 1 ? kFewSinglePlaces : kFewPlaces)) return in_short_columns();
    // Half a warp reads whole lines, and more blocks share the columns. Of fewer columns, a block takes more places.
    access_.vector = std::min<int64_t>(access_.vector, kVectorOfColumns);
    int64_t lanes = std::min(view_.device.warp / 2, power_of_two_from(columns()));
    // Narrower accesses read parts of lines: [1000, 90001] in f16 took 91.5 µs so on an H100, and 83.5 by 64 lanes.
    while (lanes * access_.vector * bytes_of_loads() < kBytesOfLine && lanes < columns() &&
           blocks_of_columns(2 * lanes) >= kManyHeldOfColumns * view_.device.multiprocessors)
      lanes *= 2;
    // Where there are few columns, narrow accesses give every lane one.
    while (access_.vector > 1 && ceil_div(columns(), access_.vector) < lanes) access_.vector /= 2;
    const bool may_wait = are_awaited(view_.fusion, space_);
    // On an H100, 5.6 µs for 6.0 of [599, 32] in f32, and arrivals need not be cleared first; 7.2 for 6.3 of [900, 128].
    const bool is_short = sizes_.row <= kShortColumn && blocks_of_columns(lanes) <= kFewColumnBlocks;
    const bool is_sliced =
        !is_short && ceil_div(sizes_.row, kThreadsOfFewRows / lanes * kUnroll) > kMostRounds &&
        (may_wait ? states_rows() : most_blocks(kSlicesOfColumn, false, 0) >= 2 * blocks_of_columns(lanes));
    // Columns that no blocks share are read soonest by many blocks.
    const int64_t wanted_blocks = 4 * view_.device.multiprocessors;
    if (!is_sliced)
      while (access_.vector > 1 && blocks_of_columns(lanes) < wanted_blocks) access_.vector /= 2;
    const int64_t blocks = blocks_of_columns(lanes);
    const bool waits = is_sliced && may_wait;
    const int64_t most_warps = kWarpsOfColumns * std::max<int64_t>(view_.device.warp / 2 / lanes, 1);
    int64_t warps = std::min({most_warps, kThreadsOfColumns / lanes, power_of_two_from(sizes_.row)});
    int64_t slices = 1, cluster = 0, most_unroll = kUnroll, held = 0;
    const int64_t most_threads = blocks < wanted_blocks ? kThreadsOfFewRows : kThreadsOfColumns;
    if (is_sliced) {
      const SharedColumns shared =
          slice_columns(columns_of(lanes), {.warps = warps,
                                            .multiprocessors = view_.device.multiprocessors,
                                            .waits = waits,
                                            .has_moments = has_moments(),
                                            .has_clusters = has_clusters(view_.device.architecture)});
      lanes = shared.lanes;
      access_.vector = shared.vector;
      warps = shared.threads / lanes;
      most_unroll = shared.unroll;
      slices = shared.slices;
      cluster = shared.is_cluster ? slices : 0;
    } else {
      while (warps * lanes < most_threads && ceil_div(sizes_.row, warps * kUnroll) > 1) warps *= 2;
      // A few blocks of a second wave would leave most multiprocessors idle: [320, 42708] in f16 took 17.5 µs in 668 blocks
      // of 256 threads on an H100, and 14.5 in blocks of 128. So did short columns in many waves: [40, 120000] in f32 took 10.8
      // and 8.7 µs on an H200, [560, 50000] 31.9 and 29.9.
      const int64_t wave = view_.device.multiprocessors * blocks_of_multiprocessor(lanes * warps);
      const bool is_short_and_wide = sizes_.row <= kShortColumn && access_.vector * bytes_of_loads() > kNarrowestBytes;
      if (warps > 1 && blocks > wave && (is_short_and_wide || 2 * blocks <= 3 * wave)) warps /= 2;
      // Narrow accesses leave registers for more: [2432, 25314] in bf16 took 57.5 µs by blocks of 128 threads, and 47.6 by 256.
      const int64_t each = ceil_div(blocks, view_.device.multiprocessors);
      while (access_.vector * bytes_of_loads() <= kNarrowBytes && 2 * warps * lanes <= most_threads &&
             2 * warps * lanes * each <= view_.device.threads * 7 / 8 &&
             ceil_div(sizes_.row, 2 * warps * kUnroll) > kMostRounds)
        warps *= 2, held = each;
      // Single 16-bit numbers: many of each thread are under way together, in the registers that few threads leave them. Of
      // threads with 32 registers the compiler takes a bf16 number only after it has added the one before: on an H100,
      // [768, 106977] took 147.7 µs by eight of each of 2048 threads, and 67.7 by sixteen of 1024; [128, 70767] took 17.5 by
      // four of each of 1024, and 13.6 by eight.
      if (access_.vector * bytes_of_loads() <= kNarrowestBytes) {
        const bool is_long = ceil_div(sizes_.row, kThreadsOfLongColumns / lanes * kNarrowestUnroll) > kMostRounds;
        if (is_long) warps = kThreadsOfLongColumns / lanes;
        most_unroll = is_long ? kNarrowestUnroll : kLongUnroll;
        held = is_long ? view_.device.registers / (kThreadsOfLongColumns * kNarrowestRegisters)
                       : std::min(held, kNarrowThreads / (lanes * warps));
      }
      if (is_short && ceil_div(sizes_.row, warps * kUnroll) > kMostRounds) most_unroll = kLongUnroll;
      // Loads of a few rounds are under way together: [500, 700] in f32 took 6.2 µs in four rounds, and 4.9 in one.
      const int64_t one_round = std::min(power_of_two_from(ceil_div(sizes_.row, warps)), kMostRounds * kUnroll);
      if (sizes_.row <= one_round * warps && one_round * access_.vector * bytes_of_loads() <= kBytesOfRound)
        most_unroll = std::max(most_unroll, one_round);
    }
    const int64_t unroll = std::min(most_unroll, power_of_two_from(ceil_div(sizes_.row, warps * slices)));
    const bool is_awaited = waits && slices > 1 && cluster == 0;
    // Threads of slices need more registers for their loads than many blocks of a multiprocessor leave them.
    return plan("passes", {.lanes = lanes,
                           .warps = warps,
                           .unroll = unroll,
                           .slices = slices,
                           .most_rows = is_awaited ? most_of(view_.sizes, kept_beside(space_, access_)) : 0,
                           .most_columns = is_awaited ? columns() : 0,
                           .blocks = is_awaited   ? kLeastHeld
                                     : slices > 1 ? 1
                                     : held > 0   ? held
                                                  : blocks_of_multiprocessor(lanes * warps),
                           .longest = longest_summed_once(),
                           .cluster = cluster});
  }

  // The kept axes lie innermost: the threads of a block, or of a cluster of blocks, keep whole columns in registers. Nothing
  // if no cluster holds a column.
  std::optional<Heuristics> in_kept_columns() {
    if (access_.lanes_take_places) return in_lanes_of_places();
    const auto k = keep_columns(columns_of(1), bytes_of_kept_columns(), view_.device);
    if (!k) return std::nullopt;
    access_.vector = k->vector;
    const Block block{.lanes = k->lanes,
                      .warps = k->warps,
                      .chunks = k->chunks,
                      .blocks = k->blocks,
                      .cluster = k->cluster > 1 ? k->cluster : 0};
    Heuristics h = kept_row(block, view_.defects.has(Defect::kLongestShort) ? 1 : 0);
    if (k->keeps_inputs) h.set("keep", "inputs");
    return h;
  }

  // Short columns of which a warp has some, each thread with a place of its own.
  Heuristics in_lanes_of_places() {
    const int64_t lanes = std::min(power_of_two_from(sizes_.row), view_.device.warp);
    Block b{.lanes = lanes, .chunks = ceil_div(sizes_.row, lanes)};
    b.rows = rows_of_warps(lanes, std::min(kThreadsOfKeptRows, kMostKeptRows * lanes), 2);
    b.blocks = std::clamp<int64_t>(held(b, {bytes_of_kept_columns().kept}), 1, kMostBlocks);
    b.longest = lanes * b.chunks - (view_.defects.has(Defect::kLongestShort) ? 1 : 0);
    Heuristics h = plan("registers", b);
    h.set("places", "lanes");
    return h;
  }

  // Columns that are read again, a part of a line at once. Running moments are sooner read by a kernel of their own: of
  // [7007, 1584] in bf16, batch norm took 84 µs so on an H100, and 65 by two kernels; softmax over columns took 46, and 70 by
  // three.
  std::optional<Heuristics> in_narrow_columns() {
    const int64_t lanes = has_moments() ? 0 : lanes_of_narrow_columns(columns_of(1), widest_load(), view_.device);
    if (lanes == 0) return std::nullopt;
    const int64_t warps = std::min(kThreadsOfFewRows / lanes, power_of_two_from(sizes_.row));
    return plan("passes", {.lanes = lanes,
                           .warps = warps,
                           .unroll = std::min(kUnroll, power_of_two_from(ceil_div(sizes_.row, warps))),
                           .slices = 1,
                           .blocks = kLeastHeld,
                           .longest = longest_summed_once()});
  }

  // The kept axes lie innermost, and columns are so short that a thread takes whole ones, in full vectors, as a pointwise
  // kernel takes its elements. Narrower blocks, then narrower vectors, share few columns among all multiprocessors.
  Heuristics in_short_columns() {
    int64_t lanes = kThreadsOfColumns;
    while (lanes > view_.device.warp && blocks_of_columns(lanes) < 2 * view_.device.multiprocessors) lanes /= 2;
    while (access_.vector > 1 && blocks_of_columns(lanes) < view_.device.multiprocessors) access_.vector /= 2;
    // Of [16, 41463] in bf16, an H100 sums columns in 4.8 µs so, and in 5.6 by half as many loads at once.
    const int64_t most_unroll = sizes_.row > kFewPlaces ? kLongUnroll : kUnroll;
    return plan("passes", {.lanes = lanes,
                           .unroll = std::min(most_unroll, power_of_two_from(sizes_.row)),
                           .blocks = blocks_of_multiprocessor(lanes),
                           .longest = longest_summed_once()});
  }

  // Rows in registers, and sums of columns beside them: a thread walks several rows. Nothing if no block holds a row.
  std::optional<Heuristics> in_walks() {
    const int64_t width = access_.vector, bytes = kept_bytes(view_.fusion, space_) + column_bytes(view_.fusion, space_);
    for (int64_t chunks = std::max<int64_t>(kLeastElements / width, 1); chunks * width <= kManyElements; chunks *= 2) {
      const auto warps = warps_of_row(chunks, bytes);
      if (!warps) continue;
      int64_t rows = 1;
      while (*warps * view_.device.warp * rows * 2 <= kThreadsOfWalks && sizes_.rows / (rows * 2) >= walkers())
        rows *= 2;
      if (rows == 1 && ColumnParts::suits(view_.fusion, space_)) {
        Block block{.lanes = view_.device.warp, .warps = *warps, .chunks = chunks};
        // All blocks must be on the GPU at once, as they wait for one another.
        block.blocks = std::clamp<int64_t>(held(block, Kept{bytes}), 1, kBlocksOfWalks);
        block.walkers = block.blocks * view_.device.multiprocessors;
        const int64_t each = ceil_div(sizes_.rows, block.walkers);
        block.walk = std::max(ceil_div(each, ceil_div(each, kMostWalk)), kLeastWalk);
        return kept_row(block, 0);
      }
      const int64_t walk = std::clamp(ceil_div(sizes_.rows, rows * walkers()), kLeastWalk, kMostWalk);
      return kept_row({.lanes = view_.device.warp, .warps = *warps, .chunks = chunks, .rows = rows, .walk = walk}, 0);
    }
    return std::nullopt;
  }

 private:
  // What the threads of a block do. A number that is 0 is not stated.
  struct Block {
    int64_t lanes = 0, warps = 1, chunks = 0, unroll = 1, rows = 1, slices = 1, most_rows = 0, most_columns = 0;
    int64_t walk = 0, walkers = 0;
    int64_t blocks = 1;              // of a multiprocessor
    int64_t longest = 0, least = 0;  // elements of a row
    int64_t cluster = 0;             // blocks that share a row
  };

  // What threads keep of each element of a row: `bytes` in registers, of the inputs alone if what is made of them is made
  // again in every pass.
  struct Kept {
    int64_t bytes = 0;
    bool is_of_inputs = false;
  };

  // Whether each thread of few clusters has several narrow accesses of rows of several inputs. Then two blocks of a
  // multiprocessor are stated. It never has two, but the compiler gives a thread registers for more loads, 48 in place of 38:
  // rms norm of [1, 35091] in f32 took 8.2 µs on an H100, and 7.0 so; of [3, 75145] 15.1 and 13.8. Of one input, losses and
  // moments took up to 3 % less, and layer norms as long.
  bool has_loads_of_few_clusters(const Block& block) const {
    const Graph& g = view_.fusion;
    const auto is_of_rows = [&](ValueId v) { return sizes_.rows == 1 || space_.differs_by_row(g, v); };
    return block.cluster > 0 && !fills_gpu(block.cluster) && access_.vector <= 2 && block.chunks > 1 &&
           std::ranges::count_if(space_.full_inputs(g), is_of_rows) > 1 &&
           kLeastHeld * threads_of(block) <= kNarrowThreads;
  }

  // A row in the registers of a block, or the part of it that each of `cluster` blocks keeps, if that is not 0. Nothing
  // if no block holds it, or if a multiprocessor holds too few of the blocks of many clusters.
  std::optional<Heuristics> in_block(int64_t cluster) {
    Kept kept{kept_bytes(view_.fusion, space_)};
    std::optional<Block> block = block_of(cluster, kept);
    if (fills_gpu(cluster) && (!block || cluster > 0 || held(*block, kept) < kLeastHeld) &&
        makes_again_cheaply(view_.fusion, space_))
      if (const Kept of_inputs{repeated_bytes(view_.fusion, space_), true};
          of_inputs.bytes < most_kept_bytes(view_.fusion, space_))
        if (const auto other = block_of(cluster, of_inputs)) {
          block = other;
          kept = of_inputs;
        }
    if (!block) return std::nullopt;
    is_held_once_ = held(*block, kept) < kLeastHeld;
    if (kept.is_of_inputs)
      block->blocks =
          std::max<int64_t>(held(*block, {repeated_bytes(view_.fusion, space_, ceil_div(4, access_.vector))}), 1);
    else if (has_loads_of_few_clusters(*block))
      block->blocks = kLeastHeld;
    else if (are_many_clusters(cluster) && stores_rows())
      block->blocks = has_full_vectors() || loads_of_pass() > 1 ? kLeastHeld : held_of_one_input(*block);
    if (block->chunks > 1 && cluster == 0) block->least = least_of(view_.sizes, space_.reduced);
    Heuristics h = kept_row(*block, view_.defects.has(Defect::kLongestShort) ? 1 : 0);
    if (kept.is_of_inputs) h.set("keep", "inputs");
    return h;
  }

  // The best block. For rows that are stored, the best one of which a multiprocessor holds several, if there is one.
  std::optional<Block> block_of(int64_t cluster, Kept kept) const {
    std::optional<Block> alone;
    for (int64_t elements : elements_of_thread(cluster, kept)) {
      const int64_t most = std::max<int64_t>(elements / access_.vector, 1);
      int64_t chunks = std::min(most, power_of_two_from(accesses_of_warp()));
      auto warps = warps_of_row(chunks, kept.bytes);
      if (!warps || (elements < kLeastElements && *warps * view_.device.warp > kThreadsOfFewRows)) continue;
      if (cluster == 0 && is_for_one_warp(*warps, chunks) && warps_of_row(2 * chunks, kept.bytes)) {
        warps = 1;
        chunks *= 2;
      }
      // Rows of several warps would wait for one another in the barriers of a block, and those of clusters are few.
      const bool is_alone = *warps > 1 || cluster > 0;
      const auto [lanes, threads] = is_alone ? ThreadsOfRows{view_.device.warp, view_.device.warp} : threads_of_rows();
      const int64_t rows = is_alone ? 1 : rows_of_warps(lanes, threads, 1);
      // Others would be checks of what no row has.
      chunks = std::max<int64_t>(ceil_div(ceil_div(sizes_.row, access_.vector), lanes * *warps), 1);
      if (view_.defects.has(Defect::kChunksFew)) chunks = std::max<int64_t>(chunks / 2, 1);
      const Block block{.lanes = lanes, .warps = *warps, .chunks = chunks, .rows = rows, .cluster = cluster};
      const bool may_be_alone = !fills_gpu(cluster) || (cluster == 0 && !stores_rows());
      if (may_be_alone || held(block, kept) >= kLeastHeld) return block;
      if (cluster == 0 && !alone) alone = block;
    }
    return alone;
  }

  // The registers of a thread that keeps so many accesses of `bytes` for each element.
  int64_t registers_of(int64_t chunks, int64_t bytes) const {
    return ceil_div(bytes * chunks * access_.vector, 4) + kOtherRegisters;
  }
  static int64_t threads_of(const Block& block) { return block.lanes * block.warps * block.rows; }
  // The blocks that a multiprocessor has registers and threads for.
  int64_t held(const Block& block, Kept kept) const {
    const int64_t threads = threads_of(block);
    return std::min(view_.device.registers / (threads * registers_of(block.chunks, kept.bytes)),
                    view_.device.threads / threads);
  }
  // The same where the registers of the input's elements take what is made of them: softmax of [640, 58598] in f32 took
  // 148 µs on an H100 by 88 registers of 256 threads, and 104 for [640, 58597] by 72, of which it holds one block more.
  int64_t held_of_one_input(Block block) const {
    return std::max(held(block, {bytes_of_loads() + kBytesOfWork / (block.chunks * access_.vector)}), kLeastHeld);
  }

  // The warps that hold a row of which each thread keeps `chunks` vectors, in so many bytes an element. Nothing if a
  // block has no such threads or registers.
  std::optional<int64_t> warps_of_row(int64_t chunks, int64_t bytes) const {
    const int64_t warps = std::max<int64_t>(ceil_div(accesses_of_warp(), chunks), 1);
    const int64_t registers = registers_of(chunks, bytes);
    // The product of warps that are too many would wrap.
    if (warps > view_.device.block_threads / view_.device.warp || registers > kMostRegisters ||
        warps * view_.device.warp * registers > view_.device.registers)
      return std::nullopt;
    return warps;
  }

  // Rows in registers. States the longest row that the threads keep, `shorter` elements less.
  Heuristics kept_row(Block b, int64_t shorter) {
    const int64_t side_by_side = is_inner() ? b.lanes * access_.vector : 1;
    b.longest = std::max<int64_t>(b.cluster, 1) * side_by_side * b.warps * b.chunks - shorter;
    return plan("registers", b);
  }

  Heuristics plan(std::string_view form, const Block& b) {
    h_.set("axes", is_inner() ? "inner" : "outer");
    h_.set("form", form);
    h_.set("vector", access_.vector);
    h_.set("in_vectors", listed_in_vectors(access_));
    h_.set("merge", access_.merges_first ? "first" : "last");
    const std::pair<std::string_view, int64_t> numbers[] = {
        {"lanes", b.lanes},     {"warps", b.warps},     {"chunks", b.chunks},       {"unroll", b.unroll},
        {"rows", b.rows},       {"slices", b.slices},   {"most_rows", b.most_rows}, {"most_columns", b.most_columns},
        {"walk", b.walk},       {"walkers", b.walkers}, {"threads", threads_of(b)}, {"blocks", b.blocks},
        {"longest", b.longest}, {"least", b.least},     {"cluster", b.cluster}};
    for (const auto& [key, number] : numbers)
      if (number > 0) h_.set(key, number);
    return h_;
  }

  // The most blocks for a grid that should have `wanted` on each multiprocessor. If all of them wait for one another, no
  // more than `held` on each are sure to be on the GPU at once.
  int64_t most_blocks(int64_t wanted, bool waits, int64_t held) const {
    return (waits ? std::min(wanted, held) : wanted) * view_.device.multiprocessors;
  }

  // The same as `rows_of_block` for rows of part of a warp. All warps are full, so that lanes exchange by shuffles.
  int64_t rows_of_warps(int64_t lanes, int64_t most_threads, int64_t blocks_wanted) const {
    return std::max(rows_of_block(lanes, most_threads, blocks_wanted), view_.device.warp / lanes);
  }

  // Rows of so many threads share a block of at most `most_threads`, as long as there are blocks enough for all
  // multiprocessors.
  int64_t rows_of_block(int64_t threads, int64_t most_threads, int64_t blocks_wanted = 2) const {
    int64_t rows = 1;
    while (threads * rows * 2 <= most_threads &&
           sizes_.rows / (rows * 2) >= blocks_wanted * view_.device.multiprocessors)
      rows *= 2;
    return rows;
  }

  // The blocks that a multiprocessor should hold at once, so that a thread of a walk takes few registers: many threads with
  // loads under way are worth more than registers are. Running moments need more of them.
  int64_t blocks_of_multiprocessor(int64_t threads) const {
    return std::clamp<int64_t>((has_moments() ? kThreadsOfFewRows : view_.device.block_threads) / threads, 1,
                               kMostBlocks);
  }

  // The same of moments in full vectors, whose threads load less at once.
  int64_t blocks_of_moments(int64_t threads) const {
    return std::clamp<int64_t>(view_.device.registers / (kRegistersOfMoments * threads), 1, kMostBlocks);
  }

  std::vector<int64_t> elements_of_thread(int64_t cluster, Kept kept) const {
    return fusebox::elements_of_thread({.rows = sizes_.rows,
                                        .accesses = accesses_of_warp(),
                                        .vector = access_.vector,
                                        .bytes = bytes_of_loads(),
                                        .row_bytes = row_bytes(view_.fusion, space_),
                                        .kept_inputs = kept.is_of_inputs ? kept.bytes : 0,
                                        .loads = loads_of_pass(),
                                        .cluster = cluster,
                                        .are_few = !fills_gpu(cluster),
                                        .has_moments = has_moments(),
                                        .has_full_vectors = has_full_vectors(),
                                        .stores_rows = stores_rows(),
                                        .is_in_runs = space_.reduced.size() > 1,
                                        .ends_known = least_of(view_.sizes, space_.reduced) > 1},
                                       view_.device);
  }

  Heuristics h_;
  bool is_held_once_ = false;  // by a multiprocessor: a block whose registers hold a row
};

}  // namespace

Heuristics choose_one_pass(const ScheduleView& view, const ReductionSpace& space) {
  Chooser chooser(view, space, "reduction");
  return chooser.is_inner() ? chooser.in_strips(true) : chooser.in_columns();
}

std::optional<Heuristics> choose_passes(const ScheduleView& view, const ReductionSpace& space, std::string& why) {
  Chooser chooser(view, space, "persistent");
  if (chooser.is_inner()) {
    if (chooser.are_few_single_moments()) return chooser.in_shared_strips();
    if (auto h = chooser.in_cluster()) return h;
    Chooser clusters = chooser;
    const auto h = chooser.in_registers();
    if (!h)
      if (auto few = clusters.in_smallest_cluster()) return few;
    if (!h || (chooser.is_held_once() && !chooser.exchanges_twice() && !chooser.moves_halves()))
      if (auto many = clusters.in_many_clusters()) return many;
    if (h && chooser.is_held_once() && clusters.reads_rows_alone()) return clusters.in_strips(false);
    if (h) return h;
  }
  if (chooser.is_inner() && chooser.has_rows_to_share()) return chooser.in_shared_strips();
  if (chooser.is_inner()) return chooser.in_strips(false);
  if (auto h = Chooser(chooser).in_kept_columns()) return h;
  if (auto h = chooser.in_narrow_columns()) return h;
  why = "the rows that %" + view.fusion[space.reference].name +
        " reduces are long and few, so most multiprocessors would have nothing to do";
  return std::nullopt;
}

std::vector<Heuristics> other_passes(const ScheduleView& view, const ReductionSpace& space) {
  std::vector<Heuristics> found;
  const auto add = [&](const std::optional<Heuristics>& h) {
    if (h && std::ranges::count(found, *h) == 0) found.push_back(*h);
  };
  // Each from a chooser of its own: making one choice changes what the next would start from.
  const auto chooser = [&] { return Chooser(view, space, "persistent"); };
  if (!chooser().is_inner()) return found;
  for (int64_t blocks = 2; blocks <= kBlocksOfCluster; blocks *= 2) add(chooser().in_cluster_of(blocks));
  add(chooser().in_registers());
  add(chooser().in_strips(false));
  std::string why;
  if (const auto chosen = choose_passes(view, space, why)) std::erase(found, *chosen);
  return found;
}

std::optional<Heuristics> choose_walks(const ScheduleView& view, const ReductionSpace& space, std::string& why) {
  Chooser chooser(view, space, "inner_outer");
  const std::string place = "%" + view.fusion[space.reference].name;
  if (!chooser.is_inner()) {
    why = "the axes that " + place + " reduces do not lie innermost";
    return std::nullopt;
  }
  if (chooser.has_few_rows()) {
    why = "the rows that " + place + " reduces are too few for threads that walk several each";
    return std::nullopt;
  }
  if (are_brought_together(view.fusion, space.columns)) {
    why = "an op depends on two sums of columns, for which all blocks would wait";
    return std::nullopt;
  }
  if (!ColumnEnds::are_few(view.fusion, space)) {
    why = "few copies do not keep what ops behind sums of columns read apart from the rows";
    return std::nullopt;
  }
  auto h = chooser.in_walks();
  if (!h) why = "the registers of a block do not hold a row that " + place + " reduces and the sums of its columns";
  return h;
}

}  // namespace fusebox
