// Families of ops and of dtypes. Each family is a list of labels that stands after `case`. A switch over a table's rows
// names each row of its own family and takes the other families by their lists. It has no `default`: a new row joins
// one list here, and then the compiler names every switch that lacks the row.
//
//   switch (kind) {
//     case OpKind::kSum:
//       return ...;
//     ...                            // each of FUSEBOX_REDUCTION_OPS by its name
//     case FUSEBOX_SCALAR_OPS:
//     ...
//       not_in_family(kind, "reduces nothing");
//   }
//
// Invariants: every op belongs to FUSEBOX_SCALAR_OPS or to FUSEBOX_NON_SCALAR_OPS; otherwise `is_scalar_math` does not
// compile. Every dtype is kBool, kFloat4E2m1x2 or in one list of dtypes.
//
// A `default` over a table's rows is right only if its answer is right for every row that may be added. Its comment
// then says why: `default:  // any other: ...`. tests/layers/switches.py refuses a `default` without this comment.
#pragma once

#include <string>

#include "ir/table/dtype.h"
#include "ir/table/error.h"
#include "ir/table/op.h"

// clang-format off

// -- ops: functions of scalars with one result. On tensors each works element by element.

// Return their operand as it is.
#define FUSEBOX_COPY_OPS OpKind::kSet: case OpKind::kSegmentSet

// Change no number but its dtype.
#define FUSEBOX_CHOICE_OPS OpKind::kCast: case OpKind::kWhere: case FUSEBOX_COPY_OPS

// Functions of real numbers that no machine rounds exactly. `pow` is not among them: integers have it too.
#define FUSEBOX_ELEMENTARY_OPS OpKind::kAtan2: case FUSEBOX_UNARY_ELEMENTARY_OPS
#define FUSEBOX_UNARY_ELEMENTARY_OPS FUSEBOX_EXACT_UNARY_OPS: case FUSEBOX_BOUNDED_UNARY_OPS
// Our own library has these: both executors give the same bits (codegen/runtime/exact_*.cuh). `atan2` and `pow` too.
#define FUSEBOX_EXACT_UNARY_OPS \
  FUSEBOX_INVERSE_FUNCTION_OPS: case OpKind::kCos: case OpKind::kCosh: case OpKind::kErf: case OpKind::kErfc: \
  case OpKind::kExp: case OpKind::kExp2: case OpKind::kExpm1: case OpKind::kLog: case OpKind::kLog10: \
  case OpKind::kLog1p: case OpKind::kLog2: case OpKind::kSigmoid: case OpKind::kSilu: case OpKind::kSin: \
  case OpKind::kSinh: case OpKind::kTan: case OpKind::kTanh
// ATen alone computes these of complex tensors. Kernels compute them of real numbers.
#define FUSEBOX_COMPLEX_FUNCTION_OPS \
  FUSEBOX_INVERSE_FUNCTION_OPS: case OpKind::kCos: case OpKind::kCosh: case OpKind::kExp: case OpKind::kLog: \
  case OpKind::kRsqrt: case OpKind::kSigmoid: case OpKind::kSin: case OpKind::kSinh: case OpKind::kSqrt: \
  case OpKind::kTan: case OpKind::kTanh
// Inverses of trigonometric and hyperbolic functions.
#define FUSEBOX_INVERSE_FUNCTION_OPS \
  OpKind::kAcos: case OpKind::kAcosh: case OpKind::kAsin: case OpKind::kAsinh: case OpKind::kAtan: case OpKind::kAtanh
// Each executor has a library of its own.
#define FUSEBOX_BOUNDED_UNARY_OPS OpKind::kErfinv: case OpKind::kErfcinv: case OpKind::kLgamma

// Take ordered numbers; add, sub, mul, div, neg, abs and addcmul take complex numbers too.
#define FUSEBOX_ARITHMETIC_OPS FUSEBOX_TWO_OPERAND_OPS: case FUSEBOX_ONE_OR_THREE_OPERAND_OPS
#define FUSEBOX_TWO_OPERAND_OPS \
  OpKind::kAdd: case OpKind::kSub: case OpKind::kMul: case OpKind::kDiv: case OpKind::kFmod: case OpKind::kRemainder: \
  case OpKind::kMinimum: case OpKind::kMaximum
#define FUSEBOX_ONE_OR_THREE_OPERAND_OPS \
  OpKind::kNeg: case OpKind::kAbs: case OpKind::kSign: case OpKind::kRelu: case OpKind::kClamp: \
  case OpKind::kThreshold: case OpKind::kAddcmul

