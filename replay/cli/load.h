// A file that a command is given: text or a bundle, told apart by its bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/infer/bind.h"
#include "ir/module/module.h"
#include "ir/scalar/scalar.h"
#include "serde/bundle.h"

namespace fusebox::cli {

struct LoadedFile {
  std::string path;
  Module module;  // of a bundle: the fusion as it was given
  std::optional<Bundle> bundle;
};

// Verified. Throws what parsing, decoding and verifying throw; a place in a text gets the file's path before it.
LoadedFile load_file(const std::string& path);
// The file as a bundle, with the program alone where it is a text.
Bundle subject_of(const LoadedFile& file);
// Steps of a file: a list of them, or a whole program, whose steps for this fusion are taken.
std::vector<Step> read_steps(const std::string& path, const Graph& fusion);
// The sizes and scalars of the module's default inputs: the host's, else the GPU's. Throws kMissingInput.
std::vector<BoundInput> default_sizes(const Module& module);
// Throws kNotABundle for a text.
Bundle load_bundle(const std::string& path);

}  // namespace fusebox::cli
