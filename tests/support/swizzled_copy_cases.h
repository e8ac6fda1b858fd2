// Copies through swizzled shared memory, in one to five dimensions: what the host executor and a GPU must both get
// right bit for bit. The first is the case of corpus/programs/swizzled_copy_1d.fir: tiles of a swizzle's row in the
// innermost axis, rows made by splits of domains of extent 1 that do not divide, so that most threads stand on holes.
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
