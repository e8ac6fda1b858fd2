// Inputs from their specs: layouts, generators, and the form on the command line.
#include "replay/data/input.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

TensorData made(const std::string& spec, int threads = 0) {
  return make_argument(parse_input_spec("x", spec), threads).tensor;
}
double number(const TensorData& t, std::vector<int64_t> index) {
  return to_double(t.dtype, load_element(t, position_of(t, index)));
}

TEST(Input, ElementsAreTheSameInEveryLayout) {
  const TensorData plain = made("f32[5, 7] normal seed 3");
  for (const char* layout :
       {"f32[5, 7] strides [14, 2] offset 3 normal seed 3", "f32[5, 7] strides [1, 5] normal seed 3",
        "f32[5, 7] strides [7, 1] offset 64 normal seed 3"}) {
    const TensorData t = made(layout);
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 7; ++j) EXPECT_EQ(number(t, {i, j}), number(plain, {i, j})) << layout;
  }
  EXPECT_NE(digest(made("f32[5, 7] normal seed 4")), digest(plain));
  EXPECT_NE(digest(made("f32[5, 7] strides [1, 5] normal seed 3")), digest(plain));
}

TEST(Input, TheBitsNeverChange) {
  // The same on every machine, because recorded bundles name inputs by their generators.
  EXPECT_EQ(text(digest(made("f32[7] normal seed 1"))), "3784bde0844042777533837c346fc95f");
  EXPECT_EQ(text(digest(made("bf16[7] uniform -2.0 2.0 seed 2"))), "61d1ffda723477ebc7e185932a38dc96");
  EXPECT_EQ(text(digest(made("u64[7] integers 0.0 1e30 seed 3"))), "87dd61241545ae3025daf298ba2e4989");
  EXPECT_EQ(text(digest(made("c64[7] boundary seed 4"))), "a3500ef61141ef315aa9a50ea98b55de");
}

TEST(Input, ThreadsChangeNothing) {
  for (const char* spec : {"f32[300, 41] normal seed 3", "bf16[300, 41] strides [100, 2] boundary seed 1",
                           "i8[300, 41] strides [0, 1] integers -5.0 6.0"})
    EXPECT_EQ(digest(made(spec, 1)), digest(made(spec, 7))) << spec;
}

TEST(Input, BroadcastsHaveOneElement) {
  const TensorData t = made("f32[4, 6] strides [0, 1] uniform seed 2");
  EXPECT_EQ(t.storage_elems, 6);
  EXPECT_TRUE(overlaps(t.shape, t.strides));
  EXPECT_FALSE(overlaps(t.shape, t.strides, true));
  for (int64_t j = 0; j < 6; ++j) EXPECT_EQ(number(t, {3, j}), number(t, {0, j}));
  EXPECT_EQ(number(t, {0, 5}), number(made("f32[1, 6] uniform seed 2"), {0, 5}));
}

TEST(Input, WhatLiesBetweenElementsIsPoison) {
  const TensorData t = made("f32[3] strides [2] offset 1 constant 1.0 1.0");
  for (int64_t i = 0; i < t.storage_elems; ++i)
    EXPECT_EQ(std::isnan(to_double(t.dtype, load_element(t, i))), i % 2 == 0) << i;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.storage.get()) % kStorageAlign, 0u);
  EXPECT_EQ(made("f32[0, 5] normal").storage_elems, 0);
}

TEST(Input, GeneratorsKeepTheirPromises) {
  const TensorData u = made("f64[20000] uniform -2.0 3.0 seed 5"), z = made("f64[20000] normal 10.0 2.0 seed 5");
  double mean = 0, square = 0, total = 0;
  for (int64_t i = 0; i < 20000; ++i) {
    EXPECT_TRUE(number(u, {i}) >= -2 && number(u, {i}) < 3);
    total += number(u, {i});
    mean += number(z, {i});
    square += (number(z, {i}) - 10) * (number(z, {i}) - 10);
  }
  EXPECT_NEAR(total / 20000, 0.5, 0.05);
  EXPECT_NEAR(mean / 20000, 10, 0.06);
  EXPECT_NEAR(std::sqrt(square / 20000), 2, 0.04);
  std::set<int64_t> seen;
  const TensorData k = made("i16[500] integers -3.0 4.0");
  for (int64_t i = 0; i < 500; ++i) seen.insert(to_int64(k.dtype, load_element(k, i)));
  EXPECT_EQ(seen, (std::set<int64_t>{-3, -2, -1, 0, 1, 2, 3}));
  const TensorData b = made("bool[200] normal");
  int64_t ones = 0;
  for (int64_t i = 0; i < 200; ++i) ones += load_element(b, i).low != 0;
  EXPECT_GT(ones, 60);
  EXPECT_LT(ones, 140);
  EXPECT_EQ(number(made("c64[2] constant 2.5 0.0"), {1}), 2.5);
}

