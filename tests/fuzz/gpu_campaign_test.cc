// Campaigns on a simulated GPU: they end in time and on request, go on later, survive kernels that hang, and judge
// findings again from their files.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <thread>
#include <utility>

#include "fuzz/campaign/campaign.h"
#include "fuzz/reduce/reduce.h"
#include "ir/canonical/canonical.h"
#include "ir/text/print.h"
#include "replay/gate/gate_workers.h"
#include "tests/fuzz/folder.h"

namespace fusebox::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

struct Habits {
  int compile_ms = 0;                  // per kernel
  bool compiles_for_ever = false;      // and ignores requests to stop
  uint64_t wrong_one_in = 0;           // kernels that give a wrong result
  uint64_t wrong_after_one_in = 0;     // kernels that do so if another program ran before
  uint64_t hangs_one_in = 0;           // kernels that never end
  OpKind wrong_with = OpKind::kInput;  // kernels with such an op give a wrong result
};

bool chosen(const Graph& kernel, uint64_t one_in) {
  return one_in > 0 && std::hash<std::string>()(text(digest(kernel))) % one_in == 0;
}

bool has(const Graph& kernel, OpKind kind) {
  return kind != OpKind::kInput &&
         std::any_of(kernel.ops.begin(), kernel.ops.end(), [&](const Op& op) { return op.kind == kind; });
}

// The host executor with the habits of a GPU.
class OddDevice : public Device {
 public:
  explicit OddDevice(const Habits& habits) : habits_(habits), host_(make_host_device({.step_limit = 1 << 20})) {}

  std::string_view name() const override { return "cuda"; }
  RunTensor allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, bool zeroed) override {
    return host_->allocate(dtype, std::move(shape), std::move(strides), zeroed);
  }
  RunTensor upload(const TensorData& t) override { return host_->upload(t); }
  TensorData download(const RunTensor& t, const std::string& place) override {
    TensorData data = host_->download(t, place);
    if (is_wrong_ && element_count(data.shape) > 0 && data.dtype == Dtype::kInt64) {
      ConstantBits bits = load_element(data, data.offset);
      bits.low ^= 1;
      store_element(data, data.offset, bits);
    }
    return data;
  }
  void copy(const RunTensor& to, const RunTensor& from) override { host_->copy(to, from); }
  int64_t alignment(const RunTensor& t) override { return host_->alignment(t); }
  size_t prepare(const Graph& kernel, const KernelUse& use) override {
    kernels_.push_back(kernel);
    return host_->prepare(kernel, use);
  }
  size_t prepare_all(std::span<const Graph* const> kernels, const PrepareOptions& options) override {
    while (habits_.compiles_for_ever) wait_ms(1000);
    for (size_t i = 0; i < kernels.size() && options.go_on(); ++i) wait_ms(habits_.compile_ms);
    return kernels.size();
  }
  void begin_program() override {
    ++programs_;
    is_wrong_ = false;
  }
  void launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) override {
    const Graph& g = kernels_[kernel];
    while (chosen(g, habits_.hangs_one_in)) wait_ms(1000);
    is_wrong_ |= chosen(g, habits_.wrong_one_in) || (programs_ > 1 && chosen(g, habits_.wrong_after_one_in)) ||
                 has(g, habits_.wrong_with);
    host_->launch(kernel, dims, arguments);
  }
  void synchronize() override {}

 private:
  Habits habits_;
  std::unique_ptr<Device> host_;
  std::vector<Graph> kernels_;
  int programs_ = 0;
  bool is_wrong_ = false;
};

CampaignOptions on_gpu(const Habits& habits, uint64_t runs) {
  CampaignOptions options;
  options.runner.seed = 5;
  options.runner.runs = runs;
  options.runner.cases.fusion.max_ops = 6;
  options.runner.oracles = parse_oracles("host-checks");
  options.runner.on_gpu = true;
  options.runner.gpu = [habits] { return std::make_unique<OddDevice>(habits); };
  options.grace_s = 0.5;
  return options;
}

