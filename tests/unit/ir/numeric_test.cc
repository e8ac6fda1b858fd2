#include "ir/scalar/numeric.h"

#include <gtest/gtest.h>
#include <vector>

namespace fusebox {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::vector<Dtype> kNarrow = {Dtype::kHalf,       Dtype::kBfloat16,   Dtype::kFloat8E4m3,
                                    Dtype::kFloat8E5m2, Dtype::kFloat8E8m0, Dtype::kFloat4E2m1};

// The codes of the finite values, from the smallest magnitude up.
std::vector<uint64_t> nonnegative_codes(Dtype dtype) {
  std::vector<uint64_t> codes;
  const uint64_t count = uint64_t{1} << (dtype == Dtype::kFloat8E8m0 ? 8 : bits(dtype) - 1);
  for (uint64_t code = 0; code < count; ++code)
    if (std::isfinite(to_double(dtype, {code, 0}))) codes.push_back(code);
  return codes;
}

TEST(Numeric, EveryCodeOfANarrowFloatComesBack) {
  for (Dtype dtype : kNarrow)
    for (uint64_t code = 0; code < uint64_t{1} << bits(dtype); ++code) {
      const double value = to_double(dtype, {code, 0});
      if (std::isnan(value)) continue;
      ASSERT_EQ(from_double(dtype, value).low, code) << text(dtype);
      ASSERT_TRUE(is_exact(dtype, value));
    }
}

// Between two neighbours: the midpoint rounds to the even code, any other number to the nearer code, for either sign.
// This holds for doubles, and through rounding to odd also for doubles that no float holds.
TEST(Numeric, NarrowFloatsRoundToNearestEven) {
  for (Dtype dtype : kNarrow) {
    const auto codes = nonnegative_codes(dtype);
    ASSERT_GT(codes.size(), 7u);
    const bool has_sign = dtype != Dtype::kFloat8E8m0;
    const uint64_t sign = has_sign ? uint64_t{1} << (bits(dtype) - 1) : 0;
    // Below the smallest normal float, PyTorch's e8m0 rounds up everything above its smallest value.
    for (size_t i = has_sign ? 0 : 1; i + 1 < codes.size(); ++i) {
      const uint64_t low = codes[i], high = codes[i + 1];
      const double a = to_double(dtype, {low, 0}), b = to_double(dtype, {high, 0}), middle = a + (b - a) / 2;
      ASSERT_LT(a, b);
      // The midpoint of e8m0 rounds up.
      const uint64_t even = !has_sign || low % 2 != 0 ? high : low;
      ASSERT_EQ(from_double(dtype, middle).low, even) << text(dtype) << " " << middle;
      ASSERT_EQ(from_double(dtype, std::nextafter(middle, 0)).low, low) << text(dtype) << " " << middle;
      ASSERT_EQ(from_double(dtype, std::nextafter(middle, kInf)).low, high) << text(dtype) << " " << middle;
      if (!has_sign) continue;
      ASSERT_EQ(from_double(dtype, -middle).low, even | sign);
      ASSERT_EQ(from_double(dtype, -std::nextafter(middle, kInf)).low, high | sign);
    }
  }
}

TEST(Numeric, WhatOverflowsANarrowFloat) {
  EXPECT_EQ(from_double(Dtype::kHalf, 65519.99).low, 0x7bffu);
  EXPECT_EQ(from_double(Dtype::kHalf, 65520).low, 0x7c00u);
  EXPECT_EQ(from_double(Dtype::kHalf, -1e300).low, 0xfc00u);
  EXPECT_EQ(from_double(Dtype::kBfloat16, 3.4e38).low, 0x7f80u);
  EXPECT_EQ(from_double(Dtype::kBfloat16, 3.39e38).low, 0x7f7fu);
  EXPECT_EQ(from_double(Dtype::kFloat8E4m3, 464).low, 0x7eu);  // 448, the even neighbour
  EXPECT_EQ(from_double(Dtype::kFloat8E4m3, 464.1).low, 0x7eu);
  EXPECT_EQ(from_double(Dtype::kFloat8E4m3, kInf).low, 0x7eu);
  EXPECT_EQ(from_double(Dtype::kFloat8E4m3, -kInf).low, 0xfeu);
  EXPECT_EQ(from_double(Dtype::kFloat8E4m3, kNan).low, 0x7fu);
  EXPECT_EQ(from_double(Dtype::kFloat8E5m2, 61439.9).low, 0x7bu);
  EXPECT_EQ(from_double(Dtype::kFloat8E5m2, 61440).low, 0x7cu);
  EXPECT_EQ(from_double(Dtype::kFloat8E8m0, kInf).low, 0xffu);
  EXPECT_EQ(from_double(Dtype::kFloat8E8m0, 0).low, 0u);
  EXPECT_EQ(from_double(Dtype::kFloat8E8m0, -4).low, 129u);
  EXPECT_EQ(from_double(Dtype::kFloat4E2m1, 1e9).low, 7u);
  EXPECT_EQ(from_double(Dtype::kFloat4E2m1, -kInf).low, 15u);
  EXPECT_EQ(from_double(Dtype::kFloat, 1e39).low, 0x7f800000u);
}

TEST(Numeric, NanAndSignedZero) {
  for (Dtype dtype :
       {Dtype::kHalf, Dtype::kBfloat16, Dtype::kFloat, Dtype::kDouble, Dtype::kFloat8E4m3, Dtype::kFloat8E5m2}) {
    EXPECT_TRUE(std::isnan(to_double(dtype, from_double(dtype, kNan)))) << text(dtype);
    EXPECT_EQ(from_double(dtype, -0.0).low, uint64_t{1} << (bits(dtype) - 1)) << text(dtype);
    EXPECT_TRUE(std::signbit(to_double(dtype, from_double(dtype, -0.0)))) << text(dtype);
  }
  EXPECT_EQ(float_to_half(std::bit_cast<float>(0xffc00001u)), 0xfe00u);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0xffc00001u)), 0x7fc0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(float8_e4m3_to_float(0xff)), 0xfff00000u);
}

