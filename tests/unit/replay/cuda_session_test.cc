// A session of a GPU, and what outlives it, beside streams that are captured, with a driver that launches nothing.
#include <gtest/gtest.h>

#include "ir/table/error.h"
#include "replay/cuda/session.h"
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
  // No test leaves anything to the next one.
  void TearDown() override {
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
