// Exchange between threads on a GPU: block and grid reductions over every set of coordinates, barriers, copies.
#include <numeric>

#include "ir/scalar/numeric.h"
#include "tests/support/gpu.h"
#include "tests/support/kernel_cases.h"

namespace fusebox {
namespace {

using testing::KernelWriter;

class CollectivesOnGpu : public testing::GpuTest {
 protected:
  using Extents = std::array<int64_t, 3>;

  // The coordinates of a thread of the grid, with block x fastest: block x, y, z, grid x, y, z.
  static std::array<int64_t, 6> coordinates(int64_t thread, const Extents& block, const Extents& grid) {
    std::array<int64_t, 6> c{};
    for (size_t i = 0; i < 6; ++i) {
      const int64_t extent = i < 3 ? block[i] : grid[i - 3];
      c[i] = thread % extent;
      thread /= extent;
    }
    return c;
  }

  // out[t] = the sum (or welford triple) of the values of threads that are no multiple of 5, over the coordinates in
  // `threads` (bit i: coordinate i). Does it twice, to check that the workspace can be reused. Across blocks, without
  // `all`, each group has the result in its last block alone, and out is what it was in the others.
  // `width`: groups of so many lanes combine their values without memory; `threads` must then name the same groups.
  void check(int threads, const Extents& block, const Extents& grid, bool all, bool is_welford, int64_t width = 0) {
    const bool is_grid = (threads >> 3) != 0;
    const int64_t block_size = block[0] * block[1] * block[2], blocks = grid[0] * grid[1] * grid[2];
    const int64_t count = block_size * blocks;
    Graph g;
    KernelWriter k(g);
    const Dtype dtype = is_welford ? Dtype::kDouble : Dtype::kInt64;
    const ValueId x = k.tensor_input(dtype, "x");
    std::vector<Dtype> dtypes = {dtype};
    if (is_welford) dtypes = {dtype, dtype, Dtype::kInt64};
    std::vector<ValueId> out, parts, workspaces;
    for (const Dtype d : dtypes) out.push_back(k.tensor_input(d, ""));
    // Without a barrier, a second reduction needs a workspace of its own.
    for (size_t i = 0; is_grid && i < 2 * dtypes.size(); ++i)
      parts.push_back(k.tensor_input(dtypes[i % dtypes.size()], ""));
    const ValueId arrivals = k.tensor_input(Dtype::kUint32, "arrivals"),
                  counters = k.tensor_input(Dtype::kUint32, "counters");
    const auto linear = [&](ParallelType px) {
      const auto at = [&](int axis) { return static_cast<ParallelType>(static_cast<int>(px) + axis); };
      ValueId v = k.thread(OpKind::kThreadIndex, at(2));
      for (int axis = 1; axis >= 0; --axis) {
        v = k.op(OpKind::kMul, {v, k.thread(OpKind::kThreadCount, at(axis))}, Dtype::kIndex);
        v = k.op(OpKind::kAdd, {v, k.thread(OpKind::kThreadIndex, at(axis))}, Dtype::kIndex);
      }
      return v;
    };
    const ValueId base = k.op(OpKind::kMul, {linear(ParallelType::kGridX), k.index(block_size)}, Dtype::kIndex);
    const ValueId t = k.op(OpKind::kAdd, {base, linear(ParallelType::kBlockX)}, Dtype::kIndex);
    int64_t offset = 0;
    for (const Dtype d : dtypes) {
      workspaces.push_back(k.allocate(d, MemoryType::kShared, k.index(2 * block_size), k.index(offset)));
      offset += block_size * 16;
    }
    const ValueId rest = k.op(OpKind::kMod, {t, k.index(5)}, Dtype::kIndex);
    const ValueId takes_part = k.op(OpKind::kNe, {rest, k.index(0)}, Dtype::kBool);
    const ValueId zero = constant(g, dtype, {}), whole_zero = constant(g, Dtype::kInt64, {});
    const ValueId one = constant(g, Dtype::kInt64, from_int64(Dtype::kInt64, 1));
    std::vector<ValueId> values = {k.load(x, t)}, init = {zero};
    if (is_welford) values = {values[0], zero, one}, init = {zero, zero, whole_zero};
    Attrs attrs;
    attrs.set_enum(AttrKey::kReduceOp, is_welford ? ReduceOp::kWelford : ReduceOp::kSum);
    std::vector<int64_t> wire;
    for (int i = 0; i < 6; ++i)
      if (threads >> i & 1)
        wire.push_back(static_cast<int64_t>(i < 3 ? ParallelType::kBlockX : ParallelType::kGridX) + i % 3);
    std::sort(wire.begin(), wire.end());
    attrs.set(AttrKey::kThreads, wire);
    if (all) attrs.set_flag(AttrKey::kAll);
    std::vector<ValueId> arrays;
    for (const Dtype d : dtypes)
      if (is_grid) arrays.push_back(k.allocate(d, MemoryType::kLocal, k.index(2)));
    for (int64_t round = 0; round < 2; ++round) {
      std::vector<ValueId> operands = is_grid ? arrays : values;
      if (is_grid) {
        for (size_t i = 0; i < arrays.size(); ++i) {
          const ValueId v = k.op(OpKind::kWhere, {takes_part, values[i], init[i]}, dtypes[i]);
          for (int64_t e = 0; e < 2; ++e) k.store(arrays[i], k.index(e), e == 1 ? v : init[i]);
        }
        const auto first = parts.begin() + (all ? 0 : round * static_cast<int64_t>(dtypes.size()));
        operands.insert(operands.end(), first, first + static_cast<int64_t>(dtypes.size()));
        operands.insert(operands.end(), workspaces.begin(), workspaces.end());
        operands.push_back(arrivals);
        operands.push_back(all ? counters : ValueId());
        attrs.set(AttrKey::kSlot, all ? 0 : round);
        const ValueId has_result = k.many(OpKind::kGridReduce, operands, {Dtype::kBool}, attrs)[0];
        for (size_t i = 0; i < out.size() && round == 1; ++i)
          k.effect(OpKind::kStore, {out[i], t, k.load(arrays[i], k.index(1)), has_result});
        continue;
      }
      if (width > 0) {
        Attrs by_lanes;
        by_lanes.set_enum(AttrKey::kReduceOp, attrs.enumerator<ReduceOp>(AttrKey::kReduceOp));
        by_lanes.set(AttrKey::kWidth, width);
        for (size_t i = 0; i < operands.size(); ++i)
          operands[i] = k.op(OpKind::kWhere, {takes_part, operands[i], init[i]}, dtypes[i]);
        const auto results = k.many(OpKind::kWarpReduce, operands, dtypes, by_lanes);
        for (size_t i = 0; i < results.size() && round == 1; ++i) k.store(out[i], t, results[i]);
        continue;
      }
      operands.insert(operands.end(), init.begin(), init.end());
      operands.insert(operands.end(), workspaces.begin(), workspaces.end());
      operands.insert(operands.end(), {takes_part, ValueId()});
      const auto results = k.many(OpKind::kBlockReduce, operands, dtypes, attrs);
      for (size_t i = 0; i < results.size() && round == 1; ++i) k.store(out[i], t, results[i]);
    }

    std::vector<int64_t> values_whole(static_cast<size_t>(count));
    std::vector<double> values_real(static_cast<size_t>(count));
    for (size_t i = 0; i < values_whole.size(); ++i)
      values_whole[i] = static_cast<int64_t>(i * i % 1013),
      values_real[i] = 0.25 * static_cast<double>(values_whole[i]);
    std::vector<uint64_t> arguments = {is_welford ? upload(values_real) : upload(values_whole)};
    const int64_t kNone = int64_t{0x7ff8} << 48;  // a NaN
    for (size_t i = 0; i < dtypes.size(); ++i)
      arguments.push_back(upload(std::vector<int64_t>(static_cast<size_t>(count), kNone)));
    for (size_t i = 0; i < parts.size(); ++i)
      arguments.push_back(upload(std::vector<int64_t>(static_cast<size_t>(4 * count))));
    arguments.push_back(upload(std::vector<uint32_t>(static_cast<size_t>(2 * blocks))));
    arguments.push_back(upload(std::vector<uint32_t>(4)));
    run(g, {.grid = grid, .block = block, .shared_bytes = offset, .is_cooperative = is_grid && all}, arguments);

    const auto first = download<int64_t>(arguments[1], values_whole.size());
    const auto mean = download<double>(arguments[1], values_whole.size());
    const auto m2 = download<double>(arguments[is_welford ? 2 : 1], values_whole.size());
    const auto n = download<int64_t>(arguments[is_welford ? 3 : 1], values_whole.size());
    // The sums, squares and counts of each group, keyed by the kept coordinates.
    std::map<std::array<int64_t, 6>, std::array<double, 3>> groups;
    const auto key = [&](int64_t thread) {
      auto c = coordinates(thread, block, grid);
      for (size_t i = 0; i < 6; ++i)
        if (threads >> i & 1) c[i] = 0;
      return c;
    };
    for (int64_t i = 0; i < count; ++i) {
      auto& sums = groups[key(i)];
      if (i % 5 == 0) continue;
      const double v =
          is_welford ? values_real[static_cast<size_t>(i)] : static_cast<double>(values_whole[static_cast<size_t>(i)]);
      sums[0] += v, sums[1] += v * v, sums[2] += 1;
    }
    std::map<std::array<int64_t, 6>, int64_t> holders;
    for (int64_t i = 0; i < count; ++i) {
      if (is_grid && !all) {
        if (first[static_cast<size_t>(i)] == kNone) continue;
        ++holders[key(i)];
      } else if (!all && coordinates(i, block, grid) != key(i)) {
        continue;
      }
      const auto& sums = groups[key(i)];
      const size_t at = static_cast<size_t>(i);
      if (!is_welford) {
        ASSERT_EQ(first[at], static_cast<int64_t>(sums[0])) << "thread " << i << " coordinates " << threads;
      } else {
        const double average = sums[2] == 0 ? 0 : sums[0] / sums[2];
        ASSERT_NEAR(mean[at], average, 1e-9) << "thread " << i << " coordinates " << threads;
        ASSERT_NEAR(m2[at], sums[1] - sums[0] * average, 1e-6 * (1 + sums[1]));
        ASSERT_EQ(static_cast<double>(n[at]), sums[2]);
      }
    }
    // In the last block of each group, every thread has the result.
    if (!is_grid || all) return;
    int64_t sharing = 1;
    for (size_t i = 0; i < 3; ++i)
      if (threads >> i & 1) sharing *= block[i];
    ASSERT_EQ(holders.size(), groups.size());
    for (const auto& [group, held] : holders) ASSERT_EQ(held, sharing);
  }
};

TEST_F(CollectivesOnGpu, BlockReductionsOverEveryCoordinate) {
  for (int threads = 1; threads < 8; ++threads)
    for (const Extents& block : {Extents{1, 1, 1}, Extents{32, 2, 3}, Extents{5, 7, 3}, Extents{96, 3, 1},
                                 Extents{1, 33, 2}, Extents{1024, 1, 1}})
      check(threads, block, {2, 1, 3}, threads % 2 == 0, false);
}

TEST_F(CollectivesOnGpu, GridReductionsOverCoordinates) {
  for (const int threads : {8, 9, 15, 16 + 2, 63, 32 + 8 + 1, 56})
    for (const bool all : {false, true})
      for (const Extents& block : {Extents{1, 1, 1}, Extents{32, 2, 2}, Extents{5, 3, 1}, Extents{64, 2, 1}})
        check(threads, block, {3, 2, 4}, all, false);
}

// Rows of part of a warp, several in each.
TEST_F(CollectivesOnGpu, LanesOfAWarp) {
  for (const bool is_welford : {false, true})
    for (const int64_t lanes : {1, 2, 4, 8, 16, 32}) {
      check(1, {lanes, 32, 1}, {2, 1, 1}, true, is_welford, lanes);
      check(1 + 2, {lanes, 1, 32}, {2, 1, 1}, true, is_welford, lanes);
    }
}

// Fewer threads than blocks combine the blocks' results.
TEST_F(CollectivesOnGpu, GridReductionsOfManyBlocks) {
  for (const bool all : {false, true}) {
    check(8, {1, 1, 1}, {301, 1, 1}, all, false);
    check(8 + 1, {3, 2, 1}, {67, 2, 1}, all, false);
    check(8, {2, 1, 1}, {129, 1, 2}, all, true);
  }
}

// Parts of equal sign, so that rounding errors add up: a sum in sequence would be off by over 100 roundings.
TEST_F(CollectivesOnGpu, SumsOfManyBlocksKeepTheirDigits) {
  constexpr int64_t kBlocks = 1000;
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x"), y = k.tensor_input(Dtype::kFloat, "y"),
                parts = k.tensor_input(Dtype::kFloat, "w"), arrivals = k.tensor_input(Dtype::kUint32, "arrivals"),
                counters = k.tensor_input(Dtype::kUint32, "counters");
  const ValueId block = k.thread(OpKind::kThreadIndex, ParallelType::kGridX);
  const ValueId array = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(1));
  k.store(array, k.index(0), k.load(x, block));
  Attrs attrs;
  attrs.set_enum(AttrKey::kReduceOp, ReduceOp::kSum);
  attrs.set(AttrKey::kThreads, std::vector<int64_t>{static_cast<int64_t>(ParallelType::kGridX)});
  attrs.set_flag(AttrKey::kAll);
  k.many(OpKind::kGridReduce, {array, parts, parts, arrivals, counters}, {Dtype::kBool}, attrs);
  k.store(y, block, k.load(array, k.index(0)));
  const std::vector<float> values(kBlocks, 0.49f);
  const std::vector<uint64_t> arguments = {upload(values), upload(values), upload(std::vector<float>(kBlocks + 1)),
                                           upload(std::vector<uint32_t>(kBlocks)), upload(std::vector<uint32_t>(4))};
  run(g, {.grid = {kBlocks, 1, 1}, .block = {1, 1, 1}, .is_cooperative = true}, arguments);
  const double exact = kBlocks * static_cast<double>(0.49f);
  for (const float sum : download<float>(arguments[1], kBlocks))
    ASSERT_NEAR(static_cast<double>(sum), exact, exact * 12 * 0x1p-24);
}

TEST_F(CollectivesOnGpu, Welford) {
  check(1, {128, 2, 1}, {2, 1, 1}, true, true);
  check(3, {7, 5, 2}, {2, 1, 1}, false, true);
  check(8 + 1, {64, 2, 1}, {5, 2, 1}, true, true);
  check(8, {64, 1, 1}, {5, 2, 1}, false, true);
}

// In each round, a thread adds 1 to the value that another thread of the grid wrote in the round before.
TEST_F(CollectivesOnGpu, GridBarrierInALoop) {
  constexpr int64_t kThreads = 64 * 24, kRounds = 50;
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kInt64, "x"), counters = k.tensor_input(Dtype::kUint32, "counters");
  const ValueId t = k.global_thread();
  ValueId round;
  k.begin_for(k.index(0), k.index(kRounds), k.index(1), round);
  const ValueId row = k.op(OpKind::kMul, {round, k.index(kThreads)}, Dtype::kIndex);
  const ValueId other =
      k.op(OpKind::kMod, {k.op(OpKind::kAdd, {t, k.index(777)}, Dtype::kIndex), k.index(kThreads)}, Dtype::kIndex);
  const ValueId before = k.load(x, k.op(OpKind::kAdd, {row, other}, Dtype::kIndex));
  const ValueId one = constant(g, Dtype::kInt64, from_int64(Dtype::kInt64, 1));
  const ValueId next_row = k.op(OpKind::kAdd, {row, k.index(kThreads)}, Dtype::kIndex);
  k.store(x, k.op(OpKind::kAdd, {next_row, t}, Dtype::kIndex), k.op(OpKind::kAdd, {before, one}, Dtype::kInt64));
  Attrs slot;
  slot.set(AttrKey::kSlot, int64_t{1});
  k.effect(OpKind::kGridBarrier, {counters}, slot);
  const uint64_t data = upload(std::vector<int64_t>(kThreads * (kRounds + 1)));
  run(g, {.grid = {24, 1, 1}, .block = {64, 1, 1}, .is_cooperative = true}, {data, upload(std::vector<uint32_t>(2))});
  const auto got = download<int64_t>(data, kThreads * (kRounds + 1));
  for (int64_t i = 0; i < kThreads; ++i) ASSERT_EQ(got[static_cast<size_t>(kThreads * kRounds + i)], kRounds);
}

