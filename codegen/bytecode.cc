#include "codegen/bytecode.h"

#include <algorithm>
#include <numeric>

#include "codegen/bytecode_compiler.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"

namespace fusebox {

Dtype register_dtype(Dtype d) {
  if (is_storage_only(d)) return Dtype::kUint8;
  if (is_reduced_float(d)) return Dtype::kFloat;
  return d == Dtype::kIndex ? Dtype::kInt64 : d;
}

Bytecode BytecodeCompiler::run() {
  if (g_.level != Level::kKernel)
    throw Error(ErrorCode::kWrongLevel, "only a kernel program becomes bytecode; lower the fusion first",
                "@" + g_.name);
  out_.name = g_.name;
  out_.index_bits = g_.index_bits;
  registers_.assign(g_.values.size(), kNoRegister);
  buffers_.assign(g_.values.size(), kNoBuffer);
  out_.code.reserve(g_.ops.size() * 2);
  region(Graph::body());
  emit({.opcode = Opcode::kEnd, .uniform = true, .counts = false});
  insert_preamble();
  for (const BytecodeBuffer& b : out_.buffers)
    if (b.memory == MemoryType::kShared)
      out_.shared_granule = std::gcd(out_.shared_granule, static_cast<uint32_t>(size_bytes(b.dtype)));
  place_registers(out_, loops_);
  return std::move(out_);
}

uint32_t BytecodeCompiler::new_constant(Dtype dtype, ConstantBits bits) {
  const uint32_t r = new_register(dtype, true);
  const bool is_wide = is_integer(dtype) && dtype != Dtype::kIndex && fusebox::bits(dtype) == 64;
  if (is_wide && defects_.has(Defect::kConstantByDouble)) bits = from_double(dtype, to_double(dtype, bits));
  if (is_complex(dtype) && defects_.has(Defect::kConstantImaginary)) bits.high = 0;
  if (dtype == Dtype::kDouble && defects_.has(Defect::kConstantByFloat))
    bits = convert(Dtype::kFloat, convert(dtype, bits, Dtype::kFloat), dtype);
  out_.constants.push_back({r, bits, dtype});
  return r;
}

uint32_t BytecodeCompiler::as(ValueId v, Dtype wanted) {
  const uint32_t have = register_of(v);
  const Dtype dtype = g_[v].dtype;
  if (register_dtype(dtype) == register_dtype(wanted) && is_storage_only(dtype) == is_storage_only(wanted)) return have;
  if (is_storage_only(dtype) || is_storage_only(wanted))
    throw Error(ErrorCode::kUnsupportedDtype,
                "there is no conversion from " + std::string(text(dtype)) + " to " + std::string(text(wanted)) + " yet",
                place(v));
  for (const Conversion& c : conversions_)
    if (c.value == v && c.dtype == wanted) return c.reg;
  const bool is_fixed = g_[v].constant.has_value() || is_parameter(v);
  uint32_t converted;
  if (g_[v].constant) {
    converted = new_constant(wanted, convert(dtype, *g_[v].constant, wanted));
  } else {
    converted = new_register(wanted, is_uniform(have));
    Instruction i{.opcode = Opcode::kConvert, .uniform = is_uniform(have), .counts = false};
    i.dtype = dtype;
    i.to = wanted;
    i.dst = converted;
    i.args[0] = have;
    i.check_index = wanted == Dtype::kIndex;
    i.origin = origin_;
    (is_fixed ? preamble_ : out_.code).push_back(i);
  }
  if (is_fixed) conversions_.push_back({v, wanted, converted});
  return converted;
}

void BytecodeCompiler::insert_preamble() {
  const auto shift = static_cast<uint32_t>(preamble_.size());
  if (shift == 0) return;
  for (Instruction& i : out_.code) i.target += shift;
  for (InstructionRange& loop : loops_) loop = {loop.begin + shift, loop.end + shift};
  out_.code.insert(out_.code.begin(), preamble_.begin(), preamble_.end());
}

void BytecodeCompiler::region(RegionId id) {
  const auto saved_bytes = local_bytes_;
  const auto saved_elements = local_elements_;
  const auto saved_origin = origin_;
  for (const OpId op : g_[id].ops) {
    ++line_;
    origin_ = static_cast<uint32_t>(out_.origins.size());
    out_.origins.push_back({op, g_[op].kind, line_});
    this->op(op);
  }
  local_bytes_ = saved_bytes;
  local_elements_ = saved_elements;
  origin_ = saved_origin;
}

void BytecodeCompiler::op(OpId id) {
  const Op& op = g_[id];
  switch (op.kind) {
    case OpKind::kInput:
      return input(op);
    case OpKind::kFor:
      return for_loop(op);
    case OpKind::kIf:
      return if_op(op);
    case OpKind::kAllocate:
      return allocate(op);
    case OpKind::kLoad:
      return load(op);
    case OpKind::kStore:
      return store(op);
    case OpKind::kCopy:
      return copy(op);
    case OpKind::kThreadIndex:
    case OpKind::kThreadCount:
      return thread(op);
    case OpKind::kBarrier:
      emit({.opcode = Opcode::kBarrier});
      return;
    case OpKind::kGridBarrier:
      return grid_barrier(op);
    case OpKind::kBlockReduce:
    case OpKind::kBlockBroadcast:
      return collective(op);
    case OpKind::kWarpReduce:
      return warp_reduce(op);
    case OpKind::kPreparedDiv:
      return prepared_div(op);
    case OpKind::kPhilox:
      return philox(op);
    case OpKind::kLaunchBound:
      out_.most_threads = op.attrs.integer(AttrKey::kMostThreads);
      return;
    case OpKind::kCluster:
      out_.cluster_blocks = op.attrs.integer(AttrKey::kClusterBlocks);
      out_.cluster_axis = op.attrs.enumerator<ParallelType>(AttrKey::kParallel);
      return;
    case OpKind::kDependentLaunch:
      return;  // launches run one after another here
    case OpKind::kClusterArrive:
      emit({.opcode = Opcode::kClusterArrive});
      return;
    case OpKind::kClusterWait:
      emit({.opcode = Opcode::kClusterWait});
      return;
    case OpKind::kClusterReduce:
      return cluster_reduce(op);
    case OpKind::kGridReduce:
      return grid_reduce(op);
    case OpKind::kWelfordCombine:
      return welford(op);
    case OpKind::kWithin:
      return within(op);
    case FUSEBOX_SCALAR_OPS:
      return math(op);
    case OpKind::kSize:
    case OpKind::kOutput:
    case OpKind::kAssume:
    case FUSEBOX_TENSOR_OPS:
    case FUSEBOX_HOST_OPS:
      throw Error(ErrorCode::kUnsupportedOp,
                  std::string(row_of(op.kind).text) + " has no place in a kernel on the host",
                  op.results.empty() ? "" : place(op.results[0]));
  }
}

void BytecodeCompiler::thread(const Op& op) {
  Instruction i{.opcode = op.kind == OpKind::kThreadIndex ? Opcode::kThreadIndex : Opcode::kThreadCount};
  i.parallel = op.attrs.enumerator<ParallelType>(AttrKey::kParallel);
  if (!is_thread(i.parallel))
    throw Error(ErrorCode::kBadAttribute, "a thread index is on one of grid.x to block.z", place(op.results[0]));
  i.uniform = op.kind == OpKind::kThreadCount || is_grid(i.parallel);
  i.dst = registers_[op.results[0].index] = new_register(Dtype::kIndex, i.uniform);
  emit(i);
}

void BytecodeCompiler::if_op(const Op& op) {
  const uint32_t predicate = as(op.operands[0], Dtype::kBool);
  const bool uniform = is_uniform(predicate);
  Instruction start{.opcode = Opcode::kIf, .uniform = uniform};
  start.args[0] = predicate;
  const uint32_t begin = emit(start);
  depth_ += !uniform;
  out_.mask_depth = std::max(out_.mask_depth, depth_);
  region(op.regions[0]);
  ++line_;
  if (op.regions.size() > 1) {
    Instruction middle{.opcode = uniform ? Opcode::kJump : Opcode::kElse, .uniform = uniform, .counts = false};
    if (!uniform) middle.args[0] = predicate;
    const uint32_t at = emit(middle);
    out_.code[begin].target = uniform ? at + 1 : at;
    region(op.regions[1]);
    ++line_;
    out_.code[at].target = here();
  } else {
    out_.code[begin].target = here();
  }
  if (!uniform) emit({.opcode = Opcode::kEndIf, .counts = false});
  depth_ -= !uniform;
}

void BytecodeCompiler::for_loop(const Op& op) {
  Instruction start{.opcode = Opcode::kFor};
  for (size_t k = 0; k < 3; ++k) start.args[k] = as(op.operands[k], Dtype::kIndex);
  start.uniform = is_uniform(start.args[0]) && is_uniform(start.args[1]) && is_uniform(start.args[2]);
  const RegionId body = op.regions[0];
  start.dst = new_register(Dtype::kIndex, start.uniform);
  if (g_[body].index) registers_[g_[body].index.index] = start.dst;
  const uint32_t begin = emit(start);
  depth_ += !start.uniform;
  out_.mask_depth = std::max(out_.mask_depth, depth_);
  region(body);
  ++line_;
  Instruction end = start;
  end.opcode = Opcode::kEndFor;
  end.args[0] = start.dst;
  end.target = begin + 1;
  const uint32_t at = emit(end);
  out_.code[begin].target = at + 1;
  loops_.push_back({begin, at});
  depth_ -= !start.uniform;
}

Bytecode compile_bytecode(const Graph& kernel, const Defects& defects) {
  return BytecodeCompiler(kernel, defects).run();
}

}  // namespace fusebox
