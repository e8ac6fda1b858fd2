// Ops on elements: ATen computes the value in double, and the loops round it and find its bound.
#include <ATen/ATen.h>
#include <ATen/TensorIterator.h>
#include <algorithm>
#include <array>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"
#include "replay/aten/common_dtype.h"
#include "replay/aten/evaluator.h"
#include "replay/aten/image.h"

namespace fusebox::aten {
namespace {

constexpr size_t kMostOperands = 4;
constexpr size_t kMostTensors = 10;  // value and bound of a result and four operands
constexpr double kRootHalf = 0.70710678118654752440;

std::vector<int64_t> broadcast_shape(std::span<const Carried> operands) {
  std::vector<int64_t> shape;
  for (const Carried& o : operands)
    shape = shape.empty() ? o.value.sizes().vec() : at::infer_size(shape, o.value.sizes());
  return shape;
}

// The value in double, in a tensor of its own. Undefined if ATen has no such function or no reliable one: sqrt may be
// MKL's; log1p, and pow on some processors, are infinite near the largest numbers.
at::Tensor value_of(OpKind kind, std::span<const Carried> o, Dtype compute) {
  const auto x = [&](size_t k) -> const at::Tensor& { return o[k].value; };
  switch (kind) {
    case OpKind::kAbs:
      return at::abs(x(0));
    case OpKind::kAcos:
      return at::acos(x(0));
    case OpKind::kAcosh:
      return at::acosh(x(0));
    case OpKind::kAsin:
      return at::asin(x(0));
    case OpKind::kAtan:
      return at::atan(x(0));
    case OpKind::kAtanh:
      return at::atanh(x(0));
    case OpKind::kCeil:
      return at::ceil(x(0));
    case OpKind::kCos:
      return at::cos(x(0));
    case OpKind::kExp:
      return at::exp(x(0));
    case OpKind::kExp2:
      return at::exp2(x(0));
    case OpKind::kExpm1:
      return at::expm1(x(0));
    case OpKind::kErf:
      return at::erf(x(0));
    case OpKind::kErfc:
      return at::erfc(x(0));
    case OpKind::kErfinv:
      return at::erfinv(x(0));
    // erfc(y) = 2 Φ(−y √2)
    case OpKind::kErfcinv:
      return at::special_ndtri(x(0) * 0.5).mul_(-kRootHalf);
    case OpKind::kFloor:
      return at::floor(x(0));
    case OpKind::kFrac:
      return at::frac(x(0));
    case OpKind::kLgamma:
      return at::lgamma(x(0));
    case OpKind::kLog:
      return at::log(x(0));
    case OpKind::kLog10:
      return at::log10(x(0));
    case OpKind::kLog2:
      return at::log2(x(0));
    case OpKind::kNeg:
      return at::neg(x(0));
    case OpKind::kRelu:
      return at::relu(x(0));
    case OpKind::kReciprocal:
      return at::reciprocal(x(0));
    case OpKind::kRound:
      return at::round(x(0));
    case OpKind::kRsqrt:
      return at::rsqrt(x(0));
    case OpKind::kSign:
      return at::sign(x(0));
    case OpKind::kSigmoid:
      return at::sigmoid(x(0));
    case OpKind::kSilu:
      return at::silu(x(0));
    case OpKind::kSin:
      return at::sin(x(0));
    case OpKind::kTan:
      return at::tan(x(0));
    case OpKind::kTanh:
      return at::tanh(x(0));
    case OpKind::kTrunc:
      return at::trunc(x(0));
    case OpKind::kAdd:
      return at::add(x(0), x(1));
    case OpKind::kSub:
      return at::sub(x(0), x(1));
    case OpKind::kMul:
      return at::mul(x(0), x(1));
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return at::div(x(0), x(1));
    case OpKind::kAtan2:
      return at::atan2(x(0), x(1));
    case OpKind::kMinimum:
      return at::minimum(x(0), x(1));
    case OpKind::kMaximum:
      return at::maximum(x(0), x(1));
    case OpKind::kNextafter:
      // nextafter has to step through the numbers of the dtype itself.
      if (compute == Dtype::kFloat) return at::nextafter(x(0).to(at::kFloat), x(1).to(at::kFloat)).to(at::kDouble);
      return at::nextafter(x(0), x(1));
    case OpKind::kLerp:
      return at::add(x(0), at::mul(x(2), at::sub(x(1), x(0))));
    case OpKind::kClamp:
      return at::minimum(at::maximum(x(0), x(1)), x(2));
    case OpKind::kAddcmul:
      return at::add(x(0), at::mul(at::mul(x(3), x(1)), x(2)));
    default:  // any other: nothing, and the element loop gives it or refuses the op
      return {};
  }
}

at::Tensor of_parts(const at::Tensor& parts) {
  return at::view_as_complex(parts.stride(-1) == 1 ? parts : parts.contiguous());
}

// Adds complex numbers part by part. ATen scales the second operand by 1 + 0i first, which makes NaN of an infinity.
at::Tensor by_parts(const at::Tensor& a, const at::Tensor& b, bool subtracts) {
  const at::Tensor x = at::view_as_real(a), y = at::view_as_real(b);
  return of_parts(subtracts ? at::sub(x, y) : at::add(x, y));
}

at::Tensor complex_value_of(OpKind kind, std::span<const Carried> o) {
  const auto x = [&](size_t k) -> const at::Tensor& { return o[k].value; };
  switch (kind) {
    case OpKind::kNeg:
      // ATen subtracts some complex numbers from 0, which loses the sign of a 0.
      return of_parts(at::neg(at::view_as_real(x(0))));
    case OpKind::kReciprocal:
      return at::reciprocal(x(0));
    case OpKind::kAdd:
      return by_parts(x(0), x(1), false);
    case OpKind::kSub:
      return by_parts(x(0), x(1), true);
    case OpKind::kMul:
      return at::mul(x(0), x(1));
    case OpKind::kDiv:
    case OpKind::kTruediv:
      return at::div(x(0), x(1));
    case OpKind::kAddcmul:
      return at::add(x(0), at::mul(at::mul(x(3), x(1)), x(2)));
    default:  // any other: nothing, and the caller refuses the op
      return {};
  }
}

// Ops whose zeros have the sign that IEEE gives, in every implementation. `relu` is none: of -0 our kernels and ATen on a
// CPU make -0, and ATen on a GPU may make 0.
bool keeps_zero_sign(OpKind kind) {
  switch (kind) {
    case OpKind::kSet:
    case OpKind::kSegmentSet:
    case OpKind::kNeg:
    case OpKind::kAbs:
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kTruediv:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kReciprocal:
    case OpKind::kSqrt:
      return true;
    default:  // any other: the sign is not known, so either passes
      return false;
  }
}

// Ops that are computed in float if their operands are bool or integers.
bool is_floating_op(OpKind kind, Dtype declared) {
  return (is_floating(declared) || is_complex(declared)) && kind != OpKind::kCast && kind != OpKind::kWhere;
}

}  // namespace

const at::Tensor& no_bound() {
  static const at::Tensor zero = at::zeros({}, at::kDouble);
  return zero;
}

at::Tensor free_where(const at::Tensor& condition) {
  // at::where of two numbers makes a tensor of floats, and bounds are read as doubles.
  static const at::Tensor infinity = at::scalar_tensor(kInfinity, at::kDouble);
  return at::where(condition, infinity, no_bound());
}

void run_loop(std::span<const at::Tensor> outputs, std::span<const at::Tensor> inputs,
              const std::function<void(const Row&)>& f) {
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false)
      .check_all_same_dtype(false)
      .check_all_same_device(false)
      .resize_outputs(false)
      .promote_inputs_to_common_dtype(false);
  for (const at::Tensor& t : outputs) config.add_output(t);
  for (const at::Tensor& t : inputs) config.add_const_input(t);
  auto iterator = config.build();
  if (iterator.numel() == 0) return;
  const size_t tensors = outputs.size() + inputs.size();
  iterator.for_each(
      [&f, tensors](char** data, const int64_t* strides, int64_t n, int64_t rows) {
        char* at[kMostTensors];
        std::copy(data, data + tensors, at);
        for (int64_t row = 0; row < rows; ++row) {
          f(Row{at, strides, n});
          for (size_t k = 0; k < tensors; ++k) at[k] += strides[tensors + k];
        }
      },
      8192);
}

