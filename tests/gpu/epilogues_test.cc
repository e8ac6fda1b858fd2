// A product of matrices and what follows it as one call of cuBLASLt: the values are within the reference's bounds, NaNs and
// infinities among them, and the same on every run. tests/property/epilogues_test.cc has the same on the CPU.
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "replay/device/cuda_loader.h"
#include "replay/run/run.h"
#include "tests/support/epilogue_law.h"

namespace fusebox {
namespace {

bool has_gpu() { return !cuda_backend().devices().empty() && find_aten() && load_aten().has_gpu(); }

TEST(GpuEpilogues, AreWithinBounds) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU, or a PyTorch without one";
  const auto device = make_cuda_device();
  test::check_epilogues(*device, 72, 1);
}

std::string program(const std::string& dtype, const std::string& behind, const std::string& values) {
  const auto input = [&](const std::string& name, const std::string& shape, int seed) {
    return "  %" + name + " = " + dtype + "[" + shape + "] " + (name == "x" ? values : "normal") + " seed " +
           std::to_string(seed) + "\n";
  };
  return "fusion @f {\n  %m, %n, %k = size\n  %x = input " + dtype + "[%m, %k]\n  %w = input " + dtype +
         "[%n, %k]\n  %b = input " + dtype + "[%n]\n  %y = linear %x, %w bias %b\n" + behind + "}\ninputs @f host {\n" +
         input("x", "200, 512", 1) + input("w", "136, 512", 2) + input("b", "136", 3) + "}\n";
}

// Runs the automatic plan, which is one call, four times.
void check(const std::string& text) {
  const Module m = parse_module(text);
  const std::vector<Argument> inputs = make_arguments(m.graphs[0], find_input_specs(m, "f", "host"), {});
  const Evaluation expected = load_aten().evaluate(m.graphs[0], inputs);
  std::vector<Digest> first;
  for (int time = 0; time < 4; ++time) {
    const fusebox::Run run = run_program(m, inputs, {.executor = Executor::kCuda, .device = default_device()});
    ASSERT_FALSE(run.failure) << run.failure->message;
    ASSERT_EQ(run.compiled.segmentation.segments.size(), 1u) << text;
    const TensorData& t = run.outputs[0].value.tensor;
    first.push_back(digest(t));
    EXPECT_EQ(digest(t), first[0]) << "time " << time;
    const Comparison c = compare(t, expected.outputs[0]);
    EXPECT_TRUE(c.ok) << c.message("f") << "\n" << text;
  }
}

constexpr const char* kGelu = R"(  %x2 = mul %f, %f
  %x3 = mul %x2, %f
  %c = mul %x3, 0.044715_f32
  %in = add %f, %c
  %arg = mul %in, 0.7978846_f32
  %t = tanh %arg fast
  %t1 = add %t, 1.0_f32
  %h = mul %f, 0.5_f32
  %g = mul %h, %t1
)";

TEST(GpuEpilogues, Relu) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU, or a PyTorch without one";
  for (const char* dtype : {"bf16", "f16", "f32"}) check(program(dtype, "  %z = relu %y\n  output %z\n", "normal"));
}

// A row of x with a NaN gives a row of NaNs.
TEST(GpuEpilogues, ReluKeepsNans) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU, or a PyTorch without one";
  for (const char* dtype : {"bf16", "f16", "f32"}) check(program(dtype, "  %z = relu %y\n  output %z\n", "boundary"));
}

TEST(GpuEpilogues, Gelu) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU, or a PyTorch without one";
  for (const char* dtype : {"bf16", "f16"})
    check(program(dtype,
                  "  %f = cast %y as f32\n" + std::string(kGelu) + "  %z = cast %g as " + dtype + "\n  output %z\n",
                  "normal"));
  check(program("f32", "  %f = mul %y, 1.0_f32\n" + std::string(kGelu) + "  output %g\n", "normal"));
}

}  // namespace
}  // namespace fusebox
