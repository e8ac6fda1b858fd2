#include "replay/host/shadow.h"

namespace fusebox::host {

bool read_consecutive(const int32_t* __restrict writers, int32_t* __restrict readers, int32_t me, int32_t count, const Clock& clock) {
  const Clock c = clock;
  int32_t good = 1;
  for (int32_t k = 0; k < count; ++k) {
    const int32_t w = writers[k];
    good &= holds_value(w, c) & may_read(w, me + k, c);
    readers[k] = after_read(readers[k], me + k, c);
  }
  return good != 0;
}

bool write_consecutive(int32_t* __restrict writers, const int32_t* __restrict readers, int32_t me, int32_t count, const Clock& clock) {
  const Clock c = clock;
  int32_t good = 1;
  for (int32_t k = 0; k < count; ++k)
    good &= may_read(writers[k], me + k, c) & may_write_after_reads(readers[k], me + k, c);
  if (good == 0) return false;
  for (int32_t k = 0; k < count; ++k) writers[k] = me + k;
  return true;
}

void renumber(int32_t* words, int64_t count, const Clock& c, bool is_own) {
  const auto epoch = [](int32_t e, int32_t word) { return (e << kEpochShift) | (word & (kFlag | kThreadMask)); };
  for (int64_t k = 0; k < count; ++k) {
    const int32_t w = words[k];
    if (w == 0) continue;
    if (is_own && w < c.first)
      words[k] = 0;
    else if (!is_own && w < c.phase_start)
      words[k] = epoch(1, w & kFlag);
    else if (!is_own && w < c.block_start)
      words[k] = epoch(2, w);
    else
      words[k] = epoch(w < c.now ? 3 : kRenumberedNow, w);
  }
}

}  // namespace fusebox::host
