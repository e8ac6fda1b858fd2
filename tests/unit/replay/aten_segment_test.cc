// ATen segments: their outputs have ATen's strides, which are known before the run and decide the kernels that read them.
#include "replay/run/aten_segment.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "ir/canonical/canonical.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "replay/data/file.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/record/record.h"
#include "replay/record/replay.h"
#include "replay/run/fast_call.h"
#include "replay/run/judge.h"
#include "replay/run/run.h"
#include "tests/support/program_text.h"
#include "tests/unit/replay/host_session.h"
#include "tests/unit/replay/idle_gpu.h"

namespace fusebox {
namespace {

#define NEEDS_ATEN \
  if (!find_aten()) GTEST_SKIP() << "PyTorch is not there"

// The slice [0:k] of rows of n columns is contiguous for k = n alone.
constexpr const char* kSlice = R"(fusion @f {
  %m, %n, %k = size
  %x = input f32[%m, %n] contiguous
  %w = input f32[%k] contiguous
  %y = slice %x from [0, 0] to [%m, %k] by [1, 1]
  %b = broadcast_in_dim %w to [%m, %k] dims [1]
  %z = add %y, %b
  output %z
}
steps @f {
  assign of [%y] name "part" by aten
  assign of [%b, %z] name "sum" by kernel
  inline_most of []
}
)";

std::vector<Argument> arguments_of(int64_t m, int64_t n, int64_t k) {
  const std::string rows = "x=f32[" + std::to_string(m) + ", " + std::to_string(n) + "] normal seed 1";
  const std::string last = "w=f32[" + std::to_string(k) + "] normal seed 2";
  return {make_argument(parse_input_option(rows), Dtype::kFloat, false),
          make_argument(parse_input_option(last), Dtype::kFloat, false)};
}

std::vector<Argument> four_by_six() {
  return {make_argument(parse_input_option("x=f32[4, 6] normal seed 1"), Dtype::kFloat, false)};
}

struct Program {
  explicit Program(const std::string& text, std::vector<Argument> given, InferLayouts infer = infer_by_aten())
      : module(parse_module(text)), fusion(main_graph(module)), arguments(std::move(given)) {
    options.inputs = bound_inputs(arguments);
    options.infer = std::move(infer);
    if (const StepList* list = find_steps(module, fusion.name)) options.steps = list->steps;
    sizes = bind_sizes(fusion, options.inputs);
    compiled = compile(fusion, sizes, options);
  }
  const Crossing& made(const std::string& value) const {
    for (const Segment& s : compiled.segmentation.segments)
      for (const Crossing& c : s.outputs)
        if (c.value == value) return c;
    throw std::out_of_range(value);
  }

  Module module;
  Graph fusion;
  std::vector<Argument> arguments;
  CompileOptions options;
  Bindings sizes;
  Compiled compiled;
};

bool asks_for_strides(const Compiled& c) { return print(c.host).find("tensor_stride") != std::string::npos; }

void expect_right(const Program& p) {
  const fusebox::Run run = run_program(p.module, p.arguments, {.executor = Executor::kHost});
  ASSERT_FALSE(run.failure) << run.failure->message;
  for (const CheckedOutput& c : check_outputs(run, p.arguments)) EXPECT_TRUE(c.comparison.ok) << c.name;
}

TEST(AtenSegment, ASliceIsContiguousOnlyIfItTakesAll) {
  NEEDS_ATEN;
  const Program all(kSlice, arguments_of(4, 6, 6)), less(kSlice, arguments_of(4, 6, 5));
  EXPECT_TRUE(all.made("y").contiguity.empty());
  EXPECT_EQ(less.made("y").contiguity, (std::vector{Contiguity::kFalse, Contiguity::kTrue}));
  EXPECT_FALSE(asks_for_strides(all.compiled));
  EXPECT_TRUE(asks_for_strides(less.compiled));
  expect_right(all);
  expect_right(less);
}

TEST(AtenSegment, AProgramServesSizesOfTheSameContiguity) {
  NEEDS_ATEN;
  const Program all(kSlice, arguments_of(4, 6, 6)), less(kSlice, arguments_of(4, 6, 5));
  const Program all_of_more(kSlice, arguments_of(7, 9, 9)), less_of_more(kSlice, arguments_of(7, 9, 2));
  const auto does_serve = [](const Program& made, const Program& wanted) {
    return serves(made.compiled, wanted.fusion, wanted.sizes, wanted.options);
  };
  EXPECT_TRUE(does_serve(all, all) && does_serve(less, less));
  EXPECT_TRUE(does_serve(all, all_of_more) && does_serve(less, less_of_more));
  EXPECT_FALSE(does_serve(all, less));
  EXPECT_FALSE(does_serve(less, all));
}

