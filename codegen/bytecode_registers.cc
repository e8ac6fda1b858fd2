#include "codegen/bytecode_registers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

namespace fusebox {
namespace {

struct Life {
  uint32_t begin = kNoRegister, end = 0;
};

template <class Function>
void each_use(const Bytecode& code, const Instruction& i, Function&& use) {
  for (const uint32_t r : i.args)
    if (r != kNoRegister) use(r);
  for (const ListRange range : {i.values, i.inits})
    for (uint32_t k = 0; k < range.count; ++k) use(code.lists[range.begin + k]);
}

template <class Function>
void each_definition(const Bytecode& code, const Instruction& i, Function&& define) {
  if (i.dst != kNoRegister) define(i.dst);
  for (uint32_t k = 0; k < i.results.count; ++k) define(code.lists[i.results.begin + k]);
}

std::vector<Life> lives_of(const Bytecode& code, const std::vector<InstructionRange>& loops) {
  std::vector<Life> lives(code.registers.size());
  for (uint32_t at = 0; at < code.code.size(); ++at) {
    const auto touch = [&](uint32_t r) {
      lives[r].begin = std::min(lives[r].begin, at);
      lives[r].end = at;
    };
    each_use(code, code.code[at], touch);
    each_definition(code, code.code[at], touch);
  }
  // Inner loops come first: if a life is extended to an inner loop's end, the outer loop then sees that end.
  for (const InstructionRange& loop : loops)
    for (Life& life : lives)
      if (life.begin < loop.begin && life.end > loop.begin) life.end = std::max(life.end, loop.end);
  return lives;
}

}  // namespace

void place_registers(Bytecode& code, const std::vector<InstructionRange>& loops) {
  uint32_t uniform_bytes = 0;
  for (BytecodeRegister& r : code.registers)
    if (r.uniform) {
      r.offset = uniform_bytes;
      uniform_bytes += 16;  // the widest element, so that every one is aligned
    }
  code.uniform_bytes = uniform_bytes;

  const std::vector<Life> lives = lives_of(code, loops);
  std::array<std::vector<uint32_t>, 5> free_by_log;  // offsets of free places of 1, 2, 4, 8, 16 bytes
  std::vector<std::vector<uint32_t>> ending(code.code.size() + 1);
  uint32_t lane_bytes = 0;
  for (uint32_t at = 0; at < code.code.size(); ++at) {
    each_definition(code, code.code[at], [&](uint32_t r) {
      BytecodeRegister& reg = code.registers[r];
      if (reg.uniform || lives[r].begin != at) return;
      const auto bytes = static_cast<uint32_t>(size_bytes(register_dtype(reg.dtype)));
      auto& free = free_by_log[static_cast<size_t>(std::countr_zero(bytes))];
      if (free.empty()) {
        reg.offset = lane_bytes;
        lane_bytes += bytes;
      } else {
        reg.offset = free.back();
        free.pop_back();
      }
      ending[lives[r].end].push_back(r);
    });
    for (const uint32_t r : ending[at]) {
      const auto bytes = static_cast<uint32_t>(size_bytes(register_dtype(code.registers[r].dtype)));
      free_by_log[static_cast<size_t>(std::countr_zero(bytes))].push_back(code.registers[r].offset);
    }
  }
  code.lane_bytes = lane_bytes;
}

}  // namespace fusebox
