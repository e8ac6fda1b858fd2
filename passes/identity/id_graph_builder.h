// Builds id graphs. The classes refuse a union that would bring two unequal domains of one nest together. They are
// closed under "the same transform of domains that are one". This header is internal to passes and to the law test,
// which takes several graphs of one program and leaves out the sentences.
//
//   IdGraphBuilder builder(g);
//   builder.make(IdGraphKind::kExact).same(a, b)
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "passes/identity/id_graphs.h"
#include "passes/nest/nest.h"
#include "passes/nest/symbols.h"
#include "passes/nest/tensor_nest.h"

namespace fusebox {

// Union-find over domains. Each class knows the nests that have a member in it, with the member's value, so a union
// costs as much as the smaller class holds. The representative is the smallest member.
class DomainClasses {
 public:
  // `values` gives, for each domain, the first domain of its tensor that is proved to have the same value. If
  // `guarded`, the classes refuse a union that would put two values of one nest together.
  DomainClasses(const Graph& g, std::vector<DomainId> values, bool guarded);

  DomainId find(DomainId d) const;
  bool may_unite(DomainId a, DomainId b) const;
  // True if two classes became one.
  bool unite(DomainId a, DomainId b);

 private:
  using NestValue = std::pair<TensorId, DomainId>;

  bool guarded_;
  mutable std::vector<DomainId> parent_;
  std::vector<std::vector<NestValue>> nests_;  // by representative, ascending
};

class IdGraphBuilder {
 public:
  // Called with each nest while its forms are valid, and with the first equal domain of each domain of its tensor.
  using NestVisitor = std::function<void(TensorNest&, const std::vector<DomainId>&)>;

  IdGraphBuilder() = default;
  explicit IdGraphBuilder(const Graph& g) { start(g); }
  // Begins with another graph and keeps the memory. The graph must not change while it is in use.
  void start(const Graph& g, NestVisitor visit = {}, const Defects& defects = {});

  IdGraph make(IdGraphKind kind, bool with_reasons = true);

 private:
  struct Key {  // transforms with equal keys are the same
    TransformKind kind;
    bool inner_split;
    SwizzleType swizzle;
    DomainId first, second;
    Form factor, right;
    auto operator<=>(const Key&) const = default;
  };

  // For each domain, the first domain of its tensor that has the same value in its nest.
  const std::vector<DomainId>& values();
  void find_equal(TensorNest& nest);
  void join_axes(DomainClasses& classes, bool concretized);
  void join_trivial(DomainClasses& classes);
  void join_present(DomainClasses& classes, OpId op, size_t operand);
  void join_loops(DomainClasses& classes);
  void join_equal(DomainClasses& classes, std::vector<IdProof>& proofs);
  void close(DomainClasses& classes, std::vector<IdProof>* proofs);
  Key key_of(const DomainClasses& classes, const Transform& t);
  bool is_unit(DomainId d) const;
  void give_reasons(std::vector<IdProof>& proofs);

  const Graph& graph() const { return *g_; }

  const Graph* g_ = nullptr;
  NestVisitor visit_;
  std::optional<ExtentClasses> extents_;
  std::optional<Symbols> symbols_;  // of scalars_
  NestPlan plan_;
  IndexAlgebra algebra_;  // of one nest at a time
  IndexAlgebra scalars_;  // factors of splits and resizes in normal form
  std::vector<DomainId> values_;
};

}  // namespace fusebox
