// A launch record is a host program as code for a register machine: it binds sizes, checks facts, computes layouts, grids and
// shared bytes, and says what to allocate, launch and return. Tensors, scalars and kernels stand by position, so no name is
// looked up when it runs. passes/host/launch_code.h makes it of a host program, replay/run/launch_machine.h runs it.
//
// Invariants (`objection` tells): an instruction names only registers, tensors and rows that the record has; a jump leads to an
// instruction. Registers have 64 bits; a complex number takes two, the real half first. Handles of streams, events and
// transfers are numbers in registers too.
//
// A word of code is an instruction, or a number that belongs to the one before:
//
//   bits   0–7    8–15     16–31  32–47  48–63
//          op     small    a      b      c
//
//   %x : f32[%n]                                 record.inputs[0] == {.dtype = kFloat, .rank = 1}
//   %y = allocate [%n] strides [1]               00 extent r0 t0 0
//   launch @k grid [%n, 1, 1] …                  01 constant r1 1
//                                                03 allocate t1 1 (r0, r1)
//                                                05 launch k0 2 (r0 r1 r1 …) (t0, t1)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/table/dtype.h"
#include "ir/table/error.h"

namespace fusebox {

// clang-format off
enum class LaunchOp : uint8_t {
#define FUSEBOX_LAUNCH_OP(name, text, a, b, c, summary) name,
#include "ir/module/launch_op_table.inc"
#undef FUSEBOX_LAUNCH_OP
};

// Instructions of one word whose numbers the table describes.
#define FUSEBOX_PLAIN_LAUNCH_OPS \
  LaunchOp::kAlignment: case LaunchOp::kPrepareDivision: case LaunchOp::kMove: case LaunchOp::kJump: \
  case LaunchOp::kJumpIfZero: case LaunchOp::kRequire: case LaunchOp::kRequireEqual: case LaunchOp::kRequireSize: \
  case LaunchOp::kRequireApart: case LaunchOp::kRelease: case LaunchOp::kCopy: case FUSEBOX_STREAM_LAUNCH_OPS
// Streams, events and communication.
#define FUSEBOX_STREAM_LAUNCH_OPS \
  LaunchOp::kCreateStream: case LaunchOp::kGetStream: case LaunchOp::kSetStream: case LaunchOp::kSynchronize: \
  case LaunchOp::kRecordEvent: case LaunchOp::kWaitEvent: case LaunchOp::kPost: case LaunchOp::kWait
// clang-format on

// The meaning of one of an instruction's numbers.
enum class LaunchPart : uint8_t { kNone, kSet, kRead, kSlot, kKernel, kScalar, kError, kName, kNumber, kTarget };

struct LaunchOpRow {
  LaunchOp op;
  std::string_view text;
  LaunchPart a, b, c;
  std::string_view summary;
};
std::span<const LaunchOpRow> launch_op_rows();
inline const LaunchOpRow& row_of(LaunchOp op) { return launch_op_rows()[static_cast<size_t>(op)]; }

// An argument of the program.
struct LaunchInput {
  Dtype dtype = Dtype::kFloat;
  uint32_t rank = 0;  // of a tensor
  bool is_scalar = false;
  bool is_open = false;  // a scalar that only kernels read, as the caller gives it
  bool operator==(const LaunchInput&) const = default;
};

// A tensor that the program allocates, or a view.
struct LaunchSlot {
  Dtype dtype = Dtype::kFloat;
  uint32_t rank = 0;
  bool operator==(const LaunchSlot&) const = default;
};

// The error that a failing check or computation throws.
struct LaunchError {
  ErrorCode code = ErrorCode::kBadInput;
  std::string message;
  std::string place;
  bool operator==(const LaunchError&) const = default;
};

struct LaunchRecord {
  uint32_t registers = 0;
  uint32_t kernels = 0;
  std::vector<LaunchInput> inputs;
  // Tensors are numbered: those among the inputs first, then these.
  std::vector<LaunchSlot> allocated;
  std::vector<LaunchError> errors;
  std::vector<std::string> names;  // of outputs and segments
  std::vector<uint64_t> code;
  bool operator==(const LaunchRecord&) const = default;
};

struct LaunchWord {
  LaunchOp op = LaunchOp::kConstant;
  uint8_t small = 0;
  uint16_t a = 0, b = 0, c = 0;

  uint32_t target() const { return uint32_t{b} | uint32_t{c} << 16; }
};
constexpr uint64_t pack(const LaunchWord& w) {
  return static_cast<uint64_t>(w.op) | uint64_t{w.small} << 8 | uint64_t{w.a} << 16 | uint64_t{w.b} << 32 |
         uint64_t{w.c} << 48;
}
constexpr LaunchWord unpack_word(uint64_t bits) {
  return {static_cast<LaunchOp>(bits & 0xff), static_cast<uint8_t>(bits >> 8), static_cast<uint16_t>(bits >> 16),
          static_cast<uint16_t>(bits >> 32), static_cast<uint16_t>(bits >> 48)};
}

// An operand of `compute`, or an argument of a launch or of a segment by ATen, as a word.
struct LaunchOperand {
  enum class Kind : uint8_t {
    kRegister,  // a number in registers from `at` on
    kTensor,    // the tensor `at`
    kOpen,      // the scalar argument `at`, as the caller gives it
  };
  Kind kind = Kind::kRegister;
  Dtype dtype = Dtype::kIndex;
  uint16_t at = 0;
};
constexpr uint64_t pack(const LaunchOperand& o) {
  return static_cast<uint64_t>(o.kind) | static_cast<uint64_t>(o.dtype) << 8 | uint64_t{o.at} << 24;
}
constexpr LaunchOperand unpack_operand(uint64_t bits) {
  return {static_cast<LaunchOperand::Kind>(bits & 0xff), static_cast<Dtype>(bits >> 8 & 0xff),
          static_cast<uint16_t>(bits >> 24)};
}

// An axis of `require_layout`.
struct LaunchAxis {
  enum class Rule : uint8_t {
    kContiguous,  // its stride steps over exactly the faster axes
    kFree,        // any stride; slower axes count from it
    kExpanded,    // its stride is 0, and slower axes skip it
    kSkipped,     // any stride, and slower axes skip it
  };
  Rule rule = Rule::kContiguous;
  uint16_t axis = 0;
  uint16_t error = 0;
};
constexpr uint64_t pack(const LaunchAxis& x) {
  return static_cast<uint64_t>(x.rule) | uint64_t{x.axis} << 8 | uint64_t{x.error} << 24;
}
constexpr LaunchAxis unpack_axis(uint64_t bits) {
  return {static_cast<LaunchAxis::Rule>(bits & 0xff), static_cast<uint16_t>(bits >> 8),
          static_cast<uint16_t>(bits >> 24)};
}

// Registers of a list, four in a word.
constexpr size_t words_of_registers(size_t count) { return (count + 3) / 4; }
inline uint16_t register_in(const uint64_t* words, size_t i) {
  return static_cast<uint16_t>(words[i / 4] >> (16 * (i % 4)));
}

// The number of words that belong to an instruction, itself not counted. `compute` has its count of operands in the first
// word behind it, so it needs the code.
size_t words_behind(std::span<const uint64_t> code, size_t at);

// Why the record breaks an invariant; nothing if it does not.
std::optional<std::string> objection(const LaunchRecord& record);

// A listing, one instruction a line. Not parsed.
std::string text(const LaunchRecord& record);

}  // namespace fusebox
