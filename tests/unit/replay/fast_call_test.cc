// Fast calls give each kernel its arguments, on a session that only notes them.
#include "replay/run/fast_call.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/run/run.h"
#include "tests/unit/replay/host_session.h"
#include "tests/unit/replay/idle_gpu.h"

namespace fusebox {
namespace {

class NotingSession : public testing::HostSession {
 public:
  void start(const CudaReadyLaunch& launch, void** arguments, CudaStream stream) override {
    started.push_back({launch.grid[0], stream, {}});
    for (size_t i = 0; i < counts[started.size() - 1]; ++i)
      started.back().arguments.push_back(*static_cast<const uint64_t*>(arguments[i]));
  }
  void fill(CudaPointer to, uint8_t, int64_t bytes, CudaStream) override {
    if (fills_fail) throw Error(ErrorCode::kDeviceFailure, "a test made it fail");
    cleared.push_back({to, bytes});
  }
  void free(CudaPointer memory) override { freed.push_back(memory); }
  bool is_captured(CudaStream) override { return ++questions, captures; }

  CudaPointer zeroed_for_capture(CudaStream, int64_t bytes) override {
    if (kept_by_graphs.empty()) return 0;
    asked.push_back(bytes);
    const CudaPointer next = kept_by_graphs.back();
    kept_by_graphs.pop_back();
    return next;
  }

