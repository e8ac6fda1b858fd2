#include "replay/cuda/resting.h"

#include <functional>
#include <gtest/gtest.h>

namespace fusebox {
namespace {

std::shared_ptr<void> thing(std::function<void()> at_end) {
  return {nullptr, [at_end = std::move(at_end)](void*) { at_end(); }};
}

TEST(Resting, EndsTheOldestFirstAndLeavesTheLast) {
  std::vector<int> ended;
  Resting resting;
  for (int i = 0; i < 5; ++i) resting.add(thing([&ended, i] { ended.push_back(i); }));
  resting.end_oldest(5);
  EXPECT_TRUE(ended.empty());
  resting.end_oldest(2);
  EXPECT_EQ(ended, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(resting.size(), 2u);
}

TEST(Resting, AThingMayAddAnotherWhereItEnds) {
  Resting resting;
  resting.add(thing([&] { resting.add(nullptr); }));
  resting.end_oldest(0);
  EXPECT_EQ(resting.size(), 1u);
}

TEST(Resting, WhatOthersOwnGoesOn) {
  Resting resting;
  auto number = std::make_shared<int>(5);
  resting.add(number);
  resting.end_oldest(0);
  EXPECT_EQ(number.use_count(), 1);
}

}  // namespace
}  // namespace fusebox
