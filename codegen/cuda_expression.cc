#include "codegen/cuda_expression.h"

#include <bit>
#include <cmath>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

struct Typed {
  std::string text;
  Dtype dtype;
};

// Writes one op. `c_` is the computation dtype; `operand(i)` is an operand converted to it.
class Writer {
 public:
  Writer(OpKind kind, const Attrs& attrs, std::span<const CudaTerm> operands, Dtype result, CudaHeaders& headers)
      : kind_(kind), attrs_(attrs), operands_(operands), result_(result), headers_(headers) {
    if (operands.empty()) return;
    const size_t first = kind == OpKind::kWhere && operands.size() > 1 ? 1 : 0;
    common_ = operands[first].dtype;
    for (const CudaTerm& o : operands.subspan(first)) common_ = promote(common_, o.dtype);
    c_ = compute_dtype(common_);
  }

  Typed write();

 private:
  bool is_index() const { return c_ == Dtype::kIndex; }
  bool is_real() const { return c_ == Dtype::kFloat || c_ == Dtype::kDouble; }
  bool is_bool() const { return is_boolean(c_); }
  bool is_whole() const { return is_integer(c_); }

  [[noreturn]] void refuse() const {
    throw Error(ErrorCode::kUnsupportedDtype, std::string(row_of(kind_).text) + " of " + std::string(text(c_)) +
                                                  " has no CUDA code; cast the operands first");
  }
  std::string operand(size_t i, bool bare = false) const { return cuda_term(operands_[i], c_, headers_, bare); }

