// The rules for findings: which results are findings, and where.
#include "replay/run/judge.h"

#include <gtest/gtest.h>
#include <limits>

#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"

namespace fusebox {
namespace {

TensorData floats(std::initializer_list<double> values) {
  TensorData t = allocate_tensor(Dtype::kFloat, {static_cast<int64_t>(values.size())});
  int64_t i = 0;
  for (double v : values) store_element(t, i++, from_double(Dtype::kFloat, v));
  return t;
}

TEST(Judge, TheLaunchRefusesWhatDataAndDeviceDecide) {
  for (ErrorCode code :
       {ErrorCode::kLaunchLimit, ErrorCode::kStepLimit, ErrorCode::kUnalignedVector, ErrorCode::kAssumptionFailed,
        ErrorCode::kModuleMissing, ErrorCode::kOutOfMemory, ErrorCode::kIndexOutOfRange})
    EXPECT_TRUE(is_launch_refusal(code)) << code_text(code);
  EXPECT_FALSE(is_launch_refusal(ErrorCode::kDeviceFailure));
  EXPECT_FALSE(is_launch_refusal(ErrorCode::kIllegalReduction));
}

TEST(Judge, BitsDifferButNotOfNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(first_difference(floats({1, nan, 3}), floats({1, -nan, 3})));
  EXPECT_EQ(first_difference(floats({1, nan, 3}), floats({1, nan, 4})), 2);
  EXPECT_EQ(first_difference(floats({0.0}), floats({-0.0})), 0);
  EXPECT_EQ(first_difference(floats({1}), floats({1, 2})), -1);
  EXPECT_EQ(first_difference(floats({1}), allocate_tensor(Dtype::kInt32, {1})), -1);
}

TEST(Judge, OrderShowsWhereFloatsAreReduced) {
  const auto reduced = [](const std::string& dtype, const std::string& op) {
    return parse_graph("fusion @f {\n  %x = input " + dtype + "[4] contiguous\n  %y = " + op +
                       " %x over [0]\n  output %y\n}\n");
  };
  EXPECT_FALSE(is_order_free(reduced("f32", "sum")));
  EXPECT_FALSE(is_order_free(reduced("f32", "max")));
  EXPECT_FALSE(is_order_free(reduced("c64", "prod")));
  EXPECT_TRUE(is_order_free(reduced("i32", "sum")));
  EXPECT_TRUE(is_order_free(reduced("bool", "max")));
  EXPECT_TRUE(is_order_free(reduced("bool", "sum")));
}

TEST(Judge, APlaceIsOfAnOp) {
  const Graph g =
      parse_graph("fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %y = neg %x\n  output %y\n}\n");
  EXPECT_EQ(place_class(g, "%y"), "neg");
  EXPECT_EQ(place_class(g, "%y.i0"), "neg");
  EXPECT_EQ(place_class(g, "%x[3]"), "input");
  EXPECT_EQ(place_class(g, "%T17[1]"), "%T[]");
  EXPECT_EQ(place_class(g, ""), "");
}

}  // namespace
}  // namespace fusebox