// Give floating numbers; `truediv` and `reciprocal` take complex numbers too. All but `frac`, `nextafter` and `lerp`
// turn integers into floats first.
#define FUSEBOX_FRACTION_OPS \
  OpKind::kTruediv: case OpKind::kReciprocal: case OpKind::kSqrt: case OpKind::kRsqrt: case OpKind::kFrac: \
  case OpKind::kNextafter: case OpKind::kLerp

// Round to an integer nearby.
#define FUSEBOX_ROUNDING_OPS OpKind::kCeil: case OpKind::kFloor: case OpKind::kRound: case OpKind::kTrunc

// Take integers only.
#define FUSEBOX_WHOLE_OPS \
  OpKind::kMod: case OpKind::kGcd: case OpKind::kFloorDiv: case OpKind::kFloorMod: case OpKind::kCeilDiv
#define FUSEBOX_SHIFT_OPS \
  OpKind::kBitwiseLeftShift: case OpKind::kBitwiseRightShift: case OpKind::kLogicalRightShift
// Take integers and bool.
#define FUSEBOX_BITWISE_OPS \
  OpKind::kBitwiseNot: case OpKind::kBitwiseAnd: case OpKind::kBitwiseOr: case OpKind::kBitwiseXor

// All of the last three.
#define FUSEBOX_INTEGER_OPS FUSEBOX_WHOLE_OPS: case FUSEBOX_SHIFT_OPS: case FUSEBOX_BITWISE_OPS

// The next three families give bool. FUSEBOX_TRUTH_OPS has all of them.
#define FUSEBOX_TRUTH_OPS FUSEBOX_COMPARISON_OPS: case FUSEBOX_LOGICAL_OPS: case FUSEBOX_TEST_OPS
#define FUSEBOX_COMPARISON_OPS \
  OpKind::kEq: case OpKind::kNe: case OpKind::kLt: case OpKind::kLe: case OpKind::kGt: case OpKind::kGe
#define FUSEBOX_LOGICAL_OPS OpKind::kLogicalNot: case OpKind::kLogicalAnd: case OpKind::kLogicalOr
#define FUSEBOX_TEST_OPS OpKind::kSignbit: case FUSEBOX_CLASS_TEST_OPS
// Tell the class of a number. The answer is the same for every integer: true in the first list, false in the second.
#define FUSEBOX_CLASS_TEST_OPS FUSEBOX_TRUE_OF_INTEGERS_OPS: case FUSEBOX_FALSE_OF_INTEGERS_OPS
#define FUSEBOX_TRUE_OF_INTEGERS_OPS OpKind::kIsfinite: case OpKind::kIsreal
#define FUSEBOX_FALSE_OF_INTEGERS_OPS \
  OpKind::kIsinf: case OpKind::kIsnan: case OpKind::kIsneginf: case OpKind::kIsposinf

// Take a complex number apart, or make one from its parts.
#define FUSEBOX_PART_OPS OpKind::kReal: case OpKind::kImag: case OpKind::kComplex

// Take real numbers, and some of them integers or complex numbers.
#define FUSEBOX_REAL_OPS \
  OpKind::kPow: case FUSEBOX_ELEMENTARY_OPS: case FUSEBOX_ARITHMETIC_OPS: case FUSEBOX_FRACTION_OPS: \
  case FUSEBOX_ROUNDING_OPS

// Give a number.
#define FUSEBOX_NUMBER_OPS \
  FUSEBOX_CHOICE_OPS: case FUSEBOX_REAL_OPS: case FUSEBOX_INTEGER_OPS: case FUSEBOX_PART_OPS

#define FUSEBOX_SCALAR_OPS FUSEBOX_NUMBER_OPS: case FUSEBOX_TRUTH_OPS
// All but those that return their operand.
#define FUSEBOX_MATH_OPS \
  OpKind::kCast: case OpKind::kWhere: case FUSEBOX_REAL_OPS: case FUSEBOX_INTEGER_OPS: case FUSEBOX_PART_OPS: \
  case FUSEBOX_TRUTH_OPS

// -- ops: everything else

#define FUSEBOX_STRUCTURE_OPS OpKind::kInput: case OpKind::kSize: case OpKind::kOutput

// Reduce one tensor to one tensor.
#define FUSEBOX_REDUCTION_OPS OpKind::kSum: case OpKind::kProd: case OpKind::kMax: case OpKind::kMin

// Reduce to several tensors at once.
#define FUSEBOX_MOMENT_OPS OpKind::kWelford

// Every element of the result is an element of the operand.
#define FUSEBOX_VIEW_OPS \
  OpKind::kBroadcast: case OpKind::kBroadcastInDim: case OpKind::kReshape: case OpKind::kPermute: case OpKind::kExpand: \
  case OpKind::kSqueeze: case OpKind::kSlice: case OpKind::kStrideOrder

