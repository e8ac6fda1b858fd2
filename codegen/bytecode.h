// Host bytecode: a kernel program as a flat list of instructions over typed registers. It is compiled once, and the
// host executor runs it for every group of threads. Compilation is pure; the bytecode is a value and holds no pointers.
//
// Invariants:
// - One instruction stands for one kernel op on all threads (lanes) of a group. A conversion between dtypes is an
//   instruction of its own, which does not count as work (`counts` is false).
// - A `uniform` register has one element for the whole group, and its instructions run once. Any other register has
//   one element a lane.
// - An instruction's result register shares no storage with its operands, except in a conversion in place.
// - Control flow is structured: the `target` of an if, else or for is an instruction behind its region.
//
//   add %b, %t : index      ->   math add index, dst = r2 (a lane each), a = r0 (uniform), b = r1
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

inline constexpr uint32_t kNoRegister = 0xffffffffu;
inline constexpr uint32_t kNoBuffer = 0xffffffffu;

// The dtype of the register that holds a value: float for reduced floats, int64 for index; storage-only dtypes keep
// their bytes.
Dtype register_dtype(Dtype d);

enum class Opcode : uint8_t {
  kMath,         // dst = math(args) in `dtype`
  kConvert,      // dst = args[0] from `dtype` to `to`; in place if dst is args[0]
  kThreadIndex,  // dst; `parallel`
  kThreadCount,
  kPreparedDiv,  // dst = args[0] divided by the number that args[1] was prepared from
  kPhilox,       // dst = word of stream `immediate`; args: seed, offset, element
  kAllocate,     // buffer; args: elements, byte offset
  kLoad,         // dst = buffer[args[0]], if args[1], else args[2]
  kStore,        // buffer[args[0]] = args[1], if args[2]
  kCopy,         // buffer[args[0]] = from[args[1]], if args[2]; `immediate` elements
  kIf,           // args[0]; jumps to target if no lane is left
  kElse,         // args[0]; inverts the lanes; jumps to target if none is left
  kEndIf,
  kJump,    // after the then-region of a uniform `if`
  kFor,     // dst = args[0] while dst < args[1]; jumps to target if no lane is left
  kEndFor,  // dst += args[2]; jumps to target while dst < args[1]
  kBarrier,
  kGridBarrier,  // buffer, immediate: slot
  kBlockReduce,  // lists: results, values, inits, workspaces; args[0]: participation
  kGridReduce,   // dst: whether this block has the result; workspaces: arrays, global and shared workspaces; `buffer`:
                 // arrivals; immediate: slot
  kBlockBroadcast,
  kWarpReduce,  // lists: results, values; immediate: lanes of a group
  kClusterArrive,
  kClusterWait,
  kClusterReduce,  // workspaces: arrays, shared places for the parts of blocks, shared workspaces; immediate: blocks
  kWelford,  // lists: results (3), values (6); values in `dtype`, counts in `to`, as in the reductions of kWelford
  kWithin,   // args[0] in [0, args[1]), or below the extent of axis `immediate` of the buffer
  kEnd,
};

// A range of Bytecode::lists.
struct ListRange {
  uint32_t begin = 0, count = 0;
};

struct Instruction {
  Opcode opcode = Opcode::kEnd;
  bool uniform = false;  // runs once for the group
  bool counts = true;
  ParallelType parallel = ParallelType::kSerial;
  ReduceOp reduce = ReduceOp::kSum;
  bool all = false;          // a collective's result goes to every thread
  bool check_index = false;  // the result is an index and must fit the kernel's index width
  bool from_end = false;     // within: an index may also count from the end, down to the negative extent
  OpKind math = OpKind::kSet;
  Dtype dtype = Dtype::kIndex;
  Dtype to = Dtype::kIndex;
  uint32_t dst = kNoRegister;
  std::array<uint32_t, 4> args = {kNoRegister, kNoRegister, kNoRegister, kNoRegister};
  uint32_t buffer = kNoBuffer;
  uint32_t from = kNoBuffer;  // copy: the source; grid_reduce: the counters of barriers, if any
  uint32_t target = 0;
  uint32_t threads = 0;  // a collective's coordinates: bit i for ParallelType i
  int64_t immediate = 0;
  ListRange results = {}, values = {}, inits = {}, workspaces = {};  // registers; workspaces: buffers
  uint32_t origin = 0;                                               // in Bytecode::origins
};

struct BytecodeRegister {
  Dtype dtype = Dtype::kIndex;
  bool uniform = false;
  uint32_t offset = 0;  // uniform: bytes into the uniform registers; else bytes for each lane before it
};

struct BytecodeBuffer {
  std::string name;
  Dtype dtype = Dtype::kFloat;
  MemoryType memory = MemoryType::kGlobal;
  bool is_read = false;
  bool is_stored = false;
  int64_t elements = 0;       // local
  uint32_t local_offset = 0;  // local: bytes for each lane before its elements, as register dtypes
  uint32_t local_first = 0;   // local: elements of each lane before its own
  int64_t align = 1;          // bytes
};

// A kernel input, in order: a buffer or a register.
struct BytecodeParameter {
  std::string name;
  Dtype dtype = Dtype::kIndex;
  uint32_t buffer = kNoBuffer;
  uint32_t reg = kNoRegister;
};

struct BytecodeConstant {
  uint32_t reg;
  ConstantBits bits;
  Dtype dtype;
};

// The op that a finding names for an instruction, and its line in the kernel's text (the first line is 1).
struct BytecodeOrigin {
  OpId op;
  OpKind kind;
  uint32_t line;
};

struct Bytecode {
  std::string name;
  int index_bits = 64;
  std::vector<BytecodeParameter> parameters;
  std::vector<BytecodeConstant> constants;
  std::vector<BytecodeRegister> registers;
  std::vector<BytecodeBuffer> buffers;
  std::vector<Instruction> code;
  std::vector<uint32_t> lists;
  std::vector<BytecodeOrigin> origins;
  uint32_t uniform_bytes = 0;  // of all uniform registers
  uint32_t lane_bytes = 0;     // of all other registers, for one lane
  uint32_t local_bytes = 0;    // of local buffers, for one lane
  uint32_t local_elements = 0;
  uint32_t mask_depth = 0;      // nesting of divergent control flow
  uint32_t shared_granule = 0;  // bytes of the smallest element kept in shared memory; 0: none
  bool has_grid_sync = false;
  bool reads_apart = false;    // no launch stores to memory of a buffer that the kernel only reads; the run checks it
  int64_t most_threads = 0;    // of a block; 0: no bound
  int64_t cluster_blocks = 0;  // of a cluster; 0: blocks form none
  ParallelType cluster_axis = ParallelType::kGridX;  // along which they are neighbours
  bool has_arrivals = false;                         // blocks exchange values without a barrier: they run on one worker
};

// Throws kWrongLevel for a graph of another level, kUnsupportedOp and kUnsupportedDtype for an op or dtype that the
// host cannot compute yet, kInvalidGraph for an operand that breaks the kernel contract (such as a local buffer of
// run-time size).
Bytecode compile_bytecode(const Graph& kernel, const Defects& defects = {});

}  // namespace fusebox
