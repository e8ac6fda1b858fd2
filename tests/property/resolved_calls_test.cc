// A resolved call does what the host program does: on the program's own inputs, and on other values of the same sizes.
#include <gtest/gtest.h>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "replay/run/resolved_call.h"
#include "replay/run/run.h"
#include "tests/support/real_programs.h"

namespace fusebox {
namespace {

using testing::real_programs;

struct Prepared {
  Compiled compiled;
  std::vector<NamedKernel> kernels;
  std::vector<Argument> arguments;
};

// A program of the corpus, compiled for its own inputs; nothing if it has none or cannot run alone.
std::unique_ptr<Prepared> prepare(const Module& m, bool unfused = false) {
  if (m.graphs.empty()) return nullptr;
  const Graph& fusion = main_graph(m);
  if (fusion.level != Level::kMath) return nullptr;
  auto p = std::make_unique<Prepared>();
  try {
    p->arguments = make_arguments(fusion, find_input_specs(m, fusion.name, "host"), {});
    const Bindings sizes = bind_sizes(fusion, bound_inputs(p->arguments));
    CompileOptions options;
    options.inputs = bound_inputs(p->arguments);
    if (const StepList* list = find_steps(m, fusion.name); list && !unfused) options.steps = list->steps;
    p->compiled = compile(fusion, sizes, options);
  } catch (const Error&) {
    return nullptr;
  }
  for (size_t i = 0; i < p->compiled.kernels.size(); ++i)
    p->kernels.push_back({p->compiled.segmentation.segments[i].name, &p->compiled.kernels[i]});
  return p;
}

// Every program with its steps, and with a kernel for each op.
std::vector<std::unique_ptr<Prepared>> all_prepared() {
  std::vector<std::unique_ptr<Prepared>> result;
  for (const auto& program : real_programs())
    for (const bool unfused : {false, true})
      if (auto p = prepare(program.module, unfused)) result.push_back(std::move(p));
  return result;
}

std::vector<uint64_t> addresses(std::span<const Argument> arguments) {
  std::vector<uint64_t> result;
  for (const Argument& a : arguments)
    if (!a.is_scalar) result.push_back(reinterpret_cast<uint64_t>(a.tensor.data()));
  return result;
}

// The same sizes and strides, with the elements of each tensor in the reverse order of its storage.
std::vector<Argument> reversed(std::span<const Argument> arguments) {
  std::vector<Argument> result;
  for (const Argument& a : arguments) {
    result.push_back(a);
    if (a.is_scalar) continue;
    result.back().tensor = deep_copy(a.tensor);
    const auto positions = positions_of(a.tensor);
    for (size_t i = 0; i < positions.size(); ++i)
      store_element(result.back().tensor, positions[i], load_element(a.tensor, positions[positions.size() - 1 - i]));
  }
  return result;
}

void expect_same_outputs(const Prepared& p, const ResolvedCall& call, std::span<const Argument> arguments) {
  const auto device = make_host_device();
  const ProgramResult wanted = run_host_program(p.compiled.host, p.kernels, *device, arguments);
  std::vector<RunTensor> inputs;
  for (const Argument& a : arguments)
    if (!a.is_scalar) inputs.push_back(device->upload(a.tensor));
  const auto tensors = run_resolved(call, p.kernels, *device, arguments, inputs);
  ASSERT_EQ(call.outputs.size(), wanted.outputs.size());
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const ResolvedOutput& out = call.outputs[i];
    EXPECT_EQ(out.overwrites_input, wanted.outputs[i].overwrites_input);
    ASSERT_EQ(out.is_scalar, wanted.outputs[i].value.is_scalar);
    if (out.is_scalar) {
      EXPECT_EQ(out.bits, wanted.outputs[i].value.bits);
      continue;
    }
    EXPECT_EQ(digest(device->download(tensors[out.slot], out.name)), digest(wanted.outputs[i].value.tensor))
        << out.name;
  }
}

TEST(ResolvedCalls, DoWhatTheHostProgramDoes) {
  size_t resolved = 0, with_arena = 0;
  for (const auto& p : all_prepared()) {
    SCOPED_TRACE(p->compiled.host.name);
    ResolvedCall call;
    std::vector<Argument> other;
    try {
      call = resolve_call(p->compiled.host, p->kernels, p->arguments, addresses(p->arguments));
      if (!call.refused.empty()) continue;
      const auto device = make_host_device();
      run_host_program(p->compiled.host, p->kernels, *device, p->arguments);
      other = reversed(p->arguments);
      run_host_program(p->compiled.host, p->kernels, *device, other);
    } catch (const Error&) {
      continue;  // the run itself fails, as some files want
    }
    expect_same_outputs(*p, call, p->arguments);
    expect_same_outputs(*p, call, other);
    ++resolved;
    with_arena += call.arena_bytes > 0;
  }
  EXPECT_GT(resolved, 25u);
  EXPECT_GT(with_arena, 3u);
}

// From the first step that names a tensor to the last one, no other tensor of the arena may lie on its bytes.
TEST(ResolvedCalls, TensorsOfTheArenaThatAreInUseTogetherDoNotOverlap) {
  size_t pairs = 0;
  for (const auto& p : all_prepared()) {
    SCOPED_TRACE(p->compiled.host.name);
    ResolvedCall call;
    try {
      call = resolve_call(p->compiled.host, p->kernels, p->arguments, addresses(p->arguments));
    } catch (const Error&) {
      continue;
    }
    std::vector<size_t> first(call.tensors.size(), SIZE_MAX), last(call.tensors.size(), 0);
    for (size_t i = 0; i < call.steps.size(); ++i) {
      std::vector<uint32_t> named = {};
      const ResolvedStep& s = call.steps[i];
      if (s.kind != ResolvedStep::Kind::kLaunch) named.push_back(s.to);
      if (s.kind == ResolvedStep::Kind::kCopy) named.push_back(s.from);
      for (const ResolvedArgument& a : s.arguments)
        if (a.kind == ResolvedArgument::Kind::kTensor) named.push_back(a.from);
      for (uint32_t slot : named) {
        first[slot] = std::min(first[slot], i);
        last[slot] = std::max(last[slot], i);
      }
    }
    for (size_t a = 0; a < call.tensors.size(); ++a)
      for (size_t b = 0; b < a; ++b) {
        const ResolvedTensor &x = call.tensors[a], &y = call.tensors[b];
        if (x.in_arena < 0 || y.in_arena < 0 || last[a] < first[b] || last[b] < first[a]) continue;
        ++pairs;
        EXPECT_TRUE(x.in_arena + x.bytes <= y.in_arena || y.in_arena + y.bytes <= x.in_arena)
            << "slots " << a << " and " << b;
        EXPECT_LE(x.in_arena + x.bytes, call.arena_bytes);
      }
  }
  EXPECT_GT(pairs, 10u);
}

TEST(ResolvedCalls, AScalarThatOnlyKernelsReadStaysOpen) {
  const Module m = parse_module(R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %eps = input f32
  %k = input index
  %y = add %x, %eps
  %z = pad %x value 0.0_f32 by [%k, 0]
  output %y
  output %z
}
inputs @f host {
  %x = f32[5] normal seed 1
  %eps = 0.5_f32
  %k = 2
}
)");
  const auto p = prepare(m);
  ASSERT_TRUE(p);
  const ResolvedCall call = resolve_call(p->compiled.host, p->kernels, p->arguments, addresses(p->arguments));
  ASSERT_EQ(call.refused, "");
  EXPECT_EQ(call.is_open_scalar, (std::vector<bool>{false, true, false}));
  std::vector<Argument> other(p->arguments);
  other[1] = Argument::scalar(Dtype::kFloat, from_double(Dtype::kFloat, 2.0));
  expect_same_outputs(*p, call, other);
}

}  // namespace
}  // namespace fusebox
