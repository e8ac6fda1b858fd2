// Scalar ops of a kernel in bytecode: the dtype in which each is computed, conversions, and the rounding of its result.
#include <algorithm>
#include <array>
#include <span>

#include "codegen/bytecode_compiler.h"
#include "codegen/bytecode_math.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

// Ops whose result needs no rounding if it and all operands have one dtype.
bool keeps_values(OpKind kind) {
  switch (kind) {
    case OpKind::kWhere:
    case OpKind::kNeg:
    case OpKind::kAbs:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case OpKind::kRelu:
    case OpKind::kReal:
    case OpKind::kClamp:
    case OpKind::kThreshold:
    case OpKind::kFloor:
    case OpKind::kCeil:
    case OpKind::kTrunc:
    case OpKind::kRound:
    case OpKind::kSign:
      return true;
    default:  // any other: its result is rounded, which changes nothing where it is exact
      return false;
  }
}

[[maybe_unused]] Dtype signed_of(Dtype d) {
  switch (size_bytes(d)) {
    case 1:
      return Dtype::kInt8;
    case 2:
      return Dtype::kInt16;
    case 4:
      return Dtype::kInt32;
    default:
      return Dtype::kInt64;
  }
}

}  // namespace

void BytecodeCompiler::math(const Op& op) {
  const ValueId result = op.results[0];
  const Dtype declared = g_[result].dtype;
  std::array<Dtype, 4> dtypes{};
  const size_t count = op.operands.size();
  if (count == 0 || count > 4)
    throw Error(ErrorCode::kOperandCount, "this op has the wrong number of operands", place(result));
  for (size_t k = 0; k < count; ++k) {
    if (!op.operands[k] || g_.is_tensor(op.operands[k]))
      throw Error(ErrorCode::kWrongKind,
                  std::string(row_of(op.kind).text) + " takes scalars in a kernel; load them first", place(result));
    dtypes[k] = g_[op.operands[k]].dtype;
  }
  MathPlan plan;
  try {
    plan = math_plan(op.kind, std::span(dtypes.data(), count), declared);
  } catch (Error& e) {
    if (e.place.empty()) e.place = place(result);
    throw;
  }
  if (plan.kind == MathClass::kMove || plan.kind == MathClass::kCast) return cast(op.operands[0], result);
  const bool orders = op.kind == OpKind::kMinimum || op.kind == OpKind::kMaximum;
  if ((plan.kind == MathClass::kCompare || orders) && row_of(plan.compute).kind == DtypeKind::kUnsigned &&
      defects_.has(Defect::kCompareSigned)) {
    plan.compute = signed_of(plan.compute);
    if (orders) plan.native = plan.compute;
  }
  if (op.kind == OpKind::kLogicalRightShift && bits(plan.compute) < 32 && defects_.has(Defect::kShiftPromoted))
    plan.compute = plan.native = Dtype::kInt32;
  Instruction i{.opcode = Opcode::kMath};
  i.math = op.kind;
  if (op.kind == OpKind::kDiv && is_integer(plan.compute) && defects_.has(Defect::kDivFloors))
    i.math = OpKind::kFloorDiv;
  if (op.kind == OpKind::kRemainder && defects_.has(Defect::kRemainderSign)) i.math = OpKind::kFmod;
  const bool is_narrow = bits(g_[op.results[0]].dtype) == 16 && is_floating(g_[op.results[0]].dtype);
  if (op.kind == OpKind::kRemainder && is_narrow && defects_.has(Defect::kRemainderNarrow)) i.math = OpKind::kFmod;
  if (op.kind == OpKind::kLogicalRightShift && defects_.has(Defect::kShiftArithmetic))
    i.math = OpKind::kBitwiseRightShift;
  i.dtype = plan.compute;
  i.uniform = true;
  bool same = keeps_values(op.kind);
  for (size_t k = 0; k < count; ++k) {
    const bool is_condition = plan.kind == MathClass::kSelect && k == 0;
    i.args[k] = as(op.operands[k], is_condition ? Dtype::kBool : plan.compute);
    i.uniform &= is_uniform(i.args[k]);
    same &= is_condition || dtypes[k] == declared;
  }
  if (plan.kind == MathClass::kSelect && defects_.has(Defect::kWhereSwapped)) std::swap(i.args[1], i.args[2]);
  if (op.kind == OpKind::kMaximum && is_floating(plan.compute) && defects_.has(Defect::kMaximumDropsNan)) {
    i.math = OpKind::kThreshold;  // a <= b ? b : a, which gives a if b is NaN
    i.args[2] = i.args[1];
  }
  i.to = plan.native;
  i.check_index = declared == Dtype::kIndex && plan.native == Dtype::kIndex;
  i.dst = new_register(plan.native, i.uniform);
  emit(i);
  finish(i.dst, plan.native, result, i.uniform, same);
}

