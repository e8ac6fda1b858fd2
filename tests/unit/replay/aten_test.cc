// The reference's ops that move elements, its errors, and its results.
#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/compare.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

class Aten : public ::testing::Test {
 protected:
  void SetUp() override {
    aten_ = find_aten();
    if (!aten_) GTEST_SKIP() << "PyTorch is not there";
  }
  Argument made(const std::string& spec) { return make_argument(parse_input_spec("x", spec)); }
  // The elements of the only output, in row-major order.
  std::vector<double> run(const std::string& program, const std::vector<Argument>& arguments) {
    const Graph g = parse_graph(program);
    last_ = aten_->evaluate(g, arguments);
    const TensorData t = contiguous_copy(result_of(last_.outputs.at(0)));
    shape_ = t.shape;
    std::vector<double> values;
    for (int64_t i = 0; i < element_count(t.shape); ++i) values.push_back(to_double(t.dtype, load_element(t, i)));
    return values;
  }
  Argument list(Dtype d, const std::vector<int64_t>& shape, const std::vector<double>& values) {
    TensorData t = allocate_tensor(d, shape);
    for (size_t i = 0; i < values.size(); ++i) store_element(t, static_cast<int64_t>(i), from_double(d, values[i]));
    return Argument::of(t);
  }

  const AtenApi* aten_ = nullptr;
  Evaluation last_;
  std::vector<int64_t> shape_;
};

using Numbers = std::vector<double>;
using Extents = std::vector<int64_t>;

// A library may take subnormal numbers as 0, and then an infinity times one is NaN.
TEST_F(Aten, ProductsMayLoseSubnormals) {
  const std::string program =
      "fusion @f {\n  %x = input f32[1, 2] contiguous\n  %w = input f32[2, 1] contiguous\n"
      "  %y = matmul %x, %w : f32[1, 1]\n  output %y\n}\n";
  const auto accepts = [&](double x, double w, double result) {
    (void)run(program, {list(Dtype::kFloat, {1, 2}, {x, 1.0}), list(Dtype::kFloat, {2, 1}, {w, 2.0})});
    TensorData t = allocate_tensor(Dtype::kFloat, {1, 1});
    store_element(t, 0, from_double(Dtype::kFloat, result));
    return compare(t, last_.outputs.at(0)).ok;
  };
  EXPECT_TRUE(accepts(INFINITY, 0x1p-140, NAN) && accepts(INFINITY, 0x1p-140, INFINITY));
  EXPECT_FALSE(accepts(INFINITY, 0x1p-120, NAN));
  EXPECT_TRUE(accepts(0x1p127, 0x1p-127, 2.0) && accepts(0x1p127, 0x1p-127, 3.0));
  EXPECT_FALSE(accepts(0x1p126, 0x1p-126, 2.0));
}

// Beside a jump of the condition %t a bound is as wide as the distance that the branches allow, and no wider.
TEST_F(Aten, AFastLogarithmOfANegativeSubnormalNumberIsFree) {
  for (const auto& [input, bound] : {std::pair("-1e-40 -1e-40", INFINITY), std::pair("-1.0 -1.0", 0.0f)}) {
    (void)run("fusion @f {\n  %x = input f32[1] contiguous\n  %y = log10 %x fast\n  output %y\n}\n",
              {made("f32[1] constant " + std::string(input))});
    EXPECT_EQ(to_double(Dtype::kDouble, load_element(last_.outputs.at(0).bound, 0)), bound) << input;
  }
}

