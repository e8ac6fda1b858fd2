// Memory for a sequence of small programs, on a GPU that is simulated in this machine's memory.
#include "replay/device/cuda_arena.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

namespace fusebox {
namespace {

// Allocates, copies and fills, but runs nothing.
class HostSession : public CudaSession {
 public:
  const CudaDevice& device() const override { return device_; }
  CudaPointer allocate(int64_t bytes) override {
    memory_.assign(static_cast<size_t>(bytes) + 256, 0x11);
    return (address(memory_.data()) + 255) / 256 * 256;
  }
  void free(CudaPointer) override { is_freed = true; }
  void copy_to_device(CudaPointer to, const void* from, int64_t bytes, CudaStream) override {
    std::memcpy(pointer(to), from, static_cast<size_t>(bytes));
  }
  void copy_to_host(void* to, CudaPointer from, int64_t bytes, CudaStream) override {
    std::memcpy(to, pointer(from), static_cast<size_t>(bytes));
  }
  void copy_on_device(CudaPointer to, CudaPointer from, int64_t bytes, CudaStream) override {
    std::memcpy(pointer(to), pointer(from), static_cast<size_t>(bytes));
  }
  void fill(CudaPointer to, uint8_t byte, int64_t bytes, CudaStream) override {
    if (bytes > 0) std::memset(pointer(to), byte, static_cast<size_t>(bytes));
  }
  std::vector<CudaKernel> load_all(std::string_view, std::span<const std::string>) override { return {}; }
  void unload(const CudaKernel&) override {}
  int64_t resident_blocks(const CudaKernel&, int64_t, int64_t) override { return 0; }
  void launch(const CudaKernel&, const CudaLaunch&) override {}
  CudaStream create_stream() override { return nullptr; }
  void destroy_stream(CudaStream) override {}
  void synchronize(CudaStream) override {}
  void synchronize() override {}
  CudaEvent create_event() override { return nullptr; }
  void destroy_event(CudaEvent) override {}
  void record(CudaEvent, CudaStream) override {}
  void wait(CudaStream, CudaEvent) override {}
  double elapsed_us(CudaEvent, CudaEvent) override { return 0; }

  static uint8_t* pointer(CudaPointer p) { return reinterpret_cast<uint8_t*>(p); }
  static CudaPointer address(const void* p) { return reinterpret_cast<CudaPointer>(p); }
  bool is_freed = false;

 private:
  CudaDevice device_;
  std::vector<uint8_t> memory_;
};

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
