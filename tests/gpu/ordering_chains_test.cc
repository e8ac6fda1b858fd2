// Random trees of minimum, maximum, where, neg and abs on a GPU must give the host executor's bits. Compilers fuse two
// minima or maxima into one instruction, and some of these lose an operand's sign change (codegen/runtime/compare.cuh).
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

constexpr int kInputs = 4, kTrees = 24, kDepth = 5;

// A program with `kTrees` outputs, all made in one kernel; each element has its own thread.
class TreeProgram {
 public:
  TreeProgram(const std::string& dtype, uint64_t seed) : dtype_(dtype), state_(seed * 2 + 1) {
    text_ = "fusion @f {\n  %n = size\n";
    for (int i = 0; i < kInputs; ++i) line("%x" + std::to_string(i) + " = input " + dtype + "[%n] contiguous");
    std::string outputs;
    for (int i = 0; i < kTrees; ++i) {
      std::string root = tree(kDepth);
      if (root[1] == 'x') root = op("neg " + root);
      outputs += "  output " + root + "\n";
      last_ = root;
    }
    text_ += outputs + "}\nsteps @f {\n";
    line("split " + last_ + ".i0 by 128 -> o, t");
    line("parallelize " + last_ + ".o on grid.x");
    line("parallelize " + last_ + ".t on block.x");
    line("transform_like " + last_ + " to []");
    line("parallelize_like " + last_ + " to []");
    line("inline_most of []");
    text_ += "}\ninputs @f host {\n";
    for (int i = 0; i < kInputs; ++i)
      line("%x" + std::to_string(i) + " = " + dtype + "[1000] boundary seed " + std::to_string(i + 1));
    text_ += "}\n";
  }
  const std::string& text() const { return text_; }

 private:
  void line(const std::string& s) { text_ += "  " + s + "\n"; }
  uint64_t below(uint64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }
  std::string op(const std::string& s) {
    const std::string name = "%v" + std::to_string(count_++);
    line(name + " = " + s);
    return name;
  }
  std::string tree(int depth) {
    if (depth == 0 || below(10) == 0) return "%x" + std::to_string(below(kInputs));
    const uint64_t kind = below(10);
    const std::string a = tree(depth - 1);
    if (kind < 2) return op("neg " + a);
    if (kind < 3) return op("abs " + a);
    if (kind < 4) return op("sub 0_" + dtype_ + ", " + a);
    const std::string b = tree(depth - 1);
    if (kind < 5) return op("where " + op("gt " + a + ", " + b) + ", " + a + ", " + b);
    return op((kind < 8 ? "maximum " : "minimum ") + a + ", " + b);
  }

  std::string dtype_, text_, last_;
  uint64_t state_;
  int count_ = 0;
};

// `program` on the host executor and on a GPU; false: there is none.
bool expect_bits_of_the_host(const std::string& program) {
  const auto gpu = testing::gpu_or_null();
  SCOPED_TRACE(program);
  const Module m = parse_module(program);
  std::vector<Argument> inputs;
  for (const InputSpec& s : m.input_specs[0].specs) inputs.push_back(make_argument(s));
  const Graph& g = m.graphs[0];
  std::vector<Step> steps;
  if (!m.step_lists.empty()) steps = m.step_lists[0].steps;
  const Compiled c = compile(g, bind_sizes(g, bound_inputs(inputs)), {.steps = steps});
  std::vector<NamedKernel> kernels;
  for (size_t i = 0; i < c.kernels.size(); ++i) kernels.push_back({c.segmentation.segments[i].name, &c.kernels[i]});
  const auto host = make_host_device();
  const auto expected = run_host_program(c.host, kernels, *host, inputs, {}).outputs;
  if (!gpu) return false;
  const auto actual = run_host_program(c.host, kernels, *gpu, inputs, {}).outputs;
  EXPECT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size() && i < actual.size(); ++i)
    EXPECT_EQ(digest(contiguous_copy(expected[i].value.tensor)), digest(contiguous_copy(actual[i].value.tensor)))
        << "output " << i;
  return true;
}

class OrderingChains : public ::testing::TestWithParam<const char*> {};

TEST_P(OrderingChains, GiveTheBitsOfTheHostExecutor) {
  for (uint64_t seed = 1; seed <= 12; ++seed)
    if (!expect_bits_of_the_host(TreeProgram(GetParam(), seed).text())) GTEST_SKIP() << "no GPU";
}

// The least number is its own absolute value and its own negation, and keeps its sign in what reads it.
TEST_P(OrderingChains, KeepTheSignOfTheLeastNumber) {
  const std::string dtype = GetParam();
  std::string text = "fusion @f {\n  %n = size\n  %x = input " + dtype + "[%n] contiguous\n", outputs;
  for (const char* op : {"abs", "neg", "sub 0_"}) {
    const std::string name = op[0] == 's' ? "sub" : op;
    const std::string v = "%" + name;
    text += "  " + v + " = " + (op[0] == 's' ? op + dtype + "," : std::string(op)) + " %x\n";
    for (const char* to : {"f32", "f64", "f16", "bf16", "i64", "i32", "bool"}) {
      text += "  " + v + "_" + to + " = cast " + v + " as " + to + "\n";
      outputs += "  output " + v + "_" + to + "\n";
    }
    text += "  " + v + "_half = mul " + v + ", 0.5\n  " + v + "_shift = bitwise_right_shift " + v + ", 1_" + dtype +
            "\n  " + v + "_negative = lt " + v + ", 0_" + dtype + "\n";
    outputs += "  output " + v + "_half\n  output " + v + "_shift\n  output " + v + "_negative\n";
  }
  const std::string steps =
      "}\nsteps @f {\n  split %sub_negative.i0 by 128 -> o, t\n  parallelize %sub_negative.o on grid.x\n"
      "  parallelize %sub_negative.t on block.x\n  transform_like %sub_negative to []\n"
      "  parallelize_like %sub_negative to []\n  inline_most of []\n";
  for (const int elements : {1, 4, 1000})
    if (!expect_bits_of_the_host(text + outputs + steps + "}\ninputs @f host {\n  %x = " + dtype + "[" +
                                 std::to_string(elements) + "] boundary seed 4\n}\n"))
      GTEST_SKIP() << "no GPU";
}

INSTANTIATE_TEST_SUITE_P(Dtypes, OrderingChains, ::testing::Values("i8", "i16", "i32", "i64", "u32"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fusebox