TEST_F(Aten, BoundsBesideAJumpAreTight) {
  const auto bound_of = [&](const std::string& lines) {
    (void)run("fusion @f {\n  %x = input f32[1] contiguous\n  %r = rsqrt %x\n  %t = ge %r, 0.3779645_f32\n" + lines +
                  "  output %y\n}\n",
              {made("f32[1] constant 7.0 7.0")});
    double most = 0;
    const TensorData& bounds = last_.outputs.at(0).bound;
    for (int64_t i = 0; i < bounds.storage_elems; ++i)
      most = std::max(most, to_double(Dtype::kDouble, load_element(bounds, i)));
    return most;
  };
  const auto is_near = [](double bound, double expected) { return bound >= expected && bound <= expected * 1.001; };
  // An integer sum is free only where it may leave its range.
  const auto sum = [&](const std::string& dtype, const std::string& other) {
    return bound_of("  %a = where %t, 1_" + dtype + ", 0_" + dtype + "\n  %b = where %t, " + other + ", " + other +
                    "\n  %c = cat [%a, %b] axis 0\n  %y = sum %c over [0] as " + dtype + "\n");
  };
  EXPECT_EQ(sum("i64", "9223372036854775000_i64"), 1);
  EXPECT_EQ(sum("i64", "-9223372036854775000_i64"), 1);
  EXPECT_EQ(sum("u64", "18446744073709551000_u64"), 1);
  EXPECT_EQ(sum("i64", "9223372036854775807_i64"), INFINITY);
  EXPECT_EQ(sum("u64", "18446744073709551615_u64"), INFINITY);
  // Comparisons and orders of the largest integers.
  EXPECT_EQ(bound_of("  %z = where %t, 9223372036854775811_u64, 9223372036854775809_u64\n"
                     "  %y = gt %z, 9223372036854775806_u64\n"),
            0);
  EXPECT_EQ(bound_of("  %z = where %t, 9223372036854775811_u64, 9223372036854775809_u64\n"
                     "  %y = gt %z, 9223372036854775807_u64\n"),
            1);
  EXPECT_TRUE(is_near(bound_of("  %z = where %t, 18446744073709551615_u64, 18446744073709551613_u64\n"
                               "  %y, %i = cummax %z axis 0\n"),
                      2));
  // A sum of one, and one beside a certain infinity.
  EXPECT_TRUE(is_near(bound_of("  %z = where %t, 1.0_f32, 3.0_f32\n  %y = sum %z over [0]\n"), 2));
  EXPECT_EQ(bound_of("  %z = where %t, 1.0_f32, 3.0_f32\n  %a = div 1.0_f32, 0.0_f32\n  %b = where %t, %a, %a\n"
                     "  %c = cat [%z, %b] axis 0\n  %y = sum %c over [0]\n"),
            0);
  // The sign of a zero is known where no branch changes it.
  EXPECT_EQ(bound_of("  %z = where %t, 0.0_f32, 0.0_f32\n  %y = signbit %z\n"), 0);
  EXPECT_EQ(bound_of("  %z = where %t, 1.0_f32, 3.0_f32\n  %p = mul %z, 0.0_f32\n  %y = signbit %p\n"), 0);
  EXPECT_EQ(bound_of("  %z = where %t, -1.0_f32, 3.0_f32\n  %p = mul %z, 0.0_f32\n  %y = signbit %p\n"), 1);
  // An infinity widened: its distance to the numbers of the narrow dtype, or to the other infinity.
  const std::string infinity = "  %a = div 1.0_f16, 0.0_f16\n  %n = neg %a\n";
  EXPECT_TRUE(is_near(bound_of(infinity + "  %z = where %t, %a, 1.0_f16\n  %y = cast %z as f32\n"), 0x1p128));
  EXPECT_TRUE(is_near(bound_of(infinity + "  %z = where %t, %a, %n\n  %y = cast %z as f32\n"), 0x1p129));
}

// A product of complex numbers sums two real products in each part. One that underflows errs by half of the smallest
// number.
TEST_F(Aten, ComplexProductsUnderflowInEachPart) {
  const std::string program =
      "fusion @f {\n  %x = input c64[1, 1] contiguous\n  %w = input c64[1, 1] contiguous\n"
      "  %y = matmul %x, %w : c64[1, 1]\n  output %y\n}\n";
  const auto complex = [](double re, double im) {
    TensorData t = allocate_tensor(Dtype::kComplexFloat, {1, 1});
    store_element(t, 0, from_complex(Dtype::kComplexFloat, {re, im}));
    return t;
  };
  // Each product is 0.75 of the smallest number, so it is rounded up: 2 in each part instead of 1.5.
  (void)run(program, {Argument::of(complex(0x1.8p-100, 0x1.8p-100)), Argument::of(complex(0x1p-50, -0x1p-50))});
  const auto accepts = [&](double re, double im) {
    return compare(complex(re * 0x1p-149, im * 0x1p-149), last_.outputs.at(0)).ok;
  };
  EXPECT_TRUE(accepts(1, 0) && accepts(2, 0) && accepts(3, 1));
  EXPECT_FALSE(accepts(6, 0) || accepts(2, 5));
}

