// Buffers of a kernel in CUDA, and accesses to them.
#include <algorithm>

#include "codegen/cuda_emitter.h"
#include "codegen/cuda_operands.h"
#include "ir/table/error.h"

namespace fusebox {

std::string CudaEmitter::cache(const Op& op, ValueId tensor) const {
  const MemoryType memory = g_.tensor_of(tensor).memory;
  const bool is_global = memory != MemoryType::kLocal && memory != MemoryType::kShared;
  switch (is_global ? op.attrs.enumerator<CacheOp>(AttrKey::kCacheOp) : CacheOp::kUnspecified) {
    case CacheOp::kUnspecified:
      return {};
    case CacheOp::kAllLevels:
      return "Cache::kAllLevels";
    case CacheOp::kStreaming:
      return "Cache::kStreaming";
    case CacheOp::kGlobal:
      return "Cache::kGlobal";
  }
  return {};
}

void CudaEmitter::allocate(const Op& op) {
  const ValueId result = op.results.at(0);
  const Dtype dtype = g_[result].dtype;
  const std::string type(cuda_type(dtype));
  if (op.attrs.enumerator<MemoryType>(AttrKey::kMemory) == MemoryType::kShared) {
    uses_shared_ = true;
    const Operands operands(op);
    const std::string at = operands.one("at") ? index(operands.one("at")) : "0";
    const std::string& name = names_.define(result, "shared");
    line(type + "* const " + name + " = reinterpret_cast<" + type + "*>(shared_memory + " + at + ");");
    return;
  }
  const auto size = constant_integer(g_, op.operands[0]);
  if (!size || *size < 0)
    throw Error(ErrorCode::kIllegalAllocation, "a local buffer needs a constant size", "%" + g_[result].name);
  const auto vector = vector_bytes_.find(result);
  const int64_t align = std::max(op.attrs.integer(AttrKey::kAlign), vector == vector_bytes_.end() ? 0 : vector->second);
  const std::string alignment = align > size_bytes(dtype) ? "alignas(" + std::to_string(align) + ") " : "";
  line(alignment + type + " " + names_.define(result, "local") + "[" + std::to_string(std::max<int64_t>(*size, 1)) +
       "];");
}

void CudaEmitter::load(const Op& op) {
  const Operands operands(op);
  const ValueId from = op.operands[0];
  const ValueId predicate = operands.one("if"), otherwise = operands.one("else");
  const Dtype dtype = g_[from].dtype;
  std::string text = place(from, operands.one("at"));
  if (in_pairs_.contains(from)) {
    headers_.need(CudaHeader::kMemory);
    text = "element(" + buffer(from) + ", " + index(operands.one("at")) + ")";
  }
  if (const std::string c = cache(op, from); !c.empty()) {
    headers_.need(CudaHeader::kMemory);
    text = "load<" + c + ">(&" + text + ")";
  }
  if (predicate) {
    const std::string other = otherwise ? as(otherwise, dtype) : cuda_literal(dtype, {});
    text = as(predicate, Dtype::kBool) + " ? " + text + " : " + other;
  }
  const Dtype result = g_[op.results.at(0)].dtype;
  text = cuda_convert(std::move(text), dtype, result, headers_);
  line(define(op.results[0]) + text + ";");
}

void CudaEmitter::store(const Op& op) {
  const Operands operands(op);
  const ValueId to = op.operands[0];
  const ValueId predicate = operands.one("if");
  const std::string guard = predicate ? "if (" + as(predicate, Dtype::kBool) + ") " : "";
  const std::string value = as(op.operands.at(2), g_[to].dtype);
  const std::string at = place(to, operands.one("at"));
  if (const std::string c = cache(op, to); !c.empty()) {
    headers_.need(CudaHeader::kMemory);
    line(guard + "store<" + c + ">(&" + at + ", " + value + ");");
  } else {
    line(guard + at + " = " + value + ";");
  }
}

void CudaEmitter::copy(const Op& op) {
  const Operands operands(op);
  // Two slots have the keyword `at`: the operands' order tells them apart.
  const ValueId to = op.operands.at(0), to_at = op.operands.at(1), from = op.operands.at(2),
                from_at = op.operands.at(3);
  const ValueId predicate = operands.one("if");
  const std::string guard = predicate ? "if (" + as(predicate, Dtype::kBool) + ") " : "";
  const int64_t width = op.attrs.integer(AttrKey::kWidth, 1);
  const int64_t bytes = width * size_bytes(g_[to].dtype);
  if (width < 1 || bytes > 16 || (bytes & (bytes - 1)) != 0)
    throw Error(ErrorCode::kIllegalVectorize,
                "a vector access has 1, 2, 4, 8 or 16 bytes, not " + std::to_string(bytes), "%" + g_[to].name);
  if (g_[to].dtype != g_[from].dtype)
    throw Error(ErrorCode::kDtypeMismatch, "a copy needs buffers of one dtype", "%" + g_[to].name);
  const std::string reading = cache(op, from), writing = cache(op, to);
  const std::string target = place(to, to_at), source = place(from, from_at);
  if (width == 1 && reading.empty() && writing.empty()) {
    line(guard + target + " = " + source + ";");
    return;
  }
  headers_.need(CudaHeader::kMemory);
  std::string arguments = std::to_string(width);
  if (!reading.empty() || !writing.empty()) arguments += ", " + (reading.empty() ? "Cache::kDefault" : reading);
  if (!writing.empty()) arguments += ", " + writing;
  line(guard + "copy_vector<" + arguments + ">(&" + target + ", &" + source + ");");
}

}  // namespace fusebox