  struct Started {
    unsigned blocks;
    CudaStream stream;
    std::vector<uint64_t> arguments;
  };
  std::vector<size_t> counts;  // by launch: how many arguments to note
  std::vector<Started> started;
  std::vector<std::pair<CudaPointer, int64_t>> cleared;
  std::vector<CudaPointer> kept_by_graphs;  // what captured calls get, the last one first
  std::vector<int64_t> asked;               // the bytes that they asked for
  std::vector<CudaPointer> freed;
  int questions = 0;  // whether a stream is captured
  bool captures = false, fills_fail = false;
};

class NotingGpu : public testing::IdleGpu<NotingSession> {
 public:
  void keep_for_graph(CudaStream stream) override { kept_for.push_back(stream); }
  std::vector<CudaStream> kept_for;
};

struct Made {
  Compiled compiled;
  ResolvedCall resolved;
  std::shared_ptr<NotingGpu> gpu = std::make_shared<NotingGpu>();
  std::unique_ptr<FastCall> call;
};

std::unique_ptr<Made> make(const char* text) {
  const Module m = parse_module(text);
  const Graph& fusion = main_graph(m);
  auto made = std::make_unique<Made>();
  const auto arguments = make_arguments(fusion, find_input_specs(m, fusion.name, "host"), {});
  CompileOptions options;
  if (const StepList* list = find_steps(m, fusion.name)) options.steps = list->steps;
  options.inputs = bound_inputs(arguments);
  made->compiled = compile(fusion, bind_sizes(fusion, options.inputs), options);
  std::vector<NamedKernel> kernels;
  for (size_t i = 0; i < made->compiled.kernels.size(); ++i)
    kernels.push_back({made->compiled.segmentation.segments[i].name, &made->compiled.kernels[i]});
  const std::vector<uint64_t> addresses(arguments.size(), 512);
  made->resolved = resolve_call(made->compiled.host, kernels, arguments, addresses);
  for (const ResolvedStep& step : made->resolved.steps)
    if (step.kind == ResolvedStep::Kind::kLaunch) made->gpu->starts.counts.push_back(step.arguments.size());
  made->call = make_fast_call(made->resolved, kernels, arguments, made->gpu);
  return made;
}

// A program whose only input is %x, with five elements.
std::unique_ptr<Made> make_of_x(const std::string& fusion) {
  return make((fusion + "inputs @f host {\n  %x = f32[5] normal seed 1\n}\n").c_str());
}

TEST(FastCall, GivesKernelsTheAddressesAndOpenScalarsOfTheCall) {
  const auto made = make(R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %eps = input f32
  %t = exp %x
  %y = add %t, %eps
  output %y
}
inputs @f host {
  %x = f32[5] normal seed 1
  %eps = 0.5_f32
}
)");
  ASSERT_TRUE(made->call);
  ASSERT_EQ(made->call->outputs.size(), 1u);
  EXPECT_EQ(made->call->outputs[0].shape, std::vector<int64_t>{5});
  EXPECT_EQ(made->call->open_scalars, (std::vector<std::optional<Dtype>>{std::nullopt, Dtype::kFloat}));
  EXPECT_GE(made->call->arena_bytes, 20);
  const uint64_t input = 0x1000, output = 0x2000;
  const uint64_t scalars[] = {0, 0x40000000};
  int stream = 0;
  made->call->start({.inputs = &input, .outputs = &output, .arena = 0x3000, .scalars = scalars, .stream = &stream});
  const auto& started = made->gpu->starts.started;
  ASSERT_EQ(started.size(), 2u);
  const auto has = [](const auto& s, uint64_t value) { return std::ranges::count(s.arguments, value) == 1; };
  EXPECT_TRUE(has(started[0], 0x1000) && has(started[0], 0x3000) && !has(started[0], 0x2000));
  EXPECT_TRUE(has(started[1], 0x2000) && has(started[1], 0x3000) && has(started[1], 0x40000000));
  EXPECT_EQ(started[1].stream, &stream);
}

// A slice of an input begins behind the input's first element, and a kernel stores in the place of the view that is returned.
TEST(FastCall, GivesKernelsTheAddressesOfViews) {
  const auto made = make(R"(fusion @f {
  %n = size
  %x = input f32[%n, 4] contiguous
  %s = slice %x from [2, 0] to [%n, 4] by [1, 1]
  %e = exp %s
  %m = sub %n, 2
  %a = mul %m, 4
  %y = reshape %e to [%a]
  output %y
}
steps @f {
  assign of [%s] name "s" by view
  assign of [%e] name "e" by kernel
  assign of [%y] name "y" by view
}
inputs @f host {
  %x = f32[5, 4] normal seed 1
}
)");
  ASSERT_TRUE(made->call);
  ASSERT_EQ(made->call->outputs.size(), 1u);
  EXPECT_EQ(made->call->outputs[0].shape, std::vector<int64_t>{12});
  EXPECT_EQ(made->call->arena_bytes, 0);
  const uint64_t input = 0x1000, output = 0x2000;
  made->call->start({.inputs = &input, .outputs = &output, .arena = 0, .scalars = nullptr, .stream = nullptr});
  const auto& started = made->gpu->starts.started;
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(std::ranges::count(started[0].arguments, input + 2 * 4 * sizeof(float)), 1);
  EXPECT_EQ(std::ranges::count(started[0].arguments, output), 1);
  EXPECT_EQ(std::ranges::count(started[0].arguments, input), 0);
}

constexpr const char* kExp = R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %y = exp %x
  output %y
}
)";

TEST(FastCall, KeepsTheKernelsForTheGraphThatCapturesIt) {
  const auto made = make_of_x(kExp);
  ASSERT_TRUE(made->call);
  const uint64_t input = 0x1000, output = 0x2000;
  int stream = 0;
  const auto start = [&](CudaStream on) {
    made->gpu->starts.counts.push_back(0);
    made->call->start({.inputs = &input, .outputs = &output, .arena = 0, .scalars = nullptr, .stream = on});
  };
  start(&stream);
  EXPECT_TRUE(made->gpu->kept_for.empty());
  made->gpu->starts.captures = true;
  start(&stream);
  EXPECT_EQ(made->gpu->kept_for, std::vector<CudaStream>{&stream});
  EXPECT_EQ(made->gpu->starts.questions, 2);
  // The default stream is never captured, so a call on it asks nothing.
  start(nullptr);
  EXPECT_EQ(made->gpu->starts.questions, 2);
  EXPECT_EQ(made->gpu->kept_for.size(), 1u);
}

