// Steps on tensors: copies, recomputation, rfactor, memory, layout, meshes, symbolic axes.
#include "ir/domain/domain.h"
#include "ir/scalar/scalar.h"
#include "tests/unit/ir/step_support.h"

namespace fusebox::testing {
namespace {

std::string ops(const Graph& g) {
  std::string result;
  for (OpId op : ops_in_order(g)) {
    if (g[op].kind == OpKind::kInput || g[op].kind == OpKind::kSize) continue;
    result += std::string(row_of(g[op].kind).text);
    for (ValueId v : g[op].operands)
      if (v) result += " " + print_value(g, v);
    for (ValueId v : g[op].results) result += " -> " + g[v].name;
    result += "; ";
  }
  return result;
}

TEST(StepCopy, CacheAfterAnInputGivesAllReadersTheCopy) {
  const Graph g = scheduled(kRows, "cache_after %x copy cp_async cache streaming -> xc\ncache_after %f -> fc");
  EXPECT_EQ(ops(g),
            "set %x -> xc; cast %xc -> f; set %f -> fc; sum %fc -> s; broadcast %s -> sb; sub %fc %sb -> d; broadcast "
            "%w -> wb; "
            "mul %d %wb -> y; output %y; ");
  const Op& set = g[g[*find_value(g, "xc")].def];
  EXPECT_EQ(set.attrs.enumerator<CopyKind>(AttrKey::kCopyKind), CopyKind::kCpAsync);
  EXPECT_EQ(set.attrs.enumerator<CacheOp>(AttrKey::kCacheOp), CacheOp::kStreaming);
  EXPECT_EQ(refusal(g, "cache_after %y -> yc"), "E0302 %y");
  EXPECT_EQ(refusal(g, "cache_after %x -> xc"), "E0303 %xc");
}

TEST(StepCopy, CacheBeforeKeepsTheLoopsOnBoth) {
  const Graph g = scheduled(kRows, "split %y.i1 by 4 -> o, t\nparallelize %y.t on block.x\ncache_before %y -> yc");
  EXPECT_EQ(loops(g, "y"), "i0, o, t block.x");
  EXPECT_EQ(loops(g, "yc"), "i0, o, t block.x");
  EXPECT_EQ(refusal(g, "cache_before %x -> c"), "E0302 %x");
  const Graph r = scheduled(kRows, "split %s.i1 by 4 -> o, t\ncache_before %s -> sc");
  EXPECT_EQ(loops(r, "s"), "i0");
  EXPECT_EQ(loops(r, "sc"), "i0, o reduce, t reduce");
}

TEST(StepCopy, CacheForkMakesACopyTheOutput) {
  const std::string_view program =
      "fusion @f {\n %n = size\n %x = input f32[%n]\n %y = exp %x\n %z = neg %y\n output %y\n output %z\n}";
  EXPECT_EQ(ops(scheduled(program, "cache_fork %y -> yo")),
            "exp %x -> y; neg %y -> z; set %y -> yo; output %yo; output %z; ");
  const Graph g = parse_graph(program);
  EXPECT_EQ(refusal(g, "cache_fork %z -> zo"), "E0302 %z");
  EXPECT_EQ(refusal(parse_graph(kRows), "cache_fork %f -> fo"), "E0302 %f");
}

TEST(StepCopy, RecomputeGivesOneConsumerItsOwn) {
  const Graph g = scheduled(kRows, "split %f.i1 by 4 -> o, t\nrecompute %f for %d -> f2");
  EXPECT_EQ(ops(g),
            "cast %x -> f; sum %f -> s; broadcast %s -> sb; cast %x -> f2; sub %f2 %sb -> d; broadcast %w -> wb; mul "
            "%d %wb -> y; "
            "output %y; ");
  EXPECT_EQ(loops(g, "f2"), "i0, o, t");
  expect_refusals(g, R"(
    recompute %f for %s -> f3 => E0302 %s
    recompute %f for %y -> f3 => E0302 %y
    recompute %x for %f -> x2 => E0302 %x
  )");
}

TEST(StepRfactor, TheFirstStageReducesTheListedLoops) {
  const Graph g =
      scheduled(kRows, "split %s.i1 by 128 -> o, t\nparallelize %s.t on block.x\nrfactor %s over [%s.o] -> p");
  EXPECT_EQ(loops(g, "p"), "i0, o reduce, t block.x");
  EXPECT_EQ(list_text(g, tensor_named(g, "p").logical), "i0, o reduce, t block.x");
  EXPECT_EQ(list_text(g, tensor_named(g, "p").root), "i0, i1 reduce");
  EXPECT_EQ(loops(g, "s"), "i0, t reduce block.x");
  EXPECT_TRUE(tensor_named(g, "s").root.empty());
  EXPECT_EQ(constant_integer(g, g[domain_named(g, "s", "t")].extent), 128);
}

TEST(StepRfactor, TheOtherPartHasAnExtentOfItsOwn) {
  const Graph g = scheduled(kRows, "split %s.i1 by 128 -> o, t\nrfactor %s over [%s.t] -> p");
  EXPECT_EQ(list_text(g, tensor_named(g, "p").logical), "i0, o, t reduce");
  const ValueId extent = g[domain_named(g, "s", "o")].extent;
  Bindings bindings(g.values.size());
  bindings[find_value(g, "n")->index] = ConstantBits{300, 0};
  EXPECT_EQ(evaluate_integer(g, extent, bindings), 3);
}

TEST(StepRfactor, LeavesNoTransformOfNothing) {
  const Graph g = scheduled("fusion @f {\n %x = input f32[129]\n %s = sum %x over [0]\n output %s\n}",
                            "split %s.i0 by 16 -> a, b\nsplit %s.a by 10 -> c, d\nrfactor %s over [%s.c] -> r");
  for (const Transform& t : g.transforms) EXPECT_FALSE(t.inputs.empty());
  for (const IterDomain& d : g.domains) EXPECT_TRUE(!d.def || d.def.index < g.transforms.size()) << d.name;
  EXPECT_EQ(loops(g, "r"), "c reduce, d, b");
}

TEST(StepRfactor, WholeAxesNeedNoTransform) {
  const std::string_view program =
      "fusion @f {\n %m, %n = size\n %x = input f16[%m, %n]\n %s = sum %x over [0, 1]\n output %s\n}";
  const Graph g = scheduled(program, "rfactor %s over [%s.i0] -> p");
  EXPECT_EQ(list_text(g, tensor_named(g, "p").logical), "i0 reduce, i1");
  EXPECT_TRUE(tensor_named(g, "p").root.empty());
  EXPECT_EQ(loops(g, "s"), "i1 reduce");
  // The first stage keeps the precision in which a sum of halves is computed.
  EXPECT_EQ(g[*find_value(g, "p")].dtype, Dtype::kFloat);
  EXPECT_EQ(g[*find_value(g, "s")].dtype, Dtype::kHalf);
  // A second time, on the result of the first stage.
  const Graph again =
      scheduled(program,
                "split %s.i1 by 64 -> o, t\nrfactor %s over [%s.i0, %s.o] -> p\nsplit %p.i0 by 4 -> a, b\n"
                "rfactor %p over [%p.b] -> q");
  EXPECT_EQ(list_text(again, tensor_named(again, "q").logical), "a, b reduce, o, t");
  EXPECT_EQ(list_text(again, tensor_named(again, "p").logical), "a reduce, o reduce, t");
  EXPECT_EQ(list_text(again, tensor_named(again, "s").logical), "t reduce");
}

TEST(StepRfactor, WelfordHasThreeFirstStages) {
  const Graph g = scheduled(
      "fusion @f {\n %m, %n = size\n %x = input f32[%m, %n]\n %a, %v, %c = welford %x over [1]\n output %a\n output "
      "%v\n output %c\n}",
      "split %v.i1 by 32 -> o, t\nrfactor %v over [%v.o] -> a1, v1, c1");
  EXPECT_EQ(ops(g),
            "welford %x -> a1 -> v1 -> c1; welford %a1 %v1 %c1 -> a -> v -> c; output %a; output %v; output %c; ");
  for (std::string_view name : {"a1", "v1", "c1"}) EXPECT_EQ(loops(g, name), "i0, o reduce, t");
  for (std::string_view name : {"a", "v", "c"}) EXPECT_EQ(loops(g, name), "i0, t reduce");
}

TEST(StepRfactor, Refusals) {
  const Graph g = scheduled(kRows, "split %s.i1 by 128 -> o, t");
  expect_refusals(g, R"(
    rfactor %y over [%y.i1] -> p => E0302 %y
    rfactor %s over [%s.i0] -> p => E0302 %s.i0
    rfactor %s over [%s.o, %s.t] -> p => E0302 %s
    rfactor %s over [%s.i1] -> p => E0302 %s.i1
    rfactor %s over [] -> p => E0302 %s
    rfactor %s over [%s.o] -> p, q => E0302 %s
    rfactor %s over [%s.o] -> y => E0303 %y
  )");
  // The partial sums are kept in f32; those of a welford would be rounded.
  const Graph narrow = scheduled(
      "fusion @f {\n %m, %n = size\n %x = input f16[%m, %n]\n %a, %v, %c = welford %x over [1]\n output %a\n}",
      "split %a.i1 by 32 -> o, t");
  EXPECT_EQ(refusal(narrow, "rfactor %a over [%a.o] -> a1, v1, c1"), "E0302 %a");
}

TEST(StepTensor, MemoryLayoutAndStages) {
  Graph g = scheduled(kRows,
                      "set_memory_type %f in shared\nsplit %f.i1 by 4 -> o, t\n"
                      "set_allocation %f to [%f.o, %f.i0, %f.t] contiguity [1, 0, 1]\ncircular_buffer %f depth 3");
  const Tensor& f = tensor_named(g, "f");
  EXPECT_EQ(f.memory, MemoryType::kShared);
  EXPECT_EQ(list_text(g, f.allocation), "o, i0, t");
  EXPECT_EQ(f.contiguity, (std::vector{Contiguity::kTrue, Contiguity::kFalse, Contiguity::kTrue}));
  EXPECT_EQ(f.circular_depth, 3);
  run_steps(g, "set_allocation %f to [%f.i0, %f.i1]");
  EXPECT_TRUE(tensor_named(g, "f").allocation.empty());
  expect_refusals(g, R"(
    set_memory_type %y in shared => E0302 %y
    set_memory_type %x in global => E0302 %x
    set_allocation %f to [%f.i0, %f.o] => E0302 %f
    set_allocation %s to [%s.i0, %s.i1] => E0302 %s
    set_allocation %sb to [%sb.i0, %sb.i1] contiguity [1, 1] => E0302 %sb.i1
    set_allocation %f to [%f.i1, %f.i0] contiguity [1] => E0302 %f
    circular_buffer %f depth 1 => E0302 %f
    circular_buffer %y depth 2 => E0302 %y
    set_mesh %x devices [1, 1] => E0302 %x
    set_mesh %x devices [-1] => E0302 %x
  )");
}

TEST(StepConcretize, AxesAndReshapesAreResolvedBeforeScheduling) {
  Graph g = parse_graph(R"(fusion @f {
  %m, %n, %k, %l = size
  %x = input f32[%m, %n]
  %e = expand %x to [%k, -1]
  %r = reshape %x to [%k, %l]
  %y = neg %e
  %z = exp %r
  output %y
  output %z
})");
  expect_refusals(g, R"(
    split %y.i1 by 4 -> o, t => E0302 %e.i0
    concretize %y.i0 became iter => E0302 %y
    concretize %e.i1 became iter => E0302 %e.i1
    concretize %e.i0 became reduce => E0302 %e
    concretize_reshape %r order [2, 1] => E0302 %r
    concretize_reshape %y order [1, 1] => E0302 %y
  )");
  run_steps(g, "concretize %e.i0 became broadcast\nconcretize_reshape %r order [2, 2]");
  EXPECT_EQ(g.level, Level::kMath);
  EXPECT_EQ(list_text(g, tensor_named(g, "y").logical), "i0 broadcast, i1");
  EXPECT_EQ(list_text(g, tensor_named(g, "z").logical), "i0, i1");
  run_steps(g, "split %y.i1 by 4 -> o, t");
  EXPECT_EQ(refusal(g, "concretize %e.i0 became iter"), "E0302 %e.i0");
}

}  // namespace
}  // namespace fusebox::testing
