#include "ir/text/print.h"

#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "tests/unit/ir/row_sum_text.h"

namespace fusebox {
namespace {

std::string literal(Dtype dtype, double value) { return print_literal(dtype, from_double(dtype, value)); }

TEST(Print, LiteralsSayTheirDtypeWhereItIsNotObvious) {
  EXPECT_EQ(print_literal(Dtype::kIndex, constant_bits(Dtype::kIndex, -128)), "-128");
  EXPECT_EQ(print_literal(Dtype::kInt32, constant_bits(Dtype::kInt32, 5)), "5_i32");
  EXPECT_EQ(print_literal(Dtype::kUint64, constant_bits(Dtype::kUint64, ~uint64_t{0})), "18446744073709551615_u64");
  EXPECT_EQ(print_literal(Dtype::kBool, constant_bits(Dtype::kBool, true)), "true");
  EXPECT_EQ(literal(Dtype::kDouble, 1), "1.0");
  EXPECT_EQ(literal(Dtype::kDouble, 1e300), "1e+300");
  EXPECT_EQ(literal(Dtype::kDouble, 0.0883883), "0.0883883");
  EXPECT_EQ(literal(Dtype::kFloat, 0.1), "0.1_f32");
  EXPECT_EQ(literal(Dtype::kHalf, 0.1), "0.099975586_f16");
  EXPECT_EQ(literal(Dtype::kFloat, -0.0), "-0.0_f32");
  EXPECT_EQ(literal(Dtype::kFloat8E5m2, -INFINITY), "-inf_f8e5m2");
  EXPECT_EQ(literal(Dtype::kDouble, NAN), "nan");
  EXPECT_EQ(print_literal(Dtype::kFloat, {0x7fc00001, 0}), "0x7fc00001_f32");
  EXPECT_EQ(print_literal(Dtype::kDouble, {0x7ff8000000000001, 0}), "0x7ff8000000000001_f64");
  EXPECT_EQ(print_literal(Dtype::kFloat4E2m1x2, {0x21, 0}), "0x21_f4e2m1x2");
  EXPECT_EQ(print_literal(Dtype::kComplexFloat, constant_bits(Dtype::kComplexFloat, std::complex<double>(1, -0.0))),
            "c64(1.0, -0.0)");
}

TEST(Print, AProgramReadsLikeOne) {
  Graph g = fusion("row_sum");
  const std::vector<ValueId> mn = sizes(g, {"m", "n"});
  const ValueId m = mn[0], n = mn[1];
  const ValueId x = input(g, "x", Dtype::kBfloat16, {m, n});
  const ValueId f = cast(g, x, Dtype::kFloat, "f");
  const ValueId y = sum(g, f, {1}, {.name = "y"});
  output(g, y);
  EXPECT_EQ(print(g), kRowSumText);
  EXPECT_EQ(print_type(g, y), "f32[%m]");
  EXPECT_EQ(print_op(g, g[y].def), "%y = sum %f over [1] : f32[%m]");
  EXPECT_EQ(print_value(g, n), "%n");
  EXPECT_EQ(print_domain(g, g.tensor_of(y).logical[1]), "%y.i1");
}

TEST(Print, ATypeThatDoesNotFollowFromTheOpIsWrittenInFull) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {5, 7});
  const ValueId y = unary(g, OpKind::kNeg, x, "y");
  output(g, y);
  EXPECT_EQ(print_op(g, g[y].def), "%y = neg %x : f32[5, 7]");
  g.tensor_of(y).memory = MemoryType::kShared;
  g[g.tensor_of(y).logical[0]].parallel = ParallelType::kBlockX;
  EXPECT_NE(print(g).find("%y = neg %x : f32[i0 iter 5 block.x, i1 iter 7] shared\n"), std::string::npos) << print(g);
}

// `size` infers nothing, so a tensor result of it (in a graph that does not verify) is written in full. Braces mark
// that even if no axis has a name.
TEST(Print, ATensorThatSizeGivesIsWrittenInFull) {
  const std::string text =
      "fusion @f {\n"
      "  %a, %b = size : bf16[] {}, c128\n"
      "}\n";
  EXPECT_EQ(print(parse_graph(text)), text);
}

TEST(Print, ASchedulesTensorShowsHowItsLoopsCame) {
  Graph g = fusion("f");
  g.level = Level::kScheduled;
  const ValueId n = size(g, "n");
  const ValueId x = input(g, "x", Dtype::kFloat, {n});
  output(g, x);
  const TensorId t = g[x].tensor;
  const DomainId i0 = g[t].logical[0];
  IterDomain made;
  made.def = TransformId(0u);
  made.name = "o";
  const DomainId o = add_domain(g, t, made);
  made.name = "t";
  made.parallel = ParallelType::kBlockX;
  const DomainId in = add_domain(g, t, made);
  Transform split;
  split.inputs = {i0};
  split.outputs = {o, in};
  split.factor = constant_index(g, 128);
  g.transforms.push_back(split);
  g[t].transforms = {TransformId(0u)};
  g[t].loop = {o, in};
  g[t].inline_at = o;
  EXPECT_EQ(print(g),
            "scheduled @f {\n"
            "  %n = size\n"
            "  %x = input f32[i0 iter %n] contiguous {\n"
            "    o iter, t iter = split i0 by 128 inner\n"
            "    loop [o, t block.x]\n"
            "    inline_at o\n"
            "  }\n"
            "  output %x\n"
            "}\n");
}

TEST(Print, NamesThatAreNoWordsAreQuoted) {
  Graph g = fusion("a b");
  input_scalar(g, "x.y\n\"", Dtype::kFloat);
  EXPECT_EQ(print(g), "fusion @\"a b\" {\n  %\"x.y\\n\\\"\" = input f32\n}\n");
}

TEST(Print, Steps) {
  EXPECT_EQ(
      print(Step{StepKind::kSplit, {StepOperand::domain_of("y", "i1"), StepOperand::number(128)}, {"o", "t"}, {}}),
      "split %y.i1 by 128 -> o, t");
  Attrs on;
  on.set_enum(AttrKey::kParallel, ParallelType::kBlockX);
  EXPECT_EQ(print(Step{StepKind::kParallelize, {StepOperand::domain_of("y", "t")}, {}, on}),
            "parallelize %y.t on block.x");
  EXPECT_EQ(print(Step{StepKind::kReorder,
                       {StepOperand::of("y"), StepOperand::domain_of("y", "b"), StepOperand::domain_of("y", "a")},
                       {},
                       {}}),
            "reorder %y to [%y.b, %y.a]");
}

TEST(Print, InputSpecs) {
  InputSpec spec;
  spec.name = "x";
  spec.shape = {5, 7};
  spec.seed = 1;
  EXPECT_EQ(print(spec), "%x = f32[5, 7] normal seed 1");
  spec.strides = {14, 2};
  spec.offset = 3;
  spec.generator = InputGenerator::kUniform;
  spec.low = -1;
  EXPECT_EQ(print(spec), "%x = f32[5, 7] strides [14, 2] offset 3 uniform -1.0 1.0 seed 1");
  InputSpec scalar;
  scalar.name = "k";
  scalar.dtype = Dtype::kInt32;
  scalar.is_scalar = true;
  scalar.value = {4, 0};
  EXPECT_EQ(print(scalar), "%k = 4_i32");
}

}  // namespace
}  // namespace fusebox
