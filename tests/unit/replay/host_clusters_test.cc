// Clusters of blocks on the host executor: reductions through one another's shared memory, and what it checks of them.
#include "tests/unit/replay/host_runner.h"

namespace fusebox {
namespace {

using testing::expect_clean;
using testing::HostKernel;

struct ClusterKernel {
  ParallelType axis = ParallelType::kGridX;
  int64_t blocks = 4;    // of a cluster
  int64_t elements = 1;  // of a thread's array
  bool arrives = true, waits = true;
  int times = 1;  // that the blocks combine their arrays
  int64_t parts_offset = 1024;
  bool over_threads = true;

  ValueId array = {}, parts = {}, via = {};

  // Declares the cluster and its memory.
  void begin(HostKernel& k) {
    Attrs attrs;
    attrs.set_enum(AttrKey::kParallel, axis);
    attrs.set(AttrKey::kClusterBlocks, blocks);
    k.many(OpKind::kCluster, {}, {}, attrs);
    array = k.allocate(Dtype::kInt32, MemoryType::kLocal, k.index(elements));
    via = k.shared(Dtype::kInt32, 256);
    parts = k.shared(Dtype::kInt32, 128, parts_offset);
    if (arrives) k.effect(OpKind::kClusterArrive, {});
  }
  void reduce(HostKernel& k, ReduceOp op = ReduceOp::kSum) {
    Attrs attrs;
    attrs.set_enum(AttrKey::kReduceOp, op);
    std::vector<int64_t> over = {static_cast<int64_t>(axis)};
    if (over_threads) over.push_back(static_cast<int64_t>(ParallelType::kBlockX));
    attrs.set(AttrKey::kThreads, over);
    attrs.set(AttrKey::kClusterBlocks, blocks);
    k.many(OpKind::kClusterReduce, {array, parts, via}, {}, attrs);
  }
  void end(HostKernel& k) {
    if (waits) k.effect(OpKind::kClusterWait, {});
  }
};

constexpr LaunchDims kRows = {.grid = {4, 3, 1}, .block = {8, 1, 1}, .shared_bytes = 2048};

// Each block stores what it has after some reductions in its cluster. A thread begins with its number in the grid.
std::optional<HostFinding> run_rows(ClusterKernel c, const LaunchDims& dims, std::vector<int32_t>* got = nullptr) {
  HostKernel k;
  const int64_t blocks = dims.grid[0] * dims.grid[1], threads = dims.block[0];
  const ValueId y = k.output<int32_t>("y", blocks * threads);
  c.begin(k);
  const ValueId row = k.thread(OpKind::kThreadIndex, ParallelType::kGridY);
  const ValueId block = k.add(k.mul(row, k.index(dims.grid[0])), k.block_x());
  const ValueId i = k.add(k.mul(block, k.index(threads)), k.thread_x());
  const ValueId number = k.op(OpKind::kCast, {i}, Dtype::kInt32);
  for (int64_t e = 0; e < c.elements; ++e) k.store(c.array, k.index(e), number);
  for (int n = 0; n < c.times; ++n) c.reduce(k);
  k.store(y, i, k.load(c.array, k.index(c.elements - 1)));
  c.end(k);
  const HostResult r = k.run(dims);
  if (got) *got = k.values<int32_t>("y");
  return r.finding;
}

TEST(HostClusters, AllBlocksOfAClusterHaveTheSum) {
  for (const bool along_y : {false, true})
    for (const int64_t blocks : {2, 4, 8})
      for (const int times : {1, 2, 3})
        for (const int64_t elements : {1, 5}) {
          ClusterKernel c{.axis = along_y ? ParallelType::kGridY : ParallelType::kGridX,
                          .blocks = blocks,
                          .elements = elements,
                          .times = times};
          LaunchDims dims = {.grid = {3, 3, 1}, .block = {8, 1, 1}, .shared_bytes = 2048};
          dims.grid[along_y ? 1 : 0] = blocks;
          std::vector<int32_t> got;
          const auto finding = run_rows(c, dims, &got);
          ASSERT_FALSE(finding) << finding->message();
          for (int64_t b = 0; b < dims.grid[0] * dims.grid[1]; ++b) {
            int32_t want = 0;
            const int64_t stride = along_y ? dims.grid[0] : 1, first = along_y ? b % dims.grid[0] : b - b % blocks;
            for (int64_t r = 0; r < blocks; ++r)
              for (int64_t t = 0; t < 8; ++t) want += static_cast<int32_t>((first + r * stride) * 8 + t);
            for (int n = 1; n < times; ++n) want *= static_cast<int32_t>(8 * blocks);
            for (int64_t t = 0; t < 8; ++t) EXPECT_EQ(got[static_cast<size_t>(b * 8 + t)], want) << "block " << b;
          }
        }
}

// A floating-point sum is added up in the order of block numbers.
TEST(HostClusters, PartsAreAddedInTheOrderOfBlocks) {
  HostKernel k;
  const ValueId y = k.output<float>("y", 8);
  ClusterKernel c{.blocks = 8, .over_threads = false};
  Attrs attrs;
  attrs.set_enum(AttrKey::kParallel, ParallelType::kGridX);
  attrs.set(AttrKey::kClusterBlocks, int64_t{8});
  k.many(OpKind::kCluster, {}, {}, attrs);
  c.array = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(1));
  c.parts = c.via = k.shared(Dtype::kFloat, 16);
  const std::vector<float> values = {1e8f, 1.0f, -1e8f, 3.5f, 1e-3f, -7.0f, 1e8f, 0.25f};
  const ValueId x = k.input<float>("x", values);
  k.effect(OpKind::kClusterArrive, {});
  k.store(c.array, k.index(0), k.load(x, k.block_x()));
  c.reduce(k);
  k.store(y, k.block_x(), k.load(c.array, k.index(0)));
  k.effect(OpKind::kClusterWait, {});
  expect_clean(k.run({.grid = {8, 1, 1}, .block = {1, 1, 1}, .shared_bytes = 64}));
  float want = values[0];
  for (size_t i = 1; i < values.size(); ++i) want += values[i];
  for (const float got : k.values<float>("y")) EXPECT_EQ(got, want);
}

TEST(HostClusters, APartMayNotComeBeforeTheOtherBlocksHaveBegun) {
  const auto finding = run_rows({.arrives = false}, kRows);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->code, ErrorCode::kRace);
  EXPECT_EQ(finding->kind, OpKind::kClusterReduce);
}

