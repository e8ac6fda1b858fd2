#include "codegen/bytecode.h"

#include <algorithm>
#include <numeric>

#include "codegen/bytecode_math.h"
#include "codegen/bytecode_registers.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"

namespace fusebox {

Dtype register_dtype(Dtype d) {
  if (is_storage_only(d)) return Dtype::kUint8;
  if (is_reduced_float(d)) return Dtype::kFloat;
  return d == Dtype::kIndex ? Dtype::kInt64 : d;
}

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

class Compiler {
 public:
  Compiler(const Graph& g, const Defects& defects) : g_(g), defects_(defects) {}

  Bytecode run() {
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

 private:
  std::string place(ValueId v) const { return "%" + g_[v].name; }

  // -- registers
  uint32_t new_register(Dtype dtype, bool uniform) {
    out_.registers.push_back({dtype, uniform, 0});
    return static_cast<uint32_t>(out_.registers.size() - 1);
  }
  uint32_t new_constant(Dtype dtype, ConstantBits bits) {
    const uint32_t r = new_register(dtype, true);
    const bool is_wide = is_integer(dtype) && dtype != Dtype::kIndex && fusebox::bits(dtype) == 64;
    if (is_wide && defects_.has(Defect::kConstantByDouble)) bits = from_double(dtype, to_double(dtype, bits));
    if (is_complex(dtype) && defects_.has(Defect::kConstantImaginary)) bits.high = 0;
    if (dtype == Dtype::kDouble && defects_.has(Defect::kConstantByFloat))
      bits = convert(Dtype::kFloat, convert(dtype, bits, Dtype::kFloat), dtype);
    out_.constants.push_back({r, bits, dtype});
    return r;
  }
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
  uint32_t as(ValueId v, Dtype wanted) {
    const uint32_t have = register_of(v);
    const Dtype dtype = g_[v].dtype;
    if (register_dtype(dtype) == register_dtype(wanted) && is_storage_only(dtype) == is_storage_only(wanted))
      return have;
    if (is_storage_only(dtype) || is_storage_only(wanted))
      throw Error(
          ErrorCode::kUnsupportedDtype,
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
  bool is_parameter(ValueId v) const { return g_[v].def && g_[g_[v].def].kind == OpKind::kInput; }

  // -- code
  uint32_t emit(Instruction i) {
    i.origin = origin_;
    out_.code.push_back(i);
    return static_cast<uint32_t>(out_.code.size() - 1);
  }
  uint32_t here() const { return static_cast<uint32_t>(out_.code.size()); }
  void insert_preamble() {
    const auto shift = static_cast<uint32_t>(preamble_.size());
    if (shift == 0) return;
    for (Instruction& i : out_.code) i.target += shift;
    for (InstructionRange& loop : loops_) loop = {loop.begin + shift, loop.end + shift};
    out_.code.insert(out_.code.begin(), preamble_.begin(), preamble_.end());
  }
  template <class Function>
  ListRange list(size_t count, Function&& item) {
    // `item` may emit code and make lists, so the range is taken after it has run for every item.
    std::vector<uint32_t> items(count);
    for (size_t k = 0; k < count; ++k) items[k] = item(k);
    const ListRange range{static_cast<uint32_t>(out_.lists.size()), static_cast<uint32_t>(count)};
    out_.lists.insert(out_.lists.end(), items.begin(), items.end());
    return range;
  }

  void region(RegionId id) {
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

  static ValueId operand(const Op& op, size_t i) { return i < op.operands.size() ? op.operands[i] : ValueId(); }

  void op(OpId id) {
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
      case OpKind::kPreparedDiv:
        return prepared_div(op);
      case OpKind::kPhilox:
        return philox(op);
      case OpKind::kLaunchBound:
        out_.most_threads = op.attrs.integer(AttrKey::kMostThreads);
        return;
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

  void input(const Op& op) {
    const ValueId v = op.results[0];
    BytecodeParameter p{g_[v].name, g_[v].dtype, kNoBuffer, kNoRegister};
    if (g_.is_tensor(v)) {
      p.buffer = add_buffer(v, MemoryType::kGlobal);
    } else {
      p.reg = registers_[v.index] = new_register(g_[v].dtype, true);
    }
    out_.parameters.push_back(std::move(p));
  }

  uint32_t add_buffer(ValueId v, MemoryType memory) {
    BytecodeBuffer b;
    b.name = g_[v].name;
    b.dtype = g_[v].dtype;
    b.memory = memory;
    out_.buffers.push_back(std::move(b));
    return buffers_[v.index] = static_cast<uint32_t>(out_.buffers.size() - 1);
  }

  void allocate(const Op& op) {
    const ValueId v = op.results[0];
    const MemoryType declared = g_.tensor_of(v).memory;
    const auto memory = op.attrs.enumerator<MemoryType>(AttrKey::kMemory,
                                                        declared == MemoryType::kUnset ? MemoryType::kLocal : declared);
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
        throw Error(ErrorCode::kInvalidGraph, "local memory needs a constant size of at most 1048576 elements",
                    place(v));
      b.elements = *elements;
      b.local_offset = local_bytes_;
      b.local_first = local_elements_;
      local_bytes_ += static_cast<uint32_t>(*elements * size_bytes(register_dtype(b.dtype)));
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

  void load(const Op& op) {
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

  void store(const Op& op) {
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

  void copy(const Op& op) {
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

  void thread(const Op& op) {
    Instruction i{.opcode = op.kind == OpKind::kThreadIndex ? Opcode::kThreadIndex : Opcode::kThreadCount};
    i.parallel = op.attrs.enumerator<ParallelType>(AttrKey::kParallel);
    if (!is_thread(i.parallel))
      throw Error(ErrorCode::kBadAttribute, "a thread index is on one of grid.x to block.z", place(op.results[0]));
    i.uniform = op.kind == OpKind::kThreadCount || is_grid(i.parallel);
    i.dst = registers_[op.results[0].index] = new_register(Dtype::kIndex, i.uniform);
    emit(i);
  }

  void prepared_div(const Op& op) {
    Instruction i{.opcode = Opcode::kPreparedDiv};
    i.args[0] = as(op.operands[0], Dtype::kIndex);
    i.args[1] = as(op.operands[2], Dtype::kInt64);
    i.uniform = out_.registers[i.args[0]].uniform && out_.registers[i.args[1]].uniform;
    i.dst = registers_[op.results[0].index] = new_register(Dtype::kIndex, i.uniform);
    emit(i);
  }

  void philox(const Op& op) {
    Instruction i{.opcode = Opcode::kPhilox, .dtype = Dtype::kUint32, .immediate = op.attrs.integer(AttrKey::kSlot)};
    i.args[0] = as(op.operands[0], Dtype::kUint64);
    i.args[1] = as(op.operands[1], Dtype::kUint64);
    i.args[2] = as(op.operands[2], Dtype::kIndex);
    i.uniform = std::all_of(i.args.begin(), i.args.begin() + 3, [&](uint32_t r) { return out_.registers[r].uniform; });
    i.dst = registers_[op.results[0].index] = new_register(Dtype::kUint32, i.uniform);
    emit(i);
  }

  void grid_barrier(const Op& op) {
    Instruction i{.opcode = Opcode::kGridBarrier};
    i.from = buffer_of(op.operands[0]);
    out_.buffers[i.from].is_read = true;
    i.immediate = op.attrs.integer(AttrKey::kSlot, 0);
    out_.has_grid_sync = true;
    emit(i);
  }

  void if_op(const Op& op) {
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

  void for_loop(const Op& op) {
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

  void collective(const Op& op) {
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
    if (inits.count == values.count)
      i.inits = list(inits.count, [&](size_t k) { return as(at(inits, k), dtype_of(k)); });
    i.workspaces = list(workspaces.count, [&](size_t k) {
      const uint32_t b = buffer_of(at(workspaces, k));
      out_.buffers[b].is_stored = true;
      return b;
    });
    i.reduce = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp);
    i.all = op.attrs.flag(AttrKey::kAll);
    i.threads = threads_of(op);
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

  uint32_t threads_of(const Op& op) const {
    uint32_t threads = 0;
    for (const int64_t t : op.attrs.ints(AttrKey::kThreads)) {
      const auto p = static_cast<ParallelType>(t);
      if (!is_thread(p) || (is_grid(p) && op.kind != OpKind::kGridReduce))
        throw Error(ErrorCode::kBadAttribute,
                    "a collective goes over thread coordinates; those of the grid only in grid_reduce",
                    place(op.results[0]));
      threads |= 1u << t;
    }
    return threads;
  }

  void grid_reduce(const Op& op) {
    Instruction i{.opcode = Opcode::kGridReduce};
    const auto ranges = slot_ranges(*row_of(op.kind).format, op.operands.size());
    if (!ranges)
      throw Error(ErrorCode::kOperandCount, "a grid reduction has as many workspaces as arrays", place(op.results[0]));
    const uint32_t count = (*ranges)[0].count;
    i.reduce = op.attrs.enumerator<ReduceOp>(AttrKey::kReduceOp);
    if (count != (i.reduce == ReduceOp::kWelford ? 3u : 1u))
      throw Error(ErrorCode::kOperandCount, "welford combines three arrays, other reductions one",
                  place(op.results[0]));
    // The lists follow one another: arrays, global workspaces, shared workspaces.
    i.workspaces = list(size_t{3} * count, [&](size_t k) {
      const uint32_t b = buffer_of(op.operands[k]);
      out_.buffers[b].is_stored = true;
      out_.buffers[b].is_read |= k < count;
      return b;
    });
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
    i.threads = threads_of(op);
    i.dtype = g_[op.operands[0]].dtype;
    if (count == 3) i.to = count_dtype(compute_dtype(i.dtype), g_[op.operands[2]].dtype);
    out_.has_grid_sync |= i.all;
    out_.has_arrivals = true;
    i.dst = registers_[op.results[0].index] = new_register(Dtype::kBool, true);
    emit(i);
  }

  // The dtype in which set sizes are added up: any integer keeps them exact in int64.
  static Dtype count_dtype(Dtype compute, Dtype declared) { return is_integer(declared) ? Dtype::kInt64 : compute; }

  void welford(const Op& op) {
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
    for (size_t k = 0; k < 3; ++k)
      finish(out_.lists[i.results.begin + k], dtype_of(k), op.results[k], i.uniform, false);
  }

  void within(const Op& op) {
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

  // Sets `result` to the native value in `r`, converted or rounded to the declared dtype.
  void finish(uint32_t r, Dtype native, ValueId result, bool uniform, bool is_exact) {
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

  void math(const Op& op) {
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

  // Whether a sum reads this product, or reads it through a cast to a float.
  bool is_added_product(ValueId v) const {
    if (g_[g_[v].def].kind != OpKind::kMul) return false;
    return std::any_of(g_.ops.begin(), g_.ops.end(), [&](const Op& op) {
      const bool adds = op.kind == OpKind::kAdd || op.kind == OpKind::kSub || op.kind == OpKind::kCast;
      return adds && is_floating(g_[op.results[0]].dtype) &&
             std::find(op.operands.begin(), op.operands.end(), v) != op.operands.end();
    });
  }

  void cast(ValueId from, ValueId result) {
    const Dtype have = g_[from].dtype, wanted = g_[result].dtype;
    if (have == wanted) {
      registers_[result.index] = register_of(from);
      return;
    }
    if (is_storage_only(have) || is_storage_only(wanted))
      throw Error(
          ErrorCode::kUnsupportedDtype,
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

}  // namespace

Bytecode compile_bytecode(const Graph& kernel, const Defects& defects) { return Compiler(kernel, defects).run(); }

}  // namespace fusebox