// Read the first operand at places that the second operand gives.
#define FUSEBOX_INDEXED_OPS OpKind::kSelect: case FUSEBOX_GATHERING_OPS
// The second operand is a tensor.
#define FUSEBOX_GATHERING_OPS OpKind::kIndexSelect: case OpKind::kGather: case OpKind::kTakeAlongAxis

// Make a tensor from scalars or other tensors. The place of an element decides where its value comes from.
#define FUSEBOX_PLACING_OPS \
  OpKind::kFull: case OpKind::kIota: case OpKind::kTriu: case OpKind::kPad: case OpKind::kCat: case OpKind::kScatter: \
  case FUSEBOX_RANDOM_OPS
// Random numbers, by seed, offset and the place of the element.
#define FUSEBOX_RANDOM_OPS OpKind::kUniform: case OpKind::kNormal

// ATen computes these; no kernel has them. FUSEBOX_LIBRARY_OPS has all of them.
#define FUSEBOX_LIBRARY_OPS \
  FUSEBOX_PRODUCT_OPS: case FUSEBOX_SCAN_OPS: case FUSEBOX_SORT_OPS: case FUSEBOX_ATTENTION_OPS: \
  case FUSEBOX_ADDING_OPS
// Products of matrices.
#define FUSEBOX_PRODUCT_OPS \
  OpKind::kMatmul: case OpKind::kLinear: case OpKind::kGroupedMm: case OpKind::kScaledMm
// Add elements at places that the second operand gives.
#define FUSEBOX_ADDING_OPS OpKind::kIndexPutAccumulate: case OpKind::kScatterAdd
// Combine the elements before each element along an axis.
#define FUSEBOX_SCAN_OPS OpKind::kCumsum: case OpKind::kCumprod: case FUSEBOX_EXTREME_SCAN_OPS
#define FUSEBOX_EXTREME_SCAN_OPS OpKind::kCummin: case OpKind::kCummax
// Order the elements along an axis.
#define FUSEBOX_SORT_OPS OpKind::kArgsort: case OpKind::kTopk
#define FUSEBOX_ATTENTION_OPS OpKind::kSdpfaFwd: case OpKind::kSdpfaBwd

#define FUSEBOX_TENSOR_OPS \
  FUSEBOX_REDUCTION_OPS: case FUSEBOX_MOMENT_OPS: case FUSEBOX_VIEW_OPS: case FUSEBOX_INDEXED_OPS: \
  case FUSEBOX_PLACING_OPS: case FUSEBOX_LIBRARY_OPS

// Statements of a kernel: control, memory and threads. `for` and `if` stand in host programs too.
#define FUSEBOX_THREAD_OPS \
  OpKind::kAllocate: case OpKind::kLoad: case FUSEBOX_COORDINATE_OPS: case OpKind::kPreparedDiv: \
  case OpKind::kPhilox: case FUSEBOX_EXCHANGE_OPS: case FUSEBOX_THREAD_EFFECT_OPS
#define FUSEBOX_THREAD_EFFECT_OPS \
  OpKind::kFor: case OpKind::kIf: case OpKind::kStore: case OpKind::kCopy: case FUSEBOX_BARRIER_OPS: \
  case OpKind::kWithin
#define FUSEBOX_COORDINATE_OPS OpKind::kThreadIndex: case OpKind::kThreadCount
#define FUSEBOX_BARRIER_OPS \
  OpKind::kBarrier: case OpKind::kGridBarrier: case FUSEBOX_CLUSTER_OPS
// By these, the blocks of a cluster wait for one another.
#define FUSEBOX_CLUSTER_OPS \
  OpKind::kClusterArrive: case OpKind::kClusterWait: case OpKind::kClusterReduce
// Give a value that other threads computed.
#define FUSEBOX_EXCHANGE_OPS \
  OpKind::kBlockReduce: case OpKind::kGridReduce: case OpKind::kBlockBroadcast: case OpKind::kWarpReduce
// `welford_combine` computes with scalars, but gives three results.
#define FUSEBOX_KERNEL_OPS OpKind::kWelfordCombine: case FUSEBOX_THREAD_OPS

// Statements of a host program.
#define FUSEBOX_HOST_OPS \
  OpKind::kAllocateTensor: case OpKind::kAliasSelect: case OpKind::kAliasView: case OpKind::kCreateStream: \
  case OpKind::kGetStream: case OpKind::kRecordEvent: case OpKind::kCommunicate: case OpKind::kTensorStride: \
  case OpKind::kTensorAlignment: case OpKind::kPrepareDiv: case FUSEBOX_HOST_EFFECT_OPS
