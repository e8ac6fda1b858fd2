#include "replay/cuda/captured_memory.h"

#include <gtest/gtest.h>
#include <vector>

namespace fusebox {
namespace {

TEST(CapturedMemory, GivesAPieceToOneGraphAtATime) {
  auto memory = std::make_shared<CapturedMemory>();
  std::vector<int64_t> allocated;
  const auto allocate = [&](int64_t bytes) {
    allocated.push_back(bytes);
    return CudaPointer{0x1000} * allocated.size();
  };
  auto a = memory->take(4, allocate), b = memory->take(256, allocate), c = memory->take(257, allocate);
  EXPECT_EQ(allocated, (std::vector<int64_t>{256, 256, 512}));
  EXPECT_NE(a->memory, b->memory);
  const CudaPointer of_a = a->memory, of_c = c->memory;
  a.reset();
  // Only a piece of the same size is used again, by one graph.
  auto d = memory->take(300, allocate), e = memory->take(8, allocate), f = memory->take(8, allocate);
  EXPECT_NE(d->memory, of_c);
  EXPECT_EQ(e->memory, of_a);
  EXPECT_NE(f->memory, of_a);
  EXPECT_NE(f->memory, b->memory);
  EXPECT_EQ(allocated.size(), 5u);
}

TEST(CapturedMemory, PiecesMayEndAfterTheirSession) {
  auto memory = std::make_shared<CapturedMemory>();
  auto piece = memory->take(1, [](int64_t) { return CudaPointer{0x1000}; });
  std::weak_ptr<CapturedMemory> left = memory;
  memory.reset();
  EXPECT_FALSE(left.expired());
  piece.reset();
  EXPECT_TRUE(left.expired());
}

TEST(CapturedMemory, GivesUpWhatNoGraphHas) {
  auto memory = std::make_shared<CapturedMemory>();
  CudaPointer next = 0;
  const auto allocate = [&](int64_t) { return next += 0x1000; };
  const auto kept = memory->take(1, allocate);
  memory->take(1, allocate).reset();
  memory->take(1000, allocate).reset();
  EXPECT_EQ(memory->give_up(), (std::vector<CudaPointer>{0x2000, 0x3000}));
  EXPECT_EQ(memory->give_up(), std::vector<CudaPointer>());
  EXPECT_EQ(memory->take(1, allocate)->memory, 0x4000u);
}

TEST(CapturedMemory, APieceThatIsNotAllocatedIsNone) {
  auto memory = std::make_shared<CapturedMemory>();
  EXPECT_THROW(memory->take(1, [](int64_t) -> CudaPointer { throw 1; }), int);
  EXPECT_EQ(memory->take(1, [](int64_t) { return CudaPointer{0x2000}; })->memory, 0x2000u);
}

}  // namespace
}  // namespace fusebox
