// Makes values whose operands must be made before them, such as a copy of a scalar in another graph. What is open is held in a
// list, as a program may have a chain of any length.
//
//   operands_first(g, v, [&](ValueId x) { return copies.contains(x); }, [&](ValueId x) { copies[x] = copy(x); });
#pragma once

#include <ranges>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

// Calls `make` for the value and for each that it needs and that is not made: operands first, in order. A missing operand and
// a value that no op defines need nothing.
template <class IsMade, class Make>
void operands_first(const Graph& g, ValueId v, IsMade&& is_made, Make&& make) {
  std::vector<ValueId> open{v};
  while (!open.empty()) {
    const ValueId next = open.back();
    const size_t before = open.size();
    if (!is_made(next) && g[next].def)
      for (ValueId operand : std::views::reverse(g[g[next].def].operands))
        if (operand && !is_made(operand)) open.push_back(operand);
    if (open.size() > before) continue;
    open.pop_back();
    if (!is_made(next)) make(next);
  }
}

}  // namespace fusebox
