// How many blocks share a long row that is read once, as a cluster.
//
//   // [64, 48684] of f32, by 4 elements at a time, on 132 multiprocessors
//   share_long_rows({.rows = 64, .accesses = 12171, .bytes = 16}, 132)   // {.slices = 2, .lanes = 512, .unroll = 4}
#pragma once

#include <cstdint>

namespace fusebox {

struct LongRows {
  int64_t rows = 1;
  int64_t accesses = 1;  // of a row to each input
  int64_t bytes = 1;     // of an access to all inputs
};

struct SharedRows {
  int64_t slices = 0;  // blocks that share a row, a cluster if they are several; 0: another way is to be taken
  int64_t lanes = 1, unroll = 1;
};

// Nothing if a block would have many bytes. Then more blocks that combine through global memory are sooner done. For GPUs that
// have clusters.
SharedRows share_long_rows(const LongRows& rows, int64_t multiprocessors);

}  // namespace fusebox
