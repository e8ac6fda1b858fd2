#include "ir/table/families.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

// The list says by name what the table says by its columns: functions of scalars stand in kernels, and give one result.
TEST(Families, ScalarMathIsPointwiseInKernelsAndGivesOneResult) {
  for (const OpRow& row : op_rows())
    EXPECT_EQ(is_scalar_math(row.kind),
              demands(row.kind, kPointwise) && row.at(Level::kKernel) && row.format->results == 1)
        << row.text;
}

// Every row of a family that switches handle as a whole has the family's demand.
TEST(Families, RowsOfAFamilyHaveItsDemand) {
  for (const OpRow& row : op_rows()) {
    switch (row.kind) {
      case FUSEBOX_LIBRARY_OPS:
        EXPECT_TRUE(demands(row.kind, kLibrary)) << row.text;
        break;
      case FUSEBOX_NON_LIBRARY_OPS:
        EXPECT_FALSE(demands(row.kind, kLibrary)) << row.text;
        break;
    }
    switch (row.kind) {
      case FUSEBOX_VIEW_OPS:
        EXPECT_TRUE(demands(row.kind, kMetadata)) << row.text;
        break;
      case FUSEBOX_REDUCTION_OPS:
      case FUSEBOX_MOMENT_OPS:
        EXPECT_TRUE(demands(row.kind, kReduction)) << row.text;
        break;
      case FUSEBOX_INDEXED_OPS:
      case OpKind::kScatter:
        EXPECT_TRUE(demands(row.kind, kIndexed)) << row.text;
        break;
      case OpKind::kPad:
      case OpKind::kCat:
        EXPECT_TRUE(demands(row.kind, kMetadata)) << row.text;
        break;
      case OpKind::kFull:
      case OpKind::kIota:
      case OpKind::kTriu:
      case FUSEBOX_RANDOM_OPS:
      case OpKind::kWelfordCombine:
      case FUSEBOX_SCALAR_OPS:
        EXPECT_TRUE(demands(row.kind, kPointwise)) << row.text;
        break;
      case FUSEBOX_LIBRARY_OPS:
        EXPECT_TRUE(demands(row.kind, kLibrary) && row.levels == "m") << row.text;
        break;
      case FUSEBOX_STRUCTURE_OPS:
        EXPECT_TRUE(demands(row.kind, kSignature)) << row.text;
        break;
      case FUSEBOX_THREAD_OPS:
        EXPECT_TRUE(row.at(Level::kKernel) && !row.at(Level::kMath)) << row.text;
        break;
      case FUSEBOX_HOST_OPS:
        EXPECT_EQ(row.levels, "h") << row.text;
        break;
      case FUSEBOX_FACT_OPS:
        EXPECT_TRUE(row.at(Level::kScheduled) && !row.at(Level::kHost)) << row.text;
        break;
    }
  }
}

TEST(Families, RowsOfAListOfDtypesAreOfItsKind) {
  for (const DtypeRow& row : dtype_rows()) {
    switch (row.dtype) {
      case Dtype::kBool:
        EXPECT_TRUE(is_boolean(row.dtype));
        break;
      case FUSEBOX_INTEGER_DTYPES:
        EXPECT_TRUE(is_integer(row.dtype)) << row.text;
        break;
      case FUSEBOX_FLOATING_DTYPES:
        EXPECT_TRUE(is_floating(row.dtype)) << row.text;
        break;
      case FUSEBOX_COMPLEX_DTYPES:
        EXPECT_TRUE(is_complex(row.dtype)) << row.text;
        break;
      case Dtype::kFloat4E2m1x2:
        EXPECT_EQ(row.kind, DtypeKind::kPacked);
        break;
    }
  }
}

TEST(Families, ARowOfAnotherFamilyIsAnInternalError) {
  testing::expect_error(ErrorCode::kInternal, "", [] { not_in_family(OpKind::kAdd, "reduces nothing"); });
  testing::expect_error(ErrorCode::kInternal, "", [] { not_in_family(Dtype::kBool, "does not saturate"); });
}

}  // namespace
}  // namespace fusebox