// Near 3 pi / 2 CUDA's tan of floats errs by up to four units in the last place, ours by one.
TEST_F(Aten, WhatAtenComputesOnAGpuHasTheBoundsOfCuda) {
  const Module m = parse_module("fusion @f {\n  %x = input f32[1] contiguous\n  %y = tan %x\n  output %y\n}\n");
  const std::vector<Argument> inputs = {list(Dtype::kFloat, {1}, {4.7082255})};
  const auto bound = [&](std::vector<std::string> by_cuda) {
    const Evaluation e =
        load_aten().evaluate(m.graphs[0], inputs, {.bounds = true, .intermediates = {}, .by_cuda = std::move(by_cuda)});
    return *reinterpret_cast<const double*>(e.outputs.at(0).bound.data());
  };
  EXPECT_GT(bound({"y"}), 3 * bound({}));
  EXPECT_EQ(bound({"x"}), bound({}));
  // Random numbers are made of the same ops everywhere.
  const Module random =
      parse_module("fusion @f {\n  %y = normal 0.0_f32, 1.0_f32 seed 1 offset 0 of [4] as f32\n  output %y\n}\n");
  const auto drawn = [&](std::vector<std::string> by_cuda) {
    return load_aten().evaluate(random.graphs[0], {},
                                {.bounds = true, .intermediates = {}, .by_cuda = std::move(by_cuda)});
  };
  EXPECT_EQ(
      std::memcmp(drawn({"y"}).outputs.at(0).bound.data(), drawn({}).outputs.at(0).bound.data(), 4 * sizeof(double)),
      0);
}

// A library may scale parts of a sum before it adds them up. Where these overflow, an infinity may become NaN.
TEST_F(Aten, ScaledProductsMayOverflowInParts) {
  const auto accepts = [&](const std::string& scale, double result) {
    const std::string program =
        "fusion @f {\n  %x = input bf16[1, 2] contiguous\n  %w = input bf16[1, 2] contiguous\n"
        "  %y = linear %x, %w\n  %f = cast %y as f32\n  %p = mul %f, " +
        scale + "\n  %z = cast %p as bf16\n  output %z\n}\n";
    (void)run(program,
              {list(Dtype::kBfloat16, {1, 2}, {-INFINITY, 0x1.fep127}), list(Dtype::kBfloat16, {1, 2}, {-1.0, -1.0})});
    TensorData t = allocate_tensor(Dtype::kBfloat16, {1, 1});
    store_element(t, 0, from_double(Dtype::kBfloat16, result));
    return compare(t, last_.outputs.at(0)).ok;
  };
  EXPECT_TRUE(accepts("-1.5_f32", -INFINITY) && accepts("-1.5_f32", NAN));
  EXPECT_TRUE(accepts("-1.0_f32", -INFINITY));
  EXPECT_FALSE(accepts("-1.0_f32", NAN));
}