TEST(FastCall, AnOverwrittenInputIsNoOutput) {
  const auto made = make_of_x(R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %y = exp %x
  output %y alias %x
}
)");
  ASSERT_TRUE(made->call);
  EXPECT_TRUE(made->call->outputs.empty());
  EXPECT_EQ(made->call->overwritten, std::vector<bool>{true});
}

TEST(FastCall, ServesNoInputsThatOverlapAnOverwrittenOne) {
  const auto made = make(R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %y = input f32[%n] contiguous
  %z = add %x, %y
  output %z alias %x
}
inputs @f host {
  %x = f32[5] normal seed 1
  %y = f32[5] normal seed 2
}
)");
  ASSERT_TRUE(made->call);
  const auto serves = [&](uint64_t x, uint64_t y) {
    const uint64_t inputs[] = {x, y};
    return made->call->serves(inputs);
  };
  EXPECT_TRUE(serves(1000, 1020) && serves(1020, 1000));
  EXPECT_FALSE(serves(1000, 1016) || serves(1016, 1000) || serves(1000, 1000));
}

TEST(FastCall, OutputsAreInTheProgramsOrder) {
  const auto made = make_of_x(R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %y = exp %x
  %z = sum %y over [0]
  output %z
  output %y
}
)");
  ASSERT_TRUE(made->call);
  ASSERT_EQ(made->call->outputs.size(), 2u);
  EXPECT_TRUE(made->call->outputs[0].shape.empty());
  EXPECT_EQ(made->call->outputs[1].shape, std::vector<int64_t>{5});
  const uint64_t input = 0x1000;
  const uint64_t outputs[] = {0x2000, 0x3000}, scalars[] = {0};
  made->call->start({.inputs = &input, .outputs = outputs, .arena = 0, .scalars = scalars, .stream = nullptr});
  const auto& started = made->gpu->starts.started;
  ASSERT_EQ(started.size(), 2u);
  EXPECT_EQ(std::ranges::count(started[0].arguments, uint64_t{0x3000u}), 1);
  EXPECT_EQ(std::ranges::count(started[1].arguments, uint64_t{0x2000u}), 1);
}

TEST(FastCall, AnOutputThatIsAnInputNeedsTheHostProgram) {
  const auto made = make_of_x(R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %y = exp %x
  output %y
  output %x
}
)");
  EXPECT_FALSE(made->call);
}

constexpr const char* kCounting = R"(fusion @f {
  %n = size
  %x = input f32[%n] contiguous
  %y = sum %x over [0]
  output %y
}
steps @f {
  split %y.i0 by 4 -> o, t
  parallelize %y.o on grid.x
  parallelize %y.t on block.x
}
inputs @f host {
  %x = f32[32] normal seed 1
}
)";

