// Compares results with a reference that has bounds.
#include "replay/run/compare.h"

#include <cmath>
#include <gtest/gtest.h>

#include "ir/scalar/numeric.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

TensorData of(Dtype d, const std::vector<double>& values) {
  TensorData t = allocate_tensor(d, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) store_element(t, static_cast<int64_t>(i), from_double(d, values[i]));
  return t;
}
Evaluated reference(Dtype d, const std::vector<double>& values, const std::vector<double>& bounds = {}) {
  Evaluated e;
  e.name = "y";
  e.dtype = d;
  e.reference = of(is_floating(d) ? Dtype::kDouble : d == Dtype::kUint64 ? d : Dtype::kInt64, values);
  if (!bounds.empty()) e.bound = of(Dtype::kDouble, bounds);
  return e;
}
bool passes(Dtype d, double actual, double expected, double bound = 0) {
  return compare(of(d, {actual}), bound > 0 ? reference(d, {expected}, {bound}) : reference(d, {expected})).ok;
}

TEST(Compare, BoundsDecide) {
  EXPECT_TRUE(passes(Dtype::kFloat, 1.5, 1.5));
  EXPECT_FALSE(passes(Dtype::kFloat, 1.5, 1.25));
  EXPECT_TRUE(passes(Dtype::kFloat, 1.5, 1.25, 0.25));
  EXPECT_FALSE(passes(Dtype::kFloat, 1.5, 1.25, 0.2499));
  EXPECT_TRUE(passes(Dtype::kFloat, -0.0, 0.0));
  EXPECT_TRUE(passes(Dtype::kInt32, 7, 8, 1));
  EXPECT_FALSE(passes(Dtype::kInt32, 6, 8, 1));
  EXPECT_TRUE(passes(Dtype::kBool, 1, 0, 1));
  EXPECT_FALSE(passes(Dtype::kBool, 1, 0));
}

TEST(Compare, NanAndInfinity) {
  const double nan = std::nan(""), inf = INFINITY;
  EXPECT_TRUE(passes(Dtype::kFloat, nan, nan));
  EXPECT_FALSE(passes(Dtype::kFloat, nan, 1, 1e30));
  EXPECT_FALSE(passes(Dtype::kFloat, 1, nan, 1e30));
  EXPECT_TRUE(passes(Dtype::kFloat, nan, 1, inf));
  EXPECT_TRUE(passes(Dtype::kFloat, inf, inf));
  EXPECT_FALSE(passes(Dtype::kFloat, -inf, inf));
  EXPECT_FALSE(passes(Dtype::kFloat, inf, 1, 1e10));
  // The largest half and infinity are 32 apart.
  EXPECT_TRUE(passes(Dtype::kHalf, inf, 65504, 32));
  EXPECT_TRUE(passes(Dtype::kHalf, 65504, inf, 32));
  EXPECT_FALSE(passes(Dtype::kHalf, inf, 65504, 31));
  EXPECT_FALSE(passes(Dtype::kHalf, -inf, 65504, 32));
}

TEST(Compare, TheWorstElementIsNamed) {
  const Comparison c =
      compare(of(Dtype::kFloat, {1, 2.5, 3, 9}), reference(Dtype::kFloat, {1, 2, 2, 0}, {1, 0.25, 4, INFINITY}), 3);
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.failed, 1);
  EXPECT_EQ(c.differing, 3);
  EXPECT_EQ(c.unconstrained, 1);
  EXPECT_EQ(c.worst, (std::vector<int64_t>{1}));
  EXPECT_EQ(c.max_error, 0.5);
  EXPECT_EQ(c.bound, 0.25);
  EXPECT_EQ(c.message("y"), "%y[1] is 2.5, expected 2 within 0.25 (1 of 4 elements differ by more than their bounds)");
}

TEST(Compare, LargeIntegersAreExact) {
  TensorData t = allocate_tensor(Dtype::kUint64, {1});
  store_element(t, 0, {~uint64_t{0}, 0});
  Evaluated e = reference(Dtype::kUint64, {0});
  store_element(e.reference, 0, {~uint64_t{0} - 1, 0});
  EXPECT_FALSE(compare(t, e).ok);
  store_element(e.reference, 0, {~uint64_t{0}, 0});
  EXPECT_TRUE(compare(t, e).ok);
}

TEST(Compare, DistancesOfIntegersWrap) {
  TensorData t = allocate_tensor(Dtype::kInt64, {1});
  store_element(t, 0, {uint64_t{1} << 63, 0});
  Evaluated e = reference(Dtype::kInt64, {0}, {1.0});
  store_element(e.reference, 0, {(uint64_t{1} << 63) - 1, 0});
  EXPECT_TRUE(compare(t, e).ok);
  store_element(e.reference, 0, {(uint64_t{1} << 63) - 2, 0});
  EXPECT_FALSE(compare(t, e).ok);
}

TEST(Compare, ShapesAndDtypesMustBeTheSame) {
  testing::expect_error(ErrorCode::kDtypeMismatch, "%y",
                        [] { compare(of(Dtype::kFloat, {1}), reference(Dtype::kDouble, {1})); });
  testing::expect_error(ErrorCode::kShapeMismatch, "%y",
                        [] { compare(of(Dtype::kFloat, {1}), reference(Dtype::kFloat, {1, 2})); });
}

TEST(Compare, TheReferenceAgreesWithItself) {
  for (Dtype d : {Dtype::kBfloat16, Dtype::kFloat, Dtype::kInt8, Dtype::kBool, Dtype::kUint64}) {
    const Evaluated e = reference(d, {0, 1, 1, 0});
    const TensorData r = result_of(e);
    EXPECT_EQ(r.dtype, d);
    EXPECT_TRUE(compare(r, e).ok);
  }
}

}  // namespace
}  // namespace fusebox
