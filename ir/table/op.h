// The op table: one record per op (op_table.inc) and few operand formats (format_table.inc).
//
// Invariants: printing, parsing, encoding, hashing and generation are generic over these rows. Code that differs from
// op to op is a `switch` over OpKind without a default (families.h). Code that depends only on how an operand's axes
// relate to the result's switches over AxisRule: an op with a known rule needs no case there.
//
//   row_of(OpKind::kSum).text == "sum";  parse_op("sum") == OpKind::kSum;  row_of(OpKind::kSum).demands & kReduction
//   rule_of(OpKind::kGather, 0).axes == AxisRule::kChosenWithin;  read_of(OpKind::kGather, 0) == Read::kData
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/table/attr.h"

namespace fusebox {

enum class OpKind : uint16_t {
#define FUSEBOX_OP(name, text, format, levels, attrs, demands, reads) name,
#include "ir/table/op_table.inc"
#undef FUSEBOX_OP
};

// The number of rows.
inline constexpr size_t kOpKinds = 0
#define FUSEBOX_OP(name, text, format, levels, attrs, demands, reads) +1
#include "ir/table/op_table.inc"
#undef FUSEBOX_OP
    ;

// Facts about an op that planners, lowering and the canonical form must know.
enum Demand : uint32_t {
  kNone = 0,
  kSignature = 1 << 0,  // part of the graph's signature, or of what it asks of its launch
  kEffect = 1 << 1,     // kept and ordered even if nothing uses a result
  kPointwise = 1 << 2,  // element i of the result depends only on the operands' elements i
  kReduction = 1 << 3,
  kMetadata = 1 << 4,  // moves elements, computes none
  kIndexed = 1 << 5,   // data decide the places that it reads: the operand must be materialised in global memory
  kControl = 1 << 6,   // holds regions
  kRead = 1 << 7,      // reads memory: may not move across an effect on the same buffer
  kSync = 1 << 8,      // every thread that it counts must reach it
  kLibrary = 1 << 9,   // ATen computes it in a segment of its own; no kernel has it
};

// How the axes of an operand relate to the axes of the result's root domain. (The root is the logical domain, unless
// the op moves elements within it.) ir/domain/axis_relation.h makes a relation for each axis from the rule and the
// attributes. Below, `i → j` says that axis i of the operand is axis j of the result's root.
enum class AxisRule : uint8_t {
  kWhole,         // no axis corresponds: scalars, shapes, buffers, operands of host ops
  kSame,          // i → i
  kReduced,       // i → i; the op reduces the axes in the attribute `over`
  kExpanded,      // i → i; one element may serve all of an axis
  kResized,       // i → i; the logical axis is a part or an extension of the root axis
  kRegrouped,     // i → i; the logical axes are merged and split from the root axes
  kMasked,        // the operand's axes are, in order, the axes where `mask` is 0; the other axes are new
  kPlaced,        // i → dims[i]; the other axes are new; one element may serve all of an axis
  kPermuted,      // dims[i] → i
  kSqueezed,      // the axes in the attribute `over` are dropped; the others are the result's axes, in order
  kJoined,        // i → i; along `axis` the operand is a part of the result, at an offset
  kSelected,      // an index chooses along `axis`, and the result lacks this axis; the other axes keep their order
  kChosen,        // i → i; an index chooses along `axis`
  kChosenWithin,  // i → i; an index chooses along `axis`; along the others the extents may differ
  kOnAxis,        // the operand's only axis → `axis`
};

// The elements of an operand that an op reads to make one element of its result.
enum class Read : uint8_t {
  kElement,  // one element; the place of the result's element gives its place
  kAlong,    // every element along an axis
  kData,     // an element that data choose, or several that the op searches (scatter)
  kWhole,    // the operand as a whole: a scalar, a list of sizes, a buffer
};
Read read_of(AxisRule rule);

struct SlotRule {
  AxisRule axes = AxisRule::kWhole;
  bool is_index = false;  // its values are places along `axis`, in another operand or in the result
};

// One operand slot of a format.
struct Slot {
  std::string_view keyword;
  char kind = 'v';        // t (tensor), s (scalar), a (tensor or scalar), v (any value)
  bool optional = false;  // may be a null id
  bool list = false;
};

inline constexpr int kMaxSlots = 10;
struct FormatRow {
  std::string_view name;
  Slot slots[kMaxSlots];
  int slot_count = 0;
  int results = 0;  // −1: any number
  int regions = 0;  // −1: any number

  std::span<const Slot> all() const { return {slots, static_cast<size_t>(slot_count)}; }
  int list_count() const;
};

struct OpRow {
  OpKind kind;
  std::string_view text;
  const FormatRow* format;
  std::string_view levels;
  std::span<const AttrKey> attrs;
  uint32_t demands;
  std::array<SlotRule, kMaxSlots> reads;  // one for each slot of the format

  bool at(Level level) const {
    const char letter = level == Level::kKernel ? 'k' : level == Level::kHost ? 'h' : 'm';
    return levels.find(letter) != std::string_view::npos;
  }
  bool accepts(AttrKey key) const;
};

std::span<const OpRow> op_rows();
std::span<const FormatRow> format_rows();
inline const OpRow& row_of(OpKind kind) { return op_rows()[static_cast<size_t>(kind)]; }
inline bool demands(OpKind kind, uint32_t what) { return (row_of(kind).demands & what) != 0; }
std::optional<OpKind> parse_op(std::string_view text);

// The operands of each slot of a format, in order. A slot that is no list takes one operand; the lists share the rest
// equally. Returns nothing if the count does not divide so.
struct SlotRange {
  uint32_t begin = 0, count = 0;
};
std::optional<std::array<SlotRange, kMaxSlots>> slot_ranges(const FormatRow& format, size_t operand_count);

// The rule of the operand's slot.
SlotRule rule_of(OpKind kind, size_t operand_count, size_t operand);
// The same for a format without lists: operand i has slot i.
inline SlotRule rule_of(OpKind kind, size_t operand) { return row_of(kind).reads[operand]; }
inline Read read_of(OpKind kind, size_t operand) { return read_of(rule_of(kind, operand).axes); }
// The rule of the first operand. It tells the family of an op that moves, reduces or indexes.
inline AxisRule family_of(OpKind kind) { return row_of(kind).reads[0].axes; }
// The slot of the operand whose values are places, or nothing.
std::optional<size_t> index_operand(OpKind kind);

}  // namespace fusebox
