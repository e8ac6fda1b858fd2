// Arithmetic of bytes and halves that one thread reads side by side from shared memory and widens, on a GPU and on the host.
// The compiler loads such elements together, and takes each out of the word.
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"
#include "tests/support/gpu_device.h"

namespace fusebox {
namespace {

std::string program(const std::string& op, const std::string& dtype, const std::string& wide) {
  std::string line = op;
  for (size_t at; (at = line.find("DT")) != std::string::npos;) line.replace(at, 2, dtype);
  return "fusion @f {\n  %x = input " + dtype + "[8, 8] contiguous\n  %y = " + line + "\n  %z = cast %y as " + wide +
         "\n  output %z\n}\nsteps @f {\n  cache_after %x -> s\n  set_memory_type %s in shared\n}\ninputs @f host {\n  "
         "%x = " +
         dtype + "[8, 8] integers " + (dtype[0] == 'u' ? "0.0 9.0" : "-4.0 5.0") + " seed 1\n}\n";
}

TEST(GpuBytes, AreWidenedWithTheirSign) {
  const auto gpu = testing::gpu_or_null();
  int runs = 0;
  for (const char* op : {"neg %x", "add %x, 3_DT", "sub 1_DT, %x", "mul %x, 3_DT", "bitwise_not %x", "abs %x",
                         "bitwise_left_shift %x, 2_DT", "bitwise_xor %x, 5_DT"})
    for (const char* dtype : {"i8", "u8", "i16", "u16"})
      for (const char* wide : {"f32", "f64", "i32"}) {
        const Module m = parse_module(program(op, dtype, wide));
        SCOPED_TRACE(std::string(op) + " " + dtype + " " + wide);
        const Graph& g = m.graphs[0];
        const std::vector<Argument> inputs = {make_argument(find_input_specs(m, "f", "host")->specs[0])};
        const Compiled c = compile(g, bind_sizes(g, bound_inputs(inputs)), {.steps = find_steps(m, "f")->steps});
        const std::vector<NamedKernel> kernels = {{c.segmentation.segments[0].name, &c.kernels[0]}};
        const auto on_host = run_host_program(c.host, kernels, *make_host_device(), inputs).outputs;
        if (!gpu) continue;
        const auto on_gpu = run_host_program(c.host, kernels, *gpu, inputs).outputs;
        ASSERT_EQ(digest(contiguous_copy(on_gpu[0].value.tensor)), digest(contiguous_copy(on_host[0].value.tensor)));
        ++runs;
      }
  if (!gpu) GTEST_SKIP() << "no GPU";
  std::printf("  arithmetic of bytes and halves on the GPU: %d runs as on the host\n", runs);
}

}  // namespace
}  // namespace fusebox
