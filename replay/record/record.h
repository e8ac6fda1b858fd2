// A run as a bundle, and the inputs of a bundle as arguments.
//
//   write_file("y.fuse", encode(make_bundle(run, module, specs, arguments)));
#pragma once

#include <string>
#include <vector>

#include "replay/run/run.h"
#include "serde/bundle.h"

namespace fusebox {

// How an input is kept: its spec where a generator made it, else its bytes.
struct RecordedInput {
  InputSpec spec;
  bool has_generator = false;
};

// The program of a run at a stage, as a bundle keeps it. `given`: the file's module, which is the first stage.
Module stage_module(const Run& run, const Module& given, Stage stage);
// The CUDA text of every kernel that the run has goes in as an artifact.
Bundle make_bundle(const Run& run, const Module& module, const std::vector<RecordedInput>& specs,
                   std::span<const Argument> inputs);
std::vector<RecordedInput> recorded_inputs(const Graph& fusion, const InputSpecs* defaults,
                                           const std::vector<std::string>& given, std::span<const Argument> inputs);
std::vector<OutputRecord> output_records(const Run& run);
std::vector<Argument> bundle_arguments(const Bundle& bundle);
// Inputs as a bundle keeps them when nothing is known of how they were made: exact bytes.
std::vector<RecordedInput> exact_inputs(const Graph& fusion, std::span<const Argument> inputs);

}  // namespace fusebox
