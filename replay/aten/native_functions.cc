#include "replay/aten/native_functions.h"

namespace fusebox::aten {

UnaryFunction unary_of(OpKind kind) {
  switch (kind) {
    case OpKind::kAbs:
      return [](const at::Tensor& x) { return at::abs(x); };
    case OpKind::kAcos:
      return [](const at::Tensor& x) { return at::acos(x); };
    case OpKind::kAcosh:
      return [](const at::Tensor& x) { return at::acosh(x); };
    case OpKind::kAsin:
      return [](const at::Tensor& x) { return at::asin(x); };
    case OpKind::kAsinh:
      return [](const at::Tensor& x) { return at::asinh(x); };
    case OpKind::kAtan:
      return [](const at::Tensor& x) { return at::atan(x); };
    case OpKind::kAtanh:
      return [](const at::Tensor& x) { return at::atanh(x); };
    case OpKind::kCeil:
      return [](const at::Tensor& x) { return at::ceil(x); };
    case OpKind::kCos:
      return [](const at::Tensor& x) { return at::cos(x); };
    case OpKind::kCosh:
      return [](const at::Tensor& x) { return at::cosh(x); };
    case OpKind::kExp:
      return [](const at::Tensor& x) { return at::exp(x); };
    case OpKind::kExp2:
      return [](const at::Tensor& x) { return at::exp2(x); };
    case OpKind::kExpm1:
      return [](const at::Tensor& x) { return at::expm1(x); };
    case OpKind::kErf:
      return [](const at::Tensor& x) { return at::erf(x); };
    case OpKind::kErfc:
      return [](const at::Tensor& x) { return at::erfc(x); };
    case OpKind::kFloor:
      return [](const at::Tensor& x) { return at::floor(x); };
    case OpKind::kFrac:
      return [](const at::Tensor& x) { return at::frac(x); };
    case OpKind::kLog:
      return [](const at::Tensor& x) { return at::log(x); };
    case OpKind::kLog10:
      return [](const at::Tensor& x) { return at::log10(x); };
    case OpKind::kLog1p:
      return [](const at::Tensor& x) { return at::log1p(x); };
    case OpKind::kLog2:
      return [](const at::Tensor& x) { return at::log2(x); };
    case OpKind::kNeg:
      return [](const at::Tensor& x) { return at::neg(x); };
    case OpKind::kRelu:
      return [](const at::Tensor& x) { return at::relu(x); };
    case OpKind::kReciprocal:
      return [](const at::Tensor& x) { return at::reciprocal(x); };
    case OpKind::kRound:
      return [](const at::Tensor& x) { return at::round(x); };
    case OpKind::kRsqrt:
      return [](const at::Tensor& x) { return at::rsqrt(x); };
    case OpKind::kSign:
      return [](const at::Tensor& x) { return at::sign(x); };
    case OpKind::kSigmoid:
      return [](const at::Tensor& x) { return at::sigmoid(x); };
    case OpKind::kSilu:
      return [](const at::Tensor& x) { return at::silu(x); };
    case OpKind::kSin:
      return [](const at::Tensor& x) { return at::sin(x); };
    case OpKind::kSinh:
      return [](const at::Tensor& x) { return at::sinh(x); };
    case OpKind::kSqrt:
      return [](const at::Tensor& x) { return at::sqrt(x); };
    case OpKind::kTan:
      return [](const at::Tensor& x) { return at::tan(x); };
    case OpKind::kTanh:
      return [](const at::Tensor& x) { return at::tanh(x); };
    case OpKind::kTrunc:
      return [](const at::Tensor& x) { return at::trunc(x); };
    case OpKind::kLogicalNot:
      return [](const at::Tensor& x) { return at::logical_not(x); };
    case OpKind::kSignbit:
      // A NaN has no sign: processors give the NaN of 0 / 0 different ones.
      return [](const at::Tensor& x) { return at::signbit(x).logical_and_(at::isnan(x).logical_not_()); };
    case OpKind::kIsfinite:
      return [](const at::Tensor& x) { return at::isfinite(x); };
    case OpKind::kIsinf:
      return [](const at::Tensor& x) { return at::isinf(x); };
    case OpKind::kIsnan:
      return [](const at::Tensor& x) { return at::isnan(x); };
    case OpKind::kIsneginf:
      return [](const at::Tensor& x) { return at::isneginf(x); };
    case OpKind::kIsposinf:
      return [](const at::Tensor& x) { return at::isposinf(x); };
    default:  // any other: ATen has no such function of one number
      return nullptr;
  }
}

namespace {

// ATen makes the result of a logical op on the device of the first operand, and a number is on the CPU.
at::Tensor by_tensor(at::Tensor (*f)(const at::Tensor&, const at::Tensor&), const at::Tensor& x, const at::Tensor& y) {
  return x.dim() == 0 && x.is_cpu() ? f(y, x) : f(x, y);
}

// On a GPU, ATen multiplies by the reciprocal of a number that lies on the CPU, which rounds twice.
at::Tensor divided(const at::Tensor& x, const at::Tensor& y) {
  return y.dim() == 0 && y.is_cpu() && !x.is_cpu() ? at::div(x, y.to(x.device())) : at::div(x, y);
}

}  // namespace

BinaryFunction binary_of(OpKind kind) {
  switch (kind) {
    case OpKind::kAdd:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::add(x, y); };
    case OpKind::kSub:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::sub(x, y); };
    case OpKind::kMul:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::mul(x, y); };
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return divided;
    case OpKind::kAtan2:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::atan2(x, y); };
    case OpKind::kMinimum:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::minimum(x, y); };
    case OpKind::kMaximum:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::maximum(x, y); };
    case OpKind::kEq:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::eq(x, y); };
    case OpKind::kNe:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::ne(x, y); };
    case OpKind::kLt:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::lt(x, y); };
    case OpKind::kLe:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::le(x, y); };
    case OpKind::kGt:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::gt(x, y); };
    case OpKind::kGe:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::ge(x, y); };
    case OpKind::kLogicalAnd:
      return [](const at::Tensor& x, const at::Tensor& y) { return by_tensor(at::logical_and, x, y); };
    case OpKind::kLogicalOr:
      return [](const at::Tensor& x, const at::Tensor& y) { return by_tensor(at::logical_or, x, y); };
    case OpKind::kBitwiseAnd:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::bitwise_and(x, y); };
    case OpKind::kBitwiseOr:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::bitwise_or(x, y); };
    case OpKind::kBitwiseXor:
      return [](const at::Tensor& x, const at::Tensor& y) { return at::bitwise_xor(x, y); };
    default:  // any other: ATen has no such function of two numbers
      return nullptr;
  }
}

at::Tensor native_value(OpKind kind, std::span<const at::Tensor> operands) {
  const at::Tensor& x = operands[0];
  if (const UnaryFunction f = unary_of(kind)) return f(x);
  if (const BinaryFunction f = binary_of(kind)) return f(x, operands[1]);
  return {};
}

}  // namespace fusebox::aten
