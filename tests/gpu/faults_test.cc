// A fault of a kernel, which the GPU reports in a later call: the error names the kernel, or those that it may have been.
//
// A fault ends the process's use of the GPU, so each test runs in a process of its own.
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/device/device.h"
#include "tests/support/gpu_device.h"

namespace fusebox {
namespace {

// Any kernel of that name: the device compiles another text in its place.
Graph kernel(const std::string& name) {
  const Graph fusion =
      main_graph(parse_module("fusion @f {\n  %x = input f32[8] contiguous\n  %y = exp %x\n  output %y\n}\n"));
  Graph g = compile(fusion, bind_sizes(fusion, std::vector<BoundInput>{{.shape = {8}, .strides = {1}}})).kernels[0];
  g.name = name;
  return g;
}

// The headers are not needed: the text has the entry and parameter that a kernel of one buffer has.
constexpr const char* kGood = "extern \"C\" __global__ void fusebox_kernel(float* t0) { t0[0] = 1.0f; }";
constexpr const char* kBad = "extern \"C\" __global__ void fusebox_kernel(float* t0) { *(t0 + (1ll << 44)) = 2.0f; }";

// Launches `first`, then `second` if it is not empty, waits, and returns `CODE PLACE: MESSAGE`.
std::string failure(const std::string& first, const std::string& second) {
  try {
    const auto device = make_cuda_device({.ordinal = 0, .texts = {{"good", kGood}, {"bad", kBad}}});
    const RunTensor x = device->allocate(Dtype::kFloat, {8}, {1}, false);
    RunArgument a;
    a.dtype = Dtype::kFloat;
    a.tensor = x;
    const LaunchDims dims{.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared_bytes = 0};
    std::vector<size_t> prepared;
    for (const std::string& name : {first, second})
      if (!name.empty()) prepared.push_back(device->prepare(kernel(name), {}));
    for (const size_t p : prepared) device->launch(p, dims, {&a, 1});
    device->synchronize();
  } catch (const Error& e) {
    return code_text(e.code) + " " + e.place + ": " + e.what();
  }
  return "no failure";
}

void report(const std::string& first, const std::string& second) {
  std::fprintf(stderr, "%s\n", failure(first, second).c_str());
  std::exit(7);
}

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::gpu_or_null()) GTEST_SKIP() << "no GPU";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(Faults, OneKernelIsNamed) {
  EXPECT_EXIT(report("bad", ""), ::testing::ExitedWithCode(7), "E0421 @bad: .*the kernel is @bad");
}

TEST_F(Faults, OfSeveralAllAreNamedAndDebuggingIsAdvised) {
  EXPECT_EXIT(report("good", "bad"), ::testing::ExitedWithCode(7), "E0421 : .*@bad, @good.*FUSEBOX_DEBUG=1");
}

TEST_F(Faults, DebuggingNamesTheOne) {
  ::setenv("FUSEBOX_DEBUG", "1", 1);
  EXPECT_EXIT(report("good", "bad"), ::testing::ExitedWithCode(7), "E0421 @bad: .*the kernel is @bad");
  EXPECT_EXIT(report("bad", "good"), ::testing::ExitedWithCode(7), "E0421 @bad: .*the kernel is @bad");
  ::unsetenv("FUSEBOX_DEBUG");
}

}  // namespace
}  // namespace fusebox