TEST(HostClusters, ABlockMayNotEndBetweenArrivalAndWait) {
  const auto finding = run_rows({.waits = false}, kRows);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->code, ErrorCode::kDivergentBarrier);
}

TEST(HostClusters, PartsMayNotLieOnMemoryThatTheBlockUses) {
  const auto finding = run_rows({.parts_offset = 0}, kRows);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->code, ErrorCode::kRace);
}

TEST(HostClusters, BlocksMustReachTheSameExchange) {
  HostKernel k;
  ClusterKernel c{.blocks = 2};
  c.begin(k);
  k.store(c.array, k.index(0), constant(k.g, Dtype::kInt32, {}));
  k.begin_if(k.op(OpKind::kEq, {k.block_x(), k.index(0)}, Dtype::kBool));
  c.reduce(k);
  k.region = Graph::body();
  c.end(k);
  const HostResult r = k.run({.grid = {2, 1, 1}, .block = {8, 1, 1}, .shared_bytes = 2048});
  ASSERT_TRUE(r.finding);
  EXPECT_EQ(r.finding->code, ErrorCode::kDivergentBarrier);
}

// A reduction along another axis than the cluster's would read the parts of blocks outside the cluster.
TEST(HostClusters, PartsOfOtherClustersDoNotCome) {
  HostKernel k;
  ClusterKernel c{.blocks = 2};
  c.begin(k);
  k.store(c.array, k.index(0), constant(k.g, Dtype::kInt32, {}));
  c.axis = ParallelType::kGridY;
  c.reduce(k);
  c.end(k);
  const HostResult r = k.run({.grid = {2, 2, 1}, .block = {8, 1, 1}, .shared_bytes = 2048});
  ASSERT_TRUE(r.finding);
  EXPECT_EQ(r.finding->code, ErrorCode::kRace);
}

TEST(HostClusters, TheGridConsistsOfWholeClusters) {
  try {
    run_rows({.blocks = 4}, {.grid = {6, 1, 1}, .block = {8, 1, 1}, .shared_bytes = 2048});
    ADD_FAILURE() << "a part of a cluster is launched";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kInternal);
  }
}

// Between blocks of a cluster, stores before a wait are ordered with those after it; other blocks are not waited for.
TEST(HostClusters, RacesBetweenBlocksAreFound) {
  for (const bool is_ordered : {false, true})
    for (const int64_t grid : {2, 4}) {
      HostKernel k;
      const ValueId y = k.output<int32_t>("y", 1);
      ClusterKernel c{.blocks = 2};
      c.begin(k);
      const ValueId zero = constant(k.g, Dtype::kInt32, {});
      k.store(c.array, k.index(0), zero);
      const ValueId is_first =
          k.op(OpKind::kEq, {k.op(OpKind::kMod, {k.block_x(), k.index(2)}, Dtype::kIndex), k.index(0)}, Dtype::kBool);
      const ValueId first_thread = k.op(OpKind::kEq, {k.thread_x(), k.index(0)}, Dtype::kBool);
      k.begin_if(k.op(OpKind::kLogicalAnd, {is_first, first_thread}, Dtype::kBool));
      k.store(y, k.index(0), zero);
      k.region = Graph::body();
      if (is_ordered) c.reduce(k);
      k.begin_if(
          k.op(OpKind::kLogicalAnd, {k.op(OpKind::kLogicalNot, {is_first}, Dtype::kBool), first_thread}, Dtype::kBool));
      k.store(y, k.index(0), zero);
      k.region = Graph::body();
      c.end(k);
      const HostResult r = k.run({.grid = {grid, 1, 1}, .block = {8, 1, 1}, .shared_bytes = 2048});
      EXPECT_EQ(r.finding.has_value(), !is_ordered || grid > 2) << (r.finding ? r.finding->message() : "");
    }
}

// The barriers of a cluster are shared memory of the kernel's own.
TEST(HostClusters, LeaveRoomForTheirBarriers) {
  LaunchDims dims = kRows;
  dims.shared_bytes = 227 * 1024 - 16;
  EXPECT_FALSE(run_rows({}, dims));
  dims.shared_bytes += 1;
  try {
    run_rows({}, dims);
    FAIL() << "it runs";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kLaunchLimit);
  }
}

}  // namespace
}  // namespace fusebox
