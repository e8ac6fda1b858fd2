// `InferredTypes` finds the ops whose results are exactly as inference makes them. The printer writes the types of
// these results in the short form that a user sees, because the parser infers the same results again.
//
//   InferredTypes types(g);  for (OpId op : ops_in_order(g)) short_form = types.is_inferred(op);
#pragma once

#include <optional>

#include "ir/graph/graph.h"

namespace fusebox {

class InferredTypes {
 public:
  // The graph must outlive this.
  explicit InferredTypes(const Graph& g) : g_(g) {}

  // Whether inferring the op's results again gives the same dtypes, domains and marks, and adds no op.
  bool is_inferred(OpId op);

 private:
  bool infer_and_compare(OpId op);

  const Graph& g_;
  std::optional<Graph> copy_;  // inference writes to this copy; it is made at the first use
};

}  // namespace fusebox
