// Races, double stores and divergent barriers that the host executor finds: for each rule a kernel that breaks it, and one
// that nearly does.
#include "tests/unit/replay/host_runner.h"

namespace fusebox {
namespace {

using testing::expect_clean;
using testing::expect_finding;
using testing::HostKernel;
using testing::kOneBlock;
using testing::kTwoBlocks;
using testing::ramp;

TEST(HostSynchronisation, DoubleStore) {
  for (const int64_t divisor : {1, 2}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 8);
    k.store(y, k.op(OpKind::kDiv, {k.thread_x(), k.index(divisor)}, Dtype::kIndex),
            constant(k.graph, Dtype::kFloat, {}));
    const HostResult r = k.run(kOneBlock);
    if (divisor == 1) {
      expect_clean(r);
    } else {
      expect_finding(r, ErrorCode::kDoubleStore, "%y[0]");
      EXPECT_EQ(r.finding->thread[0], 1);
    }
  }
}
TEST(HostSynchronisation, DoubleStoreByUniformIndexAcrossBlocks) {
  for (const bool is_guarded : {false, true}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 1);
    k.begin_if(k.less(is_guarded ? k.global_thread() : k.thread_x(), k.index(1)));
    k.store(y, k.index(0), constant(k.graph, Dtype::kFloat, {}));
    const HostResult r = k.run(kTwoBlocks);
    if (is_guarded) {
      expect_clean(r);
    } else {
      expect_finding(r, ErrorCode::kDoubleStore, "%y[0]");
      EXPECT_EQ(r.finding->block[0], 1);
    }
  }
}
TEST(HostSynchronisation, TwoStoresOfOneThreadOrAcrossABarrier) {
  for (const bool has_barrier : {false, true}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    k.store(y, t, constant(k.graph, Dtype::kFloat, {}));
    k.store(y, t, constant(k.graph, Dtype::kFloat, {}));
    if (has_barrier) k.barrier();
    k.store(y, k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex), constant(k.graph, Dtype::kFloat, {}));
    const HostResult r = k.run(kOneBlock);
    if (has_barrier)
      expect_clean(r);
    else
      EXPECT_EQ(r.finding->code, ErrorCode::kDoubleStore);
  }
}
// Each thread stores s[t] and then reads s[7 − t].
HostResult exchange(bool has_barrier, bool is_shared, bool has_second_barrier) {
  HostKernel k;
  const ValueId s = is_shared ? k.shared(Dtype::kFloat, 8) : k.output<float>("s", 8);
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x(), other = k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex);
  ValueId i;
  k.begin_for(k.index(0), k.index(2), k.index(1), i);
  k.store(s, t, k.op(OpKind::kCast, {t}, Dtype::kFloat));
  if (has_barrier) k.barrier();
  k.store(y, t, k.load(s, other));
  if (has_second_barrier) k.barrier();
  const HostResult r = k.run(kOneBlock);
  if (!r.finding) {
    EXPECT_EQ(k.values<float>("y")[0], 7);
  }
  return r;
}
TEST(HostSynchronisation, RaceReadAfterWriteAndWriteAfterRead) {
  for (const bool is_shared : {false, true}) {
    expect_clean(exchange(true, is_shared, true));
    EXPECT_EQ(exchange(false, is_shared, true).finding->code, ErrorCode::kRace);
    const HostResult r =
        exchange(true, is_shared, false);  // the second iteration stores what the first one still reads
    EXPECT_EQ(r.finding->code, ErrorCode::kRace);
    EXPECT_EQ(r.finding->kind, OpKind::kStore);
  }
}
TEST(HostSynchronisation, RaceOnOneElementThatAllRead) {
  for (const bool has_barrier : {false, true}) {
    HostKernel k;
    const ValueId s = k.shared(Dtype::kFloat, 1);
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    const RegionId outer = k.begin_if(k.less(t, k.index(1)));
    k.store(s, k.index(0), constant(k.graph, Dtype::kFloat, from_double(Dtype::kFloat, 5)));
    k.region = outer;
    if (has_barrier) k.barrier();
    k.store(y, t, k.load(s, k.index(0)));
    const HostResult r = k.run(kOneBlock);
    if (has_barrier) {
      expect_clean(r);
      EXPECT_EQ(k.values<float>("y")[7], 5);
    } else {
      EXPECT_EQ(r.finding->code, ErrorCode::kRace);
      EXPECT_EQ(r.finding->thread[0], 1);
    }
  }
}
TEST(HostSynchronisation, StoreAfterAllHaveRead) {
  // The first reader stores after the others have read.
  for (const bool has_barrier : {false, true}) {
    HostKernel k;
    const ValueId x = k.input<float>("x", {1});
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    k.store(y, t, k.load(x, k.index(0)));
    if (has_barrier) k.barrier();
    k.begin_if(k.less(t, k.index(1)));
    k.store(x, k.index(0), constant(k.graph, Dtype::kFloat, from_double(Dtype::kFloat, 5)));
    const HostResult r = k.run(kOneBlock);
    has_barrier ? expect_clean(r) : expect_finding(r, ErrorCode::kRace, "%x[0]");
  }
}
TEST(HostSynchronisation, RaceBetweenBlocks) {
  for (const bool same_block : {true, false}) {
    HostKernel k;
    const ValueId s = k.output<float>("s", 16);
    const ValueId y = k.output<float>("y", 16);
    const ValueId i = k.global_thread(), t = k.thread_x();
    k.store(s, i, constant(k.graph, Dtype::kFloat, {}));
    k.barrier();
    const ValueId base = k.mul(same_block ? k.block_x() : k.index(0), k.index(8));
    k.store(y, i, k.load(s, k.add(base, k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex))));
    const HostResult r = k.run(kTwoBlocks);
    if (same_block) {
      expect_clean(r);
    } else {
      expect_finding(r, ErrorCode::kRace, "%s[7]");
      EXPECT_EQ(r.finding->block[0], 1);
    }
  }
}
TEST(HostSynchronisation, AnotherBlocksReadIsRemembered) {
  // Both blocks read x[0]. Block 1 stores it after a barrier of its own.
  for (const int64_t reads : {1, 2}) {
    HostKernel k;
    const ValueId x = k.input<float>("x", ramp(1));
    const ValueId y = k.output<float>("y", 16);
    const ValueId i = k.global_thread();
    const RegionId outer = k.begin_if(k.less(k.index(1 - reads), k.block_x()));
    k.store(y, i, k.load(x, k.index(0)));
    k.region = outer;
    k.barrier();
    k.begin_if(k.op(OpKind::kEq, {i, k.index(8)}, Dtype::kBool));
    k.store(x, k.index(0), constant(k.graph, Dtype::kFloat, {}));
    const HostResult r = k.run(kTwoBlocks);
    if (reads == 1)
      expect_clean(r);
    else
      expect_finding(r, ErrorCode::kRace, "%x[0]");
  }
}
TEST(HostSynchronisation, OverlappingArgumentsShareTheirMarks) {
  // y is x's memory: in place if each thread stores what it read, a race if it stores its neighbour's value.
  for (const int64_t shift : {0, 1}) {
    HostKernel k;
    const ValueId x = k.input<float>("x", ramp(9));
    const ValueId y = k.tensor_input(Dtype::kFloat, "y");
    const ValueId t = k.thread_x();
    k.store(y, k.add(t, k.index(shift)), k.load(x, t));
    const HostArgument memory = HostArgument::memory(Dtype::kFloat, k.buffers["x"].data(), 9);
    const HostResult r = run_kernel(compile_bytecode(k.graph), kOneBlock, std::array{memory, memory});
    if (shift == 0)
      expect_clean(r);
    else
      expect_finding(r, ErrorCode::kRace, "%y[1]");
  }
}

