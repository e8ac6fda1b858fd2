// Shadow memory: the last writer and the last reader of every granule (smallest element) of memory that a kernel
// stores to.
//
// Time is an epoch, which grows at every barrier and at every start of a block. Accesses of one epoch are unordered. A
// word is epoch·2^12 + flag·2^11 + thread. Words are positive, so that signed compares work, which every vector unit
// has.
// - A writer word of 0 was never written. Epoch 1 is "before the launch". The flag says that the contents have lost
//   their meaning (an allocation began there, or a collective used the memory).
// - A reader word's thread is kManyThreads if several threads read in that epoch. The flag says that another block read
//   in this phase. A phase is the time between two synchronisations of the grid.
// An access is ordered after an earlier one that is of an earlier phase, or of the same block and an earlier epoch, or
// of the same thread, or of the same cluster of blocks before the last wait of the cluster.
//
//   thread 5 stores in epoch 7:        writer = 7·4096 + 5
//   then thread 6 reads in epoch 7:    not ordered, a race
//   then thread 6 reads in epoch 8:    ordered, no race
#pragma once

#include <cstdint>

namespace fusebox::host {

inline constexpr int32_t kEpochShift = 12;
inline constexpr int32_t kFlag = 1 << 11;
inline constexpr int32_t kThreadMask = kFlag - 1;
inline constexpr int32_t kManyThreads = 1024;
inline constexpr int32_t kMaxEpoch = (1 << 19) - 2;
inline constexpr int32_t kBeforeLaunch = 1 << kEpochShift;

// The thresholds of one block at one time, as words.
struct Clock {
  int32_t first = kBeforeLaunch;  // writers below it have stored nothing
  int32_t phase_start = 0;        // accesses below it are of an earlier phase; 0 if only this block has access
  int32_t block_start = 0;        // accesses from phase_start to here are of other blocks
  int32_t now = 0;
  int32_t lost = kFlag;       // 0: flags of lost meaning do not count
  int32_t cluster_start = 0;  // accesses from here to cluster_wait are of this block's cluster, before its last wait
  int32_t cluster_wait = 0;
};

// These return 0 or 1 without a branch, so that loops over them become vectors.
inline int32_t is_before_wait(int32_t word, const Clock& c) {
  return int32_t{word >= c.cluster_start} & int32_t{word < c.cluster_wait};
}
inline int32_t is_ordered(int32_t word, int32_t me, const Clock& c) {
  return int32_t{word < c.phase_start} | is_before_wait(word, c) |
         (int32_t{word >= c.block_start} & (int32_t{word < c.now} | int32_t{word == me}));
}
inline int32_t holds_value(int32_t writer, const Clock& c) {
  return int32_t{(writer & c.lost) == 0} & int32_t{writer >= c.first};
}
inline int32_t may_read(int32_t writer, int32_t me, const Clock& c) { return is_ordered(writer & ~kFlag, me, c); }
inline int32_t may_write_after_reads(int32_t reader, int32_t me, const Clock& c) {
  return int32_t{reader < c.phase_start} | (int32_t{(reader & kFlag) == 0} & is_ordered(reader, me, c));
}
// The reader word after a read by `me`. If several threads read, `me` is now + kManyThreads.
inline int32_t after_read(int32_t reader, int32_t me, const Clock& c) {
  const int32_t is_foreign =
      int32_t{reader >= c.phase_start} &
      ((int32_t{reader < c.block_start} & ~is_before_wait(reader, c)) | int32_t{(reader & kFlag) != 0});
  const int32_t is_shared = int32_t{reader >= c.now} & int32_t{(reader & ~kFlag) != me};
  return (is_shared != 0 ? c.now + kManyThreads : me) | (is_foreign != 0 ? kFlag : 0);
}

// Checks and records accesses to consecutive granules, `width` for each of `count` consecutive threads, the first of
// which is `me`. Returns false if an access breaks a rule; the changes made so far then do not matter.
bool read_consecutive(const int32_t* writers, int32_t* readers, int32_t me, int32_t count, const Clock& c,
                      int32_t width = 1);
bool write_consecutive(int32_t* writers, const int32_t* readers, int32_t me, int32_t count, const Clock& c,
                       int32_t width = 1);

// Makes room for later epochs. Words of earlier phases become kBeforeLaunch, words of other blocks epoch 2, of this
// block's earlier epochs 3, and of now 4. `is_own`: only this block has the memory, and words below `first` hold
// nothing.
void renumber(int32_t* words, int64_t count, const Clock& c, bool is_own);
inline constexpr int32_t kRenumberedNow = 4;

}  // namespace fusebox::host
