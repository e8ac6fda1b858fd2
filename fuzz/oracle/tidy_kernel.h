// What lowering promises of a kernel beyond right results: that it computes nothing that is known already, nothing
// twice, forwards what a thread has just stored, and keeps no more than it needs. Judged by looking and by evaluating
// at points; nothing here knows how lowering simplifies.
//
// The laws, each the check of a finding:
//   constants     no scalar op of an address, a bound or a condition has constants alone as operands
//   twice         no two such ops of one region are the same
//   conjunct      no condition stands twice in a conjunction; none of its parts is constant
//   loop          no loop with constant bounds has one iteration
//   constant      no index is the same number at all points, operand: nor one of its operands,
//   known         nor a loop's or a thread's index (for launches of constant extents, without parameters, xor and parts
//                 of a loop, of which less is known)
//   needless      no condition holds at all points, where no domain is resized
//   forward       no local buffer of one element is stored once and then only read
//   buffer-size   a local buffer has no more elements than the loops of its tensor that are neither shared nor
//   threads';
//                 a shared one than those that are no blocks of the grid
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

namespace fusebox::fuzz {

struct Untidy {
  std::string_view check;
  OpId op;
  std::string message;
};

struct TidyOptions {
  std::optional<std::array<int64_t, 6>> launch = {};  // grid x, y, z and block x, y, z, where all are constant
  bool is_resized = false;                            // the schedule or the program resizes a domain
  uint64_t seed = 0;
};

// Of a kernel: the first op that breaks each law.
std::vector<Untidy> find_untidy(const Graph& kernel, const TidyOptions& options);

// `scheduled`: what the kernel was lowered from, in its canonical order; `sizes`: of its values.
std::vector<Untidy> find_large_buffers(const Graph& kernel, const Graph& scheduled, const Bindings& sizes);

}  // namespace fusebox::fuzz
