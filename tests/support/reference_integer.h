// Scalar ops on integers, in 128 bits, by the rules of the op table.
#pragma once

#include <optional>

#include "ir/table/op.h"
#include "tests/support/expected.h"

namespace fusebox::testing {

__extension__ using Wide = __int128;

inline Wide wide_of(Dtype d, ConstantBits b) {
  return is_signed(d) ? static_cast<Wide>(static_cast<int64_t>(b.low)) : static_cast<Wide>(b.low);
}

// The result before it wraps to `width` bits. Nothing if the op has no reference for integers.
inline std::optional<Wide> integer_value(OpKind kind, Wide a, Wide b, Wide c, Wide d, int width, bool is_signed) {
  const auto absolute = [](Wide v) { return v < 0 ? -v : v; };
  const bool is_wide_shift = b < 0 || b >= width;
  const Wide unsigned_a = a < 0 ? a + (Wide{1} << width) : a;
  const Wide truncated = b == 0 ? 0 : a / b, rest = b == 0 ? 0 : a % b;
  const Wide euclidean = rest < 0 ? rest + absolute(b) : rest;
  switch (kind) {
    case OpKind::kSet:
    case OpKind::kReal:
    case OpKind::kCeil:
    case OpKind::kFloor:
    case OpKind::kRound:
    case OpKind::kTrunc:
      return a;
    case OpKind::kAbs:
      return absolute(a);
    case OpKind::kNeg:
      return -a;
    case OpKind::kBitwiseNot:
      return is_signed ? -a - 1 : (Wide{1} << width) - 1 - a;
    case OpKind::kRelu:
      return a > 0 ? a : 0;
    case OpKind::kSign:
      return a > 0 ? 1 : a < 0 ? -1 : 0;
    case OpKind::kAdd:
      return a + b;
    case OpKind::kSub:
      return a - b;
    case OpKind::kMul:
      return static_cast<Wide>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case OpKind::kDiv:
      return truncated;
    case OpKind::kMod:
    case OpKind::kFmod:
      return rest;
    case OpKind::kRemainder:
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    case OpKind::kFloorDiv:
      return b == 0 ? 0 : (a - euclidean) / b;
    case OpKind::kFloorMod:
      return euclidean;
    case OpKind::kCeilDiv:
      // −floor_div(−a, b): rounds up for a positive divisor.
      return rest == 0 ? truncated : b > 0 ? truncated + (a > 0) : truncated - (a > 0);
    case OpKind::kMinimum:
      return a < b ? a : b;
    case OpKind::kMaximum:
      return a < b ? b : a;
    case OpKind::kBitwiseAnd:
      return a & b;
    case OpKind::kBitwiseOr:
      return a | b;
    case OpKind::kBitwiseXor:
      return a ^ b;
    case OpKind::kBitwiseLeftShift:
      return is_wide_shift ? 0 : a * (Wide{1} << static_cast<int>(b));
    case OpKind::kBitwiseRightShift:
      return is_wide_shift ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b);
    case OpKind::kLogicalRightShift:
      return is_wide_shift ? 0 : unsigned_a >> static_cast<int>(b);
    case OpKind::kGcd: {
      Wide x = absolute(a), y = absolute(b);
      while (y != 0) {
        const Wide r = x % y;
        x = y;
        y = r;
      }
      return x;
    }
    case OpKind::kPow: {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 != 0 ? -1 : 1) : 0;
      // By squaring, modulo 2^64, which is a multiple of every width's modulus.
      uint64_t result = 1, base = static_cast<uint64_t>(a);
      for (auto e = static_cast<uint64_t>(b); e != 0; e >>= 1) {
        if ((e & 1) != 0) result *= base;
        base *= base;
      }
      return static_cast<Wide>(result);
    }
    case OpKind::kClamp: {
      const Wide low = a < b ? b : a;
      return low < c ? low : c;
    }
    case OpKind::kThreshold:
      return a <= b ? c : a;
    case OpKind::kAddcmul:
      return static_cast<Wide>(static_cast<uint64_t>(a) +
                               static_cast<uint64_t>(d) * static_cast<uint64_t>(b) * static_cast<uint64_t>(c));
    default:  // any other: gives a truth, or is not of integers
      return std::nullopt;
  }
}

inline Expected integer_reference(OpKind kind, Dtype d, const Operands& operands) {
  const Wide a = wide_of(d, operands[0]), b = wide_of(d, operands[1]), c = wide_of(d, operands[2]),
             e = wide_of(d, operands[3]);
  const int width = bits(d);
  if (kind == OpKind::kSignbit) return expect_truth(a < 0);
  // Only extents of programs use this division.
  const bool is_least = a == (d == Dtype::kIndex ? Wide{INT64_MIN} : -(Wide{1} << (width - 1)));
  if (kind == OpKind::kCeilDiv && (b <= 0 || is_least || !is_signed(d))) return {.is_known = false};
  const auto value = integer_value(kind, a, b, c, e, width, is_signed(d));
  if (!value) return {.is_known = false};  // host_math_test has every scalar op
  return expect_bits(d, {static_cast<uint64_t>(*value), 0});
}

}  // namespace fusebox::testing
