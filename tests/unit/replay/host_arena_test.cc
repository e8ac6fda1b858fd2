#include <cstring>
#include <gtest/gtest.h>

#include "replay/host/machine.h"

namespace fusebox::host {
namespace {

// Pieces are aligned, disjoint and inside the allocation. The allocator's checks and AddressSanitizer verify that.
TEST(Arena, PiecesFitTheirChunk) {
  for (const size_t bytes : {size_t{1}, size_t{64}, (size_t{1} << 16) - 64, size_t{1} << 16, (size_t{1} << 16) + 1}) {
    Arena arena;
    for (int round = 0; round < 3; ++round) {
      std::byte* last = nullptr;
      for (int i = 0; i < 4; ++i) {
        std::byte* piece = arena.take(bytes);
        ASSERT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0u);
        std::memset(piece, i + 1, bytes);
        if (last) {
          ASSERT_EQ(last[bytes - 1], std::byte(i));
        }
        last = piece;
      }
      arena.clear();
    }
  }
}

}  // namespace
}  // namespace fusebox::host
