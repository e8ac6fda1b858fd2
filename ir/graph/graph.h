// `Graph`: one program at one level, as a value. It owns its nodes in vectors and refers to them by typed 32-bit ids,
// so no pointer leads into it, and a copy is independent. The same type holds a fusion, a scheduled fusion, a kernel
// and a host program. The op table gives the levels of each op, and `verify` (verify.h) checks them.
//
// Invariants (checked by verify):
// - Every id is in range or none. A value is defined once: by an op, as a region's index, or as a constant.
// - Names of values are unique in the graph, names of domains in their tensor. Constants have no name.
// - An op stands in exactly one region, after the ops that define its operands. regions[0] is the body.
//
// `==` compares everything that the text form shows: two graphs are equal if their `compact` forms are equal member by
// member. `same_program` (canonical.h) compares canonical forms; names, dead nodes and order of creation do not count.
//
//   Graph g;                                   // fusion @g, level math
//   ValueId n = size(g, "n");                  // %n = size                  (builder.h)
//   ValueId x = input(g, "x", Dtype::kFloat, {n});
//   output(g, unary(g, OpKind::kExp, x, "y")); // %y = exp %x : f32[%n]
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/table/attr.h"
#include "ir/table/dtype.h"
#include "ir/table/enums.h"
#include "ir/table/op.h"

namespace fusebox {

template <class Tag>
struct Id {
  static constexpr uint32_t kNoneIndex = 0xffffffffu;
  uint32_t index = kNoneIndex;

  Id() = default;
  explicit constexpr Id(uint32_t i) : index(i) {}
  explicit constexpr Id(size_t i) : index(static_cast<uint32_t>(i)) {}
  explicit operator bool() const { return index != kNoneIndex; }
  auto operator<=>(const Id&) const = default;
};

using ValueId = Id<struct ValueTag>;
using OpId = Id<struct OpTag>;
using RegionId = Id<struct RegionTag>;
using TensorId = Id<struct TensorTag>;
using DomainId = Id<struct DomainTag>;
using TransformId = Id<struct TransformTag>;

// The bits of a constant. `low` holds an integer or bool, sign- or zero-extended to 64 bits, or the bits of a float in
// its own dtype. A complex number has the bits of its real part in `low` and those of its imaginary part in `high`.
struct ConstantBits {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const ConstantBits&) const = default;
};

struct Value {
  ValueKind kind = ValueKind::kScalar;
  Dtype dtype = Dtype::kIndex;
  std::string name;  // without the %
  OpId def;          // none for a constant or a region's index
  std::optional<ConstantBits> constant;
  RegionId index_of;  // the region whose index this is
  TensorId tensor;    // kind kTensor only
  bool operator==(const Value&) const = default;
};

// The domains, layout and memory of a tensor. An empty list stands for the default that its comment names.
struct Tensor {
  ValueId value;
  std::vector<DomainId> root;     // axes before the transforms of an op such as reshape, pad, slice; default: logical
  std::vector<DomainId> logical;  // a reduction's result keeps its reduced axes here, as IterType::kReduction
  std::vector<DomainId> allocation;       // default: logical without reductions
  std::vector<DomainId> loop;             // default: logical
  std::vector<Contiguity> contiguity;     // one per allocation axis; default: kTrue, and kNone at broadcasts
  std::vector<DomainId> loop_broadcasts;  // broadcasts that only loops have; each stands for another tensor's domain
  std::vector<TransformId> transforms;    // all transforms of this tensor, in order of application
  MemoryType memory = MemoryType::kUnset;
  std::vector<int64_t> devices;  // the device mesh; empty: not distributed
  DomainId inline_at;            // the innermost loop domain shared with every consumer; none: not inlined
  int64_t circular_depth = 0;    // stages of a circular buffer; 0: no circular buffer
  bool operator==(const Tensor&) const = default;
};

// An iteration domain. A domain that a transform defines stores no extent: scalar.h derives it from the transform.
struct IterDomain {
  std::string name;
  TensorId tensor;
  IterType iter_type = IterType::kIteration;
  ParallelType parallel = ParallelType::kSerial;
  ValueId extent;       // broadcast: the constant 1; none if `def` is set, and for a kernel parameter of unknown span
  ValueId expanded;     // broadcast only: the extent that it is expanded to
  TransformId def;      // the transform that makes it, or none
  DomainId stands_for;  // loop broadcast only: the domain of another tensor that it stands for
  ValueId size() const { return expanded ? expanded : extent; }  // as readers of the tensor see it
  bool operator==(const IterDomain&) const = default;
};

struct Transform {
  TransformKind kind = TransformKind::kSplit;
  std::vector<DomainId> inputs;   // split 1, merge 2, swizzle 2, resize 1
  std::vector<DomainId> outputs;  // split 2 (outer, inner), merge 1, swizzle 2, resize 1
  ValueId factor;           // split: the extent of inner, or of outer; resize: the left expansion (may be negative)
  ValueId right;            // resize: the right expansion
  bool inner_split = true;  // the factor is inner's extent; false: outer's
  SwizzleType swizzle = SwizzleType::kXor;
  bool operator==(const Transform&) const = default;
};

