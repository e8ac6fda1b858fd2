// The host executor runs a kernel's bytecode on the processor, with checks that a GPU does not make. It gives the same
// bits on every machine and for every number of threads.
//
// Invariants:
// - An instruction runs for all threads of a block before the next one does. Blocks run one after another, or spread
//   over worker threads, which changes neither results nor findings. A grid-wide synchronisation suspends each block
//   where it stands.
// - A run that breaks a rule stops there and says where. The finding is the same in every run.
// - After a finding, buffers that the kernel stores to have unspecified contents.
//
// Rules:
// - Every access lies inside its buffer and is aligned. No element is read before it is written.
// - If two threads access one element and one of them stores, a synchronisation that covers both stands between.
// - Every thread of a block (of the grid) reaches a barrier (a grid barrier).
// - An index fits the kernel's index type. An index from data lies inside its axis.
// - A launch takes no more steps than the limit, and its checks no more memory.
//
//   Bytecode code = compile_bytecode(kernel);
//   HostArgument x = HostArgument::memory(Dtype::kFloat, data, 200), n = HostArgument::scalar(Dtype::kIndex, {200});
//   HostResult r = run_kernel(code, {.grid = {2, 1, 1}, .block = {128, 1, 1}}, std::array{x, n});
//   if (r.finding) throw r.finding->error();
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "codegen/bytecode.h"
#include "ir/table/error.h"

namespace fusebox {

struct LaunchDims {
  std::array<int64_t, 3> grid = {1, 1, 1};   // blocks, x first
  std::array<int64_t, 3> block = {1, 1, 1};  // threads of a block
  int64_t shared_bytes = 0;
};

// One kernel input: a scalar's bits, or memory. Memory parameters may overlap (an output that overwrites an input).
struct HostArgument {
  Dtype dtype = Dtype::kFloat;
  ConstantBits bits = {};     // a scalar's value
  std::byte* data = nullptr;  // memory: its first element
  int64_t elements = 0;       // elements from there that may be touched, with the holes between strided ones
  std::span<uint8_t> written =
      {};  // one byte an element: whether it holds a value; kept up to date. Empty: all hold one
  // The elements whose `written` may be set and is kept up to date. Large memory is then touched only there. Empty:
  // all.
  std::span<const int64_t> places = {};
  std::span<const int64_t> extents = {};  // memory: by axis, for kernels that check an index against one of them

  static HostArgument scalar(Dtype dtype, ConstantBits bits) { return {.dtype = dtype, .bits = bits}; }
  static HostArgument memory(Dtype dtype, void* data, int64_t elements, std::span<uint8_t> written = {}) {
    return {.dtype = dtype,
            .bits = {},
            .data = static_cast<std::byte*>(data),
            .elements = elements,
            .written = written,
            .places = {}};
  }
};

// Bounds (also of axes), alignment, divergence and the step limit are always checked.
struct HostChecks {
  bool unwritten = true;
  bool races = true;  // also two stores
  bool index_overflow = true;
};

class BankCounter;     // replay/host/bank_conflicts.h
class LaunchObserver;  // replay/host/launch_observer.h

struct HostOptions {
  int threads = 1;                        // workers over blocks
  int64_t step_limit = int64_t{1} << 40;  // thread-instructions of a launch
  // Bytes for the blocks of a launch that run at once and for the marks of its memory.
  int64_t memory_limit = int64_t{1} << 34;
  HostChecks checks = {};
  BankCounter* banks = nullptr;        // of this kernel: counts bank conflicts; the launch runs on one thread
  LaunchObserver* observer = nullptr;  // is told every access; the launch runs on one thread
};

struct HostFinding {
  ErrorCode code = ErrorCode::kInternal;
  std::string buffer;  // name of the buffer's value, or empty
  int64_t element = -1;
  std::array<int64_t, 3> block = {0, 0, 0};
  std::array<int64_t, 3> thread = {0, 0, 0};
  OpId op;  // of the kernel
  OpKind kind = OpKind::kSet;
  uint32_t line = 0;   // of the op in the kernel's text; the first line is 1
  std::string detail;  // the broken rule, in a few words

  // The buffer and its element, or the op: `%y[12]`, `line 9`.
  std::string place() const;
  // One sentence: the broken rule, the element, the block and thread, the op and its line.
  std::string message() const;
  Error error() const { return Error(code, message(), place()); }
};

struct HostResult {
  int64_t thread_instructions = 0;  // kernel ops times the threads that ran them
  int64_t instructions = 0;         // dispatched by the interpreter
  std::optional<HostFinding> finding;
};

// Throws kBadInput if the number, kind or dtype of the arguments is not the kernel's, kLaunchLimit for a launch that no
// GPU takes, kStepLimit for one that needs more memory than the limit, kUnsupportedDtype for an op without arithmetic for
// its dtype. A grid or block of zero threads does
// nothing.
HostResult run_kernel(const Bytecode& code, const LaunchDims& dims, std::span<const HostArgument> args,
                      const HostOptions& options = {});

}  // namespace fusebox
