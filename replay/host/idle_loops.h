// The loops of a kernel that do nothing if loops inside of them are empty: the loop over rows in a sum of
// [2^55, 0] elements.
//
// Invariant: an idle loop touches no memory and waits for nobody, in any of its iterations. All that its instructions
// compute are indices and conditions. Where so many iterations are left that they would take long, the executor goes on
// with the last one: whether an index overflows is checked in the first and the last iteration of such a loop, and in all
// iterations of a shorter one.
//
//   for 0, %m, 1 {          // idle if n < 1
//     for 0, %n, 1 { … }    // its bounds do not depend on the loop outside
//   }
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/bytecode.h"

namespace fusebox::host {

// So many iterations of an idle loop are left out.
inline constexpr uint64_t kManyIdle = uint64_t{1} << 20;

// How far a loop's last index can be beyond one of its indices.
inline uint64_t distance(int64_t index, int64_t stop) {
  return static_cast<uint64_t>(stop) - static_cast<uint64_t>(index) - 1;
}

class IdleLoops {
 public:
  explicit IdleLoops(const Bytecode& code);

  // Whether the loop that ends at an instruction may be idle in some launch.
  bool may_idle(uint32_t end) const { return may_idle_[end] != 0; }

  // Whether that loop is idle now. is_empty(start, stop) tells of two registers, which stay the same in all iterations,
  // whether a loop from one to the other has no iteration.
  template <class IsEmpty>
  bool is_idle(uint32_t end, IsEmpty&& is_empty) const {
    return is_idle(loops_[of_end_[end]], loops_[of_end_[end]], is_empty);
  }

 private:
  struct Loop {
    uint32_t begin = 0, end = 0;                       // its first and its last instruction
    uint32_t start = kNoRegister, stop = kNoRegister;  // bounds
    bool acts = false;                                 // an instruction of its own does more than to compute scalars
    std::vector<uint32_t> inner = {};  // the loops directly inside that act, or have one inside that does
  };

  void find_writes(const Bytecode& code);
  void find_loops(const Bytecode& code);
  // Whether the loop's bounds are computed before the outer one.
  bool is_fixed(const Loop& loop, const Loop& outer) const {
    return last_write_[loop.start] < outer.begin && last_write_[loop.stop] < outer.begin;
  }
  template <class IsEmpty>
  bool is_idle(const Loop& outer, const Loop& loop, IsEmpty& is_empty) const {
    if (loop.acts) return false;
    for (uint32_t k : loop.inner) {
      const Loop& inner = loops_[k];
      if (is_fixed(inner, outer) && is_empty(inner.start, inner.stop)) continue;
      if (!is_idle(outer, inner, is_empty)) return false;
    }
    return true;
  }

  std::vector<Loop> loops_;
  std::vector<uint32_t> of_end_;     // by instruction
  std::vector<uint8_t> may_idle_;    // by instruction
  std::vector<int64_t> last_write_;  // by register, the last instruction that writes it; -1: none does
};

}  // namespace fusebox::host
