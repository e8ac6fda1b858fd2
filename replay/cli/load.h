// A file that a command is given: text or a bundle, told apart by its bytes.
#pragma once

#include <optional>
#include <string>

#include "ir/module.h"
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
// Throws kNotABundle for a text.
Bundle load_bundle(const std::string& path);

}  // namespace fusebox::cli
