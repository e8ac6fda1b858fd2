// Questions about iteration domains: how the domains of one tensor follow from each other, and which domains of an op's
// operand and result are the same position. scalar.h has the extents of domains.
//
// Terms: a domain *follows from* itself and from every domain on the way to it along the defining transforms. *Op
// transforms* make a tensor's logical domain from its root (reshape, slice, pad, rfactor); all others are *schedule
// transforms*. Loop domains need not follow from the logical domain: after set_loop_domain they may follow from the
// root alone.
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

// Whether `d` follows from `a`.
bool follows_from(const Graph& g, DomainId d, DomainId a);
// All domains that these follow from, themselves included. Each stands there once, after the domains it follows from.
std::vector<DomainId> ancestors(const Graph& g, std::span<const DomainId> of);
// All domains of the tensor that follow from one of these: first these, then the others in the order of the tensor's
// transforms.
std::vector<DomainId> descendants(const Graph& g, const Tensor& t, std::span<const DomainId> of);
// The domains without definition that `d` follows from, in order of first use.
std::vector<DomainId> leaves(const Graph& g, DomainId d);
// The transforms that lead to `to`, up to `from` at most. Each stands after those that make its inputs.
std::vector<TransformId> transforms_between(const Graph& g, std::span<const DomainId> from,
                                            std::span<const DomainId> to);
// The transforms that make the logical domain from the root, in order. None if the tensor has no root of its own.
std::vector<TransformId> op_transforms(const Graph& g, const Tensor& t);
// Whether transforms make exactly `to` from `from` and use each domain once. Then `to` covers the same elements, and
// perhaps holes.
bool is_complete(const Graph& g, std::span<const DomainId> from, std::span<const DomainId> to);
// Whether both have the same kind and parameters. Inputs are not compared.
bool is_same_transform(const Transform& a, const Transform& b);
// The position of a domain in a list, or the list's length.
size_t position_in(std::span<const DomainId> list, DomainId d);

// -- producer and consumer

class AxisClasses;

struct DomainPair {
  DomainId producer;  // map_producer_to_consumer: a logical domain of the producer, no reduction
  DomainId consumer;  // map_producer_to_consumer: a root domain of the consumer
  bool operator==(const DomainPair&) const = default;
};
// The axes of an op's operand that are the same position in its result: the op reads them at the result's index. Left
// out are axes along which an index chooses (select, gather, …), the joined axis of cat, the other axes of gather and
// scatter if the extents may differ, and the axes of a reshape that is not resolved. Empty if the operand or the result
// is no tensor.
std::vector<DomainPair> map_producer_to_consumer(const Graph& g, OpId op, size_t operand, size_t result = 0);
// Whether the producer's axis is a broadcast and the consumer's is not. Loop promotion deals with such pairs.
inline bool is_concretized(const Graph& g, DomainPair pair) {
  return g[pair.producer].iter_type == IterType::kBroadcast && g[pair.consumer].iter_type != IterType::kBroadcast;
}

struct MatchOptions {
  // Pairs the result of a slice or pad with its operand, although their indices differ by an offset.
  bool through_resize = false;
  // Lets a loop broadcast pair with a domain of the class of the domain that it stands for. Null: no such pairs.
  const AxisClasses* classes = nullptr;
};
// All pairs of domains of operand and result that are the same position: the axes, and domains that equal transforms
// make from paired domains. A loop broadcast pairs with the domain that it stands for, or with a loop broadcast that
// stands for the same domain.
std::vector<DomainPair> match_domains(const Graph& g, OpId op, size_t operand, size_t result,
                                      MatchOptions options = {});
// The same for any two tensors. The caller gives the pairs of axes.
std::vector<DomainPair> match_domains(const Graph& g, TensorId a, TensorId b, std::span<const DomainPair> axes,
                                      MatchOptions options = {});

// Classes of axes that ops read at the same place, closed transitively. A class is a hint if no pair is found, and
// never a proof. With kForwarded, a broadcast is in the class of each axis that concretizes it, and a loop broadcast in
// that of the domain it stands for. kExact leaves both out.
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
