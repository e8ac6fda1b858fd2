// Scalars on very many paths are computed, decomposed and lowered once.
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"

namespace fusebox {
namespace {

constexpr int kLength = 64;  // 2^64 paths

int64_t ops_of(const std::string& text) {
  const Module m = parse_module(text);
  const Graph& g = main_graph(m);
  const std::vector<BoundInput> inputs = {{.shape = {5}}};
  const Compiled c = compile(g, bind_sizes(g, inputs), {.inputs = inputs});
  return static_cast<int64_t>(c.kernels.at(0).ops.size());
}

TEST(SharedScalars, AreLoweredOnce) {
  std::string text = "fusion @f {\n  %n = size\n  %x = input i64[%n]\n  %s0 = cast %n as i64\n";
  for (int i = 0; i < kLength; ++i) {
    const std::string s = "%s" + std::to_string(i);
    text += "  %s" + std::to_string(i + 1) + " = bitwise_xor " + s + ", " + s + "\n";
  }
  text += "  %y = add %x, %s" + std::to_string(kLength) + "\n  output %y\n}\n";
  EXPECT_LT(ops_of(text), 2 * kLength);
}

TEST(SharedScalars, AreTakenApartOnce) {
  std::string text = "fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %s0 = add %n, 1\n";
  for (int i = 0; i < kLength; ++i) {
    const std::string s = "%s" + std::to_string(i), t = "%t" + std::to_string(i);
    text += "  " + t + " = add " + s + ", " + s + "\n  %s" + std::to_string(i + 1) + " = sub " + t + ", " + s + "\n";
  }
  text += "  %y = full 1.0_f32 of [%s" + std::to_string(kLength) + "]\n  output %y\n  %z = neg %x\n  output %z\n}\n";
  EXPECT_GT(ops_of(text), 0);
}

TEST(SharedScalars, OfDifferencesOfQuotientsAreSymbolsInTheEnd) {
  std::string text = "fusion @f {\n  %s0 = size\n  %x = input f32[%s0]\n";
  for (int i = 0; i < kLength; ++i) {
    const std::string s = "%s" + std::to_string(i), q = "%q" + std::to_string(i);
    text += "  " + q + " = floor_div " + s + ", 2\n  %s" + std::to_string(i + 1) + " = sub " + s + ", " + q + "\n";
  }
  text += "  %y = iota %s" + std::to_string(kLength) + " as f32\n  output %y\n  %z = neg %x\n  output %z\n}\n";
  EXPECT_GT(ops_of(text), 0);
}

}  // namespace
}  // namespace fusebox