TEST(AtenSegment, WithoutInferenceAllIsMadeContiguous) {
  NEEDS_ATEN;
  const Program plain(kSlice, arguments_of(4, 6, 5), nullptr), inferred(kSlice, arguments_of(4, 6, 5));
  EXPECT_TRUE(plain.made("y").contiguity.empty());
  EXPECT_FALSE(asks_for_strides(plain.compiled));
  EXPECT_NE(digest(plain.compiled.kernels[1]), digest(inferred.compiled.kernels[1]));
  const fusebox::Run run =
      run_program(plain.module, plain.arguments, {.executor = Executor::kHost, .infer_contiguity = false});
  ASSERT_FALSE(run.failure) << run.failure->message;
  EXPECT_EQ(run.crossings.at(0).strides, (std::vector<int64_t>{5, 1}));
  for (const CheckedOutput& c : check_outputs(run, plain.arguments)) EXPECT_TRUE(c.comparison.ok) << c.name;
}

// The host program of other sizes copies what does not lie as its kernels read it.
TEST(AtenSegment, AProgramOfOtherSizesIsStillRight) {
  NEEDS_ATEN;
  const Program all(kSlice, arguments_of(4, 6, 6));
  const std::vector<Argument> given = arguments_of(4, 6, 5);
  std::vector<NamedKernel> kernels;
  for (size_t i = 0; i < all.compiled.kernels.size(); ++i)
    kernels.push_back({all.compiled.segmentation.segments[i].name, &all.compiled.kernels[i]});
  HostProgramOptions options;
  options.run_aten = run_aten_segments(all.compiled);
  const auto device = make_host_device();
  const ProgramResult result = run_host_program(all.compiled.host, kernels, *device, given, options);
  ASSERT_EQ(result.by_aten.size(), 1u);
  EXPECT_EQ(result.by_aten[0].chosen.strides, (std::vector<int64_t>{6, 1}));
  const Evaluation expected = load_aten().evaluate(all.fusion, given);
  EXPECT_TRUE(compare(result.outputs[0].value.tensor, expected.outputs[0]).ok);
}

TEST(AtenSegment, OutputsHaveAtensStrides) {
  NEEDS_ATEN;
  const std::string text = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %p = permute %x dims [1, 0]
  %y = exp %p
  %r = broadcast %x mask [1, 0, 0]
  %e = expand %r to [3, %m, %n]
  output %p
  output %y
  output %e
}
steps @f {
  assign of [%p, %y, %r, %e] name "all" by aten
}
)";
  const std::vector<Argument> given = four_by_six();
  const fusebox::Run run = run_program(parse_module(text), given, {.executor = Executor::kHost});
  ASSERT_FALSE(run.failure) << run.failure->message;
  EXPECT_EQ(run.outputs[0].value.tensor.strides, (std::vector<int64_t>{1, 6}));
  EXPECT_EQ(run.outputs[1].value.tensor.strides, (std::vector<int64_t>{1, 6}));
  EXPECT_EQ(run.outputs[2].value.tensor.strides, (std::vector<int64_t>{0, 6, 1}));
}

TEST(AtenSegment, ADeclaredOrderWins) {
  NEEDS_ATEN;
  const std::string text = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %y = stride_order %x order [0, 1]
  %z = neg %y
  output %y
  output %z
}
steps @f {
  assign of [%y] name "part" by aten
  assign of [%z] name "rest" by kernel
}
)";
  const std::vector<Argument> given = four_by_six();
  const fusebox::Run run = run_program(parse_module(text), given, {.executor = Executor::kHost});
  ASSERT_FALSE(run.failure) << run.failure->message;
  EXPECT_EQ(run.outputs[0].value.tensor.strides, (std::vector<int64_t>{1, 4}));
  for (const CheckedOutput& c : check_outputs(run, given)) EXPECT_TRUE(c.comparison.ok) << c.name;
}

// The strides of the record, although ATen would choose others here.
// ATen refuses every index of an axis without elements. Where the result has none, every index is right.
TEST(AtenSegment, ASelectOfNothingTakesAnyIndex) {
  NEEDS_ATEN;
  constexpr const char* kSelects = R"(fusion @f {
  %n = size
  %k = input i64
  %x = input f32[%n, 3, %n] contiguity [false, true, false]
  %y = select %x, 0 axis 2
  %z = select %x, %k axis -1
  output %y
  output %z
}
steps @f {
  assign of [%y, %z] name "part" by aten
}
)";
  const Program empty(kSelects,
                      {make_argument(parse_input_option("k=7_i64"), Dtype::kInt64, true),
                       make_argument(parse_input_option("x=f32[0, 3, 0] strides [8, 2, 1]"), Dtype::kFloat, false)});
  expect_right(empty);
}