  Typed infix(std::string_view sign, Dtype dtype) const {
    // Beside an index, a constant may be an int. Two constants may not: they would be computed as ints.
    const bool bare = !operands_[0].constant || !operands_[1].constant;
    return {operand(0, bare) + " " + std::string(sign) + " " + operand(1, bare), dtype};
  }
  Typed infix(std::string_view sign) const { return infix(sign, c_); }
  // name(operands…)
  Typed call(std::string_view name, Dtype dtype) const {
    std::string result = std::string(name) + "(";
    for (size_t i = 0; i < operands_.size(); ++i) result += (i == 0 ? "" : ", ") + operand(i);
    return {result + ")", dtype};
  }
  Typed call(std::string_view name, CudaHeader header) const {
    headers_.need(header);
    return call(name, c_);
  }
  // CUDA's function for double, with an f appended for float; complex numbers have an overload.
  Typed library(std::string_view name) {
    to_floating();
    if (is_complex(c_)) return call(name, CudaHeader::kComplex);
    return call(std::string(name) + (c_ == Dtype::kFloat ? "f" : ""), c_);
  }
  // A function of runtime/exact_*.cuh, whose header for float stands before that for double.
  Typed exact(CudaHeader in_float) {
    to_floating();
    if (is_complex(c_)) return call(row_of(kind_).text, CudaHeader::kComplex);
    constexpr int kToDouble =
        static_cast<int>(CudaHeader::kExponentialDouble) - static_cast<int>(CudaHeader::kExponentialFloat);
    const int header = static_cast<int>(in_float) + (c_ == Dtype::kFloat ? 0 : kToDouble);
    return call("exact::" + std::string(row_of(kind_).text), static_cast<CudaHeader>(header));
  }
  bool is_fast() const { return c_ == Dtype::kFloat && attrs_.flag(AttrKey::kFast); }
  Typed fast(std::string_view name) const { return call("fast::" + std::string(name), CudaHeader::kFast); }
  // The hardware's approximation, or a function of runtime/exact_*.cuh.
  Typed fast_or_exact(CudaHeader in_float) {
    to_floating();
    return is_fast() ? fast(row_of(kind_).text) : exact(in_float);
  }
  Typed divided() const {
    if (is_fast() && !is_power_of_two(operands_[1].dtype, operands_[1].constant)) {
      if (operands_[1].divisor.empty()) return fast("divide");
      return {operand(0) + " * " + operands_[1].divisor, c_};
    }
    if (c_ == Dtype::kFloat && !operands_[1].divisor.empty()) {
      headers_.need(CudaHeader::kDivision);
      return {"quotient(" + operand(0) + ", " + operands_[1].divisor + ")", c_};
    }
    if (is_complex(c_)) headers_.need(CudaHeader::kComplex);
    return {operand(0) + " / " + cuda_divisor(operands_[1], c_, headers_), c_};
  }
  Typed real_library(std::string_view name) {
    to_floating();
    if (is_complex(c_)) refuse();
    return library(name);
  }
  // Integers and bool are computed in the result's floating dtype.
  void to_floating() {
    if (is_whole() || is_bool())
      c_ = is_floating(result_) || is_complex(result_) ? compute_dtype(result_) : Dtype::kFloat;
  }
  std::string one() const { return cuda_literal(c_, {c_ == Dtype::kFloat ? 0x3f800000u : 0x3ff0000000000000u, 0}); }
  // + − ×
  Typed arithmetic(std::string_view sign, std::string_view wrapping, std::string_view of_bool) const {
    if (is_bool()) return infix(of_bool);
    if (is_whole() && !is_index() && (is_signed(c_) || bits(c_) < 32)) return call(wrapping, CudaHeader::kInteger);
    if (is_complex(c_)) headers_.need(CudaHeader::kComplex);
    return infix(sign);
  }
  Typed integer(std::string_view name) const {
    if (!is_whole()) refuse();
    return call(name, CudaHeader::kInteger);
  }
  Typed compare(std::string_view sign, bool ordered) const {
    if (is_complex(c_)) {
      if (ordered) refuse();
      headers_.need(CudaHeader::kComplex);
    }
    return infix(sign, Dtype::kBool);
  }
  // minimum, relu …: one function for integers and reals
  Typed ordered(std::string_view name) const {
    if (!is_whole() && !is_real()) refuse();
    return call(name, CudaHeader::kCompare);
  }
  // `where`, in a form that the compiler cannot take for a maximum (compare.cuh says why).
  Typed choose() const {
    headers_.need(CudaHeader::kCompare);
    return {"choose(" + cuda_term(operands_[0], Dtype::kBool, headers_) + ", " +
                cuda_term(operands_[1], result_, headers_) + ", " + cuda_term(operands_[2], result_, headers_) + ")",
            result_};
  }
  Typed truth(std::string_view sign) const {
    return {cuda_term(operands_[0], Dtype::kBool, headers_) + " " + std::string(sign) + " " +
                cuda_term(operands_[1], Dtype::kBool, headers_),
            Dtype::kBool};
  }
  Typed bitwise(std::string_view sign, std::string_view of_bool) const {
    if (is_bool()) return infix(of_bool);
    if (!is_whole()) refuse();
    // Operators on narrow integers give an int.
    if (bits(c_) < 32) return {std::string(cuda_type(c_)) + "(" + infix(sign).text + ")", c_};
    return infix(sign);
  }
  // isnan …: a question about floats, with the answer for the others.
  Typed question(std::string_view name, std::string_view otherwise) const {
    if (is_whole() || is_bool()) return {std::string(otherwise), Dtype::kBool};
    headers_.need(is_complex(c_) ? CudaHeader::kComplex : CudaHeader::kReal);
    return call(name, Dtype::kBool);
  }
  Typed rounding(std::string_view name) {
    if (is_bool()) refuse();
    return is_whole() ? Typed{operand(0), c_} : real_library(name);
  }
  // floor_div, floor_mod. For `nonnegative` operands C++'s own operator is right. By a power of two it is a shift or a
  // mask: the compiler does not know the sign, and would mend the result of a negative number.
  Typed euclidean(std::string_view name, std::string_view sign) const {
    if (!attrs_.flag(AttrKey::kNonNegative)) return integer(name);
    const uint64_t divisor = operands_[1].constant ? operands_[1].constant->low : 0;
    if (!is_index() || operands_[0].constant || !std::has_single_bit(divisor)) return infix(sign);
    return {operand(0, true) + (sign == "/" ? " >> " + std::to_string(std::countr_zero(divisor))
                                            : " & " + std::to_string(divisor - 1)),
            c_};
  }
  Typed absolute() const {
    if (is_complex(c_)) {
      headers_.need(CudaHeader::kComplex);
      return call("abs_of", real_of(c_));
    }
    if (is_real()) return call(c_ == Dtype::kFloat ? "fabsf" : "fabs", c_);
    return is_whole() && is_signed(c_) ? integer("wrapping_abs") : Typed{operand(0), c_};
  }
  Typed negated() const {
    if (is_bool()) refuse();
    if (is_whole() && !is_index()) return integer("wrapping_neg");
    if (is_complex(c_)) headers_.need(CudaHeader::kComplex);
    return {"-" + (operands_[0].constant ? "(" + operand(0) + ")" : operand(0)), c_};
  }
  Typed next_after() {
    // The next number of the operands' own dtype.
    if (!is_reduced_float(common_)) return real_library("nextafter");
    c_ = common_;
    return call("next_after", CudaHeader::kReal);
  }
  Typed addcmul() const {
    if (is_bool()) refuse();
    if (is_whole() && !is_index()) {
      headers_.need(CudaHeader::kInteger);
      return {"wrapping_add(" + operand(0) + ", wrapping_mul(wrapping_mul(" + operand(3) + ", " + operand(1) + "), " +
                  operand(2) + "))",
              c_};
    }
    if (is_complex(c_)) headers_.need(CudaHeader::kComplex);
    return {operand(0) + " + " + operand(3) + " * " + operand(1) + " * " + operand(2), c_};
  }
  Typed complex_part(std::string_view part, std::string_view otherwise) const {
    if (!is_complex(c_)) return otherwise.empty() ? Typed{operand(0), c_} : Typed{std::string(otherwise), Dtype::kBool};
    return {operand(0) + "." + std::string(part), real_of(c_)};
  }

