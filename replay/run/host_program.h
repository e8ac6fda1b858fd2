// The one interpreter of host programs. It allocates, checks, launches, copies and frees on a Device, in the program's
// order.
//
// Invariants: the caller's inputs are never written: an input that the program overwrites is a copy on the device.
// Streams, events and communication are refused with kUnsupportedOp.
//
//   ProgramResult r = run_host_program(compiled.host, kernels, *device, arguments);
//   r.outputs[0].tensor   // downloaded
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "replay/device/device.h"

namespace fusebox {

struct Compiled;

struct NamedKernel {
  std::string name;
  const Graph* kernel = nullptr;
};

// The arguments of an ATen segment.
struct AtenCall {
  const std::string& name;
  std::span<const RunArgument> given;  // sizes, scalars and tensors in the order of the segment's signature
  // For each output: the strides that it must have, given those that ATen chose.
  std::function<std::vector<int64_t>(size_t output, const TensorLayout& chosen)> strides;
  std::function<Dtype(size_t output)> dtype;
  Device& device;
};

// A tensor that an ATen segment made, with the strides that ATen chose.
struct AtenResult {
  std::string segment, value;
  TensorLayout chosen;
};

struct HostProgramOptions {
  // Runs ATen segments (aten_segment.h).
  std::function<std::vector<RunTensor>(const AtenCall&)> run_aten;
  // The layouts of a record that is replayed: what ATen makes gets them.
  std::vector<AtenResult> recorded = {};
  // Uses the caller's tensors themselves (device pointers, or host memory), also for in-place outputs.
  std::span<const RunTensor> in_place_inputs;
};

struct ProgramOutput {
  std::string name;  // of the host program's value
  Argument value;
  RunTensor on_device;  // tensors
  bool overwrites_input = false;
};

struct ProgramResult {
  std::vector<ProgramOutput> outputs;  // in the program's order
  int64_t launches = 0;
  std::vector<std::pair<std::string, TensorData>>
      allocated;  // by name: the layout of each tensor that the program or ATen allocated
  std::vector<AtenResult> by_aten;
};

// The program's kernels by the names that its host program launches. The program must outlive them.
std::vector<NamedKernel> named_kernels(const Compiled& compiled);

// Throws the error of the first check, launch or kernel that fails. With `download` false, tensors stay on the device.
ProgramResult run_host_program(const Graph& host, std::span<const NamedKernel> kernels, Device& device,
                               std::span<const Argument> inputs, const HostProgramOptions& options = {},
                               bool download = true);

}  // namespace fusebox
