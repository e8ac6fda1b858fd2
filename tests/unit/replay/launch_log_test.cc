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
  for (const char* name : {"a", "b", "a", ""}) log.note(name, nullptr);
  EXPECT_EQ(log.recent(), (Names{"a", "b"}));
}

TEST(LaunchLog, ForgetsWhatIsKnownToBeDone) {
  LaunchLog log;
  log.note("a", nullptr);
  const LaunchLog::Mark before = log.mark();
  log.note("b", nullptr);  // launched while the device was waited for
  log.forget(before);
  EXPECT_EQ(log.recent(), Names{"b"});
  log.forget(log.mark());
  EXPECT_EQ(log.recent(), Names());
}

TEST(LaunchLog, AStreamThatIsDoneSaysNothingOfOthers) {
  LaunchLog log;
  const int one = 0, other = 0;
  log.note("a", &one);
  log.note("b", &other);
  const LaunchLog::Mark before = log.mark();
  log.note("c", &one);
  log.forget(before, &one);
  EXPECT_EQ(log.recent(), (Names{"c", "b"}));
  log.forget(log.mark(), &other);
  EXPECT_EQ(log.recent(), Names{"c"});
  // A later launch in the slot of one that is done is not done.
  for (int i = 0; i < 16; ++i) log.note("d", &other);
  EXPECT_EQ(log.recent(), Names{"d"});
}

TEST(LaunchLog, KeepsTheLastSixteen) {
  LaunchLog log;
  log.note("first", nullptr);
  for (int i = 0; i < 15; ++i) log.note("more", nullptr);
  EXPECT_EQ(log.recent(), (Names{"more", "first"}));
  log.note("more", nullptr);
  EXPECT_EQ(log.recent(), Names{"more"});
}

TEST(LaunchLog, SeveralThreadsMayNote) {
  LaunchLog log;
  std::vector<std::thread> threads;
  for (const char* name : {"a", "b"})
    threads.emplace_back([&log, name] {
      for (int i = 0; i < 10000; ++i) log.note(name, nullptr);
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
