// The rows of tables that occurred in a test's values, by the name of the table.
//
//   SeenRows seen;
//   seen.see("op", OpKind::kAdd);
//   seen.has("op", static_cast<size_t>(OpKind::kAdd))   // true
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/graph/graph.h"

namespace fusebox::testing {

class SeenRows {
 public:
  template <class E>
  void see(const std::string& table, E row) {
    seen_[table].insert(static_cast<size_t>(row));
  }
  bool has(const std::string& table, size_t row) const {
    const auto it = seen_.find(table);
    return it != seen_.end() && it->second.contains(row);
  }

  // The kinds of a graph's values, tensors, domains and transforms.
  void see_structure(const Graph& g) {
    see("Level", g.level);
    for (const Value& v : g.values) see("ValueKind", v.kind);
    for (const Tensor& t : g.tensors) {
      see("MemoryType", t.memory);
      for (Contiguity c : t.contiguity) see("Contiguity", c);
    }
    for (const IterDomain& d : g.domains) {
      see("IterType", d.iter_type);
      see("ParallelType", d.parallel);
    }
    for (const Transform& t : g.transforms) {
      see("TransformKind", t.kind);
      see("SwizzleType", t.swizzle);
    }
  }

 private:
  std::map<std::string, std::set<size_t>> seen_;
};

}  // namespace fusebox::testing
