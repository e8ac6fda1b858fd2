// How much of a row a thread keeps in registers.
//
//   // [384, 704] of f16 in vectors of 8, so 3 accesses of a warp: 3 warps with one each fit on the GPU at once
//   elements_of_thread({.rows = 384, .accesses = 3, .vector = 8, .bytes = 2, …}, h100)   →   {8, 16, 32, 32, 32}
#pragma once

#include <cstdint>
#include <vector>

#include "ir/module/device_properties.h"

namespace fusebox {

struct KeptRows {
  int64_t rows = 1;
  int64_t accesses = 1;     // of each lane, if one warp read a row
  int64_t vector = 1;       // elements of an access
  int64_t bytes = 4;        // that all inputs have for an element of a row
  int64_t row_bytes = 4;    // the same of inputs that differ from row to row
  int64_t kept_inputs = 0;  // bytes of an element that is kept as it was loaded; 0: what is made of it is kept
  int64_t loads = 1;        // inputs that differ from element to element of all rows
  int64_t cluster = 0;      // blocks that share a row; 0: none do
  bool are_few = false;     // too few rows to keep all multiprocessors busy
  bool has_moments = false, has_full_vectors = false, stores_rows = false;
  bool is_in_runs = false;  // a row lies in several runs, and its axes are merged
  bool ends_known = false;  // the launch checks how short a row may be, so only the last accesses are checked
};

// Numbers of elements of a row for each thread, the best one first. The caller takes the first one that a block holds.
std::vector<int64_t> elements_of_thread(const KeptRows& rows, const DeviceProperties& device);

// A block of several rows, each with a warp of its own or with a part of one.
struct ThreadsOfRows {
  int64_t lanes = 1;    // of a row
  int64_t threads = 1;  // of the block, at most
};
// For rows that are only read: `elements` by accesses of `vector`, and `bytes` in all.
ThreadsOfRows threads_of_read_rows(int64_t elements, int64_t vector, int64_t bytes, const DeviceProperties& device);

int64_t power_of_two_from(int64_t n);

}  // namespace fusebox