// -- divergence
TEST(HostSynchronisation, DivergentBarrier) {
  for (const int64_t limit : {7, 8}) {
    HostKernel k;
    k.begin_if(k.less(k.thread_x(), k.index(limit)));
    k.barrier();
    const HostResult r = k.run(kOneBlock);
    if (limit == 8) {
      expect_clean(r);
    } else {
      expect_finding(r, ErrorCode::kDivergentBarrier, "line 5");
      EXPECT_EQ(r.finding->thread[0], 7);
    }
  }
}
TEST(HostSynchronisation, DivergentLoopAroundABarrier) {
  for (const bool is_uniform : {true, false}) {
    HostKernel k;
    ValueId i;
    k.begin_for(k.index(0), is_uniform ? k.index(3) : k.thread_x(), k.index(1), i);
    k.barrier();
    const HostResult r = k.run(kOneBlock);
    if (is_uniform)
      expect_clean(r);
    else
      EXPECT_EQ(r.finding->code, ErrorCode::kDivergentBarrier);
  }
}
HostResult grid_barriers(bool only_block_zero, uint32_t counter) {
  HostKernel k;
  const ValueId c = k.input<uint32_t>("c", {counter});
  if (only_block_zero) k.begin_if(k.less(k.block_x(), k.index(1)));
  k.effect(OpKind::kGridBarrier, {c});
  return k.run(kTwoBlocks);
}
TEST(HostSynchronisation, DivergentGridBarrier) {
  expect_clean(grid_barriers(false, 0));
  EXPECT_EQ(grid_barriers(true, 0).finding->code, ErrorCode::kDivergentBarrier);
  expect_finding(grid_barriers(false, 1), ErrorCode::kUnwrittenRead, "%c[0]");
}

