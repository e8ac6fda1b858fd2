// Checks that a kernel is as simple as lowering promises: it computes nothing that is known, computes nothing twice,
// forwards a value that the thread has just stored, and keeps no more than it needs. It inspects the kernel and
// evaluates it at points; it does not know how lowering simplifies.
//
// The laws; each is the check of a finding:
//   constants     no scalar op of an address, a bound or a condition has only constant operands
//   twice         no two such ops of one region are the same
//   conjunct      no conjunction repeats a condition or has a constant part
//   loop          no loop with constant bounds has one iteration
//   constant      no index is the same number at all points,
//   operand       nor equal to one of its operands,
//   known         nor to a loop's or a thread's index (for constant launches, and without parameters, xor and parts of
//                 a loop, about which less is known)
//   needless      no condition is true at all points, unless a domain is resized
//   forward       no local buffer of one element is stored once and then only read
//   buffer-size   a local buffer has no more elements than the tensor's loops that are neither shared nor threads give;
//                 a shared buffer no more than its loops that are not grid blocks give
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
  std::optional<std::array<int64_t, 6>> launch = {};  // grid x, y, z and block x, y, z, if all are constant
  bool is_resized = false;                            // the schedule or the program resizes a domain
  uint64_t seed = 0;
};

// For each law, the first op of the kernel that breaks it.
std::vector<Untidy> find_untidy(const Graph& kernel, const TidyOptions& options);

// `scheduled`: the graph that the kernel was lowered from, in canonical order; `sizes`: those of its values.
std::vector<Untidy> find_large_buffers(const Graph& kernel, const Graph& scheduled, const Bindings& sizes);

}  // namespace fusebox::fuzz
