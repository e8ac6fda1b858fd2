// Clusters of blocks on a GPU: many exchanges one after another, and softmax and normalisations whose rows several
// blocks share. Each schedule gives the host executor's bits.
#include <array>
#include <gtest/gtest.h>
#include <map>

#include "ir/infer/bind.h"
#include "ir/module/architecture.h"
#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "tests/support/gpu.h"
#include "tests/support/gpu_device.h"
#include "tests/support/kernel_cases.h"
#include "tests/support/program_text.h"
#include "tests/support/run_compiled.h"

namespace fusebox {
namespace {

using testing::KernelWriter;
using testing::output_digests;
using testing::replaced;

class ClustersOnGpu : public testing::GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && !has_clusters(session_->device().architecture)) GTEST_SKIP() << "this GPU has no clusters";
  }

  // Each round replaces the three elements of a thread by their sums over the cluster, modulo a prime. Blocks that are
  // early would spoil the parts of others.
  void check_rounds(int64_t blocks, bool along_y, bool over_threads) {
    constexpr int64_t kRounds = 100, kElements = 3, kPrime = 1009, kThreads = 64, kOthers = 40;
    Graph g;
    KernelWriter k(g);
    const ValueId y = k.tensor_input(Dtype::kInt64, "y");
    const ParallelType axis = along_y ? ParallelType::kGridY : ParallelType::kGridX;
    Attrs cluster;
    cluster.set_enum(AttrKey::kParallel, axis);
    cluster.set(AttrKey::kClusterBlocks, blocks);
    k.many(OpKind::kCluster, {}, {}, cluster);
    const ValueId array = k.allocate(Dtype::kInt64, MemoryType::kLocal, k.index(kElements));
    const ValueId via = k.allocate(Dtype::kInt64, MemoryType::kShared, k.index(2 * kThreads), k.index(0));
    const ValueId parts = k.allocate(Dtype::kInt64, MemoryType::kShared, k.index(2 * blocks * kElements * kThreads),
                                     k.index(16 * kThreads));
    k.effect(OpKind::kClusterArrive, {});
    const auto grid_x = k.thread(OpKind::kThreadIndex, ParallelType::kGridX);
    const auto row = k.op(
        OpKind::kMul,
        {k.thread(OpKind::kThreadIndex, ParallelType::kGridY), k.thread(OpKind::kThreadCount, ParallelType::kGridX)},
        Dtype::kIndex);
    const ValueId block = k.op(OpKind::kAdd, {row, grid_x}, Dtype::kIndex);
    const ValueId t = k.op(OpKind::kAdd,
                           {k.op(OpKind::kMul, {block, k.index(kThreads)}, Dtype::kIndex),
                            k.thread(OpKind::kThreadIndex, ParallelType::kBlockX)},
                           Dtype::kIndex);
    const auto number = [&](int64_t n) { return constant(g, Dtype::kInt64, from_int64(Dtype::kInt64, n)); };
    const ValueId own = k.op(OpKind::kCast, {t}, Dtype::kInt64);
    for (int64_t e = 0; e < kElements; ++e)
      k.store(array, k.index(e), k.op(OpKind::kAdd, {own, number(e)}, Dtype::kInt64));
    ValueId round;
    const RegionId body = k.region;
    k.begin_for(k.index(0), k.index(kRounds), k.index(1), round);
    Attrs attrs;
    attrs.set_enum(AttrKey::kReduceOp, ReduceOp::kSum);
    std::vector<int64_t> over = {static_cast<int64_t>(axis)};
    if (over_threads) over.push_back(static_cast<int64_t>(ParallelType::kBlockX));
    attrs.set(AttrKey::kThreads, over);
    attrs.set(AttrKey::kClusterBlocks, blocks);
    k.many(OpKind::kClusterReduce, {array, parts, via}, {}, attrs);
    for (int64_t e = 0; e < kElements; ++e) {
      const ValueId sum = k.op(OpKind::kMod, {k.load(array, k.index(e)), number(kPrime)}, Dtype::kInt64);
      const ValueId next = k.op(OpKind::kAdd, {sum, own}, Dtype::kInt64);
      k.store(array, k.index(e), next);
    }
    k.region = body;
    for (int64_t e = 0; e < kElements; ++e)
      k.store(
          y,
          k.op(OpKind::kAdd, {k.op(OpKind::kMul, {t, k.index(kElements)}, Dtype::kIndex), k.index(e)}, Dtype::kIndex),
          k.load(array, k.index(e)));
    k.effect(OpKind::kClusterWait, {});
    const int64_t all = blocks * kOthers * kThreads;
    const uint64_t out = upload(std::vector<int64_t>(static_cast<size_t>(all * kElements)));
    const CudaSource source = emit_cuda(g);
    run(source.text, source.entry,
        {.grid = {along_y ? kOthers : blocks, along_y ? blocks : kOthers, 1},
         .block = {kThreads, 1, 1},
         .shared_bytes = 16 * kThreads + 2 * blocks * kElements * kThreads * 8},
        {out});
    std::vector<int64_t> want(static_cast<size_t>(all * kElements));
    for (int64_t i = 0; i < all; ++i)
      for (int64_t e = 0; e < kElements; ++e) want[static_cast<size_t>(i * kElements + e)] = i + e;
    for (int64_t r = 0; r < kRounds; ++r) {
      std::map<std::array<int64_t, 3>, int64_t> sums;
      const auto key = [&](int64_t i, int64_t e) {
        const int64_t b = i / kThreads, other = along_y ? b % kOthers : b / blocks;
        return std::array<int64_t, 3>{other, over_threads ? 0 : i % kThreads, e};
      };
      for (int64_t i = 0; i < all; ++i)
        for (int64_t e = 0; e < kElements; ++e) sums[key(i, e)] += want[static_cast<size_t>(i * kElements + e)];
      for (int64_t i = 0; i < all; ++i)
        for (int64_t e = 0; e < kElements; ++e)
          want[static_cast<size_t>(i * kElements + e)] = sums[key(i, e)] % kPrime + i;
    }
    EXPECT_EQ(download<int64_t>(out, want.size()), want);
  }
};

