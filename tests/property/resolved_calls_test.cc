// A resolved call does what the host program does: on the program's own inputs, and on other values of the same sizes. A launch
// record makes the same resolved call as the host program.
#include <gtest/gtest.h>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "passes/host/launch_code.h"
#include "passes/pipeline/signature.h"
#include "replay/run/launch_machine.h"
#include "replay/run/resolved_call.h"
#include "replay/run/run.h"
#include "serde/decode.h"
#include "serde/launch_file.h"
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

std::optional<LaunchRecord> record_of(const Prepared& p) {
  std::vector<std::string> names;
  for (const NamedKernel& k : p.kernels) names.push_back(k.name);
  return launch_code(p.compiled.host, names);
}

// A resolved call, or the code and place of the error.
template <class Make>
std::pair<std::optional<ResolvedCall>, std::string> outcome(const Make& make) {
  try {
    return {make(), ""};
  } catch (const Error& e) {
    return {std::nullopt, code_text(e.code)};
  }
}

// The arguments with one axis of one tensor changed by `by`, contiguous where they were.
std::vector<Argument> resized(std::span<const Argument> arguments, size_t which, int64_t by) {
  std::vector<Argument> result(arguments.begin(), arguments.end());
  size_t axes = 0;
  for (const Argument& a : arguments) axes += a.is_scalar ? 0 : a.tensor.shape.size();
  if (axes == 0) return result;
  which %= axes;
  for (Argument& a : result) {
    if (a.is_scalar) continue;
    if (which >= a.tensor.shape.size()) {
      which -= a.tensor.shape.size();
      continue;
    }
    std::vector<int64_t> shape = a.tensor.shape;
    const bool was_contiguous = a.tensor.strides == contiguous_strides(shape);
    shape[which] = std::max<int64_t>(shape[which] + by, 0);
    a.tensor.strides = was_contiguous ? contiguous_strides(shape) : a.tensor.strides;
    a.tensor.shape = shape;
    break;
  }
  return result;
}

TEST(LaunchRecords, MakeTheResolvedCallOfTheHostProgram) {
  size_t records = 0, missing = 0, calls = 0, failures = 0;
  for (const auto& p : all_prepared()) {
    SCOPED_TRACE(p->compiled.host.name);
    const auto record = record_of(*p);
    missing += record ? 0 : 1;
    if (!record) continue;
    ++records;
    EXPECT_EQ(objection(*record).value_or(""), "") << text(*record);
    EXPECT_EQ(text(*record).find('?'), std::string::npos) << text(*record);
    std::vector<std::vector<Argument>> all = {p->arguments};
    for (size_t axis = 0; axis < 6; ++axis)
      for (const int64_t by : {1, -1, 16, -1000}) all.push_back(resized(p->arguments, axis, by));
    for (const auto& arguments : all) {
      const auto at = addresses(arguments);
      const auto wanted = outcome([&] { return resolve_call(p->compiled.host, p->kernels, arguments, at); });
      const auto made = outcome([&] { return evaluate_launch(*record, arguments, at); });
      ASSERT_EQ(made.second, wanted.second) << text(*record);
      failures += wanted.second.empty() ? 0 : 1;
      if (!wanted.first) continue;
      ASSERT_EQ(made.first->refused, wanted.first->refused);
      if (!made.first->refused.empty()) continue;
      ASSERT_TRUE(*made.first == *wanted.first) << text(*record);
      ++calls;
    }
  }
  EXPECT_EQ(missing, 0u);
  EXPECT_GT(records, 30u);
  EXPECT_GT(calls, 300u);
  EXPECT_GT(failures, 30u);
}

