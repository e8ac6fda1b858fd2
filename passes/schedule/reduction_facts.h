// What the choices for a reduction ask of the fusion, its sizes and the GPU, in one place.
//
//   // softmax of [16384, 4096] in bf16 on 132 multiprocessors
//   const ReductionFacts facts(view, space);
//   facts.fills_gpu(), facts.stores_rows(), facts.has_full_vectors()   // true, true, true
#pragma once

#include <cstdint>

#include "passes/schedule/kept_bytes.h"
#include "passes/schedule/kept_columns.h"
#include "passes/schedule/kept_rows.h"
#include "passes/schedule/long_columns.h"
#include "passes/schedule/reduction_access.h"
#include "passes/schedule/schedule_view.h"
#include "passes/schedule/shared_rows.h"

namespace fusebox {

// Works on the view and the space, which must outlive it.
class ReductionFacts {
 public:
  ReductionFacts(const ScheduleView& view, const ReductionSpace& space);

  bool is_inner() const;
  // Whether rows are so many that several blocks of each multiprocessor are busy. Clusters of blocks do that with fewer.
  bool fills_gpu(int64_t cluster = 0) const;
  bool are_many_clusters(int64_t cluster) const;
  bool has_full_vectors() const;
  // Whether accesses of rows move one number of 16 bits at most: a loss of [5338, 37049] in bf16 took 325 µs by clusters on an H100, and
  // 224 by single blocks.
  bool moves_halves() const;
  bool stores_rows() const;
  bool has_moments() const;
  // Whether all reductions are sums, as those of moments in two passes are.
  bool sums_alone() const;
  int64_t bytes_of_loads() const;
  // The bytes of an element of the widest full input.
  int64_t widest_load() const;
  // Full inputs.
  int64_t loads_of_pass() const;
  int64_t accesses_of_warp() const;
  // Whether a step can state how many rows there are, at most. Blocks that wait for one another need that.
  bool states_rows() const;
  int64_t columns() const;
  Columns columns_of(int64_t lanes) const;
  // What a thread keeps of columns: what is made of inputs, or the inputs if every pass can make it again.
  ColumnBytes bytes_of_kept_columns() const;
  // The bytes of registers that an element takes, of accesses that are narrower than a register.
  int64_t bytes_in_registers(int64_t bytes) const;
  int64_t blocks_of_columns(int64_t lanes) const;
  // Whether half a warp takes a row that is stored, by up to three narrow accesses of a lane, as it exchanges in one step
  // less, and rows fill the GPU by warps more than once. A layer norm of [59937, 62] in f16 took 14.4 µs by warps on an
  // H100, and 11.5 by halves; [8064, 35] in f32 took no less. Wider accesses take three of half a warp sooner than two of a warp with
  // a quarter idle: rms norm of [9600, 320] in f16 took 10.1 µs by warps on an H200, and 9.1 by halves.
  bool is_for_half_warps() const;
  // The lanes of a row that has an access for each and leaves half of a warp idle, or more. 0 if it has more accesses, or
  // if all rows together do not fill a warp.
  int64_t lanes_of_short_row(int64_t least) const;
  // The lanes of a row that lies in a few short runs: those that read one run. Their neighbours read the run behind it in memory,
  // which is of the next row, and each thread reads the runs of its row one after another. The windows of average pooling are
  // such rows. 0 for others.
  int64_t lanes_of_runs() const;
  ThreadsOfRows threads_of_rows() const;
  // Whether one warp takes a row that is only read sooner than two of so many accesses a thread, which exchange behind a barrier: on
  // an H200, moments of [1680, 448] in f16 took 5.3 µs by two warps of one access, and 4.4 by one of two. But [1152, 1856] took 5.8 by
  // two of four, and 6.1 by one of eight.
  bool is_for_one_warp(int64_t warps, int64_t accesses) const;
  // The most lanes by which the moments of all rows are on the GPU at once, or all but a fifth, if single warps are few enough for
  // that. On an H200, those of [1732, 17480] in f32 took 43.4 µs by 256 lanes, 37.6 by 64 and 45.0 by 32; of [4100, 20480]
  // 96.8, 86.5 and 85.3; of [2113, 17480] 41.2 by 64, where the GPU holds 2112 rows at once, and 47.2 by 32.
  int64_t lanes_of_one_wave() const;
  // The blocks that share a row of so many accesses in clusters. Nothing if the GPU has none, or for moments where a row has about
  // one block: those of [140, 40000] in f32 took 15.3 µs on an H200, and 18.1 by clusters of two.
  SharedRows share_rows(int64_t accesses) const;
  // Whether two exchanges in each row cost more than the other blocks of a multiprocessor would gain: layer norm of
  // [1271, 30528] in f32 took 119 µs in clusters of eight on an H100, 116 in those of two, and 112 in single blocks.
  bool exchanges_twice() const;
  // Whether blocks that read rows again disturb the L2 cache with nothing else.
  bool reads_rows_alone() const;
  // The same for rows of any length: a loss of [512, 66304] in f32 took 70.1 µs by blocks that read rows again on an H100, and
  // 50.6 in clusters.
  bool reads_any_rows_alone() const;
  // Whether they find the rows there, and a multiprocessor has registers for two of them. A loss of [8192, 50304] in bf16
  // took 297 µs so on an H100, and 516 µs in the registers of blocks of which a multiprocessor holds one. On an H200 it
  // took 276 µs in clusters, and 237 µs otherwise. Rows of 142,704 bytes are too long: a loss of [6336, 35676] in f32 took
  // 348 µs so on an H100, and 299 µs in clusters.
  bool finds_rows_again() const;
  bool loses_rows() const;
  // Whether two thirds of the cache hold the rows that all blocks walk at once.
  bool fit_in_cache() const;
  // Whether the rows are too few for blocks that walk several each.
  bool has_few_rows() const;
  // Whether a row is so long that several blocks walk it sooner than one, though they wait for one another.
  bool has_rows_to_share() const;
  // Whether one or two rows of running moments are read element by element. All multiprocessors then walk such a row
  // sooner than the blocks of a cluster: a layer norm of [1, 117607] in f32 took 12.7 µs so on an H100, and 16.6 in a cluster.
  // But [1, 29307] took 12.1 µs so, and 7.3 in a cluster; [1, 39997] in bf16 took 12.3 and 8.5.
  bool are_few_single_moments() const;
  // Whether the blocks that share no row are too few for the walk that each would make.
  bool leaves_most_idle() const;
  // Whether a few rows, which are stored, take each thread of a block several accesses. The threads of a cluster have one
  // each: rms norm of [1, 8000] in f32 took 7.0 µs by one block on an H100, and 6.0 by a cluster.
  bool has_few_wide_rows() const;
  // The longest column, where that tells lowering that a thread's sum needs no partial sums; 0 where it does not.
  int64_t longest_summed_once() const;
  // Blocks that walk rows, if there are enough rows.
  int64_t walkers() const;

 protected:
  struct Sizes {
    int64_t row = 1;   // elements of a row: the product of the reduced axes
    int64_t rows = 1;  // the product of the kept axes
  };
  const ScheduleView& view_;
  const ReductionSpace& space_;
  ReductionAccess access_;
  Sizes sizes_;
};

}  // namespace fusebox
