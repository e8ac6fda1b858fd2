// Arithmetic and functions of complex numbers by ATen's kernels.
//
// Quotients, magnitudes and functions of c64 are computed in c128 and rounded once. ATen's inverse trigonometric and
// hyperbolic functions on a GPU lose all digits of some numbers (asinh of −10⁹ is infinite), so the reference computes
// these, on the CPU.
#include "ir/scalar/numeric.h"
#include "ir/table/families.h"
#include "replay/aten/native.h"
#include "replay/aten/native_functions.h"

namespace fusebox::aten {
namespace {

at::Tensor of_parts(const at::Tensor& parts) {
  return at::view_as_complex(parts.stride(-1) == 1 ? parts : parts.contiguous());
}

// ATen scales the second operand of a sum by 1 + 0i first, which makes NaN of an infinity.
at::Tensor by_parts(const at::Tensor& a, const at::Tensor& b, bool subtracts) {
  const at::Tensor x = at::view_as_real(a), y = at::view_as_real(b);
  return of_parts(subtracts ? at::sub(x, y) : at::add(x, y));
}

// ATen subtracts some complex numbers from 0, which loses the sign of a 0.
at::Tensor negated(const at::Tensor& z) { return of_parts(at::neg(at::view_as_real(z))); }

// The exponential is at most 1 in modulus.
at::Tensor stable_sigmoid(const at::Tensor& z) {
  const at::Tensor is_left = at::real(z) < 0;
  const at::Tensor e = at::exp(at::where(is_left, z, at::neg(z)));
  return at::div(at::where(is_left, e, at::ones({}, e.options())), by_parts(e, at::ones({}, e.options()), false));
}

// Whether the op is computed in c128 and then rounded.
bool is_computed_in_double(OpKind kind) {
  switch (kind) {
    case FUSEBOX_COMPLEX_FUNCTION_OPS:
    case OpKind::kAbs:
    case OpKind::kDiv:
    case OpKind::kTruediv:
    case OpKind::kReciprocal:
      return true;
    default:  // any other: each part is rounded in its own dtype
      return false;
  }
}

// Nothing for an op that is not of complex numbers, or that the reference computes.
at::Tensor complex_value(OpKind kind, std::span<const at::Tensor> v) {
  const at::Tensor& x = v[0];
  switch (kind) {
    case OpKind::kNeg:
      return negated(x);
    case OpKind::kReal:
      return at::real(x);
    case OpKind::kImag:
      return at::imag(x);
    case OpKind::kAdd:
      return by_parts(x, v[1], false);
    case OpKind::kSub:
      return by_parts(x, v[1], true);
    case OpKind::kAddcmul:
      return by_parts(x, at::mul(at::mul(v[3], v[1]), v[2]), false);
    case OpKind::kRsqrt:
      return at::reciprocal(at::sqrt(x));
    case OpKind::kSigmoid:
      return stable_sigmoid(x);
    case OpKind::kIsreal:
      return at::isreal(x);
    case OpKind::kCos:
    case OpKind::kCosh:
    case OpKind::kExp:
    case OpKind::kLog:
    case OpKind::kSin:
    case OpKind::kSinh:
    case OpKind::kSqrt:
    case OpKind::kTan:
    case OpKind::kTanh:
    case OpKind::kAbs:
    case OpKind::kReciprocal:
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kTruediv:
    case OpKind::kEq:
    case OpKind::kNe:
    case FUSEBOX_LOGICAL_OPS:
    case OpKind::kIsfinite:
    case OpKind::kIsinf:
    case OpKind::kIsnan:
      return native_value(kind, v);
    default:  // any other: not of complex numbers, or the reference computes it
      return {};
  }
}

}  // namespace

at::Tensor Native::complex_pointwise(const Op& op, Dtype t, Dtype declared) {
  std::vector<at::Tensor> given;
  for (ValueId v : op.operands) {
    const bool is_tensor = g_.is_tensor(v);
    if (!is_tensor && is_storage_only(dtype(v))) return {};
    // A number beside tensors lies on their device, because its parts are an axis.
    given.push_back(is_tensor || is_meta() ? operand(v, t) : scalar(v, t).to(device_));
  }
  const at::Tensor one = at::ones({}, at::kComplexDouble);
  const std::vector<at::Tensor> ones(given.size(), one);
  if (!complex_value(op.kind, ones).defined()) return {};
  return laid_elements(native_type(declared), given, [&] {
    if (is_computed_in_double(op.kind))
      for (at::Tensor& x : given) x = x.to(at::kComplexDouble);
    return complex_value(op.kind, given).to(native_type(declared));
  });
}

}  // namespace fusebox::aten