TEST_F(ClustersOnGpu, ManyExchanges) {
  for (const int64_t blocks : {2, 4, 8})
    for (const bool along_y : {false, true})
      for (const bool over_threads : {false, true}) {
        SCOPED_TRACE(std::to_string(blocks) + (along_y ? " along y" : " along x") +
                     (over_threads ? " over threads" : ""));
        check_rounds(blocks, along_y, over_threads);
      }
}

constexpr const char* kSoftmax = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %mx = max %x over [1]
  %mxb = broadcast %mx mask [0, 1]
  %d = sub %x, %mxb
  %e = exp %d
  %s = sum %e over [1]
  %sb = broadcast %s mask [0, 1]
  %y = truediv %e, %sb
  output %y
})";
constexpr const char* kRmsNorm = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %sq = mul %x, %x
  %ss = sum %sq over [1]
  %nf = cast %n as f32
  %ms = truediv %ss, %nf
  %shifted = add %ms, 0.00001_f32
  %r = rsqrt %shifted
  %rb = broadcast %r mask [0, 1]
  %y = mul %x, %rb
  %z = neg %r
  output %y
  output %z
})";
constexpr const char* kLayerNorm = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %avg, %var, %count = welford %x over [1]
  %nf = cast %n as f32
  %v = truediv %var, %nf
  %shifted = add %v, 0.00001_f32
  %r = rsqrt %shifted
  %ab = broadcast %avg mask [0, 1]
  %rb = broadcast %r mask [0, 1]
  %c = sub %x, %ab
  %y = mul %c, %rb
  output %y
})";

// A thread keeps 16 elements of a row, a block's warps follow the row's length.
std::string steps(int64_t blocks, bool along_y) {
  return R"(steps @f {
  cache_after %x -> xc
  split %y.i1 by )" +
         std::to_string(blocks) + R"( outer -> g, p
  split %y.p by 32 -> k, l
  split %y.k by 16 -> w, r
  reorder %y to [%y.i0, %y.g, %y.w, %y.l, %y.r]
  transform_like %y to []
  parallelize %y.i0 on )" +
         (along_y ? "grid.x" : "grid.y") + R"(
  parallelize %y.g on )" +
         (along_y ? "grid.y" : "grid.x") + R"(
  parallelize %y.w on block.y
  parallelize %y.l on block.x
  parallelize_like %y to []
  inline_most of []
  cluster of [] blocks )" +
         std::to_string(blocks) + " on " + (along_y ? "grid.y" : "grid.x") + R"(
}
inputs @f host {
  %x = f32[ROWS, COLUMNS] normal seed 7
}
)";
}

class ClusterSchedules : public ::testing::TestWithParam<const char*> {};

TEST_P(ClusterSchedules, GiveTheBitsOfTheHostExecutor) {
  const auto gpu = testing::gpu_or_null();
  for (const int64_t blocks : {2, 4, 8})
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{3, 1},
                                        {1, 7},
                                        {5, 1023},
                                        {2, 4099},
                                        {300, 129},
                                        {3, 16384},
                                        {2, 29350},
                                        {0, 64}}) {
      const std::string program = replaced(
          replaced(GetParam() + std::string("\n") + steps(blocks, columns % 2 == 1), "ROWS", rows), "COLUMNS", columns);
      SCOPED_TRACE(program);
      const Module m = parse_module(program);
      std::vector<Argument> inputs;
      for (const InputSpec& s : m.input_specs[0].specs) inputs.push_back(make_argument(s));
      const Graph& g = m.graphs[0];
      const Compiled compiled = compile(g, bind_sizes(g, bound_inputs(inputs)), {.steps = m.step_lists[0].steps});
      const auto host = make_host_device();
      const std::vector<Digest> expected = output_digests(compiled, *host, inputs);
      if (!gpu) continue;
      EXPECT_EQ(output_digests(compiled, *gpu, inputs), expected);
    }
  if (!gpu) GTEST_SKIP() << "no GPU";
}

std::string name_of(const ::testing::TestParamInfo<const char*>& param) {
  static constexpr const char* kNames[] = {"softmax", "rms_norm", "layer_norm"};
  return kNames[param.index];
}
INSTANTIATE_TEST_SUITE_P(All, ClusterSchedules, ::testing::Values(kSoftmax, kRmsNorm, kLayerNorm), name_of);

}  // namespace
}  // namespace fusebox
