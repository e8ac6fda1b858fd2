#include "ir/table/dtype.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

TEST(Dtype, RowsStandAtTheirNumbersAndTextsComeBack) {
  for (const DtypeRow& row : dtype_rows()) {
    EXPECT_EQ(&row, &row_of(row.dtype));
    EXPECT_EQ(parse_dtype(row.text), row.dtype);
  }
  EXPECT_FALSE(parse_dtype("f33"));
  EXPECT_FALSE(parse_dtype(""));
}

TEST(Dtype, Sizes) {
  EXPECT_EQ(size_bytes(Dtype::kBool), 1);
  EXPECT_EQ(size_bytes(Dtype::kFloat4E2m1), 1);
  EXPECT_EQ(size_bytes(Dtype::kComplexDouble), 16);
  EXPECT_EQ(bits(Dtype::kFloat4E2m1), 4);
}

TEST(Dtype, ComputeAndReal) {
  EXPECT_EQ(compute_dtype(Dtype::kHalf), Dtype::kFloat);
  EXPECT_EQ(compute_dtype(Dtype::kFloat8E5m2), Dtype::kFloat);
  EXPECT_EQ(compute_dtype(Dtype::kDouble), Dtype::kDouble);
  EXPECT_EQ(compute_dtype(Dtype::kInt8), Dtype::kInt8);
  EXPECT_EQ(compute_dtype(Dtype::kComplexFloat), Dtype::kComplexFloat);
  EXPECT_EQ(real_of(Dtype::kComplexFloat), Dtype::kFloat);
  EXPECT_EQ(real_of(Dtype::kComplexDouble), Dtype::kDouble);
  EXPECT_EQ(real_of(Dtype::kInt8), Dtype::kInt8);
}

TEST(Dtype, PromotionIsATens) {
  struct Case {
    Dtype a, b, result;
  };
  const Case cases[] = {
      {Dtype::kBool, Dtype::kInt8, Dtype::kInt8},
      {Dtype::kUint8, Dtype::kInt8, Dtype::kInt16},
      {Dtype::kUint8, Dtype::kInt16, Dtype::kInt16},
      {Dtype::kUint32, Dtype::kInt32, Dtype::kInt64},
      {Dtype::kUint16, Dtype::kUint64, Dtype::kUint64},
      {Dtype::kInt64, Dtype::kFloat8E4m3, Dtype::kFloat8E4m3},
      {Dtype::kInt64, Dtype::kHalf, Dtype::kHalf},
      {Dtype::kHalf, Dtype::kBfloat16, Dtype::kFloat},
      {Dtype::kHalf, Dtype::kFloat8E5m2, Dtype::kHalf},
      {Dtype::kFloat8E4m3, Dtype::kFloat8E5m2, Dtype::kFloat},
      {Dtype::kFloat, Dtype::kDouble, Dtype::kDouble},
      {Dtype::kDouble, Dtype::kComplexFloat, Dtype::kComplexDouble},
      {Dtype::kHalf, Dtype::kComplexFloat, Dtype::kComplexFloat},
      {Dtype::kComplexFloat, Dtype::kComplexDouble, Dtype::kComplexDouble},
      {Dtype::kIndex, Dtype::kInt32, Dtype::kInt64},
      {Dtype::kIndex, Dtype::kBool, Dtype::kIndex},
      {Dtype::kIndex, Dtype::kFloat, Dtype::kFloat},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(promote(c.a, c.b), c.result) << text(c.a) << " with " << text(c.b);
    EXPECT_EQ(promote(c.b, c.a), c.result) << text(c.b) << " with " << text(c.a);
  }
  for (const DtypeRow& row : dtype_rows()) EXPECT_EQ(promote(row.dtype, row.dtype), row.dtype);
  testing::expect_error(ErrorCode::kDtypeMismatch, "", [] { promote(Dtype::kUint64, Dtype::kInt8); });
  testing::expect_error(ErrorCode::kDtypeMismatch, "", [] { promote(Dtype::kFloat4E2m1x2, Dtype::kFloat); });
}

// If promotion gives a dtype, it gives the same in either order, and it is at least as high as both.
TEST(Dtype, PromotionIsCommutativeAndUpward) {
  for (const DtypeRow& a : dtype_rows())
    for (const DtypeRow& b : dtype_rows()) {
      Dtype result;
      try {
        result = promote(a.dtype, b.dtype);
      } catch (const Error& e) {
        EXPECT_EQ(e.code, ErrorCode::kDtypeMismatch);
        EXPECT_THROW(promote(b.dtype, a.dtype), Error);
        continue;
      }
      EXPECT_EQ(promote(b.dtype, a.dtype), result);
      EXPECT_EQ(promote(result, a.dtype), result) << a.text << " with " << b.text;
      EXPECT_EQ(promote(result, b.dtype), result) << a.text << " with " << b.text;
    }
}

}  // namespace
}  // namespace fusebox
