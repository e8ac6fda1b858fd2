// Every op as an ATen segment, on inputs that lie in memory in many ways: its strides are those that were inferred before
// any data, and its values are within the reference's bounds. tests/gpu/aten_layouts_test.cc has the same on a GPU.
#include <gtest/gtest.h>

#include "tests/support/aten_law.h"

namespace fusebox {
namespace {

TEST(AtenLayouts, AreInferredForEveryOp) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  const auto device = make_host_device();
  test::AtenLaw law(*device);
  for (const OpKind kind : test::ops_with_cases()) {
    const int before = law.ran;
    for (const test::OpCase& c : test::some_cases(kind, 5))
      for (const test::Lying way : test::kLyings) law.check(c, way);
    EXPECT_GT(law.ran, before) << row_of(kind).text << " was never run";
  }
  std::printf("  %d runs, %d with inputs that the program refuses\n", law.ran, law.refused);
}

}  // namespace
}  // namespace fusebox