void BytecodeCompiler::cast(ValueId from, ValueId result) {
  const Dtype have = g_[from].dtype, wanted = g_[result].dtype;
  if (have == wanted) {
    registers_[result.index] = register_of(from);
    return;
  }
  if (is_storage_only(have) || is_storage_only(wanted))
    throw Error(ErrorCode::kUnsupportedDtype,
                "there is no conversion from " + std::string(text(have)) + " to " + std::string(text(wanted)) + " yet",
                place(result));
  Instruction i{.opcode = Opcode::kConvert};
  i.args[0] = register_of(from);
  i.uniform = is_uniform(i.args[0]);
  i.dtype = have;
  const bool narrows = is_integer(have) && is_integer(wanted) && size_bytes(wanted) < size_bytes(have);
  if (narrows && defects_.has(Defect::kCastSaturates)) {
    i.dtype = Dtype::kDouble;  // an integer saturates as a float does
    i.args[0] = as(from, Dtype::kDouble);
  }
  if (wanted == Dtype::kBool && is_floating(have) && defects_.has(Defect::kCastBoolTruncates)) {
    i.dtype = Dtype::kInt64;
    i.args[0] = as(from, Dtype::kInt64);
  }
  i.to = wanted;
  i.check_index = wanted == Dtype::kIndex;
  i.dst = registers_[result.index] = new_register(wanted, i.uniform);
  emit(i);
}

void BytecodeCompiler::finish(uint32_t r, Dtype native, ValueId result, bool uniform, bool is_exact) {
  const Dtype declared = g_[result].dtype;
  Instruction i{.opcode = Opcode::kConvert, .uniform = uniform, .counts = false};
  i.dtype = native;
  i.to = declared;
  i.args[0] = r;
  i.check_index = declared == Dtype::kIndex;
  if (register_dtype(native) == register_dtype(declared)) {
    registers_[result.index] = r;
    out_.registers[r].dtype = declared;
    if (!is_reduced_float(declared) || is_exact) return;
    if (defects_.has(Defect::kHalfNotRounded)) return;
    if (is_added_product(result) && defects_.has(Defect::kMultiplyAddContracted)) return;
    i.dst = r;
  } else {
    i.dst = registers_[result.index] = new_register(declared, uniform);
  }
  emit(i);
}

bool BytecodeCompiler::is_added_product(ValueId v) const {
  if (g_[g_[v].def].kind != OpKind::kMul) return false;
  return std::any_of(g_.ops.begin(), g_.ops.end(), [&](const Op& op) {
    const bool adds = op.kind == OpKind::kAdd || op.kind == OpKind::kSub || op.kind == OpKind::kCast;
    return adds && is_floating(g_[op.results[0]].dtype) &&
           std::find(op.operands.begin(), op.operands.end(), v) != op.operands.end();
  });
}

void BytecodeCompiler::prepared_div(const Op& op) {
  Instruction i{.opcode = Opcode::kPreparedDiv};
  i.args[0] = as(op.operands[0], Dtype::kIndex);
  i.args[1] = as(op.operands[2], Dtype::kInt64);
  i.uniform = out_.registers[i.args[0]].uniform && out_.registers[i.args[1]].uniform;
  i.dst = registers_[op.results[0].index] = new_register(Dtype::kIndex, i.uniform);
  emit(i);
}

void BytecodeCompiler::philox(const Op& op) {
  Instruction i{.opcode = Opcode::kPhilox, .dtype = Dtype::kUint32, .immediate = op.attrs.integer(AttrKey::kSlot)};
  i.args[0] = as(op.operands[0], Dtype::kUint64);
  i.args[1] = as(op.operands[1], Dtype::kUint64);
  i.args[2] = as(op.operands[2], Dtype::kIndex);
  i.uniform = std::all_of(i.args.begin(), i.args.begin() + 3, [&](uint32_t r) { return out_.registers[r].uniform; });
  i.dst = registers_[op.results[0].index] = new_register(Dtype::kUint32, i.uniform);
  emit(i);
}

}  // namespace fusebox
