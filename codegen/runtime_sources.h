// The text of the CUDA runtime headers, codegen/runtime/*.cuh. The build compiles it into the program, so that a
// kernel's whole source is known without a file.
//
// Invariants: sorted by name; a name stands in a kernel's `#include "NAME"`, without a folder.
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
