// Questions about the iteration domains of one tensor, and which domains of an op's operand and result are the same
// position. Extents of domains are in scalar.h.
//
// Terms. A domain *follows from* those that its defining transforms start at. *Op transforms* make a tensor's logical
// domain from its root (reshape, slice, pad, rfactor); all others are *schedule transforms*. Loop domains need not
// follow from the logical domain: after set_loop_domain they may follow from the root alone.
//
//   // %y = sum %x over [1];  split %y.i1 by 128 -> o, t
//   map_producer_to_consumer(g, sum, 0)            // {%x.i0, %y.i0}, {%x.i1, %y.i1}
//   transforms_between(g, logical, loop_of(y))     // the split
//   follows_from(g, t, i1)                         // true
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

// -- one tensor

// Whether a chain of transforms (or none: a == d) leads from `a` to `d`.
bool follows_from(const Graph& g, DomainId d, DomainId a);
// All that the domains follow from, themselves included, without repetition; each stands after what it follows from.
std::vector<DomainId> ancestors(const Graph& g, std::span<const DomainId> of);
// All domains of the tensor that follow from one of these, themselves included, in the order of the tensor's
// transforms.
std::vector<DomainId> descendants(const Graph& g, const Tensor& t, std::span<const DomainId> of);
// The domains without definition that `d` follows from, in order of first use.
std::vector<DomainId> leaves(const Graph& g, DomainId d);
// The transforms that lead to `to`, going no further up than `from`, each after those that make its inputs.
std::vector<TransformId> transforms_between(const Graph& g, std::span<const DomainId> from,
                                            std::span<const DomainId> to);
// Those that make the logical domain from the root, in order; none where the tensor has no root of its own.
std::vector<TransformId> op_transforms(const Graph& g, const Tensor& t);
// Whether `to` can be reached from `from` by transforms, each domain used once: `to` stands for the same elements (and
// holes).
bool is_complete(const Graph& g, std::span<const DomainId> from, std::span<const DomainId> to);
// Same kind and parameters; the inputs are not compared.
bool is_same_transform(const Transform& a, const Transform& b);
// The position of a domain in a list, or the list's length.
size_t position_in(std::span<const DomainId> list, DomainId d);

// -- producer and consumer

class AxisClasses;

struct DomainPair {
  DomainId producer;  // of the producer's logical domain, never a reduction
  DomainId consumer;  // of the consumer's root domain
  bool operator==(const DomainPair&) const = default;
};
// The axes of an op's operand that are the same position in its result: read at the same index. An axis that data or a
// scalar index (select, gather, the joined axis of cat) is left out, as are the other axes of gather and scatter whose
// extents may differ. Empty where the operand or the result is no tensor.
std::vector<DomainPair> map_producer_to_consumer(const Graph& g, OpId op, size_t operand, size_t result = 0);
// The producer's axis is a broadcast that the consumer reads along a whole axis: what promotion is about.
inline bool is_concretized(const Graph& g, DomainPair pair) {
  return g[pair.producer].iter_type == IterType::kBroadcast && g[pair.consumer].iter_type != IterType::kBroadcast;
}

// All pairs of domains of operand and result that are the same position: the axes, and what equal transforms make of
// them. A loop broadcast pairs with what it stands for: a domain of the other tensor, or one of the same axis class.
struct MatchOptions {
  bool through_resize =
      false;  // a slice's or pad's result pairs with its operand, though their indices differ by an offset
  const AxisClasses* classes = nullptr;
};
std::vector<DomainPair> match_domains(const Graph& g, OpId op, size_t operand, size_t result,
                                      MatchOptions options = {});
// The same for any two tensors, from given pairs of axes.
std::vector<DomainPair> match_domains(const Graph& g, TensorId a, TensorId b, std::span<const DomainPair> axes,
                                      MatchOptions options = {});

// Classes of domains without definition that some op reads at the same place, closed transitively: a hint where a pair
// cannot be found, never a proof. A broadcast is in the class of what concretizes it, unless only exact pairs are asked
// for.
enum class AxisClassKind : uint8_t { kForwarded, kExact };
class AxisClasses {
 public:
  explicit AxisClasses(const Graph& g, AxisClassKind kind = AxisClassKind::kForwarded);
  bool same(DomainId a, DomainId b) const { return find(a.index) == find(b.index); }

 private:
  uint32_t find(uint32_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  std::vector<uint32_t> parent_;
};

}  // namespace fusebox