// Code with branches and loops: the grid is the least power of two from the extent on.
LaunchRecord looping_record() {
  LaunchRecord r;
  r.registers = 5;
  r.kernels = 1;
  r.inputs = {{.dtype = Dtype::kFloat, .rank = 1}};
  r.errors = {{ErrorCode::kUnsupportedOp, "no such scalar", "%g"}};
  const auto op = [&](OpKind kind, Dtype dtype, uint16_t to, uint16_t a, uint16_t b) {
    r.code.push_back(pack(LaunchWord{
        .op = LaunchOp::kCompute, .small = static_cast<uint8_t>(dtype), .a = to, .b = static_cast<uint16_t>(kind)}));
    r.code.push_back(2);
    for (const uint16_t at : {a, b}) r.code.push_back(pack(LaunchOperand{.at = at}));
  };
  r.code = {pack(LaunchWord{.op = LaunchOp::kExtent, .a = 0}), pack(LaunchWord{.op = LaunchOp::kConstant, .a = 1}), 1,
            pack(LaunchWord{.op = LaunchOp::kMove, .a = 2, .b = 1})};
  const auto loop = static_cast<uint16_t>(r.code.size());
  op(OpKind::kLt, Dtype::kBool, 3, 2, 0);
  const size_t leave = r.code.size();
  r.code.push_back(0);
  op(OpKind::kAdd, Dtype::kIndex, 2, 2, 2);
  r.code.push_back(pack(LaunchWord{.op = LaunchOp::kJump, .b = loop}));
  r.code[leave] = pack(LaunchWord{.op = LaunchOp::kJumpIfZero, .a = 3, .b = static_cast<uint16_t>(r.code.size())});
  r.code.push_back(pack(LaunchWord{.op = LaunchOp::kLaunch, .a = 0, .b = 1}));
  r.code.push_back(uint64_t{2} | uint64_t{1} << 16 | uint64_t{1} << 32 | uint64_t{1} << 48);
  r.code.push_back(uint64_t{1} | uint64_t{1} << 16 | uint64_t{4} << 32);
  r.code.push_back(pack(LaunchOperand{.kind = LaunchOperand::Kind::kTensor, .dtype = Dtype::kFloat}));
  return r;
}

TEST(LaunchRecords, BranchAndLoop) {
  const LaunchRecord r = looping_record();
  ASSERT_EQ(objection(r).value_or(""), "");
  for (const auto& [extent, grid] :
       {std::pair(1, 1), std::pair(2, 2), std::pair(5, 8), std::pair(64, 64), std::pair(65, 128)}) {
    const std::vector<Argument> arguments = {Argument::of(allocate_tensor(Dtype::kFloat, {extent}))};
    const ResolvedCall call = evaluate_launch(r, arguments, addresses(arguments));
    ASSERT_EQ(call.steps.size(), 1u);
    EXPECT_EQ(call.steps[0].dims.grid[0], grid);
  }
  // Endless code ends with a coded error.
  LaunchRecord endless = r;
  endless.code.insert(endless.code.begin(), pack(LaunchWord{.op = LaunchOp::kJump}));
  const std::vector<Argument> arguments = {Argument::of(allocate_tensor(Dtype::kFloat, {3}))};
  try {
    evaluate_launch(endless, arguments, addresses(arguments), {.step_limit = 1000});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kStepLimit);
  }
}

