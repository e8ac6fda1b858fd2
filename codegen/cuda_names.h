// Names of a kernel's values in generated code: a letter for the kind of value, and a number in the order of
// definition.
//
//   CudaNames names(graph);  names.define(value) == "v0";  names[value] == "v0"
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

class CudaNames {
 public:
  explicit CudaNames(const Graph& graph) : graph_(graph), names_(graph.values.size()) {}

  const std::string& operator[](ValueId value) const { return names_[value.index]; }

  const std::string& define(ValueId value, std::string_view prefix) {
    return names_[value.index] = std::string(prefix) + std::to_string(next_[prefix]++);
  }
  const std::string& define(ValueId value) {
    const Dtype dtype = graph_[value].dtype;
    return define(value, dtype == Dtype::kIndex ? "n" : dtype == Dtype::kBool ? "p" : "v");
  }

  // Counts from 0 again.
  void restart() { next_.clear(); }

 private:
  const Graph& graph_;
  std::vector<std::string> names_;
  std::map<std::string_view, int> next_;  // the prefixes are literals
};

}  // namespace fusebox
