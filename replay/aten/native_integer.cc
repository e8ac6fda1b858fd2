// Functions of integers by ATen's kernels. ATen stops a program that divides by 0 on a CPU, and has other rules than this
// project's for wide shifts and for unsigned integers of more than 8 bits. So these ops are computed in 64 bits, and then
// wrap to their dtype.
#include <cstdint>

#include "ir/table/families.h"
#include "replay/aten/native.h"
#include "replay/aten/native_functions.h"

namespace fusebox::aten {
namespace {

// 64-bit values, as those of the dtype read them.
at::Tensor widened(const at::Tensor& x, Dtype t) {
  const at::Tensor wide = x.to(at::kLong);
  if (t == Dtype::kUint16) return at::bitwise_and(wide, int64_t{0xffff});
  if (t == Dtype::kUint32) return at::bitwise_and(wide, int64_t{0xffffffff});
  return wide;
}

// The divisor, or 1 where a division may stop the program: by 0, and of the least integer by −1.
at::Tensor safe_divisor(const at::Tensor& y) { return at::where(at::logical_or(y == 0, y == -1), 1, y); }

at::Tensor quotient(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor q = at::div(x, safe_divisor(y), "trunc");
  return at::where(y == 0, 0, at::where(y == -1, at::neg(x), q));
}

// A count of bits that the machine shifts by, for counts outside of the width too.
at::Tensor within(const at::Tensor& count, int64_t width) { return count.clamp(0, width - 1); }
at::Tensor is_outside(const at::Tensor& count, int64_t width) { return at::logical_or(count < 0, count >= width); }

at::Tensor logical_shift(const at::Tensor& x, const at::Tensor& count, int64_t width) {
  at::Tensor shifted;
  if (width < 64) {
    const at::Tensor own = at::bitwise_and(x, (int64_t{1} << width) - 1);
    shifted = at::bitwise_right_shift(own, within(count, width));
  } else {
    // One bit first, without its sign; then the others.
    const at::Tensor half = at::bitwise_and(at::bitwise_right_shift(x, 1), INT64_MAX);
    shifted = at::where(count == 0, x, at::bitwise_right_shift(half, (count - 1).clamp(0, 62)));
  }
  return at::where(is_outside(count, width), 0, shifted);
}

// Nothing for an op that is not of integers, or that the callers compute otherwise.
at::Tensor integer_value(OpKind kind, int64_t width, std::span<const at::Tensor> v) {
  const at::Tensor& x = v[0];
  switch (kind) {
    case FUSEBOX_ROUNDING_OPS:
      return x;
    case OpKind::kBitwiseNot:
      return at::bitwise_not(x);
    case OpKind::kRelu:
      return x.clamp_min(0);
    case OpKind::kDiv:
      return quotient(x, v[1]);
    case OpKind::kFmod:
    case OpKind::kMod:
      return at::where(v[1] == 0, 0, at::fmod(x, safe_divisor(v[1])));
    case OpKind::kRemainder:
      return at::where(v[1] == 0, 0, at::remainder(x, safe_divisor(v[1])));
    case OpKind::kPow:
      return at::pow(x, v[1]);
    case OpKind::kGcd:
      // The least integer has no magnitude, so a sign may be left.
      return at::abs(at::gcd(x, v[1]));
    case OpKind::kBitwiseLeftShift:
      return at::where(is_outside(v[1], width), 0, at::bitwise_left_shift(x, within(v[1], width)));
    case OpKind::kBitwiseRightShift:
      return at::bitwise_right_shift(x, at::where(is_outside(v[1], width), 63, v[1]));
    case OpKind::kLogicalRightShift:
      return logical_shift(x, v[1], width);
    case OpKind::kClamp:
      return at::minimum(at::maximum(x, v[1]), v[2]);
    case OpKind::kThreshold:
      return at::where(x <= v[1], v[2], x);
    case OpKind::kAddcmul:
      return at::add(x, at::mul(at::mul(v[3], v[1]), v[2]));
    case OpKind::kSignbit:
      return at::lt(x, 0);
    case OpKind::kAbs:
    case OpKind::kNeg:
    case OpKind::kSign:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case OpKind::kBitwiseAnd:
    case OpKind::kBitwiseOr:
    case OpKind::kBitwiseXor:
    case FUSEBOX_COMPARISON_OPS:
    case FUSEBOX_LOGICAL_OPS:
      return native_value(kind, v);
    case FUSEBOX_TRUE_OF_INTEGERS_OPS:
      return at::eq(x, x);
    case FUSEBOX_FALSE_OF_INTEGERS_OPS:
      return at::ne(x, x);
    default:  // any other: the reference computes it
      return {};
  }
}

// Ops on bool that are other ops of logic.
at::Tensor boolean_value(OpKind kind, std::span<const at::Tensor> v) {
  switch (kind) {
    case OpKind::kAdd:
    case OpKind::kMaximum:
      return at::logical_or(v[0], v[1]);
    case OpKind::kMul:
    case OpKind::kMinimum:
      return at::logical_and(v[0], v[1]);
    case OpKind::kBitwiseNot:
      return at::logical_not(v[0]);
    case OpKind::kAbs:
    case OpKind::kSign:
      return v[0];
    case FUSEBOX_TRUE_OF_INTEGERS_OPS:
      return at::eq(v[0], v[0]);
    case OpKind::kSignbit:
    case FUSEBOX_FALSE_OF_INTEGERS_OPS:
      return at::ne(v[0], v[0]);
    default:  // any other: the reference computes it
      return {};
  }
}

// Ops on u64 that are those of i64.
bool has_no_sign(OpKind kind) {
  switch (kind) {
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kNeg:
    case OpKind::kAddcmul:
    case FUSEBOX_BITWISE_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_LOGICAL_OPS:
    case OpKind::kEq:
    case OpKind::kNe:
    case FUSEBOX_CLASS_TEST_OPS:
      return true;
    default:  // any other: the sign counts
      return false;
  }
}

}  // namespace

at::Tensor Native::wide_integers(const Op& op, Dtype t) {
  std::vector<at::Tensor> given;
  for (ValueId v : op.operands) given.push_back(g_.is_tensor(v) ? values_[v.index] : scalar(v, t).to(device_));
  // Tries the op on numbers first, so that no layout is inferred for an op that is not here.
  const at::Tensor one = at::ones({}, at::kLong);
  const std::vector<at::Tensor> ones(given.size(), one);
  const bool is_bool = t == Dtype::kBool, truth = gives_truth(op.kind);
  if (t == Dtype::kUint64 && !has_no_sign(op.kind)) return {};
  const int64_t width = bits(t);
  const auto value = [&](std::span<const at::Tensor> v) {
    return is_bool ? boolean_value(op.kind, v) : integer_value(op.kind, width, v);
  };
  if (!value(ones).defined()) return {};
  const auto type = truth ? at::kBool : native_type(t);
  return laid_elements(type, given, [&] {
    std::vector<at::Tensor> wide;
    for (const at::Tensor& x : given) wide.push_back(is_bool ? x : widened(x, t));
    return value(wide).to(type);
  });
}

}  // namespace fusebox::aten
