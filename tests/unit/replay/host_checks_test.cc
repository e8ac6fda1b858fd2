// Each check of the host executor: a kernel that breaks the rule, and one that nearly does.
#include "replay/device/device.h"
#include "replay/host/idle_loops.h"
#include "tests/support/expect_error.h"
#include "tests/unit/replay/host_runner.h"

namespace fusebox {
namespace {

using testing::expect_clean;
using testing::expect_finding;
using testing::HostKernel;
using testing::kOneBlock;
using testing::kTwoBlocks;
using testing::ramp;

// -- bounds
HostResult store_shifted(int64_t shift, int64_t elements) {
  HostKernel k;
  const ValueId y = k.output<float>("y", elements);
  const ValueId t = k.thread_x();
  k.store(y, k.add(t, k.index(shift)), k.op(OpKind::kCast, {t}, Dtype::kFloat));
  return k.run(kOneBlock);
}
TEST(HostChecks, StoreOutOfBounds) {
  expect_finding(store_shifted(1, 8), ErrorCode::kOutOfBounds, "%y[8]");
  expect_finding(store_shifted(-1, 8), ErrorCode::kOutOfBounds, "%y[-1]");
  expect_clean(store_shifted(0, 8));
  expect_clean(store_shifted(1, 9));
}
TEST(HostChecks, FindingNamesThreadBlockAndLine) {
  HostKernel k;
  const ValueId y = k.output<float>("y", 15);
  const ValueId i = k.global_thread();
  k.store(y, i, constant(k.graph, Dtype::kFloat, from_double(Dtype::kFloat, 1)));
  const HostResult r = k.run(kTwoBlocks);
  expect_finding(r, ErrorCode::kOutOfBounds, "%y[15]");
  EXPECT_EQ(r.finding->block, (std::array<int64_t, 3>{1, 0, 0}));
  EXPECT_EQ(r.finding->thread, (std::array<int64_t, 3>{7, 0, 0}));
  EXPECT_EQ(r.finding->kind, OpKind::kStore);
  EXPECT_EQ(r.finding->line, 8u);  // kernel line, input, thread index, thread count, mul, thread index, add, store
  EXPECT_EQ(r.finding->error().code, ErrorCode::kOutOfBounds);
}
HostResult load_reversed(int64_t from, int64_t elements) {
  HostKernel k;
  const ValueId x = k.input<float>("x", ramp(static_cast<size_t>(elements)));
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x();
  k.store(y, t, k.load(x, k.op(OpKind::kSub, {k.index(from), t}, Dtype::kIndex)));
  return k.run(kOneBlock);
}
TEST(HostChecks, LoadOutOfBounds) {
  expect_finding(load_reversed(8, 8), ErrorCode::kOutOfBounds, "%x[8]");
  expect_finding(load_reversed(6, 8), ErrorCode::kOutOfBounds, "%x[-1]");
  expect_clean(load_reversed(7, 8));
}
TEST(HostChecks, PredicateKeepsAccessInside) {
  HostKernel k;
  const ValueId x = k.input<float>("x", ramp(5));
  const ValueId y = k.output<float>("y", 5);
  const ValueId t = k.thread_x(), p = k.less(t, k.index(5));
  const ValueId v = k.op(OpKind::kLoad, {x, t, p, {}}, Dtype::kFloat);
  k.effect(OpKind::kStore, {y, t, v, p});
  expect_clean(k.run(kOneBlock));
  EXPECT_EQ(k.values<float>("y"), ramp(5));
}
HostResult shared_access(int64_t elements, int64_t offset, int64_t at) {
  HostKernel k;
  const ValueId s = k.shared(Dtype::kFloat, elements, offset);
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x();
  k.store(s, k.add(t, k.index(at)), constant(k.graph, Dtype::kFloat, {}));
  k.store(y, t, k.load(s, k.add(t, k.index(at))));
  return k.run(kOneBlock);
}
TEST(HostChecks, SharedBounds) {
  expect_clean(shared_access(8, 1024 - 32, 0));
  EXPECT_EQ(shared_access(8, 0, 1).finding->code, ErrorCode::kOutOfBounds);
  EXPECT_EQ(shared_access(8, 1024 - 28, 0).finding->code, ErrorCode::kOutOfBounds);  // past the launch's shared memory
  EXPECT_EQ(shared_access(8, 2, 0).finding->code, ErrorCode::kMisaligned);
}
HostResult local_access(int64_t at, bool by_thread) {
  HostKernel k;
  const ValueId s = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(4));
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x();
  const ValueId i = by_thread ? k.op(OpKind::kDiv, {t, k.index(2)}, Dtype::kIndex) : k.index(0);
  const ValueId place = k.add(i, k.index(at));
  k.store(s, place, constant(k.graph, Dtype::kFloat, {}));
  k.store(y, t, k.load(s, place));
  return k.run(kOneBlock);
}
TEST(HostChecks, LocalBounds) {
  expect_clean(local_access(3, false));
  expect_clean(local_access(0, true));
  EXPECT_EQ(local_access(4, false).finding->code, ErrorCode::kOutOfBounds);
  const HostResult r = local_access(1, true);
  EXPECT_EQ(r.finding->code, ErrorCode::kOutOfBounds);
  EXPECT_EQ(r.finding->thread[0], 6);
  EXPECT_EQ(r.finding->element, 4);
}

// -- data-dependent indices
HostResult chosen_row(int64_t row, bool is_argument, bool from_end) {
  HostKernel k;
  const ValueId x = k.input<float>("x", ramp(64));
  const ValueId rows = k.input<int32_t>("rows", {0, 1, static_cast<int32_t>(row), 0, 1, 0, 1, 0});
  const ValueId y = k.output<float>("y", 8);
  const ValueId n = k.scalar("n", 4);
  const ValueId t = k.thread_x();
  const ValueId chosen = k.load(rows, t);
  Attrs attrs;
  if (is_argument) attrs.set(AttrKey::kAxis, 1);
  if (from_end) attrs.set_flag(AttrKey::kFromEnd);
  k.effect(OpKind::kWithin, {chosen, is_argument ? ValueId() : n, is_argument ? x : ValueId()}, attrs);
  // The element lies in the buffer for any row.
  k.store(y, t, k.load(x, k.add(k.op(OpKind::kCast, {chosen}, Dtype::kIndex), k.index(20))));
  k.extents["x"] = {16, 4};
  return k.run(kOneBlock);
}
TEST(HostChecks, IndexOutsideItsAxis) {
  for (const bool is_argument : {false, true}) {
    const std::string place = is_argument ? "%x[4]" : "line 8";
    expect_finding(chosen_row(4, is_argument, false), ErrorCode::kIndexOutOfRange, place);
    expect_finding(chosen_row(4, is_argument, true), ErrorCode::kIndexOutOfRange, place);
    expect_clean(chosen_row(3, is_argument, false));
    EXPECT_EQ(chosen_row(-1, is_argument, false).finding->code, ErrorCode::kIndexOutOfRange);
    EXPECT_EQ(chosen_row(-5, is_argument, true).finding->code, ErrorCode::kIndexOutOfRange);
    expect_clean(chosen_row(-4, is_argument, true));
    EXPECT_EQ(chosen_row(9, is_argument, false).finding->thread[0], 2);
  }
}
TEST(HostChecks, IndexOfAThreadThatIsOff) {
  for (const int64_t threads : {3, 2}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    const RegionId outer = k.begin_if(k.less(t, k.index(threads)));
    k.effect(OpKind::kWithin, {t, k.index(2), {}});
    k.region = outer;
    k.store(y, t, constant(k.graph, Dtype::kFloat, {}));
    if (threads == 2)
      expect_clean(k.run(kOneBlock));
    else
      EXPECT_EQ(k.run(kOneBlock).finding->thread[0], 2);
  }
}
TEST(HostChecks, AnArgumentHasTheAxisThatIsChecked) {
  HostKernel k;
  const ValueId x = k.input<float>("x", ramp(8));
  Attrs attrs;
  attrs.set(AttrKey::kAxis, 1);
  k.effect(OpKind::kWithin, {k.thread_x(), {}, x}, attrs);
  k.extents["x"] = {8};
  testing::expect_error(ErrorCode::kBadInput, "%x", [&] { k.run(kOneBlock); });
}

// -- alignment
HostResult copy_at(int64_t from, int64_t local_align, int64_t elements = 64) {
  HostKernel k;
  const ValueId x = k.input<float>("x", ramp(static_cast<size_t>(elements)));
  const ValueId y = k.output<float>("y", 32);
  const ValueId r = k.buffer(Dtype::kFloat, "r", MemoryType::kLocal);
  Attrs attrs;
  attrs.set_enum(AttrKey::kMemory, MemoryType::kLocal);
  attrs.set(AttrKey::kAlign, local_align);
  append(k.g, k.region, Op{OpKind::kAllocate, {k.index(4), {}}, {r}, attrs, {}});
  Attrs four;
  four.set(AttrKey::kWidth, int64_t{4});
  const ValueId base = k.mul(k.thread_x(), k.index(4));
  k.effect(OpKind::kCopy, {r, k.index(0), x, k.add(base, k.index(from)), {}}, four);
  k.effect(OpKind::kCopy, {y, base, r, k.index(0), {}}, four);
  const HostResult result = k.run(kOneBlock);
  if (!result.finding) {
    EXPECT_EQ(k.values<float>("y")[31], static_cast<float>(32 + from));
  }
  return result;
}
TEST(HostChecks, MisalignedVector) {
  expect_clean(copy_at(0, 16));
  expect_clean(copy_at(4, 16));
  expect_finding(copy_at(2, 16), ErrorCode::kMisaligned, "%x[2]");
  expect_finding(copy_at(0, 8), ErrorCode::kMisaligned, "%r[0]");
  expect_finding(copy_at(4, 16, 33), ErrorCode::kOutOfBounds, "%x[32]");
}

// -- unwritten
TEST(HostChecks, HolesOfAnInputHoldNothing) {
  for (const int64_t step : {2, 1}) {
    HostKernel k;
    const ValueId x = k.input<float>("x", ramp(16));
    const ValueId y = k.output<float>("y", 8);
    for (size_t e = 1; e < 16; e += 2) k.buffers["x"].written[e] = 0;
    const ValueId t = k.thread_x();
    k.store(y, t, k.load(x, k.mul(t, k.index(step))));
    if (step == 2)
      expect_clean(k.run(kOneBlock));
    else
      expect_finding(k.run(kOneBlock), ErrorCode::kUnwrittenRead, "%x[1]");
  }
}
TEST(HostChecks, OutputsAndSharedStartUnwritten) {
  for (const bool is_shared : {false, true})
    for (const bool writes_first : {false, true}) {
      HostKernel k;
      const ValueId s = is_shared ? k.shared(Dtype::kFloat, 8) : k.output<float>("s", 8);
      const ValueId y = k.output<float>("y", 8);
      const ValueId t = k.thread_x();
      if (writes_first) k.store(s, t, constant(k.graph, Dtype::kFloat, {}));
      k.store(y, t, k.load(s, t));
      const HostResult r = k.run(kOneBlock);
      if (writes_first)
        expect_clean(r);
      else
        EXPECT_EQ(r.finding->code, ErrorCode::kUnwrittenRead);
    }
}
TEST(HostChecks, SharedMemoryOfTheLastBlockIsGone) {
  HostKernel k;
  const ValueId s = k.shared(Dtype::kFloat, 8);
  const ValueId y = k.output<float>("y", 16);
  const ValueId i = k.global_thread(), t = k.thread_x();
  const RegionId outer = k.begin_if(k.less(k.block_x(), k.index(1)));
  k.store(s, t, constant(k.graph, Dtype::kFloat, {}));
  k.region = outer;
  k.store(y, i, k.load(s, t));
  const HostResult r = k.run(kTwoBlocks);
  ASSERT_TRUE(r.finding);
  EXPECT_EQ(r.finding->code, ErrorCode::kUnwrittenRead);
  EXPECT_EQ(r.finding->block[0], 1);
}
TEST(HostChecks, AllocationInALoopStartsUnwritten) {
  for (const bool is_kept : {false, true}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    ValueId s = is_kept ? k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(1)) : ValueId();
    ValueId i;
    k.begin_for(k.index(0), k.index(2), k.index(1), i);
    if (!is_kept) s = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(1));
    const RegionId inner = k.begin_if(k.less(i, k.index(1)));
    k.store(s, k.index(0), constant(k.graph, Dtype::kFloat, {}));
    k.region = inner;
    k.store(y, t, k.load(s, k.index(0)));
    const HostResult r = k.run(kOneBlock);
    if (is_kept)
      expect_clean(r);
    else
      EXPECT_EQ(r.finding->code, ErrorCode::kUnwrittenRead);
  }
}
TEST(HostChecks, WrittenMarksComeBack) {
  HostKernel k;
  const ValueId y = k.output<float>("y", 9);
  k.store(y, k.thread_x(), constant(k.graph, Dtype::kFloat, {}));
  expect_clean(k.run(kOneBlock));
  EXPECT_EQ(k.buffers["y"].written, (std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1, 1, 0}));
}

