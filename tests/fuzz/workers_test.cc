// The worker processes of cases: a crash, a hang or an exhausted memory is noticed, together with the case and its
// part.
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <map>
#include <thread>
#include <vector>

#include "replay/gate/gate_workers.h"

namespace fusebox {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kUnderSanitizer = true;
#else
constexpr bool kUnderSanitizer = false;
#endif

void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// The answers to the requests "0" … "count - 1".
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
        // Longer than the limit in all, but not between two beats.
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

TEST(Workers, WhatDoesNotStopInTimeIsEnded) {
  std::map<std::string, WorkerAnswer> answers;
  int given = 0;
  WorkerCalls calls;
  calls.next = [&]() -> std::optional<std::string> {
    if (given == 2) return std::nullopt;
    return std::to_string(given++);
  };
  calls.work = [](const std::string& request, WorkerNote& note) -> std::string {
    note.begin(3, 1, 1000);
    while (!note.stop || request == "1") wait_ms(5);
    return "stopped";
  };
  calls.done = [&](const WorkerAnswer& a) { answers[a.request] = a; };
  calls.tick = [&] { return WorkerOrder::kFinish; };
  const auto start = std::chrono::steady_clock::now();
  run_workers({.jobs = 2, .timeout_s = 30, .grace_s = 0.5}, calls);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(answers["0"].answer, "stopped");
  EXPECT_EQ(answers["1"].death, "did not stop in time");
  EXPECT_TRUE(answers["1"].was_stopped);
}

TEST(Workers, SomePartsMayTakeLonger) {
  const auto answers =
      run(2, {.jobs = 2, .timeout_s = 0.4, .retry = false}, [](const std::string& request, WorkerNote& note) {
        note.begin(1, 1, request == "0" ? 1000 : 2);
        wait_ms(4000);
        return request;
      });
  EXPECT_EQ(answers.at("0").death, "");
  EXPECT_EQ(answers.at("1").death, "took longer than 0.8 s");
}

TEST(Workers, PartsOfAnAnswerOutliveTheWorker) {
  bool given = false;
  std::vector<std::string> parts;
  WorkerAnswer last;
  WorkerCalls calls;
  calls.next = [&]() -> std::optional<std::string> {
    if (given) return std::nullopt;
    given = true;
    return "go";
  };
  const std::string large(300'000, 'x');
  calls.work_in_parts = [&](const std::string&, WorkerNote&, const WorkerTell& tell) -> std::string {
    for (const std::string& part : {std::string("one"), std::string(), large}) tell(part);
    ::raise(SIGKILL);
    return "all";
  };
  calls.told = [&](const WorkerAnswer& a) { parts.push_back(a.answer); };
  calls.done = [&](WorkerAnswer a) { last = std::move(a); };
  run_workers({.retry = false}, calls);
  EXPECT_EQ(parts, (std::vector<std::string>{"one", "", large}));
  EXPECT_EQ(last.death, "killed by SIGKILL");
}

TEST(Workers, AFreshProcessIsMadeOfThisOneAsItIsNow) {
  std::vector<std::string> waiting, answers;
  int given = 0, seen = 0;
  WorkerCalls calls;
  calls.next = [&]() -> std::optional<std::string> {
    if (given == 6) return std::nullopt;
    return "task " + std::to_string(given++);
  };
  calls.next_fresh = [&]() -> std::optional<std::string> {
    if (waiting.empty()) return std::nullopt;
    const std::string request = waiting.back();
    waiting.pop_back();
    return request;
  };
  // A worker knows only what was known when it was made.
  calls.work = [&](const std::string& request, WorkerNote&) { return request + " knows " + std::to_string(seen); };
  calls.done = [&](const WorkerAnswer& a) {
    answers.push_back(a.answer);
    if (a.request == "task 2" || a.request == "task 4") waiting.push_back("fresh");
    ++seen;
  };
  run_workers({.jobs = 1, .retry = false}, calls);
  ASSERT_EQ(answers.size(), 8u);
  for (size_t i = 0; i < answers.size(); ++i)
    EXPECT_EQ(answers[i].ends_with(" knows 0"), answers[i].starts_with("task")) << answers[i];
}

}  // namespace
}  // namespace fusebox
