// One scalar op as a CUDA expression, and the parts of expressions: literals, conversions, the headers they need.
//
// Invariants: an expression has exactly the C++ type of its dtype. It may stand on the right of `=` or as an argument;
// inside another operator it needs parentheses.
//
//   cuda_expression(OpKind::kAdd, {}, {{"v0", Dtype::kHalf}, {"v1", Dtype::kHalf}}, Dtype::kHalf, headers)
//     == "half_t(float(v0) + float(v1))"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph/graph.h"

namespace fusebox {

// The runtime headers in the order in which they are included; a set is a mask of 1 << header.
enum class CudaHeader {
  kTypes,
  kElementary,
  kPhilox,
  kExponentialFloat,
  kLogarithmFloat,
  kPowerFloat,
  kTrigonometryFloat,
  kErrorFloat,
  kInverseFloat,
  kExponentialDouble,
  kLogarithmDouble,
  kPowerDouble,
  kTrigonometryDouble,
  kErrorDouble,
  kInverseDouble,
  kDivision,
  kFast,
  kConvert,
  kInteger,
  kReal,
  kCompare,
  kComplex,
  kMemory,
  kSynchronize,
  kCombine,
  kReduce,
  kCluster
};
inline constexpr std::string_view kCudaHeaderNames[] = {"types.cuh",
                                                        "elementary.cuh",
                                                        "philox.cuh",
                                                        "exact_exponential_float.cuh",
                                                        "exact_logarithm_float.cuh",
                                                        "exact_power_float.cuh",
                                                        "exact_trigonometry_float.cuh",
                                                        "exact_error_float.cuh",
                                                        "exact_inverse_float.cuh",
                                                        "exact_exponential_double.cuh",
                                                        "exact_logarithm_double.cuh",
                                                        "exact_power_double.cuh",
                                                        "exact_trigonometry_double.cuh",
                                                        "exact_error_double.cuh",
                                                        "exact_inverse_double.cuh",
                                                        "division.cuh",
                                                        "fast.cuh",
                                                        "convert.cuh",
                                                        "integer.cuh",
                                                        "real.cuh",
                                                        "compare.cuh",
                                                        "complex.cuh",
                                                        "memory.cuh",
                                                        "synchronize.cuh",
                                                        "combine.cuh",
                                                        "reduce.cuh",
                                                        "cluster.cuh"};

class CudaHeaders {
 public:
  void need(CudaHeader header) { mask_ |= 1u << static_cast<unsigned>(header); }
  bool needs(CudaHeader header) const { return (mask_ >> static_cast<unsigned>(header) & 1) != 0; }

 private:
  uint32_t mask_ = 1;  // the types, always
};

struct CudaTerm {
  std::string text;  // a name; unused for a constant
  Dtype dtype;
  std::optional<ConstantBits> constant = std::nullopt;
  // Set if the operand is a divisor that was prepared: the argument of `quotient` (division.cuh) behind the dividend, or the
  // reciprocal for a fast division.
  std::string divisor = {};
};

// The type of an element, also for storage-only dtypes.
inline std::string_view cuda_type(Dtype dtype) { return row_of(dtype).cpp; }
// A literal of exactly the dtype's type. With `bare`, an index constant may be an int, for the operand of an operator.
std::string cuda_literal(Dtype dtype, ConstantBits bits, bool bare = false);
// An expression of one dtype as another, by the rules of the op `cast`.
std::string cuda_convert(std::string text, Dtype from, Dtype to, CudaHeaders& headers);
// A term as a dtype. A constant is converted at once.
std::string cuda_term(const CudaTerm& term, Dtype to, CudaHeaders& headers, bool bare = false);
// A term as the divisor of floats. NVRTC would warn of the number 0 there (#39-D), so that is written by its bits.
std::string cuda_divisor(const CudaTerm& term, Dtype to, CudaHeaders& headers);

// Whether a constant is a power of two, or the negative of one. The compiler multiplies instead of dividing by it.
bool is_power_of_two(Dtype dtype, const std::optional<ConstantBits>& constant);
// Whether the op divides in f32. Its second operand may then be prepared.
bool divides_floats(OpKind kind, Dtype dividend, Dtype divisor, Dtype result);

std::string cuda_expression(OpKind kind, const Attrs& attrs, std::span<const CudaTerm> operands, Dtype result,
                            CudaHeaders& headers);

}  // namespace fusebox
