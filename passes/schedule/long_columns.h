// How many blocks share columns whose places are many, and how wide their accesses are.
//
//   // [2846, 91] of f32 on 132 multiprocessors
//   share_in_clusters({.places = 2846, .columns = 91, .lanes = 16, .vector = 1, .bytes = 4}, 132)
//     // {.vector = 1, .slices = 8, .lanes = 8, .threads = 256, .unroll = 16, .is_cluster = true}: 12 clusters of 8 blocks
//
//   // [20000, 160] of f32 on 132 multiprocessors
//   share_long_columns({.places = 20000, .columns = 160, .lanes = 16, .vector = 4, .bytes = 4}, true, 132)
//     // {.vector = 4, .slices = 44, .lanes = 16, .threads = 512, .unroll = 8}: 3 blocks of columns, 132 blocks in all
#pragma once

#include <cstdint>

namespace fusebox {

struct Columns {
  int64_t places = 1;   // of a column
  int64_t columns = 1;  // that lie side by side in memory
  int64_t beside = 1;   // how many such groups there are
  int64_t lanes = 1;    // threads of a block that take neighbouring columns
  int64_t vector = 1;   // elements of an access
  int64_t bytes = 1;    // of all that is loaded for an element

  // The blocks that take all columns, if no blocks share any. At most 2^40.
  int64_t blocks() const;
};

struct SharedColumns {
  int64_t vector = 1;
  int64_t slices = 0;  // blocks that share a column; 0: another way is to be taken
  int64_t lanes = 1, threads = 1, unroll = 1;
  bool is_cluster = false;  // they run in a cluster, and combine their parts in its shared memory
};

struct Slicing {
  int64_t warps = 1;  // places that a block of few threads takes at once
  int64_t multiprocessors = 1;
  bool waits = false;  // all blocks need the results
  bool has_moments = false, has_clusters = false;
};

// How the blocks of long columns share them: in clusters, if that is enough; otherwise through global memory.
SharedColumns slice_columns(const Columns& columns, const Slicing& slicing);

// Clusters of blocks, if these are enough for the bytes of the columns. The columns have many places.
SharedColumns share_in_clusters(const Columns& columns, int64_t multiprocessors);

// `are_many`: small blocks would be so many that larger ones may be better.
SharedColumns share_long_columns(const Columns& columns, bool are_many, int64_t multiprocessors);

}  // namespace fusebox
