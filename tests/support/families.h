// Fusions by family and number of ops, as planning is measured by: the benchmark of decisions, and the laws of what they
// cost.
//
//   gates    casts, broadcasts and elementwise ops, one kernel
//   norms    layer norms with a gelu and a residual: rows that are read again
//   sums     elementwise ops with a sum over the rows now and then, which later ops do not read
//   moves    slices, joins and permutes between elementwise ops, as in rotary embeddings
//   wide     many short chains that share inputs, as in optimizers
//
//   const Graph g = fusion_of(kGates, 20);
//   const Bindings sizes = bind_sizes(g, family_inputs());
#pragma once

#include <vector>

#include "ir/build/builder.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"

namespace fusebox::testing {

enum Family : int64_t { kGates, kNorms, kSums, kMoves, kWide };

class FamilyMaker {
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

inline Graph fusion_of(Family family, int64_t ops) { return FamilyMaker().make(family, ops); }

inline std::vector<BoundInput> family_inputs() {
  return {{.shape = {4096, 512}, .align = 256}, {.shape = {4096, 512}, .align = 256}, {.shape = {512}, .align = 256}};
}

}  // namespace fusebox::testing
