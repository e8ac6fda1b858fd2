// A kernel whose parameters may overlap: which text it gets, and that the host executor checks the promise.
#include "replay/device/overlap.h"

#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/run/host_program.h"

namespace fusebox {
namespace {

// x becomes x + z, in place. A thread reads element i of both and stores it, so z may be x.
constexpr std::string_view kInPlace = R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %z = input f32[%n] contiguous
  %y = add %x, %z
  output %y alias %x
}
)";

TensorData counted(int64_t n) {
  TensorData t = allocate_tensor(Dtype::kFloat, {n});
  for (int64_t i = 0; i < n; ++i) store_element(t, i, from_double(Dtype::kFloat, static_cast<double>(i)));
  return t;
}

TensorData part(const TensorData& t, int64_t first, int64_t count) {
  return external_tensor(t.dtype, t.data() + first * size_bytes(t.dtype), {count}, {1}, t.storage);
}

RunTensor on_host(const TensorData& t) {
  RunTensor r;
  r.layout = t;
  r.defined = std::make_shared<DefinedElements>(DefinedElements::of_elements(t));
  return r;
}

// The kernel's arguments: its tensors are x and z, and each scalar is n.
std::vector<RunArgument> arguments_of(const Graph& kernel, const TensorData& x, const TensorData& z, uint64_t n) {
  std::vector<RunArgument> arguments;
  for (ValueId v : inputs(kernel)) {
    RunArgument a;
    a.dtype = kernel[v].dtype;
    a.is_scalar = !kernel.is_tensor(v);
    if (a.is_scalar)
      a.bits = {n, 0};
    else
      a.tensor = on_host(arguments.empty() ? x : z);
    arguments.push_back(std::move(a));
  }
  return arguments;
}

struct InPlace {
  explicit InPlace(int64_t n) {
    const Graph g = parse_graph(std::string(kInPlace));
    const Argument a = Argument::of(allocate_tensor(Dtype::kFloat, {n}));
    const std::vector<Argument> both = {a, a};
    compiled = compile(g, bind_sizes(g, bound_inputs(both)), {});
  }
  // Runs it on the two tensors themselves.
  void run(const TensorData& x, const TensorData& z) {
    const std::vector<RunTensor> own = {on_host(x), on_host(z)};
    const std::vector<Argument> both = {Argument::of(x), Argument::of(z)};
    const std::vector<NamedKernel> kernels = {{compiled.segmentation.segments[0].name, &compiled.kernels[0]}};
    HostProgramOptions options;
    options.in_place_inputs = own;
    run_host_program(compiled.host, kernels, *make_host_device(), both, options, false);
  }
  Compiled compiled;
};

float element(const TensorData& t, int64_t i) {
  return static_cast<float>(to_double(t.dtype, load_element(t, t.offset + i)));
}

TEST(Overlap, BytesDecide) {
  InPlace f(4);
  const Graph& kernel = f.compiled.kernels[0];
  const TensorData all = counted(16);
  const auto apart = [&](const TensorData& x, const TensorData& z) {
    return reads_apart(kernel, arguments_of(kernel, x, z, 4));
  };
  EXPECT_TRUE(apart(part(all, 0, 4), part(all, 4, 4)));
  EXPECT_TRUE(apart(part(all, 4, 4), part(all, 0, 4)));
  EXPECT_FALSE(apart(part(all, 0, 4), part(all, 0, 4)));
  EXPECT_FALSE(apart(part(all, 0, 4), part(all, 3, 4)));
  EXPECT_FALSE(apart(part(all, 3, 4), part(all, 0, 4)));
  EXPECT_TRUE(apart(part(all, 0, 0), part(all, 0, 4)));
}

TEST(Overlap, OneTensorTwiceGivesTheRightResult) {
  InPlace f(4);
  const TensorData x = counted(4);
  f.run(x, x);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(element(x, i), static_cast<float>(2 * i));
}

// An input that shares memory with one that is overwritten is read as it was when the call began.
TEST(Overlap, ShiftedViewsAreReadAsTheyWere) {
  for (const int64_t z_at : {0, 2}) {
    InPlace f(4);
    const TensorData all = counted(6);
    f.run(part(all, 1, 4), part(all, z_at, 4));
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(element(all, 1 + i), static_cast<float>(1 + i + z_at + i));
  }
}

TEST(Overlap, WindowsOfAPackedTensorLieApart) {
  const TensorData all = counted(64);
  const auto view = [&](int64_t begin, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    TensorData t = all;
    t.offset = begin, t.shape = std::move(shape), t.strides = std::move(strides);
    return on_host(t);
  };
  const RunTensor q = view(0, {4, 5}, {15, 1}), k = view(5, {4, 5}, {15, 1});
  EXPECT_FALSE(may_meet(q, k));
  EXPECT_FALSE(may_meet(k, q));
  EXPECT_FALSE(surely_meet(q, k));
  EXPECT_TRUE(may_meet(q, view(4, {4, 5}, {15, 1})));
  EXPECT_TRUE(may_meet(view(4, {4, 5}, {15, 1}), q));
  EXPECT_TRUE(may_meet(q, view(11, {3, 5}, {15, 1})));  // its windows end in the next one
  EXPECT_FALSE(may_meet(q, view(10, {3, 5}, {15, 1})));
  EXPECT_TRUE(may_meet(q, view(5, {2, 5}, {30, 1})));
  EXPECT_TRUE(surely_meet(q, view(0, {3}, {2})));
  EXPECT_TRUE(surely_meet(view(0, {8}, {1}), view(7, {8}, {1})));
  EXPECT_FALSE(surely_meet(view(0, {8}, {1}), view(8, {8}, {1})));
}

TEST(Overlap, TheHostExecutorChecksThePromise) {
  InPlace f(4);
  const Graph& kernel = f.compiled.kernels[0];
  const TensorData x = counted(4);
  for (const bool is_promised : {true, false}) {
    const auto device = make_host_device();
    const size_t k = device->prepare(kernel, {.reads_apart = is_promised});
    std::optional<ErrorCode> code;
    try {
      device->launch(k, {.grid = {1, 1, 1}, .block = {1, 1, 1}}, arguments_of(kernel, x, x, 4));
    } catch (const Error& e) {
      code = e.code;
    }
    EXPECT_EQ(code, is_promised ? std::optional(ErrorCode::kRace) : std::nullopt);
  }
}

}  // namespace
}  // namespace fusebox
