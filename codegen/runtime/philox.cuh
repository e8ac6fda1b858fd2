// Philox 4x32-10: a counter-based generator of random numbers (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). The same text is compiled here for a GPU and for the host executor.
//
// A seed is the key. A block has the number `block` (the low two words of its counter) and a stream (the third word); it
// gives four words of 32 bits.
//
//   exact::philox(0, 0, 0, 0) == 0x6627e8d5
#ifndef FUSEBOX_PHILOX_CUH
#define FUSEBOX_PHILOX_CUH

#include "elementary.cuh"

namespace exact {

// Mixes a counter of four words with a key, in ten rounds.
FUSEBOX_EXACT void philox_block(uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3, uint64_t key) {
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xd2511f53u) * c0, p1 = uint64_t(0xcd9e8d57u) * c2;
    const uint32_t n0 = uint32_t(p1 >> 32) ^ c1 ^ k0, n2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c1 = uint32_t(p1);
    c3 = uint32_t(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
}

// Word `element` mod 4 of block `offset` + `element` div 4. The numbers of blocks wrap.
FUSEBOX_EXACT uint32_t philox(uint64_t seed, uint64_t offset, int64_t element, uint32_t stream) {
  const uint64_t block = offset + uint64_t(element) / 4;
  uint32_t c0 = uint32_t(block), c1 = uint32_t(block >> 32), c2 = stream, c3 = 0;
  philox_block(c0, c1, c2, c3, seed);
  const uint32_t low = (element & 1) != 0 ? c1 : c0, high = (element & 1) != 0 ? c3 : c2;
  return (element & 2) != 0 ? high : low;
}

}  // namespace exact

#endif
