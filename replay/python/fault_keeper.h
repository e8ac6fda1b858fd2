// Keeps the inputs of a call on a GPU, so that a fault of the GPU leaves a bundle: after the fault nothing can be read from
// its memory. Only with FUSEBOX_DEBUG (debug.h), as it copies every input.
//
//   const FaultKeeper keeper(arguments, gpu);
//   try { … } catch (const Error& e) {
//     if (keeper.keeps(e)) throw keeper.kept(e, run, module);
#pragma once

#include <span>
#include <vector>

#include "replay/device/device.h"
#include "replay/run/run.h"

namespace fusebox::python {

class FaultKeeper {
 public:
  // Copies the inputs if FUSEBOX_DEBUG is set and there is a device. The arguments' storage is the device's memory.
  FaultKeeper(std::span<const Argument> arguments, Device* gpu);

  // Whether the error is a fault of the GPU that can be kept.
  bool keeps(const Error& e) const { return is_on_ && e.code == ErrorCode::kDeviceFailure; }
  // Writes a bundle of the failed run to the folder for temporary files. The error with its path, or with the reason why
  // there is none. `run` holds what was compiled.
  Error kept(const Error& e, Run run, const Module& module) const;

 private:
  bool is_on_ = false;
  std::vector<Argument> before_;
};

}  // namespace fusebox::python