TEST_F(Aten, ViewsAndShapes) {
  const Argument x = list(Dtype::kFloat, {2, 3}, {0, 1, 2, 3, 4, 5});
  const std::string head = "fusion @f {\n  %x = input f32[2, 3]\n";
  EXPECT_EQ(run(head + "  %y = permute %x dims [1, 0]\n  output %y\n}", {x}), (Numbers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(run(head + "  %y = reshape %x to [3, 2]\n  output %y\n}", {x}), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(shape_, (Extents{3, 2}));
  EXPECT_EQ(run(head + "  %y = slice %x from [0, 1] to [2, 3] by [1, 1]\n  output %y\n}", {x}), (Numbers{1, 2, 4, 5}));
  EXPECT_EQ(run(head + "  %y = broadcast_in_dim %x to [2, 2, 3] dims [0, 2]\n  output %y\n}", {x}),
            (Numbers{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(last_.outputs[0].reference.strides[1], 0);
  EXPECT_EQ(run(head + "  %y = pad %x by [1, 0]\n  output %y\n}", {x}), (Numbers{0, 0, 1, 2, 0, 3, 4, 5}));
  EXPECT_EQ(run(head + "  %y = pad %x value 7.0 by [-1, 0, 0, 1]\n  output %y\n}", {x}), (Numbers{1, 2, 4, 5, 7, 7}));
  EXPECT_EQ(run(head + "  %y = cat [%x, %x] axis 1\n  output %y\n}", {x}),
            (Numbers{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(run(head + "  %y = triu %x\n  output %y\n}", {x}), (Numbers{0, 1, 2, 0, 4, 5}));
  EXPECT_EQ(run(head + "  %y = triu %x, 1\n  output %y\n}", {x}), (Numbers{0, 1, 2, 0, 0, 5}));
  EXPECT_EQ(run(head + "  %y = select %x, -1 axis 1\n  output %y\n}", {x}), (Numbers{2, 5}));
  EXPECT_TRUE(last_.outputs[0].is_exact());
}

// A fast op's bound is wider than that of an exact one, for every op that has a fast form. For rsqrt both are 2 ulp.
TEST_F(Aten, FastOpsHaveBounds) {
  const Argument x = list(Dtype::kFloat, {1}, {0.7}), y = list(Dtype::kFloat, {1}, {1.9});
  for (const OpRow& row : op_rows()) {
    if (!row.accepts(AttrKey::kFast)) continue;
    const bool is_binary = row.format->slot_count == 2;
    const std::string head = "fusion @f {\n  %x = input f32[1]\n  %z = input f32[1]\n  %y = " + std::string(row.text) +
                             (is_binary ? " %x, %z" : " %x");
    double bounds[2];
    for (const bool fast : {false, true}) {
      run(head + (fast ? " fast" : "") + "\n  output %y\n}", {x, y});
      const Evaluated& e = last_.outputs[0];
      bounds[fast] = e.is_exact() ? 0 : to_double(Dtype::kDouble, load_element(e.bound, 0));
    }
    if (row.kind == OpKind::kRsqrt)
      EXPECT_GE(bounds[1], bounds[0]);
    else
      EXPECT_GT(bounds[1], bounds[0]) << row.text;
    EXPECT_LT(bounds[1], 1e-3) << row.text;
  }
}

TEST_F(Aten, IndexedOps) {
  const Argument x = list(Dtype::kFloat, {2, 3}, {0, 1, 2, 3, 4, 5});
  const std::string head = "fusion @f {\n  %x = input f32[2, 3]\n";
  const Argument two = list(Dtype::kInt64, {2}, {2, 0});
  EXPECT_EQ(run(head + "  %i = input i64[2]\n  %y = index_select %x, %i axis 1\n  output %y\n}", {x, two}),
            (Numbers{2, 0, 5, 3}));
  const Argument square = list(Dtype::kInt32, {2, 2}, {2, 0, 1, 1});
  EXPECT_EQ(run(head + "  %i = input i32[2, 2]\n  %y = gather %x, %i axis 1\n  output %y\n}", {x, square}),
            (Numbers{2, 0, 4, 4}));
  const Argument column = list(Dtype::kInt64, {2, 1}, {2, 1});
  EXPECT_EQ(run(head + "  %i = input i64[2, 1]\n  %y = take_along_axis %x, %i axis 1\n  output %y\n}", {x, column}),
            (Numbers{2, 4}));
  const std::string scatter =
      head + "  %i = input i64[2, 2]\n  %s = input f32[2, 2]\n  %y = scatter %x, %i, %s axis 1\n  output %y\n}";
  const Argument source = list(Dtype::kFloat, {2, 2}, {7, 8, 9, 10});
  EXPECT_EQ(run(scatter, {x, list(Dtype::kInt64, {2, 2}, {2, 0, 1, 0}), source}), (Numbers{8, 1, 7, 10, 9, 5}));
  EXPECT_TRUE(last_.outputs[0].is_exact());
  // Two sources for one place: either result passes.
  run(scatter, {x, list(Dtype::kInt64, {2, 2}, {2, 0, 1, 1}), source});
  EXPECT_EQ(last_.ambiguous, 1);
  // No element is read, so every index is right.
  EXPECT_EQ(run("fusion @f {\n  %n = size\n  %x = input f32[%n, 3, %n]\n  %y = select %x, 7 axis 2\n  output %y\n}",
                {made("f32[0, 3, 0] normal")}),
            Numbers{});
  testing::expect_error(ErrorCode::kIndexOutOfRange, "%i", [&] {
    run(head + "  %i = input i64[2]\n  %y = index_select %x, %i axis 1\n  output %y\n}",
        {x, list(Dtype::kInt64, {2}, {0, 3})});
  });
}

TEST_F(Aten, Factories) {
  EXPECT_EQ(run("fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %y = full 2.5 of [%n] as f32\n  output %y\n}",
                {made("f32[3] normal")}),
            (Numbers{2.5, 2.5, 2.5}));
  Graph g = fusion("f");
  const ValueId n = size(g, "n");
  input(g, "x", Dtype::kFloat, {n});
  output(g, iota(g, n, constant_of(g, Dtype::kDouble, 0.5), constant_of(g, Dtype::kDouble, 0.25), Dtype::kFloat));
  const std::array<Argument, 1> arguments = {made("f32[3] normal")};
  const TensorData t = result_of(aten_->evaluate(g, arguments).outputs[0]);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(to_double(t.dtype, load_element(t, i)), 0.5 + 0.25 * i);
}

TEST_F(Aten, InPlaceOutputsLeaveTheirInputsAlone) {
  Graph g = fusion("f");
  const ValueId n = size(g, "n"), x = input(g, "x", Dtype::kFloat, {n});
  output(g, unary(g, OpKind::kNeg, x, "y"), x);
  output(g, add(g, x, x, "z"));
  const std::array<Argument, 1> arguments = {list(Dtype::kFloat, {2}, {1, 2})};
  const Digest before = digest(arguments[0].tensor);
  const Evaluation e = aten_->evaluate(g, arguments);
  EXPECT_EQ(digest(arguments[0].tensor), before);
  EXPECT_EQ(to_double(Dtype::kDouble, load_element(e.outputs[0].reference, 1)), -2);
  EXPECT_EQ(to_double(Dtype::kDouble, load_element(e.outputs[1].reference, 1)), 4);
}

TEST_F(Aten, AnInputHandedOnIsACopy) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kDouble, {size(g, "n")}, {.contiguity = {Contiguity::kFalse}});
  output(g, unary(g, OpKind::kSet, x, "y"));
  const std::array<Argument, 1> arguments = {made("f64[4] strides [2] normal")};
  const Evaluation e = aten_->evaluate(g, arguments);
  EXPECT_NE(e.outputs[0].reference.storage.get(), arguments[0].tensor.storage.get());
}

TEST_F(Aten, EveryDtypeAndLayoutGoesThrough) {
  for (const DtypeRow& row : dtype_rows())
    for (const char* layout : {"[3, 5]", "[3, 5] strides [1, 3]", "[3, 5] strides [0, 2] offset 1"}) {
      Graph g = fusion("f");
      const ValueId m = size(g, "m"), n = size(g, "n");
      const ValueId x = input(g, "x", row.dtype, {m, n}, {.contiguity = {Contiguity::kFalse, Contiguity::kFalse}});
      output(g, permute(g, x, {1, 0}, "y"));
      const std::array<Argument, 1> arguments = {made(std::string(row.text) + layout + " boundary seed 4")};
      TensorData moved = arguments[0].tensor;
      std::swap(moved.shape[0], moved.shape[1]);
      std::swap(moved.strides[0], moved.strides[1]);
      const Comparison c = compare(moved, aten_->evaluate(g, arguments).outputs[0]);
      EXPECT_TRUE(c.ok) << row.text << layout << ": " << c.message("y");
    }
}

TEST_F(Aten, IntermediatesAreGivenBack) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {size(g, "n")});
  const ValueId e = unary(g, OpKind::kExp, x, "e");
  output(g, unary(g, OpKind::kLog, e, "l"));
  const std::array<Argument, 1> arguments = {made("f32[4] normal")};
  const Evaluation all = aten_->evaluate(g, arguments, {.bounds = true, .intermediates = {"e", "x"}});
  ASSERT_EQ(all.intermediates.size(), 2u);
  EXPECT_EQ(all.intermediates[0].name, "e");
  EXPECT_TRUE(all.intermediates[1].is_exact());
  EXPECT_TRUE(aten_->evaluate(g, arguments, {.bounds = false, .intermediates = {}}).outputs[0].is_exact());
  testing::expect_error(ErrorCode::kUnknownName, "%q",
                        [&] { aten_->evaluate(g, arguments, {.bounds = true, .intermediates = {"q"}}); });
}

TEST_F(Aten, BoundsOfNothingOrAnythingHoldForEachElement) {
  // exp2 of 2 may be below 4 and then give the integer 3; exp2 of 1.5 is far from any integer.
  const Numbers exponents = {2, 1.5, 1.5, 1.5, 2, 1.5};
  const Argument x = list(Dtype::kFloat, {6, 1}, exponents), table = made("f32[8] normal");
  const auto bounds = [&] {
    const TensorData t = contiguous_copy(last_.outputs.at(0).bound);
    Numbers values;
    for (int64_t i = 0; i < element_count(t.shape); ++i) values.push_back(to_double(t.dtype, load_element(t, i)));
    return values;
  };
  const Numbers expected = {INFINITY, 0, 0, 0, INFINITY, 0};
  EXPECT_EQ(
      run("fusion @f {\n  %x = input f32[6, 1]\n  %e = exp2 %x\n  %y = prod %e over [1] as i64\n  output %y\n}", {x}),
      (Numbers{4, 2, 2, 2, 4, 2}));
  EXPECT_EQ(bounds(), expected);
  run("fusion @f {\n  %x = input f32[6, 1]\n  %t = input f32[8]\n  %e = exp2 %x\n  %c = cast %e as i64\n"
      "  %i = squeeze %c over [1]\n  %y = index_select %t, %i axis 0\n  output %y\n}",
      {x, table});
  EXPECT_EQ(bounds(), expected);
}

TEST_F(Aten, ANanForCertainStaysOneBesideNumbersThatAreNotExact) {
  const auto bound_of = [&](const std::string& lines) {
    (void)run("fusion @f {\n  %x = input f32[1] contiguous\n  %r = rsqrt %x\n  %n = input f32[1] contiguous\n" + lines +
                  "  output %y\n}\n",
              {made("f32[1] constant 7.0 7.0"), list(Dtype::kFloat, {1}, {NAN})});
    const TensorData& bound = last_.outputs.at(0).bound;
    return last_.outputs.at(0).is_exact() ? 0.0 : to_double(bound.dtype, load_element(bound, 0));
  };
  EXPECT_GT(bound_of("  %y = add %r, 1.0_f32\n"), 0);
  for (const std::string op : {"add", "maximum", "minimum", "truediv", "eq", "lt", "ge"})
    EXPECT_EQ(bound_of("  %y = " + op + " %r, %n\n"), 0) << op;
  EXPECT_EQ(bound_of("  %c = cat [%r, %n] axis 0\n  %y = sum %c over [0]\n"), 0);
  EXPECT_EQ(bound_of("  %c = cat [%r, %n] axis 0\n  %y = prod %c over [0]\n"), 0);
  // The power 0 of NaN is 1.
  EXPECT_EQ(bound_of("  %y = pow %n, %r\n"), INFINITY);
}

TEST_F(Aten, PadTakesPaddingAwayToo) {
  const std::string end = "\n  output %y\n}";
  EXPECT_EQ(
      run("fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %y = pad %x by [1, -1] : f32[?]" + end, {made("f32[0]")}),
      Numbers{});
  const Argument x = list(Dtype::kFloat, {2}, {1, 2});
  EXPECT_EQ(run("fusion @f {\n  %x = input f32[2]\n  %y = pad %x by [3, -3]" + end, {x}), (Numbers{0, 0}));
  EXPECT_EQ(run("fusion @f {\n  %x = input f32[2]\n  %y = pad %x by [-1, 2]" + end, {x}), (Numbers{2, 0, 0}));
}

// `signbit` of a NaN is false, whatever the processor made it of.
TEST_F(Aten, NoSignOfNan) {
  const Argument x = list(Dtype::kFloat, {4}, {NAN, -1, -0.0, 2});
  const std::string text = "fusion @f {\n  %x = input f32[4]\n  %a = neg %x\n  %y = signbit %a\n  output %y\n}";
  EXPECT_EQ(run(text, {x}), (Numbers{0, 0, 0, 1}));
  for (int64_t i = 0; i < 4; ++i) {
    TensorData other = result_of(last_.outputs[0]);
    const bool now = load_element(other, i).low != 0;
    store_element(other, i, {!now, 0});
    EXPECT_FALSE(compare(other, last_.outputs[0]).ok) << i;
  }
}

// ATen gives either zero for a -0, depending on where it runs, and so either infinity for its reciprocal.
TEST_F(Aten, ReluOfANegativeZeroIsEitherZero) {
  const Argument x = list(Dtype::kFloat, {2}, {-0.0, -1});
  run("fusion @f {\n  %x = input f32[2]\n  %y = relu %x\n  %z = reciprocal %y\n  output %y\n  output %z\n}", {x});
  for (const double zero : {0.0, -0.0}) {
    TensorData y = result_of(last_.outputs[0]), z = result_of(last_.outputs[1]);
    store_element(y, 0, from_double(Dtype::kFloat, zero));
    store_element(z, 0, from_double(Dtype::kFloat, 1 / zero));
    EXPECT_TRUE(compare(y, last_.outputs[0]).ok) << zero;
    EXPECT_TRUE(compare(z, last_.outputs[1]).ok) << zero;
    store_element(z, 0, from_double(Dtype::kFloat, 1));
    EXPECT_TRUE(compare(z, last_.outputs[1]).ok);  // what depends on the zero is not judged
    store_element(y, 0, from_double(Dtype::kFloat, 0x1p-149));
    EXPECT_FALSE(compare(y, last_.outputs[0]).ok);
  }
}

TEST_F(Aten, WelfordOfOneElementWhoseSquareOverflows) {
  const Argument x = list(Dtype::kFloat, {3, 1}, {2, -0x1.fffffep127, 5});
  run("fusion @f {\n  %x = input f32[3, 1]\n  %a, %v, %n = welford %x over [1]\n  output %v\n  output %a\n}", {x});
  for (int64_t i = 0; i < 3; ++i) {
    TensorData squares = result_of(last_.outputs[0]), mean = result_of(last_.outputs[1]);
    store_element(squares, i, from_double(Dtype::kFloat, NAN));
    EXPECT_EQ(compare(squares, last_.outputs[0]).ok, i == 1) << i;
    store_element(mean, i, from_double(Dtype::kFloat, 3));
    EXPECT_FALSE(compare(mean, last_.outputs[1]).ok) << i;
  }
}

// A mean is judged as long as the sum of the elements stays in the range of a float, and squares as long as they do.
TEST_F(Aten, WelfordOfLargeNumbers) {
  const auto is_free = [&](std::vector<double> numbers, size_t output) {
    run("fusion @f {\n  %x = input f32[4]\n  %a, %v, %n = welford %x over [0]\n  output %a\n  output %v\n}",
        {list(Dtype::kFloat, {4}, std::move(numbers))});
    TensorData other = result_of(last_.outputs[output]);
    store_element(other, 0, from_double(Dtype::kFloat, INFINITY));
    return compare(other, last_.outputs[output]).ok;
  };
  // Means.
  EXPECT_FALSE(is_free({1e37, 1e37, 1e37, 1e37}, 0));
  EXPECT_FALSE(is_free({1e37, -1e37, 2e37, -2e37}, 0));
  EXPECT_TRUE(is_free({1e38, 1e38, 1e38, 1e38}, 0));
  EXPECT_TRUE(is_free({3e38, 3e38, 3e38, 3e38}, 0));
  // Squares of distances.
  EXPECT_FALSE(is_free({1e18, -1e18, 2e18, 1e18}, 1));
  EXPECT_TRUE(is_free({1e19, -1e19, 2e19, 1e19}, 1));
  EXPECT_FALSE(is_free({1e22, 1e22, 1e22, 1e22}, 1));
  EXPECT_TRUE(is_free({1e30, 1e30, 1e30, 1e30}, 1));
}

// The reference makes no tensor of the extents beside an empty axis.
TEST_F(Aten, ReductionsAndScansOfNothingOfHugeExtents) {
  const auto results = [&](const std::string& op, const std::string& input) {
    return run(
        "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %c = cast %x as i32\n  " + op + "\n  output %y\n}",
        {made(input)});
  };
  EXPECT_EQ(results("%y = sum %x over [0, 1]", "f32[36028797018963968, 0]"), Numbers{0});
  EXPECT_EQ(results("%y = prod %x over [0, 1]", "f32[36028797018963968, 0]"), Numbers{1});
  EXPECT_EQ(results("%y = prod %c over [0, 1]", "f32[36028797018963968, 0]"), Numbers{1});
  EXPECT_EQ(results("%y, %v, %k = welford %x over [0, 1]", "f32[0, 36028797018963968]"), Numbers{0});
  EXPECT_EQ(results("%y = cumsum %x axis 0", "f32[36028797018963968, 0]"), Numbers{});
  EXPECT_EQ(results("%y = cumprod %x axis 1", "f32[0, 36028797018963968]"), Numbers{});
}

TEST_F(Aten, ReductionsOfNothing) {
  // Operands with bounds: integers computed from reals.
  const auto reduced = [&](const std::string& reduction, const std::string& to) {
    const Numbers values = run("fusion @f {\n  %m = size\n  %x = input f32[%m, 2]\n  %e = exp %x\n  %c = cast %e as " +
                                   to + "\n  %y = " + reduction + " %c over [0]\n  output %y\n}",
                               {made("f32[0, 2]")});
    EXPECT_TRUE(last_.outputs[0].is_exact() || element_count(last_.outputs[0].bound.shape) == 2);
    return values;
  };
  EXPECT_EQ(reduced("max", "i32"), (Numbers{-0x1p31, -0x1p31}));
  EXPECT_EQ(reduced("min", "i16"), (Numbers{0x1p15 - 1, 0x1p15 - 1}));
  EXPECT_EQ(reduced("max", "bool"), (Numbers{0, 0}));
  EXPECT_EQ(reduced("prod", "i32"), (Numbers{1, 1}));
  EXPECT_EQ(reduced("sum", "i32"), (Numbers{0, 0}));
  EXPECT_EQ(reduced("max", "f64"), (Numbers{-INFINITY, -INFINITY}));
}

TEST_F(Aten, WelfordOfTheSmallestNumbers) {
  // The mean of numbers below the smallest normal one may be off by a few of their distances.
  const Argument x = list(Dtype::kFloat, {1, 3}, {0x1p-149, -0x1p-149, 0x1p-149});
  run("fusion @f {\n  %x = input f32[1, 3]\n  %a, %v, %n = welford %x over [1]\n  output %a\n}", {x});
  TensorData mean = result_of(last_.outputs[0]);
  for (double near : {-0x1p-149, 0.0, 0x1p-149}) {
    store_element(mean, 0, from_double(Dtype::kFloat, near));
    EXPECT_TRUE(compare(mean, last_.outputs[0]).ok) << near;
  }
  store_element(mean, 0, from_double(Dtype::kFloat, 0x1p-142));
  EXPECT_FALSE(compare(mean, last_.outputs[0]).ok);
}

TEST_F(Aten, WrongArgumentsAreRefused) {
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {size(g, "n")});
  output(g, unary(g, OpKind::kExp, x, "e"));
  testing::expect_error(ErrorCode::kBadInput, "%x", [&] { aten_->evaluate(g, std::array{made("f64[4] normal")}); });
  EXPECT_THROW(aten_->evaluate(g, std::array{made("f32[4, 1] normal")}), Error);
  EXPECT_THROW(aten_->evaluate(g, {}), Error);
}

TEST(ModuleLoader, SaysWhatIsMissing) {
  testing::expect_error(ErrorCode::kModuleMissing, "libfusebox_nothing.so",
                        [] { load_module_entry("nothing", "entry", "build it"); });
  try {
    load_module_entry("nothing", "entry", "build it");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("build it, or name its folder in FUSEBOX_MODULE_PATH"), std::string::npos);
    for (const std::string& folder : module_folders())
      EXPECT_NE(std::string(e.what()).find(folder), std::string::npos) << folder;
  }
}

TEST(ModuleLoader, TheVariableComesLast) {
  ::unsetenv(kModulePathVariable);
  const std::vector<std::string> own = module_folders();
  ASSERT_GE(own.size(), 4u);
  const auto with = [&](const std::string& value) {
    ::setenv(kModulePathVariable, value.c_str(), 1);
    std::vector<std::string> folders = module_folders();
    ::unsetenv(kModulePathVariable);
    EXPECT_TRUE(std::equal(own.begin(), own.end(), folders.begin())) << value;
    folders.erase(folders.begin(), folders.begin() + static_cast<std::ptrdiff_t>(own.size()));
    return folders;
  };
  using Folders = std::vector<std::string>;
  EXPECT_EQ(with(""), Folders());
  EXPECT_EQ(with("/a"), Folders({"/a"}));
  EXPECT_EQ(with(":/a/::/b/../c:"), Folders({"/a", "/c"}));
  EXPECT_EQ(with("/a:" + own[1] + ":/a"), Folders({"/a"}));
}

TEST(ModuleLoader, TheModulesAreOfThisBuild) {
  try {
    EXPECT_NE(load_module_entry("cuda", "fusebox_cuda_backend", "build it"), nullptr);
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  testing::expect_error(ErrorCode::kModuleMissing, "libfusebox_cuda.so",
                        [] { load_module_entry("cuda", "fusebox_no_entry", "build it"); });
}

}  // namespace
}  // namespace fusebox
