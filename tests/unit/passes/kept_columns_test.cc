#include "passes/schedule/kept_columns.h"

#include <gtest/gtest.h>

#include "ir/module/device_properties.h"

namespace fusebox {
namespace {

DeviceProperties h100() {
  for (const DeviceProperties& d : device_presets())
    if (d.name == "h100") return d;
  ADD_FAILURE() << "no preset h100";
  return {};
}

int64_t held(const KeptColumns& k) { return k.cluster * k.warps * k.chunks; }

TEST(KeptColumns, AreHeldWhole) {
  for (int64_t places : {1, 2, 9, 40, 300, 1500, 4096, 7007})
    for (int64_t columns : {1, 64, 513, 1584, 65536})
      for (int64_t vector : {1, 4}) {
        const auto k = keep_columns({.places = places, .columns = columns, .vector = vector, .bytes = 4},
                                    {.load = 4, .kept = 4}, h100());
        ASSERT_TRUE(k) << places << " x " << columns;
        EXPECT_GE(held(*k), places) << places << " x " << columns;
        EXPECT_LE(k->lanes * k->warps, h100().block_threads) << places << " x " << columns;
        EXPECT_LE(k->cluster, 8);
      }
}

TEST(KeptColumns, FewColumnsAreSharedByClusters) {
  const auto k = keep_columns({.places = 8192, .columns = 64, .vector = 4, .bytes = 4}, {.load = 4, .kept = 4}, h100());
  ASSERT_TRUE(k);
  EXPECT_EQ(k->cluster, 8);
  EXPECT_EQ(k->lanes * k->warps, 256);
}

// Blocks that keep the inputs' 16 bits take half of the registers.
TEST(KeptColumns, InputsAreKeptWhereMoreBlocksAreThenHeld) {
  const Columns long_ones{.places = 7007, .columns = 1584, .vector = 8, .bytes = 2};
  const Columns short_ones{.places = 2048, .columns = 8192, .vector = 8, .bytes = 2};
  const Columns few{.places = 7007, .columns = 128, .vector = 8, .bytes = 2};
  for (const bool by_arithmetic : {false, true}) {
    const ColumnBytes bytes{.load = 2, .kept = 4, .inputs = 2, .are_made_by_arithmetic = by_arithmetic};
    const auto k = keep_columns(long_ones, bytes, h100());
    ASSERT_TRUE(k);
    EXPECT_TRUE(k->keeps_inputs);
    EXPECT_EQ(k->blocks, 4);
    EXPECT_GE(held(*k), long_ones.places);
    EXPECT_EQ(keep_columns(short_ones, bytes, h100())->keeps_inputs, by_arithmetic);
    EXPECT_FALSE(keep_columns(few, bytes, h100())->keeps_inputs) << "all blocks are on the GPU at once";
  }
  EXPECT_FALSE(keep_columns(long_ones, {.load = 2, .kept = 4}, h100())->keeps_inputs);
}

TEST(KeptColumns, NoBlockHoldsMoreThanInputs) {
  const Columns columns{.places = 32768, .columns = 512, .vector = 8, .bytes = 2};
  EXPECT_FALSE(keep_columns(columns, {.load = 2, .kept = 4}, h100()));
  const auto k = keep_columns(columns, {.load = 2, .kept = 4, .inputs = 2}, h100());
  ASSERT_TRUE(k);
  EXPECT_TRUE(k->keeps_inputs);
}

TEST(KeptColumns, NoLanesAreWithoutColumns) {
  const auto k = keep_columns({.places = 64, .columns = 16, .beside = 2048, .vector = 4, .bytes = 4},
                              {.load = 4, .kept = 4}, h100());
  ASSERT_TRUE(k);
  EXPECT_EQ(k->lanes, 4);
  EXPECT_GE(k->lanes * k->warps, 128);
}

TEST(KeptColumns, NoClusterHoldsLongOnes) {
  for (int64_t places : {int64_t{1} << 20, int64_t{1} << 62})
    EXPECT_FALSE(
        keep_columns({.places = places, .columns = 64, .vector = 4, .bytes = 4}, {.load = 4, .kept = 4}, h100()));
}

TEST(KeptColumns, WithoutClustersABlockHoldsThem) {
  DeviceProperties device = h100();
  device.architecture = "sm_80";
  const Columns columns{.places = 8192, .columns = 4096, .vector = 4, .bytes = 4};
  EXPECT_FALSE(keep_columns(columns, {.load = 4, .kept = 4}, device));
  const auto k =
      keep_columns({.places = 1024, .columns = 4096, .vector = 4, .bytes = 4}, {.load = 4, .kept = 4}, device);
  ASSERT_TRUE(k);
  EXPECT_EQ(k->cluster, 1);
}

TEST(KeptColumns, NarrowOnesNeedBlocksForHalfTheMultiprocessors) {
  EXPECT_EQ(lanes_of_narrow_columns({.places = 60000, .columns = 1584, .vector = 8, .bytes = 2}, 2, h100()), 2);
  EXPECT_EQ(lanes_of_narrow_columns({.places = 60000, .columns = 128, .vector = 8, .bytes = 2}, 2, h100()), 0);
}

}  // namespace
}  // namespace fusebox
