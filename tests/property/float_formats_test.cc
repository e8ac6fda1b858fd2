// A dtype's row against the numbers: each pattern of bits read by the row's fields alone, rounding against the nearest of
// all numbers, and the limits against the C++ library's and, where PyTorch's headers are, against c10's types.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "ir/scalar/numeric.h"
#include "replay/aten/rounding.h"
#include "replay/data/input.h"
#include "replay/data/overflow.h"

#ifdef FUSEBOX_HAS_C10
#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Float8_e8m0fnu.h>
#include <c10/util/Half.h>
#endif

namespace fusebox {
namespace {

std::vector<Dtype> floats() {
  std::vector<Dtype> result;
  for (const DtypeRow& row : dtype_rows())
    if (row.kind == DtypeKind::kFloating) result.push_back(row.dtype);
  return result;
}

// The value of the bits by the fields of the row.
double by_fields(const FloatFormat& f, uint64_t bits) {
  const uint64_t mantissa_mask = (uint64_t{1} << f.mantissa_bits) - 1,
                 exponent_mask = (uint64_t{1} << f.exponent_bits) - 1;
  const uint64_t mantissa = bits & mantissa_mask, exponent = bits >> f.mantissa_bits & exponent_mask;
  const bool is_negative = f.has(FloatFormat::kSign) && (bits >> (f.mantissa_bits + f.exponent_bits) & 1) != 0;
  double value;
  if (exponent == exponent_mask && f.has(FloatFormat::kInfinity))
    value = mantissa == 0 ? INFINITY : NAN;
  else if (exponent == exponent_mask && mantissa == mantissa_mask && f.has(FloatFormat::kNan))
    value = NAN;
  else if (exponent == 0 && f.has(FloatFormat::kSign))
    value = std::ldexp(static_cast<double>(mantissa), 1 - f.bias - f.mantissa_bits);
  else
    value = std::ldexp(static_cast<double>(mantissa | (mantissa_mask + 1)),
                       static_cast<int>(exponent) - f.bias - f.mantissa_bits);
  return is_negative ? -value : value;
}

bool is_same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

TEST(FloatFormats, FieldsGiveEveryNumber) {
  std::mt19937_64 random(1);
  for (Dtype d : floats()) {
    const FloatFormat& f = format_of(d);
    const bool is_small = bits(d) <= 16;
    double largest = 0;
    for (uint64_t i = 0; i < (is_small ? uint64_t{1} << bits(d) : uint64_t{200000}); ++i) {
      const uint64_t b = is_small ? i : random() & (~uint64_t{0} >> (64 - bits(d)));
      const double value = to_double(d, {b, 0}), wanted = by_fields(f, b);
      ASSERT_TRUE(is_same(value, wanted)) << text(d) << " " << b << ": " << value << ", by its row " << wanted;
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    if (is_small) {
      EXPECT_EQ(largest, f.largest) << text(d);
    }
    EXPECT_EQ(f.overflow, bits(d) == 64 ? f.largest : std::exp2(f.largest_exponent() + 1)) << text(d);
  }
}

TEST(FloatFormats, RoundingTakesTheNearest) {
  std::mt19937_64 random(2);
  for (Dtype d : floats()) {
    if (bits(d) > 16) continue;
    const FloatFormat& f = format_of(d);
    std::vector<double> numbers;
    for (uint64_t b = 0; b < uint64_t{1} << bits(d); ++b)
      if (const double v = to_double(d, {b, 0}); std::isfinite(v)) numbers.push_back(v);
    std::sort(numbers.begin(), numbers.end());
    for (int i = 0; i < 20000; ++i) {
      const size_t at = random() % (numbers.size() - 1);
      const double low = numbers[at], high = numbers[at + 1];
      const double part = static_cast<double>(random() >> 11) * 0x1p-53;
      const double x = low + (high - low) * part;
      if (x - low == high - x) continue;  // ties are numeric_test's
      if (!f.has(FloatFormat::kSign) && at == 0)
        continue;  // PyTorch rounds a subnormal float up here, and so does this
      const double nearest = x - low < high - x ? low : high;
      ASSERT_EQ(round_to(d, x), nearest) << text(d) << " " << x;
      ASSERT_EQ(aten::round_to(d, x), nearest) << text(d) << " " << x;
    }
    for (size_t at = 1; at + 2 < numbers.size(); ++at)
      if (numbers[at] > 0 && f.has(FloatFormat::kSign)) {
        ASSERT_EQ(aten::ulp_of(d, numbers[at]), numbers[at + 1] - numbers[at]) << text(d) << " " << numbers[at];
      }
  }
}

// Boundary values of inputs are those of the row.
TEST(FloatFormats, BoundaryValuesHaveTheLargest) {
  for (Dtype d : floats()) {
    std::vector<double> values;
    for (ConstantBits b : boundary_values(d)) values.push_back(to_double(d, b));
    EXPECT_TRUE(std::find(values.begin(), values.end(), format_of(d).largest) != values.end()) << text(d);
  }
}

template <class T>
void expect_limits(Dtype d) {
  using Limits = std::numeric_limits<T>;
  const FloatFormat& f = format_of(d);
  EXPECT_EQ(static_cast<double>(Limits::max()), f.largest) << text(d);
  EXPECT_EQ(Limits::digits, f.digits()) << text(d);
  EXPECT_EQ(Limits::has_infinity, has_infinity(d)) << text(d);
  EXPECT_EQ(Limits::has_quiet_NaN, has_nan(d)) << text(d);
  EXPECT_EQ(Limits::is_signed, f.has(FloatFormat::kSign)) << text(d);
  EXPECT_EQ(static_cast<double>(Limits::min()), std::ldexp(1.0, f.least_exponent())) << text(d);
  if constexpr (requires { Limits::denorm_min(); }) {
    EXPECT_EQ(static_cast<double>(Limits::denorm_min()), std::ldexp(1.0, f.lowest_bit())) << text(d);
  }
}

TEST(FloatFormats, LimitsAreThoseOfTheLibraries) {
  expect_limits<float>(Dtype::kFloat);
  expect_limits<double>(Dtype::kDouble);
  expect_limits<float>(Dtype::kComplexFloat);
  expect_limits<double>(Dtype::kComplexDouble);
#ifdef FUSEBOX_HAS_C10
  expect_limits<c10::Half>(Dtype::kHalf);
  expect_limits<c10::BFloat16>(Dtype::kBfloat16);
  expect_limits<c10::Float8_e4m3fn>(Dtype::kFloat8E4m3);
  expect_limits<c10::Float8_e5m2>(Dtype::kFloat8E5m2);
  expect_limits<c10::Float8_e8m0fnu>(Dtype::kFloat8E8m0);
#else
  GTEST_SKIP() << "PyTorch's headers are not here: the limits of narrow floats are not compared";
#endif
}

}  // namespace
}  // namespace fusebox