TEST_F(CollectivesOnGpu, VectorCopiesOfEveryWidthAndCacheOperator) {
  for (const CacheOp cache : {CacheOp::kUnspecified, CacheOp::kAllLevels, CacheOp::kStreaming, CacheOp::kGlobal}) {
    for (const Dtype dtype : {Dtype::kUint8, Dtype::kBfloat16, Dtype::kFloat, Dtype::kComplexDouble}) {
      for (int64_t width = 1; width * size_bytes(dtype) <= 16; width *= 2) {
        // Global to local, local to shared, shared to global. Skips the first of two vectors of a thread.
        Graph g;
        KernelWriter k(g);
        const ValueId x = k.tensor_input(dtype, "x"), y = k.tensor_input(dtype, "y");
        const ValueId t = k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);
        const ValueId local = k.allocate(dtype, MemoryType::kLocal, k.index(width));
        const ValueId shared = k.allocate(dtype, MemoryType::kShared, k.index(32 * width), k.index(16));
        const ValueId at = k.op(OpKind::kMul, {t, k.index(width)}, Dtype::kIndex);
        const ValueId p = k.op(OpKind::kGt, {t, k.index(0)}, Dtype::kBool);
        Attrs attrs;
        attrs.set(AttrKey::kWidth, width);
        attrs.set_enum(AttrKey::kCacheOp, cache);
        k.effect(OpKind::kCopy, {local, k.index(0), x, at, {}}, attrs);
        k.effect(OpKind::kCopy, {shared, at, local, k.index(0), {}}, attrs);
        k.effect(OpKind::kBarrier, {});
        k.effect(OpKind::kCopy, {y, at, shared, at, p}, attrs);
        const size_t bytes = static_cast<size_t>(32 * width * size_bytes(dtype)), skipped = bytes / 32;
        std::vector<uint8_t> values(bytes);
        std::iota(values.begin(), values.end(), uint8_t{1});
        const uint64_t to = upload(std::vector<uint8_t>(bytes));
        run(g, {.block = {32, 1, 1}, .shared_bytes = static_cast<int64_t>(bytes) + 16}, {upload(values), to});
        std::fill_n(values.begin(), skipped, uint8_t{0});
        ASSERT_EQ(download<uint8_t>(to, bytes), values) << text(dtype) << " width " << width;
      }
    }
  }
}

TEST_F(CollectivesOnGpu, LaunchesBeyondTheDeviceAreRefused) {
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x");
  k.store(x, k.index(0), constant(g, Dtype::kFloat, {}));
  const uint64_t p = upload(std::vector<float>(1));
  const auto code = [&](const Launch& launch) {
    try {
      run(g, launch, {p});
    } catch (const Error& e) {
      return e.code;
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code({.block = {2048, 1, 1}}), ErrorCode::kLaunchLimit);
  EXPECT_EQ(code({.block = {32, 1, 128}}), ErrorCode::kLaunchLimit);
  EXPECT_EQ(code({.grid = {1, 65536, 1}}), ErrorCode::kLaunchLimit);
  EXPECT_EQ(code({.shared_bytes = int64_t{1} << 30}), ErrorCode::kLaunchLimit);
  EXPECT_EQ(code({.grid = {1 << 20, 1, 1}, .block = {1024, 1, 1}, .is_cooperative = true}), ErrorCode::kLaunchLimit);
  EXPECT_EQ(code({.shared_bytes = 100 * 1024}), ErrorCode::kInternal);  // allowed by the opt-in
}

}  // namespace
}  // namespace fusebox