TEST(AtenSegment, AReplayImposesTheRecordedLayouts) {
  NEEDS_ATEN;
  const Module m = parse_module(kSlice);
  const std::vector<Argument> given = arguments_of(4, 6, 5);
  fusebox::Run run = run_program(m, given, {.executor = Executor::kHost});
  ASSERT_FALSE(run.failure) << run.failure->message;
  EXPECT_EQ(run.crossings.at(0).strides, (std::vector<int64_t>{6, 1}));
  Bundle bundle = make_bundle(run, m, exact_inputs(run.fusion, given), given);
  Replay same = replay(bundle, {});
  for (const StageVerdict& v : same.stages) EXPECT_EQ(v.verdict, Verdict::kIdentical) << v.stage << ": " << v.why;
  bundle.ranks[0].crossings[0].strides = {11, 1};
  const Replay other = replay(bundle, {});
  ASSERT_FALSE(other.run.failure) << other.run.failure->message;
  EXPECT_EQ(other.run.crossings.at(0).strides, (std::vector<int64_t>{11, 1}));
}

TEST(AtenSegment, AWrongInferenceIsACodedError) {
  const auto code_of = [](const InferLayouts& infer) {
    try {
      Program(kSlice, arguments_of(4, 6, 5), infer);
    } catch (const Error& e) {
      return e.code;
    }
    return ErrorCode::kInternal;
  };
  const auto giving = [](std::vector<TensorLayout> layouts) {
    return [layouts](const Graph&, std::span<const BoundInput>) { return layouts; };
  };
  EXPECT_EQ(code_of(giving({})), ErrorCode::kNoLayout);
  EXPECT_EQ(code_of(giving({{{4, 6}, {6, 1}}})), ErrorCode::kNoLayout);
  EXPECT_EQ(code_of(giving({{{4, 5}, {6}}})), ErrorCode::kNoLayout);
  EXPECT_EQ(code_of(infer_by_record({})), ErrorCode::kNoLayout);
}

// The program of a bug report, with its slice run by ATen and every other op as a kernel of its own. The slice is not
// contiguous, and the kernel that reads it once took it for contiguous.
TEST(AtenSegment, AttentionWithItsSliceInAten) {
  NEEDS_ATEN;
  Module m = parse_module(read_text_file("corpus/programs/attention_mask_softmax.fir"));
  const Graph fusion = main_graph(m);
  std::vector<Step> steps;
  for (OpId id : fusion[Graph::body()].ops) {
    const Op& op = fusion[id];
    if (op.kind == OpKind::kInput || op.results.empty() || !fusion.is_tensor(op.results[0])) continue;
    Step step{StepKind::kAssign, {StepOperand::of(fusion[op.results[0]].name)}, {}, {}};
    step.attrs.set(AttrKey::kName, "s_" + fusion[op.results[0]].name);
    step.attrs.set_enum(AttrKey::kExecutor,
                        op.kind == OpKind::kSlice ? SegmentExecutor::kAten : SegmentExecutor::kKernel);
    steps.push_back(std::move(step));
  }
  const std::vector<Argument> given = make_arguments(fusion, find_input_specs(m, fusion.name, "host"), {});
  const auto run = [&](bool infers) {
    return run_program(m, given, {.executor = Executor::kHost, .steps = steps, .infer_contiguity = infers});
  };
  const fusebox::Run inferred = run(true), plain = run(false);
  for (const fusebox::Run* r : {&inferred, &plain}) {
    ASSERT_FALSE(r->failure) << r->failure->message;
    for (const CheckedOutput& c : check_outputs(*r, given))
      EXPECT_TRUE(c.comparison.ok) << c.comparison.message(c.name);
  }
  EXPECT_TRUE(asks_for_strides(inferred.compiled));
  EXPECT_FALSE(asks_for_strides(plain.compiled));
}

// -- fast calls

// Reads what the kernel is given.
class ReadingSession : public testing::HostSession {
 public:
  void start(const CudaReadyLaunch&, void** arguments, CudaStream) override {
    const float* y = *static_cast<float**>(arguments[0]);
    read.assign(y, y + 5);
  }
  std::vector<float> read;
};

using ReadingGpu = testing::IdleGpu<ReadingSession>;