Carried Evaluator::into(void (*loop)(const Loop&, const Row&), const Loop& spec, std::span<const Carried> operands,
                        at::ScalarType type) {
  const std::vector<int64_t> shape = broadcast_shape(operands);
  Carried r;
  r.dtype = spec.declared;
  r.value = at::empty(shape, type);
  r.bound = at::empty(shape, at::kDouble);
  std::vector<at::Tensor> inputs;
  bool exact = true;
  for (const Carried& o : operands) {
    inputs.push_back(o.value);
    inputs.push_back(o.exact() ? no_bound() : o.bound);
    exact &= o.exact() && o.zero_sign;
  }
  const at::Tensor outputs[] = {r.value, r.bound};
  run_loop(outputs, inputs, [&](const Row& row) { loop(spec, row); });
  // Exact operands give exact results in these loops, except the modulus of a complex number.
  const bool is_modulus = spec.kind == OpKind::kAbs && is_complex(spec.compute);
  if (!options_.bounds || (exact && !is_modulus)) r.bound = at::Tensor();
  return r;
}

Carried Evaluator::rounded(at::Tensor value, Dtype declared) {
  const at::Tensor outputs[] = {value};
  if (carrier_of(declared) == Carrier::kComplex) {
    run_loop(outputs, {}, [&](const Row& row) { complex_round_loop(declared, row); });
  } else if (declared != Dtype::kDouble) {
    run_loop(outputs, {}, [&](const Row& row) { round_loop(declared, row); });
  }
  Carried r;
  r.value = std::move(value);
  r.dtype = declared;
  return r;
}

