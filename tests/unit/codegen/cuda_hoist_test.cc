#include <gtest/gtest.h>

#include "codegen/cuda.h"
#include "codegen/hoist.h"
#include "tests/support/kernel_cases.h"

namespace fusebox {
namespace {

using testing::KernelWriter;

// for i { for j { y[(n·4 + i·8) + j] = x[n·4 + j]; if p { y[n·16] = 0 } } }
Graph nest() {
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x"), y = k.tensor_input(Dtype::kFloat, "y");
  const ValueId n = k.scalar_input(Dtype::kIndex, "n");
  const ValueId p = k.scalar_input(Dtype::kBool, "p");
  ValueId i, j;
  k.begin_for(k.index(0), n, k.index(1), i);
  k.begin_for(k.index(0), n, k.index(1), j);
  const ValueId a = k.op(OpKind::kMul, {n, k.index(4)}, Dtype::kIndex);
  const ValueId b = k.op(OpKind::kMul, {i, k.index(8)}, Dtype::kIndex);
  const ValueId c = k.op(OpKind::kAdd, {a, b}, Dtype::kIndex);
  const ValueId to = k.op(OpKind::kAdd, {c, j}, Dtype::kIndex);
  const ValueId again = k.op(OpKind::kMul, {n, k.index(4)}, Dtype::kIndex);
  k.store(y, to, k.load(x, k.op(OpKind::kAdd, {again, j}, Dtype::kIndex)));
  k.begin_if(p);
  k.store(y, k.op(OpKind::kMul, {n, k.index(16)}, Dtype::kIndex), constant(g, Dtype::kFloat, {}));
  return g;
}

TEST(Hoist, MovesInvariantsOutAndSharesThem) {
  Graph g = nest();
  EXPECT_TRUE(hoist(g));
  const std::string text = emit_cuda(g, {.hoist = false}).text;
  EXPECT_EQ(text.substr(text.find(" {\n") + 3), R"(  const index_t n0 = s0 * 4;
  const index_t n1 = s0 * 16;
  for (index_t i0 = 0; i0 < s0; ++i0) {
    const index_t n2 = i0 * 8;
    const index_t n3 = n0 + n2;
    for (index_t i1 = 0; i1 < s0; ++i1) {
      const index_t n4 = n0 + i1;
      const float v0 = t0[n4];
      const index_t n5 = n3 + i1;
      t1[n5] = v0;
      if (s1) {
        t1[n1] = 0.0f;
      }
    }
  }
}
)");
}

TEST(Hoist, UnchangedMeansUnchanged) {
  Graph g = nest();
  hoist(g);
  const Graph before = g;
  EXPECT_FALSE(share_common_scalars(g));
  EXPECT_FALSE(move_invariants_out(g));
  EXPECT_FALSE(hoist(g));
  EXPECT_TRUE(g == before);
}

TEST(Hoist, LoadsAndRegionsStay) {
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kFloat, "x");
  ValueId i;
  k.begin_for(k.index(0), k.index(4), k.index(1), i);
  // Both loads read one place, with a store between them.
  const ValueId a = k.load(x, k.index(0));
  k.store(x, k.index(0), k.op(OpKind::kAdd, {a, a}, Dtype::kFloat));
  const ValueId b = k.load(x, k.index(0));
  k.store(x, k.index(1), b);
  EXPECT_FALSE(hoist(g));
}

TEST(Hoist, WhatOneBranchComputesTheOtherDoesNotSee) {
  Graph g;
  KernelWriter k(g);
  const ValueId x = k.tensor_input(Dtype::kIndex, "x");
  const ValueId n = k.scalar_input(Dtype::kIndex, "n");
  const ValueId p = k.op(OpKind::kLt, {n, k.index(3)}, Dtype::kBool);
  const RegionId body = k.begin_if(p);
  k.store(x, k.index(0), k.op(OpKind::kMul, {n, n}, Dtype::kIndex));
  k.region = body;
  k.begin_if(p);
  k.store(x, k.index(1), k.op(OpKind::kMul, {n, n}, Dtype::kIndex));
  EXPECT_FALSE(hoist(g));
}

// for i { for j { if p { y[4·i + j] = 0 } } }: p is the same at every point, so the loops stand in the `if`.
TEST(Hoist, ALoopOfAConditionIsAConditionOfALoop) {
  for (const bool is_alone : {true, false}) {
    Graph g;
    KernelWriter k(g);
    const ValueId y = k.tensor_input(Dtype::kFloat, "y");
    const ValueId p = k.scalar_input(Dtype::kBool, "p");
    const ValueId zero = constant(g, Dtype::kFloat, {});
    ValueId i, j;
    k.begin_for(k.index(0), k.index(4), k.index(1), i);
    const RegionId outer = k.begin_for(k.index(0), k.index(4), k.index(1), j);
    const RegionId inner = k.begin_if(p);
    const ValueId row = k.op(OpKind::kMul, {i, k.index(4)}, Dtype::kIndex);
    k.store(y, k.op(OpKind::kAdd, {row, j}, Dtype::kIndex), zero);
    k.region = is_alone ? outer : inner;
    if (!is_alone) k.store(y, k.index(99), zero);
    EXPECT_TRUE(hoist(g));
    EXPECT_FALSE(hoist(g));
    const std::string text = emit_cuda(g, {.hoist = false}).text;
    EXPECT_EQ(text.find("if (s0)") < text.find("for ("), is_alone) << text;
  }
}

}  // namespace
}  // namespace fusebox
