// Random modules: structurally valid (serde/structure.h) but without meaning. They follow the tables, so every op,
// step, dtype, attribute and enumeration row occurs within a few hundred seeds. For laws about any module, such as
// round trips.
//
//   Module m = random_module(7);        // the same module for the same seed, on every machine
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/module/module.h"

namespace fusebox::testing {

// SplitMix64: small, accepts any seed.
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
  size_t ops = 12;         // per graph, at most
  bool odd_names = true;   // names with spaces, quotes, UTF-8, unused bytes
  bool any_attrs = true;   // attributes outside the row
  bool dead_nodes = true;  // nodes that nothing refers to
};

Module random_module(uint64_t seed, const RandomModuleOptions& options = {});
Graph random_graph(Random& random, std::string name, const RandomModuleOptions& options = {});
Step random_step(Random& random, const RandomModuleOptions& options = {});
StepList random_step_list(Random& random, const RandomModuleOptions& options = {});
InputSpec random_input_spec(Random& random);
Attr random_attr(Random& random, AttrKey key);
std::string random_name(Random& random, const RandomModuleOptions& options = {});

// Equal in every node, id and order, including dead ones. `==` compares compact forms instead.
bool identical(const Graph& a, const Graph& b);
bool identical(const Module& a, const Module& b);

}  // namespace fusebox::testing