Carried Evaluator::real_op(const Op& op, Dtype compute, Dtype declared, std::vector<Carried> operands) {
  std::atomic<bool> unsure_zero = false;
  // ATen knows no approximations: a value without a bound is that of the exact op.
  const bool is_fast = options_.bounds && op.attrs.flag(AttrKey::kFast);
  Loop loop{op.kind, compute, declared, {}, &ambiguous_, is_fast, is_by_cuda(op), &unsure_zero};
  bool exact = true, zero_sign = true;
  std::vector<at::Tensor> inputs;
  for (const Carried& o : operands) {
    loop.operands.push_back({o.dtype, o.zero_sign});
    inputs.push_back(o.value);
    inputs.push_back(o.exact() ? no_bound() : o.bound);
    exact &= o.exact();
    zero_sign &= o.zero_sign;
  }
  at::Tensor y = value_of(op.kind, operands, compute);
  if (!y.defined()) {
    y = at::empty(broadcast_shape(operands), at::kDouble);
    // The loop expects a bound behind the value; the value stands in for it.
    const at::Tensor outputs[] = {y, y};
    run_loop(outputs, inputs, [&](const Row& row) { real_value_loop(loop, row); });
  }
  Carried r;
  // An op on narrow floats is computed in float first, which may land half-way between two narrow floats.
  if (rounds_twice(loop)) y = rounded(std::move(y), compute).value;
  if (!options_.bounds || (exact && zero_sign && !loop.has_error())) {
    r = rounded(std::move(y), declared);
  } else {
    r.dtype = declared;
    r.value = std::move(y);
    r.bound = at::empty(r.value.sizes(), at::kDouble);
    const at::Tensor outputs[] = {r.value, r.bound};
    run_loop(outputs, inputs, [&](const Row& row) { real_loop(loop, row); });
  }
  r.zero_sign = zero_sign && keeps_zero_sign(op.kind) && !unsure_zero;
  return r;
}

Carried Evaluator::complex_op(const Op& op, Dtype compute, Dtype declared, std::vector<Carried> operands) {
  std::atomic<bool> unsure_zero = false;
  Loop loop{op.kind, compute, declared, {}, &ambiguous_};
  loop.unsure_zero = &unsure_zero;
  bool zero_sign = true;
  for (const Carried& o : operands) {
    loop.operands.push_back({o.dtype, o.zero_sign});
    zero_sign &= o.zero_sign;
  }
  if (gives_truth(op.kind)) return into(complex_to_integer_loop, loop, operands, at::kLong);
  if (!is_complex(declared)) {
    Carried real = into(complex_to_real_loop, loop, operands, at::kDouble);
    real.zero_sign = zero_sign && !unsure_zero;
    return real;
  }
  at::Tensor y = complex_value_of(op.kind, operands);
  if (!y.defined() && is_library(op.kind, compute)) {
    const at::Tensor inputs[] = {operands[0].value, no_bound()};
    y = at::empty(operands[0].value.sizes(), at::kComplexDouble);
    const at::Tensor outputs[] = {y, y};
    run_loop(outputs, inputs, [&](const Row& row) { complex_value_loop(loop, row); });
  }
  if (!y.defined())
    throw Error(ErrorCode::kUnsupportedDtype,
                std::string(row_of(op.kind).text) + " has no arithmetic for complex numbers here");
  if (!options_.bounds) return rounded(std::move(y), declared);
  Carried r;
  r.dtype = declared;
  r.value = std::move(y);
  r.bound = at::empty(r.value.sizes(), at::kDouble);
  std::vector<at::Tensor> inputs;
  for (const Carried& o : operands) {
    inputs.push_back(o.value);
    inputs.push_back(o.exact() ? no_bound() : o.bound);
  }
  const at::Tensor outputs[] = {r.value, r.bound};
  run_loop(outputs, inputs, [&](const Row& row) { complex_loop(loop, row); });
  // The sign of a zero depends on how the parts are added, on which implementations differ.
  r.zero_sign = zero_sign && (op.kind == OpKind::kSet || op.kind == OpKind::kSegmentSet);
  return r;
}

