// The processes that cases run in: one that crashes, hangs or takes all the memory is found out, with what it was at.
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <map>
#include <thread>

#include "replay/gate_workers.h"

namespace fusebox {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kUnderSanitizer = true;
#else
constexpr bool kUnderSanitizer = false;
#endif

void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// The answers to "0" … "count - 1", by request.
std::map<std::string, WorkerAnswer> run(int count, const WorkerOptions& options,
                                        const std::function<std::string(const std::string&, WorkerNote&)>& work) {
  std::map<std::string, WorkerAnswer> answers;
  int next = 0;
  WorkerCalls calls;
  calls.next = [&]() -> std::optional<std::string> {
    if (next == count) return std::nullopt;
    return std::to_string(next++);
  };
  calls.work = work;
  calls.done = [&](WorkerAnswer a) {
    const std::string request = a.request;
    EXPECT_TRUE(answers.emplace(request, std::move(a)).second) << request;
  };
  run_workers(options, calls);
  return answers;
}

TEST(Workers, OneThatCrashesSaysWhereAndTheOthersGoOn) {
  for (const int jobs : {1, 3}) {
    const auto answers = run(8, {.jobs = jobs, .retry = false}, [](const std::string& request, WorkerNote& note) {
      note.begin(std::stoull(request) * 100, 0);
      if (request == "5") {
        note.begin(507, 3);
        std::printf("about to die");
        std::fflush(stdout);
        ::raise(SIGSEGV);
      }
      return "answer " + request;
    });
    ASSERT_EQ(answers.size(), 8u);
    for (const auto& [request, a] : answers) {
      if (request == "5") continue;
      EXPECT_EQ(a.death, "");
      EXPECT_EQ(a.answer, "answer " + request);
    }
    const WorkerAnswer& dead = answers.at("5");
    EXPECT_EQ(dead.death, "killed by SIGSEGV");
    EXPECT_EQ(dead.item, 507u);
    EXPECT_EQ(dead.part, 3u);
    EXPECT_EQ(dead.output, "about to die");
    EXPECT_EQ(dead.answer, "");
  }
}

TEST(Workers, OneThatHangsIsKilledAndOneThatBeatsIsNot) {
  const auto answers =
      run(3, {.jobs = 2, .timeout_s = 0.5, .retry = false}, [](const std::string& request, WorkerNote& note) {
        if (request == "1") {
          note.begin(11, 2);
          for (;;) wait_ms(1000);
        }
        // Longer than the limit in all, not between two beats.
        for (uint64_t i = 0; request == "2" && i < 8; ++i) {
          note.begin(i, 0);
          wait_ms(100);
        }
        return request;
      });
  EXPECT_EQ(answers.at("0").death, "");
  EXPECT_EQ(answers.at("1").death, "took longer than 0.5 s");
  EXPECT_EQ(answers.at("1").item, 11u);
  EXPECT_EQ(answers.at("2").death, "");
  EXPECT_GT(answers.at("2").seconds, 0.7);
}

TEST(Workers, MemoryHasALimit) {
  if (kUnderSanitizer) GTEST_SKIP() << "a sanitizer's own memory would be counted";
  const WorkerOptions options{.memory_bytes = int64_t{256} << 20, .retry = false};
  const auto answers = run(3, options, [](const std::string& request, WorkerNote& note) {
    note.begin(std::stoull(request), 0);
    std::string all;
    if (request == "1") all.assign(size_t{1} << 30, 'x');
    return request + std::string(all.size() > 5 ? 1 : 0, all[0]);
  });
  EXPECT_EQ(answers.at("0").death, "");
  EXPECT_EQ(answers.at("1").death, "ran out of memory");
  EXPECT_EQ(answers.at("1").item, 1u);
  EXPECT_EQ(answers.at("2").answer, "2");
}

TEST(Workers, AnExitIsADeath) {
  const auto answers = run(1, {.retry = false}, [](const std::string&, WorkerNote&) -> std::string { ::_exit(5); });
  EXPECT_EQ(answers.at("0").death, "exited with code 5");
}

TEST(Workers, StopEndsWhatRunsAndGivingUpKillsIt) {
  for (const WorkerOrder order : {WorkerOrder::kFinish, WorkerOrder::kGiveUp}) {
    int given = 0, answered = 0;
    WorkerCalls calls;
    calls.next = [&]() -> std::optional<std::string> {
      if (given == 2) return std::nullopt;
      return std::to_string(given++);
    };
    calls.work = [](const std::string&, WorkerNote& note) -> std::string {
      while (!note.stop) wait_ms(5);
      return "stopped";
    };
    calls.done = [&](const WorkerAnswer& a) { answered += a.answer == "stopped" ? 1 : 0; };
    calls.tick = [&] { return order; };
    run_workers({.jobs = 2, .timeout_s = 30}, calls);
    EXPECT_EQ(answered, order == WorkerOrder::kFinish ? 2 : 0);
  }
}

}  // namespace
}  // namespace fusebox
