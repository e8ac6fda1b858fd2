// The law of the index algebra on numbers instead of transforms: what is proved of sums of quotients holds for every size,
// and constants near the limits of 64 bits give the right value or none.
#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

#include "passes/algebra/index_algebra.h"

namespace fusebox {
namespace {

// Quotients and remainders of forms that may be negative: everything proved about a sum of them holds for every pair of
// sizes.
TEST(IndexAlgebraNumbers, SumsOfQuotientsOfNegativeForms) {
  std::mt19937_64 random(7);
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  constexpr int64_t kSizes = 9;
  int shown = 0, asked = 0;
  for (int round = 0; round < 20000; ++round) {
    IndexAlgebra algebra;
    const Form n = algebra.declare_symbol(0, "n"), m = algebra.declare_symbol(1, "m");
    const auto any = [&](int64_t most) {
      const Form sizes = algebra.add(algebra.mul(n, between(-most, most)), algebra.mul(m, between(-most, most)));
      return algebra.add(sizes, algebra.constant(between(-6, 6)));
    };
    const Form divisor = algebra.constant(between(2, 5));
    const DivMod parts = algebra.div_mod(any(2), divisor);
    Form form = algebra.mul(parts.quotient, between(-5, 5));
    if (round % 3 == 0) form = algebra.add(form, algebra.mul(parts.remainder, between(-2, 2)));
    form = algebra.add(form, round % 2 == 0 ? any(1) : algebra.constant(between(-6, 6)));
    ++asked;
    if (!algebra.prove_nonneg(form)) continue;
    ++shown;
    for (int64_t i = 0; i < kSizes; ++i)
      for (int64_t k = 0; k < kSizes; ++k) {
        const std::array<int64_t, 2> sizes = {i, k};
        const auto value = algebra.evaluate(form, {}, sizes);
        ASSERT_TRUE(value && *value >= 0) << algebra.to_string(form) << " at n " << i << ", m " << k;
      }
  }
  std::cout << "sums of quotients: " << shown << " of " << asked << " shown not to be negative\n";
  EXPECT_GT(shown, asked / 100);
}

// Random expressions with constants near the limits of 64 bits, compared with 128-bit arithmetic: a value is right or
// there is none.
TEST(IndexAlgebraNumbers, HugeConstants) {
  std::mt19937_64 rng(6);
  IndexAlgebra algebra;
  int64_t evaluated = 0;
  int64_t without_value = 0;
  const auto divide = [](__int128 a, __int128 b) -> __int128 {
    if (b == 0) return 0;
    const __int128 size = b < 0 ? -b : b;
    const __int128 q = a / size - (a % size < 0 ? 1 : 0);
    return b < 0 ? -q : q;
  };
  for (int n = 0; n < 20000; ++n) {
    algebra.clear();
    const int64_t extents[] = {static_cast<int64_t>(1 + rng() % 5), static_cast<int64_t>(rng() >> (1 + rng() % 40))};
    const int64_t at[] = {static_cast<int64_t>(rng() % static_cast<uint64_t>(extents[0])),
                          extents[1] == 0 ? 0 : static_cast<int64_t>(rng() % static_cast<uint64_t>(extents[1]))};
    if (extents[1] == 0) continue;
    std::vector<std::pair<Form, __int128>> pool;
    for (int i = 0; i < 2; ++i) pool.emplace_back(algebra.declare_loop(i, "l", algebra.constant(extents[i])), at[i]);
    bool exact = true;
    for (int step = 0; step < 8; ++step) {
      const auto [a, x] = pool[rng() % pool.size()];
      auto [b, y] = pool[rng() % pool.size()];
      if (rng() % 2 == 0) {
        const auto value = static_cast<int64_t>(rng()) >> (rng() % 64);
        b = algebra.constant(value);
        y = value;
      }
      Form form;
      __int128 result = 0;
      switch (rng() % 5) {
        case 0:
          form = algebra.add(a, b), result = x + y;
          break;
        case 1:
          form = algebra.sub(a, b), result = x - y;
          break;
        case 2:
          form = algebra.mul(a, b), result = x * y;
          break;
        case 3:
          form = algebra.floor_div(a, b), result = divide(x, y);
          break;
        default:
          form = algebra.mod(a, b), result = y == 0 ? 0 : x - y * divide(x, y);
          break;
      }
      // Products of products exceed 128 bits; then nothing is known.
      exact = exact && result < (__int128{1} << 63) && result >= -(__int128{1} << 63);
      if (!exact) break;
      pool.emplace_back(form, result);
      const auto value = algebra.evaluate(form, at, {});
      ++evaluated;
      without_value += !value;
      ASSERT_TRUE(!value || *value == result) << algebra.to_string(form);
      const IntBounds bounds = algebra.int_bounds(form);
      ASSERT_TRUE(!bounds.lower || *bounds.lower <= result) << algebra.to_string(form);
      ASSERT_TRUE(!bounds.upper || *bounds.upper >= result) << algebra.to_string(form);
      for (const auto& [other, z] : pool) {
        ASSERT_TRUE(!algebra.equal(form, other) || result == z)
            << algebra.to_string(form) << " and " << algebra.to_string(other);
        ASSERT_TRUE(!algebra.prove_less(form, other) || result < z)
            << algebra.to_string(form) << " and " << algebra.to_string(other);
      }
    }
  }
  std::cout << "huge constants: " << evaluated << " values, " << without_value << " of them none\n";
  EXPECT_GT(evaluated, 50000);
}

}  // namespace
}  // namespace fusebox
