// Tensors over 4 GiB in the GPU's memory, dense or with a few elements far apart: the results equal the host executor's
// bits. Skips if memory is short.
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "replay/run/host_program.h"
#include "replay/run/judge.h"
#include "tests/support/gpu_device.h"

namespace fusebox {
namespace {

class GpuFarElements : public ::testing::Test {
 protected:
  void SetUp() override {
    gpu_ = testing::gpu_or_null();
    if (!gpu_) GTEST_SKIP() << "no GPU";
  }

  static std::vector<TensorData> run(const Compiled& c, Device& device, std::span<const Argument> inputs) {
    std::vector<NamedKernel> kernels;
    for (size_t k = 0; k < c.kernels.size(); ++k) kernels.push_back({c.segmentation.segments[k].name, &c.kernels[k]});
    std::vector<TensorData> outputs;
    for (const ProgramOutput& out : run_host_program(c.host, kernels, device, inputs, {}).outputs)
      outputs.push_back(contiguous_copy(out.value.tensor));
    return outputs;
  }

  // Nothing if memory is short.
  std::optional<std::vector<TensorData>> expect_same(const std::string& text, const std::vector<Argument>& inputs) {
    SCOPED_TRACE(text);
    const Module m = parse_module(text);
    const Graph& g = main_graph(m);
    CompileOptions options{.inputs = bound_inputs(inputs)};
    if (const StepList* steps = find_steps(m, g.name)) options.steps = steps->steps;
    const Compiled c = compile(g, bind_sizes(g, options.inputs), options);
    EXPECT_EQ(c.index_bits, 64);
    try {
      const std::vector<TensorData> expected = run(c, *make_host_device(), inputs), actual = run(c, *gpu_, inputs);
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_FALSE(first_difference(actual[i], expected[i])) << i;
      return actual;
    } catch (const Error& e) {
      if (e.code != ErrorCode::kOutOfMemory) throw;
      std::printf("  %s: memory is short here\n", g.name.c_str());
      return std::nullopt;
    }
  }

  std::unique_ptr<Device> gpu_;
};

Argument made(const std::string& spec) { return make_argument(parse_input_spec("x", spec)); }

TEST_F(GpuFarElements, Strided) {
  int ran = 0;
  const auto count = [&](const std::string& text, const std::vector<Argument>& inputs) {
    ran += expect_same(text, inputs).has_value();
  };
  const std::string line = "fusion @f {\n  %x = input i8[5] contiguity [false]\n  %y = neg %x\n  output %y\n}\n";
  const std::string steps =
      "steps @f {\n  split %y.i0 by 2 -> o, t\n  parallelize %y.o on grid.x\n  parallelize %y.t on block.x\n}\n";
  for (const char* stride : {"1073741824", "1200000000"})
    for (const std::string& text : {line, line + steps})
      count(text, {made("i8[5] strides [" + std::string(stride) + "] integers -100 100 seed 1")});
  count("fusion @f {\n  %x = input i8[2, 4] contiguity [false, false]\n  %y = neg %x\n  output %y\n}\n",
        {made("i8[2, 4] strides [1500000000, 1000000000] integers -100 100 seed 2")});
  count(
      "fusion @f {\n  %x = input i8[5, 3] contiguity [false, true]\n  %i = input i64[4]\n"
      "  %y = index_select %x, %i axis 0\n  output %y\n}\n",
      {made("i8[5, 3] strides [1073741824, 1] integers -100 100 seed 3"), made("i64[4] integers 0 5 seed 4")});
  if (ran == 0) GTEST_SKIP() << "memory is short";
}

// Dense: checks the last elements, and an output of that size. Runs only on the GPU and computes the expected values
// here, because the host executor would take minutes.
TEST_F(GpuFarElements, Dense) {
  constexpr int64_t kElements = (int64_t{1} << 32) + 129;
  const std::string head = "fusion @f {\n  %n = size\n  %x = input i8[%n] contiguous\n";
  const auto on_gpu = [&](const std::string& text, const Argument& x) {
    const Module m = parse_module(text);
    const Graph& g = main_graph(m);
    const std::vector<Argument> inputs = {x};
    const Compiled c = compile(g, bind_sizes(g, bound_inputs(inputs)), {.inputs = bound_inputs(inputs)});
    EXPECT_EQ(c.index_bits, 64);
    return run(c, *gpu_, inputs).at(0);
  };
  try {
    const Argument x = Argument::of(allocate_tensor(Dtype::kInt8, {kElements}));
    const auto value = [&](int64_t i) { return static_cast<int8_t>(x.tensor.data()[i]); };
    for (int64_t i = kElements - 200; i < kElements; ++i) x.tensor.data()[i] = std::byte(1 + i % 100);
    const int64_t from = kElements - 300;
    const TensorData last = on_gpu(head + "  %y = slice %x from [" + std::to_string(from) + "] to [" +
                                       std::to_string(kElements) + "] by [1]\n  output %y\n}\n",
                                   x);
    ASSERT_EQ(last.shape, (std::vector<int64_t>{300}));
    for (int64_t i = 0; i < 300; ++i) EXPECT_EQ(static_cast<int8_t>(last.data()[i]), value(from + i)) << i;
    const TensorData all = on_gpu(head + "  %y = neg %x\n  output %y\n}\n", x);
    int64_t wrong = 0;
    for (int64_t i = 0; i < kElements; ++i) wrong += static_cast<int8_t>(all.data()[i]) != -value(i);
    EXPECT_EQ(wrong, 0);
  } catch (const Error& e) {
    if (e.code != ErrorCode::kOutOfMemory) throw;
    GTEST_SKIP() << "memory is short";
  }
}

}  // namespace
}  // namespace fusebox
