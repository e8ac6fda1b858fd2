// Random modules: structurally valid (serde/structure.h), arbitrary in meaning, generic over the tables: every op,
// step, dtype, attribute and enumeration row turns up within a few hundred seeds. For laws that hold for any module,
// such as round trips.
//
//   Module m = random_module(7);        // the same module for the same seed, on every machine
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/module/module.h"

namespace fusebox::testing {

// SplitMix64: small, seeded by any number.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 … count−1; count > 0.
  size_t below(size_t count) { return static_cast<size_t>(next() % count); }
  bool one_in(size_t count) { return below(count) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  template <class E>
    requires kIsProgramEnum<E>
  E pick() {
    return static_cast<E>(below(enum_texts<E>().size()));
  }

 private:
  uint64_t state_;
};

struct RandomModuleOptions {
  size_t graphs = 2;       // at most
  size_t ops = 12;         // of a graph, at most
  bool odd_names = true;   // names with spaces, quotes, UTF-8, unused bytes
  bool any_attrs = true;   // attributes that the row does not take
  bool dead_nodes = true;  // nodes that nothing refers to
};

Module random_module(uint64_t seed, const RandomModuleOptions& options = {});
Graph random_graph(Random& random, std::string name, const RandomModuleOptions& options = {});
Step random_step(Random& random, const RandomModuleOptions& options = {});
StepList random_step_list(Random& random, const RandomModuleOptions& options = {});
InputSpec random_input_spec(Random& random);
Attr random_attr(Random& random, AttrKey key);
std::string random_name(Random& random, const RandomModuleOptions& options = {});

// Equal in every node, id and order, dead ones too. `==` compares compact forms.
bool identical(const Graph& a, const Graph& b);
bool identical(const Module& a, const Module& b);

}  // namespace fusebox::testing
