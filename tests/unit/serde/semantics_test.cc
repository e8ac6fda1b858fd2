// The last phase of decoding: steps follow their rows, and programs verify.
#include "serde/semantics.h"

#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/verify/verify.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;

// A module with %y = exp %x and one step for it.
Module with(Step step) {
  Module m;
  Graph& g = m.graphs.emplace_back(fusion("g"));
  output(g, unary(g, OpKind::kExp, input(g, "x", Dtype::kFloat, {size(g, "n")}), "y"));
  StepList& list = m.step_lists.emplace_back();
  list.graph = "g";
  list.steps.push_back(std::move(step));
  return m;
}

Step split() {
  return Step{StepKind::kSplit, {StepOperand::domain_of("y", "i1"), StepOperand::number(128)}, {"o", "t"}, {}};
}

void refused(const std::string& place, const Step& step) {
  const Module m = with(step);
  const std::string bytes = encode(m);
  EXPECT_TRUE(decode_module_structure(bytes_of(bytes)) == m);
  expect_error(ErrorCode::kInvalidField, "module.step_lists[0].steps[0]." + place,
               [&] { decode_module(bytes_of(bytes)); });
}

TEST(Semantics, AGoodStepPasses) {
  const Module m = with(split());
  EXPECT_TRUE(decode_module(bytes_of(encode(m))) == m);
  Step by_scalar = split();
  by_scalar.operands[1] = StepOperand::of("k");
  EXPECT_NO_THROW(decode_module(bytes_of(encode(with(by_scalar)))));
}

TEST(Semantics, StepsThatDoNotFollowTheirRow) {
  Step step = split();
  step.operands.pop_back();
  refused("operands", step);
  step = split();
  step.operands.push_back(StepOperand::number(1));
  refused("operands", step);
  step = split();
  step.operands[0] = StepOperand::of("y");
  refused("operands[0]", step);
  step = split();
  step.operands[0] = StepOperand::number(3);
  refused("operands[0]", step);
  step = split();
  step.operands[0].value.clear();
  refused("operands[0]", step);
  step = split();
  step.operands[1] = StepOperand::domain_of("y", "i0");
  refused("operands[1]", step);
  step = split();
  step.operands[0].integer = 1;
  refused("operands[0]", step);
  step = split();
  step.operands[1].value = "k";
  refused("operands[1]", step);
  step = split();
  step.attrs.set(AttrKey::kUnroll, int64_t{1});
  refused("attrs[0].key", step);
}

TEST(Semantics, StepsOfSegmentsAndBundlesAreCheckedToo) {
  Step step = split();
  step.operands.clear();
  Module m;
  m.segmentations.emplace_back().segments.emplace_back().steps.push_back(step);
  expect_error(ErrorCode::kInvalidField, "module.segmentations[0].segments[0].steps[0].operands",
               [&] { decode_module(bytes_of(encode(m))); });
  Bundle b;
  b.steps.emplace_back().steps.push_back(step);
  expect_error(ErrorCode::kInvalidField, "bundle.steps[0].steps[0].operands",
               [&] { decode_bundle(bytes_of(encode(b))); });
  Bundle staged;
  staged.stages.push_back({Stage::kSegments, with(step)});
  expect_error(ErrorCode::kInvalidField, "bundle.stages[0].module.step_lists[0].steps[0].operands",
               [&] { decode_bundle(bytes_of(encode(staged))); });
}

TEST(Semantics, AProgramThatDoesNotVerifyIsRefusedByGraphAndValue) {
  Module m = with(split());
  m.graphs.push_back(m.graphs[0]);
  m.graphs[1].name = "h";
  EXPECT_TRUE(decode_module(bytes_of(encode(m))) == m);
  // exp of a scalar gives no tensor.
  Graph& g = m.graphs[1];
  const ValueId y = *find_value(g, "y");
  g[g[y].def].operands[0] = *find_value(g, "n");
  const std::string bytes = encode(m);
  EXPECT_TRUE(decode_module_structure(bytes_of(bytes)) == m);
  try {
    decode_module(bytes_of(bytes));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, find_error(g)->code);
    EXPECT_EQ(error.place, "module.graphs[1] " + find_error(g)->place);
  }
}