// No word that was changed makes the machine read beyond its lists: the record is refused, or the call ends.
TEST(LaunchRecords, AnyChangedWordIsRefusedOrEnds) {
  size_t refused = 0, ran = 0;
  const auto all = all_prepared();
  for (size_t i = 0; i < all.size(); i += 7) {
    const auto record = record_of(*all[i]);
    if (!record) continue;
    const auto at = addresses(all[i]->arguments);
    for (size_t word = 0; word < record->code.size(); ++word)
      for (const uint64_t change :
           {uint64_t{1}, uint64_t{1} << 8, uint64_t{3} << 16, uint64_t{1} << 33, uint64_t{5} << 48}) {
        LaunchRecord changed = *record;
        changed.code[word] ^= change;
        if (objection(changed)) {
          ++refused;
          continue;
        }
        outcome([&] { return evaluate_launch(changed, all[i]->arguments, at, {.step_limit = 10'000}); });
        ++ran;
      }
  }
  EXPECT_GT(refused, 200u);
  EXPECT_GT(ran, 200u);
}

TEST(LaunchRecords, BytesComeBackAndDamageIsCoded) {
  std::set<Digest> digests;
  size_t records = 0, values = 0, refused = 0;
  for (const auto& p : all_prepared()) {
    const auto record = record_of(*p);
    if (!record) continue;
    const std::string bytes = encode(*record);
    ASSERT_TRUE(decode_launch_record(bytes_of(bytes)) == *record);
    ++records;
    digests.insert(digest(*record));
    if (records % 5 != 1) continue;
    for (size_t at = 0; at < bytes.size(); ++at)
      for (const int bit : {0, 3, 7}) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
        try {
          const LaunchRecord other = decode_launch_record(bytes_of(damaged));
          ASSERT_TRUE(decode_launch_record(bytes_of(encode(other))) == other);
          ++values;
        } catch (const Error& e) {
          ASSERT_NE(e.code, ErrorCode::kInternal) << e.what();
          ASSERT_FALSE(e.place.empty()) << e.what();
          ++refused;
        }
      }
    for (size_t length = 0; length < bytes.size(); length += 3)
      EXPECT_THROW(decode_launch_record(bytes_of(std::string_view(bytes).substr(0, length))), Error);
  }
  EXPECT_GT(digests.size(), records / 2);
  EXPECT_GT(values, 100u);
  EXPECT_GT(refused, 100u);
}

TEST(InputSignatures, BytesComeBackWithEveryMember) {
  size_t seen = 0;
  for (const auto& p : all_prepared()) {
    CompileOptions options;
    options.inputs = bound_inputs(p->arguments);
    options.device = default_device();
    InputSignature s = signature_of(p->compiled.concretized, options);
    if (s.inputs.empty()) continue;
    s.facts = {{"index width", "32"}, {"symbolic axes", ""}};
    const auto expect_comes_back = [&](const InputSignature& changed, bool is_same) {
      EXPECT_EQ(changed == s, is_same);
      EXPECT_TRUE(decode_signature(bytes_of(encode(changed))) == changed);
      EXPECT_EQ(digest(changed) == digest(s), is_same);
      EXPECT_EQ(text(changed) == text(s), is_same);
    };
    expect_comes_back(s, true);
    InputSignature c = s;
    c.inputs[0].name += "_", expect_comes_back(c, false), c = s;
    c.inputs[0].dtype = c.inputs[0].dtype == Dtype::kHalf ? Dtype::kFloat : Dtype::kHalf, expect_comes_back(c, false),
    c = s;
    c.inputs.push_back(s.inputs[0]), expect_comes_back(c, false), c = s;
    c.facts[0].value = "64", expect_comes_back(c, false), c = s;
    c.facts[1].name = "other", expect_comes_back(c, false), c = s;
    if (!s.inputs[0].is_scalar) c.inputs[0].align = 1024, expect_comes_back(c, false), c = s;
    if (!s.inputs[0].axes.empty()) {
      c.inputs[0].axes[0].most += 1, expect_comes_back(c, false), c = s;
      c.inputs[0].axes[0].divisor = 1024, expect_comes_back(c, false), c = s;
      c.inputs[0].axes.pop_back(), expect_comes_back(c, false), c = s;
    }
    c.facts.push_back(s.facts[0]);
    EXPECT_THROW(encode(c), Error);
    ++seen;
  }
  EXPECT_GT(seen, 20u);
  EXPECT_THROW(decode_signature(bytes_of("FUSE")), Error);
}

TEST(LaunchRecords, RefuseWhatTheyDoNotRunYet) {
  LaunchRecord r;
  r.registers = 1;
  r.code = {pack(LaunchWord{.op = LaunchOp::kCreateStream}), pack(LaunchWord{.op = LaunchOp::kSetStream})};
  ASSERT_EQ(objection(r).value_or(""), "");
  EXPECT_NE(evaluate_launch(r, {}, {}).refused, "");
}

}  // namespace
}  // namespace fusebox
