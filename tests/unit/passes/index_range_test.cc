#include "passes/host/index_range.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "passes/schedule/apply_steps.h"

namespace fusebox {
namespace {

// The index width of y = x + x over [n] after the steps, for an input with this shape and these strides.
int width_of(const std::string& steps, std::vector<int64_t> shape, std::vector<int64_t> strides,
             const std::string& contiguity) {
  const std::string sizes = shape.size() == 1 ? "%n" : "%n, %m";
  const Module m = parse_module("fusion @f {\n  " + sizes + " = size\n  %x = input i8[" + sizes + "] " + contiguity +
                                "\n  %y = add %x, %x\n  output %y\n}\nsteps @f {\n" + steps + "}\n");
  const std::vector<BoundInput> inputs = {{.shape = shape, .strides = strides}};
  const Graph& g = main_graph(m);
  return compile(g, bind_sizes(g, inputs), {.steps = find_steps(m, "f")->steps, .inputs = inputs}).index_bits;
}

TEST(IndexRange, SmallProgramsTakeThirtyTwoBits) {
  EXPECT_EQ(width_of("split %y.i0 by 128 -> o, t\nparallelize %y.o on grid.x\nparallelize %y.t on block.x\n", {1000},
                     {1}, "contiguous"),
            32);
}

// 5 elements; holes reach beyond 2^31.
TEST(IndexRange, HolesCount) {
  EXPECT_EQ(width_of("split %y.i0 by 1073741824 -> o, a\nsplit %y.o by 4 -> p, q\n", {5}, {1}, "contiguous"), 64);
  EXPECT_EQ(width_of("split %y.i0 by 1073741824 -> o, a\n", {5}, {1}, "contiguous"), 32);
}

// Few elements, far apart. Each stride fits in 32 bits.
TEST(IndexRange, StridesCount) {
  constexpr int64_t kGi = int64_t{1} << 30;
  EXPECT_EQ(width_of("", {2}, {kGi}, "contiguity [false]"), 32);
  EXPECT_EQ(width_of("", {3}, {kGi - 1}, "contiguity [false]"), 32);
  EXPECT_EQ(width_of("", {3}, {kGi}, "contiguity [false]"), 64);
  EXPECT_EQ(width_of("", {3}, {2 * kGi}, "contiguity [false]"), 64);
  EXPECT_EQ(width_of("", {2, 2}, {kGi, kGi - 1}, "contiguity [false, false]"), 32);
  EXPECT_EQ(width_of("", {2, 2}, {kGi, kGi}, "contiguity [false, false]"), 64);
  EXPECT_EQ(width_of("", {3, 2}, {64, 1}, "contiguity [false, true]"), 32);
}

// A row chosen by data is one of the table's rows.
TEST(IndexRange, IndicesFromDataAreOfTheirAxis) {
  const auto width = [](int64_t stride, const std::string& op, std::vector<int64_t> index_shape) {
    const Module m = parse_module(
        "fusion @f {\n  %n, %m, %k = size\n  %x = input i8[%n, %m] contiguity [false, true]\n  %i = input i64[" +
        std::string(index_shape.size() == 2 ? "%k, %m" : "%k") + "]\n  %y = " + op +
        " %x, %i axis 0\n  output %y\n}\n");
    const std::vector<BoundInput> inputs = {{.shape = {5, 2}, .strides = {stride, 1}}, {.shape = index_shape}};
    const Graph& g = main_graph(m);
    return compile(g, bind_sizes(g, inputs), {.inputs = inputs}).index_bits;
  };
  EXPECT_EQ(width(int64_t{1} << 28, "index_select", {3}), 32);
  EXPECT_EQ(width(int64_t{1} << 29, "index_select", {3}), 64);
  EXPECT_EQ(width(int64_t{1} << 28, "gather", {3, 2}), 32);
  EXPECT_EQ(width(int64_t{1} << 29, "gather", {3, 2}), 64);
  EXPECT_EQ(width(int64_t{1} << 29, "take_along_axis", {3, 2}), 64);
}

// Soundness costs no program of the corpus its 32 bits: a kernel has 64 only if its tensors are large.
TEST(IndexRange, TheCorpusKeepsItsWidth) {
  int narrow = 0, wide = 0;
  for (const auto& entry : std::filesystem::directory_iterator("corpus/programs")) {
    std::ifstream file(entry.path());
    const Module m = parse_module(std::string(std::istreambuf_iterator<char>(file), {}));
    const Graph& g = main_graph(m);
    for (const char* executor : {"host", "gpu"}) {
      const InputSpecs* specs = find_input_specs(m, g.name, executor);
      if (!specs) continue;
      std::vector<BoundInput> inputs;
      for (ValueId v : fusebox::inputs(g))
        for (const InputSpec& s : specs->specs)
          if (s.name == g[v].name)
            inputs.push_back({.is_scalar = s.is_scalar, .bits = s.value, .shape = s.shape, .strides = s.strides});
      const Bindings sizes = bind_sizes(g, inputs);
      for (const bool unfused : {false, true}) {
        CompileOptions options{.inputs = inputs};
        if (const StepList* steps = find_steps(m, g.name); steps && !unfused) options.steps = steps->steps;
        const Compiled c = compile(g, sizes, options);
        EXPECT_EQ(c.index_bits, choose_index_bits(c.concretized, rebind(g, sizes, c.concretized)))
            << g.name << " " << executor << (unfused ? " unfused" : "");
        (c.index_bits == 32 ? narrow : wide) += 1;
      }
    }
  }
  EXPECT_GT(narrow, 20);
  std::printf("  corpus programs with 32-bit indices: %d, with 64: %d\n", narrow, wide);
}

// -- kernels alone
bool fits(const std::string& lines, std::optional<int64_t> n = 10, decltype(fits_in_32_bits)& law = fits_in_32_bits) {
  const Module m = parse_module("kernel @k index 32 {\n  %x = input i64[?] global\n  %n = input index\n" + lines +
                                "\n}\nhost @h {\n  %a, %n = size\n  %x = input i64[%a]\n" +
                                "  launch %n, 1, 1, 128, 1, 1, 0 with [%x, %n] name \"k\"\n}\n");
  const Graph& launch = m.graphs[1];
  Bindings known(launch.values.size());
  if (n) known[find_value(launch, "n")->index] = ConstantBits{static_cast<uint64_t>(*n), 0};
  known[find_value(launch, "a")->index] = ConstantBits{100, 0};
  return law(m.graphs[0], launch, known, {}, {});
}

TEST(IndexRange, ParametersKeepTheirValues) {
  EXPECT_TRUE(fits("  %b = mul %n, 2 : index", 1 << 29));
  EXPECT_FALSE(fits("  %b = mul %n, 2 : index", 1 << 30));
  EXPECT_FALSE(fits("  %b = mul %n, %n : index", 1 << 16));
  EXPECT_TRUE(fits("  %b = mul %n, %n : index", 1 << 15));
  // No op uses it, but it is a parameter of the kernel.
  EXPECT_FALSE(fits("", int64_t{1} << 31));
}

TEST(IndexRange, WhatIsUnknownDoesNotFit) {
  EXPECT_FALSE(fits("  %b = add %n, 1 : index", std::nullopt));
  EXPECT_FALSE(fits("  %t = thread_index on grid.x : index", std::nullopt));
  EXPECT_TRUE(fits("  %t = thread_index on grid.x : index", 7));
  EXPECT_TRUE(fits("  %v = load %x at 0 : i64"));
  EXPECT_FALSE(fits("  %v = load %x at 0 : i64\n  %i = cast %v as index : index"));
  EXPECT_TRUE(fits("  %v = load %x at 0 : i64\n  within %v below %n\n  %i = cast %v as index : index"));
  EXPECT_TRUE(fits("  %v = load %x at 0 : i64\n  within %v of %x axis 0\n  %i = cast %v as index : index"));
  EXPECT_FALSE(fits("  %v = load %x at 0 : i64\n  within %v of %x axis 1\n  %i = cast %v as index : index"));
  EXPECT_FALSE(
      fits("  %v = load %x at 0 : i64\n  within %v below %n\n  %i = cast %v as index : index\n  %b = mul %i, 300000000 "
           ": index"));
  EXPECT_TRUE(
      fits("  %v = load %x at 0 : i64\n  within %v below %n\n  %i = cast %v as index : index\n  %b = mul %i, 200000000 "
           ": index"));
}

TEST(IndexRange, LoopsEndBehindTheirLastIndex) {
  EXPECT_TRUE(fits("  for 0, %n, 1 { index %i\n  }", INT32_MAX));
  EXPECT_FALSE(fits("  for 0, %n, 4 { index %i\n  }", INT32_MAX));
  EXPECT_FALSE(fits("  for 0, %n, 1 { index %i\n    %b = mul %i, 3 : index\n  }", 1 << 30));
}

// A size that the launch knows has one value, however it is computed: no interval of a remainder or of both operands of a
// `where` takes its place.
TEST(IndexRange, SizesThatAreKnownAreExact) {
  const auto ends_at = [](const std::string& lines, int64_t n) {
    return fits(lines + "\n  for 0, %e, 1 { index %i\n  }", n, loops_fit_in_64_bits);
  };
  const std::string remainder = "  %a = floor_mod 8589934591, %n : index\n  %b = mul %a, 2147483648 : index\n";
  EXPECT_TRUE(ends_at(remainder + "  %e = mul %b, 2 : index", 4294967295));       // 1 · 2^32
  EXPECT_FALSE(ends_at(remainder + "  %e = mul %b, 2 : index", 8589934590 * 2));  // (2^33 - 1) · 2^32
  const std::string quotient = "  %a = ceil_div %n, -3 : index\n  %b = neg %a : index\n";
  EXPECT_TRUE(ends_at(quotient + "  %e = mul %b, 3 : index", INT64_MAX / 2));
  EXPECT_FALSE(ends_at(quotient + "  %e = mul %b, 7 : index", INT64_MAX / 2));
  const std::string choice = "  %c = lt %n, 5 : bool\n  %b = where %c, %n, 4294967296 : index\n";
  EXPECT_TRUE(ends_at(choice + "  %e = mul %b, 2147483648 : index", 4));
  EXPECT_FALSE(ends_at(choice + "  %e = mul %b, 2147483648 : index", 5));
}

}  // namespace
}  // namespace fusebox
