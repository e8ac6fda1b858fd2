// A campaign in worker processes: the cases do not depend on the number of processes or on interruptions, and cases
// that kill their process are findings.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <thread>

#include "fuzz/campaign/campaign.h"
#include "fuzz/reduce/reduce.h"
#include "fuzz/report/report.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "replay/data/file.h"
#include "serde/decode.h"
#include "tests/fuzz/folder.h"

namespace fusebox::fuzz {
namespace {

CampaignOptions small(uint64_t runs) {
  CampaignOptions options;
  options.runner.seed = 3;
  options.runner.runs = runs;
  options.runner.cases.fusion.max_ops = 6;
  options.runner.oracles = parse_oracles("host-checks,text,invalid");
  return options;
}

// Everything that does not depend on time.
std::string told(CampaignState state) {
  state.statistics.seconds = 0;
  for (KeptFinding& f : state.statistics.findings) {
    f.seconds = 0;
    f.saved = {};
    f.file = std::filesystem::path(f.file).filename();
  }
  return to_json(state.statistics);
}

TEST(Durable, TheNumberOfWorkersDoesNotMatter) {
  CampaignOptions one = small(900), three = small(900);
  one.memory_bytes = three.memory_bytes = 0;  // as without processes: a limit may refuse a case
  three.jobs = 3;
  const CampaignState a = run_campaign(one), b = run_campaign(three);
  EXPECT_EQ(a.statistics.cases, 900u);
  EXPECT_GT(a.statistics.mutated_valid, 200u);
  EXPECT_EQ(told(a), told(b));
  // The same result as without processes.
  CampaignState c;
  c.statistics = run_cases(one.runner);
  EXPECT_EQ(told(a), told(c));
}

TEST(Durable, ItGoesOnWhereItStopped) {
  const Folder folder("resume"), whole("whole");
  CampaignOptions options = small(700);
  options.runner.out = whole.path();
  const std::string expected = told(run_campaign(options));
  // Interrupted twice and stopped once by the number of cases, never at the end of a block.
  options.runner.out = folder.path();
  options.jobs = 2;
  options.runner.runs = 100;
  EXPECT_EQ(run_campaign(options).statistics.cases, 100u);
  options.runner.runs = 700;
  uint64_t cases = 100;
  for (int i = 0; i < 2; ++i) {
    bool asked = false;
    options.at = [](uint64_t, uint64_t) { std::this_thread::sleep_for(std::chrono::microseconds(300)); };
    options.stops = [&] { return asked ? 1 : 0; };
    options.progress = [&](const Statistics&) { asked = true; };
    const CampaignState part = run_campaign(options);
    EXPECT_GT(part.statistics.cases, cases);
    EXPECT_LT(part.statistics.cases, 700u);
    EXPECT_FALSE(part.partial.empty());
    cases = part.statistics.cases;
  }
  options.stops = {};
  options.progress = {};
  const CampaignState last = run_campaign(options);
  EXPECT_EQ(told(last), expected);
  // Nothing is left to do.
  EXPECT_EQ(told(run_campaign(options)), expected);
  for (size_t i = 1; i < last.series.size(); ++i) EXPECT_GE(last.series[i].cases, last.series[i - 1].cases);
}

TEST(Durable, AnotherCampaignDoesNotGoOnHere) {
  const Folder folder("other");
  CampaignOptions options = small(10);
  options.runner.out = folder.path();
  run_campaign(options);
  options.runner.seed = 4;
  try {
    run_campaign(options);
    FAIL() << "the seed is another";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kUsage);
    EXPECT_EQ(e.place, state_path(folder.path()));
  }
  write_file(state_path(folder.path()), std::string_view("{\"format\":1"));
  options.runner.seed = 3;
  EXPECT_THROW(run_campaign(options), Error);
}

const KeptFinding* find(const Statistics& s, const std::string& signature) {
  for (const KeptFinding& f : s.findings)
    if (text(f.finding.signature) == signature) return &f;
  return nullptr;
}

// Cases that kill their process, hang, or allocate without end.
struct Deadly {
  uint64_t drawing, crash, hang, memory, later_crash;
};

// The first case from `from` on that is judged if its block skips the cases of `deadly`. A case whose mutation is
// refused is not judged, and the generator decides which mutations are.
uint64_t first_judged(const RunnerOptions& options, uint64_t from, const std::vector<DeadlyCase>& deadly) {
  std::optional<uint64_t> found;
  BlockHooks hooks;
  hooks.at = [&](uint64_t number, uint64_t part, uint64_t) {
    if (!found && number >= from && part == kFirstOracle) found = number;
  };
  hooks.go_on = [&](const Statistics&) { return !found; };
  run_block(options, {.block = from / kBlockCases, .deadly = deadly}, hooks);
  return found.value();
}

Deadly plant(CampaignOptions& options) {
  std::vector<DeadlyCase> deadly = {{9, kDrawing}};
  const auto judged = [&](uint64_t from) {
    const uint64_t number = first_judged(options.runner, from, deadly);
    deadly.push_back({number, kFirstOracle});
    return number;
  };
  Deadly d{};
  d.drawing = 9, d.crash = judged(36), d.hang = judged(70), d.memory = judged(150);
  deadly.clear();
  d.later_crash = judged(290);
  options.case_seconds = 2;
  options.memory_bytes = int64_t{1} << 30;
  options.at = [d](uint64_t number, uint64_t part) {
    if (number == d.drawing && part == kDrawing) ::raise(SIGILL);
    if (part != kFirstOracle) return;
    if (number == d.crash || number == d.later_crash) ::raise(SIGSEGV);
    if (number == d.hang)
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    if (number == d.memory) throw std::bad_alloc();
  };
  return d;
}

TEST(Durable, WhatKillsAWorkerIsAFinding) {
  const Folder folder("deadly");
  CampaignOptions options = small(400);
  const Statistics clean = run_campaign(options).statistics;
  const Deadly deadly = plant(options);
  options.runner.out = folder.path();
  options.jobs = 2;
  const CampaignState state = run_campaign(options);
  const Statistics& s = state.statistics;
  EXPECT_EQ(s.cases, 400u);
  EXPECT_EQ(s.died, 5u);
  EXPECT_EQ(s.findings.size(), clean.findings.size() + 4);
  const KeptFinding* crash = find(s, "host-checks crash SIGSEGV");
  ASSERT_TRUE(crash);
  EXPECT_EQ(crash->count, 2u);
  EXPECT_EQ(crash->number, deadly.crash);
  EXPECT_TRUE(crash->lineage.starts_with("seed "));
  const std::string bytes = read_text_file(crash->file);
  const Bundle b = decode_bundle(bytes_of(bytes));
  EXPECT_EQ(*find_value(b.options, "finding"), "host-checks died");
  EXPECT_EQ(find_stage(b, Stage::kFusion)->input_specs.size(), 1u);
  ASSERT_TRUE(find(s, "host-checks timeout"));
  EXPECT_EQ(find(s, "host-checks timeout")->number, deadly.hang);
  EXPECT_FALSE(find(s, "host-checks timeout")->file.empty());
  ASSERT_TRUE(find(s, "host-checks memory"));
  EXPECT_EQ(find(s, "host-checks memory")->number, deadly.memory);
  // A case that cannot be drawn has no file, but its seed is told.
  const KeptFinding* undrawn = find(s, "generate crash SIGILL");
  ASSERT_TRUE(undrawn);
  EXPECT_EQ(undrawn->file, "");
  EXPECT_NE(undrawn->finding.message.find("seed " + std::to_string(case_seed(3, deadly.drawing))), std::string::npos);
  // It goes on without dying again.
  options.runner.runs = 500;
  const CampaignState more = run_campaign(options);
  EXPECT_EQ(more.statistics.cases, 500u);
  EXPECT_EQ(more.statistics.died, 5u);
  const std::string page = campaign_report(more, folder.path());
  EXPECT_NE(page.find("host-checks crash SIGSEGV"), std::string::npos);
  EXPECT_NE(page.find("href=\"findings/host-checks-crash-SIGSEGV.fuse\""), std::string::npos);
  EXPECT_NE(page.find("data:image/svg+xml;base64,"), std::string::npos);
}

// The first case from `from` on that is mutated if it and the cases of `deadly` die when they are compiled first.
uint64_t first_mutated(const RunnerOptions& options, uint64_t from, std::vector<DeadlyCase> deadly) {
  deadly.emplace_back();
  bool is_mutated = false;
  BlockHooks hooks;
  hooks.deadly = [&](const DeadlyCase&, const Case& c) { is_mutated = !c.lineage.empty(); };
  for (uint64_t number = from;; ++number) {
    deadly.back() = {number, kFirstCompilation};
    run_block(options, {.end = number + 1, .deadly = deadly}, hooks);
    if (is_mutated) return number;
  }
}

// The draw compiles a case, so a case that cannot be compiled ends the draw. It is saved all the same.
TEST(Durable, ACaseThatCannotBeCompiledIsSaved) {
  const Folder folder("compiled");
  CampaignOptions options = small(80);
  constexpr uint64_t kDrawn = 2;
  const uint64_t mutated = first_mutated(options.runner, 40, {{kDrawn, kFirstCompilation}});
  options.at = [&](uint64_t number, uint64_t part) {
    if (part != kFirstCompilation) return;
    if (number == kDrawn) ::raise(SIGILL);
    if (number == mutated) ::raise(SIGSEGV);
  };
  options.runner.out = folder.path();
  const Statistics s = run_campaign(options).statistics;
  EXPECT_EQ(s.cases, 80u);
  EXPECT_EQ(s.died, 2u);
  const KeptFinding* drawn = find(s, "generate crash SIGILL");
  ASSERT_TRUE(drawn);
  const Case of_seed = generate_case(case_seed(3, kDrawn), options.runner.cases).value;
  EXPECT_EQ(print(load_finding(drawn->file).subject.fusion()), print(of_seed.fusion()));
  const KeptFinding* crash = find(s, "generate crash SIGSEGV");
  ASSERT_TRUE(crash);
  EXPECT_EQ(crash->number, mutated);
  // The lineage has a line for the seed and one for each mutation.
  EXPECT_GT(std::ranges::count(crash->lineage, '\n'), 1);
  EXPECT_EQ(print_lineage(load_finding(crash->file).subject), crash->lineage);
}

TEST(Durable, ADeathIsToldAlthoughTheTimeIsOver) {
  CampaignOptions options = small(0);
  plant(options);
  options.runner.seconds = 0.001;
  const CampaignState state = run_campaign(options);
  // Every case that was begun is counted.
  EXPECT_EQ(state.statistics.died, state.statistics.findings.size());
}

}  // namespace
}  // namespace fusebox::fuzz