// Marks are renumbered while blocks wait for one another; older marks keep their meaning, those of a block's shared
// memory too. `moved`: each block reads what it stored; what the other one stored before the waits, which is
// ordered; or what the other one stores after them, which is not.
enum class Moved { kOwn, kBefore, kAfter };
HostResult many_grid_barriers(Moved moved) {
  HostKernel k;
  const ValueId c = k.input<uint32_t>("c", {0});
  const ValueId y = k.output<float>("y", 16), z = k.output<float>("z", 16);
  const ValueId s = k.shared(Dtype::kFloat, 8);
  const ValueId i = k.global_thread(), t = k.thread_x();
  const ValueId far = k.op(OpKind::kSub, {k.index(15), i}, Dtype::kIndex);
  const auto wait = [&](int64_t times) {
    ValueId turn;
    k.begin_for(k.index(0), k.index(times), k.index(1), turn);
    k.effect(OpKind::kGridBarrier, {c});
    k.region = Graph::body();
  };
  // A wait takes three epochs. The stores have late marks, so that only new numbers order them before what follows.
  wait(160000);
  k.store(s, t, k.to_float(i));
  k.store(y, i, k.to_float(i));
  wait(40000);
  if (moved == Moved::kOwn) k.store(z, i, k.load(s, k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex)));
  if (moved == Moved::kAfter) k.store(y, i, k.to_float(t));
  if (moved != Moved::kOwn) k.store(z, i, k.load(y, far));
  const HostResult r = k.run(kTwoBlocks);
  if (!r.finding) {
    EXPECT_EQ(k.values<float>("z")[8], 7 + (moved == Moved::kOwn ? 8 : 0));
  }
  return r;
}
TEST(HostSynchronisation, MoreGridBarriersThanEpochs) {
  expect_clean(many_grid_barriers(Moved::kOwn));
  expect_clean(many_grid_barriers(Moved::kBefore));
  expect_finding(many_grid_barriers(Moved::kAfter), ErrorCode::kRace, "%y[8]");
}
// The marks of two blocks are renumbered in the middle of a phase: what one block stored there, the other may not read.
TEST(HostSynchronisation, MoreBarriersThanEpochsBetweenTwoOfTheGrid) {
  for (const bool is_racy : {false, true}) {
    HostKernel k;
    const ValueId c = k.input<uint32_t>("c", {0});
    const ValueId y = k.input<float>("y", ramp(16));
    const ValueId z = k.output<float>("z", 16), w = k.output<float>("w", 16);
    const ValueId s = k.shared(Dtype::kFloat, 8);
    const ValueId i = k.global_thread(), t = k.thread_x();
    k.store(s, t, k.to_float(i));
    k.effect(OpKind::kGridBarrier, {c});
    k.store(y, i, k.to_float(i));
    ValueId turn;
    k.begin_for(k.index(0), k.index(400000), k.index(1), turn);
    k.barrier();
    k.region = Graph::body();
    const ValueId far = k.op(OpKind::kSub, {k.index(15), i}, Dtype::kIndex);
    if (is_racy) k.store(z, i, k.load(y, far));
    k.effect(OpKind::kGridBarrier, {c});
    if (!is_racy) k.store(z, i, k.load(y, far));
    k.store(w, i, k.load(s, k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex)));
    const HostResult r = k.run(kTwoBlocks);
    if (is_racy) {
      expect_finding(r, ErrorCode::kRace, "%y[8]");
    } else {
      expect_clean(r);
      EXPECT_EQ(k.values<float>("z")[0], 15);
      EXPECT_EQ(k.values<float>("w")[8], 15);
    }
  }
}

}  // namespace
}  // namespace fusebox
