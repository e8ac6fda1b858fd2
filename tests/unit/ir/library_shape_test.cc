// Ops that ATen alone computes: what the verifier refuses of their results, and axes that only the inputs resolve.
#include <gtest/gtest.h>

#include "ir/build/library.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/step/apply.h"
#include "ir/text/parse.h"
#include "ir/verify/verify.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;

Graph product() {
  return parse_graph(
      "fusion @f {\n  %x = input f32[3, 4]\n  %w = input f32[4, 5]\n  %y = matmul %x, %w\n  output %y\n}");
}

TEST(LibraryShape, TheVerifierChecksExtentsAndDtypes) {
  Graph g = product();
  verify(g);
  const ValueId y = *find_value(g, "y"), x = *find_value(g, "x");
  Graph longer = g;
  longer[longer.tensor_of(y).logical[1]].extent = constant_index(longer, 6);
  expect_error(ErrorCode::kShapeMismatch, "%y", [&] { verify(longer); });
  Graph contracted = g;
  contracted[contracted.tensor_of(x).logical[1]].extent = constant_index(contracted, 6);
  expect_error(ErrorCode::kShapeMismatch, "%y", [&] { verify(contracted); });
  Graph wider = g;
  wider[y].dtype = Dtype::kDouble;
  expect_error(ErrorCode::kDtypeMismatch, "%y", [&] { verify(wider); });
}

// An axis that the input resolves to one element stretches to the other operand's.
TEST(LibraryShape, ABatchAxisIsResolvedByTheInputs) {
  Graph g = fusion("f");
  const ValueId b = size(g, "b"), k = size(g, "k");
  const ValueId x = input(g, "x", Dtype::kFloat, {b, 3, k});
  const DomainId open = g.tensor_of(x).logical[0];
  g[open].iter_type = IterType::kSymbolic;
  g.tensor_of(x).contiguity.clear();
  const ValueId w = input(g, "w", Dtype::kFloat, {size(g, "n"), k, 5});
  const ValueId y = matmul(g, x, w, "y"), s = cumsum(g, x, 0, {}, "s");
  output(g, y);
  output(g, s);
  EXPECT_EQ(g[g.tensor_of(y).logical[0]].iter_type, IterType::kIteration);
  EXPECT_EQ(g[g.tensor_of(s).logical[0]].iter_type, IterType::kSymbolic);
  for (const int64_t extent : {1, 6}) {
    const std::vector<BoundInput> inputs = {{.shape = {extent, 3, 4}}, {.shape = {6, 4, 5}}};
    const Bindings sizes = bind_sizes(g, inputs);
    Graph resolved = g;
    apply(resolved, plan_concretize(g, sizes));
    verify(resolved);
    EXPECT_EQ(evaluate_shape(resolved, *find_value(resolved, "y"), bind_sizes(resolved, inputs)),
              (std::vector<int64_t>{6, 3, 5}));
    EXPECT_EQ(resolved[resolved.tensor_of(*find_value(resolved, "s")).logical[0]].iter_type,
              extent == 1 ? IterType::kBroadcast : IterType::kIteration);
  }
  expect_error(ErrorCode::kSizeMismatch, "%x.i0",
               [&] { bind_sizes(g, std::vector<BoundInput>{{.shape = {2, 3, 4}}, {.shape = {6, 4, 5}}}); });
  expect_error(ErrorCode::kSizeMismatch, "%w.i0", [&] {
    Graph h = fusion("h");
    const ValueId a = input(h, "x", Dtype::kFloat, {size(h, "m"), size(h, "k")});
    output(h, matmul(h, a, input(h, "w", Dtype::kFloat, {size(h, "j"), size(h, "n")})));
    bind_sizes(h, std::vector<BoundInput>{{.shape = {3, 4}}, {.shape = {5, 2}}});
  });
}

