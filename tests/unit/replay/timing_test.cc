// Measurements of a program: the arithmetic of spreads, the bytes that must move, and the parts of a timing. No time is compared.
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/device/cuda_loader.h"
#include "replay/timing/moved_bytes.h"
#include "replay/timing/spread.h"
#include "replay/timing/time_program.h"
#include "tests/support/expect_error.h"
#include "tests/support/program_text.h"
#include "tests/unit/replay/host_session.h"
#include "tests/unit/replay/idle_gpu.h"

namespace fusebox {
namespace {

TEST(Spread, MedianAndTenths) {
  EXPECT_EQ(Spread::of({}).count, 0);
  const Spread one = Spread::of({7});
  EXPECT_EQ(one.median, 7);
  EXPECT_EQ(one.p10, 7);
  EXPECT_EQ(one.p90, 7);
  EXPECT_EQ(Spread::of({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(Spread::of({5, 1, 9}).median, 5);
  const Spread eleven = Spread::of({10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(eleven.median, 5);
  EXPECT_EQ(eleven.p10, 1);
  EXPECT_EQ(eleven.p90, 9);
  EXPECT_EQ(eleven.count, 11);
}

struct Made {
  Module module;
  std::vector<Argument> arguments;
  Run run;
};

// A program with host inputs, run on the host.
Made made(const std::string& text) {
  Made m{parse_module(text), {}, {}};
  const Graph& fusion = main_graph(m.module);
  m.arguments = make_arguments(fusion, find_input_specs(m.module, fusion.name, "host"), {});
  m.run = run_program(m.module, m.arguments, {.executor = Executor::kHost});
  EXPECT_FALSE(m.run.failure) << m.run.failure->message;
  return m;
}

std::pair<int64_t, int64_t> bytes(const std::string& text) {
  const Made m = made(text);
  const Timing t = time_run(m.run, m.arguments, 1, 1);
  return {t.bytes.read, t.bytes.written};
}

using Bytes = std::pair<int64_t, int64_t>;

TEST(MovedBytes, InputsOnceAndOutputsOnce) {
  EXPECT_EQ(
      bytes("fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n] contiguous\n  %y = input bf16[%m, %n] contiguous\n"
            "  %yf = cast %y as f32\n  %z = add %x, %yf\n  %s = sum %z over [1]\n  output %z\n  output %s\n}\n"
            "inputs @f host {\n  %x = f32[3, 5] normal seed 1\n  %y = bf16[3, 5] normal seed 2\n}\n"),
      (Bytes{3 * 5 * 4 + 3 * 5 * 2, 3 * 5 * 4 + 3 * 4}));
}

TEST(MovedBytes, AnInputThatNoOutputNeedsCountsNothing) {
  EXPECT_EQ(bytes("fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %y = input f32[%n] contiguous\n"
                  "  %unused = exp %y\n  %z = exp %x\n  output %z\n}\n"
                  "inputs @f host {\n  %x = f32[7] normal seed 1\n  %y = f32[7] normal seed 2\n}\n"),
            (Bytes{28, 28}));
}

TEST(MovedBytes, AnInputThatIsReadTwiceCountsOnce) {
  EXPECT_EQ(
      bytes("fusion @f {\n  %n = size\n  %x = input f64[%n] contiguous\n  %y = mul %x, %x\n  %z = exp %x\n  output %y\n"
            "  output %z\n}\ninputs @f host {\n  %x = f64[7] normal seed 1\n}\n"),
      (Bytes{56, 112}));
}

TEST(MovedBytes, AnOverwrittenInputIsReadAndWritten) {
  EXPECT_EQ(bytes("fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %y = exp %x\n  output %y alias %x\n}\n"
                  "inputs @f host {\n  %x = f32[6] normal seed 1\n}\n"),
            (Bytes{24, 24}));
}

TEST(MovedBytes, AnOutputThatIsAnInputMovesNothing) {
  EXPECT_EQ(
      bytes(
          "fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %w = input f32[%n] contiguous\n  %y = exp %x\n"
          "  output %y\n  output %w\n}\n"
          "inputs @f host {\n  %x = f32[6] normal seed 1\n  %w = f32[6] normal seed 2\n}\n"),
      (Bytes{24, 24}));
}

TEST(MovedBytes, AnAxisOfStrideZeroCountsOnceAndSpaceBetweenElementsNothing) {
  const Module m =
      parse_module("fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %y = exp %x\n  output %y\n}\n");
  const TensorData y = allocate_tensor(Dtype::kFloat, {4, 8});
  const auto of = [&](std::vector<int64_t> shape, std::vector<int64_t> strides) {
    const Argument x = Argument::of(allocate_tensor(Dtype::kFloat, std::move(shape), std::move(strides)));
    return moved_bytes(main_graph(m), {&x, 1}, {&y, 1}).read;
  };
  EXPECT_EQ(of({4, 8}, {8, 1}), 128);
  EXPECT_EQ(of({4, 8}, {0, 1}), 32);
  EXPECT_EQ(of({4, 8}, {0, 0}), 4);
  EXPECT_EQ(of({4, 8}, {100, 3}), 128);
  EXPECT_EQ(of({4, 8}, {1, 1}), 44);  // windows that overlap: 11 places
  EXPECT_EQ(of({0, 8}, {8, 1}), 0);
  EXPECT_EQ(of({4, 0}, {0, 1}), 0);
}

constexpr const char* kTwoKernels =
    "fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %k = input f32\n  %y = exp %x\n  %z = add %y, %k\n  "
    "output %z\n}\n"
    "inputs @f host {\n  %x = f32[5] normal seed 1\n  %k = 0.5_f32\n}\n";

TEST(TimeProgram, TheHostExecutorTellsEachKernel) {
  const Made m = made(kTwoKernels);
  const Timing t = time_run(m.run, m.arguments, 4, 1);
  EXPECT_EQ(t.executor, Executor::kHost);
  EXPECT_EQ(t.runs, 4);
  EXPECT_EQ(t.launches, 2);
  ASSERT_EQ(t.kernels.size(), 2u);
  EXPECT_NE(t.kernels[0].name, t.kernels[1].name);
  for (const KernelTiming& k : t.kernels) {
    EXPECT_EQ(k.launches, 1);
    EXPECT_EQ(k.us.count, 4);
    EXPECT_GT(k.us.p10, 0);
  }
  EXPECT_EQ(t.whole_us.count, 4);
  // A run takes as long as its kernels and the rest, so the order of these holds whatever the times are.
  EXPECT_GE(t.whole_us.p90, t.kernels_us.p10);
  EXPECT_GE(t.host_us.p10, 0);
  EXPECT_EQ(t.bytes.total(), 40);
  EXPECT_FALSE(t.measured);
  EXPECT_FALSE(t.floor_us());
  EXPECT_FALSE(t.fraction());
}

TEST(TimeProgram, AFloorIsBytesByTheMeasuredRate) {
  Timing t;
  t.bytes = {300, 100};
  t.whole_us.median = 8;
  t.measured = {"a GPU", 100, 2.5};
  EXPECT_EQ(*t.floor_us(), 4);
  EXPECT_EQ(*t.fraction(), 0.5);
}

// Starts nothing. Memory is addresses alone, and each event lies 2 µs behind the one before.
class TimedSession : public testing::HostSession {
 public:
  TimedSession() {
    device_.name = "idle";
    device_.architecture = "sm_90a";
  }
  const CudaDevice& device() const override { return device_; }
  CudaPointer allocate(int64_t bytes) override {
    return allocated.emplace_back(CudaPointer{0x1000} * ++last_, bytes).first;
  }
  void fill(CudaPointer to, uint8_t, int64_t, CudaStream) override { cleared.push_back(to); }
  std::vector<CudaKernel> load_all(std::string_view, std::span<const std::string> entries) override {
    return std::vector<CudaKernel>(entries.size());
  }
  void start(const CudaReadyLaunch& launch, void**, CudaStream) override { started.push_back(launch.grid[0]); }
  double elapsed_us(CudaEvent, CudaEvent) override { return 2; }

  std::vector<std::pair<CudaPointer, int64_t>> allocated;
  std::vector<CudaPointer> cleared;
  std::vector<unsigned> started;

 private:
  CudaDevice device_;
  CudaPointer last_ = 0;
};

// The program by the plan of schedulers, timed on a GPU that runs nothing.
TEST(TimeProgram, AKernelWhoseBlocksWaitForOneAnotherHasItsCountersClearedOnce) {
  if (!find_cuda_compiler()) GTEST_SKIP() << "NVRTC is not installed";
  const Module m =
      parse_module(testing::program_text("softmax") + "inputs @f host {\n  %x = f32[1, 4000000] normal seed 1\n}\n");
  const Graph& fusion = main_graph(m);
  const auto arguments = make_arguments(fusion, find_input_specs(m, fusion.name, "host"), {});
  CompileOptions options;
  options.inputs = bound_inputs(arguments);
  options.device = default_device();
  const Compiled compiled = compile(fusion, bind_sizes(fusion, options.inputs), options);
  ASSERT_TRUE(compiled.automatic);
  ASSERT_NE(text(compiled.automatic->decisions.at(0).heuristics).find("most_rows 1"), std::string::npos);
  const auto gpu = std::make_shared<testing::IdleGpu<TimedSession>>();
  RunTensor x;
  x.pointer = 0x100;
  const Timing t = time_program({fusion, compiled, arguments, {x}}, gpu, {.runs = 3});
  EXPECT_EQ(t.executor, Executor::kCuda);
  EXPECT_EQ(t.launches, 1);
  ASSERT_EQ(t.kernels.size(), 1u);  // nothing is cleared in each run
  EXPECT_EQ(t.kernels[0].us.count, 3);
  EXPECT_EQ(t.whole_us.median, 2);
  EXPECT_EQ(t.bytes.total(), 2 * 4 * 4000000);
  // Three trials and three runs, each of the whole and of its parts.
  EXPECT_EQ(gpu->starts.started.size(), 12u);
  // The counters, and what the clock reads.
  EXPECT_EQ(gpu->starts.cleared.size(), 2u);
}

TEST(TimeProgram, RefusesAtenAndNoRun) {
  Made m = made(kTwoKernels);
  testing::expect_error(ErrorCode::kUsage, "0", [&] { time_run(m.run, m.arguments, 0, 1); });
  m.run.executor = Executor::kAten;
  testing::expect_error(ErrorCode::kUsage, "--time", [&] { time_run(m.run, m.arguments, 1, 1); });
}

}  // namespace
}  // namespace fusebox
