// The ops by which threads and blocks exchange values on the host executor: reductions, broadcasts, barriers of the grid,
// and the combination of welford sets.
#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/unit/replay/host_runner.h"

namespace fusebox {
namespace {

using testing::expect_clean;
using testing::HostKernel;

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

// Each `width` neighbouring lanes reduce the values without memory.
HostResult reduce_by_lanes(HostKernel& k, ReduceOp op, int64_t width, const LaunchDims& dims) {
  std::vector<int32_t> values;
  for (const Point& p : points_of(dims)) values.push_back(static_cast<int32_t>(p.value));
  const ValueId x = k.input<int32_t>("x", values), y = k.output<int32_t>("y", static_cast<int64_t>(values.size()));
  const ValueId i = linear_thread(k);
  const ValueId takes_part =
      k.op(OpKind::kNe, {k.op(OpKind::kMod, {i, k.index(4)}, Dtype::kIndex), k.index(1)}, Dtype::kBool);
  const ValueId neutral = constant(k.g, Dtype::kInt32, from_int64(Dtype::kInt32, neutral_of(op)));
  Attrs attrs;
  attrs.set_enum(AttrKey::kReduceOp, op);
  attrs.set(AttrKey::kWidth, width);
  const ValueId value = k.op(OpKind::kWhere, {takes_part, k.load(x, i), neutral}, Dtype::kInt32);
  k.store(y, i, k.op(OpKind::kWarpReduce, {value}, Dtype::kInt32, attrs));
  return k.run(dims);
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
// Groups along block.x lie in neighbouring lanes, whatever the other dimensions are.
TEST(HostWarpReduce, GivesEveryLaneTheResultOfItsGroup) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax})
    for (const int64_t width : {1, 2, 4, 8, 16, 32})
      for (const LaunchDims& dims : {LaunchDims{.grid = {2, 1, 1}, .block = {width, 32, 1}},
                                     LaunchDims{.grid = {1, 2, 1}, .block = {width, 2, 16}}}) {
        HostKernel k;
        expect_clean(reduce_by_lanes(k, op, width, dims));
        const std::vector<Point> points = points_of(dims);
        const std::vector<int32_t> got = k.values<int32_t>("y");
        for (size_t a = 0; a < points.size(); ++a)
          ASSERT_EQ(got[a], reduced(op, {ParallelType::kBlockX}, points, a)) << "thread " << a << " width " << width;
      }
}

// A group may be a part of a row.
TEST(HostWarpReduce, GroupsAreOfLanesNotOfRows) {
  const LaunchDims rows{.grid = {1, 1, 1}, .block = {64, 1, 1}}, parts{.grid = {1, 1, 1}, .block = {8, 8, 1}};
  HostKernel k, l;
  expect_clean(reduce_by_lanes(k, ReduceOp::kSum, 8, rows));
  expect_clean(reduce_by_lanes(l, ReduceOp::kSum, 8, parts));
  EXPECT_EQ(k.values<int32_t>("y"), l.values<int32_t>("y"));
}

// A shuffle takes every lane of a warp.
TEST(HostWarpReduce, NeedsFullWarps) {
  for (const int64_t rows : {1, 3, 5}) {
    HostKernel k;
    const HostResult result = reduce_by_lanes(k, ReduceOp::kSum, 8, {.grid = {1, 1, 1}, .block = {8, rows, 1}});
    ASSERT_TRUE(result.finding) << rows;
    EXPECT_EQ(result.finding->code, ErrorCode::kDivergentBarrier);
    EXPECT_EQ(result.finding->kind, OpKind::kWarpReduce);
  }
}

TEST(HostWarpReduce, NeedsEveryThread) {
  const LaunchDims dims{.grid = {1, 1, 1}, .block = {8, 4, 1}};
  HostKernel k;
  const ValueId x = k.input<int32_t>("x", std::vector<int32_t>(32, 1)), y = k.output<int32_t>("y", 32);
  const ValueId i = linear_thread(k);
  Attrs attrs;
  attrs.set_enum(AttrKey::kReduceOp, ReduceOp::kSum);
  attrs.set(AttrKey::kWidth, int64_t{8});
  k.begin_if(k.op(OpKind::kLt, {i, k.index(24)}, Dtype::kBool));
  k.store(y, i, k.op(OpKind::kWarpReduce, {k.load(x, i)}, Dtype::kInt32, attrs));
  const HostResult result = k.run(dims);
  ASSERT_TRUE(result.finding);
  EXPECT_EQ(result.finding->code, ErrorCode::kDivergentBarrier);
}

