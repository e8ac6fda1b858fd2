// Scalar ops on integers, in 128 bits, by the rules of the op table.
#pragma once

#include <algorithm>
#include <tuple>

#include "ir/table/op.h"
#include "tests/support/expected.h"

namespace fusebox::testing {

using Wide = __int128;

inline Wide wide_of(Dtype d, ConstantBits b) {
  return is_signed(d) ? static_cast<Wide>(static_cast<int64_t>(b.low)) : static_cast<Wide>(b.low);
}

inline Expected integer_reference(OpKind kind, Dtype d, const Operands& operands) {
  const Wide a = wide_of(d, operands[0]), b = wide_of(d, operands[1]), c = wide_of(d, operands[2]),
             e = wide_of(d, operands[3]);
  const int width = bits(d);
  const bool out = b < 0 || b >= width;
  const auto wrapped = [&](Wide v) { return expect_bits(d, {static_cast<uint64_t>(v), 0}); };
  const auto multiplied = [](Wide x, Wide y) {
    return static_cast<Wide>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
  };
  const Wide quotient = b == 0 ? 0 : a / b, rest = b == 0 ? 0 : a % b;
  const Wide euclid_rest = rest < 0 ? rest + (b < 0 ? -b : b) : rest;
  switch (kind) {
    case OpKind::kSet:
    case OpKind::kCeil:
    case OpKind::kFloor:
    case OpKind::kRound:
    case OpKind::kTrunc:
    case OpKind::kReal:
      return wrapped(a);
    case OpKind::kAbs:
      return wrapped(a < 0 ? -a : a);
    case OpKind::kNeg:
      return wrapped(-a);
    case OpKind::kBitwiseNot:
      return wrapped(~a);
    case OpKind::kRelu:
      return wrapped(a < 0 ? 0 : a);
    case OpKind::kSign:
      return wrapped((a > 0) - (a < 0));
    case OpKind::kAdd:
      return wrapped(a + b);
    case OpKind::kSub:
      return wrapped(a - b);
    case OpKind::kMul:
      return wrapped(multiplied(a, b));
    case OpKind::kDiv:
      return wrapped(quotient);
    case OpKind::kFmod:
    case OpKind::kMod:
      return wrapped(rest);
    case OpKind::kRemainder:
      return wrapped(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    case OpKind::kFloorMod:
      return wrapped(euclid_rest);
    case OpKind::kFloorDiv:
      return wrapped(b == 0 ? 0 : (a - euclid_rest) / b);
    case OpKind::kCeilDiv:
      // Only extents of programs use this division.
      if (b <= 0 || a == (d == Dtype::kInt64 || d == Dtype::kIndex ? Wide{INT64_MIN} : -(Wide{1} << (width - 1))) ||
          !is_signed(d))
        return {.is_known = false};
      return wrapped((a - euclid_rest) / b + (euclid_rest != 0));
    case OpKind::kMinimum:
      return wrapped(std::min(a, b));
    case OpKind::kMaximum:
      return wrapped(std::max(a, b));
    case OpKind::kClamp:
      return wrapped(std::min(std::max(a, b), c));
    case OpKind::kThreshold:
      return wrapped(a <= b ? c : a);
    case OpKind::kAddcmul:
      return wrapped(a + multiplied(multiplied(e, b), c));
    case OpKind::kBitwiseAnd:
      return wrapped(a & b);
    case OpKind::kBitwiseOr:
      return wrapped(a | b);
    case OpKind::kBitwiseXor:
      return wrapped(a ^ b);
    case OpKind::kBitwiseLeftShift:
      return wrapped(out ? 0 : multiplied(a, Wide{1} << static_cast<int>(b)));
    case OpKind::kBitwiseRightShift:
      return wrapped(out ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b));
    case OpKind::kLogicalRightShift:
      return wrapped(out ? 0 : (a & ((Wide{1} << width) - 1)) >> static_cast<int>(b));
    case OpKind::kGcd: {
      Wide x = a < 0 ? -a : a, y = b < 0 ? -b : b;
      while (y != 0) std::tie(x, y) = std::pair(y, x % y);
      return wrapped(x);
    }
    case OpKind::kPow: {
      if (b < 0) return wrapped(a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
      Wide result = 1, base = a;
      for (Wide rest_of = b; rest_of != 0; rest_of /= 2) {
        if (rest_of % 2 != 0) result = static_cast<int64_t>(multiplied(result, base));
        base = static_cast<int64_t>(multiplied(base, base));
      }
      return wrapped(result);
    }
    case OpKind::kSignbit:
      return expect_truth(a < 0);
    default:  // any other: not known here; host_math_test has every scalar op
      return {.is_known = false};
  }
}

}  // namespace fusebox::testing