// Everything that does not depend on time or on the size of batches.
std::string told(CampaignState state) {
  Statistics& s = state.statistics;
  s.seconds = 0;
  s.gpu_kernels = s.gpu_compile_us = s.gpu_wait_us = s.gpu_run_us = 0;
  for (KeptFinding& f : s.findings) {
    f.seconds = 0;
    f.saved = {};
    f.file = std::filesystem::path(f.file).filename();
  }
  return to_json(s);
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool shows(const std::vector<Finding>& findings, const Signature& s) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.signature == s; });
}

TEST(GpuTurns, OneAtATimeAndADeadProcessHasNone) {
  GpuTurns turns(1);
  bool given = false, was_free = true;
  WorkerCalls calls;
  calls.next = [&]() -> std::optional<std::string> {
    if (std::exchange(given, true)) return std::nullopt;
    return "go";
  };
  calls.work_in_parts = [&](const std::string&, WorkerNote& note, const WorkerTell& tell) -> std::string {
    tell(turns.take() ? "taken" : "not taken");
    while (!note.stop) wait_ms(5);
    ::raise(SIGKILL);
    return "";
  };
  bool is_told = false;
  calls.told = [&](const WorkerAnswer& a) {
    EXPECT_EQ(a.answer, "taken");
    was_free = turns.take();
    is_told = true;
  };
  calls.tick = [&] { return is_told ? WorkerOrder::kFinish : WorkerOrder::kGoOn; };
  calls.done = [](const WorkerAnswer&) {};
  run_workers({.retry = false}, calls);
  EXPECT_FALSE(was_free);
  EXPECT_TRUE(turns.take());
  turns.give_back();
  EXPECT_TRUE(turns.take());
}

TEST(GpuCampaign, NeitherProcessesNorBatchesMatter) {
  GpuTurns turns(1);
  CampaignOptions one = on_gpu({.wrong_one_in = 9}, 600), three = on_gpu({.wrong_one_in = 9}, 600);
  three.jobs = 3;
  three.runner.gpu_cases = 7;
  three.runner.gpu_turns = &turns;
  const CampaignState a = run_campaign(one), b = run_campaign(three);
  EXPECT_EQ(a.statistics.cases, 600u);
  EXPECT_GT(a.statistics.gpu_cases, 400u);
  EXPECT_FALSE(a.statistics.findings.empty());
  EXPECT_EQ(told(a), told(b));
}

TEST(GpuCampaign, TheTimeIsKept) {
  for (const bool compiles_for_ever : {false, true}) {
    CampaignOptions options = on_gpu({.compile_ms = 20, .compiles_for_ever = compiles_for_ever}, 0);
    options.runner.seconds = 3;
    options.jobs = 2;
    const auto start = Clock::now();
    const CampaignState state = run_campaign(options);
    EXPECT_GT(seconds_since(start), 2.9);
    EXPECT_LT(seconds_since(start), compiles_for_ever ? 4.5 : 4);
    EXPECT_EQ(state.statistics.cases > 0, !compiles_for_ever);
    EXPECT_TRUE(state.statistics.findings.empty());
  }
}

TEST(GpuCampaign, AnInterruptIsHeard) {
  CampaignOptions options = on_gpu({.compile_ms = 50}, 100000);
  options.jobs = 2;
  const auto start = Clock::now();
  options.stops = [&] { return seconds_since(start) > 2 ? 1 : 0; };
  run_campaign(options);
  EXPECT_LT(seconds_since(start), 3);
}

TEST(GpuCampaign, ItGoesOnInTheMidstOfABlock) {
  const Folder folder("gpu_resume");
  const std::string whole = told(run_campaign(on_gpu({.wrong_one_in = 9}, 300)));
  CampaignOptions options = on_gpu({.compile_ms = 2, .wrong_one_in = 9}, 300);
  options.runner.out = folder.path();
  options.grace_s = 60;  // time to judge findings again
  uint64_t cases = 0;
  for (int i = 0; i < 3; ++i) {
    bool asked = false;
    options.stops = [&] { return asked ? 1 : 0; };
    options.progress = [&](const Statistics& s) { asked = s.cases > cases; };
    const CampaignState part = run_campaign(options);
    EXPECT_GT(part.statistics.cases, cases);
    EXPECT_LT(part.statistics.cases, 300u);
    cases = part.statistics.cases;
  }
  options.stops = {};
  options.progress = {};
  CampaignState last = run_campaign(options);
  for (KeptFinding& f : last.statistics.findings) f.file = "";
  EXPECT_EQ(told(last), whole);
}