TEST(Input, BoundaryValuesOfEveryDtype) {
  for (const DtypeRow& row : dtype_rows()) {
    const auto values = boundary_values(row.dtype);
    ASSERT_GE(values.size(), 2u) << row.text;
    for (ConstantBits v : values) EXPECT_TRUE(is_canonical(row.dtype, v)) << row.text;
    if (row.dtype == Dtype::kFloat4E2m1x2) continue;
    const TensorData t = allocate_tensor(row.dtype, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) {
      store_element(t, static_cast<int64_t>(i), values[i]);
      EXPECT_EQ(load_element(t, static_cast<int64_t>(i)).low, values[i].low) << row.text;
    }
  }
  for (Dtype d : {Dtype::kHalf, Dtype::kBfloat16, Dtype::kFloat, Dtype::kDouble}) {
    const auto values = boundary_values(d);
    const auto has = [&](auto predicate) {
      return std::any_of(values.begin(), values.end(), [&](ConstantBits b) { return predicate(to_double(d, b)); });
    };
    EXPECT_TRUE(has([](double v) { return v == 0 && std::signbit(v); })) << text(d);
    EXPECT_TRUE(has([](double v) { return std::isnan(v); }) && has([](double v) { return v == -INFINITY; })) << text(d);
  }
  EXPECT_EQ(to_double(Dtype::kFloat, boundary_values(Dtype::kFloat)[3]), 0x1p-149);
  EXPECT_EQ(to_double(Dtype::kHalf, boundary_values(Dtype::kHalf)[2]), 65504);
}

TEST(Input, OptionsOfTheCommandLine) {
  const InputOption x = parse_input_option("x=f32[5,7] strides [14,2] offset 3 uniform -1 1 seed 7");
  ASSERT_TRUE(x.spec);
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.spec->strides, (std::vector<int64_t>{14, 2}));
  EXPECT_EQ(x.spec->seed, 7u);
  EXPECT_EQ(x.spec->low, -1.0);
  EXPECT_EQ(parse_input_option("%x = a/b.npy").file, "a/b.npy");
  const Argument s = make_argument(parse_input_option("s=f64 0.5"), Dtype::kDouble, true);
  EXPECT_TRUE(s.is_scalar);
  EXPECT_EQ(s.dtype, Dtype::kDouble);
  EXPECT_EQ(to_double(s.dtype, s.bits), 0.5);
  EXPECT_EQ(make_argument(parse_input_option("s=0.5_f32"), Dtype::kFloat, true).dtype, Dtype::kFloat);
  EXPECT_EQ(make_argument(parse_input_option("s=i32 -3"), Dtype::kInt32, true).bits.low, ~uint64_t{2});
  EXPECT_EQ(make_argument(parse_input_option("s=bool true"), Dtype::kBool, true).bits.low, 1u);
  // A number without a dtype takes the scalar's.
  const auto number = [](const std::string& given, Dtype dtype) {
    const Argument a = make_argument(parse_input_option("s=" + given), dtype, true);
    EXPECT_EQ(a.dtype, dtype) << given;
    return to_double(dtype, a.bits);
  };
  EXPECT_EQ(number("0.5", Dtype::kFloat), 0.5);
  EXPECT_EQ(number("-2", Dtype::kBfloat16), -2);
  EXPECT_EQ(number("1e3", Dtype::kDouble), 1000);
  EXPECT_EQ(number("3", Dtype::kInt32), 3);
  EXPECT_EQ(number("3", Dtype::kIndex), 3);
  EXPECT_EQ(number("0x10", Dtype::kUint8), 16);
  EXPECT_EQ(number("1", Dtype::kBool), 1);
  EXPECT_EQ(number("0", Dtype::kBool), 0);
  EXPECT_EQ(number("true", Dtype::kBool), 1);
  for (const auto& [given, dtype] : {std::pair("300", Dtype::kInt8), {"0.5", Dtype::kInt32}, {"2", Dtype::kBool}})
    testing::expect_error(ErrorCode::kBadInputSpec, "%s",
                          [&] { make_argument(parse_input_option(std::string("s=") + given), dtype, true); });
  // A printed spec parses back.
  const std::string printed = print(*x.spec);
  EXPECT_EQ(*parse_input_option(printed).spec, *x.spec) << printed;
}

TEST(Input, WrongSpecsAreRefused) {
  const auto refuse = [](const std::string& option) {
    return [option] { make_argument(*parse_input_option(option).spec); };
  };
  testing::expect_error(ErrorCode::kBadInputSpec, "%x", refuse("x=f32[5"));
  testing::expect_error(ErrorCode::kBadInputSpec, "%x", refuse("x=f33[5]"));
  testing::expect_error(ErrorCode::kBadInputSpec, "%x", refuse("x=f32[5] strides [-1]"));
  testing::expect_error(ErrorCode::kBadInputSpec, "%x", refuse("x=f32[5] strides [1, 1]"));
  testing::expect_error(ErrorCode::kBadInputSpec, "%x", refuse("x=f32[-5]"));
  testing::expect_error(ErrorCode::kBadInputSpec, "%x", refuse("x=i32[5] integers 3 3"));
  testing::expect_error(ErrorCode::kBadInputSpec, "%x", refuse("x=u8[5] integers -3 3"));
  testing::expect_error(ErrorCode::kOutOfMemory, "%x", refuse("x=f32[4611686018427387904, 4]"));
  for (const char* huge :
       {"f32[0, 144115188075855872]", "f32[144115188075855872, 0]", "f32[67108864, 0, 67108864, 67108864]"})
    try {
      refuse(std::string("x=") + huge)();
      ADD_FAILURE() << huge;
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::kOutOfMemory);
      EXPECT_EQ(e.what(), "a tensor of " + std::string(huge).substr(3) +
                              " has no elements, but its strides and indices are computed as if its empty axes had "
                              "one, and span more than 2^56 places; make the extents other than 0 smaller");
    }
  testing::expect_error(ErrorCode::kBadInputSpec, "f32[5]", [] { parse_input_option("f32[5]"); });
}

}  // namespace
}  // namespace fusebox
