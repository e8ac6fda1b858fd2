// Memory for a sequence of small programs, on a GPU that is simulated in this machine's memory.
#include "replay/device/cuda_arena.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

#include "tests/unit/replay/host_session.h"

namespace fusebox {
namespace {

using testing::HostSession;

constexpr int64_t kBytes = int64_t{1} << 20;

TEST(CudaArena, WhatIsHandedOutHoldsThePatternWhateverWasThere) {
  HostSession session;
  {
    CudaArena arena(session, kBytes);
    for (const int64_t bytes : {int64_t{1}, int64_t{255}, int64_t{100'000}, int64_t{3}}) {
      for (int program = 0; program < 2; ++program) {
        arena.begin();
        std::vector<uint8_t*> all;
        for (int i = 0; i < 3; ++i) {
          const CudaPointer p = arena.allocate(bytes);
          ASSERT_NE(p, 0u);
          EXPECT_EQ(p % 256, 0u);
          all.push_back(HostSession::pointer(p));
        }
        for (uint8_t* p : all) {
          EXPECT_TRUE(std::all_of(p, p + bytes, [](uint8_t b) { return b == kUnwrittenByte; }));
          std::memset(p, 0, static_cast<size_t>(bytes));
        }
        EXPECT_EQ(arena.strayed(), "");
      }
    }
  }
  EXPECT_TRUE(session.is_freed);
}

TEST(CudaArena, AStoreBesideATensorIsFound) {
  HostSession session;
  CudaArena arena(session, kBytes);
  arena.begin();
  uint8_t* const a = HostSession::pointer(arena.allocate(100));
  uint8_t* const b = HostSession::pointer(arena.allocate(8));
  a[100] = 0;
  EXPECT_EQ(arena.strayed(), "a byte was written 0 bytes behind the end of tensor 0 in memory, which has 100 bytes");
  a[100] = kUnwrittenByte;
  b[11] = 0;
  EXPECT_EQ(arena.strayed(), "a byte was written 3 bytes behind the end of tensor 1 in memory, which has 8 bytes");
  b[11] = kUnwrittenByte;
  a[-2] = 0;
  EXPECT_EQ(arena.strayed(), "a byte was written 2 bytes before the first tensor in memory");
  // The next program does not see it.
  arena.begin();
  EXPECT_EQ(arena.strayed(), "");
  arena.allocate(100);
  EXPECT_EQ(arena.strayed(), "");
}

TEST(CudaArena, WhatHasNoRoomIsRefused) {
  HostSession session;
  CudaArena arena(session, kBytes);
  arena.begin();
  EXPECT_EQ(arena.allocate(kBytes), 0u);
  EXPECT_NE(arena.allocate(kBytes / 2), 0u);
  EXPECT_EQ(arena.allocate(kBytes / 2), 0u);
  EXPECT_NE(arena.allocate(kBytes / 4), 0u);
  EXPECT_EQ(arena.strayed(), "");
}

}  // namespace
}  // namespace fusebox