  OpKind kind_;
  const Attrs& attrs_;
  std::span<const CudaTerm> operands_;
  Dtype result_;
  CudaHeaders& headers_;
  Dtype common_ = Dtype::kFloat;
  Dtype c_ = Dtype::kFloat;
};

Typed Writer::write() {
  switch (kind_) {
    case OpKind::kSet:
    case OpKind::kSegmentSet:
    case OpKind::kCast:
      return {cuda_term(operands_[0], result_, headers_), result_};
    case OpKind::kAbs:
      return absolute();
    case OpKind::kExp:
    case OpKind::kExp2:
    case OpKind::kSigmoid:
    case OpKind::kSilu:
    case OpKind::kTanh:
      return fast_or_exact(CudaHeader::kExponentialFloat);
    case OpKind::kExpm1:
    case OpKind::kSinh:
    case OpKind::kCosh:
      return exact(CudaHeader::kExponentialFloat);
    case OpKind::kLog:
    case OpKind::kLog10:
    case OpKind::kLog2:
      return fast_or_exact(CudaHeader::kLogarithmFloat);
    case OpKind::kLog1p:
      return exact(CudaHeader::kLogarithmFloat);
    case OpKind::kSin:
    case OpKind::kCos:
      return fast_or_exact(CudaHeader::kTrigonometryFloat);
    case OpKind::kTan:
      return exact(CudaHeader::kTrigonometryFloat);
    case FUSEBOX_INVERSE_FUNCTION_OPS:
      return exact(CudaHeader::kInverseFloat);
    case OpKind::kAtan2:
      if (is_complex(c_)) refuse();
      return exact(CudaHeader::kInverseFloat);
    case OpKind::kErf:
    case OpKind::kErfc:
      if (is_complex(c_)) refuse();
      return exact(CudaHeader::kErrorFloat);
    case FUSEBOX_BOUNDED_UNARY_OPS:
      return real_library(row_of(kind_).text);
    case OpKind::kSqrt:
      to_floating();
      return is_fast() ? fast("sqrt") : library(row_of(kind_).text);
    case OpKind::kRsqrt: {
      to_floating();
      if (is_fast()) return fast("rsqrt");
      const Typed root = library(is_complex(c_) ? "rsqrt" : "sqrt");
      return is_complex(c_) ? root : Typed{one() + " / " + root.text, c_};
    }
    case OpKind::kCeil:
    case OpKind::kFloor:
    case OpKind::kTrunc:
      return rounding(row_of(kind_).text);
    case OpKind::kRound:
      return rounding("rint");
    case OpKind::kFrac:
      if (!is_real()) refuse();
      return call("frac", CudaHeader::kReal);
    case OpKind::kNeg:
      return negated();
    case OpKind::kLogicalNot:
      return {"!" + cuda_term(operands_[0], Dtype::kBool, headers_), Dtype::kBool};
    case OpKind::kBitwiseNot:
      if (is_bool()) return {"!" + operand(0), c_};
      if (!is_whole()) refuse();
      return {std::string(cuda_type(c_)) + "(~" + operand(0) + ")", c_};
    case OpKind::kRelu:
    case OpKind::kClamp:
    case OpKind::kThreshold:
      return ordered(row_of(kind_).text);
    case OpKind::kReciprocal:
      to_floating();
      if (is_complex(c_)) return call("reciprocal", CudaHeader::kComplex);
      if (is_fast()) return fast("reciprocal");
      return {one() + " / " + operand(0), c_};
    case OpKind::kSign:
      return is_bool() ? Typed{operand(0), c_} : ordered("sign");
    case OpKind::kSignbit:
      if (is_complex(c_)) refuse();
      if (is_bool() || (is_whole() && !is_signed(c_))) return {"false", Dtype::kBool};
      return is_whole() ? Typed{operand(0) + " < 0", Dtype::kBool} : question("sign_bit", "");
    case OpKind::kIsfinite:
      return question("is_finite", "true");
    case OpKind::kIsinf:
      return question("is_inf", "false");
    case OpKind::kIsnan:
      return question("is_nan", "false");
    case OpKind::kIsneginf:
    case OpKind::kIsposinf: {
      if (is_complex(c_)) refuse();
      Typed t = question("is_inf", "false");
      if (is_real()) t.text += " && " + operand(0) + (kind_ == OpKind::kIsposinf ? " > 0" : " < 0");
      return t;
    }
    case OpKind::kIsreal: {
      Typed t = complex_part("imag", "true");
      return is_complex(c_) ? Typed{t.text + " == 0", Dtype::kBool} : t;
    }
    case OpKind::kReal:
      return complex_part("real", "");
    case OpKind::kImag:
      if (!is_complex(c_)) refuse();
      return complex_part("imag", "");
    case OpKind::kAdd:
      return arithmetic("+", "wrapping_add", "||");
    case OpKind::kSub:
      return arithmetic("-", "wrapping_sub", "!=");
    case OpKind::kMul:
      return arithmetic("*", "wrapping_mul", "&&");
    case OpKind::kDiv:
      if (is_bool()) refuse();
      return is_whole() ? integer("divide") : divided();
    case OpKind::kTruediv:
      to_floating();
      return divided();
    case OpKind::kFmod:
    case OpKind::kMod:
      if (is_bool()) refuse();
      return is_whole() ? integer("remainder_of") : real_library("fmod");
    case OpKind::kRemainder:
      if (is_whole()) return integer("python_remainder");
      if (!is_real()) refuse();
      return call("python_remainder", CudaHeader::kReal);
    case OpKind::kNextafter:
      if (is_whole() || is_bool()) refuse();
      return next_after();
    case OpKind::kPow:
      if (is_bool()) refuse();
      return is_whole() ? integer("integer_pow") : exact(CudaHeader::kPowerFloat);
    case OpKind::kMinimum:
      return is_bool() ? infix("&&") : ordered("minimum");
    case OpKind::kMaximum:
      return is_bool() ? infix("||") : ordered("maximum");
    case OpKind::kEq:
      return compare("==", false);
    case OpKind::kNe:
      return compare("!=", false);
    case OpKind::kLt:
      return compare("<", true);
    case OpKind::kLe:
      return compare("<=", true);
    case OpKind::kGt:
      return compare(">", true);
    case OpKind::kGe:
      return compare(">=", true);
    case OpKind::kLogicalAnd:
      return truth("&&");
    case OpKind::kLogicalOr:
      return truth("||");
    case OpKind::kBitwiseAnd:
      return bitwise("&", "&&");
    case OpKind::kBitwiseOr:
      return bitwise("|", "||");
    case OpKind::kBitwiseXor:
      return bitwise("^", "!=");
    case OpKind::kBitwiseLeftShift:
      return integer("shift_left");
    case OpKind::kBitwiseRightShift:
      return integer("shift_right");
    case OpKind::kLogicalRightShift:
      return integer("shift_right_logical");
    case OpKind::kGcd:
      return integer("gcd");
    case OpKind::kFloorDiv:
      return euclidean("floor_div", "/");
    case OpKind::kFloorMod:
      return euclidean("floor_mod", "%");
    case OpKind::kCeilDiv:
      return integer("ceil_div");
    case OpKind::kComplex:
      if (!is_real()) refuse();
      {
        const Dtype pair = c_ == Dtype::kFloat ? Dtype::kComplexFloat : Dtype::kComplexDouble;
        return call(cuda_type(pair), pair);
      }
    case OpKind::kLerp:
      if (!is_real() && !is_complex(c_)) refuse();
      return call("lerp", is_complex(c_) ? CudaHeader::kComplex : CudaHeader::kReal);
    case OpKind::kWhere:
      if (is_integer(result_) && is_signed(result_)) return choose();
      return {cuda_term(operands_[0], Dtype::kBool, headers_) + " ? " + cuda_term(operands_[1], result_, headers_) +
                  " : " + cuda_term(operands_[2], result_, headers_),
              result_};
    case OpKind::kAddcmul:
      return addcmul();
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  throw Error(ErrorCode::kWrongLevel, "the op " + std::string(row_of(kind_).text) + " is no scalar op of a kernel");
}

}  // namespace

bool is_power_of_two(Dtype dtype, const std::optional<ConstantBits>& constant) {
  int exponent = 0;
  return constant && (is_integer(dtype) || is_floating(dtype)) &&
         std::abs(std::frexp(to_double(dtype, *constant), &exponent)) == 0.5;
}

bool divides_floats(OpKind kind, Dtype dividend, Dtype divisor, Dtype result) {
  if (kind != OpKind::kDiv && kind != OpKind::kTruediv) return false;
  const Dtype common = promote(dividend, divisor);
  const bool whole = is_integer(common) || is_boolean(common);
  if (whole) return kind == OpKind::kTruediv && is_floating(result) && compute_dtype(result) == Dtype::kFloat;
  return compute_dtype(common) == Dtype::kFloat;
}

std::string cuda_expression(OpKind kind, const Attrs& attrs, std::span<const CudaTerm> operands, Dtype result,
                            CudaHeaders& headers) {
  const Typed typed = Writer(kind, attrs, operands, result, headers).write();
  return cuda_convert(typed.text, typed.dtype, result, headers);
}

}  // namespace fusebox