// A launch leaves the counters of its blocks ready for the next one on its stream. Any other place is cleared first.
TEST(FastCall, ClearsCountersOncePerStream) {
  const auto made = make(kCounting);
  ASSERT_NE(made->call, nullptr);
  NotingSession& session = made->gpu->starts;
  session.counts.assign(8, session.counts.at(0));
  const uint64_t input = 0x1000, output = 0x2000, arena = 0x3000;
  int streams[2] = {};
  // Where the counters of a call lie, and how often memory was cleared for it.
  const auto start = [&](int* stream) {
    session.cleared.clear();
    made->call->start({.inputs = &input, .outputs = &output, .arena = arena, .scalars = nullptr, .stream = stream});
    const bool in_arena = std::ranges::any_of(session.started.back().arguments, [&](uint64_t a) {
      return a >= arena && std::ranges::count(session.cleared, a, [](const auto& c) { return c.first; }) > 0;
    });
    return std::pair(in_arena, session.cleared.size());
  };
  session.captures = true;
  EXPECT_EQ(start(&streams[0]), std::pair(true, size_t{1}));
  session.captures = false;
  start(&streams[0]);
  const auto own = session.cleared.at(0).first;
  EXPECT_EQ(session.cleared.size(), 1u);
  EXPECT_EQ(std::ranges::count(session.started.back().arguments, own), 1);
  EXPECT_EQ(start(&streams[0]), std::pair(false, size_t{0}));
  EXPECT_EQ(std::ranges::count(session.started.back().arguments, own), 1);
  // Another stream, and a capture on the first.
  EXPECT_EQ(start(&streams[1]), std::pair(true, size_t{1}));
  session.captures = true;
  EXPECT_EQ(start(&streams[0]), std::pair(true, size_t{1}));
  // A graph that keeps memory for each of its calls.
  session.kept_by_graphs = {0x50000, 0x40000};
  for (const CudaPointer kept : {CudaPointer{0x40000}, CudaPointer{0x50000}}) {
    EXPECT_EQ(start(&streams[0]), std::pair(false, size_t{0}));
    EXPECT_EQ(std::ranges::count(session.started.back().arguments, kept), 1);
  }
  EXPECT_EQ(session.asked, std::vector<int64_t>(2, session.asked.at(0)));
  EXPECT_GE(session.asked.at(0), 4);
  session.captures = false;
  EXPECT_EQ(start(&streams[0]), std::pair(false, size_t{0}));
  EXPECT_EQ(std::ranges::count(session.started.back().arguments, own), 1);
}

// For measuring: a launch that is started alone has cleared counters too, and no step of its own clears them.
TEST(FastCall, AStepThatIsStartedAloneCountsFromZero) {
  const auto made = make(kCounting);
  ASSERT_NE(made->call, nullptr);
  NotingSession& session = made->gpu->starts;
  session.counts.assign(8, session.counts.at(0));
  const auto steps = made->call->steps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(made->resolved.steps[steps[0]].kind, ResolvedStep::Kind::kLaunch);
  const uint64_t input = 0x1000, output = 0x2000, arena = 0x3000;
  int streams[2] = {};
  const auto start = [&](int* stream) {
    session.cleared.clear();
    made->call->start_step(
        steps[0], {.inputs = &input, .outputs = &output, .arena = arena, .scalars = nullptr, .stream = stream});
    return session.cleared.size();
  };
  EXPECT_EQ(start(&streams[0]), 1u);
  const auto own = session.cleared.at(0).first;
  EXPECT_EQ(std::ranges::count(session.started.back().arguments, own), 1);
  EXPECT_EQ(start(&streams[0]), 0u);
  EXPECT_EQ(std::ranges::count(session.started.back().arguments, own), 1);
  // On another stream they lie in the arena, and are cleared each time.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(start(&streams[1]), 1u);
    EXPECT_EQ(std::ranges::count(session.started.back().arguments, session.cleared.at(0).first), 1);
  }
}

TEST(FastCall, CountersThatCannotBeClearedAreFreedAndMadeAgain) {
  const auto made = make(kCounting);
  ASSERT_NE(made->call, nullptr);
  NotingSession& session = made->gpu->starts;
  session.counts.assign(8, session.counts.at(0));
  const uint64_t input = 0x1000, output = 0x2000, arena = 0x3000;
  int stream = 0;
  const auto start = [&] {
    made->call->start({.inputs = &input, .outputs = &output, .arena = arena, .scalars = nullptr, .stream = &stream});
  };
  session.fills_fail = true;
  EXPECT_THROW(start(), Error);
  EXPECT_EQ(session.freed.size(), 1u);
  session.fills_fail = false;
  start();
  // The counters are the call's own, not a part of the arena.
  EXPECT_EQ(session.cleared.size(), 1u);
  start();
  EXPECT_EQ(session.cleared.size(), 1u);
}

}  // namespace
}  // namespace fusebox
