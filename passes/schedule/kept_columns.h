// Which blocks keep columns in registers. The kept axes lie innermost in memory, and a block reads a part of a line of each
// row, so that columns are shared by more blocks. Of [8192, 1024] in f32, softmax over columns took 457 µs on an H100 by
// blocks that read columns of whole lines again, and 34 to 38 so; of [4096, 512] in bf16 259 and 15.
//
//   // [8192, 64] of f32
//   keep_columns({.places = 8192, .columns = 64, .vector = 4, .bytes = 4}, {.load = 4, .kept = 4}, h100)
//     // {.vector = 4, .lanes = 4, .warps = 64, .chunks = 16, .cluster = 8, .blocks = 1}: 4 clusters of 8 blocks of 256 threads
#pragma once

#include <cstdint>
#include <optional>

#include "ir/module/device_properties.h"
#include "passes/schedule/long_columns.h"

namespace fusebox {

struct ColumnBytes {
  int64_t load = 1;  // of an element of the widest input
  int64_t kept = 1;  // that a thread keeps of an element
  // The same if it keeps what it loaded, and makes again what each pass needs of it. 0: it cannot.
  int64_t inputs = 0;
  int64_t once = 0;                     // that it keeps of a column beside its elements
  bool are_made_by_arithmetic = false;  // what is made again, without elementary functions
};

struct KeptColumns {
  int64_t vector = 1;   // elements of an access
  int64_t lanes = 1;    // threads that take neighbouring accesses of a row
  int64_t warps = 1;    // rows that a block takes at once
  int64_t chunks = 1;   // places of a column that a thread keeps
  int64_t cluster = 1;  // blocks that share columns
  int64_t blocks = 1;   // of a multiprocessor at once
  bool keeps_inputs = false;
};

// Nothing if no cluster holds a column. `columns.lanes` is not read. Inputs are kept where no block holds what is made of them,
// and where a multiprocessor then holds more of the blocks, so that some load or store while others exchange. On an H200, batch norm of [7007, 1584] in bf16 took 52.5 µs by
// one block of each multiprocessor, 40.2 by two that keep inputs, and 30.7 by four; of [16384, 4096] 255 by one, and 151 by
// two. If elementary functions are made again, this pays only for blocks that would be alone: softmax of [2048, 8192] took
// 43.5 µs by two blocks, and 50.1 by four that keep inputs; batch norm 51.8 and 41.7.
std::optional<KeptColumns> keep_columns(const Columns& columns, ColumnBytes bytes, const DeviceProperties& device);

// The lanes that read a part of a line of columns that no threads keep, so that half of the multiprocessors have blocks; 0 if
// they have not. `load`: the bytes of an element of the widest input.
int64_t lanes_of_narrow_columns(Columns columns, int64_t load, const DeviceProperties& device);

}  // namespace fusebox
