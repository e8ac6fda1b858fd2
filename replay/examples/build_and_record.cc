// Builds a fusion, runs it as one kernel on the host executor, prints the result, and records the run.
//
//   build_and_record swish.fuse
#include <algorithm>
#include <cstdio>
#include <fusebox/ir/build/builder.h>
#include <fusebox/ir/text/parse.h>
#include <fusebox/ir/text/print.h>
#include <fusebox/replay/data/file.h>
#include <fusebox/replay/record/record.h>
#include <fusebox/replay/run/run.h>
#include <fusebox/serde/encode.h>

using namespace fusebox;

int main(int argc, char** argv) try {
  if (argc != 2) return std::fputs("usage: build_and_record BUNDLE\n", stderr), 2;

  // %y = %x * sigmoid(%x), for any number of elements.
  Graph swish = fusion("swish");
  const ValueId x = input(swish, "x", Dtype::kFloat, {size(swish, "n")});
  output(swish, mul(swish, x, unary(swish, OpKind::kSigmoid, x, "s"), "y"));
  Module program;
  program.graphs = {swish};

  // One kernel of blocks of 128 threads. Without steps, each op is a kernel.
  const std::vector<Step> steps = parse_steps(R"(
    split %y.i0 by 128 -> o, t
    parallelize %y.o on grid.x
    parallelize %y.t on block.x
    transform_like %y to []
    parallelize_like %y to []
    inline_most of []
  )");

  const std::vector<float> numbers = {-1.0f, 0.0f, 0.5f, 2.0f};
  const TensorData data = allocate_tensor(Dtype::kFloat, {4});
  std::copy(numbers.begin(), numbers.end(), reinterpret_cast<float*>(data.data()));
  const std::vector<Argument> inputs = {Argument::of(data)};

  const Run run = run_program(program, inputs, {.executor = Executor::kHost, .steps = steps});
  if (run.failure) throw Error(run.failure->code, run.failure->message, run.failure->place);

  std::printf("%s\n", print(program).c_str());
  for (const RunOutput& out : run.outputs) {
    std::printf("%%%s = %s\n", out.name.c_str(), describe(out.value.tensor).c_str());
    for (const int64_t position : positions_of(out.value.tensor))
      std::printf("  %s\n", print_literal(out.value.dtype, load_element(out.value.tensor, position)).c_str());
  }
  write_file(argv[1], encode(make_bundle(run, program, exact_inputs(run.fusion, inputs), inputs)));
  return 0;
} catch (const fusebox::Error& e) {
  return std::fprintf(stderr, "%s %s: %s\n", code_text(e.code).c_str(), e.place.c_str(), e.what()), 1;
}