TEST(AtenSegment, AFastCallGivesKernelsWhatAtenMade) {
  NEEDS_ATEN;
  const Program p(testing::program_text("aten_then_kernel"),
                  {make_argument(parse_input_option("x=f32[5] normal seed 1"), Dtype::kFloat, false)});
  std::vector<NamedKernel> kernels;
  for (size_t i = 0; i < p.compiled.kernels.size(); ++i)
    kernels.push_back({p.compiled.segmentation.segments[i].name, &p.compiled.kernels[i]});
  const auto forms = aten_forms(p.compiled);
  const InferSegment infer = [&](const std::string& name, std::span<const BoundInput> given) {
    return load_aten().infer(forms.at(name).graph, given);
  };
  const std::vector<uint64_t> addresses = {reinterpret_cast<uint64_t>(p.arguments[0].tensor.data())};
  EXPECT_FALSE(resolve_call(p.compiled.host, kernels, p.arguments, addresses).refused.empty());
  const ResolvedCall call = resolve_call(p.compiled.host, kernels, p.arguments, addresses, infer);
  ASSERT_TRUE(call.refused.empty()) << call.refused;
  const auto gpu = std::make_shared<ReadingGpu>();
  const auto fast = make_fast_call(call, kernels, p.arguments, gpu, forms);
  ASSERT_TRUE(fast);
  ASSERT_EQ(fast->outputs.size(), 2u);
  EXPECT_TRUE(fast->outputs[0].is_by_aten);
  EXPECT_FALSE(fast->outputs[1].is_by_aten);
  std::vector<std::shared_ptr<void>> made(2);
  const std::vector<uint64_t> outputs = {0, 4096};
  fast->start({.inputs = addresses.data(),
               .outputs = outputs.data(),
               .arena = 0,
               .scalars = nullptr,
               .stream = nullptr,
               .made = &made});
  EXPECT_TRUE(made[0]);
  EXPECT_FALSE(made[1]);
  ASSERT_EQ(gpu->starts.read.size(), 5u);
  const auto* x = reinterpret_cast<const float*>(p.arguments[0].tensor.data());
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(gpu->starts.read[i], -x[i]);
}

// Libraries of matrix products add in another order where memory is aligned otherwise, or where an axis of one element
// has another stride.
TEST(AtenSegment, ProductsDoNotDependOnWhereMemoryLies) {
  NEEDS_ATEN;
  const auto sums = [&](int64_t offset, const std::string& made) {
    const std::string text = R"(fusion @f {
  %x = input f32[16, 1, 32] contiguous
  %c = cast %x as f32
  %w = input f32[32] contiguous
  %y = linear )" + made + R"(, %w : f32[16, 1]
  output %y
}
)";
    const std::string at = " offset " + std::to_string(offset) + " normal seed 1";
    const std::vector<Argument> given = {
        make_argument(parse_input_option("x=f32[16, 1, 32]" + at), Dtype::kFloat, false),
        make_argument(parse_input_option("w=f32[32] normal seed 2"), Dtype::kFloat, false)};
    const fusebox::Run run = run_program(parse_module(text), given, {.executor = Executor::kHost});
    EXPECT_FALSE(run.failure);
    return as_tensor(run.outputs.at(0).value);
  };
  const TensorData first = sums(0, "%x");
  for (int64_t offset = 1; offset < 16; ++offset)
    EXPECT_FALSE(first_difference(first, sums(offset, "%x"))) << "at element " << offset;
  EXPECT_FALSE(first_difference(first, sums(0, "%c")));
}

// A copy of all between the elements would take 16 GiB.
TEST(AtenSegment, ProductsOfElementsFarApartTakeLittleMemory) {
  NEEDS_ATEN;
  const std::string text = R"(fusion @f {
  %x = input f32[5] contiguity [false]
  %w = input f32[5, 5] contiguous
  %y = linear %x, %w : f32[5]
  output %y
}
)";
  const auto product = [&](const std::string& layout) {
    const std::vector<Argument> given = {
        make_argument(parse_input_option("x=f32[5] " + layout + " integers -4 4 seed 1"), Dtype::kFloat, false),
        make_argument(parse_input_option("w=f32[5, 5] integers -4 4 seed 2"), Dtype::kFloat, false)};
    const fusebox::Run run = run_program(parse_module(text), given, {.executor = Executor::kHost});
    EXPECT_FALSE(run.failure) << run.failure->message;
    return as_tensor(run.outputs.at(0).value);
  };
  EXPECT_FALSE(first_difference(product("strides [1073741816] offset 1"), product("")));
  EXPECT_FALSE(first_difference(product("strides [1073741824]"), product("")));
}

}  // namespace
}  // namespace fusebox
