// Bank conflicts of shared memory, as the host executor counts them when it is asked to.
//
// Shared memory has 32 banks of 4 bytes: word w is in bank w mod 32. A warp (32 consecutive threads of a block) makes
// an access in one wavefront if no two of its words share a bank; threads that touch one word, or parts of it, count
// once. Else it takes as many wavefronts as the busiest bank has words: the access is so many ways in conflict. Threads
// that touch 8 bytes go by half warps, 16 bytes by quarter warps, each for itself. Threads that are off take no part.
//
//   a column of float[32][32], one row a thread: all in one bank, 32 ways, 32 wavefronts where 1 would do
//   of float[32][33]: no conflict
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/bytecode.h"

namespace fusebox {

struct BankTotals {
  int64_t accesses = 0;    // of warps
  int64_t wavefronts = 0;  // what they took
  int64_t ideal = 0;       // what they would take without conflicts
  int64_t ways = 0;        // of the worst one; 1: no conflict
  bool operator==(const BankTotals&) const = default;
};

// One access of a block: thread t touches `bytes` (1, 2, 4, 8 or 16) at the aligned byte addresses[t] of shared memory,
// or nothing where that is negative.
BankTotals bank_conflicts(std::span<const int64_t> addresses, int64_t bytes);

// What one op of a kernel does to one shared buffer.
struct BankAccess {
  OpId op;
  uint32_t line = 0;  // of the op in the kernel's text, whose first line is 1
  std::string buffer;
  bool is_store = false;
  BankTotals totals;  // all 0 where no thread came there
};

// Totals of a kernel over its launches. To be given to run_kernel, which then runs on one thread.
class BankCounter {
 public:
  explicit BankCounter(const Bytecode& code);

  const std::string& kernel() const { return kernel_; }
  void add(size_t instruction, bool is_store, std::span<const int64_t> addresses, int64_t bytes);
  // Every load, store and copy that has to do with shared memory, in the order of the text.
  std::vector<BankAccess> accesses() const;

 private:
  struct Place {
    BankAccess access;
    size_t instruction;
  };
  std::string kernel_;
  std::vector<Place> places_;
};

}  // namespace fusebox