#define FUSEBOX_HOST_EFFECT_OPS \
  OpKind::kLaunch: case OpKind::kRunAten: case OpKind::kDeallocate: case OpKind::kCopyTensor: \
  case OpKind::kSetStream: case OpKind::kSynchronize: case OpKind::kWaitEvent: case OpKind::kPost: \
  case OpKind::kWait: case OpKind::kCheck

// Facts of a schedule. They are statements of the whole program, and compute nothing.
#define FUSEBOX_FACT_OPS OpKind::kAssume: case FUSEBOX_LAUNCH_FACT_OPS
#define FUSEBOX_LAUNCH_FACT_OPS OpKind::kLaunchBound: case OpKind::kCluster: case OpKind::kDependentLaunch

// Statements without a result.
#define FUSEBOX_EFFECT_OPS \
  FUSEBOX_THREAD_EFFECT_OPS: case FUSEBOX_HOST_EFFECT_OPS: case FUSEBOX_FACT_OPS

#define FUSEBOX_STATEMENT_OPS \
  FUSEBOX_STRUCTURE_OPS: case FUSEBOX_KERNEL_OPS: case FUSEBOX_HOST_OPS: case FUSEBOX_FACT_OPS

#define FUSEBOX_NON_SCALAR_OPS FUSEBOX_TENSOR_OPS: case FUSEBOX_STATEMENT_OPS

// All ops but FUSEBOX_LIBRARY_OPS.
#define FUSEBOX_NON_LIBRARY_OPS \
  FUSEBOX_SCALAR_OPS: case FUSEBOX_REDUCTION_OPS: case FUSEBOX_MOMENT_OPS: case FUSEBOX_VIEW_OPS: \
  case FUSEBOX_INDEXED_OPS: case FUSEBOX_PLACING_OPS: case FUSEBOX_STATEMENT_OPS

// All ops but the elementary functions and `pow`.
#define FUSEBOX_PLAIN_OPS \
  FUSEBOX_CHOICE_OPS: case FUSEBOX_ARITHMETIC_OPS: case FUSEBOX_FRACTION_OPS: case FUSEBOX_ROUNDING_OPS: \
  case FUSEBOX_INTEGER_OPS: case FUSEBOX_TRUTH_OPS: case FUSEBOX_PART_OPS: case FUSEBOX_NON_SCALAR_OPS

// -- dtypes. kBool stands apart, and so does kFloat4E2m1x2: it packs two numbers.

#define FUSEBOX_INTEGER_DTYPES \
  Dtype::kInt8: case Dtype::kInt16: case Dtype::kInt32: case Dtype::kInt64: case Dtype::kUint8: case Dtype::kUint16: \
  case Dtype::kUint32: case Dtype::kUint64: case Dtype::kIndex
#define FUSEBOX_FLOATING_DTYPES \
  Dtype::kHalf: case Dtype::kBfloat16: case Dtype::kFloat: case Dtype::kDouble: case Dtype::kFloat8E4m3: \
  case Dtype::kFloat8E5m2: case Dtype::kFloat8E8m0: case Dtype::kFloat4E2m1
#define FUSEBOX_COMPLEX_DTYPES Dtype::kComplexFloat: case Dtype::kComplexDouble

// clang-format on

namespace fusebox {

// Whether the op is in FUSEBOX_SCALAR_OPS: it computes one result from scalars.
bool is_scalar_math(OpKind kind);

// Whether the op is in FUSEBOX_RANDOM_OPS.
bool is_random(OpKind kind);

// Whether the op is in FUSEBOX_TRUTH_OPS: it gives bool, whatever its operands are.
bool gives_truth(OpKind kind);

// Whether the op is in FUSEBOX_FACT_OPS.
bool is_fact(OpKind kind);

// Whether the op is in FUSEBOX_CLUSTER_OPS.
bool is_of_cluster(OpKind kind);

// Whether the op is in FUSEBOX_COMPARISON_OPS.
bool is_comparison(OpKind kind);

// Whether the op is in FUSEBOX_LOGICAL_OPS.
bool is_logic(OpKind kind);

// Whether the op is in FUSEBOX_MOMENT_OPS.
bool is_moment(OpKind kind);

// Whether the op is in FUSEBOX_PRODUCT_OPS.
bool is_product(OpKind kind);

// Whether the op is in FUSEBOX_ADDING_OPS.
bool adds_at_places(OpKind kind);

// Throws kInternal because the row is no member of the family that a switch handles. `what` ends the sentence that
// names the row: `the op exp reduces nothing`.
[[noreturn]] void not_in_family(OpKind kind, const char* what);
[[noreturn]] void not_in_family(Dtype dtype, const char* what);

}  // namespace fusebox
