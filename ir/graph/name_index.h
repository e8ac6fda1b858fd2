// `NameIndex`: the values of one graph by name, for code that looks up many names. `find_value` looks at all values
// each time; an index looks only at values whose names have the same hash. The graph does not know its indices.
//
// Invariants: the graph outlives the index and keeps its address. Values may be added to the graph, but none is renamed
// or removed. The first few lookups search without a table, so an index that is hardly used costs almost nothing.
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
  size_t searches_ = 0;          // lookups made without a table
  std::vector<uint32_t> first_;  // for each bucket (the low bits of a hash): its last value, or none
  std::vector<uint32_t> next_;   // for each value: the value before it in its bucket, or none
  std::vector<size_t> hashes_;   // for each value: the hash of its name
};

// add_scalar and add_tensor of graph.h. They make the same values; the index tells whether a name is free.
ValueId add_scalar(Graph& g, NameIndex& names, Dtype dtype, std::string_view name);
ValueId add_tensor(Graph& g, NameIndex& names, Dtype dtype, std::string_view name);
// Makes a scalar that was just added a tensor, and returns it.
ValueId with_tensor(Graph& g, ValueId id);

}  // namespace fusebox