// It is no barrier: a value that another thread stores before it may not be read behind it.
TEST(HostWarpReduce, IsNoBarrier) {
  const auto run = [](bool has_barrier) {
    HostKernel k;
    const ValueId y = k.output<int32_t>("y", 32), s = k.shared(Dtype::kInt32, 32), i = linear_thread(k);
    const ValueId one = constant(k.g, Dtype::kInt32, from_int64(Dtype::kInt32, 1));
    k.store(s, i, one);
    if (has_barrier) k.effect(OpKind::kBarrier, {});
    Attrs attrs;
    attrs.set_enum(AttrKey::kReduceOp, ReduceOp::kSum);
    attrs.set(AttrKey::kWidth, int64_t{8});
    const ValueId sum = k.op(OpKind::kWarpReduce, {one}, Dtype::kInt32, attrs);
    const ValueId other = k.op(OpKind::kSub, {k.index(31), i}, Dtype::kIndex);
    k.store(y, i, k.op(OpKind::kAdd, {sum, k.load(s, other)}, Dtype::kInt32));
    return k.run({.grid = {1, 1, 1}, .block = {8, 4, 1}, .shared_bytes = 256});
  };
  expect_clean(run(true));
  const HostResult result = run(false);
  ASSERT_TRUE(result.finding);
  EXPECT_EQ(result.finding->code, ErrorCode::kRace);
}

