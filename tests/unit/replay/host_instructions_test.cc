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

ValueId number(HostKernel& k, double x, Dtype d = Dtype::kFloat) { return constant(k.graph, d, from_double(d, x)); }
ValueId to_float(HostKernel& k, ValueId v) { return k.op(OpKind::kCast, {v}, Dtype::kFloat); }

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
      const ValueId other = has_other ? to_float(k, k.mul(t, k.index(-1))) : ValueId();
      k.store(y, t, k.op(OpKind::kLoad, {x, t, k.less(t, n), other}, Dtype::kFloat));
      const ValueId uniform_other = has_other ? number(k, 9) : ValueId();
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
  k.store(a, t, to_float(k, t));
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
  const ValueId one = number(k, 1, Dtype::kBfloat16);
  const ValueId v = k.op(OpKind::kAdd, {k.op(OpKind::kAdd, {s, one}, Dtype::kBfloat16), one}, Dtype::kBfloat16);
  const ValueId tv = k.op(OpKind::kCast, {k.mul(t, k.index(0))}, Dtype::kBfloat16);
  const ValueId w = k.op(
      OpKind::kAdd, {k.op(OpKind::kAdd, {k.op(OpKind::kAdd, {s, tv}, Dtype::kBfloat16), one}, Dtype::kBfloat16), one},
      Dtype::kBfloat16);
  k.store(y, t, k.op(OpKind::kWhere, {k.less(t, k.index(1)), v, w}, Dtype::kBfloat16));
  expect_clean(k.run({.block = {2, 1, 1}}));
  EXPECT_EQ(k.values<uint16_t>("y"), (std::vector<uint16_t>{0x4380, 0x4380}));
}

// -- collectives
using Threads = std::vector<ParallelType>;
Attrs reduce_attrs(ReduceOp op, const Threads& threads, bool all) {
  Attrs attrs;
  attrs.set_enum(AttrKey::kReduceOp, op);
  std::vector<int64_t> ids;
  for (const ParallelType p : threads) ids.push_back(static_cast<int64_t>(p));
  attrs.set(AttrKey::kThreads, ids);
  if (all) attrs.set_flag(AttrKey::kAll);
  return attrs;
}
// The coordinates and the value of each thread, in the order of `y`.
struct Point {
  std::array<int64_t, 6> at;  // block x y z, grid x y z
  int64_t value;
};
std::vector<Point> points_of(const LaunchDims& dims) {
  std::vector<Point> points;
  const std::array<int64_t, 6> extents = {dims.block[0], dims.block[1], dims.block[2],
                                          dims.grid[0],  dims.grid[1],  dims.grid[2]};
  int64_t total = 1;
  for (const int64_t e : extents) total *= e;
  for (int64_t i = 0; i < total; ++i) {
    Point p{{}, i * 7 % 11 - 3};
    int64_t rest = i;
    for (size_t a = 0; a < 6; ++a) {
      p.at[a] = rest % extents[a];
      rest /= extents[a];
    }
    points.push_back(p);
  }
  return points;
}
ValueId linear_thread(HostKernel& k) {
  ValueId linear = k.index(0), scale = k.index(1);
  for (const ParallelType p : {ParallelType::kBlockX, ParallelType::kBlockY, ParallelType::kBlockZ,
                               ParallelType::kGridX, ParallelType::kGridY, ParallelType::kGridZ}) {
    linear = k.add(linear, k.mul(scale, k.thread(OpKind::kThreadIndex, p)));
    scale = k.mul(scale, k.thread(OpKind::kThreadCount, p));
  }
  return linear;
}

int64_t neutral_of(ReduceOp op) {
  return op == ReduceOp::kSum ? 0 : op == ReduceOp::kProd ? 1 : op == ReduceOp::kMin ? 1000 : -1000;
}
size_t coordinate_of(ParallelType p) {
  return p >= ParallelType::kBlockX ? static_cast<size_t>(p) - static_cast<size_t>(ParallelType::kBlockX)
                                    : 3 + static_cast<size_t>(p) - static_cast<size_t>(ParallelType::kGridX);
}
// The reduction over `threads` of the values, each increased by `more`, of the points in the group of point `a`, without
// every fourth point.
int64_t reduced(ReduceOp op, const Threads& threads, const std::vector<Point>& points, size_t a, int64_t more = 0) {
  int64_t want = neutral_of(op);
  for (size_t b = 0; b < points.size(); ++b) {
    bool is_same = true;
    for (size_t axis = 0; axis < 6; ++axis) {
      bool is_reduced = false;
      for (const ParallelType p : threads) is_reduced |= coordinate_of(p) == axis;
      is_same &= is_reduced || points[a].at[axis] == points[b].at[axis];
    }
    if (!is_same || b % 4 == 1) continue;
    const int64_t v = points[b].value + more;
    want = op == ReduceOp::kSum    ? want + v
           : op == ReduceOp::kProd ? static_cast<int32_t>(want * v)
           : op == ReduceOp::kMin  ? std::min(want, v)
                                   : std::max(want, v);
  }
  return want;
}

