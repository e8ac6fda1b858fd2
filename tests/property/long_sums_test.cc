// Sums of many floats. For any schedule, the error grows with the logarithm of the number of elements, and the
// reference's bound knows that: it rejects a sum that adds one element after another.
#include <cmath>
#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

#define NEED_ATEN() \
  if (find_aten() == nullptr) GTEST_SKIP() << "PyTorch is not there"

Argument made(Dtype d, const std::vector<int64_t>& shape, const std::string& generator) {
  std::string extents;
  for (int64_t e : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(e);
  return make_argument(parse_input_spec("x", std::string(text(d)) + "[" + extents + "] " + generator));
}

// Runs on the host executor; with empty `steps`, without a schedule.
Run run_on_host(const Graph& g, const std::vector<Argument>& inputs, const std::string& steps = "",
                const Defects& defects = {}) {
  Module m;
  m.graphs.push_back(g);
  RunOptions options{.defects = defects, .keep_sources = false};
  if (!steps.empty()) options.steps = parse_steps(steps);
  return run_program(m, inputs, options);
}

double number(const Run& run, size_t output = 0) {
  if (run.failure) {
    ADD_FAILURE() << run.failure->message;
    return NAN;
  }
  const TensorData t = contiguous_copy(run.outputs.at(output).value.tensor);
  return to_double(t.dtype, load_element(t, 0));
}

bool is_within_bounds(const Run& run, const std::vector<Argument>& inputs) {
  EXPECT_FALSE(run.failure) << run.failure->message;
  bool ok = true;
  for (const CheckedOutput& c : check_outputs(run, inputs)) ok &= c.comparison.ok && c.comparison.unconstrained == 0;
  return ok;
}

// The sum of all n elements, or of each column.
Graph row_sum(Dtype d) {
  Graph g = fusion("f");
  output(g, reduce(g, OpKind::kSum, input(g, "x", d, {size(g, "n")}), {0}, {.name = "y"}));
  return g;
}
Graph column_sums(Dtype d) {
  Graph g = fusion("f");
  output(g, reduce(g, OpKind::kSum, input(g, "x", d, {size(g, "n"), size(g, "m")}), {0}, {.name = "y"}));
  return g;
}

TEST(LongSums, FourMillionEqualNumbers) {
  constexpr int64_t kCount = int64_t{1} << 22;
  const std::vector<Argument> x = {made(Dtype::kFloat, {kCount}, "constant 0.49 0.0")};
  const double exact = static_cast<double>(kCount) * static_cast<double>(0.49f);
  for (const char* steps : {"", "split %y.i0 by 1024 -> o, i\n", "split %y.i0 by 1024 outer -> o, i\n",
                            "split %y.i0 by 8 -> o, i\nparallelize %y.i unroll\n"})
    EXPECT_NEAR(number(run_on_host(row_sum(Dtype::kFloat), x, steps)), exact, 2) << steps;
}

TEST(LongSums, VarianceFarFromZero) {
  constexpr int64_t kCount = int64_t{1} << 22;
  Graph g = fusion("f");
  const WelfordResult w = welford(g, input(g, "x", Dtype::kFloat, {size(g, "n")}), {0});
  output(g, w.avg);
  output(g, w.var_sum);
  const std::vector<Argument> x = {made(Dtype::kFloat, {kCount}, "normal 100.0 1.0 seed 3")};
  double mean = 0, squares = 0;
  for (int64_t i = 0; i < kCount; ++i) mean += to_double(Dtype::kFloat, load_element(x[0].tensor, i)) / kCount;
  for (int64_t i = 0; i < kCount; ++i)
    squares += std::pow(to_double(Dtype::kFloat, load_element(x[0].tensor, i)) - mean, 2);
  const fusebox::Run run = run_on_host(g, x);
  EXPECT_NEAR(number(run, 0), mean, 1e-4);
  EXPECT_NEAR(number(run, 1) / squares, 1, 1e-4);
}

// Lengths near the ends of strips and of groups of strips.
TEST(LongSums, EveryLengthAndSchedule) {
  NEED_ATEN();
  const char* const kSchedules[] = {
      "",
      "split %y.i0 by 8 -> o, i\n",
      "split %y.i0 by 5 -> o, i\nreorder %y to [%y.i, %y.o]\n",
      "split %y.i0 by 40 -> o, i\nsplit %y.o by 3 outer -> p, q\n",
      "split %y.i0 by 8 -> o, i\nparallelize %y.i unroll\n",
      "split %y.i0 by 4 -> o, i\nparallelize %y.i block.x\n",
      "split %y.i0 by 24 -> o, i\nparallelize %y.o unswitch\n",
      "split %y.i0 by 7 outer -> o, i\nrfactor %y over [%y.i] -> p\n",
  };
  int ran = 0;
  for (Dtype d : {Dtype::kFloat, Dtype::kDouble, Dtype::kBfloat16, Dtype::kComplexFloat})
    for (int64_t n : {0, 1, 15, 16, 17, 33, 255, 256, 257, 4095, 4096, 4097, 65537})
      for (const char* steps : kSchedules) {
        if (n > 4097 && d != Dtype::kFloat) continue;
        const std::vector<Argument> x = {made(d, {n}, "uniform 0.48 0.49 seed 5")};
        const fusebox::Run run = run_on_host(row_sum(d), x, steps);
        EXPECT_TRUE(is_within_bounds(run, x)) << text(d) << " " << n << "\n" << steps;
        ++ran;
      }
  EXPECT_EQ(ran, (12 * 4 + 1) * 8);
}

// Accumulators with several places, inside the strip-mined loop and outside of it.
TEST(LongSums, PlacesKeepSumsOfTheirOwn) {
  NEED_ATEN();
  for (int64_t n : {3, 16, 40, 300, 5000})
    for (const char* steps :
         {"", "split %y.i1 by 4 -> p, v\nparallelize %y.p grid.x\nreorder %y to [%y.p, %y.i0, %y.v]\n",
          "split %y.i1 by 4 -> p, v\nparallelize %y.p grid.x\nsplit %y.i0 by 4 -> o, i\nreorder %y to [%y.p, %y.o, "
          "%y.v, %y.i]\n",
          "split %y.i1 by 4 -> p, v\nparallelize %y.p grid.x\nsplit %y.i0 by 2 -> o, i\nreorder %y to [%y.p, %y.v, "
          "%y.o, %y.i]\n"}) {
      const std::vector<Argument> x = {made(Dtype::kFloat, {n, 6}, "uniform 0.1 0.9 seed 6")};
      EXPECT_TRUE(is_within_bounds(run_on_host(column_sums(Dtype::kFloat), x, steps), x)) << n << "\n" << steps;
    }
}

TEST(LongSums, SequentialOnesAreReported) {
  NEED_ATEN();
  Defects sequential;
  sequential.add(Defect::kReductionSequential);
  for (Dtype d : {Dtype::kFloat, Dtype::kComplexFloat, Dtype::kHalf})
    for (int64_t n : {8192, 50000}) {
      // The sum of this many 11-bit numbers is exact in f32.
      if (d == Dtype::kHalf && n == 8192) continue;
      const double value = d == Dtype::kHalf ? 0.4900 / 4 : 0.49;
      const std::vector<Argument> x = {made(d, {n}, "constant " + std::to_string(value) + " 0.0")};
      // A half would hold too few digits of the result to show the error.
      const Graph g = d == Dtype::kHalf ? parse_graph(
                                              "fusion @f {\n  %n = size\n  %x = input f16[%n]\n"
                                              "  %y = sum %x over [0] as f32\n  output %y\n}\n")
                                        : row_sum(d);
      EXPECT_TRUE(is_within_bounds(run_on_host(g, x), x)) << text(d) << " " << n;
      EXPECT_FALSE(is_within_bounds(run_on_host(g, x, "", sequential), x)) << text(d) << " " << n;
    }
}

// The worst error of a kernel stays within the bound, which grows with the logarithm.
TEST(LongSums, BoundOfTheReference) {
  NEED_ATEN();
  for (int64_t n : {100, 1000, 100000}) {
    const std::vector<Argument> x = {made(Dtype::kFloat, {n}, "uniform 0.5 1.0 seed 8")};
    const Evaluated e = find_aten()->evaluate(row_sum(Dtype::kFloat), x).outputs.at(0);
    const double sum = to_double(e.dtype, load_element(result_of(e), 0));
    const double bound = to_double(Dtype::kDouble, load_element(e.bound, 0)) / sum * 0x1p24;
    EXPECT_LE(bound, 25 + 6 * std::log2(static_cast<double>(n))) << n;
    // A pairwise tree and a cascade of strips of 16, if each addition errs by half a unit in the same direction.
    EXPECT_GE(bound, 4 * std::log2(static_cast<double>(n))) << n;
  }
}

}  // namespace
}  // namespace fusebox