TEST(HostCollectives, BlockReduce) {
  const LaunchDims dims = {.grid = {2, 1, 1}, .block = {5, 3, 2}, .shared_bytes = 1024};
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax})
    for (const bool all : {false, true})
      for (const Threads& threads :
           {Threads{ParallelType::kBlockX}, Threads{ParallelType::kBlockY}, Threads{ParallelType::kBlockZ},
            Threads{ParallelType::kBlockX, ParallelType::kBlockZ},
            Threads{ParallelType::kBlockX, ParallelType::kBlockY, ParallelType::kBlockZ}})
        check_reduction(op, threads, all, dims);
}
TEST(HostCollectives, GridReduce) {
  const LaunchDims dims = {.grid = {3, 2, 2}, .block = {4, 3, 1}, .shared_bytes = 256};
  for (const bool all : {false, true})
    for (const Threads& threads : {Threads{ParallelType::kGridX}, Threads{ParallelType::kGridY, ParallelType::kBlockX},
                                   Threads{ParallelType::kGridX, ParallelType::kGridY, ParallelType::kGridZ,
                                           ParallelType::kBlockX, ParallelType::kBlockY}})
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) check_grid_reduction(op, threads, all, dims);
}
// Trees of one node, of two levels and of three.
TEST(HostCollectives, GridReduceOfManyBlocks) {
  for (const int64_t blocks : {1, 2, 16, 17, 35, 256, 257})
    for (const bool all : {false, true})
      check_grid_reduction(ReduceOp::kSum, {ParallelType::kGridX}, all,
                           {.grid = {blocks, 1, 1}, .block = {2, 1, 1}, .shared_bytes = 256});
  for (const int64_t blocks : {31, 32, 33, 70})
    check_grid_reduction(ReduceOp::kSum, {ParallelType::kGridX, ParallelType::kBlockX}, false,
                         {.grid = {blocks, 1, 1}, .block = {2, 3, 1}, .shared_bytes = 256});
}
// Only the block that comes last has a value afterwards, and counters begin at 0.
TEST(HostCollectives, GridReduceIsChecked) {
  for (const bool is_counted : {false, true}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 4);
    const ValueId arrivals = k.input<uint32_t>("a", std::vector<uint32_t>(4, is_counted ? 1 : 0)),
                  parts = k.output<float>("w", 4);
    const ValueId array = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(1));
    k.store(array, k.index(0), k.number(1));
    k.op(OpKind::kGridReduce, {array, parts, parts, arrivals, ValueId()}, Dtype::kBool,
         reduce_attrs(ReduceOp::kSum, {ParallelType::kGridX}, false));
    k.store(y, k.thread(OpKind::kThreadIndex, ParallelType::kGridX), k.load(array, k.index(0)));
    const HostResult r = k.run({.grid = {4, 1, 1}});
    ASSERT_TRUE(r.finding);
    EXPECT_EQ(r.finding->code, ErrorCode::kUnwrittenRead);
    EXPECT_EQ(r.finding->buffer == "a", is_counted);
  }
}
TEST(HostCollectives, BlockReduceWelford) {
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
        {k.load(x, t), k.number(0), num(1, count_dtype), k.number(0), k.number(0), num(0, count_dtype), wa, wm, wn,
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
TEST(HostCollectives, CollectivesSynchronise) {
  // A thread's store before a reduction is visible to others after it. Two reductions in a row share the workspace.
  HostKernel k;
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x();
  const ValueId s = k.shared(Dtype::kFloat, 8), w = k.shared(Dtype::kFloat, 8, 32);
  k.store(s, t, k.to_float(t));
  const Attrs attrs = reduce_attrs(ReduceOp::kSum, {ParallelType::kBlockX}, true);
  ValueId sum = k.op(OpKind::kBlockReduce, {k.to_float(t), k.number(0), w, {}, {}}, Dtype::kFloat, attrs);
  const ValueId other = k.load(s, k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex));
  sum = k.op(OpKind::kBlockReduce, {sum, k.number(0), w, {}, {}}, Dtype::kFloat, attrs);
  k.store(y, t, k.op(OpKind::kAdd, {sum, other}, Dtype::kFloat));
  expect_clean(k.run({.block = {8, 1, 1}, .shared_bytes = 64}));
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(k.values<float>("y")[i], 8 * 28 + 7 - static_cast<float>(i));
}
// Four values of each thread have room together, or the first op that says so is stopped.
TEST(HostCollectives, SeveralValuesAtOnceNeedRoom) {
  for (const int64_t elements : {32, 31}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    const ValueId w = k.shared(Dtype::kFloat, elements);
    Attrs attrs = reduce_attrs(ReduceOp::kSum, {ParallelType::kBlockX}, true);
    attrs.set(AttrKey::kAtOnce, int64_t{4});
    const ValueId sum = k.op(OpKind::kBlockReduce, {k.to_float(t), k.number(0), w, {}, {}}, Dtype::kFloat, attrs);
    k.store(y, t, sum);
    const HostResult r = k.run({.block = {8, 1, 1}, .shared_bytes = 128});
    EXPECT_EQ(r.finding ? r.finding->code : ErrorCode(), elements == 31 ? ErrorCode::kOutOfBounds : ErrorCode());
  }
}
TEST(HostCollectives, WorkspaceIsTooSmallOrRead) {
  for (const bool is_small : {true, false}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    const ValueId w = k.shared(Dtype::kFloat, is_small ? 7 : 8);
    if (!is_small) k.store(w, t, k.number(1));
    k.op(OpKind::kBlockReduce, {k.to_float(t), k.number(0), w, {}, {}}, Dtype::kFloat,
         reduce_attrs(ReduceOp::kSum, {ParallelType::kBlockX}, true));
    k.store(y, t, k.load(w, t));
    const HostResult r = k.run({.block = {8, 1, 1}, .shared_bytes = 64});
    ASSERT_TRUE(r.finding);
    EXPECT_EQ(r.finding->code, is_small ? ErrorCode::kOutOfBounds : ErrorCode::kUnwrittenRead);
  }
}
TEST(HostCollectives, BlockBroadcast) {
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
TEST(HostCollectives, GridBarrierInALoop) {
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
TEST(HostCollectives, GridBarrierIsNeeded) {
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
TEST(HostCollectives, WelfordCombine) {
  HostKernel k;
  const ValueId y = k.output<double>("y", 9);
  const ValueId t = k.thread_x();
  const ValueId n1 = k.op(OpKind::kMod, {t, k.index(3)}, Dtype::kIndex);  // 0, 1, 2
  const auto num = [&](double v) { return k.number(v, Dtype::kDouble); };
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
TEST(HostCollectives, WelfordCountsBeyondTheMantissa) {
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
                        {k.number(2), k.number(0), count(kCount), k.number(2), k.number(0), count(kMore)}, dtypes);
  const auto s = k.many(OpKind::kBlockReduce,
                        {r[0], r[1], r[2], k.number(0), k.number(0), count(0), wa, wm, wn, ValueId(), ValueId()},
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
TEST(HostCollectives, WelfordOfNothingChangesNothing) {
  // As in combine.cuh: no arithmetic, because infinities and overflowing squares would give NaN.
  HostKernel k;
  const ValueId y = k.output<float>("y", 4);
  const auto triple = [&](double avg, double m2, int64_t n) {
    return std::vector<ValueId>{k.number(avg), k.number(m2), k.index(n)};
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

}  // namespace
}  // namespace fusebox
