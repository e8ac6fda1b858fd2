// ATen segments in a run: how they are called on a device, and how their layouts are asked for before any data.
//
//   HostProgramOptions host;
//   host.run_aten = run_aten_segments(compiled);       // for run_host_program
//   CompileOptions options;
//   options.infer = infer_by_aten();                   // for compile
#pragma once

#include <map>
#include <string>
#include <vector>

#include "passes/pipeline/pipeline.h"
#include "replay/device/aten_api.h"
#include "replay/run/host_program.h"
#include "serde/bundle.h"

namespace fusebox {

// A segment for AtenApi: its sizes are inputs, because the tensors that cross need not show them all.
Graph aten_form(const Graph& segment);
// The segments of a program that ATen runs, by name. The ops of one may be one call (ir/infer/product_call.h).
std::map<std::string, AtenForm> aten_forms(const Compiled& compiled);

// The names of the values that ATen segments compute.
std::vector<std::string> computed_by_aten(const Compiled& compiled);

// Runs the ATen segments of a program on the device of its tensors. On a GPU that PyTorch cannot use they run on the CPU,
// with copies. A tensor is copied where it must have other strides than ATen chose. The program must outlive the function.
std::function<std::vector<RunTensor>(const AtenCall&)> run_aten_segments(const Compiled& compiled);

// Asks ATen's meta device. Loads the module when a segment is there: throws kModuleMissing without it.
InferLayouts infer_by_aten();
// The layouts that a run recorded: a replay makes the same kernels, whatever ATen would choose there. Throws kNoLayout for
// a segment whose outputs the record has not.
InferLayouts infer_by_record(const std::vector<CrossingLayout>& crossings);

}  // namespace fusebox