Carried Evaluator::select(Dtype declared, std::vector<Carried> operands) {
  std::atomic<bool> unsure_zero = false;
  Loop loop{OpKind::kWhere, declared, declared, {}, &ambiguous_};
  loop.unsure_zero = &unsure_zero;
  if (carrier_of(declared) != Carrier::kBytes)
    for (size_t k : {size_t{1}, size_t{2}}) operands[k] = cast(std::move(operands[k]), declared);
  const bool zero_sign = operands[1].zero_sign && operands[2].zero_sign;
  const bool exact = operands[0].exact() && operands[1].exact() && operands[2].exact();
  Carried r;
  if (exact || !options_.bounds) {
    r.value = at::where(operands[0].value.to(at::kBool), operands[1].value, operands[2].value);
  } else {
    switch (carrier_of(declared)) {
      case Carrier::kReal:
        r = into(where_real_loop, loop, operands, at::kDouble);
        break;
      case Carrier::kComplex:
        r = into(where_complex_loop, loop, operands, at::kComplexDouble);
        break;
      case Carrier::kInteger:
      case Carrier::kBytes:
        r = into(where_integer_loop, loop, operands, at::kLong);
        break;
    }
  }
  r.dtype = declared;
  r.zero_sign = zero_sign && !unsure_zero;
  return r;
}

Carried Evaluator::pointwise(const Op& op, Dtype declared, std::vector<Carried> operands) {
  const OpKind kind = op.kind;
  if (kind == OpKind::kSet || kind == OpKind::kSegmentSet) {
    Carried r = std::move(operands[0]);
    return r.dtype == declared ? r : cast(std::move(r), declared);
  }
  if (kind == OpKind::kCast) return cast(std::move(operands[0]), declared);
  if (kind == OpKind::kWhere) return select(declared, std::move(operands));
  if (kind == OpKind::kComplex) {
    for (Carried& o : operands) o = cast(std::move(o), real_of(declared));
    Carried r;
    r.dtype = declared;
    const auto shape = broadcast_shape(operands);
    r.value = at::complex(operands[0].value.expand(shape), operands[1].value.expand(shape));
    if (!(operands[0].exact() && operands[1].exact()))
      r.bound = at::add(operands[0].exact() ? no_bound() : operands[0].bound,
                        operands[1].exact() ? no_bound() : operands[1].bound)
                    .expand(shape);
    r.zero_sign = operands[0].zero_sign && operands[1].zero_sign;
    return r;
  }
  std::array<Dtype, kMostOperands> dtypes;
  std::array<bool, kMostOperands> is_tensor;
  for (size_t k = 0; k < operands.size(); ++k) {
    dtypes[k] = operands[k].dtype;
    is_tensor[k] = g_.is_tensor(op.operands[k]);
  }
  const Dtype common =
      common_dtype_by_aten({dtypes.data(), operands.size()}, std::span<const bool>(is_tensor.data(), operands.size()));
  Dtype compute = compute_dtype(common);
  // Comparisons and logic convert a scalar to the tensors' dtype.
  const bool any_tensor = std::any_of(is_tensor.begin(), is_tensor.begin() + operands.size(), [](bool t) { return t; });
  if (any_tensor && (is_comparison(kind) || is_logic(kind)))
    for (size_t k = 0; k < operands.size(); ++k)
      if (!is_tensor[k]) operands[k] = cast(std::move(operands[k]), common);
  const bool whole = is_integer(common) || is_boolean(common);
  if (is_logic(kind)) {
    // Each operand is true or false by itself.
    const bool mixed = std::any_of(operands.begin(), operands.end(),
                                   [&](const Carried& o) { return carrier_of(o.dtype) != carrier_of(common); });
    if (mixed)
      for (Carried& o : operands) o = cast(std::move(o), Dtype::kBool);
    if (mixed) compute = Dtype::kBool;
  } else {
    if (whole && is_floating_op(kind, declared)) compute = compute_dtype(declared);
    for (Carried& o : operands)
      if (o.dtype != compute && carrier_of(compute) != Carrier::kInteger) {
        // A wider dtype holds narrower floats exactly, and they keep their own overflow.
        const bool held = is_floating(o.dtype) && is_floating(compute) && bits(o.dtype) <= bits(compute);
        if (!held) o = cast(std::move(o), compute);
      }
  }
  switch (carrier_of(compute)) {
    case Carrier::kComplex:
      return complex_op(op, compute, declared, std::move(operands));
    case Carrier::kInteger: {
      Loop loop{kind, compute, declared, {}, &ambiguous_};
      for (const Carried& o : operands) loop.operands.push_back({o.dtype, true});
      return into(integer_loop, loop, operands, at::kLong);
    }
    case Carrier::kReal:
      break;
    case Carrier::kBytes:
      throw Error(ErrorCode::kUnsupportedDtype, std::string(row_of(kind).text) + " has no arithmetic for " +
                                                    std::string(text(common)) + "; cast it first");
  }
  if (kind == OpKind::kReal) return cast(std::move(operands[0]), declared);
  if (gives_truth(kind)) {
    Loop loop{kind, compute, declared, {}, &ambiguous_};
    for (const Carried& o : operands) loop.operands.push_back({o.dtype, o.zero_sign});
    return into(real_to_integer_loop, loop, operands, at::kLong);
  }
  if (is_floating(declared)) return real_op(op, compute, declared, std::move(operands));
  // Computed with the scalar's higher class, then converted to the tensors' dtype.
  return cast(real_op(op, compute, compute, std::move(operands)), declared);
}

