// Every op as an ATen segment on a GPU: its strides are those that were inferred before any data, its values are within
// the reference's bounds, and nothing is copied to the CPU to run it. tests/property/aten_layouts_test.cc has the same on the CPU.
#include <gtest/gtest.h>

#include "replay/device/cuda_loader.h"
#include "tests/support/aten_law.h"

namespace fusebox {
namespace {

TEST(GpuAtenLayouts, AreInferredForEveryOp) {
  if (cuda_backend().devices().empty()) GTEST_SKIP() << "no GPU is there";
  if (!find_aten() || !load_aten().has_gpu()) GTEST_SKIP() << "this PyTorch runs on no GPU";
  const auto device = make_cuda_device();
  // A GPU stops at an index outside its axis, and no later case runs.
  test::AtenLaw(*device).check_every_op(2);
}

TEST(GpuAtenLayouts, AreInferredBesideNumbers) {
  if (cuda_backend().devices().empty()) GTEST_SKIP() << "no GPU is there";
  if (!find_aten() || !load_aten().has_gpu()) GTEST_SKIP() << "this PyTorch runs on no GPU";
  const auto device = make_cuda_device();
  test::AtenLaw law(*device);
  law.check_numbers();
  EXPECT_GE(law.ran, 60);
}

}  // namespace
}  // namespace fusebox
