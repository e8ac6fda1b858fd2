// Every op as an ATen segment, on inputs that lie in memory in many ways: its strides are those that were inferred before
// any data, and its values are within the reference's bounds. tests/gpu/aten_layouts_test.cc has the same on a GPU.
#include <gtest/gtest.h>

#include "tests/support/aten_law.h"

namespace fusebox {
namespace {

TEST(AtenLayouts, AreInferredForEveryOp) {
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there";
  const auto device = make_host_device();
  test::AtenLaw(*device).check_every_op(5);
}

}  // namespace
}  // namespace fusebox
