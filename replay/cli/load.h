// Loads a file that a command names: text or a bundle. Its bytes tell which.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/infer/bind.h"
#include "ir/module/module.h"
#include "ir/scalar/scalar.h"
#include "replay/cli/commands.h"
#include "replay/run/run.h"
#include "serde/bundle.h"

namespace fusebox::cli {

struct LoadedFile {
  std::string path;
  Module module;  // of a bundle: the fusion as given
  std::optional<Bundle> bundle;
  // The comment at the head of a text, with the blank lines in it. Its lines end in `\n`, whatever they end in there.
  std::string head_comment;
};

// Loads and verifies. Throws errors of parsing, decoding and verifying. A place in a text begins with the file's path.
LoadedFile load_file(const std::string& path);
// The same of bytes that were read from the file.
LoadedFile load_bytes(const std::string& path, std::span<const std::byte> content);
// The file as a bundle; a text gives a bundle with the program alone.
Bundle subject_of(const LoadedFile& file);
// The steps in a file: a list of them, or the steps for this fusion in a whole program.
std::vector<Step> read_steps(const std::string& path, const Graph& fusion);
// Puts this step at the head of the main graph's steps.
void set_default_precision(Module& module, const std::string& word);
// Removes the main graph's steps if the arguments name a plan.
void choose_plan(Module& module, const PlanArguments& arguments);
// The GPU that the automatic plan is for: the named one, else the one that runs it, else the default. None for the
// unfused plan.
std::optional<DeviceProperties> planned_device(const PlanArguments& arguments, Executor executor);
// Gives a bundle the plan of its record, unless the arguments name another, and says whether it did. ATen, if it ran the
// program, had no plan.
bool take_recorded_plan(const LoadedFile& file, const PlanArguments& arguments, RunOptions& options);
// The sizes and scalars of the module's default inputs: those for `where` ("host" or "gpu"), else the others. Throws
// kMissingInput.
std::vector<BoundInput> default_sizes(const Module& module, const std::string& where = "host");
// Throws kNotABundle for a text.
Bundle load_bundle(const std::string& path);

}  // namespace fusebox::cli
