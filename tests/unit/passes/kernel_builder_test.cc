// The ops that the builder folds, and those that it reuses.
#include "passes/kernel/kernel_builder.h"

#include <gtest/gtest.h>

namespace fusebox {
namespace {

TEST(KernelBuilder, AnIfThatIsContinuedKnowsItsScalars) {
  KernelBuilder b("k", 32);
  const ValueId n = b.scalar_parameter(Dtype::kIndex, "n");
  const ValueId inside = b.compare(OpKind::kLt, n, b.index(7));
  b.begin_if(inside);
  const ValueId first = b.mul(n, b.index(3));
  b.end();
  b.reopen_if();
  EXPECT_EQ(b.mul(n, b.index(3)), first);
  b.end();
  // Nothing of this is known outside of the region or in another one.
  EXPECT_NE(b.mul(n, b.index(3)), first);
  b.begin_if(inside);
  const ValueId other = b.mul(n, b.index(5));
  b.end();
  b.begin_if(inside);
  b.end();
  b.reopen_if();
  EXPECT_NE(b.mul(n, b.index(5)), other);
}

TEST(KernelBuilder, AConditionStandsOnceInAConjunction) {
  KernelBuilder b("k", 32);
  const ValueId n = b.scalar_parameter(Dtype::kIndex, "n");
  const ValueId p = b.compare(OpKind::kLt, n, b.index(7)), q = b.compare(OpKind::kGe, n, b.index(0)),
                r = b.compare(OpKind::kNe, n, b.index(3));
  const ValueId all = b.logical_and(b.logical_and(p, q), r);
  for (const ValueId part : {p, q, r}) EXPECT_EQ(b.logical_and(all, part), all);
  EXPECT_NE(b.logical_and(b.logical_and(p, q), r), b.logical_and(p, q));
  EXPECT_EQ(b.logical_and(all, b.bit(true)), all);
  EXPECT_EQ(b.logical_and(b.bit(true), p), p);
}

TEST(KernelBuilder, ConstantsDecide) {
  KernelBuilder b("k", 32);
  const ValueId n = b.scalar_parameter(Dtype::kIndex, "n"), m = b.scalar_parameter(Dtype::kIndex, "m");
  EXPECT_EQ(b.where(b.bit(true), n, m), n);
  EXPECT_EQ(b.where(b.bit(false), n, m), m);
  EXPECT_EQ(b.where(b.compare(OpKind::kLt, n, m), n, n), n);
  EXPECT_EQ(b.compare(OpKind::kNe, b.index(0), b.index(0)), b.bit(false));
  EXPECT_EQ(b.compare(OpKind::kNe, b.index(2), b.index(0)), b.bit(true));
}

}  // namespace
}  // namespace fusebox
