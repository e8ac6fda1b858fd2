// The sizes by which blocks and threads of reductions are chosen.
#pragma once

#include <cstdint>

#include "passes/schedule/size_classes.h"

namespace fusebox {

inline constexpr int64_t kUnroll = 4;          // accesses of a thread under way together
inline constexpr int64_t kLongUnroll = 8;      // the same where a pass reads one input only
inline constexpr int64_t kMostRounds = 4;      // of a thread over its part of a row, without other blocks for the rest
inline constexpr int64_t kBytesOfRound = 128;  // that a thread loads together, where its column takes one round
inline constexpr int64_t kBytesOfThread = 64;  // of a row that a thread loads into registers
inline constexpr int64_t kElementsOfWeights = 16;  // of a thread whose loads are of weights too, if rows allow them
// Of each thread of two warps, for a row that one warp takes in their place.
inline constexpr int64_t kElementsOfOneWarp = 16;
// Of a row by narrow accesses: where it is of 16-bit numbers and only read, or of several inputs and kept in a cluster.
inline constexpr int64_t kElementsOfNarrow = 16;
// Of a block where a GPU is not full, unless threads would keep too much.
inline constexpr int64_t kThreadsOfFewRows = 512;
// Of a thread, by narrow accesses, where all rows are on the GPU at once.
inline constexpr int64_t kElementsAtOnce = 16;
inline constexpr int64_t kLeastElements = 8;    // of a row, where a thread keeps sums of columns too
inline constexpr int64_t kMostRegisters = 255;  // of a thread
inline constexpr int64_t kManyElements = 32;    // for rows that would be too long otherwise
inline constexpr int64_t kOtherRegisters = 32;  // that a thread needs beside its part of a row
inline constexpr int64_t kBytesOfWork = 64;     // of registers more where a row changes in the registers that hold it
inline constexpr int64_t kThreadsOfShortRows = 128;  // of a block that takes several rows
inline constexpr int64_t kThreadsOfKeptRows = 256;   // the same where rows are kept in registers
// The same where they are stored nowhere, at least; the bytes that such a block loads, at least; and the elements that each
// thread may keep where half a warp has a row.
inline constexpr int64_t kThreadsOfReadRows = 64;
inline constexpr int64_t kBytesOfReadBlock = 2000;
inline constexpr int64_t kElementsOfHalfWarp = 16;
inline constexpr int64_t kThreadsOfSums = 512;  // the same where a row is read once
inline constexpr int64_t kStripThreads = 512;
// The same for rows of at least so many accesses that are no running moments.
inline constexpr int64_t kLongestStripThreads = 1024;
inline constexpr int64_t kManyAccesses = 16384;
inline constexpr int64_t kSlicedStripThreads = 256;  // of each block of several that share a row which is read once
inline constexpr int64_t kRegistersOfMoments = 64;   // of a thread that walks a row for its moments
inline constexpr int64_t kSharedStripThreads = 256;  // of each block of several that share a row
inline constexpr int64_t kSharedUnroll = 2;
// The only block of a multiprocessor has to ask for enough bytes at once, where it walks for long: on an H200, softmax of
// [1, 33554432] in bf16 took 139 µs by 256 threads and 79 by 1024, layer norm of [8, 400000] in f32 29.1 and 22.5.
inline int64_t threads_of_shared_strips(int64_t accesses, int64_t most) {
  constexpr int64_t kRounds = 4;
  int64_t threads = kSharedStripThreads;
  while (2 * threads <= most && accesses >= 2 * threads * kSharedUnroll * kRounds) threads *= 2;
  return threads;
}
inline constexpr int64_t kVectorOfColumns = 4;     // elements, each with a sum of its own
inline constexpr int64_t kMostBlocks = 32;         // of a multiprocessor
inline constexpr int64_t kThreadsOfColumns = 256;  // of a block whose threads take whole columns
inline constexpr int64_t kFewPlaces = 8;           // of a column: a thread takes all of them
inline constexpr int64_t kFewSinglePlaces = 16;    // the same where an access is one element
// Rows of columns that so few blocks hold, up to which no blocks wait for one another's results.
inline constexpr int64_t kShortColumn = 640;
inline constexpr int64_t kFewColumnBlocks = 8;
inline constexpr int64_t kWarpsOfColumns = 8;    // rows that a block takes at once where kept axes lie innermost
inline constexpr int64_t kThreadsOfWalks = 256;  // of a block whose threads sum columns too
inline constexpr int64_t kLeastWalk = 8;  // rows of such a thread: so the parts of a sum stay few beside its elements
inline constexpr int64_t kBlocksOfWalks = 4;  // of a multiprocessor, at most, that walk rows and wait for one another
inline constexpr int64_t kMostWalk = 32;      // rows that are summed without partial sums
inline constexpr int64_t kMostCheckedChunks = 8;  // of a lane's part of a row, each with a check of its own
// Elements of a row, by threads of a block, above which a GPU should not be left idle.
inline constexpr int64_t kLongRow = 8;
// Of a row that several blocks share and wait for one another's results.
inline constexpr int64_t kSharedAccesses = 12288;
inline constexpr int64_t kBlocksOfCluster = 8;
inline constexpr int64_t kWarpsOfCluster =
    8;  // of each of its blocks, so that a row's exchange takes no more than its loads
// The same where it keeps inputs: moments of [163, 48407] in f16 took 25.4 µs by blocks of three warps on an H100, and 16.3
// by twelve.
inline constexpr int64_t kLeastWarpsOfCluster = 4;
// Of a row that a cluster takes sooner than a block: accesses of each lane if one warp took it, and more elements than these.
inline constexpr int64_t kAccessesOfCluster = 44;
inline constexpr int64_t kWideRow = 3072;
inline constexpr int64_t kLeastHeld = 2;    // blocks of a multiprocessor: one loads while another exchanges
inline constexpr int64_t kWantedHeld = 4;   // the same of columns, where threads keep inputs alone
inline constexpr int64_t kSlicesOfRow = 4;  // by multiprocessors, for rows that are read once
inline constexpr int64_t kSlicesOfColumn = 12;
// Of a block where many others share its columns; so many are many; and the most such blocks of a multiprocessor.
inline constexpr int64_t kThreadsOfLongColumns = 512;
inline constexpr int64_t kManySlices = 64;
inline constexpr int64_t kFewSlices = 8;
inline constexpr int64_t kFewColumns = 64;  // of fewer columns, accesses are narrow so that every lane has one
inline constexpr int64_t kManyRounds = 32;  // of a block over a column
inline constexpr int64_t kMostHeldOfColumns = 4;
// Of blocks that share rows or columns and are not many: the lanes that read columns side by side, if they can, and at least;
// elements that they read so, at most, as each is exchanged in shared memory; bytes of a block, at most, and of one that reads
// parts of sectors.
inline constexpr int64_t kLanesSideBySide = 16;
inline constexpr int64_t kLeastLanesSideBySide = 4;
inline constexpr int64_t kElementsSideBySide = 64;
inline constexpr int64_t kBytesOfSharedBlock = 160 << 10;
inline constexpr int64_t kBytesOfPartOfSectors = 32 << 10;
// Loads of each thread of such a block up to which it has 256 threads, and not 512.
inline constexpr int64_t kMostLoadsOfColumns = 24;
inline constexpr int64_t kMostLoadsOfRows = 12;
inline constexpr int64_t kBytesOfLoads = 256;  // of a thread, under way together
// Of few columns that all multiprocessors share: groups of them that blocks read side by side, and bytes of a block, at most.
inline constexpr int64_t kGroupsOfFewColumns = 4;
inline constexpr int64_t kBytesOfFewColumns = 64 << 10;
// The loads of a round, `few` or twice as many, that leave the fewest of its last one idle. Fewer if a load has many bytes.
inline int64_t loads_of_round(int64_t loads, int64_t few, int64_t bytes) {
  int64_t result = ceil_div(loads, few) % 2 == 1 ? few : 2 * few;
  while (result > 1 && result * bytes > kBytesOfLoads) result /= 2;
  return result;
}
// Of a line of the L2 cache; of an access that leaves most registers free; and blocks of each multiprocessor that are many.
inline constexpr int64_t kBytesOfLine = 128;
inline constexpr int64_t kNarrowBytes = 4;
inline constexpr int64_t kNarrowestBytes = 2;
inline constexpr int64_t kNarrowestUnroll = 16;     // accesses of so few bytes, of a thread under way together
inline constexpr int64_t kNarrowestRegisters = 64;  // of such a thread
inline constexpr int64_t kManyHeldOfColumns = 8;
// Of columns in registers: the bytes that a block reads side by side, at least; places of a column and elements that a thread
// keeps, and its registers, at most.
inline constexpr int64_t kBytesOfSector = 32;
inline constexpr int64_t kPlacesOfColumn = 16;
inline constexpr int64_t kElementsOfColumns = 64;
inline constexpr int64_t kRegistersOfColumns = 128;
inline constexpr int64_t kNarrowThreads = 1536;  // of a multiprocessor, which leave a thread 40 registers
// Of a row with parts: elements that a thread keeps, unless it is of the largest block, and its registers for them.
inline constexpr int64_t kElementsOfParts = 16;
inline constexpr int64_t kRegistersOfParts = 32;

}  // namespace fusebox
