// A kernel may load early, and by the read-only path, what no thread stores. So the memory of the parameters that it
// only reads must lie apart from the memory that it stores to. The caller's tensors may overlap: two views of one
// tensor, one of them overwritten in place. The other one is copied when the call begins (host_program.cc), unless both are
// windows of a packed tensor. Such a launch runs the kernel that relies on nothing.
//
//   reads_apart(kernel, arguments)   // y = x + z over x, called with z = x: false
#pragma once

#include <cstdint>
#include <span>

#include "replay/device/device.h"

namespace fusebox {

struct ByteRange {
  uint64_t begin = 0, end = 0;
};
inline bool share_bytes(const ByteRange& a, const ByteRange& b) { return a.begin < b.end && b.begin < a.end; }

// Whether elements of two tensors may lie at one place. No: their bytes from the first to the last lie apart, or both are made
// of equally spaced windows that lie apart, as the parts of a packed tensor do.
bool may_meet(const RunTensor& a, const RunTensor& b);
// Whether elements of two tensors surely lie at one place: the first ones, or both tensors fill the bytes that they share.
bool surely_meet(const RunTensor& a, const RunTensor& b);

// Whether no parameter that the kernel only reads shares a byte, holes between its elements included, with one that it
// stores to. `arguments` are those of a launch, in the order of the kernel's inputs.
bool reads_apart(const Graph& kernel, std::span<const RunArgument> arguments);

}  // namespace fusebox
