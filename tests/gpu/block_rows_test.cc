// Reductions over the rows of a block (block.y, block.z) on a GPU give the bits of the host executor. Where a warp holds
// whole rows, its lanes exchange by shuffles; elsewhere all values go through shared memory. The order of the values is
// the same.
#include <bit>
#include <map>

#include "tests/support/gpu.h"
#include "tests/unit/replay/host_runner.h"

namespace fusebox {
namespace {

using testing::HostKernel;

class BlockRowsOnGpu : public testing::GpuTest {
 protected:
  using Block = std::array<int64_t, 3>;
  static constexpr int64_t kBlocks = 3, kRounds = 4;

  // Compiles each text once.
  void launch(const Graph& graph, const Launch& launch, std::vector<uint64_t> arguments) {
    const CudaSource source = emit_cuda(graph);
    auto found = kernels_.find(source.text);
    if (found == kernels_.end()) {
      const CudaBinary binary = cuda_backend().compile({.text = source.text,
                                                        .headers = cuda_headers(),
                                                        .architecture = session_->device().architecture,
                                                        .options = cuda_compile_options()});
      found = kernels_.emplace(source.text, session_->load(binary.bytes, source.entry)).first;
    }
    std::vector<void*> pointers;
    for (uint64_t& a : arguments) pointers.push_back(&a);
    session_->launch(
        found->second,
        {.grid = launch.grid, .block = launch.block, .shared_bytes = launch.shared_bytes, .arguments = pointers});
    session_->synchronize();
  }
  void TearDown() override {
    for (const auto& [text, kernel] : kernels_) session_->unload(kernel);
    kernels_.clear();
    GpuTest::TearDown();
  }

  // The sum, which narrow floats form in f32.
  static ValueId combined(HostKernel& k, ValueId a, ValueId b) {
    const Dtype dtype = k.g[a].dtype;
    if (dtype != Dtype::kBfloat16) return k.op(OpKind::kAdd, {a, b}, dtype);
    return k.op(OpKind::kCast, {k.op(OpKind::kAdd, {k.to_float(a), k.to_float(b)}, Dtype::kFloat)}, dtype);
  }

  // Reduces over `axes` several times in one workspace, `columns` values of a thread at once. The values of a round depend
  // on those of the last, and their sums on the order of the additions.
  template <class T>
  void check(const std::vector<ParallelType>& axes, const Block& block, ReduceOp op, bool all, int64_t columns = 1) {
    const int64_t threads = block[0] * block[1] * block[2];
    const Dtype dtype = testing::dtype_of<T>();
    std::vector<T> values;
    for (int64_t i = 0; i < threads * kBlocks; ++i) {
      const float fraction = static_cast<float>(i * i % 1013) / 1013 - 0.4f;
      if constexpr (sizeof(T) == 2)
        values.push_back(static_cast<T>(std::bit_cast<uint32_t>(fraction) >> 16));  // a bfloat16
      else
        values.push_back(static_cast<T>(std::is_floating_point_v<T> ? fraction : 1000 * fraction));
    }
    HostKernel k;
    const ValueId x = k.input<T>("x", values), y = k.output<T>("y", threads * kBlocks * kRounds * columns);
    // The kernel reads the dimensions of the block, so that one serves all blocks.
    ValueId lane = k.index(0), count = k.index(1);
    for (const ParallelType p : {ParallelType::kBlockZ, ParallelType::kBlockY, ParallelType::kBlockX}) {
      lane = k.add(k.mul(lane, k.thread(OpKind::kThreadCount, p)), k.thread(OpKind::kThreadIndex, p));
      count = k.mul(count, k.thread(OpKind::kThreadCount, p));
    }
    const ValueId workspace = k.allocate(dtype, MemoryType::kShared, k.mul(count, k.index(columns)), k.index(0));
    const ValueId thread = k.add(k.mul(k.block_x(), count), lane);
    Attrs attrs;
    attrs.set_enum(AttrKey::kReduceOp, op);
    std::vector<int64_t> wire;
    ValueId is_first = constant(k.g, Dtype::kBool, from_int64(Dtype::kBool, 1));
    for (const ParallelType p : axes) {
      wire.push_back(static_cast<int64_t>(p));
      const ValueId at_zero = k.op(OpKind::kEq, {k.thread(OpKind::kThreadIndex, p), k.index(0)}, Dtype::kBool);
      is_first = k.op(OpKind::kLogicalAnd, {is_first, at_zero}, Dtype::kBool);
    }
    attrs.set(AttrKey::kThreads, wire);
    if (all) attrs.set_flag(AttrKey::kAll);
    if (columns > 1) attrs.set(AttrKey::kAtOnce, columns);
    const ValueId own = k.load(x, thread);
    std::vector<ValueId> list{own};
    while (std::ssize(list) < columns) list.push_back(combined(k, list.back(), own));
    for (int64_t round = 0; round < kRounds; ++round) {
      std::vector<ValueId> results;
      for (ValueId value : list)
        results.push_back(
            k.op(OpKind::kBlockReduce, {value, constant(k.g, dtype, {}), workspace, {}, {}}, dtype, attrs));
      for (int64_t c = 0; c < columns; ++c) {
        const ValueId to = k.add(k.mul(thread, k.index(kRounds * columns)), k.index(round * columns + c));
        ValueId& value = list[static_cast<size_t>(c)];
        k.effect(OpKind::kStore, {y, to, results[static_cast<size_t>(c)], all ? ValueId() : is_first});
        value = combined(k, own, all ? results[static_cast<size_t>(c)] : value);
      }
    }
    const int64_t shared_bytes = threads * size_bytes(dtype) * columns;
    testing::expect_clean(k.run({.grid = {kBlocks, 1, 1}, .block = block, .shared_bytes = shared_bytes}));
    const std::vector<T> want = k.template values<T>("y");
    const std::vector<uint64_t> arguments = {upload(values), upload(std::vector<T>(want.size()))};
    launch(k.graph, {.grid = {kBlocks, 1, 1}, .block = block, .shared_bytes = shared_bytes}, arguments);
    const std::vector<T> got = download<T>(arguments[1], want.size());
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(T)), 0)
          << got[i] << " and not " << want[i] << " at " << i << ", block " << block[0] << " x " << block[1] << " x "
          << block[2] << ", " << text(dtype);
  }