TEST(GpuCampaign, ItStopsAfterAFinding) {
  CampaignOptions options = on_gpu({.compile_ms = 20, .wrong_one_in = 7}, 0);
  options.jobs = 2;
  options.runner.seconds = 60;
  options.runner.stop_after = 1;
  const auto start = Clock::now();
  const CampaignState state = run_campaign(options);
  EXPECT_LT(seconds_since(start), 20);
  ASSERT_GE(state.statistics.findings.size(), 1u);
  // No matter how long it took to find it.
  EXPECT_LT(state.statistics.seconds - state.statistics.findings[0].seconds, 5);
  EXPECT_LE(state.statistics.findings.size(), 5u);
  EXPECT_LT(state.statistics.cases, 1000u);
}

TEST(GpuCampaign, AKernelThatHangsIsAFinding) {
  const Folder folder("gpu_hangs");
  const Habits habits{.hangs_one_in = 61};
  CampaignOptions options = on_gpu(habits, 200);
  options.runner.out = folder.path();
  options.case_seconds = 1;
  const Statistics clean = run_campaign(on_gpu({}, 200)).statistics;
  const Statistics s = run_campaign(options).statistics;
  EXPECT_EQ(s.cases, 200u);
  ASSERT_EQ(s.findings.size(), clean.findings.size() + 1);
  EXPECT_EQ(text(s.findings[0].finding.signature), "gpu timeout");
  EXPECT_EQ(s.findings[0].count, s.died);
  // The file contains the kernel.
  Case c = load_finding(s.findings[0].file).subject;
  compile_case(c, {});
  EXPECT_TRUE(std::any_of(c.compiled->kernels.begin(), c.compiled->kernels.end(),
                          [&](const Graph& k) { return chosen(k, habits.hangs_one_in); }));
}

TEST(GpuCampaign, WhatDiedIsShownAlthoughItStops) {
  const CampaignOptions options = on_gpu({.compiles_for_ever = true}, 0);
  std::vector<uint64_t> seen;
  uint64_t number = 0;
  BlockHooks hooks;
  hooks.at = [&](uint64_t n, uint64_t, uint64_t) { number = n; };
  hooks.stops = [] { return true; };
  hooks.go_on = [&](const Statistics&) { return number < 20; };
  hooks.deadly = [&](const DeadlyCase& d, const Case& c) {
    EXPECT_FALSE(c.module.graphs.empty());
    seen.push_back(d.number);
  };
  const Statistics s = run_block(options.runner, {.first = 3, .deadly = {{20, kFirstOracle}}}, hooks);
  EXPECT_EQ(seen, std::vector<uint64_t>{20});
  EXPECT_EQ(s.cases, 0u);
}

TEST(GpuCampaign, AFindingReproducesFromItsFile) {
  const Folder folder("gpu_files");
  const Habits habits{.wrong_one_in = 9};
  CampaignOptions options = on_gpu(habits, 400);
  options.runner.out = folder.path();
  const Statistics s = run_campaign(options).statistics;
  ASSERT_FALSE(s.findings.empty());
  for (const KeptFinding& f : s.findings) {
    EXPECT_FALSE(f.finding.signature.check.starts_with("batch ")) << text(f.finding.signature);
    const auto again = judge_on_gpu(load_finding(f.file).subject, {}, {.device = options.runner.gpu});
    EXPECT_TRUE(shows(again, f.finding.signature)) << f.file;
  }
}

