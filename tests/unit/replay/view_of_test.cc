// Tensors in the memory of others.
#include <gtest/gtest.h>

#include "replay/device/device.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;

class ViewOf : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device = make_host_device();
  RunTensor base = device->allocate(Dtype::kFloat, {4, 6}, {6, 1}, true);
};

TEST_F(ViewOf, LiesInTheBase) {
  const RunTensor view = view_of(base, {3, 2, 2}, {6, 2, 1}, 8, "%v");
  EXPECT_EQ(view.layout.data(), base.layout.data() + 8 * sizeof(float));
  EXPECT_EQ(view.layout.shape, (std::vector<int64_t>{3, 2, 2}));
  // A view of a view counts from there.
  const RunTensor inner = view_of(view, {2}, {2}, 2, "%w");
  EXPECT_EQ(inner.layout.data(), base.layout.data() + 10 * sizeof(float));
  EXPECT_EQ(inner.before, 40);
}

TEST_F(ViewOf, ReachesNoFurther) {
  constexpr int64_t kMost = INT64_MAX;
  const auto refuse = [&](std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t first) {
    expect_error(ErrorCode::kInvalidGraph, "%v", [&] { view_of(base, shape, strides, first, "%v"); });
  };
  view_of(base, {24}, {1}, 0, "%v");
  refuse({25}, {1}, 0);
  refuse({24}, {1}, 1);
  refuse({1}, {1}, 24);
  refuse({2}, {24}, 0);
  refuse({1}, {1}, -1);
  refuse({-1}, {1}, 0);
  refuse({2}, {-1}, 1);
  refuse({kMost}, {kMost}, 0);
  refuse({1}, {1}, kMost);
  refuse({2, 2}, {kMost, kMost}, 0);
  // One without elements begins where the base does.
  EXPECT_EQ(view_of(base, {0, 5}, {kMost, 1}, kMost, "%v").layout.data(), base.layout.data());
  base = device->allocate(Dtype::kFloat, {0}, {1}, false);
  refuse({1}, {1}, 0);
  view_of(base, {0}, {1}, 0, "%v");
}

// Two addresses that 4 divides, and 8 does not, are aligned alike, so their views are too.
TEST_F(ViewOf, IsAlignedAsItsBaseAndItsPlaceTogether) {
  for (const uint64_t address : {uint64_t{0x1004}, uint64_t{0x100c}})
    EXPECT_EQ(alignment_of_view(address + 4, 4), 4) << address;
  EXPECT_EQ(alignment_of_view(0x1010, 16), 16);
  EXPECT_EQ(alignment_of_view(0x1018, 8), 8);
  EXPECT_EQ(alignment_of_view(0x1020, 0), 32);
  EXPECT_EQ(device->alignment(view_of(base, {4}, {1}, 1, "%v")), 4);
}

}  // namespace
}  // namespace fusebox