  std::map<std::string, CudaKernel> kernels_;
};

TEST_F(BlockRowsOnGpu, RowsOfPartOfAWarp) {
  for (const int64_t lanes : {1, 2, 4, 8, 16, 32})
    for (const int64_t warps : {1, 2, 3, 4, 5, 7, 8, 13, 32})
      for (const bool all : {false, true})
        check<float>({ParallelType::kBlockY}, {lanes, warps * (32 / lanes), 1}, ReduceOp::kSum, all);
}

// The columns of a thread have places of their own, and the bits that they have one by one.
TEST_F(BlockRowsOnGpu, SeveralColumns) {
  using enum ParallelType;
  for (const int64_t columns : {2, 3, 4})
    for (const bool all : {false, true})
      for (const Block& block :
           {Block{16, 10, 1}, Block{8, 20, 1}, Block{3, 9, 1}, Block{2, 64, 1}, Block{32, 5, 1}, Block{4, 2, 24}}) {
        check<float>({kBlockY}, block, ReduceOp::kSum, all, columns);
        check<float>({kBlockX}, block, ReduceOp::kSum, all, columns);
        check<double>({kBlockY}, block, ReduceOp::kMax, all, columns);
        check<uint16_t>({kBlockY, kBlockZ}, block, ReduceOp::kSum, all, columns);
      }
}

// The last warp is not full, or a warp holds parts of rows.
TEST_F(BlockRowsOnGpu, RowsThatFillNoWarps) {
  for (const int64_t lanes : {1, 2, 3, 4, 6, 8, 12, 16})
    for (const int64_t rows : {1, 2, 5, 9, 31, 32, 57})
      for (const bool all : {false, true}) check<float>({ParallelType::kBlockY}, {lanes, rows, 1}, ReduceOp::kSum, all);
}

TEST_F(BlockRowsOnGpu, OtherAxes) {
  using enum ParallelType;
  for (const bool all : {false, true})
    for (const std::vector<ParallelType>& axes :
         {std::vector{kBlockY}, std::vector{kBlockZ}, std::vector{kBlockY, kBlockZ}, std::vector{kBlockX, kBlockY}})
      for (const Block& block : {Block{2, 16, 3}, Block{4, 2, 24}, Block{4, 3, 8}, Block{1, 6, 16}, Block{8, 8, 5}})
        check<float>(axes, block, ReduceOp::kSum, all);
}

TEST_F(BlockRowsOnGpu, OtherTypesAndOps) {
  for (const Block& block : {Block{2, 64, 1}, Block{8, 20, 1}, Block{16, 2, 1}, Block{4, 56, 1}, Block{2, 65, 1}})
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
      check<float>({ParallelType::kBlockY}, block, op, true);
      check<double>({ParallelType::kBlockY}, block, op, true);
      check<int32_t>({ParallelType::kBlockY}, block, op, true);
      check<int64_t>({ParallelType::kBlockY}, block, op, true);
      check<uint16_t>({ParallelType::kBlockY}, block, op, true);  // the bits of bfloat16
    }
}

}  // namespace
}  // namespace fusebox