// Reduces i · 7 mod 11 − 3 over `threads`, without every fourth thread, and checks each thread that gets a result.
void check_reduction(ReduceOp op, const Threads& threads, bool all, const LaunchDims& dims) {
  const std::vector<Point> points = points_of(dims);
  HostKernel k;
  std::vector<int32_t> values;
  for (const Point& p : points) values.push_back(static_cast<int32_t>(p.value));
  const ValueId x = k.input<int32_t>("x", values), y = k.output<int32_t>("y", static_cast<int64_t>(points.size()));
  const ValueId w = k.shared(Dtype::kInt32, dims.block[0] * dims.block[1] * dims.block[2]);
  const ValueId i = linear_thread(k);
  const ValueId takes_part =
      k.op(OpKind::kNe, {k.op(OpKind::kMod, {i, k.index(4)}, Dtype::kIndex), k.index(1)}, Dtype::kBool);
  const ValueId neutral = constant(k.g, Dtype::kInt32, from_int64(Dtype::kInt32, neutral_of(op)));
  k.store(y, i,
          k.op(OpKind::kBlockReduce, {k.load(x, i), neutral, w, takes_part, ValueId()}, Dtype::kInt32,
               reduce_attrs(op, threads, all)));
  expect_clean(k.run(dims));
  const std::vector<int32_t> got = k.values<int32_t>("y");
  for (size_t a = 0; a < points.size(); ++a) {
    bool gets_result = true;
    for (const ParallelType p : threads) gets_result &= all || points[a].at[coordinate_of(p)] == 0;
    if (!gets_result) continue;
    EXPECT_EQ(got[a], reduced(op, threads, points, a)) << "thread " << a;
  }
}

