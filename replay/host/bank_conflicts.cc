#include "replay/host/bank_conflicts.h"

#include <algorithm>

namespace fusebox {
namespace {

constexpr size_t kWarp = 32;
constexpr int64_t kBanks = 32, kBankBytes = 4;

// The number of words of the busiest bank; 0 if all threads are inactive.
int64_t ways_of(std::span<const int64_t> addresses, int64_t bytes) {
  int64_t words[kWarp];
  size_t count = 0;
  const int64_t words_each = std::max<int64_t>(bytes / kBankBytes, 1);
  for (const int64_t address : addresses)
    if (address >= 0)
      for (int64_t k = 0; k < words_each; ++k) words[count++] = address / kBankBytes + k;
  std::sort(words, words + count);
  const auto* end = std::unique(words, words + count);
  int64_t of_bank[kBanks] = {}, most = 0;
  for (const int64_t* w = words; w != end; ++w) most = std::max(most, ++of_bank[*w % kBanks]);
  return most;
}

}  // namespace

BankTotals bank_conflicts(std::span<const int64_t> addresses, int64_t bytes) {
  BankTotals totals;
  const size_t together = bytes <= kBankBytes ? kWarp : kWarp * kBankBytes / static_cast<size_t>(bytes);
  for (size_t warp = 0; warp < addresses.size(); warp += kWarp) {
    const auto threads = addresses.subspan(warp, std::min(kWarp, addresses.size() - warp));
    bool is_made = false;
    for (size_t t = 0; t < threads.size(); t += together) {
      const int64_t ways = ways_of(threads.subspan(t, std::min(together, threads.size() - t)), bytes);
      is_made |= ways > 0;
      totals.wavefronts += ways;
      totals.ideal += ways > 0;
      totals.ways = std::max(totals.ways, ways);
    }
    totals.accesses += is_made;
  }
  return totals;
}

BankCounter::BankCounter(const Bytecode& code) : kernel_(code.name) {
  for (size_t i = 0; i < code.code.size(); ++i) {
    const Instruction& instruction = code.code[i];
    const auto add_place = [&](uint32_t buffer, bool is_store) {
      if (buffer == kNoBuffer || code.buffers[buffer].memory != MemoryType::kShared) return;
      const BytecodeOrigin& origin = code.origins[instruction.origin];
      places_.push_back({{origin.op, origin.line, code.buffers[buffer].name, is_store, {}}, i});
    };
    if (instruction.opcode == Opcode::kLoad) add_place(instruction.buffer, false);
    if (instruction.opcode == Opcode::kStore) add_place(instruction.buffer, true);
    if (instruction.opcode != Opcode::kCopy) continue;
    add_place(instruction.buffer, true);
    add_place(instruction.from, false);
  }
}

void BankCounter::add(size_t instruction, bool is_store, std::span<const int64_t> addresses, int64_t bytes) {
  const auto it = std::find_if(places_.begin(), places_.end(), [&](const Place& p) {
    return p.instruction == instruction && p.access.is_store == is_store;
  });
  if (it == places_.end()) return;
  const BankTotals more = bank_conflicts(addresses, bytes);
  BankTotals& all = it->access.totals;
  all.accesses += more.accesses;
  all.wavefronts += more.wavefronts;
  all.ideal += more.ideal;
  all.ways = std::max(all.ways, more.ways);
}

std::vector<BankAccess> BankCounter::accesses() const {
  std::vector<BankAccess> all;
  for (const Place& p : places_) all.push_back(p.access);
  return all;
}

}  // namespace fusebox