// -- index width
HostResult index_product(int64_t factor, int bits, OpKind kind = OpKind::kMul) {
  HostKernel k;
  k.graph.index_bits = bits;
  const ValueId n = k.scalar("n", factor);
  const ValueId y = k.output<float>("y", 8);
  const ValueId t = k.thread_x();
  const ValueId far = k.op(kind, {t, n}, Dtype::kIndex);
  k.effect(OpKind::kStore,
           {y, t, constant(k.graph, Dtype::kFloat, {}), k.op(OpKind::kGe, {far, k.index(0)}, Dtype::kBool)});
  return k.run(kOneBlock);
}
TEST(HostChecks, IndexOverflow) {
  expect_clean(index_product(0x7fffffff / 7, 32));
  const HostResult r = index_product(0x7fffffff / 7 + 1, 32);
  expect_finding(r, ErrorCode::kIndexOverflow, "line 5");
  EXPECT_EQ(r.finding->thread[0], 7);
  expect_clean(index_product(0x7fffffff, 64));
  expect_clean(index_product(INT64_MAX / 7, 64));
  EXPECT_EQ(index_product(INT64_MAX / 7 + 1, 64).finding->code, ErrorCode::kIndexOverflow);
  expect_clean(index_product(0x7fffffff - 7, 32, OpKind::kAdd));
  EXPECT_EQ(index_product(0x7fffffff - 6, 32, OpKind::kAdd).finding->code, ErrorCode::kIndexOverflow);
  EXPECT_EQ(index_product(INT64_MAX - 6, 64, OpKind::kAdd).finding->code, ErrorCode::kIndexOverflow);
}
TEST(HostChecks, AnArgumentThatLeavesTheIndexType) {
  // No thread uses it in a product, yet it is refused.
  HostKernel k;
  k.graph.index_bits = 32;
  k.scalar("n", int64_t{1} << 31);
  const ValueId y = k.output<float>("y", 8);
  k.store(y, k.thread_x(), constant(k.graph, Dtype::kFloat, {}));
  const auto run = [&] {
    try {
      k.run(kOneBlock);
    } catch (const Error& e) {
      return std::optional(e.code);
    }
    return std::optional<ErrorCode>();
  };
  EXPECT_EQ(run(), ErrorCode::kIndexOverflow);
  k.graph.index_bits = 64;
  EXPECT_EQ(run(), std::nullopt);
}
TEST(HostChecks, LanesThatAreOffDoNotOverflow) {
  HostKernel k;
  k.graph.index_bits = 32;
  const ValueId n = k.scalar("n", 0x7fffffff / 3);
  const ValueId y = k.output<int64_t>("y", 8);
  const ValueId t = k.thread_x();
  k.begin_if(k.less(k.op(OpKind::kMod, {t, k.index(4)}, Dtype::kIndex), k.index(1)));
  const RegionId outer = k.begin_if(k.less(t, k.index(4)));
  (void)outer;
  k.store(y, t, k.op(OpKind::kCast, {k.mul(t, n)}, Dtype::kInt64));
  expect_clean(k.run(kOneBlock));
}

