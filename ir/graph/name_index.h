// `NameIndex`: the values of one graph by name, for whoever looks up many. `find_value` looks through all values each
// time; an index looks at those whose names have one hash. It stands beside the graph, which knows nothing of it.
//
// Invariants: the graph outlives the index and keeps its address; values may be added to it, none is renamed or taken
// out. The first few lookups search without a table, so that an index that is hardly asked costs nothing.
//
//   NameIndex names(g);
//   names.find("y") == find_value(g, "y")
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

class NameIndex {
 public:
  explicit NameIndex(const Graph& g) : g_(g) {}

  // The first value of this name, or nothing.
  std::optional<ValueId> find(std::string_view name);

 private:
  void add_new_values();

  const Graph& g_;
  size_t searches_ = 0;          // without a table
  std::vector<uint32_t> first_;  // by the hash's low bits: a value, or none
  std::vector<uint32_t> next_;   // by value: another one of the same bits
  std::vector<size_t> hashes_;   // by value
};

// add_scalar and add_tensor of graph.h, with an index of the graph: the same values, found free by the index.
ValueId add_scalar(Graph& g, NameIndex& names, Dtype dtype, std::string_view name);
ValueId add_tensor(Graph& g, NameIndex& names, Dtype dtype, std::string_view name);

}  // namespace fusebox
