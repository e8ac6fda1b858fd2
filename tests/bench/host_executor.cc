// The speed of the host executor on one core with all checks on: thread-instructions per second (kernel ops times the
// threads that run them), the same without ops that run once for a block, and the time of a small case including
// bytecode compilation.
//
// Each rate has a `peer`: a plain C++ loop over arrays with the same arithmetic and no checks.
#include "replay/host/host_executor.h"

#include <benchmark/benchmark.h>
#include <cmath>
#include <cstring>

#include "codegen/bytecode.h"
#include "ir/scalar/numeric.h"
#include "tests/support/kernel_cases.h"

namespace fusebox {
namespace {

using testing::KernelWriter;

struct Case {
  Graph kernel;
  LaunchDims dims;
  std::vector<std::vector<float>> memory;
  std::vector<HostArgument> args;

  void input(int64_t elements) {
    memory.emplace_back(static_cast<size_t>(elements));
    for (size_t i = 0; i < memory.back().size(); ++i) memory.back()[i] = std::sin(static_cast<float>(i));
    args.push_back(HostArgument::memory(Dtype::kFloat, memory.back().data(), elements));
  }
  void scalar(int64_t n) { args.push_back(HostArgument::scalar(Dtype::kIndex, from_int64(Dtype::kIndex, n))); }
};

ValueId number(Graph& g, double x) { return constant(g, Dtype::kFloat, from_double(Dtype::kFloat, x)); }

// y[i] = (x[i] · w[i] + 1) · x[i], a few pointwise ops under a bounds check.
Case pointwise(int64_t n, int ops) {
  Case c;
  KernelWriter k(c.kernel);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x"), w = k.tensor_input(Dtype::kFloat, "w"),
                y = k.tensor_input(Dtype::kFloat, "y");
  const ValueId count = k.scalar_input(Dtype::kIndex, "n");
  const ValueId i = k.global_thread();
  k.begin_if(k.op(OpKind::kLt, {i, count}, Dtype::kBool));
  const ValueId a = k.load(x, i), b = k.load(w, i);
  ValueId v = k.op(OpKind::kMul, {a, b}, Dtype::kFloat);
  for (int o = 1; o < ops; ++o)
    v = o % 2 == 1 ? k.op(OpKind::kAdd, {v, number(c.kernel, 1)}, Dtype::kFloat)
                   : k.op(OpKind::kMul, {v, a}, Dtype::kFloat);
  k.store(y, i, v);
  for (int p = 0; p < 3; ++p) c.input(n);
  c.scalar(n);
  c.dims = {.grid = {(n + 127) / 128, 1, 1}, .block = {128, 1, 1}};
  return c;
}

// A transposing read, a serial sum over a row, elementary functions and an exchange through shared memory: not only the
// fast cases.
Case mixed(int64_t rows, int64_t columns) {
  Case c;
  KernelWriter k(c.kernel);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x"), y = k.tensor_input(Dtype::kFloat, "y");
  const ValueId m = k.scalar_input(Dtype::kIndex, "m"), n = k.scalar_input(Dtype::kIndex, "n");
  const ValueId t = k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);
  const ValueId row = k.global_thread();
  const ValueId s = k.allocate(Dtype::kFloat, MemoryType::kShared, k.index(128), k.index(0));
  const ValueId acc = k.allocate(Dtype::kFloat, MemoryType::kLocal, k.index(1));
  k.store(acc, k.index(0), number(c.kernel, 0));
  const ValueId inside = k.op(OpKind::kLt, {row, m}, Dtype::kBool);
  ValueId j;
  const RegionId body = k.begin_for(k.index(0), n, k.index(1), j);
  const ValueId at = k.op(OpKind::kAdd, {k.op(OpKind::kMul, {row, n}, Dtype::kIndex), j}, Dtype::kIndex);
  const ValueId v = k.op(OpKind::kLoad, {x, at, inside, {}}, Dtype::kFloat);
  const ValueId e = k.op(OpKind::kExp, {v}, Dtype::kFloat);
  k.store(acc, k.index(0), k.op(OpKind::kAdd, {k.load(acc, k.index(0)), e}, Dtype::kFloat));
  k.region = body;
  k.store(s, t, k.load(acc, k.index(0)));
  k.effect(OpKind::kBarrier, {});
  const ValueId other = k.op(OpKind::kSub, {k.index(127), t}, Dtype::kIndex);
  const ValueId sum = k.op(OpKind::kAdd, {k.load(s, other), k.load(acc, k.index(0))}, Dtype::kFloat);
  k.effect(OpKind::kStore, {y, row, sum, inside});
  c.input(rows * columns);
  c.input(rows);
  c.scalar(rows);
  c.scalar(columns);
  c.dims = {.grid = {(rows + 127) / 128, 1, 1}, .block = {128, 1, 1}, .shared_bytes = 512};
  return c;
}

// Vectors of four through local memory.
Case vectors(int64_t n) {
  Case c;
  KernelWriter k(c.kernel);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x"), y = k.tensor_input(Dtype::kFloat, "y");
  const ValueId r = k.buffer(Dtype::kFloat, "r", MemoryType::kLocal);
  Attrs place, four;
  place.set_enum(AttrKey::kMemory, MemoryType::kLocal);
  place.set(AttrKey::kAlign, int64_t{16});
  four.set(AttrKey::kWidth, int64_t{4});
  append(k.g, k.region, Op{OpKind::kAllocate, {k.index(4), {}}, {r}, place, {}});
  const ValueId base = k.op(OpKind::kMul, {k.global_thread(), k.index(4)}, Dtype::kIndex);
  k.effect(OpKind::kCopy, {r, k.index(0), x, base, {}}, four);
  ValueId j;
  const RegionId body = k.begin_for(k.index(0), k.index(4), k.index(1), j);
  k.store(r, j, k.op(OpKind::kMul, {k.load(r, j), number(c.kernel, 2)}, Dtype::kFloat));
  k.region = body;
  k.effect(OpKind::kCopy, {y, base, r, k.index(0), {}}, four);
  c.input(n);
  c.input(n);
  c.dims = {.grid = {n / 512, 1, 1}, .block = {128, 1, 1}};
  return c;
}

// A block reduction for each row.
Case reductions(int64_t rows) {
  Case c;
  KernelWriter k(c.kernel);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x"), y = k.tensor_input(Dtype::kFloat, "y");
  const ValueId t = k.thread(OpKind::kThreadIndex, ParallelType::kBlockX);
  const ValueId row = k.thread(OpKind::kThreadIndex, ParallelType::kGridX);
  const ValueId w = k.allocate(Dtype::kFloat, MemoryType::kShared, k.index(128), k.index(0));
  const ValueId v = k.load(x, k.global_thread());
  Attrs attrs;
  attrs.set_enum(AttrKey::kReduceOp, ReduceOp::kSum);
  attrs.set(AttrKey::kThreads, std::vector<int64_t>{static_cast<int64_t>(ParallelType::kBlockX)});
  const ValueId sum = k.op(OpKind::kBlockReduce, {v, number(c.kernel, 0), w, {}, {}}, Dtype::kFloat, attrs);
  k.effect(OpKind::kStore, {y, row, sum, k.op(OpKind::kEq, {t, k.index(0)}, Dtype::kBool)});
  c.input(rows * 128);
  c.input(rows);
  c.dims = {.grid = {rows, 1, 1}, .block = {128, 1, 1}, .shared_bytes = 512};
  return c;
}

void run(benchmark::State& state, Case c) {
  const Bytecode code = compile_bytecode(c.kernel);
  int64_t instructions = 0, dispatched = 0;
  for (auto _ : state) {
    const HostResult r = run_kernel(code, c.dims, c.args);
    if (r.finding) state.SkipWithError(r.finding->message().c_str());
    instructions += r.thread_instructions;
    dispatched += r.instructions;
  }
  state.counters["thread_instr/s"] = benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
  state.counters["dispatch/s"] = benchmark::Counter(static_cast<double>(dispatched), benchmark::Counter::kIsRate);
}

void BM_Pointwise3(benchmark::State& state) { run(state, pointwise(1 << 16, 3)); }
void BM_Pointwise20(benchmark::State& state) { run(state, pointwise(1 << 16, 20)); }
void BM_Mixed(benchmark::State& state) { run(state, mixed(1024, 64)); }
void BM_Vectors(benchmark::State& state) { run(state, vectors(1 << 16)); }
void BM_Reductions(benchmark::State& state) { run(state, reductions(512)); }
BENCHMARK(BM_Pointwise3);
BENCHMARK(BM_Pointwise20);
BENCHMARK(BM_Mixed);
BENCHMARK(BM_Vectors);
BENCHMARK(BM_Reductions);

// The arithmetic of Pointwise20 without an interpreter or a check.
void BM_Pointwise20Peer(benchmark::State& state) {
  const size_t n = 1 << 16;
  std::vector<float> x(n, 0.5f), w(n, 0.25f), y(n);
  for (auto _ : state) {
    for (size_t i = 0; i < n; ++i) {
      float v = x[i] * w[i];
      for (int o = 1; o < 20; ++o) v = o % 2 == 1 ? v + 1.0f : v * x[i];
      y[i] = v;
    }
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Pointwise20Peer);

// Three ops on 200 elements, bytecode compilation included.
void BM_SmallCase(benchmark::State& state) {
  Case c = pointwise(200, 3);
  for (auto _ : state) {
    const HostResult r = run_kernel(compile_bytecode(c.kernel), c.dims, c.args);
    benchmark::DoNotOptimize(r.thread_instructions);
  }
}
BENCHMARK(BM_SmallCase)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fusebox
