// Law: `quotient` of codegen/runtime/division.cuh, which a GPU computes, gives the bits of IEEE's division for every pair of
// floats. tests/gpu/division_test.cc asks the same of a GPU.
#include "codegen/runtime/division.cuh"

#include <bit>
#include <gtest/gtest.h>
#include <random>

namespace fusebox {
namespace {

float of(uint32_t bits) { return std::bit_cast<float>(bits); }

class Judge {
 public:
  // Both forms of a quotient: alone, and in a loop that is repeated where a dividend is out of range.
  void check(float x, const Divisor& d) {
    const volatile float y = d.value;
    const float expected = x / y;
    uint32_t outside = d.outside;
    const float in_loop = quotient(x, d, outside);
    ++pairs;
    same(x, d.value, quotient(x, d), expected);
    if (outside >> 31 != 0) return;
    ++multiplied;
    same(x, d.value, in_loop, expected);
  }
  uint64_t pairs = 0, multiplied = 0, wrong = 0;

 private:
  void same(float x, float y, float actual, float expected) {
    const bool same = std::bit_cast<uint32_t>(actual) == std::bit_cast<uint32_t>(expected);
    if (same || (actual != actual && expected != expected)) return;
    if (++wrong == 1) ADD_FAILURE() << std::hexfloat << x << " / " << y << " = " << expected << ", not " << actual;
  }
};

constexpr uint32_t kSignificands[] = {0,        1,        2,        3,        0x400000, 0x3fffff, 0x400001, 0x7fffff,
                                      0x7ffffe, 0x7ffffd, 0x7ffffc, 0x7ffff0, 0x555555, 0x2aaaaa, 0x100,    0x7fff00};

TEST(Division, GivesIeeesQuotientForAllExponents) {
  Judge judge;
  for (uint32_t divisor_exponent = 0; divisor_exponent < 256; ++divisor_exponent)
    for (uint32_t m : kSignificands)
      for (uint32_t sign : {0u, 0x80000000u}) {
        const Divisor d(of(sign | divisor_exponent << 23 | m));
        for (uint32_t exponent = 0; exponent < 256; ++exponent)
          for (uint32_t n : kSignificands) judge.check(of((exponent & 1) << 31 | exponent << 23 | n), d);
        for (uint32_t zero : {0u, 0x80000000u}) judge.check(of(zero), d);
      }
  EXPECT_EQ(judge.wrong, 0u);
  EXPECT_GT(judge.multiplied, judge.pairs / 32);
}

// The pairs that the proof in division.cuh leaves to be tried, and their neighbours.
TEST(Division, GivesIeeesQuotientNearPowersOfTwo) {
  Judge judge;
  for (uint32_t y : {0x3fffffffu, 0x3f800100u})
    for (uint32_t i = 0; i < 256; ++i) {
      const Divisor d(of(y - i));
      for (uint32_t k = 0; k < 2048; ++k) {
        judge.check(of(0x3fffffffu - k), d);
        judge.check(of(0x3f800000u + k), d);
      }
    }
  EXPECT_EQ(judge.wrong, 0u);
}

// Random pairs, many of them near a quotient that is half-way between two floats.
TEST(Division, GivesIeeesQuotientOfRandomPairs) {
  std::mt19937_64 random(1);
  Judge judge;
  for (int i = 0; i < 400000; ++i) {
    const uint32_t y = (static_cast<uint32_t>(random()) & 0x807fffffu) | (87 + static_cast<uint32_t>(random() % 80))
                                                                             << 23;
    const Divisor d(of(y));
    for (int k = 0; k < 64; ++k) {
      const uint64_t drawn = random();
      uint32_t x = static_cast<uint32_t>(drawn);
      if (k % 2 == 0) {
        const float middle = of(0x3f800000u | (static_cast<uint32_t>(drawn >> 40) & 0x7fffffu));
        x = std::bit_cast<uint32_t>(middle * of(y & 0x7fffffffu)) + static_cast<uint32_t>(drawn >> 33) % 3 - 1;
      }
      judge.check(of(x), d);
    }
  }
  EXPECT_EQ(judge.wrong, 0u);
}

}  // namespace
}  // namespace fusebox
