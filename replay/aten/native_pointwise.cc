// Functions of elements by ATen's kernels: floats of 16 bits and more, and integers where ATen's rule is this project's.
#include <algorithm>
#include <cmath>

#include "ir/scalar/numeric.h"
#include "ir/table/families.h"
#include "replay/aten/native.h"
#include "replay/aten/native_functions.h"

namespace fusebox::aten {
namespace {

bool is_native_float(Dtype d) {
  return d == Dtype::kHalf || d == Dtype::kBfloat16 || d == Dtype::kFloat || d == Dtype::kDouble;
}
bool is_native_integer(Dtype d) {
  return d == Dtype::kInt8 || d == Dtype::kInt16 || d == Dtype::kInt32 || d == Dtype::kInt64 || d == Dtype::kIndex ||
         d == Dtype::kUint8;
}

// A function of each element, into memory that TensorIterator has laid out, which is dense.
template <class F>
at::Tensor by_element(const at::Tensor& x, F&& f) {
  const at::Tensor y = at::neg(x);
  y.copy_(x);
  const auto apply = [&](auto* data) {
    for (int64_t i = 0; i < y.numel(); ++i) data[i] = f(data[i]);
  };
  if (y.scalar_type() == at::kDouble)
    apply(y.mutable_data_ptr<double>());
  else
    apply(y.mutable_data_ptr<float>());
  return y;
}

// On a CPU, ATen's sqrt may be MKL's, which does not always round right, its log1p is infinite near the largest numbers,
// and its cosh and sinh are infinite where exp is.
UnaryFunction unary_on_cpu(OpKind kind) {
  if (kind == OpKind::kSqrt)
    return [](const at::Tensor& x) { return by_element(x, [](auto v) { return std::sqrt(v); }); };
  if (kind == OpKind::kLog1p)
    return [](const at::Tensor& x) { return by_element(x, [](auto v) { return std::log1p(v); }); };
  if (kind == OpKind::kCosh)
    return [](const at::Tensor& x) { return by_element(x, [](auto v) { return std::cosh(v); }); };
  if (kind == OpKind::kSinh)
    return [](const at::Tensor& x) { return by_element(x, [](auto v) { return std::sinh(v); }); };
  return nullptr;
}
// ATen's functions of narrow floats that are less exact than those of float.
bool is_computed_wide(OpKind kind) {
  constexpr OpKind kWide[] = {OpKind::kCosh,  OpKind::kErf,  OpKind::kLog1p,
                              OpKind::kRsqrt, OpKind::kSinh, OpKind::kSqrt};
  return std::ranges::count(kWide, kind) > 0;
}

// Ops on integers where ATen gives what this project gives, also where numbers wrap.
bool is_integer_native(OpKind kind) {
  switch (kind) {
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kNeg:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case OpKind::kSign:
    case OpKind::kRelu:
      return true;
    default:  // any other: the reference computes it
      return false;
  }
}
bool is_truth_native(OpKind kind) { return is_comparison(kind) || is_logic(kind); }
bool is_bitwise_native(OpKind kind) {
  return kind == OpKind::kBitwiseAnd || kind == OpKind::kBitwiseOr || kind == OpKind::kBitwiseXor;
}

// Whether a conversion by ATen rounds once, and is defined for every number.
bool is_cast_native(Dtype from, Dtype to) {
  if (is_complex(from)) return is_complex(to) || to == Dtype::kBool;
  if (is_native_float(from)) {
    if (to == Dtype::kBool || is_complex(to)) return true;
    return is_native_float(to) && !(from == Dtype::kDouble && is_reduced_float(to));
  }
  if (!is_integer(from) && from != Dtype::kBool) return false;
  // The bits of an integer are those of the signed one, but its value is not.
  if (is_integer(to) || to == Dtype::kBool) return true;
  if (from == Dtype::kUint64) return false;
  return is_complex(to) || (is_native_float(to) && (!is_reduced_float(to) || bits(from) <= 8));
}

}  // namespace

at::Tensor Native::scalar(ValueId v, Dtype as) const {
  if (is_meta()) return like({}, {}, native_type(as));
  const Dtype from = dtype(v);
  const auto known = g_[v].constant ? g_[v].constant : bindings_[v.index];
  check_internal(known.has_value(), "a segment's scalar is not known");
  const ConstantBits bits = convert(from, *known, as);
  if (is_complex(as)) {
    const auto z = to_complex(as, bits);
    return at::scalar_tensor(c10::complex<double>(z.real(), z.imag()), native_type(as));
  }
  if (is_floating(as)) return at::scalar_tensor(to_double(as, bits), native_type(as));
  return at::scalar_tensor(static_cast<int64_t>(bits.low), at::kLong).to(native_type(as));
}

at::Tensor Native::operand(ValueId v, Dtype as) const {
  if (!g_.is_tensor(v)) return scalar(v, as);
  return cast(values_[v.index], dtype(v), as);
}

at::Tensor Native::cast(const at::Tensor& x, Dtype from, Dtype to) const {
  // Integers of one width have the same bits.
  if (from == to || (native_type(from) == native_type(to) && is_integer(from))) return x;
  const bool is_hidden = from == Dtype::kUint16 || from == Dtype::kUint32;
  if (!is_hidden || is_meta()) return converted(x, native_type(to));
  // ATen sees a signed integer of the same bits. The sum has the layout of a conversion.
  const at::Tensor wide = x.to(at::kLong);
  return wide.bitwise_and_(from == Dtype::kUint16 ? int64_t{0xffff} : int64_t{0xffffffff}).to(native_type(to));
}

at::Tensor Native::select(const Op& op) {
  const Dtype declared = dtype(op.results[0]);
  if (dtype(op.operands[0]) != Dtype::kBool) return {};
  for (size_t i : {size_t{1}, size_t{2}}) {
    const ValueId v = op.operands[i];
    if (g_.is_tensor(v) ? dtype(v) != declared
                        : !(is_native_float(declared) || is_integer(declared) || is_complex(declared)))
      return {};
  }
  // A choice takes numbers from its own device only.
  const auto here = [&](size_t i, Dtype as) { return operand(op.operands[i], as).to(device_); };
  const at::Tensor c = here(0, Dtype::kBool), x = here(1, declared), y = here(2, declared);
  return elements(native_type(declared), {c, x, y}, [&] { return at::where(c, x, y); });
}

at::Tensor Native::integer_pointwise(const Op& op, Dtype t) {
  // A number beside tensors wraps to their dtype.
  for (ValueId v : op.operands)
    if (v && dtype(v) != t && (g_.is_tensor(v) || !is_integer(dtype(v)) || is_boolean(t))) return {};
  const bool truth = is_truth_native(op.kind);
  const bool fits = truth || is_bitwise_native(op.kind) || (t != Dtype::kBool && is_integer_native(op.kind));
  const bool is_known = is_native_integer(t) || t == Dtype::kBool;
  if (!fits || !is_known || (t == Dtype::kUint8 && op.kind == OpKind::kNeg)) return wide_integers(op, t);
  const auto type = truth ? at::kBool : native_type(t);
  const at::Tensor x = operand(op.operands[0], t);
  if (const UnaryFunction f = unary_of(op.kind); f && op.operands.size() == 1)
    return elements(type, {x}, [&] { return f(x); });
  const BinaryFunction f = binary_of(op.kind);
  if (!f || op.operands.size() != 2) return wide_integers(op, t);
  const at::Tensor y = operand(op.operands[1], t);
  return elements(type, {x, y}, [&] { return f(x, y); });
}

at::Tensor Native::real_pointwise(const Op& op, Dtype t, Dtype declared) {
  const bool truth = declared == Dtype::kBool;
  if (op.kind == OpKind::kComplex) {
    const at::Tensor a = operand(op.operands[0], t), b = operand(op.operands[1], t);
    const auto here = [&](const at::Tensor& x) { return x.to(device_); };
    return laid_elements(native_type(declared), {a, b}, [&] {
      const auto both = at::broadcast_tensors({here(a), here(b)});
      return at::complex(both[0], both[1]);
    });
  }
  if (!truth && !is_native_float(declared)) return {};
  // Comparisons and logic convert a scalar to the tensors' dtype, other ops to the dtype that they compute in.
  const Dtype compute = is_truth_native(op.kind) ? t : compute_dtype(t);
  for (ValueId v : op.operands)
    if (v && !g_.is_tensor(v) &&
        !(is_native_float(dtype(v)) || is_native_integer(dtype(v)) || dtype(v) == Dtype::kBool))
      return {};
  const auto type = truth ? at::kBool : native_type(compute);
  const auto x = [&](size_t i) { return operand(op.operands[i], compute); };
  const auto done = [&](const at::Tensor& made) { return truth ? made : converted(made, native_type(declared)); };
  const auto two = [&](OpKind kind, const at::Tensor& a, const at::Tensor& b) {
    return elements(type, {a, b}, [&] { return binary_of(kind)(a, b); });
  };
  const UnaryFunction exact = device_.is_cpu() ? unary_on_cpu(op.kind) : nullptr;
  if (const UnaryFunction f = exact ? exact : unary_of(op.kind)) {
    // ATen computes narrow floats in float too, and rounds once.
    const bool is_narrow = g_.is_tensor(op.operands[0]) && dtype(op.operands[0]) == t;
    if (!truth && compute != t && declared == t && is_narrow && !is_computed_wide(op.kind)) {
      const at::Tensor& narrow = values_[op.operands[0].index];
      return elements(native_type(t), {narrow}, [&] { return f(narrow); });
    }
    const at::Tensor a = x(0);
    return done(elements(type, {a}, [&] { return f(a); }));
  }
  if (binary_of(op.kind) && op.operands.size() == 2 && !is_bitwise_native(op.kind))
    return done(two(op.kind, x(0), x(1)));
  switch (op.kind) {
    case OpKind::kLerp: {
      const at::Tensor a = x(0), b = x(1), w = x(2);
      return done(two(OpKind::kAdd, a, two(OpKind::kMul, w, two(OpKind::kSub, b, a))));
    }
    case OpKind::kClamp:
      return done(two(OpKind::kMinimum, two(OpKind::kMaximum, x(0), x(1)), x(2)));
    case OpKind::kAddcmul:
      return done(two(OpKind::kAdd, x(0), two(OpKind::kMul, two(OpKind::kMul, x(3), x(1)), x(2))));
    case OpKind::kThreshold: {
      const at::Tensor a = x(0), limit = x(1).to(device_), other = x(2).to(device_);
      return done(laid_elements(type, {a, limit, other}, [&] { return at::where(a <= limit, other, a); }));
    }
    case OpKind::kPow: {
      // Powers of double by a GPU are less exact than this project's, so double's own are the reference's.
      if (compute == Dtype::kDouble) return {};
      const at::Tensor a = x(0), b = x(1);
      return done(laid_elements(type, {a, b}, [&] { return at::pow(a.to(at::kDouble), b.to(at::kDouble)).to(type); }));
    }
    default:  // any other: the reference computes it
      return {};
  }
}

at::Tensor Native::pointwise(const Op& op) {
  const Dtype declared = dtype(op.results[0]);
  if (op.kind == OpKind::kSet || op.kind == OpKind::kSegmentSet || op.kind == OpKind::kCast) {
    const ValueId from = op.operands[0];
    if (!g_.is_tensor(from)) return {};
    const bool is_same = dtype(from) == declared;
    return is_same || is_cast_native(dtype(from), declared) ? cast(values_[from.index], dtype(from), declared)
                                                            : at::Tensor();
  }
  if (op.kind == OpKind::kWhere) return select(op);
  // The dtype of all tensors among the operands.
  std::optional<Dtype> common;
  for (ValueId v : op.operands) {
    if (!v || !g_.is_tensor(v)) continue;
    if (common && *common != dtype(v)) return {};
    common = dtype(v);
  }
  if (!common) return {};
  if (is_complex(*common)) return complex_pointwise(op, *common, declared);
  if (is_native_float(*common)) return real_pointwise(op, *common, declared);
  if (!is_integer(*common) && *common != Dtype::kBool) return {};
  // Integers become floats first.
  if (is_native_float(declared) && *common != Dtype::kUint64) return real_pointwise(op, declared, declared);
  if (declared != *common && declared != Dtype::kBool) return {};
  return integer_pointwise(op, *common);
}

}  // namespace fusebox::aten
