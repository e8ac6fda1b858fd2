// Runs, and what a bundle records of them.
#include "replay/record/record.h"

#include <cstring>
#include <gtest/gtest.h>

#include "ir/canonical/canonical.h"
#include "ir/text/parse.h"
#include "replay/data/input.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;

constexpr std::string_view kAccumulate = R"(fusion @accumulate {
  %n = size
  %total = input f32[%n] contiguous
  %x = input f32[%n] contiguous
  %sum = add %total, %x
  %twice = add %sum, %sum
  output %sum alias %total
  output %twice
}
inputs @accumulate host {
  %total = f32[7] normal seed 1
  %x = f32[7] normal seed 2
}
)";

std::vector<Argument> default_arguments(const Module& m) {
  return make_arguments(main_graph(m), find_input_specs(m, main_graph(m).name, "host"), {});
}

Bundle recorded(const Module& m, const std::vector<std::string>& given = {}) {
  const InputSpecs* defaults = find_input_specs(m, main_graph(m).name, "host");
  const auto arguments = make_arguments(main_graph(m), defaults, given);
  return make_bundle(run_program(m, arguments, {}), m, recorded_inputs(main_graph(m), defaults, given, arguments),
                     arguments);
}

TEST(RunProgram, GivesOutputsAndADigestForEachStage) {
  const Module m = parse_module(kAccumulate);
  const auto arguments = default_arguments(m);
  const auto run = run_program(m, arguments, {});
  ASSERT_FALSE(run.failure) << run.failure->message;
  ASSERT_EQ(run.outputs.size(), 2u);
  EXPECT_EQ(run.outputs[0].overwrites, "total");
  EXPECT_EQ(run.outputs[1].overwrites, "");
  const auto element = [](const TensorData& t) {
    float f;
    std::memcpy(&f, t.data(), sizeof f);
    return f;
  };
  const float sum = element(arguments[0].tensor) + element(arguments[1].tensor);
  EXPECT_EQ(element(run.outputs[0].value.tensor), sum);
  EXPECT_EQ(element(run.outputs[1].value.tensor), sum + sum);
  std::vector<std::string> stages;
  for (const StageDigest& d : run.digests) stages.push_back(d.name);
  EXPECT_EQ(stages, (std::vector<std::string>{"fusion", "concretized", "segments", "scheduled", "plan", "kernel",
                                              "host", "source", "crossings", "outputs"}));
}

TEST(RunProgram, LeavesTheCallersInputsAlone) {
  const Module m = parse_module(kAccumulate);
  const auto arguments = default_arguments(m);
  const Digest before = digest(arguments[0].tensor);
  (void)run_program(m, arguments, {});
  EXPECT_EQ(digest(arguments[0].tensor), before);
}

TEST(RunProgram, DigestsSurviveRenamingAndDeadNodes) {
  std::string text(kAccumulate);
  const Module m = parse_module(text);
  for (size_t at; (at = text.find("%twice")) != std::string::npos;) text.replace(at, 6, "%result");
  text.insert(text.find("  %sum ="), "  %dead = exp %x\n");
  const Module other = parse_module(text);
  const auto a = run_program(m, default_arguments(m), {}), b = run_program(other, default_arguments(other), {});
  EXPECT_EQ(a.digests, b.digests);
  ASSERT_EQ(a.sources.size(), b.sources.size());
  for (size_t i = 0; i < a.sources.size(); ++i) EXPECT_EQ(a.sources[i].text, b.sources[i].text);
}

TEST(RunProgram, AFailureOfItsScheduleIsAValue) {
  const Module m = parse_module(kAccumulate);
  RunOptions options;
  options.steps = parse_steps("split %nothing.i0 by 4 -> o, t\n");
  const auto run = run_program(m, default_arguments(m), options);
  ASSERT_TRUE(run.failure);
  EXPECT_EQ(run.failure->code, ErrorCode::kStepReferent);
  ASSERT_EQ(run.digests.size(), 1u);
  EXPECT_EQ(run.digests[0].name, "fusion");
}

TEST(RunProgram, WrongInputsThrow) {
  const Module m = parse_module(kAccumulate);
  auto arguments = default_arguments(m);
  arguments[1] = make_argument(*parse_input_option("x=f32[8] normal").spec);
  expect_error(ErrorCode::kSizeMismatch, "%x.i0", [&] { (void)run_program(m, arguments, {}); });
}

