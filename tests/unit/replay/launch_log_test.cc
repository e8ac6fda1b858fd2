// The kernels that a late fault may be of.
#include "replay/cuda/launch_log.h"

#include <gtest/gtest.h>
#include <thread>

namespace fusebox {
namespace {

using Names = std::vector<std::string>;

TEST(LaunchLog, TellsTheLastLaunchesFirstAndEachOnce) {
  LaunchLog log;
  EXPECT_EQ(log.recent(), Names());
  for (const char* name : {"a", "b", "a", ""}) log.note(name);
  EXPECT_EQ(log.recent(), (Names{"a", "b"}));
}

TEST(LaunchLog, ForgetsWhatIsKnownToBeDone) {
  LaunchLog log;
  log.note("a");
  const LaunchLog::Mark before = log.mark();
  log.note("b");  // launched while the device was waited for
  log.forget(before);
  EXPECT_EQ(log.recent(), Names{"b"});
  log.forget(log.mark());
  EXPECT_EQ(log.recent(), Names());
}

TEST(LaunchLog, KeepsTheLastSixteen) {
  LaunchLog log;
  log.note("first");
  for (int i = 0; i < 15; ++i) log.note("more");
  EXPECT_EQ(log.recent(), (Names{"more", "first"}));
  log.note("more");
  EXPECT_EQ(log.recent(), Names{"more"});
}

TEST(LaunchLog, SeveralThreadsMayNote) {
  LaunchLog log;
  std::vector<std::thread> threads;
  for (const char* name : {"a", "b"})
    threads.emplace_back([&log, name] {
      for (int i = 0; i < 10000; ++i) log.note(name);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(log.mark(), 20000u);
  EXPECT_FALSE(log.recent().empty());
}

TEST(LaunchLog, AnErrorNamesOneKernelOrAsksForMore) {
  EXPECT_EQ(late_fault_text({"softmax"}), "; the kernel is @softmax");
  const std::string several = late_fault_text({"b", "a"});
  EXPECT_NE(several.find("@b, @a"), std::string::npos) << several;
  EXPECT_NE(several.find("FUSEBOX_DEBUG=1"), std::string::npos) << several;
  EXPECT_NE(late_fault_text({}), "");
}

}  // namespace
}  // namespace fusebox
