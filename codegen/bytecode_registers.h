// Places registers: each register that is not uniform gets bytes of the lane file for as long as it lives. Sharing
// bytes keeps the registers of a loop in the nearest cache. A register lives from its first definition to its last
// use, and to the end of every loop that uses it without defining it.
#pragma once

#include <vector>

#include "codegen/bytecode.h"

namespace fusebox {

struct InstructionRange {
  uint32_t begin, end;  // of a loop: its for and its end
};

// Sets the offsets of all registers and the totals. `loops` are in the order of their ends.
void place_registers(Bytecode& code, const std::vector<InstructionRange>& loops);

}  // namespace fusebox