// A bundle of %y = exp %x with the scalar %k beside it, and an input for each.
Bundle recorded() {
  Module m;
  Graph& g = m.graphs.emplace_back(fusion("g"));
  const ValueId x = input(g, "x", Dtype::kFloat, {size(g, "n")});
  input_scalar(g, "k", Dtype::kInt8);
  output(g, unary(g, OpKind::kExp, x, "y"));
  Bundle b;
  b.stages.push_back({Stage::kFusion, std::move(m)});
  b.steps.emplace_back().graph = "g";
  std::vector<InputRecord>& inputs = b.ranks.emplace_back().inputs;
  inputs.resize(2);
  inputs[0].spec.name = "x";
  inputs[0].spec.shape = {2};
  inputs[1].spec.name = "k";
  inputs[1].spec.dtype = Dtype::kInt8;
  inputs[1].spec.is_scalar = true;
  inputs[1].spec.value = {44, 0};
  return b;
}

void refused_bundle(ErrorCode code, const std::string& place, const Bundle& b) {
  expect_error(code, "bundle." + place, [&] { decode_bundle(bytes_of(encode(b))); });
}

TEST(Semantics, RecordedInputsAreThoseOfTheFusion) {
  EXPECT_TRUE(decode_bundle(bytes_of(encode(recorded()))) == recorded());
  const auto spec_of = [](Bundle& b, size_t i) -> InputSpec& { return b.ranks[0].inputs[i].spec; };
  Bundle b = recorded();
  spec_of(b, 1).value = {300, 0};
  refused_bundle(ErrorCode::kBadInputSpec, "ranks[0].inputs[1].spec %k", b);
  b = recorded();
  spec_of(b, 1).dtype = Dtype::kInt16;
  refused_bundle(ErrorCode::kInvalidField, "ranks[0].inputs[1].spec", b);
  b = recorded();
  spec_of(b, 0).is_scalar = true;
  spec_of(b, 0).shape.clear();
  refused_bundle(ErrorCode::kInvalidField, "ranks[0].inputs[0].spec", b);
  b = recorded();
  spec_of(b, 0).name = "z";
  refused_bundle(ErrorCode::kUnknownName, "ranks[0].inputs[0].spec %z", b);
  b = recorded();
  std::swap(b.ranks[0].inputs[0], b.ranks[0].inputs[1]);
  refused_bundle(ErrorCode::kInvalidField, "ranks[0].inputs[0].spec", b);
  b = recorded();
  b.ranks[0].inputs.push_back(b.ranks[0].inputs[1]);
  refused_bundle(ErrorCode::kInvalidField, "ranks[0].inputs[2].spec", b);
  b = recorded();
  b.steps[0].graph = "h";
  refused_bundle(ErrorCode::kInvalidField, "steps[0].graph", b);
}

TEST(Semantics, StagesHoldProgramsOfTheirLevel) {
  for (const Stage stage : {Stage::kConcretized, Stage::kScheduled, Stage::kKernel, Stage::kHost}) {
    Bundle b = recorded();
    Graph g = fusion("p");
    g.level = stage < Stage::kKernel ? Level::kKernel : Level::kMath;
    b.stages.push_back({stage, {}});
    b.stages[1].module.graphs.push_back(std::move(g));
    refused_bundle(ErrorCode::kInvalidField, "stages[1].module.graphs[0]", b);
  }
}

TEST(Semantics, PartsThatDoNotFitTogetherAreRefused) {
  Module m = with(split());
  m.step_lists[0].graph = "other";
  expect_error(ErrorCode::kUnknownName, "module @other", [&] { decode_module(bytes_of(encode(m))); });
}

}  // namespace
}  // namespace fusebox