Carried Evaluator::full(const Op& op, Dtype declared) {
  const Carried fill = cast(carried(op.operands[0]), declared);
  const std::vector<int64_t> shape = integers(op, 1);
  return viewed(fill, [&](const at::Tensor& t) { return t.expand(shape); });
}

Carried Evaluator::iota(const Op& op, Dtype declared) {
  const int64_t length = integer(op.operands[0]);
  if (length < 0) throw Error(ErrorCode::kBadInput, "iota has a negative length; give 0 or more");
  const auto scalar_at = [&](size_t k, int64_t otherwise) {
    if (k < op.operands.size() && op.operands[k]) return cast(carried(op.operands[k]), declared);
    Carried c;
    c.dtype = Dtype::kInt64;
    c.value = at::scalar_tensor(otherwise, at::kLong);
    return cast(std::move(c), declared);
  };
  const Carried start = scalar_at(1, 0), step = scalar_at(2, 1);
  const auto bound_of = [](const Carried& c) { return c.exact() ? 0.0 : c.bound.item<double>(); };
  const Spread spread{bound_of(start), bound_of(step)};
  const at::Tensor index = at::arange(length, at::kLong);
  Carried r;
  r.dtype = declared;
  if (carrier_of(declared) == Carrier::kInteger) {
    r.value = at::add(start.value, at::mul(index, step.value));
    if (!spread.is_zero()) {
      r.bound = at::empty(r.value.sizes(), at::kDouble);
      double* bound = r.bound.data_ptr<double>();
      for (int64_t i = 0; i < length; ++i) bound[i] = spread.at(i);
    }
    Loop loop{OpKind::kCast, Dtype::kInt64, declared, {{Dtype::kInt64, true}}, &ambiguous_};
    return into(integer_loop, loop, std::span<const Carried>(&r, 1), at::kLong);
  }
  r.value = index.to(at::kDouble);
  r.bound = at::empty(r.value.sizes(), at::kDouble);
  const at::Tensor outputs[] = {r.value, r.bound};
  const double first = start.value.item<double>(), by = step.value.item<double>();
  run_loop(outputs, {}, [&](const Row& row) { iota_loop(declared, first, by, spread, row); });
  if (!options_.bounds) r.bound = at::Tensor();
  return r;
}

}  // namespace fusebox::aten
