// Readable names of kernels in profilers: `softmax_ab12cd` is the beginning of the kernel's name and of its digest.
//
// A name has as many letters as the entry that the CUDA text declares. So giving a binary its name replaces letters in
// place, and the result is the binary that the compiler would have made of a text with that name. Text, digests and
// cached binaries keep the one entry for all kernels.
//
//   NamedBinary named = with_profiler_name(binary.bytes, source.entry, kernel);
//   session->load(named.bytes, named.entry);
#pragma once

#include <string>
#include <string_view>

#include "ir/graph/graph.h"

namespace fusebox {

struct NamedBinary {
  std::string bytes;
  std::string entry;
};

// `letters` long: the beginning of the kernel's name, where a letter that C does not allow is `_`, then `_` and digits of the
// digest, at least six of them.
std::string profiler_name(const Graph& kernel, size_t letters);

// The binary with the kernel's name in the place of `entry`. A binary without that entry, such as one of another text,
// stays as it is.
NamedBinary with_profiler_name(std::string_view binary, const std::string& entry, const Graph& kernel);

}  // namespace fusebox
