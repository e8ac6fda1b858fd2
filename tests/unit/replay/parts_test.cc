#include "replay/data/parts.h"

#include <atomic>
#include <gtest/gtest.h>
#include <new>
#include <stdexcept>

namespace fusebox {
namespace {

TEST(Parts, RunOnceEach) {
  for (int parts : {1, 2, 7}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(parts));
    run_parts(parts, [&](int k) { ++runs[static_cast<size_t>(k)]; });
    for (const auto& n : runs) EXPECT_EQ(n, 1);
  }
}

TEST(Parts, WhatOneThrowsLeavesAfterAllHaveRun) {
  for (int bad : {0, 1, 3}) {
    std::atomic<int> runs = 0;
    EXPECT_THROW(run_parts(4,
                           [&](int k) {
                             ++runs;
                             if (k == bad) throw std::bad_alloc();
                           }),
                 std::bad_alloc);
    EXPECT_EQ(runs, 4);
  }
  // If several parts throw, the first part's error counts.
  EXPECT_THROW(run_parts(4,
                         [](int k) {
                           if (k == 1) throw std::length_error("one");
                           if (k == 2) throw std::bad_alloc();
                         }),
               std::length_error);
}

}  // namespace
}  // namespace fusebox
