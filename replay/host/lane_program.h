// The functions that a kernel's instructions call. They are looked up once for a launch, not for each block.
//
// Invariant: each instruction that computes or moves elements has its function. An instruction of a dtype without
// arithmetic on the host is refused here (kUnsupportedDtype), before any block runs.
#pragma once

#include <vector>

#include "codegen/bytecode.h"
#include "replay/host/idle_loops.h"
#include "replay/host/lanes.h"

namespace fusebox::host {

struct LaneProgram {
  explicit LaneProgram(const Bytecode& code);

  const Bytecode& code;
  struct Functions {
    LaneFunction lane = nullptr;   // math, convert; a reduction's combination
    LaneFunction round = nullptr;  // a reduction's, after each combination
    WelfordFunction welford = nullptr;
    const MemoryFunctions* memory = nullptr;
  };
  std::vector<Functions> functions;  // by instruction
  IdleLoops idle;
};

}  // namespace fusebox::host
