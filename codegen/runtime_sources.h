// The text of the CUDA runtime headers, codegen/runtime/*.cuh, which are compiled into the program so that a kernel's
// whole source is known without a file. The build generates the definition.
//
// Invariants: sorted by name; a name is what a kernel's `#include "NAME"` says, without a folder.
//
//   for (const RuntimeHeader& header : runtime_headers()) include(header.name, header.text);
#pragma once

#include <span>
#include <string_view>

namespace fusebox {

struct RuntimeHeader {
  std::string_view name;
  std::string_view text;
};

std::span<const RuntimeHeader> runtime_headers();

}  // namespace fusebox
