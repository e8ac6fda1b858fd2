// Ops whose ATen kernels on a GPU add in an order that timing decides: run as ATen segments, they give the same bits every
// time, and their values are within the reference's bounds.
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "replay/device/cuda_loader.h"
#include "replay/device/module_loader.h"
#include "replay/run/compare.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

bool has_gpu() {
  try {
    return !cuda_backend().devices().empty() && find_aten() && load_aten().has_gpu();
  } catch (const Error&) {
    return false;
  }
}

void repeats(const char* text) {
  const Module m = parse_module(text);
  const std::vector<Argument> inputs = make_arguments(m.graphs[0], find_input_specs(m, "f", "host"), {});
  const Evaluation expected = load_aten().evaluate(m.graphs[0], inputs);
  std::vector<Digest> first;
  for (int time = 0; time < 4; ++time) {
    const fusebox::Run run = run_program(m, inputs, {.executor = Executor::kCuda});
    ASSERT_FALSE(run.failure) << run.failure->message;
    for (size_t i = 0; i < run.outputs.size(); ++i) {
      const TensorData& t = run.outputs[i].value.tensor;
      if (time == 0) {
        first.push_back(digest(t));
        const Comparison c = compare(t, expected.outputs[i]);
        EXPECT_TRUE(c.ok) << c.message(run.outputs[i].name);
      }
      EXPECT_EQ(digest(t), first[i]) << "time " << time;
    }
  }
}

TEST(AtenRepeats, SumsAtPlaces) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU, or a PyTorch without one";
  repeats(R"(fusion @f {
  %x = input f32[7, 33]
  %i = input i64[7, 20000]
  %s = input f32[7, 20000]
  %y = scatter_add %x, %i, %s axis 1
  %j = input i32[40000]
  %r = input f32[40000, 33]
  %z = index_put_accumulate %x, %j, %r
  output %y
  output %z
}
inputs @f host {
  %x = f32[7, 33] normal seed 1
  %i = i64[7, 20000] integers 0 33 seed 2
  %s = f32[7, 20000] normal seed 3
  %j = i32[40000] integers 0 7 seed 4
  %r = f32[40000, 33] normal seed 5
})");
}

TEST(AtenRepeats, Scans) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU, or a PyTorch without one";
  repeats(R"(fusion @f {
  %x = input f32[300000]
  %w = input f32[50, 3000]
  %y = cumsum %x axis 0
  %z = cumsum %w axis 0
  %v = cumsum %w axis 1
  output %y
  output %z
  output %v
}
inputs @f host {
  %x = f32[300000] normal seed 1
  %w = f32[50, 3000] normal seed 2
})");
}

TEST(AtenRepeats, AttentionAndItsGradient) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU, or a PyTorch without one";
  repeats(R"(fusion @f {
  %q = input bf16[2, 4, 128, 64]
  %k = input bf16[2, 4, 192, 64]
  %v = input bf16[2, 4, 192, 64]
  %g = input bf16[2, 4, 128, 64]
  %o, %l = sdpfa_fwd %q, %k, %v
  %dq, %dk, %dv = sdpfa_bwd %g, %q, %k, %v, %o, %l
  output %o
  output %l
  output %dq
  output %dk
  output %dv
}
inputs @f host {
  %q = bf16[2, 4, 128, 64] normal seed 1
  %k = bf16[2, 4, 192, 64] normal seed 2
  %v = bf16[2, 4, 192, 64] normal seed 3
  %g = bf16[2, 4, 128, 64] normal seed 4
})");
}

TEST(AtenRepeats, ProductsOfManyTerms) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU, or a PyTorch without one";
  repeats(R"(fusion @f {
  %a = input f16[16, 16384]
  %b = input f16[16384, 24]
  %y = matmul %a, %b
  output %y
}
inputs @f host {
  %a = f16[16, 16384] normal seed 1
  %b = f16[16384, 24] normal seed 2
})");
}

TEST(AtenRepeats, SortsKeepTheOrderOfEqualElements) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU, or a PyTorch without one";
  repeats(R"(fusion @f {
  %x = input i32[3, 50000]
  %h = input f16[3, 5000]
  %o = argsort %x axis 1
  %t, %u = topk %x, 1000 axis 1 largest
  %p = argsort %h axis 1 descending
  %m, %n = cummax %x axis 1
  output %o
  output %t
  output %u
  output %p
  output %m
  output %n
}
inputs @f host {
  %x = i32[3, 50000] integers 0 9 seed 1
  %h = f16[3, 5000] boundary seed 2
})");
}

}  // namespace
}  // namespace fusebox
