// The integer arithmetic of kernels, compiled for this machine: exact for every operand of 8 bits, and at the ends of
// wider ones, as is what evaluates scalars while a program compiles.
#include <bit>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar.h"

namespace fusebox {
namespace kernels {
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
#define __device__ inline
#include "codegen/runtime/integer.cuh"
#undef __device__
}  // namespace kernels

namespace {

using Exact = __int128;

// Euclidean: the remainder is never negative.
Exact floor_of(Exact a, Exact b) {
  if (b == 0) return 0;
  const Exact q = a / b, r = a % b;
  return r >= 0 ? q : b > 0 ? q - 1 : q + 1;
}

template <class T>
struct Quotients {
  static constexpr Dtype kDtype = sizeof(T) == 1   ? (std::is_signed_v<T> ? Dtype::kInt8 : Dtype::kUint8)
                                  : sizeof(T) == 2 ? (std::is_signed_v<T> ? Dtype::kInt16 : Dtype::kUint16)
                                  : sizeof(T) == 4 ? (std::is_signed_v<T> ? Dtype::kInt32 : Dtype::kUint32)
                                                   : (std::is_signed_v<T> ? Dtype::kInt64 : Dtype::kUint64);

  static T evaluated(OpKind kind, T a, T b) {
    const TypedBits operands[] = {{kDtype, from_int64(kDtype, static_cast<int64_t>(a))},
                                  {kDtype, from_int64(kDtype, static_cast<int64_t>(b))}};
    return static_cast<T>(to_int64(kDtype, *evaluate_op(kind, kDtype, operands)));
  }

  static void expect(T a, T b) {
    SCOPED_TRACE(std::to_string(a) + " by " + std::to_string(b));
    const T floor = static_cast<T>(floor_of(a, b)), ceil = static_cast<T>(-floor_of(-Exact{a}, b));
    const T rest = b == 0 ? T{0} : static_cast<T>(Exact{a} - floor_of(a, b) * b);
    EXPECT_EQ(kernels::floor_div(a, b), floor);
    EXPECT_EQ(kernels::ceil_div(a, b), ceil);
    EXPECT_EQ(kernels::floor_mod(a, b), rest);
    EXPECT_EQ(evaluated(OpKind::kFloorDiv, a, b), floor);
    EXPECT_EQ(evaluated(OpKind::kCeilDiv, a, b), ceil);
    EXPECT_EQ(evaluated(OpKind::kFloorMod, a, b), rest);
  }

  static void expect_at_the_ends() {
    constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
    std::vector<T> numbers;
    for (int i = 0; i < 4; ++i)
      for (T v : {static_cast<T>(kLeast + i), static_cast<T>(kMost - i), static_cast<T>(i), static_cast<T>(-i),
                  static_cast<T>(kMost / 2 + i), static_cast<T>(kLeast / 2 + i)})
        numbers.push_back(v);
    for (T a : numbers)
      for (T b : numbers) expect(a, b);
  }
};

TEST(IntegerHeader, QuotientsOf8BitsAreExact) {
  for (int a = -128; a < 256; ++a)
    for (int b = -128; b < 256; ++b) {
      if (a < 128 && b < 128) Quotients<int8_t>::expect(static_cast<int8_t>(a), static_cast<int8_t>(b));
      if (a >= 0 && b >= 0) Quotients<uint8_t>::expect(static_cast<uint8_t>(a), static_cast<uint8_t>(b));
    }
}

TEST(IntegerHeader, QuotientsAreExactAtTheEnds) {
  Quotients<int16_t>::expect_at_the_ends();
  Quotients<int32_t>::expect_at_the_ends();
  Quotients<int64_t>::expect_at_the_ends();
  Quotients<uint16_t>::expect_at_the_ends();
  Quotients<uint32_t>::expect_at_the_ends();
  Quotients<uint64_t>::expect_at_the_ends();
}

}  // namespace
}  // namespace fusebox
