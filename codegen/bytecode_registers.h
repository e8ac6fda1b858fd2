// Where registers stand: each register that is not uniform gets bytes of the lane file for as long as it lives, so that
// the registers of a loop stay in the nearest cache. Live from its first definition to its last use, and to the end of
// every loop that it is used in but not defined in.
#pragma once

#include <vector>

#include "codegen/bytecode.h"

namespace fusebox {

struct InstructionRange {
  uint32_t begin, end;  // of a loop: its for and its end
};

// Sets the offsets of all registers and the totals. `loops` in the order of their ends.
void place_registers(Bytecode& code, const std::vector<InstructionRange>& loops);

}  // namespace fusebox