TEST(Numeric, IntegersReachFloatsWithOneRounding) {
  // 2^24 + 1 lies between floats, 2^53 + 1 between doubles; through a double, the second would round twice.
  EXPECT_EQ(to_double(Dtype::kFloat, from_int64(Dtype::kFloat, (1 << 24) + 1)), 0x1p24);
  const int64_t above_half = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;  // a float's midpoint plus 1
  EXPECT_EQ(to_double(Dtype::kFloat, from_int64(Dtype::kFloat, above_half)), 0x1p60 + 0x1p37);
  EXPECT_EQ(to_double(Dtype::kFloat, from_int64(Dtype::kFloat, -above_half)), -0x1p60 - 0x1p37);
  EXPECT_EQ(to_double(Dtype::kFloat, from_uint64(Dtype::kFloat, ~uint64_t{0})), 0x1p64);
  EXPECT_EQ(to_double(Dtype::kDouble, from_int64(Dtype::kDouble, INT64_MIN)), -0x1p63);
  for (int64_t i = -70000; i <= 70000; ++i) {
    ASSERT_EQ(from_int64(Dtype::kHalf, i), from_double(Dtype::kHalf, static_cast<double>(i)));
    ASSERT_EQ(from_int64(Dtype::kFloat8E4m3, i), from_double(Dtype::kFloat8E4m3, static_cast<double>(i)));
  }
}

TEST(Numeric, FloatsToIntegersSaturate) {
  EXPECT_EQ(saturate<int8_t>(127.9), 127);
  EXPECT_EQ(saturate<int8_t>(128.0), 127);
  EXPECT_EQ(saturate<int8_t>(-128.9f), -128);
  EXPECT_EQ(saturate<uint8_t>(-0.9), 0);
  EXPECT_EQ(saturate<uint8_t>(-3.0), 0);
  EXPECT_EQ(saturate<uint8_t>(255.9), 255);
  EXPECT_EQ(saturate<int64_t>(1e300), INT64_MAX);
  EXPECT_EQ(saturate<int64_t>(0x1p63), INT64_MAX);
  EXPECT_EQ(saturate<int64_t>(-0x1p63), INT64_MIN);
  EXPECT_EQ(saturate<uint64_t>(0x1p64), UINT64_MAX);
  EXPECT_EQ(saturate<uint64_t>(0x1.fffffffffffffp63), 0xfffffffffffff800u);
  EXPECT_EQ(saturate<int32_t>(kNan), 0);
  EXPECT_EQ(from_double(Dtype::kInt16, -kInf).low, static_cast<uint64_t>(int64_t{INT16_MIN}));
  EXPECT_EQ(from_double(Dtype::kBool, kNan).low, 1u);
  EXPECT_EQ(from_double(Dtype::kBool, -0.0).low, 0u);
}

