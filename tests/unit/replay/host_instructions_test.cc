// Each instruction of the host executor, on kernels built by hand.
#include <algorithm>
#include <functional>
#include <numeric>

#include "codegen/runtime/philox.cuh"
#include "tests/unit/replay/host_runner.h"

namespace fusebox {
namespace {

using testing::expect_clean;
using testing::HostKernel;

// -- threads
TEST(HostInstructions, ThreadIndicesAndCounts) {
  HostKernel k;
  const ValueId y = k.output<int64_t>("y", 2 * 3 * 2 * 4 * 2 * 3);
  const std::array<ParallelType, 6> axes = {ParallelType::kBlockX, ParallelType::kBlockY, ParallelType::kBlockZ,
                                            ParallelType::kGridX,  ParallelType::kGridY,  ParallelType::kGridZ};
  ValueId linear = k.index(0), scale = k.index(1);
  for (const ParallelType p : axes) {
    linear = k.add(linear, k.mul(scale, k.thread(OpKind::kThreadIndex, p)));
    scale = k.mul(scale, k.thread(OpKind::kThreadCount, p));
  }
  k.store(y, linear, k.op(OpKind::kCast, {linear}, Dtype::kInt64));
  expect_clean(k.run({.grid = {4, 2, 3}, .block = {2, 3, 2}}));
  std::vector<int64_t> want(288);
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(k.values<int64_t>("y"), want);
}

// -- random numbers: one seed for all lanes, or one for each
TEST(HostInstructions, PhiloxGivesEachLaneTheWordOfItsElement) {
  for (const bool is_uniform : {true, false}) {
    HostKernel k;
    const ValueId y = k.output<uint32_t>("y", 8);
    const ValueId t = k.thread_x();
    const ValueId lane = k.op(OpKind::kCast, {t}, Dtype::kUint64);
    const ValueId base = k.scalar("seed", -5, Dtype::kUint64);
    const ValueId seed = is_uniform ? base : k.op(OpKind::kAdd, {base, lane}, Dtype::kUint64);
    const ValueId offset = constant(k.graph, Dtype::kUint64, {~uint64_t{0}, 0});
    Attrs attrs;
    attrs.set(AttrKey::kSlot, int64_t{2});
    k.store(y, t, k.op(OpKind::kPhilox, {seed, offset, t}, Dtype::kUint32, attrs));
    expect_clean(k.run({.block = {8, 1, 1}}));
    const std::vector<uint32_t> got = k.values<uint32_t>("y");
    for (uint64_t i = 0; i < 8; ++i)
      EXPECT_EQ(got[i],
                exact::philox(uint64_t{0} - 5 + (is_uniform ? 0 : i), ~uint64_t{0}, static_cast<int64_t>(i), 2));
  }
}

// -- control
TEST(HostInstructions, DivergentIfElseNested) {
  HostKernel k;
  const ValueId y = k.output<int32_t>("y", 8);
  const ValueId t = k.thread_x();
  const auto branch = [&](ValueId p, const std::function<void()>& then, const std::function<void()>& otherwise) {
    const RegionId outer = k.region, a = add_region(k.g), b = add_region(k.g);
    append(k.g, outer, Op{OpKind::kIf, {p}, {}, {}, {a, b}});
    k.region = a;
    then();
    k.region = b;
    otherwise();
    k.region = outer;
  };
  const auto put = [&](int v) {
    return [&k, y, t, v] { k.store(y, t, constant(k.g, Dtype::kInt32, from_int64(Dtype::kInt32, v))); };
  };
  const ValueId n = k.scalar("n", 1);
  branch(
      k.less(t, k.index(4)),
      [&] {
        branch(k.op(OpKind::kEq, {k.op(OpKind::kMod, {t, k.index(2)}, Dtype::kIndex), k.index(0)}, Dtype::kBool),
               put(1), put(2));
      },
      [&] { branch(k.less(n, k.index(5)), [&] { branch(k.less(t, k.index(100)), put(3), put(4)); }, put(5)); });
  expect_clean(k.run({.block = {8, 1, 1}}));
  EXPECT_EQ(k.values<int32_t>("y"), (std::vector<int32_t>{1, 2, 1, 2, 3, 3, 3, 3}));
}

// y[t] = Σ over i in [start, stop) by step of i.
std::vector<int64_t> loop_sums(const std::function<std::array<ValueId, 3>(HostKernel&)>& bounds,
                               bool is_guarded = false) {
  HostKernel k;
  const ValueId y = k.output<int64_t>("y", 8);
  const ValueId t = k.thread_x();
  const ValueId acc = k.allocate(Dtype::kInt64, MemoryType::kLocal, k.index(1));
  k.store(acc, k.index(0), constant(k.g, Dtype::kInt64, {}));
  const auto [start, stop, step] = bounds(k);
  if (is_guarded) k.begin_if(k.op(OpKind::kNe, {t, k.index(2)}, Dtype::kBool));
  ValueId i;
  k.begin_for(start, stop, step, i);
  k.store(acc, k.index(0),
          k.op(OpKind::kAdd, {k.load(acc, k.index(0)), k.op(OpKind::kCast, {i}, Dtype::kInt64)}, Dtype::kInt64));
  k.region = Graph::body();
  k.store(y, t, k.load(acc, k.index(0)));
  expect_clean(k.run({.block = {8, 1, 1}}));
  return k.values<int64_t>("y");
}
TEST(HostInstructions, Loops) {
  const auto uniform = [](HostKernel& k) { return std::array{k.index(2), k.scalar("n", 10), k.index(3)}; };
  EXPECT_EQ(loop_sums(uniform), std::vector<int64_t>(8, 2 + 5 + 8));
  EXPECT_EQ(loop_sums(uniform, true), (std::vector<int64_t>{15, 15, 0, 15, 15, 15, 15, 15}));
  EXPECT_EQ(loop_sums([](HostKernel& k) { return std::array{k.index(3), k.index(3), k.index(1)}; }),
            std::vector<int64_t>(8, 0));
  EXPECT_EQ(loop_sums([](HostKernel& k) { return std::array{k.index(0), k.thread_x(), k.index(1)}; }),
            (std::vector<int64_t>{0, 0, 1, 3, 6, 10, 15, 21}));
  EXPECT_EQ(
      loop_sums([](HostKernel& k) { return std::array{k.thread_x(), k.index(5), k.add(k.thread_x(), k.index(1))}; }),
      (std::vector<int64_t>{10, 4, 2, 3, 4, 0, 0, 0}));
  EXPECT_EQ(loop_sums([](HostKernel& k) { return std::array{k.index(0), k.thread_x(), k.index(2)}; }, true),
            (std::vector<int64_t>{0, 0, 0, 2, 2, 6, 6, 12}));
}

// -- memory
TEST(HostInstructions, PredicatedLoadGivesTheOtherValueOrZero) {
  for (const bool has_other : {false, true})
    for (const int64_t limit : {0, 3, 8}) {
      HostKernel k;
      const ValueId x = k.input<float>("x", {1, 2, 3, 4, 5, 6, 7, 8});
      const ValueId y = k.output<float>("y", 8), z = k.output<float>("z", 8);
      const ValueId t = k.thread_x(), n = k.scalar("n", limit);
      const ValueId other = has_other ? k.to_float(k.mul(t, k.index(-1))) : ValueId();
      k.store(y, t, k.op(OpKind::kLoad, {x, t, k.less(t, n), other}, Dtype::kFloat));
      const ValueId uniform_other = has_other ? k.number(9) : ValueId();
      k.store(z, t, k.op(OpKind::kLoad, {x, k.index(2), k.less(k.index(2), n), uniform_other}, Dtype::kFloat));
      expect_clean(k.run({.block = {8, 1, 1}}));
      for (int64_t i = 0; i < 8; ++i) {
        EXPECT_EQ(k.values<float>("y")[static_cast<size_t>(i)], i < limit ? i + 1 : has_other ? -i : 0);
        EXPECT_EQ(k.values<float>("z")[static_cast<size_t>(i)], limit > 2 ? 3 : has_other ? 9 : 0);
      }
    }
}
TEST(HostInstructions, GatherAndScatter) {
  HostKernel k;
  const ValueId x = k.input<float>("x", {10, 11, 12, 13, 14, 15, 16, 17});
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x();
  const ValueId p = k.op(OpKind::kMod, {k.mul(t, k.index(3)), k.index(8)}, Dtype::kIndex);
  const ValueId q = k.op(OpKind::kMod, {k.mul(t, k.index(5)), k.index(8)}, Dtype::kIndex);
  k.begin_if(k.op(OpKind::kNe, {t, k.index(3)}, Dtype::kBool));
  k.store(y, q, k.load(x, p));
  expect_clean(k.run({.block = {8, 1, 1}}));
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(k.buffers["y"].written[i * 5 % 8], i != 3);
    if (i != 3) {
      EXPECT_EQ(k.values<float>("y")[i * 5 % 8], 10 + static_cast<float>(i * 3 % 8));
    }
  }
}

struct CopyCase {
  Dtype dtype;
  int64_t width;
  bool is_guarded;  // one thread is off, so lanes run one by one
};
class HostCopies : public ::testing::TestWithParam<CopyCase> {};
TEST_P(HostCopies, GlobalSharedLocalAndBack) {
  const auto [dtype, width, is_guarded] = GetParam();
  const auto bytes = static_cast<size_t>(size_bytes(dtype));
  const int64_t n = 8 * width;
  HostKernel k;
  const ValueId x = k.memory(dtype, "x", n, true), y = k.memory(dtype, "y", n, false),
                z = k.memory(dtype, "z", n, false);
  for (size_t i = 0; i < static_cast<size_t>(n) * bytes; ++i)
    k.buffers["x"].data()[i] = static_cast<std::byte>(is_boolean(dtype) ? i % 2 : i * 37 + 1);
  if (is_guarded) k.begin_if(k.op(OpKind::kNe, {k.thread_x(), k.index(5)}, Dtype::kBool));
  const ValueId s = k.shared(dtype, n);
  const ValueId r = k.buffer(dtype, "r", MemoryType::kLocal);
  Attrs place, wide;
  place.set_enum(AttrKey::kMemory, MemoryType::kLocal);
  place.set(AttrKey::kAlign, int64_t{16});
  append(k.g, k.region, Op{OpKind::kAllocate, {k.index(width), {}}, {r}, place, {}});
  wide.set(AttrKey::kWidth, width);
  const ValueId at = k.mul(k.thread_x(), k.index(width));
  k.effect(OpKind::kCopy, {s, at, x, at, {}}, wide);
  k.effect(OpKind::kCopy, {r, k.index(0), s, at, {}}, wide);
  k.effect(OpKind::kCopy, {y, at, r, k.index(0), {}}, wide);
  k.effect(OpKind::kCopy, {z, at, s, at, k.less(k.thread_x(), k.index(7))}, wide);
  expect_clean(k.run({.block = {8, 1, 1}, .shared_bytes = 2048}));
  for (int64_t e = 0; e < n; ++e) {
    const bool is_on = !is_guarded || e / width != 5;
    const auto* want = k.buffers["x"].data() + static_cast<size_t>(e) * bytes;
    EXPECT_EQ(k.buffers["y"].written[static_cast<size_t>(e)], is_on);
    EXPECT_EQ(k.buffers["z"].written[static_cast<size_t>(e)], is_on && e / width != 7);
    if (is_on) {
      EXPECT_EQ(std::memcmp(want, k.buffers["y"].data() + static_cast<size_t>(e) * bytes, bytes), 0) << e;
    }
    if (is_on && e / width != 7) {
      EXPECT_EQ(std::memcmp(want, k.buffers["z"].data() + static_cast<size_t>(e) * bytes, bytes), 0) << e;
    }
  }
}
std::vector<CopyCase> copy_cases() {
  std::vector<CopyCase> cases;
  for (const Dtype d :
       {Dtype::kBool, Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kUint64, Dtype::kFloat, Dtype::kDouble,
        Dtype::kComplexFloat, Dtype::kComplexDouble, Dtype::kFloat8E4m3, Dtype::kFloat8E8m0})
    for (int64_t width = 1; width * size_bytes(d) <= 16; width *= 2)
      for (const bool guarded : {false, true}) cases.push_back({d, width, guarded});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, HostCopies, ::testing::ValuesIn(copy_cases()), [](const auto& info) {
  return std::string(text(info.param.dtype)) + "x" + std::to_string(info.param.width) +
         (info.param.is_guarded ? "guarded" : "");
});

TEST(HostInstructions, HalfAndBfloat16BitsSurviveAMove) {
  // Every code, also NaNs with their payloads.
  for (const Dtype d : {Dtype::kHalf, Dtype::kBfloat16}) {
    HostKernel k;
    std::vector<uint16_t> codes(65536);
    std::iota(codes.begin(), codes.end(), uint16_t{0});
    const ValueId x = k.input<uint16_t>("x", codes, d), y = k.output<uint16_t>("y", 65536, d);
    const ValueId i = k.global_thread();
    k.store(y, i, k.load(x, i));
    expect_clean(k.run({.grid = {512, 1, 1}, .block = {128, 1, 1}}));
    EXPECT_EQ(k.values<uint16_t>("y"), codes) << text(d);
  }
}
TEST(HostInstructions, SharedBytesAreReusedAfterABarrier) {
  HostKernel k;
  const ValueId y = k.output<double>("y", 8);
  const ValueId t = k.thread_x();
  const ValueId a = k.shared(Dtype::kFloat, 8);
  k.store(a, t, k.to_float(t));
  k.barrier();
  const ValueId v = k.load(a, k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex));
  k.barrier();
  const ValueId b = k.shared(Dtype::kDouble, 8);
  k.store(b, t, k.op(OpKind::kCast, {v}, Dtype::kDouble));
  k.barrier();
  k.store(y, t, k.load(b, k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex)));
  expect_clean(k.run({.block = {8, 1, 1}, .shared_bytes = 64}));
  EXPECT_EQ(k.values<double>("y"), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
}
TEST(HostInstructions, ReducedFloatsRoundAfterEachOp) {
  HostKernel k;
  const ValueId y = k.output<uint16_t>("y", 2);
  const ValueId s = k.scalar("s", 256, Dtype::kBfloat16), t = k.thread_x();
  // 256 + 1 rounds to 256 in bf16; once in a uniform register, once in one that depends on the thread.
  const ValueId one = k.number(1, Dtype::kBfloat16);
  const ValueId v = k.op(OpKind::kAdd, {k.op(OpKind::kAdd, {s, one}, Dtype::kBfloat16), one}, Dtype::kBfloat16);
  const ValueId tv = k.op(OpKind::kCast, {k.mul(t, k.index(0))}, Dtype::kBfloat16);
  const ValueId w = k.op(
      OpKind::kAdd, {k.op(OpKind::kAdd, {k.op(OpKind::kAdd, {s, tv}, Dtype::kBfloat16), one}, Dtype::kBfloat16), one},
      Dtype::kBfloat16);
  k.store(y, t, k.op(OpKind::kWhere, {k.less(t, k.index(1)), v, w}, Dtype::kBfloat16));
  expect_clean(k.run({.block = {2, 1, 1}}));
  EXPECT_EQ(k.values<uint16_t>("y"), (std::vector<uint16_t>{0x4380, 0x4380}));
}

TEST(HostInstructions, CountsAreKernelOpsTimesThreads) {
  HostKernel k;
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x();                                   // 8
  k.begin_if(k.less(t, k.index(3)));                                // 8 + 8
  k.store(y, t, k.op(OpKind::kExp, {k.number(1)}, Dtype::kFloat));  // 3 + 3, the exp dispatched once
  const HostResult r = k.run({.block = {8, 1, 1}});
  EXPECT_EQ(r.thread_instructions, 8 + 8 + 8 + 3 + 3);
}

}  // namespace
}  // namespace fusebox