// -- steps
TEST(HostChecks, StepLimit) {
  for (const int64_t limit : {100, 1000000}) {
    HostKernel k;
    ValueId i;
    k.begin_for(k.index(0), k.index(1000), k.index(1), i);
    k.add(i, k.thread_x());
    const HostResult r = k.run(kOneBlock, {.step_limit = limit});
    if (limit == 100)
      EXPECT_EQ(r.finding->code, ErrorCode::kStepLimit);
    else
      expect_clean(r);
  }
  HostKernel endless;
  ValueId i;
  endless.begin_for(endless.index(0), endless.index(1), endless.index(0), i);
  EXPECT_EQ(endless.run(kOneBlock, {.step_limit = 10000}).finding->code, ErrorCode::kStepLimit);
}
// A loop of `rows` iterations around loops from 0 to `columns` and to `depth`, the innermost of which stores. Between
// them stand two indices of the outer loop.
HostResult run_nest(int64_t rows, int64_t columns, int64_t depth, int index_bits = 64, bool by_lane = false) {
  HostKernel k;
  k.graph.index_bits = index_bits;
  const ValueId y = k.output<float>("y", 8);
  const ValueId m = k.scalar("m", rows), n = k.scalar("n", columns), d = k.scalar("d", depth), t = k.thread_x();
  ValueId i, j, l;
  k.begin_for(by_lane ? t : k.index(0), m, k.index(3), i);
  const ValueId p = k.less(k.mul(i, k.index(2)), k.index(10));
  k.begin_for(k.index(0), n, k.index(1), j);
  k.begin_if(p);
  k.begin_for(k.index(0), d, k.index(1), l);
  k.store(y, t, k.number(1));
  return k.run(kOneBlock);
}
TEST(HostChecks, LoopsAroundAnEmptyOneEnd) {
  for (const bool by_lane : {false, true}) {
    expect_clean(run_nest(int64_t{1} << 57, 0, 1, 64, by_lane));
    expect_clean(run_nest(int64_t{1} << 57, 0, int64_t{1} << 57, 64, by_lane));
    expect_clean(run_nest(int64_t{1} << 57, 5, 0, 64, by_lane));
    expect_clean(run_nest(int64_t{1} << 57, int64_t{1} << 50, 0, 64, by_lane));
    expect_clean(run_nest(7, 0, 0, 64, by_lane));
  }
}
TEST(HostChecks, LoopsAroundAnEmptyOneRunTheirFirstAndLastIteration) {
  // Twice the last index is what does not fit.
  expect_clean(run_nest((int64_t{1} << 30) - 1, 0, 1, 32));
  for (const bool by_lane : {false, true}) {
    expect_finding(run_nest((int64_t{1} << 30) + 9, 0, 1, 32, by_lane), ErrorCode::kIndexOverflow, "line 8");
    expect_finding(run_nest((int64_t{1} << 62) + 9, 0, 1, 64, by_lane), ErrorCode::kIndexOverflow, "line 8");
  }
}
TEST(HostChecks, ALoopWhoseBoundsChangeIsNoEmptyOne) {
  // i·i < 2n·i − n² + 1 holds in the middle alone, where both loops of 2n iterations are far from their ends.
  constexpr int64_t n = 2 * static_cast<int64_t>(host::kManyIdle);
  for (const bool by_lane : {false, true}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    ValueId i, j;
    k.begin_for(by_lane ? k.mul(t, k.index(0)) : k.index(0), k.index(2 * n), k.index(1), i);
    k.begin_for(k.mul(i, i), k.add(k.mul(i, k.index(2 * n)), k.index(1 - n * n)), k.index(1), j);
    k.store(y, t, k.to_float(i));
    expect_clean(k.run(kOneBlock));
    EXPECT_EQ(k.values<float>("y"), std::vector<float>(8, static_cast<float>(n)));
  }
}
TEST(HostChecks, AShortLoopAroundAnEmptyOneChecksAllIndices) {
  // 2^30 times the index by 5 leaves 32 bits in iterations that are neither first nor last.
  HostKernel k;
  k.graph.index_bits = 32;
  const ValueId y = k.output<float>("y", 8);
  const ValueId n = k.scalar("n", 0), t = k.thread_x();
  ValueId i, j;
  k.begin_for(k.index(0), k.index(11), k.index(1), i);
  const ValueId p =
      k.less(k.mul(k.op(OpKind::kFloorMod, {i, k.index(5)}, Dtype::kIndex), k.index(1 << 30)), k.index(7));
  k.begin_for(k.index(0), n, k.index(1), j);
  k.begin_if(p);
  k.store(y, t, k.number(1));
  expect_finding(k.run(kOneBlock), ErrorCode::kIndexOverflow, "line 7");
}
TEST(HostChecks, ALoopFarBeyondTheStepLimitIsRefusedAtOnce) {
  for (const bool by_lane : {false, true}) {
    HostKernel k;
    const ValueId y = k.output<float>("y", 8);
    const ValueId n = k.scalar("n", int64_t{1} << 57), t = k.thread_x();
    ValueId i;
    k.begin_for(by_lane ? t : k.index(0), n, k.index(8), i);
    k.store(y, t, k.number(1));
    const HostResult r = k.run(kOneBlock);
    ASSERT_TRUE(r.finding.has_value());
    EXPECT_EQ(r.finding->code, ErrorCode::kStepLimit);
    EXPECT_LT(r.thread_instructions, 100);
  }
}
TEST(HostChecks, MoreBarriersThanEpochs) {
  // Marks are renumbered in the middle of a block, twice; older marks keep their meaning.
  for (const bool is_racy : {false, true}) {
    HostKernel k;
    const ValueId s = k.shared(Dtype::kFloat, 8);
    const ValueId y = k.output<float>("y", 8);
    const ValueId t = k.thread_x();
    k.store(s, t, k.op(OpKind::kCast, {t}, Dtype::kFloat));
    k.store(y, t, k.op(OpKind::kCast, {t}, Dtype::kFloat));
    ValueId i;
    k.begin_for(k.index(0), k.index(1100000), k.index(1), i);
    k.barrier();
    k.region = Graph::body();
    const ValueId other = k.op(OpKind::kSub, {k.index(7), t}, Dtype::kIndex);
    k.store(y, is_racy ? other : t, k.load(s, other));
    if (is_racy) k.store(y, t, k.load(s, other));
    const HostResult r = k.run(kOneBlock);
    if (is_racy)
      EXPECT_EQ(r.finding->code, ErrorCode::kDoubleStore);
    else
      expect_clean(r);
  }
}

