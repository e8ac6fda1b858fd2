// Buffers of a kernel in bytecode, and accesses to them.
#include <algorithm>

#include "codegen/bytecode_compiler.h"
#include "ir/table/error.h"

namespace fusebox {

void BytecodeCompiler::input(const Op& op) {
  const ValueId v = op.results[0];
  BytecodeParameter p{g_[v].name, g_[v].dtype, kNoBuffer, kNoRegister};
  if (g_.is_tensor(v)) {
    p.buffer = add_buffer(v, MemoryType::kGlobal);
  } else {
    p.reg = registers_[v.index] = new_register(g_[v].dtype, true);
  }
  out_.parameters.push_back(std::move(p));
}

uint32_t BytecodeCompiler::add_buffer(ValueId v, MemoryType memory) {
  BytecodeBuffer b;
  b.name = g_[v].name;
  b.dtype = g_[v].dtype;
  b.memory = memory;
  out_.buffers.push_back(std::move(b));
  return buffers_[v.index] = static_cast<uint32_t>(out_.buffers.size() - 1);
}

void BytecodeCompiler::allocate(const Op& op) {
  const ValueId v = op.results[0];
  const MemoryType declared = g_.tensor_of(v).memory;
  const auto memory =
      op.attrs.enumerator<MemoryType>(AttrKey::kMemory, declared == MemoryType::kUnset ? MemoryType::kLocal : declared);
  if (memory != MemoryType::kLocal && memory != MemoryType::kShared)
    throw Error(ErrorCode::kInvalidGraph, "a kernel allocates local or shared memory only", place(v));
  const uint32_t buffer = add_buffer(v, memory);
  BytecodeBuffer& b = out_.buffers[buffer];
  b.align = std::max(op.attrs.integer(AttrKey::kAlign, 1), size_bytes(b.dtype));
  Instruction i{.opcode = Opcode::kAllocate};
  i.buffer = buffer;
  if (memory == MemoryType::kLocal) {
    const auto elements = constant_integer(g_, op.operands[0]);
    // 1 MiB for each thread is far more than a GPU has registers and stack for.
    if (!elements || *elements < 0 || *elements > (1 << 20))
      throw Error(ErrorCode::kInvalidGraph, "local memory needs a constant size of at most 1048576 elements", place(v));
    constexpr int64_t kMostLocal = int64_t{1} << 28;  // bytes of all buffers at once
    const int64_t bytes = *elements * size_bytes(register_dtype(b.dtype));
    if (local_bytes_ + bytes > kMostLocal)
      throw Error(ErrorCode::kInvalidGraph,
                  "the local buffers of a thread take more than 268435456 bytes together; make them smaller", place(v));
    b.elements = *elements;
    b.local_offset = local_bytes_;
    b.local_first = local_elements_;
    local_bytes_ += static_cast<uint32_t>(bytes);
    local_elements_ += static_cast<uint32_t>(*elements);
    out_.local_bytes = std::max(out_.local_bytes, local_bytes_);
    out_.local_elements = std::max(out_.local_elements, local_elements_);
  } else {
    i.args[0] = as(op.operands[0], Dtype::kIndex);
    i.args[1] = optional_register(operand(op, 1), Dtype::kIndex);
    if (!is_uniform(i.args[0]) || !is_uniform(i.args[1]))
      throw Error(ErrorCode::kInvalidGraph, "the size and offset of shared memory must be the same in all threads",
                  place(v));
  }
  emit(i);
}

void BytecodeCompiler::load(const Op& op) {
  Instruction i{.opcode = Opcode::kLoad};
  const ValueId result = op.results[0];
  i.buffer = buffer_of(op.operands[0]);
  out_.buffers[i.buffer].is_read = true;
  const Dtype dtype = out_.buffers[i.buffer].dtype;
  i.args[0] = as(op.operands[1], Dtype::kIndex);
  i.args[1] = optional_register(operand(op, 2), Dtype::kBool);
  i.args[2] = optional_register(operand(op, 3), dtype);
  if (i.args[1] != kNoRegister && defects_.has(Defect::kHoistedPastCondition)) i.args[1] = kNoRegister;
  i.uniform = out_.buffers[i.buffer].memory != MemoryType::kLocal && is_uniform(i.args[0]) && is_uniform(i.args[1]) &&
              is_uniform(i.args[2]);
  i.dtype = dtype;
  i.check_index = dtype == Dtype::kIndex;
  if (g_[result].dtype != dtype)
    throw Error(ErrorCode::kInvalidGraph, "a load has the dtype of its buffer; cast the result", place(result));
  i.dst = registers_[result.index] = new_register(dtype, i.uniform);
  emit(i);
}

void BytecodeCompiler::store(const Op& op) {
  Instruction i{.opcode = Opcode::kStore};
  i.buffer = buffer_of(op.operands[0]);
  i.dtype = out_.buffers[i.buffer].dtype;
  out_.buffers[i.buffer].is_stored = true;
  if (g_[op.operands[2]].dtype != i.dtype)
    throw Error(ErrorCode::kInvalidGraph, "a store takes a value of its buffer's dtype; cast it first",
                place(op.operands[2]));
  i.args[0] = as(op.operands[1], Dtype::kIndex);
  i.args[1] = register_of(op.operands[2]);
  i.args[2] = optional_register(operand(op, 3), Dtype::kBool);
  emit(i);
}

void BytecodeCompiler::copy(const Op& op) {
  const auto kind = op.attrs.enumerator<CopyKind>(AttrKey::kCopyKind);
  if (kind == CopyKind::kTma || kind == CopyKind::kLoadMatrix)
    throw Error(ErrorCode::kUnsupportedOp,
                "a copy of kind " + std::string(text(kind)) + " does not run on the host yet", place(op.operands[0]));
  Instruction i{.opcode = Opcode::kCopy};
  i.buffer = buffer_of(op.operands[0]);
  i.from = buffer_of(op.operands[2]);
  i.dtype = out_.buffers[i.buffer].dtype;
  if (out_.buffers[i.from].dtype != i.dtype)
    throw Error(ErrorCode::kInvalidGraph, "a copy moves elements of one dtype", place(op.operands[0]));
  out_.buffers[i.buffer].is_stored = true;
  out_.buffers[i.from].is_read = true;
  i.args[0] = as(op.operands[1], Dtype::kIndex);
  i.args[1] = as(op.operands[3], Dtype::kIndex);
  i.args[2] = optional_register(operand(op, 4), Dtype::kBool);
  i.immediate = op.attrs.integer(AttrKey::kWidth, 1);
  const int64_t bytes = i.immediate * size_bytes(i.dtype);
  if (i.immediate < 1 || bytes > 16 || (bytes & (bytes - 1)) != 0)
    throw Error(ErrorCode::kBadAttribute, "a vector copy moves 1, 2, 4, 8 or 16 bytes", place(op.operands[0]));
  emit(i);
}

void BytecodeCompiler::within(const Op& op) {
  const ValueId index = op.operands[0], extent = operand(op, 1), of = operand(op, 2);
  Instruction i{.opcode = Opcode::kWithin};
  i.args[0] = as(index, Dtype::kInt64);
  i.args[1] = optional_register(extent, Dtype::kIndex);
  if (static_cast<bool>(extent) == static_cast<bool>(of))
    throw Error(ErrorCode::kInvalidGraph, "within takes an extent or an argument; give one of them", place(index));
  if (of) {
    i.buffer = buffer_of(of);
    if (out_.buffers[i.buffer].memory != MemoryType::kGlobal)
      throw Error(ErrorCode::kInvalidGraph, "only an argument has axes that an index can be checked with", place(of));
  }
  i.immediate = op.attrs.integer(AttrKey::kAxis);
  i.from_end = op.attrs.flag(AttrKey::kFromEnd);
  i.uniform = is_uniform(i.args[0]) && is_uniform(i.args[1]);
  emit(i);
}

}  // namespace fusebox