TEST(LibraryShape, ACountIsAtMostTheExtent) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {size(g, "n")});
  const ValueId k = input_scalar(g, "k", Dtype::kIndex);
  output(g, topk(g, x, k, 0).values);
  const auto bound = [&](int64_t count) {
    return bind_sizes(
        g, std::vector<BoundInput>{{.shape = {4}}, {.is_scalar = true, .bits = {static_cast<uint64_t>(count), 0}}});
  };
  bound(4);
  expect_error(ErrorCode::kSizeMismatch, "%x.i0", [&] { bound(5); });
}

// The index is as long as the tensor or shorter, but for the axis along which it adds.
TEST(LibraryShape, AnIndexLiesWithinTheTensor) {
  const auto added = [](const char* index, const char* axis) {
    return parse_graph(std::string("fusion @f {\n  %x = input f32[3, 4]\n  %i = input i64") + index +
                       "\n  %s = input f32" + index + "\n  %y = scatter_add %x, %i, %s axis " + axis +
                       "\n  output %y\n}");
  };
  for (const char* fits : {"[9, 4]", "[9, 2]", "[0, 1]"}) verify(added(fits, "0"));
  expect_error(ErrorCode::kShapeMismatch, "5:3", [&] { verify(added("[9, 5]", "0")); });
  expect_error(ErrorCode::kShapeMismatch, "5:3", [&] { verify(added("[9, 4]", "-1")); });
  Graph g = added("[9, 4]", "0");
  const ValueId x = *find_value(g, "x");
  g[g.tensor_of(x).logical[1]].extent = constant_index(g, 3);
  expect_error(ErrorCode::kShapeMismatch, "%y", [&] { verify(g); });

  Graph open = fusion("f");
  const ValueId m = size(open, "m"), n = size(open, "n"), k = size(open, "k");
  const ValueId to = input(open, "x", Dtype::kFloat, {m, n}), places = input(open, "i", Dtype::kInt32, {k, 4}),
                source = input(open, "s", Dtype::kFloat, {k, 4});
  output(open, scatter_add(open, to, places, source, 0, "y"));
  const auto bind = [&](int64_t extent) {
    const std::vector<BoundInput> inputs = {{.shape = {2, extent}}, {.shape = {5, 4}}, {.shape = {5, 4}}};
    return bind_sizes(open, inputs);
  };
  bind(4);
  expect_error(ErrorCode::kSizeMismatch, "%i.i1", [&] { bind(3); });
}

TEST(LibraryShape, AScaledProductTakesNumbersOfEightBits) {
  const auto product = [](const char* a, const char* scale, const char* as) {
    return parse_graph(std::string("fusion @f {\n  %a = input ") + a + "\n  %b = input f8e5m2[4, 5]\n  %s = input " +
                       scale + "\n  %t = input f32[5]\n  %y = scaled_mm %a, %b, %s, %t" + as + "\n  output %y\n}");
  };
  for (const char* scale : {"f32[]", "f32[3]"}) verify(product("f8e4m3[3, 4]", scale, " as bf16"));
  expect_error(ErrorCode::kUnsupportedDtype, "6:3", [&] { product("f32[3, 4]", "f32[]", " as bf16"); });
  expect_error(ErrorCode::kUnsupportedDtype, "6:3", [&] { product("f8e4m3[3, 4]", "f32[]", " as f64"); });
  expect_error(ErrorCode::kBadAttribute, "6:3", [&] { product("f8e4m3[3, 4]", "f32[]", ""); });
  expect_error(ErrorCode::kDtypeMismatch, "6:3", [&] { product("f8e4m3[3, 4]", "f64[]", " as bf16"); });
  expect_error(ErrorCode::kRankMismatch, "6:3", [&] { product("f8e4m3[3, 4]", "f32[3, 1]", " as bf16"); });
  expect_error(ErrorCode::kShapeMismatch, "6:3", [&] { product("f8e4m3[3, 4]", "f32[2]", " as bf16"); });
  expect_error(ErrorCode::kShapeMismatch, "6:3", [&] { product("f8e4m3[3, 5]", "f32[]", " as bf16"); });
}

}  // namespace
}  // namespace fusebox