// Every block of a grid that synchronises has its memory at once. A launch for which that is too much runs no block.
TEST(HostChecks, MemoryOfBlocksThatWaitForOneAnother) {
  constexpr int64_t kElements = 1000, kBlocks = 200, kAllowed = 1 << 20;
  for (const bool waits : {false, true})
    for (const int64_t allowed : {kAllowed, 8 * kAllowed}) {
      HostKernel k;
      const ValueId c = k.input<uint32_t>("c", {0});
      const ValueId y = k.output<float>("y", 8 * kBlocks);
      k.shared(Dtype::kFloat, kElements);
      k.store(y, k.global_thread(), constant(k.graph, Dtype::kFloat, {}));
      if (waits) k.effect(OpKind::kGridBarrier, {c});
      const LaunchDims dims{.grid = {kBlocks, 1, 1}, .block = {8, 1, 1}, .shared_bytes = 4 * kElements};
      if (!waits || allowed > kAllowed) {
        expect_clean(k.run(dims, {.memory_limit = allowed}));
        continue;
      }
      try {
        k.run(dims, {.memory_limit = allowed});
        ADD_FAILURE() << "a launch beyond the limit runs";
      } catch (const Error& e) {
        EXPECT_EQ(e.code, ErrorCode::kStepLimit);
        EXPECT_NE(std::string(e.what()).find("200 blocks at once, of 1048576"), std::string::npos) << e.what();
      }
      EXPECT_EQ(k.buffers["y"].written, std::vector<uint8_t>(8 * kBlocks, 0));
    }
}
TEST(HostChecks, MarksOfALaunchCountAsItsMemory) {
  HostKernel k;
  const ValueId y = k.output<int8_t>("y", 10000);
  k.store(y, k.thread_x(), k.op(OpKind::kCast, {k.thread_x()}, Dtype::kInt8));
  expect_clean(k.run(kOneBlock, {.memory_limit = 90000}));
  EXPECT_THROW(k.run(kOneBlock, {.memory_limit = 80000}), Error);
}
TEST(HostChecks, ADeviceMakesNoTensorBeyondItsLimit) {
  const auto device = make_host_device({.memory_limit = 1000});
  const auto makes = [&](std::vector<int64_t> shape) {
    try {
      device->allocate(Dtype::kFloat, std::move(shape), {}, false);
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::kOutOfMemory);
      return false;
    }
    return true;
  };
  EXPECT_TRUE(makes({25, 10}));
  EXPECT_FALSE(makes({25, 11}));
  EXPECT_FALSE(makes({int64_t{1} << 40, int64_t{1} << 40}));
  EXPECT_TRUE(makes({1000, 0, 1000}));
}

