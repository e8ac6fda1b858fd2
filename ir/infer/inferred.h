// Which results have the very domains that inference gives: their types are written as a user sees them, because the
// parser, which infers too, gets the same back.
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

  // Whether inferring the op's results again gives what stands there: dtypes, domains, marks, and no new op.
  bool is_inferred(OpId op);

 private:
  bool infer_and_compare(OpId op);

  const Graph& g_;
  std::optional<Graph> copy_;  // where inference may write; made when it is first needed
};

}  // namespace fusebox
