// A resolved call is a run of a host program with every number filled in: what to clear, copy and launch, with which
// dimensions and arguments, for one set of sizes and strides. It leaves open only addresses, and scalars that nothing
// but kernels read. So a repeated call binds, checks and computes nothing.
//
// Invariants: the call is right only for inputs of the same alignments, of which none that is overwritten overlaps
// another. Tensors are slots: the inputs come first, in order, then the tensors that the program allocates. Two tensors
// that share a place in the arena are never in use at the same time.
//
//   ResolvedCall call = resolve_call(compiled.host, kernels, arguments);
//   if (!call.refused.empty()) …                     // run the host program instead
//   call.steps[0].dims.grid[0]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/run/host_program.h"

namespace fusebox {

struct ResolvedTensor {
  static constexpr int64_t kNoPlace = -1;
  Dtype dtype = Dtype::kFloat;
  std::vector<int64_t> shape, strides;
  int64_t bytes = 0;            // from element (0, 0, …) to behind the last one
  bool is_input = false;        // the caller gives its memory
  bool is_output = false;       // the caller keeps its memory
  bool is_by_aten = false;      // an ATen segment allocates it in each call
  int64_t in_arena = kNoPlace;  // neither: its first byte in the arena
  bool operator==(const ResolvedTensor&) const = default;
};

// A view of a slot: its layout, and how many elements lie before its first one.
struct ResolvedView {
  TensorLayout layout;
  int64_t first = 0;
  bool operator==(const ResolvedView&) const = default;
};

struct ResolvedArgument {
  enum class Kind : uint8_t {
    kTensor,  // the address of slot `from`
    kScalar,  // the scalar argument `from` of the call
    kBits,    // `bits`
  };
  Kind kind = Kind::kBits;
  uint32_t from = 0;
  Dtype dtype = Dtype::kIndex;
  ConstantBits bits = {};
  std::optional<ResolvedView> view = {};  // of the slot; none: the slot itself
  bool operator==(const ResolvedArgument&) const = default;
};

struct ResolvedStep {
  enum class Kind : uint8_t {
    kZero,    // clears slot `to`
    kCopy,    // copies slot `from` to `to`, which has the same strides
    kLaunch,  // kernel `kernel` of the host program's kernels
    kAten,    // the ATen segment `segment`
  };
  Kind kind = Kind::kLaunch;
  uint32_t to = 0, from = 0;
  size_t kernel = 0;
  LaunchDims dims = {};
  std::vector<ResolvedArgument> arguments = {};
  std::string segment = {};
  std::vector<uint32_t> made = {};  // slots of what it makes
  bool operator==(const ResolvedStep& other) const {
    return kind == other.kind && to == other.to && from == other.from && kernel == other.kernel &&
           dims.grid == other.dims.grid && dims.block == other.dims.block &&
           dims.shared_bytes == other.dims.shared_bytes && arguments == other.arguments && segment == other.segment &&
           made == other.made;
  }
};

struct ResolvedOutput {
  std::string name;
  bool overwrites_input = false;
  bool is_scalar = false;
  uint32_t slot = 0;  // of a tensor
  Dtype dtype = Dtype::kFloat;
  ConstantBits bits = {};  // of a scalar
  bool operator==(const ResolvedOutput&) const = default;
};

struct ResolvedCall {
  // Why the program cannot be resolved; empty if it can. Copies between layouts are a reason.
  std::string refused;
  std::vector<ResolvedTensor> tensors;
  std::vector<ResolvedStep> steps;
  std::vector<ResolvedOutput> outputs;
  int64_t arena_bytes = 0;
  // By argument of the call. A scalar that only kernels read may have another value in the next call.
  std::vector<bool> is_open_scalar;
  bool operator==(const ResolvedCall&) const = default;
};

// Bytes between the places of the arena.
constexpr int64_t kArenaAlign = 256;

// Runs the host program without memory. `addresses` has one for each tensor among the arguments, in order. Throws what
// the host program throws: a failed check, a size that does not fit. `infer` tells the layouts of what ATen segments make,
// by their names; without it a program with such segments is refused.
using InferSegment = std::function<std::vector<TensorLayout>(const std::string& segment, std::span<const BoundInput>)>;
ResolvedCall resolve_call(const Graph& host, std::span<const NamedKernel> kernels, std::span<const Argument> arguments,
                          std::span<const uint64_t> addresses, const InferSegment& infer = nullptr);

// The tensor of an argument, by that of its slot.
RunTensor tensor_of(const ResolvedArgument& argument, const RunTensor& slot);

// Runs a resolved call by a device's own functions: for tests, and for devices without a faster way. `inputs` are the
// tensors among `arguments`. Returns the tensors by slot.
std::vector<RunTensor> run_resolved(const ResolvedCall& call, std::span<const NamedKernel> kernels, Device& device,
                                    std::span<const Argument> arguments, std::span<const RunTensor> inputs);

}  // namespace fusebox
