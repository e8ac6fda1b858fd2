// Makes the bytecode of one kernel. Only for use inside codegen; bytecode.h is the interface.
//
// Invariants: every value of the kernel has at most one register, and every tensor one buffer. Instructions stand in the
// order of the ops; conversions of constants and parameters stand before all of them, in the preamble.
//
//   Bytecode code = BytecodeCompiler(kernel, {}).run();
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/bytecode.h"
#include "codegen/bytecode_registers.h"
#include "ir/table/error.h"

namespace fusebox {

class BytecodeCompiler {
 public:
  BytecodeCompiler(const Graph& g, const Defects& defects) : g_(g), defects_(defects) {}

  Bytecode run();

 private:
  std::string place(ValueId v) const { return "%" + g_[v].name; }

  // -- registers
  uint32_t new_register(Dtype dtype, bool uniform) {
    out_.registers.push_back({dtype, uniform, 0});
    return static_cast<uint32_t>(out_.registers.size() - 1);
  }
  uint32_t new_constant(Dtype dtype, ConstantBits bits);
  uint32_t register_of(ValueId v) {
    uint32_t& r = registers_[v.index];
    if (r == kNoRegister) {
      if (!g_[v].constant) throw Error(ErrorCode::kNotDominated, "a scalar is used before it is defined", place(v));
      r = new_constant(g_[v].dtype, *g_[v].constant);
    }
    return r;
  }
  uint32_t optional_register(ValueId v, Dtype wanted) { return v ? as(v, wanted) : kNoRegister; }
  uint32_t buffer_of(ValueId v) const {
    if (buffers_[v.index] == kNoBuffer)
      throw Error(ErrorCode::kWrongKind, "this op needs a buffer", v ? place(v) : std::string());
    return buffers_[v.index];
  }
  bool is_uniform(uint32_t r) const { return r == kNoRegister || out_.registers[r].uniform; }

  // A register that holds `v` in the register dtype of `wanted`, with at least the precision of `wanted`.
  uint32_t as(ValueId v, Dtype wanted);
  bool is_parameter(ValueId v) const { return g_[v].def && g_[g_[v].def].kind == OpKind::kInput; }

  // -- code
  uint32_t emit(Instruction i) {
    i.origin = origin_;
    out_.code.push_back(i);
    return static_cast<uint32_t>(out_.code.size() - 1);
  }
  uint32_t here() const { return static_cast<uint32_t>(out_.code.size()); }
  void insert_preamble();
  template <class Function>
  ListRange list(size_t count, Function&& item) {
    // `item` may emit code and make lists, so the range is taken after it has run for every item.
    std::vector<uint32_t> items(count);
    for (size_t k = 0; k < count; ++k) items[k] = item(k);
    const ListRange range{static_cast<uint32_t>(out_.lists.size()), static_cast<uint32_t>(count)};
    out_.lists.insert(out_.lists.end(), items.begin(), items.end());
    return range;
  }

  void region(RegionId id);
  static ValueId operand(const Op& op, size_t i) { return i < op.operands.size() ? op.operands[i] : ValueId(); }
  void op(OpId id);
  void thread(const Op& op);
  void if_op(const Op& op);
  void for_loop(const Op& op);

  // -- bytecode_memory.cc
  void input(const Op& op);
  uint32_t add_buffer(ValueId v, MemoryType memory);
  void allocate(const Op& op);
  void load(const Op& op);
  void store(const Op& op);
  void copy(const Op& op);
  void within(const Op& op);

  // -- bytecode_collectives.cc
  void collective(const Op& op);
  uint32_t threads_of(const Op& op) const;
  void grid_barrier(const Op& op);
  void grid_reduce(const Op& op);
  void cluster_reduce(const Op& op);
  void warp_reduce(const Op& op);
  // An instruction that combines arrays of blocks, with its lists of buffers, which follow one another in `workspaces`.
  Instruction of_blocks(const Op& op, Opcode opcode);
  void welford(const Op& op);

  // -- bytecode_scalars.cc
  void math(const Op& op);
  void cast(ValueId from, ValueId result);
  void prepared_div(const Op& op);
  void philox(const Op& op);
  // Sets `result` to the native value in `r`, converted or rounded to the declared dtype.
  void finish(uint32_t r, Dtype native, ValueId result, bool uniform, bool is_exact);
  // Whether a sum reads this product, or reads it through a cast to a float.
  bool is_added_product(ValueId v) const;

  struct Conversion {
    ValueId value;
    Dtype dtype;
    uint32_t reg;
  };

  const Graph& g_;
  const Defects& defects_;
  Bytecode out_;
  std::vector<uint32_t> registers_, buffers_;  // by value id
  std::vector<Conversion> conversions_;        // of constants and parameters
  std::vector<Instruction> preamble_;          // their code
  std::vector<InstructionRange> loops_;
  uint32_t origin_ = 0, line_ = 1, depth_ = 0;
  uint32_t local_bytes_ = 0, local_elements_ = 0;
};

}  // namespace fusebox
