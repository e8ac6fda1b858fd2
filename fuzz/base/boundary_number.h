// Numbers at which readers of bytes go wrong: 0, powers of two, the largest ones, and sizes near that of the whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fusebox::fuzz {

// `random` has `below(count)` and `next()`.
template <class Random>
uint64_t boundary_number(Random& random, size_t size) {
  switch (random.below(8)) {
    case 0:
      return 0;
    case 1:
      return ~uint64_t{0};
    case 2:
      return uint64_t{1} << random.below(64);
    case 3:
      return size - random.below(std::min<size_t>(size, 16) + 1);
    case 4:
      return random.below(512);
    case 5:
      return 0x7fffffffu - random.below(8);
    case 6:
      return 0x80000000u + random.below(8);
    default:
      return random.next();
  }
}

}  // namespace fusebox::fuzz
