// The order of the statements and loops that stand in one loop, or in none.
//
// Without exchanges between threads, the order is that of the ops. Threads wait for each other in an exchange, so what
// they can do before it should stand before it. The children are sorted into *phases*. An exchange is in phase k if k
// exchanges, one behind the other, come before it in every order. Each other child is in the earliest phase of what
// depends on it, and a child on which nothing depends in the first possible phase. A phase runs like this:
//
//   1. loads of inputs, so that all of them are under way together;
//   2. the rest, in the order of ops;
//   3. the exchanges, next to each other.
//
// A phase without an exchange has no first step: its loads stand before their readers, where they take the fewest
// registers. The body of a loop that runs before an exchange begins with its loads too.
//
//   // load x, h = x - 1, load d, e = d * h, s = exchange e, t = exchange d, y = (s + t) * load w
//   // becomes   load x, load d, h, e, s, t, load w, y
#pragma once

#include <cstddef>
#include <vector>

namespace fusebox {

enum class ChildKind { kLoad, kOther, kExchange };

struct ChildGraph {
  std::vector<ChildKind> kinds;                 // by child, in the order of ops
  std::vector<std::vector<size_t>> successors;  // by child: the children that must come later
};

struct ChildOrder {
  std::vector<size_t> order;             // all children, or those that come before a cycle if there is one
  std::vector<bool> is_before_exchange;  // by child: whether its phase ends with an exchange
};

// `is_before_exchange` says so of the loop in which the children stand.
ChildOrder order_children(const ChildGraph& children, bool is_before_exchange);

}  // namespace fusebox
