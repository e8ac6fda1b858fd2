// Timing on a GPU: every part is measured, the floor is the bytes by the measured rate, and a refusal is coded. No time is compared.
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "replay/timing/time_program.h"
#include "tests/support/expect_error.h"
#include "tests/support/gpu_device.h"
#include "tests/support/program_text.h"

namespace fusebox {
namespace {

struct Made {
  Run run;
  std::vector<Argument> arguments;
};

// The program by its steps or unfused; with `device`, by the plan of schedulers for it.
Made made(const std::string& text, std::optional<DeviceProperties> device = {}) {
  const Module m = parse_module(text);
  const Graph& fusion = main_graph(m);
  Made result;
  result.arguments = make_arguments(fusion, find_input_specs(m, fusion.name, "host"), {});
  result.run = run_program(m, result.arguments, {.executor = Executor::kCuda, .device = std::move(device)});
  EXPECT_FALSE(result.run.failure) << result.run.failure->message;
  return result;
}

TEST(Timing, MeasuresTheWholeAndEachKernel) {
  if (!testing::gpu_or_null()) GTEST_SKIP() << "no GPU";
  // An output that is an input, a scalar output and an overwritten input are in the way of no measurement.
  const Made m = made(R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %w = input f32[%n] contiguous
  %k = input f32
  %t = exp %x
  %y = add %t, %k
  %s = sum %t over [0]
  output %y
  output %s
  output %w
  output %t alias %x
}
inputs @f host {
  %x = f32[100000] uniform -1.0 1.0 seed 1
  %w = f32[100000] normal seed 2
  %k = 0.5_f32
}
)");
  const Timing t = time_run(m.run, m.arguments, 5, 1);
  EXPECT_EQ(t.executor, Executor::kCuda);
  ASSERT_TRUE(t.measured);
  EXPECT_GT(t.measured->copy_rate, 0);
  EXPECT_GT(t.measured->empty_us, 0);
  EXPECT_GE(t.launches, 3);
  int64_t launches = 0;
  for (const KernelTiming& k : t.kernels) {
    EXPECT_EQ(k.us.count, 5);
    EXPECT_GT(k.us.p10, 0);
    launches += k.name == "copy" || k.name == "clear" ? 0 : k.launches;
  }
  EXPECT_EQ(launches, t.launches);
  EXPECT_EQ(t.bytes.read, 400000);
  EXPECT_EQ(t.bytes.written, 400000 + 4 + 400000);
  EXPECT_DOUBLE_EQ(*t.floor_us(), static_cast<double>(t.bytes.total()) / t.measured->copy_rate);
  EXPECT_DOUBLE_EQ(*t.fraction(), *t.floor_us() / t.whole_us.median);
}

// Its blocks wait for one another. Counters that a launch did not find cleared would let them wait for ever.
TEST(Timing, AKernelWithABarrierOfTheGrid) {
  const auto gpu = testing::gpu_or_null();
  if (!gpu) GTEST_SKIP() << "no GPU";
  const Made m = made(testing::program_text("softmax") + "inputs @f host {\n  %x = f32[1, 4000000] normal seed 1\n}\n",
                      gpu->session()->device().properties);
  ASSERT_TRUE(m.run.compiled.automatic);
  EXPECT_NE(text(m.run.compiled.automatic->decisions.at(0).heuristics).find("most_rows 1"), std::string::npos);
  const Timing t = time_run(m.run, m.arguments, 3, 1);
  EXPECT_EQ(t.kernels.size(), 1u);  // nothing is cleared in each run
  EXPECT_EQ(t.launches, 1);
}

TEST(Timing, AProgramWithoutTensorInputs) {
  if (!testing::gpu_or_null()) GTEST_SKIP() << "no GPU";
  const Made m = made("fusion @f {\n  %y = iota 100 as i64\n  output %y\n}\n");
  EXPECT_EQ(time_run(m.run, m.arguments, 2, 1).bytes.total(), 800);
}

TEST(Timing, ASegmentByAtenIsRefused) {
  if (!testing::gpu_or_null()) GTEST_SKIP() << "no GPU";
  const Made m = made(testing::program_text("aten_and_kernel") + R"(inputs @f host {
  %x = f32[100] normal seed 1
}
)");
  testing::expect_error(ErrorCode::kUnsupportedOp, "@f", [&] { time_run(m.run, m.arguments, 2, 1); });
}

}  // namespace
}  // namespace fusebox
