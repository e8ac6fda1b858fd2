// The expected result of every scalar op of a kernel, by the rules of the op table.
//
//   Expected e = scalar_reference({OpKind::kAdd, Dtype::kInt8, 2}, Dtype::kInt8,
//                                 {from_int64(Dtype::kInt8, 127), from_int64(Dtype::kInt8, 1)}, false);
//   matches(e, Dtype::kInt8, from_int64(Dtype::kInt8, -128))
#pragma once

#include "tests/support/kernel_cases.h"
#include "tests/support/reference_float.h"
#include "tests/support/reference_integer.h"

namespace fusebox::testing {

inline Expected scalar_reference(const ScalarOutput& out, Dtype dtype, const Operands& operands, bool truth) {
  const OpKind kind = out.kind;
  if (kind == OpKind::kCast) {
    if (is_integer(out.dtype) || is_boolean(out.dtype))
      return expect_bits(out.dtype, convert(dtype, operands[0], out.dtype));
    const ConstantBits b = convert(dtype, operands[0], out.dtype);
    return {.value = {to_complex(out.dtype, b).real(), to_complex(out.dtype, b).imag()}};
  }
  const auto as_double = [&](size_t i) { return to_double(dtype, operands[i]); };
  const auto whole = [&](size_t i) { return wide_of(dtype, operands[i]); };
  const bool is_whole = is_integer(dtype) || is_boolean(dtype);
  const auto compare = [&](auto&& f) {
    return expect_truth(is_whole ? f(whole(0), whole(1)) : f(as_double(0), as_double(1)));
  };
  const auto complex = [&](size_t i) { return to_complex(dtype, operands[i]); };
  switch (kind) {
    case OpKind::kWhere: {
      const ConstantBits b = operands[truth ? 0 : 1];
      return is_whole ? expect_bits(dtype, b)
                      : Expected{.value = {to_complex(dtype, b).real(), to_complex(dtype, b).imag()}};
    }
    case OpKind::kLogicalNot:
      return expect_truth(!to_bool(dtype, operands[0]));
    case OpKind::kLogicalAnd:
      return expect_truth(to_bool(dtype, operands[0]) && to_bool(dtype, operands[1]));
    case OpKind::kLogicalOr:
      return expect_truth(to_bool(dtype, operands[0]) || to_bool(dtype, operands[1]));
    case OpKind::kEq:
      return is_complex(dtype) ? expect_truth(complex(0) == complex(1))
                               : compare([](auto a, auto b) { return a == b; });
    case OpKind::kNe:
      return is_complex(dtype) ? expect_truth(complex(0) != complex(1))
                               : compare([](auto a, auto b) { return a != b; });
    case OpKind::kLt:
      return compare([](auto a, auto b) { return a < b; });
    case OpKind::kLe:
      return compare([](auto a, auto b) { return a <= b; });
    case OpKind::kGt:
      return compare([](auto a, auto b) { return a > b; });
    case OpKind::kGe:
      return compare([](auto a, auto b) { return a >= b; });
    case OpKind::kIsfinite:
      return expect_truth(std::isfinite(complex(0).real()) && std::isfinite(complex(0).imag()));
    case OpKind::kIsinf:
      return expect_truth(std::isinf(complex(0).real()) || std::isinf(complex(0).imag()));
    case OpKind::kIsnan:
      return expect_truth(std::isnan(complex(0).real()) || std::isnan(complex(0).imag()));
    case OpKind::kIsreal:
      if (!is_complex(dtype)) return expect_truth(true);
      break;
    case OpKind::kIsneginf:
    case OpKind::kIsposinf:
      if (is_whole) return expect_truth(false);
      break;
    case OpKind::kComplex:
      return {.value = {as_double(0), as_double(1)}};
    default:  // any other: follows from its operands below
      break;
  }
  if (is_complex(dtype)) {
    if (dtype == Dtype::kComplexDouble)
      return complex_reference<double>(kind, complex(0), complex(1), complex(2), complex(3));
    const auto narrow = [&](size_t i) { return std::complex<float>(complex(i)); };
    return complex_reference<float>(kind, narrow(0), narrow(1), narrow(2), narrow(3));
  }
  if (is_boolean(dtype)) {
    const bool a = operands[0].low != 0, b = operands[1].low != 0;
    switch (kind) {
      case OpKind::kAdd:
      case OpKind::kMaximum:
      case OpKind::kBitwiseOr:
        return expect_truth(a || b);
      case OpKind::kMul:
      case OpKind::kMinimum:
      case OpKind::kBitwiseAnd:
        return expect_truth(a && b);
      case OpKind::kBitwiseXor:
        return expect_truth(a != b);
      case OpKind::kBitwiseNot:
        return expect_truth(!a);
      case OpKind::kSet:
      case OpKind::kAbs:
      case OpKind::kReal:
      case OpKind::kSign:
        return expect_truth(a);
      case OpKind::kSignbit:
        return expect_truth(false);
      default:  // any other: follows from its operands below
        break;
    }
  }
  if (is_whole && !is_floating(out.dtype)) return integer_reference(kind, dtype, operands);
  // Looks up the neighbours of a narrow float.
  if (kind == OpKind::kNextafter && is_reduced_float(dtype)) {
    const double a = as_double(0), b = as_double(1);
    if (std::isnan(a) || std::isnan(b) || a == b) return {.value = a == b ? b : NAN};
    double best = b > a ? INFINITY : -INFINITY;
    for (uint64_t i = 0; i < (uint64_t{1} << bits(dtype)); ++i) {
      const double v = to_double(dtype, {i, 0});
      if (b > a ? v > a && v < best : v < a && v > best) best = v;
    }
    return {.value = std::isinf(best) && !has_infinity(dtype) ? NAN : best};
  }
  if (out.dtype == Dtype::kDouble || dtype == Dtype::kDouble)
    return float_reference<double>(kind, out.dtype, as_double(0), as_double(1), as_double(2), as_double(3));
  const auto single = [&](size_t i) {
    return is_whole ? static_cast<float>(whole(i)) : static_cast<float>(as_double(i));
  };
  return float_reference<float>(kind, out.dtype, single(0), single(1), single(2), single(3));
}

}  // namespace fusebox::testing
