// Programs of 8,000 ops: what each stage makes of them is what it makes of a few. A stage whose cost grows with the
// square of the program does not come to an end here; tests/bench/growth.cc has the figures.
#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/module/step.h"
#include "ir/step/apply.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/pipeline/pipeline.h"
#include "passes/rewrite/rewrite.h"
#include "passes/segment/segment.h"

namespace fusebox {
namespace {

constexpr int kOps = 8000;

std::string name(int i) { return "t" + std::to_string(i); }

// Every op reads the one input, or the op before it.
Graph fan() {
  Graph g = fusion("fan");
  const auto n = sizes(g, {"m", "n"});
  const ValueId x = input(g, "x", Dtype::kFloat, {n[0], n[1]});
  for (int i = 0; i < kOps; ++i) output(g, unary(g, OpKind::kNeg, x, name(i)));
  return g;
}
Graph chain() {
  Graph g = fusion("chain");
  const auto n = sizes(g, {"m", "n"});
  ValueId v = input(g, "x", Dtype::kFloat, {n[0], n[1]});
  for (int i = 0; i < kOps; ++i) v = unary(g, OpKind::kNeg, v, name(i));
  output(g, v);
  return g;
}

// Pads of the one input, and slices of them that take the pads away again.
Graph views() {
  Graph g = fusion("views");
  const auto n = sizes(g, {"m", "n"});
  const ValueId x = input(g, "x", Dtype::kFloat, {n[0], n[1]});
  for (int i = 0; i < kOps; i += 2) {
    const ValueId padded = pad(g, x, {1, 0}, {}, name(i));
    output(g, padded);
    output(g, slice(g, padded, {0, 1}, {n[0], size_of(g, padded, 1)}, {}, name(i + 1)));
  }
  return g;
}
// A chain whose axes are known once the sizes are.
Graph reshapes() {
  Graph g = fusion("reshapes");
  const auto n = sizes(g, {"m", "n", "p", "q"});
  ValueId v = input(g, "x", Dtype::kFloat, {n[0], n[1]});
  input(g, "y", Dtype::kFloat, {n[2], n[3]});
  for (int i = 0; i < kOps; ++i) v = reshape(g, v, i % 2 == 0 ? Shape{n[2], n[3]} : Shape{n[0], n[1]}, name(i));
  output(g, v);
  return g;
}

std::vector<Step> split(const std::string& tensor) {
  return {{StepKind::kMerge, {StepOperand::domain_of(tensor, "i0"), StepOperand::domain_of(tensor, "i1")}, {"f"}, {}},
          {StepKind::kSplit, {StepOperand::domain_of(tensor, "f"), StepOperand::number(128)}, {"b", "u"}, {}}};
}

std::string loops(const Graph& g, const Tensor& t) {
  std::string result;
  for (DomainId d : loop_of(t)) result += g[d].name + " ";
  return result;
}

void expect_all_split(const Graph& g) {
  for (const Tensor& t : g.tensors)
    if (g[g[t.value].def].kind != OpKind::kInput) {
      ASSERT_EQ(loops(g, t), "b u ") << g[t.value].name;
    }
  EXPECT_FALSE(find_error(g));
}

TEST(LongPrograms, TransformLikeReachesAllReadersOfOneInput) {
  for (const Graph& program : {fan(), chain()}) {
    Graph g = program;
    apply(g, split(name(kOps / 2)));
    apply(g, Step{StepKind::kTransformLike, {StepOperand::of(name(kOps / 2))}, {}, {}});
    expect_all_split(g);
  }
}

TEST(LongPrograms, TransformLikeReachesAllThatAreListed) {
  Graph g = fan();
  apply(g, split(name(0)));
  Step step{StepKind::kTransformLike, {StepOperand::of(name(0))}, {}, {}};
  for (int i = kOps; i-- > 1;) step.operands.push_back(StepOperand::of(name(i)));
  apply(g, step);
  expect_all_split(g);
}

TEST(LongPrograms, EachTensorHasStepsOfItsOwn) {
  Graph g = fan();
  std::vector<Step> steps;
  for (int i = 0; i < kOps; ++i)
    for (const Step& s : split(name(i))) steps.push_back(s);
  apply(g, steps);
  expect_all_split(g);
}

TEST(LongPrograms, TheUnfusedPlanHasAKernelForEachOp) {
  for (const Graph& g : {fan(), chain()}) {
    const BoundInput x{.shape = {3, 5}};
    const Compiled c = compile(g, bind_sizes(g, std::span(&x, 1)), {});
    ASSERT_EQ(c.kernels.size(), static_cast<size_t>(kOps));
    int freed = 0, launched = 0;
    for (const Op& op : c.host.ops) {
      freed += op.kind == OpKind::kDeallocate;
      launched += op.kind == OpKind::kLaunch;
    }
    EXPECT_EQ(launched, kOps);
    // All but the outputs.
    EXPECT_EQ(freed, kOps - static_cast<int>(outputs(g).size()));
    for (int i : {0, 1, kOps / 2, kOps - 1}) {
      const size_t at = static_cast<size_t>(i);
      EXPECT_EQ(c.segmentation.segments[at].ops, std::vector<std::string>{name(i)});
      EXPECT_EQ(inputs(c.scheduled[at]).size(), 1u);
    }
  }
}

TEST(LongPrograms, MovesThatAreNoneOfTheOthersStay) {
  Graph g = views();
  for (const RewriteRow& row : rewrite_rows())
    if (row.name == "identity_moves") {
      EXPECT_FALSE(row.run(g, {}));
    }
  EXPECT_TRUE(g == views());
}

TEST(LongPrograms, EachSymbolicReshapeHasItsStep) {
  const Graph g = reshapes();
  const std::vector<BoundInput> given = {{.shape = {20, 10}}, {.shape = {40, 5}}};
  const std::vector<Step> steps = plan_concretize(g, bind_sizes(g, given));
  ASSERT_EQ(steps.size(), static_cast<size_t>(kOps));
  for (int i = 0; i < kOps; ++i) {
    EXPECT_EQ(steps[static_cast<size_t>(i)].kind, StepKind::kConcretizeReshape);
    EXPECT_EQ(steps[static_cast<size_t>(i)].operands[0], StepOperand::of(name(i)));
  }
}

TEST(LongPrograms, TheTextIsReadAgain) {
  const Graph g = chain();
  EXPECT_TRUE(parse_graph(print(g)) == g);
}

}  // namespace
}  // namespace fusebox
