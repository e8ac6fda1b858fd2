// A session of a GPU, and what outlives it, beside streams that are captured, with a driver that launches nothing.
#include <gtest/gtest.h>

#include "ir/table/error.h"
#include "replay/cuda/resting.h"
#include "replay/cuda/session.h"
#include "replay/device/captures.h"
#include "replay/device/loaded_modules.h"
#include "tests/support/expect_error.h"
#include "tests/unit/replay/fake_driver.h"

namespace fusebox {
namespace {

using testing::FakeDriver;

class CudaSessionTest : public ::testing::Test {
 protected:
  FakeDriver& driver = FakeDriver::fresh();
  std::shared_ptr<CudaSession> session = open_session(driver.api, {});
  int captured = 0, other = 0;  // streams, by their addresses

  void begin_capture(unsigned long long number) { driver.captures[&captured] = number; }
  void end_capture() { driver.captures.clear(); }
  std::shared_ptr<LoadedModules> loaded() {
    auto modules = std::make_shared<LoadedModules>(session);
    modules->add(session->load("binary", "entry"));
    return modules;
  }
  // No test leaves anything to the next one.
  void TearDown() override {
    Resting::of_process().end_oldest(0);
    session.reset();
    EXPECT_EQ(driver.refused, std::vector<std::string>());
    EXPECT_TRUE(driver.memory.empty());
    EXPECT_TRUE(driver.modules.empty());
    EXPECT_EQ(driver.objects, 0);
    EXPECT_EQ(driver.contexts, 0);
    EXPECT_EQ(driver.whole_waits, 0);
  }
};

TEST_F(CudaSessionTest, LoadsWaitsAndUnloadsBesideACapture) {
  begin_capture(7);
  const CudaKernel kernel = session->load("binary", "entry");
  session->free(session->allocate(8));
  session->synchronize(&other);
  EXPECT_EQ(driver.modules.size(), 1u);
  session->unload(kernel);
  EXPECT_TRUE(driver.modules.empty());
  EXPECT_EQ(driver.mode, 0);  // the thread's own again
  EXPECT_EQ(driver.waited_for, std::vector<void*>{&other});
}

TEST_F(CudaSessionTest, WorkThatWaitsIsRefusedBeforeItTouchesACapturedStream) {
  const auto refuse = [&](CudaStream stream) { return [this, stream] { refuse_captured(*session, stream, "@f"); }; };
  refuse (&captured)();
  begin_capture(7);
  refuse (&other)();
  refuse(nullptr)();
  testing::expect_error(ErrorCode::kUnsupportedOp, "@f", refuse(&captured));
  EXPECT_TRUE(session->is_captured(&captured));
  EXPECT_TRUE(driver.waited_for.empty());
  EXPECT_TRUE(driver.graphs[7].empty());
  EXPECT_EQ(driver.questions, 4);
}

TEST_F(CudaSessionTest, AGraphKeepsModulesAfterTheirDevice) {
  auto modules = loaded();
  begin_capture(7);
  session->keep_for_graph(&captured, modules);
  end_capture();
  modules.reset();
  session.reset();
  EXPECT_EQ(driver.modules.size(), 1u);
  // Where the graph ends, nobody calls the driver: neither the modules nor the last session end there.
  driver.end_graph(7);
  EXPECT_EQ(driver.modules.size(), 1u);
  EXPECT_EQ(driver.contexts, 1);
  Resting::of_process().end_oldest(0);
  EXPECT_TRUE(driver.modules.empty());
  EXPECT_EQ(driver.contexts, 0);
}

TEST_F(CudaSessionTest, AStreamThatIsNotCapturedKeepsNothing) {
  auto modules = loaded();
  session->keep_for_graph(&other, modules);
  EXPECT_FALSE(session->capture_number(&other));
  EXPECT_EQ(modules.use_count(), 1);
  begin_capture(7);
  EXPECT_EQ(session->capture_number(&captured), std::optional<uint64_t>(7));
  EXPECT_TRUE(session->is_captured(&captured));
  EXPECT_FALSE(session->is_captured(&other));
}

TEST_F(CudaSessionTest, WhatEndsLaterIsUnloadedByALaterLoadBesideACapture) {
  begin_capture(7);
  const size_t most = Resting::kMost;
  for (size_t i = 0; i < most + 3; ++i) session->end_later(loaded());
  // The last load leaves the most that may rest, and its own comes after.
  EXPECT_EQ(driver.modules.size(), most + 1);
  loaded().reset();
  EXPECT_EQ(driver.modules.size(), most);
}

TEST_F(CudaSessionTest, CountersOfAnEndedGraphAreUsedAgainAndFreedWithTheSession) {
  begin_capture(7);
  const CudaPointer memory = session->zeroed_for_capture(&captured, 8);
  EXPECT_EQ(driver.memory, std::set<uint64_t>{memory});
  EXPECT_NE(session->zeroed_for_capture(&captured, 8), memory);
  end_capture();
  driver.end_graph(7);
  begin_capture(8);
  session->zeroed_for_capture(&captured, 8);
  EXPECT_EQ(driver.memory.size(), 2u);
  end_capture();
  driver.end_graph(8);
  session.reset();
  EXPECT_TRUE(driver.memory.empty());
}

TEST_F(CudaSessionTest, CountersThatNoGraphGetsAreUsedAgain) {
  begin_capture(7);
  for (int* failure : {&driver.fills_fail, &driver.objects_fail, &driver.retains_fail}) {
    *failure = FakeDriver::kInvalid;
    EXPECT_THROW(session->zeroed_for_capture(&captured, 8), Error);
    *failure = 0;
    EXPECT_EQ(driver.objects, 0);
  }
  EXPECT_EQ(driver.memory.size(), 1u);
  EXPECT_EQ(session->zeroed_for_capture(&captured, 8), *driver.memory.begin());
  driver.end_graph(7);
}

TEST_F(CudaSessionTest, AModuleWithoutTheKernelIsUnloadedBesideACapture) {
  begin_capture(7);
  EXPECT_THROW(session->load("binary", "missing"), Error);
  EXPECT_TRUE(driver.modules.empty());
}

TEST_F(CudaSessionTest, WaitingForAStreamForgetsItsLaunchesAlone) {
  CudaKernel one, two;
  session->set_name(one, "one");
  session->set_name(two, "two");
  session->start({.name = one.name}, nullptr, &captured);
  session->start({.name = two.name}, nullptr, &other);
  session->synchronize(&other);
  driver.fills_fail = CUDA_ERROR_ILLEGAL_ADDRESS;
  try {
    session->fill(1, 0, 8);
    FAIL() << "a fault that the driver tells is no failure";
  } catch (const Error& e) {
    EXPECT_EQ(e.place, "@one");
  }
}

}  // namespace
}  // namespace fusebox
