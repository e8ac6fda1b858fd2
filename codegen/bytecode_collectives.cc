// Ops of a kernel by which threads exchange values, in bytecode.
#include <array>

#include "codegen/bytecode_compiler.h"
#include "codegen/bytecode_math.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

// The dtype in which set sizes are added up: any integer keeps them exact in int64.
Dtype count_dtype(Dtype compute, Dtype declared) { return is_integer(declared) ? Dtype::kInt64 : compute; }

}  // namespace

void BytecodeCompiler::collective(const Op& op) {
  Instruction i;
  i.opcode = op.kind == OpKind::kBlockReduce ? Opcode::kBlockReduce : Opcode::kBlockBroadcast;
  const FormatRow& format = *row_of(op.kind).format;
  const auto ranges = slot_ranges(format, op.operands.size());
  if (!ranges)
    throw Error(ErrorCode::kOperandCount, "a collective has as many initial values as values", place(op.results[0]));
  const auto slot = [&](std::string_view keyword) {
    for (int s = 0; s < format.slot_count; ++s)
      if (format.slots[s].keyword == keyword) return (*ranges)[static_cast<size_t>(s)];
    return SlotRange{};
  };
  const auto at = [&](SlotRange range, size_t k) { return op.operands[range.begin + k]; };
  const SlotRange values = slot("value"), inits = slot("init"), workspaces = slot("in"), predicate = slot("if");
  if (values.count != op.results.size())
    throw Error(ErrorCode::kOperandCount, "a collective has one result for each value",
                op.results.empty() ? "" : place(op.results[0]));
  const auto dtype_of = [&](size_t k) { return g_[op.results[k]].dtype; };
  if (predicate.count != 0) i.args[0] = optional_register(at(predicate, 0), Dtype::kBool);
  i.values = list(values.count, [&](size_t k) { return as(at(values, k), dtype_of(k)); });
  if (inits.count == values.count) i.inits = list(inits.count, [&](size_t k) { return as(at(inits, k), dtype_of(k)); });
  i.workspaces = list(workspaces.count, [&](size_t k) {
    const uint32_t b = buffer_of(at(workspaces, k));
    out_.buffers[b].is_stored = true;
    return b;
  });
  i.reduce = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp);
  i.all = op.attrs.flag(AttrKey::kAll);
  i.threads = threads_of(op);
  i.immediate = op.attrs.integer(AttrKey::kAtOnce, 1);
  if (i.opcode != Opcode::kBlockBroadcast) {
    if (values.count != (i.reduce == ReduceOp::kWelford ? 3u : 1u))
      throw Error(ErrorCode::kOperandCount, "welford combines three values, other reductions one",
                  place(op.results[0]));
    if (i.args[0] != kNoRegister && i.inits.count == 0)
      throw Error(ErrorCode::kOperandCount, "threads that take no part need an initial value", place(op.results[0]));
  }
  i.dtype = dtype_of(0);
  if (values.count == 3) i.to = count_dtype(compute_dtype(i.dtype), dtype_of(2));
  i.results = list(op.results.size(),
                   [&](size_t k) { return registers_[op.results[k].index] = new_register(dtype_of(k), false); });
  emit(i);
}

void BytecodeCompiler::warp_reduce(const Op& op) {
  Instruction i{.opcode = Opcode::kWarpReduce};
  const auto dtype_of = [&](size_t k) { return g_[op.results[k]].dtype; };
  i.reduce = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp);
  if (op.operands.size() != (i.reduce == ReduceOp::kWelford ? 3 : 1) || op.results.size() != op.operands.size())
    throw Error(ErrorCode::kOperandCount, "welford combines three values, other reductions one", place(op.results[0]));
  i.values = list(op.operands.size(), [&](size_t k) { return as(op.operands[k], dtype_of(k)); });
  i.immediate = op.attrs.integer(AttrKey::kWidth, 1);
  i.dtype = dtype_of(0);
  if (i.values.count == 3) i.to = count_dtype(compute_dtype(i.dtype), dtype_of(2));
  i.results = list(op.results.size(),
                   [&](size_t k) { return registers_[op.results[k].index] = new_register(dtype_of(k), false); });
  emit(i);
}

