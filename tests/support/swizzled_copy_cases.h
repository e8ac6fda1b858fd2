// Copies through swizzled shared memory, in one to five dimensions. The host executor and a GPU must get every bit
// right. The first case is that of corpus/programs/swizzled_copy_1d.fir: a tile has a swizzle's row in the innermost
// axis; its rows come from splits of domains of extent 1 that do not divide, so most threads are on holes.
//
//   for (const SwizzledCopyCase& c : swizzled_copy_cases())
//     for (const InputSpec& x : c.inputs) …   // compile c.module for it; the output is the input
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/module/module.h"

namespace fusebox::test {

struct SwizzledCopyCase {
  std::string name;               // "f16 xor 128 bytes, 1-D, swizzled allocation"
  Module module;                  // one fusion with its steps: %y is a copy of %x
  std::vector<InputSpec> inputs;  // for %x, of several shapes
};

std::vector<SwizzledCopyCase> swizzled_copy_cases();

}  // namespace fusebox::test
