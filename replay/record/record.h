// Makes a bundle of a run, and arguments of a bundle's inputs.
//
//   write_file("y.fuse", encode(make_bundle(run, module, specs, arguments)));
#pragma once

#include <string>
#include <vector>

#include "replay/run/run.h"
#include "serde/bundle.h"

namespace fusebox {

// A kept input: its spec if a generator made it, else its bytes.
struct RecordedInput {
  InputSpec spec;
  bool has_generator = false;
};

// The program of a run at a stage, as a bundle keeps it. `given` is the file's module, the first stage.
Module stage_module(const Run& run, const Module& given, Stage stage);
// Keeps the CUDA text of every kernel of the run as an artifact.
Bundle make_bundle(const Run& run, const Module& module, const std::vector<RecordedInput>& specs,
                   std::span<const Argument> inputs);
std::vector<RecordedInput> recorded_inputs(const Graph& fusion, const InputSpecs* defaults,
                                           const std::vector<std::string>& given, std::span<const Argument> inputs);
std::vector<OutputRecord> output_records(const Run& run);
// What the recorded run was told of its plan: the schedule, `unfused`, and the GPU and the layouts that it was to plan
// for. Throws kInvalidField for a GPU that is none.
void take_recorded_plan(const Bundle& bundle, RunOptions& options);
// Gives the bundle's fusion, the module's main graph, the schedule of the recorded run in place of its own.
void take_recorded_schedule(const Bundle& bundle, Module& module);
// For a text, which has no word for the unfused plan: if the recorded run took that plan, adds steps that assign each of
// its segments. Call after take_recorded_schedule.
void assign_recorded_segments(const Bundle& bundle, Module& module);
// The steps that give the plan of a successful run again, the unfused plan too.
std::vector<Step> repeating_steps(const Run& run);
std::vector<Argument> bundle_arguments(const Bundle& bundle);
// Inputs of unknown origin, kept as exact bytes.
std::vector<RecordedInput> exact_inputs(const Graph& fusion, std::span<const Argument> inputs);

// Writes a bundle that shows a fault to the folder for temporary files, under a name of its bytes, and returns the path.
// Throws kFileWrite.
std::string write_to_temporary(const Bundle& bundle);

}  // namespace fusebox
