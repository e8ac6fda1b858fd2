// The time of a decision: how long the automatic plan takes, and how long it takes from a fusion to lowered kernels, for
// fusions that schedulers take. `us_an_op` is the time for one op; a fusion of 20 ops should be planned in 2 ms and lowered
// in 10 ms, and one of 5,000 ops in 1 s and 5 s.
//
//   gates    casts, broadcasts and elementwise ops, one kernel
//   norms    layer norms with a gelu and a residual: rows that are read again
//   sums     elementwise ops with a sum over the rows now and then, which later ops do not read
//   moves    slices, joins and permutes between elementwise ops, as in rotary embeddings
//   wide     many short chains that share inputs, as in optimizers
#include <benchmark/benchmark.h>

#include "ir/build/builder.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "passes/automatic/plan_automatic.h"
#include "passes/pipeline/pipeline.h"
#include "passes/segment/segment.h"

namespace fusebox {
namespace {

enum Family : int64_t { kGates, kNorms, kSums, kMoves, kWide };

class Maker {
 public:
  Graph make(Family family, int64_t ops) {
    const ValueId m = size(g_, "m"), n = size(g_, "n");
    const ValueId x = input(g_, "x", Dtype::kBfloat16, {m, n}), y = input(g_, "y", Dtype::kBfloat16, {m, n});
    const ValueId w = input(g_, "w", Dtype::kBfloat16, {n});
    ValueId v = cast(g_, x, Dtype::kFloat);
    while (count() < ops) switch (family) {
        case kGates:
          v = gate(v, y, w);
          break;
        case kNorms:
          v = norm(v, w);
          break;
        case kSums:
          v = gate(v, y, w);
          output(g_, sum(g_, v, {1}));
          break;
        case kMoves:
          v = rotate(v, n);
          break;
        case kWide:
          v = gate(cast(g_, x, Dtype::kFloat), y, w);
          output(g_, cast(g_, v, Dtype::kBfloat16));
          break;
      }
    output(g_, cast(g_, v, Dtype::kBfloat16));
    return canonical_order(std::move(g_));
  }

 private:
  int64_t count() const { return static_cast<int64_t>(g_[Graph::body()].ops.size()); }
  ValueId number(double x) { return constant_of(g_, Dtype::kFloat, x); }

  ValueId gate(ValueId v, ValueId y, ValueId w) {
    const ValueId row = cast(g_, broadcast(g_, w, {true, false}), Dtype::kFloat);
    const ValueId shifted = add(g_, v, row);
    const ValueId open = unary(g_, OpKind::kSigmoid, shifted);
    const ValueId gated = mul(g_, shifted, open);
    const ValueId other = cast(g_, y, Dtype::kFloat);
    return add(g_, mul(g_, gated, other), mul(g_, v, number(0.5)));
  }

  ValueId norm(ValueId v, ValueId w) {
    const auto row = [&](ValueId r) { return broadcast(g_, r, {false, true}); };
    const ValueId mean = mul(g_, sum(g_, v, {1}), number(1.0 / 512));
    const ValueId centred = sub(g_, v, row(mean));
    const ValueId variance = mul(g_, sum(g_, mul(g_, centred, centred), {1}), number(1.0 / 512));
    const ValueId scale = unary(g_, OpKind::kRsqrt, add(g_, variance, number(1e-5)));
    const ValueId normal = mul(g_, centred, row(scale));
    const ValueId weighted = mul(g_, normal, cast(g_, broadcast(g_, w, {true, false}), Dtype::kFloat));
    const ValueId bent = mul(g_, weighted, unary(g_, OpKind::kTanh, weighted));
    return add(g_, v, bent);
  }

  ValueId rotate(ValueId v, ValueId n) {
    const ValueId rows = size_of(g_, v, 0);
    const ValueId half = constant_of(g_, Dtype::kIndex, 256);
    const ValueId low = slice(g_, v, {0, 0}, {rows, half}), high = slice(g_, v, {0, half}, {rows, n});
    const ValueId turned = cat(g_, {unary(g_, OpKind::kNeg, high), low}, 1);
    return add(g_, mul(g_, v, number(0.8)), mul(g_, turned, number(0.6)));
  }

  Graph g_ = fusion("f");
};

std::vector<BoundInput> given() {
  return {{.shape = {4096, 512}, .align = 256}, {.shape = {4096, 512}, .align = 256}, {.shape = {512}, .align = 256}};
}

void plan(benchmark::State& state) {
  const Graph g = Maker().make(static_cast<Family>(state.range(0)), state.range(1));
  const Bindings sizes = bind_sizes(g, given());
  size_t segments = 0, unfused = 0;
  for (auto _ : state) {
    const AutomaticPlan p = plan_automatic(g, {.sizes = sizes, .memory = memory_classes(g, given())});
    segments = p.decisions.size();
    unfused = 0;
    for (const Decision& d : p.decisions) unfused += d.heuristics.scheduler == "unfused";
  }
  state.counters["ops"] = static_cast<double>(g[Graph::body()].ops.size());
  state.counters["segments"] = static_cast<double>(segments);
  state.counters["unfused"] = static_cast<double>(unfused);
}

void lowered(benchmark::State& state) {
  const Graph g = Maker().make(static_cast<Family>(state.range(0)), state.range(1));
  const Bindings sizes = bind_sizes(g, given());
  for (auto _ : state) benchmark::DoNotOptimize(compile(g, sizes, {.device = default_device(), .inputs = given()}));
}

#define FUSEBOX_SIZES                                                          \
  ArgsProduct({{kGates, kNorms, kSums, kMoves, kWide}, {20, 100, 1000, 5000}}) \
      ->ArgNames({"family", "ops"})                                            \
      ->Unit(benchmark::kMillisecond)                                          \
      ->MinTime(0.05)
BENCHMARK(plan)->FUSEBOX_SIZES;
BENCHMARK(lowered)->FUSEBOX_SIZES;

}  // namespace
}  // namespace fusebox