TEST(Numeric, IntegersWrapWhenTheyNarrow) {
  EXPECT_EQ(convert(Dtype::kInt64, {300, 0}, Dtype::kUint8).low, 44u);
  EXPECT_EQ(static_cast<int64_t>(convert(Dtype::kInt64, {200, 0}, Dtype::kInt8).low), -56);
  EXPECT_EQ(convert(Dtype::kInt8, {static_cast<uint64_t>(int64_t{-1}), 0}, Dtype::kUint32).low, 0xffffffffu);
  EXPECT_EQ(to_double(Dtype::kDouble, convert(Dtype::kUint64, {~uint64_t{0}, 0}, Dtype::kDouble)), 0x1p64);
  EXPECT_EQ(convert(Dtype::kHalf, {0x3e00, 0}, Dtype::kInt32).low, 1u);
  EXPECT_EQ(convert(Dtype::kInt32, {7, 0}, Dtype::kBool).low, 1u);
}

TEST(Numeric, Complex) {
  const ConstantBits c = constant_bits(Dtype::kComplexFloat, std::complex<double>(1.5, -2));
  EXPECT_EQ(c.low, std::bit_cast<uint32_t>(1.5f));
  EXPECT_EQ(c.high, std::bit_cast<uint32_t>(-2.0f));
  EXPECT_EQ(to_complex(Dtype::kComplexFloat, c), std::complex<double>(1.5, -2));
  EXPECT_EQ(to_complex(Dtype::kComplexDouble, convert(Dtype::kComplexFloat, c, Dtype::kComplexDouble)),
            std::complex<double>(1.5, -2));
  EXPECT_TRUE(to_bool(Dtype::kComplexFloat, constant_bits(Dtype::kComplexFloat, std::complex<double>(0, 1))));
  EXPECT_EQ(to_double(Dtype::kFloat, convert(Dtype::kComplexFloat, c, Dtype::kFloat)), 1.5);
}

TEST(Numeric, WhatADtypeHoldsExactly) {
  EXPECT_FALSE(is_exact(Dtype::kHalf, 0.1));
  EXPECT_TRUE(is_exact(Dtype::kDouble, 0.1));
  EXPECT_FALSE(is_exact(Dtype::kFloat8E4m3, kInf));
  EXPECT_TRUE(is_exact(Dtype::kFloat8E5m2, kInf));
  EXPECT_FALSE(is_exact(Dtype::kFloat4E2m1, kNan));
  EXPECT_TRUE(is_exact(Dtype::kUint8, 255));
  EXPECT_FALSE(is_exact(Dtype::kUint8, 256));
  EXPECT_FALSE(is_exact(Dtype::kInt64, 0x1p63));
  EXPECT_TRUE(is_exact(Dtype::kInt64, -0x1p63));
  EXPECT_FALSE(is_exact(Dtype::kUint64, 0x1p64));
  EXPECT_FALSE(is_exact(Dtype::kInt32, 0.5));
}

TEST(Numeric, CanonicalBits) {
  EXPECT_TRUE(is_canonical(Dtype::kInt8, {~uint64_t{0}, 0}));
  EXPECT_FALSE(is_canonical(Dtype::kUint8, {~uint64_t{0}, 0}));
  EXPECT_FALSE(is_canonical(Dtype::kBool, {2, 0}));
  EXPECT_FALSE(is_canonical(Dtype::kFloat, {0, 1}));
  EXPECT_TRUE(is_canonical(Dtype::kComplexDouble, {~uint64_t{0}, ~uint64_t{0}}));
  EXPECT_EQ(canonical_bits(Dtype::kInt16, {0x18000, 5}).low, static_cast<uint64_t>(int64_t{-32768}));
  EXPECT_EQ(canonical_bits(Dtype::kFloat4E2m1, {0x1f, 0}).low, 0xfu);
}

}  // namespace
}  // namespace fusebox
