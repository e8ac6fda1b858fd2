#include "ir/scalar/prepared_division.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace fusebox {
namespace {

constexpr int64_t kEnd = int64_t{1} << 31;

// Divisors around which multipliers and shifts change, and many small ones.
std::vector<int64_t> divisors() {
  std::vector<int64_t> result;
  for (int64_t d = 1; d <= 3000; ++d) result.push_back(d);
  for (int shift = 11; shift <= 31; ++shift)
    for (int64_t by = -3; by <= 3; ++by) result.push_back((int64_t{1} << shift) + by);
  for (int64_t d = 3001; d < kEnd; d = d * 21 / 16 + 7) result.push_back(d);
  for (int64_t k = 1; k <= 64; ++k) result.push_back(kEnd / k);
  std::erase_if(result, [](int64_t d) { return d >= kEnd; });
  return result;
}

// A quotient changes at multiples of the divisor only. So it is right everywhere if it is right on both sides of each
// multiple that is tried, and a multiplier that is wrong is wrong at the largest dividends first.
TEST(PreparedDivision, IsDivisionAroundMultiples) {
  for (int64_t d : divisors()) {
    const int64_t prepared = prepare_division(d), most = (kEnd - 1) / d;
    ASSERT_GE(prepared, 0);
    const auto expect_right = [&](int64_t a) {
      if (a < 0 || a >= kEnd) return;
      ASSERT_EQ(prepared_quotient(a, prepared), a / d) << a << " / " << d;
    };
    for (int64_t step = 0; step <= 40; ++step)
      for (int64_t by = -2; by <= 2; ++by) {
        expect_right(step * d + by);
        expect_right((most - step) * d + by);
        expect_right(most * step / 40 * d + by);
        expect_right(kEnd - 1 - step);
      }
    if (HasFatalFailure()) return;
  }
}

TEST(PreparedDivision, IsDivisionForEveryDividendOfFewDivisors) {
  for (int64_t d : {3, 7, 641, 65537})
    for (int64_t a = 0, prepared = prepare_division(d); a < int64_t{1} << 22; ++a) {
      ASSERT_EQ(prepared_quotient(a, prepared), a / d);
      ASSERT_EQ(prepared_quotient(kEnd - 1 - a, prepared), (kEnd - 1 - a) / d);
    }
}

TEST(PreparedDivision, ByNothingOrByTooMuchGivesZero) {
  for (int64_t d : {int64_t{0}, int64_t{-5}, kEnd, kEnd * 4})
    for (int64_t a : {int64_t{0}, int64_t{1}, int64_t{4096}, kEnd - 1})
      EXPECT_EQ(prepared_quotient(a, prepare_division(d)), 0) << a << " / " << d;
}

}  // namespace
}  // namespace fusebox
