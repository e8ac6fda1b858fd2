// The parts of the verifier (verify.h). Not for use outside ir/.
//
// Invariants: each part throws the first Error that it finds. `check_ids` takes any graph; the other parts take only a
// graph that passed it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"

namespace fusebox {

struct OpView;

[[noreturn]] inline void invalid(const std::string& message, const std::string& place = {}) {
  throw Error(ErrorCode::kInvalidGraph, message, place);
}
inline std::string place_of(const Graph& g, ValueId v) {
  return v && !g[v].name.empty() ? "%" + g[v].name : std::string();
}
inline std::string place_of(const Graph& g, DomainId d) {
  const TensorId t = g[d].tensor;
  const ValueId v = t ? g[t].value : ValueId();
  return (v ? "%" + g[v].name : std::string()) + "." + g[d].name;
}

// Whether a list attribute of enumerators holds a number that no enumerator has.
bool has_unknown_rows(const Attr& a);

// Checks every id, enumerator and list of every node, reachable or not.
void check_ids(const Graph& g);
// Checks that regions form a tree, that values are defined once and before their uses, and that names are unique.
// Returns the ops that the body reaches, in text order.
std::vector<OpId> check_order(const Graph& g);
// Checks the format, attributes, dtypes, ranks and axes of one op.
void check_op(const Graph& g, OpId op, const Defects& defects);
// Checks that the transforms and extents of an op that moves elements are those that the op states. Its format, ranks and
// axes are right already.
void check_moves(const Graph& g, OpId op, const OpView& view, const Defects& defects);
// Checks a fact (FUSEBOX_FACT_OPS): it belongs to a schedule or its kernel, and holds everywhere in it.
void check_fact(const Graph& g, OpId op);
// Checks that an op by which the blocks of a cluster wait stands in a kernel that has clusters.
void check_in_cluster(const Graph& g, OpId op);
// Checks that the loops of an op's results correspond (siblings in domain_edit.h): steps change them together.
void check_siblings(const Graph& g, OpId op);
// A stage of a reduction, as rfactor makes it, reduces parts of the axes that the op names, and keeps the others.
void check_stage(const Graph& g, ValueId result);
// Checks the domains of tensors.
class TensorChecker {
 public:
  explicit TensorChecker(const Graph& g) : g_(g), marks_(g.domains.size()) {}
  void check(ValueId tensor);

 private:
  void check_domains(const Tensor& t);
  void check_transforms(const Tensor& t);
  void check_scheduled(const Tensor& t);
  void check_list(const Tensor& t, const std::vector<DomainId>& list, const char* what);
  void check_coverage(const Tensor& t, const std::vector<DomainId>& from, const char* what);
  void check_layout(const Tensor& t);

  const Graph& g_;
  std::vector<uint32_t> marks_;  // for each domain: the last round that met it
  uint32_t round_ = 0;
  ValueId value_;
};

}  // namespace fusebox