// The same across blocks, for arrays of three elements. With `all`, every thread gets the results; else those of one
// block in each group do.
void check_grid_reduction(ReduceOp op, const Threads& threads, bool all, const LaunchDims& dims) {
  constexpr int64_t kElements = 3;
  constexpr int32_t kNone = -123456;
  const std::vector<Point> points = points_of(dims);
  const auto n = static_cast<int64_t>(points.size());
  const int64_t block = dims.block[0] * dims.block[1] * dims.block[2], blocks = n / block;
  HostKernel k;
  std::vector<int32_t> values;
  for (size_t i = 0; i < points.size(); ++i)
    values.push_back(static_cast<int32_t>(i % 4 == 1 ? neutral_of(op) : points[i].value));
  const ValueId x = k.input<int32_t>("x", values), y = k.output<int32_t>("y", kElements * n);
  const ValueId arrivals = k.input<uint32_t>("a", std::vector<uint32_t>(static_cast<size_t>(2 * blocks))),
                counters = k.input<uint32_t>("c", {0, 0}), parts = k.output<int32_t>("w", 2 * kElements * n),
                via = k.shared(Dtype::kInt32, 4 * block);
  const ValueId i = linear_thread(k);
  const ValueId array = k.allocate(Dtype::kInt32, MemoryType::kLocal, k.index(kElements));
  const ValueId is_neutral =
      k.op(OpKind::kEq, {k.op(OpKind::kMod, {i, k.index(4)}, Dtype::kIndex), k.index(1)}, Dtype::kBool);
  const auto number_of = [&](int64_t v) { return constant(k.g, Dtype::kInt32, from_int64(Dtype::kInt32, v)); };
  const auto place = [&](int64_t e) { return k.add(k.mul(i, k.index(kElements)), k.index(e)); };
  for (int64_t e = 0; e < kElements; ++e) {
    const ValueId v = k.load(x, i), more = k.op(OpKind::kAdd, {v, number_of(e)}, Dtype::kInt32);
    k.store(array, k.index(e), k.op(OpKind::kWhere, {is_neutral, v, more}, Dtype::kInt32));
    k.store(y, place(e), number_of(kNone));
  }
  Attrs attrs = reduce_attrs(op, threads, all);
  attrs.set(AttrKey::kSlot, int64_t{1});
  k.begin_if(k.op(OpKind::kGridReduce, {array, parts, via, arrivals, all ? counters : ValueId()}, Dtype::kBool, attrs));
  for (int64_t e = 0; e < kElements; ++e) k.store(y, place(e), k.load(array, k.index(e)));
  k.region = Graph::body();
  expect_clean(k.run(dims));
  for (const uint32_t a : k.values<uint32_t>("a")) EXPECT_EQ(a, 0u);
  const std::vector<int32_t> got = k.values<int32_t>("y");
  int64_t last_blocks = 0, groups = blocks;
  for (const ParallelType p : threads)
    if (is_grid(p)) groups /= dims.grid[coordinate_of(p) - 3];
  for (int64_t b = 0; b < blocks; ++b) {
    const bool has_result = got[static_cast<size_t>(b * block * kElements)] != kNone;
    last_blocks += has_result;
    for (int64_t t = b * block; t < (b + 1) * block; ++t)
      for (int64_t e = 0; e < kElements; ++e)
        EXPECT_EQ(got[static_cast<size_t>(t * kElements + e)],
                  has_result ? reduced(op, threads, points, static_cast<size_t>(t), e) : kNone)
            << "thread " << t << ", element " << e;
  }
  EXPECT_EQ(last_blocks, all ? blocks : groups);
}
TEST(HostInstructions, BlockReduce) {
  const LaunchDims dims = {.grid = {2, 1, 1}, .block = {5, 3, 2}, .shared_bytes = 1024};
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax})
    for (const bool all : {false, true})
      for (const Threads& threads :
           {Threads{ParallelType::kBlockX}, Threads{ParallelType::kBlockY}, Threads{ParallelType::kBlockZ},
            Threads{ParallelType::kBlockX, ParallelType::kBlockZ},
            Threads{ParallelType::kBlockX, ParallelType::kBlockY, ParallelType::kBlockZ}})
        check_reduction(op, threads, all, dims);
}
TEST(HostInstructions, GridReduce) {
  const LaunchDims dims = {.grid = {3, 2, 2}, .block = {4, 3, 1}, .shared_bytes = 256};
  for (const bool all : {false, true})
    for (const Threads& threads : {Threads{ParallelType::kGridX}, Threads{ParallelType::kGridY, ParallelType::kBlockX},
                                   Threads{ParallelType::kGridX, ParallelType::kGridY, ParallelType::kGridZ,
                                           ParallelType::kBlockX, ParallelType::kBlockY}})
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) check_grid_reduction(op, threads, all, dims);
}
// Trees of one node, of two levels and of three.
TEST(HostInstructions, GridReduceOfManyBlocks) {
  for (const int64_t blocks : {1, 2, 16, 17, 35, 256, 257})
    for (const bool all : {false, true})
      check_grid_reduction(ReduceOp::kSum, {ParallelType::kGridX}, all,
                           {.grid = {blocks, 1, 1}, .block = {2, 1, 1}, .shared_bytes = 256});
  for (const int64_t blocks : {31, 32, 33, 70})
    check_grid_reduction(ReduceOp::kSum, {ParallelType::kGridX, ParallelType::kBlockX}, false,
                         {.grid = {blocks, 1, 1}, .block = {2, 3, 1}, .shared_bytes = 256});
}
// Only the block that comes last has a value afterwards, and counters begin at 0.
TEST(HostInstructions, GridReduceIsChecked) {
  for (const bool is_counted : {false, true}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 4);
    const ValueId arrivals = k.input<uint32_t>("a", std::vector<uint32_t>(4, is_counted ? 1 : 0)),
                  parts = k.output<float>("w", 4);
    const ValueId array = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(1));
    k.store(array, k.index(0), number(k, 1));
    k.op(OpKind::kGridReduce, {array, parts, parts, arrivals, ValueId()}, Dtype::kBool,
         reduce_attrs(ReduceOp::kSum, {ParallelType::kGridX}, false));
    k.store(y, k.thread(OpKind::kThreadIndex, ParallelType::kGridX), k.load(array, k.index(0)));
    const HostResult r = k.run({.grid = {4, 1, 1}});
    ASSERT_TRUE(r.finding);
    EXPECT_EQ(r.finding->code, ErrorCode::kUnwrittenRead);
    EXPECT_EQ(r.finding->buffer == "a", is_counted);
  }
}
TEST(HostInstructions, BlockReduceWelford) {
  for (const Dtype count_dtype : {Dtype::kFloat, Dtype::kIndex}) {
    HostKernel k;
    const size_t n = 37;
    std::vector<float> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = 100 + static_cast<float>(i * i % 13);
    const ValueId x = k.input<float>("x", values);
    const ValueId avg = k.output<float>("avg", 1), m2 = k.output<float>("m2", 1), count = k.output<int64_t>("n", 1);
    const ValueId wa = k.shared(Dtype::kFloat, 37), wm = k.shared(Dtype::kFloat, 37, 160),
                  wn = k.shared(count_dtype, 37, 320);
    const ValueId t = k.thread_x();
    const auto num = [&](int64_t v, Dtype d) { return constant(k.g, d, from_int64(d, v)); };
    const auto r = k.many(
        OpKind::kBlockReduce,
        {k.load(x, t), number(k, 0), num(1, count_dtype), number(k, 0), number(k, 0), num(0, count_dtype), wa, wm, wn,
         k.op(OpKind::kNe, {t, k.index(36)}, Dtype::kBool), ValueId()},
        {Dtype::kFloat, Dtype::kFloat, count_dtype}, reduce_attrs(ReduceOp::kWelford, {ParallelType::kBlockX}, true));
    k.begin_if(k.less(t, k.index(1)));
    k.store(avg, k.index(0), r[0]);
    k.store(m2, k.index(0), r[1]);
    k.store(count, k.index(0), k.op(OpKind::kCast, {r[2]}, Dtype::kInt64));
    expect_clean(k.run({.block = {37, 1, 1}, .shared_bytes = 1024}));
    double mean = 0, sum = 0;
    for (size_t i = 0; i < 36; ++i) mean += values[i] / 36;
    for (size_t i = 0; i < 36; ++i) sum += (values[i] - mean) * (values[i] - mean);
    EXPECT_NEAR(k.values<float>("avg")[0], mean, 1e-4);
    EXPECT_NEAR(k.values<float>("m2")[0], sum, 1e-2);
    EXPECT_EQ(k.values<int64_t>("n")[0], 36);
  }
}
TEST(HostInstructions, CollectivesSynchronise) {
  // A thread's store before a reduction is visible to others after it. Two reductions in a row share the workspace.
  HostKernel k;
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x();
  const ValueId s = k.shared(Dtype::kFloat, 8), w = k.shared(Dtype::kFloat, 8, 32);
  k.store(s, t, to_float(k, t));
  const Attrs attrs = reduce_attrs(ReduceOp::kSum, {ParallelType::kBlockX}, true);
  ValueId sum = k.op(OpKind::kBlockReduce, {to_float(k, t), number(k, 0), w, {}, {}}, Dtype::kFloat, attrs);
  const ValueId other = k.load(s, k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex));
  sum = k.op(OpKind::kBlockReduce, {sum, number(k, 0), w, {}, {}}, Dtype::kFloat, attrs);
  k.store(y, t, k.op(OpKind::kAdd, {sum, other}, Dtype::kFloat));
  expect_clean(k.run({.block = {8, 1, 1}, .shared_bytes = 64}));
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(k.values<float>("y")[i], 8 * 28 + 7 - static_cast<float>(i));
}
TEST(HostInstructions, WorkspaceIsTooSmallOrRead) {
  for (const bool is_small : {true, false}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    const ValueId w = k.shared(Dtype::kFloat, is_small ? 7 : 8);
    if (!is_small) k.store(w, t, number(k, 1));
    k.op(OpKind::kBlockReduce, {to_float(k, t), number(k, 0), w, {}, {}}, Dtype::kFloat,
         reduce_attrs(ReduceOp::kSum, {ParallelType::kBlockX}, true));
    k.store(y, t, k.load(w, t));
    const HostResult r = k.run({.block = {8, 1, 1}, .shared_bytes = 64});
    ASSERT_TRUE(r.finding);
    EXPECT_EQ(r.finding->code, is_small ? ErrorCode::kOutOfBounds : ErrorCode::kUnwrittenRead);
  }
}
TEST(HostInstructions, BlockBroadcast) {
  HostKernel k;
  const ValueId y = k.output<int32_t>("y", 12);
  const ValueId t = linear_thread(k);
  const ValueId w = k.shared(Dtype::kInt32, 12);
  Attrs attrs;
  attrs.set(AttrKey::kThreads, std::vector<int64_t>{static_cast<int64_t>(ParallelType::kBlockX)});
  const ValueId zero = constant(k.g, Dtype::kInt32, {});
  k.store(
      y, t,
      k.op(OpKind::kBlockBroadcast, {k.op(OpKind::kCast, {t}, Dtype::kInt32), zero, w, {}, {}}, Dtype::kInt32, attrs));
  expect_clean(k.run({.block = {4, 3, 1}, .shared_bytes = 64}));
  EXPECT_EQ(k.values<int32_t>("y"), (std::vector<int32_t>{0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8}));
}
TEST(HostInstructions, GridBarrierInALoop) {
  // In each round, every thread reads what the next block's thread stored in the round before.
  HostKernel k;
  const ValueId a = k.output<int32_t>("a", 24), b = k.output<int32_t>("b", 24), counters = k.input<uint32_t>("c", {0});
  const ValueId i = k.global_thread(), n = k.index(24);
  const ValueId next = k.op(OpKind::kMod, {k.add(i, k.index(8)), n}, Dtype::kIndex);
  k.store(a, i, k.op(OpKind::kCast, {i}, Dtype::kInt32));
  ValueId round;
  k.begin_for(k.index(0), k.index(3), k.index(1), round);
  k.effect(OpKind::kGridBarrier, {counters});
  k.store(b, i, k.load(a, next));
  k.effect(OpKind::kGridBarrier, {counters});
  k.store(a, i, k.load(b, i));
  const HostResult r = k.run({.grid = {3, 1, 1}, .block = {8, 1, 1}}, {.threads = 4});
  expect_clean(r);
  for (int32_t e = 0; e < 24; ++e)
    EXPECT_EQ(k.values<int32_t>("a")[static_cast<size_t>(e)], e);  // three rounds of 8 complete the cycle
}
TEST(HostInstructions, GridBarrierIsNeeded) {
  for (const bool has_barrier : {true, false}) {
    HostKernel k;
    const ValueId a = k.output<int32_t>("a", 24), b = k.output<int32_t>("b", 24),
                  counters = k.input<uint32_t>("c", {0});
    const ValueId i = k.global_thread();
    k.store(a, i, k.op(OpKind::kCast, {i}, Dtype::kInt32));
    if (has_barrier)
      k.effect(OpKind::kGridBarrier, {counters});
    else
      k.barrier();
    k.store(b, i, k.load(a, k.op(OpKind::kSub, {k.index(23), i}, Dtype::kIndex)));
    const HostResult r = k.run({.grid = {3, 1, 1}, .block = {8, 1, 1}});
    if (has_barrier) {
      expect_clean(r);
      EXPECT_EQ(k.values<int32_t>("b")[0], 23);
    } else {
      ASSERT_TRUE(r.finding);  // an earlier block had not come yet, or raced
      EXPECT_TRUE(r.finding->code == ErrorCode::kRace || r.finding->code == ErrorCode::kUnwrittenRead);
    }
  }
}
TEST(HostInstructions, WelfordCombine) {
  HostKernel k;
  const ValueId y = k.output<double>("y", 9);
  const ValueId t = k.thread_x();
  const ValueId n1 = k.op(OpKind::kMod, {t, k.index(3)}, Dtype::kIndex);  // 0, 1, 2
  const auto num = [&](double v) { return number(k, v, Dtype::kDouble); };
  const auto r = k.many(OpKind::kWelfordCombine, {num(3), num(0.5), n1, num(7), num(1), k.index(0)},
                        {Dtype::kDouble, Dtype::kDouble, Dtype::kIndex});
  const auto s = k.many(OpKind::kWelfordCombine, {num(3), num(0.5), k.index(2), num(7), num(1), k.index(6)},
                        {Dtype::kDouble, Dtype::kDouble, Dtype::kIndex});
  k.store(y, t, r[0]);
  k.store(y, k.add(t, k.index(3)), k.op(OpKind::kCast, {r[2]}, Dtype::kDouble));
  const RegionId outer = k.begin_if(k.less(t, k.index(1)));
  for (int64_t e = 0; e < 3; ++e)
    k.store(y, k.index(6 + e), e < 2 ? s[static_cast<size_t>(e)] : k.op(OpKind::kCast, {s[2]}, Dtype::kDouble));
  k.region = outer;
  expect_clean(k.run({.block = {3, 1, 1}}));
  EXPECT_EQ(k.values<double>("y"), (std::vector<double>{0, 3, 3, 0, 1, 2, 6, 1.5 + 16 * 2 * 0.75, 8}));
}
TEST(HostInstructions, WelfordCountsBeyondTheMantissa) {
  // Neither count is a float32 number, nor is their sum.
  constexpr int64_t kCount = (int64_t{1} << 24) + 1, kMore = (int64_t{1} << 40) + 2;
  HostKernel k;
  const ValueId y = k.output<int64_t>("y", 2), avg = k.output<float>("avg", 2);
  const ValueId wa = k.shared(Dtype::kFloat, 2), wm = k.shared(Dtype::kFloat, 2, 16),
                wn = k.shared(Dtype::kInt64, 2, 32);
  const ValueId t = k.thread_x();
  const auto count = [&](int64_t v) { return constant(k.g, Dtype::kInt64, from_int64(Dtype::kInt64, v)); };
  const std::vector<Dtype> dtypes = {Dtype::kFloat, Dtype::kFloat, Dtype::kInt64};
  const auto r = k.many(OpKind::kWelfordCombine,
                        {number(k, 2), number(k, 0), count(kCount), number(k, 2), number(k, 0), count(kMore)}, dtypes);
  const auto s = k.many(OpKind::kBlockReduce,
                        {r[0], r[1], r[2], number(k, 0), number(k, 0), count(0), wa, wm, wn, ValueId(), ValueId()},
                        dtypes, reduce_attrs(ReduceOp::kWelford, {ParallelType::kBlockX}, true));
  k.begin_if(k.less(t, k.index(1)));
  k.store(y, k.index(0), r[2]);
  k.store(y, k.index(1), s[2]);
  k.store(avg, k.index(0), r[0]);
  k.store(avg, k.index(1), s[0]);
  expect_clean(k.run({.block = {2, 1, 1}, .shared_bytes = 64}));
  EXPECT_EQ(k.values<int64_t>("y"), (std::vector<int64_t>{kCount + kMore, 2 * (kCount + kMore)}));
  EXPECT_EQ(k.values<float>("avg"), (std::vector<float>{2, 2}));
}
TEST(HostInstructions, WelfordOfNothingChangesNothing) {
  // As in combine.cuh: no arithmetic, because infinities and overflowing squares would give NaN.
  HostKernel k;
  const ValueId y = k.output<float>("y", 4);
  const auto triple = [&](double avg, double m2, int64_t n) {
    return std::vector<ValueId>{number(k, avg), number(k, m2), k.index(n)};
  };
  const auto merged = [&](std::vector<ValueId> a, const std::vector<ValueId>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return k.many(OpKind::kWelfordCombine, a, {Dtype::kFloat, Dtype::kFloat, Dtype::kIndex});
  };
  const auto first = merged(triple(INFINITY, 1, 2), triple(0, 0, 0));
  const auto second = merged(triple(0, 0, 0), triple(-1e30, 0, 1));
  k.begin_if(k.less(k.thread_x(), k.index(1)));
  k.store(y, k.index(0), first[0]);
  k.store(y, k.index(1), first[1]);
  k.store(y, k.index(2), second[0]);
  k.store(y, k.index(3), second[1]);
  expect_clean(k.run({.block = {1, 1, 1}}));
  EXPECT_EQ(k.values<float>("y"), (std::vector<float>{INFINITY, 1, -1e30f, 0}));
}
TEST(HostInstructions, CountsAreKernelOpsTimesThreads) {
  HostKernel k;
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x();                                    // 8
  k.begin_if(k.less(t, k.index(3)));                                 // 8 + 8
  k.store(y, t, k.op(OpKind::kExp, {number(k, 1)}, Dtype::kFloat));  // 3 + 3, the exp dispatched once
  const HostResult r = k.run({.block = {8, 1, 1}});
  EXPECT_EQ(r.thread_instructions, 8 + 8 + 8 + 3 + 3);
}

}  // namespace
}  // namespace fusebox
