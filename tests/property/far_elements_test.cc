// Law: a few elements far apart, and axes without end, change nothing: outputs equal the reference's, and memory
// between elements is reserved but not touched.
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ir/text/parse.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/judge.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Runs a program on the host executor, with its steps and under the unfused plan, and compares with ATen.
void expect_reference(const std::string& text, const std::vector<Argument>& inputs) {
  SCOPED_TRACE(text);
  const Module m = parse_module(text);
  const Evaluation reference = load_aten().evaluate(main_graph(m), inputs);
  for (const bool unfused : {true, false}) {
    const fusebox::Run r = run_program(m, inputs, {.unfused = unfused, .keep_sources = false});
    ASSERT_FALSE(r.failure) << code_text(r.failure->code) << " " << r.failure->place << " " << r.failure->message;
    ASSERT_EQ(r.outputs.size(), reference.outputs.size());
    for (size_t i = 0; i < r.outputs.size(); ++i) {
      const TensorData& out = r.outputs[i].value.tensor;
      const TensorData expected = converted_copy(reference.outputs[i].reference, out.dtype);
      EXPECT_FALSE(first_difference(out, expected)) << "output " << i << (unfused ? ", unfused" : "");
    }
  }
}

Argument made(const std::string& spec) { return make_argument(parse_input_spec("x", spec)); }

std::string unary_of(const std::string& type, const std::string& steps = "") {
  return "fusion @f {\n  %x = input " + type + "\n  %y = neg %x\n  output %y\n}\n" +
         (steps.empty() ? "" : "steps @f {\n" + steps + "}\n");
}

TEST(FarElements, IndicesBeyondThirtyTwoBits) {
  if (!find_aten()) GTEST_SKIP() << "no ATen";
  const int64_t before = resident_bytes();
  const std::string line = "i8[3] contiguity [false]";
  for (const char* stride : {"1073741824", "1200000000", "1500000000", "2147483648"})
    for (const char* steps :
         {"", "  split %y.i0 by 2 -> o, t\n  parallelize %y.o on grid.x\n  parallelize %y.t on block.x\n"})
      expect_reference(unary_of(line, steps),
                       {made("i8[3] strides [" + std::string(stride) + "] integers -100 100 seed 1")});
  const std::string plane = "i8[2, 3] contiguity [false, false]";
  for (const char* strides : {"1500000000, 1000000000", "1, 1073741824", "1073741824, 1", "1000000000, 600000000"})
    expect_reference(unary_of(plane, "  merge %y.i0 with %y.i1 -> i\n  parallelize %y.i on block.x\n"),
                     {made("i8[2, 3] strides [" + std::string(strides) + "] integers -100 100 seed 2")});
  // 8 bytes an element.
  expect_reference(unary_of("i64[3] contiguity [false]"), {made("i64[3] strides [1073741824] integers -9 9 seed 3")});
  EXPECT_LT(resident_bytes() - before, int64_t{1} << 28) << "memory that nothing stands in is touched";
}

TEST(FarElements, RowsThatDataChoose) {
  if (!find_aten()) GTEST_SKIP() << "no ATen";
  const Argument table = made("i8[5, 3] strides [536870912, 1] integers -100 100 seed 1");
  const std::string head = "fusion @f {\n  %x = input i8[5, 3] contiguity [false, true]\n";
  expect_reference(head + "  %i = input i64[4]\n  %y = index_select %x, %i axis 0\n  output %y\n}\n",
                   {table, made("i64[4] integers 0 5 seed 2")});
  expect_reference(head + "  %i = input i64[4, 3]\n  %y = gather %x, %i axis 0\n  output %y\n}\n",
                   {table, made("i64[4, 3] integers 0 5 seed 2")});
  expect_reference(head + "  %i = input i64\n  %y = select %x, %i axis 0\n  output %y\n}\n",
                   {table, Argument::scalar(Dtype::kInt64, {static_cast<uint64_t>(-1), 0})});
}

// An output over an input that mostly consists of holes.
TEST(FarElements, WrittenOverTheirInput) {
  if (!find_aten()) GTEST_SKIP() << "no ATen";
  expect_reference("fusion @f {\n  %x = input i8[3] contiguity [false]\n  %y = neg %x\n  output %y alias %x\n}\n",
                   {made("i8[3] strides [1073741824] integers -100 100 seed 1")});
}

// 17 axes: two tensors have different strides.
TEST(FarElements, StridesOfManyAxes) {
  if (!find_aten()) GTEST_SKIP() << "no ATen";
  constexpr size_t kAxes = 17;
  std::string shape, far, near, unknown;
  for (size_t a = 0; a < kAxes; ++a) {
    const std::string comma = a == 0 ? "" : ", ";
    shape += comma + "2";
    unknown += comma + "false";
    near += comma + std::to_string(size_t{1} << (kAxes - 1 - a));
    far += comma + std::to_string(size_t{3} << (kAxes - 1 - a));
  }
  const std::string type = "i8[" + shape + "]";
  expect_reference("fusion @f {\n  %a = input " + type + " contiguity [" + unknown + "]\n  %b = input " + type +
                       " contiguity [" + unknown + "]\n  %y = sub %a, %b\n  output %y\n}\n",
                   {made(type + " strides [" + far + "] integers -60 60 seed 1"),
                    made(type + " strides [" + near + "] integers -60 60 seed 2")});
}

}  // namespace
}  // namespace fusebox
