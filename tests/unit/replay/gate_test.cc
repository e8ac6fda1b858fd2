// The processes of a gate and their answers.
#include "replay/gate/gate.h"

#include <csignal>
#include <gtest/gtest.h>
#include <map>
#include <unistd.h>

#include "ir/table/error.h"
#include "replay/gate/gate_workers.h"

namespace fusebox {
namespace {

std::map<size_t, WorkerAnswer> answers(size_t tasks, const WorkerOptions& options,
                                       const std::function<std::string(size_t)>& work) {
  std::map<size_t, WorkerAnswer> all;
  run_in_workers(tasks, options, work, [&](WorkerAnswer a) {
    const size_t task = a.task;
    EXPECT_TRUE(all.emplace(task, std::move(a)).second) << "task " << task << " is answered twice";
  });
  EXPECT_EQ(all.size(), tasks);
  return all;
}

TEST(GateWorkers, EachTaskIsAnsweredOnce) {
  for (int jobs : {1, 2, 5, 40}) {
    const auto all =
        answers(23, {.jobs = jobs}, [](size_t i) { return std::string(i * 50'000, static_cast<char>('a' + i)); });
    for (const auto& [task, a] : all) {
      EXPECT_EQ(a.answer, std::string(task * 50'000, static_cast<char>('a' + task)));
      EXPECT_EQ(a.death, "");
    }
  }
  EXPECT_TRUE(answers(0, {}, [](size_t) { return ""; }).empty());
}

TEST(GateWorkers, ADeathIsNamedAndTheOthersGoOn) {
  for (int jobs : {1, 3}) {
    auto all = answers(7, {.jobs = jobs, .timeout_s = 20}, [](size_t i) -> std::string {
      if (i == 1) ::raise(SIGKILL);
      if (i == 2) std::abort();
      if (i == 4) {
        const char last[] = "last words";
        if (::write(STDERR_FILENO, last, sizeof last - 1) > 0) ::_exit(7);
      }
      return "alive";
    });
    const std::map<size_t, std::string> deaths = {
        {1, "killed by SIGKILL"}, {2, "killed by SIGABRT"}, {4, "exited with code 7"}};
    for (const auto& [task, a] : all) {
      const auto death = deaths.find(task);
      EXPECT_EQ(a.death, death == deaths.end() ? "" : death->second) << task;
      EXPECT_EQ(a.answer, death == deaths.end() ? "alive" : "") << task;
    }
    EXPECT_NE(all[4].output.find("last words"), std::string::npos);
  }
}

TEST(GateWorkers, WhatATaskLeavesBehindIsNotBlamedOnTheNext) {
  // State of a process: its second task dies because of its first.
  static int served = 0;
  auto all = answers(6, {.jobs = 1}, [](size_t) -> std::string {
    if (++served > 1) ::raise(SIGKILL);
    return "alive";
  });
  for (const auto& [task, a] : all) EXPECT_EQ(a.answer, "alive") << task;
}

TEST(GateWorkers, OneThatTakesTooLongIsKilled) {
  auto all = answers(5, {.jobs = 2, .timeout_s = 0.5}, [](size_t i) -> std::string {
    if (i == 1 || i == 4) ::sleep(600);
    return "in time";
  });
  for (const auto& [task, a] : all) {
    EXPECT_EQ(a.death, task == 1 || task == 4 ? "took longer than 0.5 s" : "") << task;
    EXPECT_GE(a.seconds, task == 1 || task == 4 ? 0.5 : 0.0);
  }
}

TEST(GateWorkers, AnErrorHereEndsTheWorkers) {
  EXPECT_THROW(run_in_workers(
                   9, {.jobs = 3}, [](size_t i) { return i == 0 ? "now" : (::sleep(600), "late"); },
                   [](WorkerAnswer) { throw Error(ErrorCode::kFileWrite, "no room", ""); }),
               Error);
}

TEST(Gate, AResultSurvivesTheTrip) {
  GateResult r;
  r.path = "a/b.fuse";
  r.status = GateStatus::kFixed;
  r.program = "f";
  r.executor = "host";
  r.records_bug = true;
  r.stage = "kernel";
  r.message = std::string("zero \0 byte", 11);
  r.difference = "- a\n+ b\n";
  r.rewritten = std::string(3, '\0');
  r.stages = {{"fusion", Verdict::kIdentical, "", ""}, {"binary", Verdict::kNotComparable, "no gpu", ""}};
  r.changes = {{"kernel", "1", "2"}, {"outcome", "E0410 %x", "outputs"}};
  const GateResult back = unpack_gate_result(pack(r));
  EXPECT_EQ(pack(back), pack(r));
  EXPECT_EQ(back.message, r.message);
  ASSERT_EQ(back.stages.size(), 2U);
  EXPECT_EQ(back.stages[1].why, "no gpu");
  EXPECT_EQ(back.stages[1].verdict, Verdict::kNotComparable);
  ASSERT_EQ(back.changes.size(), 2U);
  EXPECT_EQ(back.changes[1].is, "outputs");
  for (size_t size : {0U, 3U, 9U}) EXPECT_THROW(unpack_gate_result(pack(r).substr(0, size)), Error) << size;
}

TEST(Gate, XmlHoldsOnlyWhatXmlMayHold) {
  GateResult r;
  r.path = "d/\xff\xed\xa0\x80\xc3\xa4.fuse";  // invalid UTF-8, half a surrogate pair, and a letter
  r.message = "a < b && \"c\"\x01\n\xf4\x90\x80\x80";
  const std::string xml = junit_xml({r}, 1.5);
  EXPECT_NE(xml.find("name=\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xc3\xa4.fuse\""), std::string::npos)
      << xml;
  EXPECT_NE(xml.find("message=\"a &lt; b &amp;&amp; &quot;c&quot;\xEF\xBF\xBD&#10;"), std::string::npos) << xml;
  EXPECT_NE(xml.find("tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\" time=\"1.500\""), std::string::npos) << xml;
}

TEST(Gate, NoBundleIsNoPass) {
  EXPECT_THROW(find_bundles({"corpus/programs"}), Error);
  EXPECT_THROW(find_bundles({"corpus/nowhere"}), Error);
  EXPECT_THROW(find_bundles({}), Error);
  const auto found = find_bundles({"corpus/regress", "corpus/golden", "corpus"});
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  EXPECT_EQ(std::adjacent_find(found.begin(), found.end()), found.end());
}

}  // namespace
}  // namespace fusebox
