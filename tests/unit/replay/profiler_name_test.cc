// Readable names of kernels: their form, and that a renamed binary is the one that the compiler would have made.
#include "replay/device/profiler_name.h"

#include <gtest/gtest.h>

#include "codegen/cuda.h"
#include "ir/canonical/canonical.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/device/cuda_loader.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

Graph kernel_of(const std::string& name, const std::string& body) {
  const Module m = parse_module("fusion @" + name + " {\n  %n = size\n  %x = input f32[%n] contiguous\n" + body +
                                "  output %y\n}\ninputs @" + name + " host {\n  %x = f32[50] normal seed 1\n}\n");
  const Graph& fusion = main_graph(m);
  const auto arguments = make_arguments(fusion, find_input_specs(m, fusion.name, "host"), {});
  CompileOptions options;
  options.inputs = bound_inputs(arguments);
  Graph kernel = compile(fusion, bind_sizes(fusion, options.inputs), options).kernels[0];
  kernel.name = name;
  return kernel;
}

TEST(ProfilerName, IsTheNameAndTheDigestsFirstDigits) {
  Graph kernel = kernel_of("softmax", "  %y = exp %x\n");
  const std::string digits = text(digest(kernel));
  EXPECT_EQ(profiler_name(kernel, 14), "softmax_" + digits.substr(0, 6));
  kernel.name = "f";
  EXPECT_EQ(profiler_name(kernel, 14), "f_" + digits.substr(0, 12));
  kernel.name = "layer_norm_backward";
  EXPECT_EQ(profiler_name(kernel, 14), "layer_n_" + digits.substr(0, 6));
  kernel.name = "2.x";
  EXPECT_EQ(profiler_name(kernel, 14), "k2_x_" + digits.substr(0, 9));
  kernel.name = "";
  EXPECT_EQ(profiler_name(kernel, 14), "k_" + digits.substr(0, 12));
  EXPECT_EQ(profiler_name(kernel, 60).size(), 60u);
  EXPECT_EQ(profiler_name(kernel, 1), "k");
}

TEST(ProfilerName, ABinaryWithoutTheEntryStays) {
  const Graph kernel = kernel_of("softmax", "  %y = exp %x\n");
  const NamedBinary same = with_profiler_name("no such entry", "fusebox_kernel", kernel);
  EXPECT_EQ(same.bytes, "no such entry");
  EXPECT_EQ(same.entry, "fusebox_kernel");
}

TEST(ProfilerName, TheRenamedBinaryIsTheCompilersOwn) {
  try {
    cuda_backend().compiler_version();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  // A reduction has shared memory and constants, whose sections carry the name too.
  for (const auto& [name, body] : {std::pair("softmax", "  %y = exp %x\n"), std::pair("z", "  %y = sum %x over [0]\n"),
                                   std::pair("_0_very_long", "  %t = sin %x\n  %y = sum %t over [0]\n")}) {
    const Graph kernel = kernel_of(name, body);
    const CudaSource source = emit_cuda(kernel);
    for (const std::string_view architecture : {"sm_80", "sm_90a", "sm_100a"}) {
      SCOPED_TRACE(std::string(name) + " " + std::string(architecture));
      const auto compile = [&](const std::string& entry) {
        const std::string text = emit_cuda(kernel, {.entry = entry}).text;
        return cuda_backend()
            .compile({.text = text,
                      .headers = cuda_headers(),
                      .architecture = architecture,
                      .options = cuda_compile_options()})
            .bytes;
      };
      const std::string plain = compile(source.entry);
      const NamedBinary named = with_profiler_name(plain, source.entry, kernel);
      EXPECT_EQ(named.entry, profiler_name(kernel, source.entry.size()));
      EXPECT_NE(named.bytes, plain);
      EXPECT_EQ(named.bytes.find(source.entry), std::string::npos);
      EXPECT_EQ(named.bytes, compile(named.entry));
    }
  }
}

}  // namespace
}  // namespace fusebox
