#include "replay/host/lane_program.h"

#include <string>

#include "ir/table/error.h"

namespace fusebox::host {
namespace {

// The function that combines two elements in a reduction; bool has or and and.
LaneFunction combination(ReduceOp reduce, Dtype dtype, int index_bits) {
  const Dtype compute = compute_dtype(dtype);
  const bool is_bool = is_boolean(compute);
  switch (reduce) {
    case ReduceOp::kSum:
      return find_math(is_bool ? OpKind::kLogicalOr : OpKind::kAdd, compute, index_bits);
    case ReduceOp::kProd:
      return find_math(is_bool ? OpKind::kLogicalAnd : OpKind::kMul, compute, index_bits);
    case ReduceOp::kMin:
      return find_math(is_bool ? OpKind::kLogicalAnd : OpKind::kMinimum, compute, index_bits);
    case ReduceOp::kMax:
      return find_math(is_bool ? OpKind::kLogicalOr : OpKind::kMaximum, compute, index_bits);
    case ReduceOp::kWelford:
      return nullptr;
  }
  return nullptr;
}

LaneProgram::Functions functions_of(const Bytecode& code, const Instruction& i) {
  LaneProgram::Functions f;
  bool found = true;
  switch (i.opcode) {
    case Opcode::kMath:
      found = (f.lane = find_math(i.math, i.dtype, code.index_bits)) != nullptr;
      break;
    case Opcode::kConvert:
      found = (f.lane = find_conversion(i.dtype, i.to)) != nullptr;
      break;
    case Opcode::kWelford:
      found = (f.welford = find_welford(i.dtype, i.to)) != nullptr;
      break;
    case Opcode::kLoad:
    case Opcode::kStore:
    case Opcode::kCopy:
      f.memory = &memory_functions(i.dtype);
      break;
    case Opcode::kBlockReduce:
    case Opcode::kGridReduce:
    case Opcode::kClusterReduce:
    case Opcode::kWarpReduce:
      if (i.reduce == ReduceOp::kWelford)
        found = (f.welford = find_welford(compute_dtype(i.dtype), i.to)) != nullptr;
      else
        found = (f.lane = combination(i.reduce, i.dtype, code.index_bits)) != nullptr;
      if (is_reduced_float(i.dtype)) f.round = find_conversion(Dtype::kFloat, i.dtype);
      break;
    case Opcode::kThreadIndex:
    case Opcode::kThreadCount:
    case Opcode::kPreparedDiv:
    case Opcode::kPhilox:
    case Opcode::kAllocate:
    case Opcode::kIf:
    case Opcode::kElse:
    case Opcode::kEndIf:
    case Opcode::kJump:
    case Opcode::kFor:
    case Opcode::kEndFor:
    case Opcode::kBarrier:
    case Opcode::kGridBarrier:
    case Opcode::kClusterArrive:
    case Opcode::kClusterWait:
    case Opcode::kBlockBroadcast:
    case Opcode::kWithin:
    case Opcode::kEnd:
      break;  // the machine itself runs it
  }
  if (!found)
    throw Error(ErrorCode::kUnsupportedDtype,
                std::string(row_of(code.origins[i.origin].kind).text) + " has no arithmetic for " +
                    std::string(text(i.dtype)) + " on the host; cast it first",
                "line " + std::to_string(code.origins[i.origin].line));
  return f;
}

}  // namespace

LaneProgram::LaneProgram(const Bytecode& bytecode) : code(bytecode), idle(bytecode) {
  functions.reserve(code.code.size());
  for (const Instruction& i : code.code) functions.push_back(functions_of(code, i));
}

}  // namespace fusebox::host