struct Op {
  OpKind kind = OpKind::kSet;
  std::vector<ValueId> operands;  // a none id is an absent optional operand
  std::vector<ValueId> results;
  Attrs attrs;
  std::vector<RegionId> regions;
  bool operator==(const Op&) const = default;
};

struct Region {
  ValueId index;  // a scalar of dtype index, or none
  std::vector<OpId> ops;
  bool operator==(const Region&) const = default;
};

struct Graph {
  std::string name;
  Level level = Level::kMath;
  int index_bits = 64;  // kernel level: the width of dtype index in this kernel, 32 or 64
  std::vector<Value> values;
  std::vector<Tensor> tensors;
  std::vector<IterDomain> domains;
  std::vector<Transform> transforms;
  std::vector<Op> ops;
  std::vector<Region> regions = std::vector<Region>(1);

  // Plain access; ids must be in range.
  Value& operator[](ValueId id) { return values[id.index]; }
  const Value& operator[](ValueId id) const { return values[id.index]; }
  Op& operator[](OpId id) { return ops[id.index]; }
  const Op& operator[](OpId id) const { return ops[id.index]; }
  Region& operator[](RegionId id) { return regions[id.index]; }
  const Region& operator[](RegionId id) const { return regions[id.index]; }
  Tensor& operator[](TensorId id) { return tensors[id.index]; }
  const Tensor& operator[](TensorId id) const { return tensors[id.index]; }
  IterDomain& operator[](DomainId id) { return domains[id.index]; }
  const IterDomain& operator[](DomainId id) const { return domains[id.index]; }
  Transform& operator[](TransformId id) { return transforms[id.index]; }
  const Transform& operator[](TransformId id) const { return transforms[id.index]; }

  Tensor& tensor_of(ValueId v) { return tensors[values[v.index].tensor.index]; }
  const Tensor& tensor_of(ValueId v) const { return tensors[values[v.index].tensor.index]; }
  bool is_tensor(ValueId v) const { return values[v.index].kind == ValueKind::kTensor; }
  bool is_constant(ValueId v) const { return values[v.index].constant.has_value(); }
  static constexpr RegionId body() { return RegionId(0u); }
};

// Renumbers everything in text order and drops each node that the regions do not reach. `compact(compact(g))` equals
// `compact(g)`.
Graph compact(const Graph& g);
bool operator==(const Graph& a, const Graph& b);

// -- construction that keeps the invariants. The name `""` asks for a fresh name; a taken name gets a number appended.
std::string fresh_name(const Graph& g, std::string_view wanted);
ValueId add_scalar(Graph& g, Dtype dtype, std::string_view name);
// Adds a tensor value and its Tensor. The tensor has no domains yet.
ValueId add_tensor(Graph& g, Dtype dtype, std::string_view name);
ValueId constant(Graph& g, Dtype dtype, ConstantBits bits);  // equal constants get the same id
ValueId constant_index(Graph& g, int64_t value);
std::optional<int64_t> constant_integer(const Graph& g, ValueId v);  // the value of a bool, integer or index constant
DomainId add_domain(Graph& g, TensorId tensor, IterDomain domain);   // an empty `name` becomes a free i<n>
RegionId add_region(Graph& g);
// Appends an op to a region and sets its results' `def`.
OpId append(Graph& g, RegionId region, Op op);
OpId insert_before(Graph& g, OpId before, Op op);
OpId insert_after(Graph& g, OpId after, Op op);

// -- queries
std::optional<ValueId> find_value(const Graph& g, std::string_view name);
std::optional<DomainId> find_domain(const Graph& g, TensorId tensor, std::string_view name);
std::vector<ValueId> inputs(const Graph& g);  // results of `input` ops of the body, in order
struct OutputRef {
  ValueId value;
  ValueId alias;  // the input that it overwrites, or none
};
std::vector<OutputRef> outputs(const Graph& g);
// For each value, the ops that read it, in text order. An op that reads it twice stands there once.
std::vector<std::vector<OpId>> uses(const Graph& g);
// All ops in text order: the ops of a region follow the op that holds it.
std::vector<OpId> ops_in_order(const Graph& g);
// Whether an op of this kind stands in the body, outside all loops and conditions.
bool has_in_body(const Graph& g, OpKind kind);

// A tensor's lists, with the defaults filled in.
const std::vector<DomainId>& root_of(const Tensor& t);
const std::vector<DomainId>& loop_of(const Tensor& t);
std::vector<DomainId> allocation_of(const Graph& g, const Tensor& t);
std::vector<Contiguity> contiguity_of(const Graph& g, const Tensor& t);
// The logical domain without reductions: the axes that a consumer sees.
std::vector<DomainId> logical_without_reductions(const Graph& g, const Tensor& t);
// The number of dimensions that a user sees: the logical axes without reductions.
inline size_t rank_of(const Graph& g, ValueId v) { return logical_without_reductions(g, g.tensor_of(v)).size(); }

}  // namespace fusebox