uint32_t BytecodeCompiler::threads_of(const Op& op) const {
  uint32_t threads = 0;
  for (const int64_t t : op.attrs.ints(AttrKey::kThreads)) {
    const auto p = static_cast<ParallelType>(t);
    if (!is_thread(p) || (is_grid(p) && op.kind != OpKind::kGridReduce && op.kind != OpKind::kClusterReduce))
      throw Error(ErrorCode::kBadAttribute,
                  "a collective goes over thread coordinates; those of the grid only in grid_reduce and cluster_reduce",
                  op.results.empty() ? "" : place(op.results[0]));
    threads |= 1u << t;
  }
  return threads;
}

void BytecodeCompiler::grid_barrier(const Op& op) {
  Instruction i{.opcode = Opcode::kGridBarrier};
  i.from = buffer_of(op.operands[0]);
  out_.buffers[i.from].is_read = true;
  i.immediate = op.attrs.integer(AttrKey::kSlot, 0);
  out_.has_grid_sync = true;
  emit(i);
}

Instruction BytecodeCompiler::of_blocks(const Op& op, Opcode opcode) {
  Instruction i{.opcode = opcode};
  const std::string at = op.results.empty() ? "" : place(op.results[0]);
  const auto ranges = slot_ranges(*row_of(op.kind).format, op.operands.size());
  if (!ranges)
    throw Error(ErrorCode::kOperandCount, std::string(row_of(op.kind).text) + " has as many workspaces as arrays", at);
  const uint32_t count = (*ranges)[0].count;
  i.reduce = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp);
  if (count != (i.reduce == ReduceOp::kWelford ? 3u : 1u))
    throw Error(ErrorCode::kOperandCount, "welford combines three arrays, other reductions one", at);
  i.workspaces = list(size_t{3} * count, [&](size_t k) {
    const uint32_t b = buffer_of(op.operands[k]);
    out_.buffers[b].is_stored = true;
    out_.buffers[b].is_read |= k < count;
    return b;
  });
  i.threads = threads_of(op);
  i.dtype = g_[op.operands[0]].dtype;
  if (count == 3) i.to = count_dtype(compute_dtype(i.dtype), g_[op.operands[2]].dtype);
  return i;
}

void BytecodeCompiler::cluster_reduce(const Op& op) {
  Instruction i = of_blocks(op, Opcode::kClusterReduce);
  i.immediate = op.attrs.integer(AttrKey::kClusterBlocks);
  emit(i);
}

void BytecodeCompiler::grid_reduce(const Op& op) {
  // The lists are arrays, global workspaces, shared workspaces.
  Instruction i = of_blocks(op, Opcode::kGridReduce);
  const auto ranges = slot_ranges(*row_of(op.kind).format, op.operands.size());
  i.buffer = buffer_of(op.operands[(*ranges)[3].begin]);
  out_.buffers[i.buffer].is_read = out_.buffers[i.buffer].is_stored = true;
  i.immediate = op.attrs.integer(AttrKey::kSlot, 0);
  i.all = op.attrs.flag(AttrKey::kAll);
  if (const ValueId sync = op.operands[(*ranges)[4].begin]) {
    i.from = buffer_of(sync);
    out_.buffers[i.from].is_read = true;
  }
  if (i.all != (i.from != kNoBuffer))
    throw Error(ErrorCode::kOperandCount, "a grid reduction has counters of barriers exactly if all blocks wait",
                place(op.results[0]));
  out_.has_grid_sync |= i.all;
  out_.has_arrivals = true;
  i.dst = registers_[op.results[0].index] = new_register(Dtype::kBool, true);
  emit(i);
}

void BytecodeCompiler::welford(const Op& op) {
  Instruction i{.opcode = Opcode::kWelford};
  const Dtype declared = g_[op.results[0]].dtype;
  i.dtype = math_plan(op.kind, std::array{g_[op.operands[0]].dtype, g_[op.operands[3]].dtype}, declared).compute;
  i.to = count_dtype(i.dtype, g_[op.results[2]].dtype);
  const auto dtype_of = [&](size_t k) { return k % 3 == 2 ? i.to : i.dtype; };
  i.values = list(6, [&](size_t k) { return as(op.operands[k], dtype_of(k)); });
  i.uniform = true;
  for (uint32_t k = 0; k < 6; ++k) i.uniform &= is_uniform(out_.lists[i.values.begin + k]);
  i.results = list(3, [&](size_t k) { return new_register(dtype_of(k), i.uniform); });
  emit(i);
  for (size_t k = 0; k < 3; ++k) finish(out_.lists[i.results.begin + k], dtype_of(k), op.results[k], i.uniform, false);
}

}  // namespace fusebox