TEST(MakeArguments, SaysWhichInputIsWrong) {
  const Module m = parse_module(kAccumulate);
  const Graph& g = main_graph(m);
  const InputSpecs* defaults = find_input_specs(m, g.name, "host");
  expect_error(ErrorCode::kMissingInput, "%total", [&] { (void)make_arguments(g, nullptr, {}); });
  expect_error(ErrorCode::kUnknownName, "%sum", [&] { (void)make_arguments(g, defaults, {"sum=f32[7]"}); });
  expect_error(ErrorCode::kBadInput, "%x", [&] { (void)make_arguments(g, defaults, {"x=f16[7]"}); });
  expect_error(ErrorCode::kBadInput, "%x", [&] { (void)make_arguments(g, defaults, {"x=1.5_f32"}); });
}

TEST(Bundle, RoundTripsThroughBytes) {
  const Bundle b = recorded(parse_module(kAccumulate));
  EXPECT_EQ(decode_bundle(bytes_of(encode(b))), b);
  EXPECT_TRUE(find_stage(b, Stage::kHost));
  EXPECT_EQ(b.ranks.at(0).executor, "host");
  EXPECT_EQ(b.ranks[0].outputs.size(), 2u);
  EXPECT_TRUE(find_value(b.ranks[0].environment, "fusebox"));
}

TEST(Bundle, KeepsGeneratedInputsAsSpecsAndOthersAsBytes) {
  const Module m = parse_module(kAccumulate);
  EXPECT_FALSE(recorded(m).ranks[0].inputs[0].bytes);
  const auto arguments = default_arguments(m);
  const Bundle b = make_bundle(run_program(m, arguments, {}), m, exact_inputs(main_graph(m), arguments), arguments);
  ASSERT_TRUE(b.ranks[0].inputs[0].bytes);
  EXPECT_EQ(b.ranks[0].inputs[0].bytes->size(), 7u * 4);
  const auto again = bundle_arguments(b);
  for (size_t i = 0; i < arguments.size(); ++i) EXPECT_EQ(digest(again[i].tensor), digest(arguments[i].tensor));
}

TEST(Bundle, KeepsStridesAndScalars) {
  const Module m = parse_module(R"(fusion @scaled {
  %m, %n = size
  %x = input f32[%m, %n] contiguity [false, true]
  %s = input f32
  %y = mul %x, %s
  output %y
}
inputs @scaled host {
  %x = f32[3, 5] strides [8, 1] offset 2 uniform -1.0 1.0 seed 3
  %s = 2.5_f32
}
)");
  const auto arguments = default_arguments(m);
  for (const auto& inputs : {exact_inputs(main_graph(m), arguments),
                             recorded_inputs(main_graph(m), find_input_specs(m, "scaled", "host"), {}, arguments)}) {
    const Bundle b = make_bundle(run_program(m, arguments, {}), m, inputs, arguments);
    const auto again = bundle_arguments(decode_bundle(bytes_of(encode(b))));
    EXPECT_EQ(again[0].tensor.strides, (std::vector<int64_t>{8, 1}));
    EXPECT_EQ(again[0].tensor.offset, 2);
    EXPECT_EQ(digest(again[0].tensor), digest(arguments[0].tensor));
    EXPECT_EQ(again[1].bits, arguments[1].bits);
  }
}

TEST(Bundle, HoldsTheBeginningOfAFailuresLongText) {
  const Module m = parse_module(kAccumulate);
  const auto arguments = default_arguments(m);
  auto run = run_program(m, arguments, {});
  std::string log = "first error";
  while (log.size() < 200'000) log += " \u00e9";
  run.failure = failure_of(Error(ErrorCode::kCompileFailure, log, "kernel.cu"));
  const Bundle b = make_bundle(run, m, exact_inputs(main_graph(m), arguments), arguments);
  const std::string bytes = encode(b);
  const Bundle back = decode_bundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  const auto& failure = back.ranks.at(0).failure;
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::kCompileFailure);
  EXPECT_TRUE(failure->message.starts_with("first error"));
  EXPECT_TRUE(failure->message.ends_with("(cut)"));
  EXPECT_EQ(failure_of(Error(ErrorCode::kBadInput, "short", "%x")).message, "short");
}

TEST(Bundle, WithoutARunHasNoArguments) {
  Bundle b;
  b.stages.push_back({Stage::kFusion, parse_module(kAccumulate)});
  expect_error(ErrorCode::kInvalidField, "ranks", [&] { (void)bundle_arguments(b); });
}

}  // namespace
}  // namespace fusebox