// -- checks that are off, and refusals
TEST(HostChecks, ChecksCanBeSwitchedOff) {
  HostKernel k;
  const ValueId s = k.output<float>("s", 8);
  const ValueId y = k.output<float>("y", 8);
  k.store(y, k.index(0), k.load(s, k.thread_x()));
  EXPECT_EQ(k.run(kOneBlock).finding->code, ErrorCode::kUnwrittenRead);
  HostOptions options;
  options.checks.unwritten = false;
  EXPECT_EQ(k.run(kOneBlock, options).finding->code, ErrorCode::kDoubleStore);
  options.checks.races = false;
  expect_clean(k.run(kOneBlock, options));
}
TEST(HostChecks, LaunchAndArgumentsAreChecked) {
  HostKernel k;
  const ValueId y = k.output<float>("y", 8);
  k.store(y, k.thread_x(), constant(k.graph, Dtype::kFloat, {}));
  const auto code_of = [&](const auto& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.code;
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code_of([&] { k.run({.block = {1025, 1, 1}}); }), ErrorCode::kLaunchLimit);
  EXPECT_EQ(code_of([&] { k.run({.block = {8, 1, 1}, .shared_bytes = 1 << 20}); }), ErrorCode::kLaunchLimit);
  const Bytecode code = compile_bytecode(k.graph);
  EXPECT_EQ(code_of([&] { run_kernel(code, kOneBlock, {}); }), ErrorCode::kBadInput);
  const HostArgument wrong = HostArgument::memory(Dtype::kDouble, k.buffers["y"].data(), 4);
  EXPECT_EQ(code_of([&] { run_kernel(code, kOneBlock, std::array{wrong}); }), ErrorCode::kBadInput);
  const HostResult none = k.run({.grid = {0, 1, 1}, .block = {8, 1, 1}});
  EXPECT_EQ(none.thread_instructions, 0);
}

}  // namespace
}  // namespace fusebox
