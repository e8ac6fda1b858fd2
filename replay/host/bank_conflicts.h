// Bank conflicts of shared memory, which the host executor counts on request.
//
// Shared memory has 32 banks of 4 bytes: word w is in bank w mod 32. A warp is 32 consecutive threads of a block. Its
// access takes one wavefront if no two of its words share a bank. Otherwise it takes as many wavefronts as the busiest
// bank has words, and that is the number of ways in conflict. Threads that touch one word, or parts of it, count once.
// An access of 8 bytes is served by half warps, one of 16 bytes by quarter warps, each separately. Inactive threads
// take no part.
//
//   a column of float[32][32], one row a thread: all in one bank, 32 ways, 32 wavefronts instead of 1
//   a column of float[32][33]: no conflict
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/bytecode.h"

namespace fusebox {

struct BankTotals {
  int64_t accesses = 0;    // of warps
  int64_t wavefronts = 0;  // needed by all accesses
  int64_t ideal = 0;       // needed without conflicts
  int64_t ways = 0;        // of the worst one; 1: no conflict
  bool operator==(const BankTotals&) const = default;
};

// One access of a block: thread t touches `bytes` (1, 2, 4, 8 or 16) at the aligned byte addresses[t] of shared memory.
// A negative address means that the thread touches nothing.
BankTotals bank_conflicts(std::span<const int64_t> addresses, int64_t bytes);

// The accesses of one op of a kernel to one shared buffer.
struct BankAccess {
  OpId op;
  uint32_t line = 0;  // of the op in the kernel's text; the first line is 1
  std::string buffer;
  bool is_store = false;
  BankTotals totals;  // all 0 if no thread came there
};

// Adds up the accesses of a kernel over its launches. run_kernel takes it, and then runs on one thread.
class BankCounter {
 public:
  explicit BankCounter(const Bytecode& code);

  const std::string& kernel() const { return kernel_; }
  void add(size_t instruction, bool is_store, std::span<const int64_t> addresses, int64_t bytes);
  // Every load, store and copy of shared memory, in the order of the text.
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