// Index arithmetic needs `mul`. Without a swizzle, a kernel has `bitwise_xor` only if the fusion has it.
constexpr std::string_view kProgram = R"(fusion @f {
  %n, %m = size
  %x = input i64[%n, %m] contiguous
  %y = neg %x
  %z = bitwise_xor %y, %x
  %s = sum %z over [1]
  %a = abs %s
  output %a
  output %y
}
steps @f {
  split %z.i0 by 4 -> o, t
  parallelize %z.t block.x
  set_memory_type %z global
  set_memory_type %s global
}
inputs @f host {
  %x = i64[5, 7] integers -9 9 seed 3
}
)";

TEST(GpuCampaign, AFindingIsReducedWhereItWasFound) {
  LoadedFinding f;
  f.subject = read_finding({reinterpret_cast<const uint8_t*>(kProgram.data()), kProgram.size()}, "text").subject;
  f.signature = "gpu bits abs";
  ReduceOptions options;
  EXPECT_FALSE(reduce(f, options).shows);
  options.on_gpu = true;
  options.gpu = [] { return std::make_unique<OddDevice>(Habits{.wrong_with = OpKind::kBitwiseXor}); };
  f.signature = "";
  const Reduction r = reduce(f, options);
  ASSERT_TRUE(r.shows);
  EXPECT_EQ(r.finding.signature.stage, "gpu");
  EXPECT_TRUE(has(r.result.fusion(), OpKind::kBitwiseXor)) << print(r.result.module);
  EXPECT_LE(r.after.ops, 2) << print(r.result.module);
  EXPECT_EQ(r.after.steps, 0);
}

// A result that a GPU computes differently from the host executor is a finding of its own where the op is exact, and else only where
// the bound is left.
TEST(GpuCampaign, ExactOpsMustGiveTheHostsBits) {
  for (const auto& [op, check] :
       {std::pair("exp", "bits"), std::pair("erfc", "bits"), std::pair("lgamma", "differs")}) {
    const std::string text = "fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %y = " + std::string(op) +
                             " %x\n  %z = cast %y as i64\n  output %z\n}\ninputs @f host {\n"
                             "  %x = f32[5] integers 5 9 seed 3\n}\n";
    LoadedFinding f;
    f.subject = read_finding({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "text").subject;
    ReduceOptions options;
    options.on_gpu = true;
    options.gpu = [&] { return std::make_unique<OddDevice>(Habits{.wrong_with = *parse_op(op)}); };
    const Reduction r = reduce(f, options);
    ASSERT_TRUE(r.shows) << op;
    EXPECT_EQ(r.finding.signature.stage, "gpu");
    EXPECT_EQ(r.finding.signature.check, check) << op;
  }
}

TEST(GpuCampaign, WhatNeedsItsBatchIsToldWithIt) {
  const Folder folder("gpu_batch");
  const Habits habits{.wrong_after_one_in = 9};
  CampaignOptions options = on_gpu(habits, 400);
  options.runner.out = folder.path();
  options.jobs = 2;
  const Statistics s = run_campaign(options).statistics;
  ASSERT_FALSE(s.findings.empty());
  for (const KeptFinding& f : s.findings) {
    EXPECT_TRUE(f.finding.signature.check.starts_with("batch ")) << text(f.finding.signature);
    EXPECT_NE(f.finding.message.find("alone it shows nothing"), std::string::npos) << f.finding.message;
    EXPECT_TRUE(judge_on_gpu(load_finding(f.file).subject, {}, {.device = options.runner.gpu}).empty());
    // Together the cases show it.
    std::vector<GpuCase> cases;
    for (Case& c : load_batch(f.file.substr(0, f.file.rfind('.')) + ".batch.fir")) {
      cases.push_back({cases.size(), std::move(c)});
      compile_case(cases.back().subject, {});
    }
    ASSERT_GT(cases.size(), 1u);
    const GpuBatch batch = judge_on_gpu(cases, {}, {.device = options.runner.gpu});
    ASSERT_FALSE(batch.verdicts.empty());
    EXPECT_EQ(batch.verdicts.back().number, cases.size() - 1);
  }
}

}  // namespace
}  // namespace fusebox::fuzz
