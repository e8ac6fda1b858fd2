#include "replay/host/shadow.h"

#include <bit>

namespace fusebox::host {

namespace {

// The thread of granule k is me + (k >> shift).
template <int shift>
bool read_all(const int32_t* __restrict writers, int32_t* __restrict readers, int32_t me, int32_t count,
              const Clock& clock) {
  const Clock c = clock;
  int32_t good = 1;
  for (int32_t k = 0; k < count; ++k) {
    const int32_t w = writers[k], thread = me + (k >> shift);
    good &= holds_value(w, c) & may_read(w, thread, c);
    readers[k] = after_read(readers[k], thread, c);
  }
  return good != 0;
}

template <int shift>
bool write_all(int32_t* __restrict writers, const int32_t* __restrict readers, int32_t me, int32_t count,
               const Clock& clock) {
  const Clock c = clock;
  int32_t good = 1;
  for (int32_t k = 0; k < count; ++k)
    good &= may_read(writers[k], me + (k >> shift), c) & may_write_after_reads(readers[k], me + (k >> shift), c);
  if (good == 0) return false;
  for (int32_t k = 0; k < count; ++k) writers[k] = me + (k >> shift);
  return true;
}

}  // namespace

bool read_consecutive(const int32_t* writers, int32_t* readers, int32_t me, int32_t count, const Clock& c,
                      int32_t width) {
  static constexpr decltype(&read_all<0>) kByWidth[] = {read_all<0>, read_all<1>, read_all<2>, read_all<3>,
                                                        read_all<4>};
  return kByWidth[std::countr_zero(static_cast<uint32_t>(width))](writers, readers, me, count * width, c);
}

bool write_consecutive(int32_t* writers, const int32_t* readers, int32_t me, int32_t count, const Clock& c,
                       int32_t width) {
  static constexpr decltype(&write_all<0>) kByWidth[] = {write_all<0>, write_all<1>, write_all<2>, write_all<3>,
                                                         write_all<4>};
  return kByWidth[std::countr_zero(static_cast<uint32_t>(width))](writers, readers, me, count * width, c);
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
