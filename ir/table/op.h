// The op table: one record per op (op_table.inc), few operand formats (format_table.inc). Printing, parsing, encoding,
// hashing and generation are generic over these rows; what must be written per op is a `switch` over OpKind without a
// default (families.h). What depends on how an operand's axes relate to the result's switches over AxisRule instead, so
// that an op with a known rule needs no case there.
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

// How many rows the table has.
inline constexpr size_t kOpKinds = 0
#define FUSEBOX_OP(name, text, format, levels, attrs, demands, reads) +1
#include "ir/table/op_table.inc"
#undef FUSEBOX_OP
    ;

// What planners, lowering and the canonical form must know of an op.
enum Demand : uint32_t {
  kNone = 0,
  kSignature = 1 << 0,  // part of the graph's signature
  kEffect = 1 << 1,     // kept and ordered even when nothing uses a result
  kPointwise = 1 << 2,  // result element i depends on operand elements i alone
  kReduction = 1 << 3,
  kMetadata = 1 << 4,  // moves elements, computes none
  kIndexed = 1 << 5,   // reads at places that data decide: operand must be materialised in global memory
  kControl = 1 << 6,   // holds regions
  kRead = 1 << 7,      // reads memory: may not move across an effect on the same buffer
  kSync = 1 << 8,      // every thread that it counts must reach it
};

// How the axes of an operand relate to the axes of the result's root domain (its logical domain, unless the op moves
// elements within it). ir/domain/axis_relation.h makes a relation for each axis out of the rule and the attributes.
enum class AxisRule : uint8_t {
  kWhole,         // no axis is one of the result's: scalars, shapes, buffers, operands of host ops
  kSame,          // axis i is axis i
  kReduced,       // axis i is axis i, which the op reduces where `axes` names it
  kExpanded,      // axis i is axis i; one element may serve all of it
  kResized,       // axis i is axis i of the root, of which the logical axis is a part or an extension
  kRegrouped,     // axis i is axis i of the root, from which the logical axes are merged and split
  kMasked,        // the axes are, in order, those at which `mask` is 0; the others are new
  kPlaced,        // axis i is axis dims[i]; the others are new; one element may serve all of an axis
  kPermuted,      // axis dims[i] is axis i
  kSqueezed,      // without the axes that `axes` names, the axes are those of the result, in order
  kJoined,        // axis i is axis i; `axis` is a part of the result's, at an offset
  kSelected,      // the result has no axis `axis`, where an index chooses; the other axes keep their order
  kChosen,        // axis i is axis i; at `axis` an index chooses
  kChosenWithin,  // axis i begins as axis i does, and may be longer; at `axis` an index chooses
  kOnAxis,        // its one axis is axis `axis`
};

// What an op reads of an operand to make one element of its result.
enum class Read : uint8_t {
  kElement,  // one element, at a place that the element's own place gives
  kAlong,    // every element along an axis
  kData,     // an element that data choose, or several that the op searches
  kWhole,    // no element by its place
};
Read read_of(AxisRule rule);

struct SlotRule {
  AxisRule axes = AxisRule::kWhole;
  bool is_index = false;  // its values are places on the axis `axis` of another operand or of the result
};

// One operand slot of a format.
struct Slot {
  std::string_view keyword;
  char kind = 'v';        // t s a v
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

// The operands of an op that fall to each slot of its format, in order: a list slot gets its share of what the fixed
// slots leave. Returns nothing when the count fits no such division.
struct SlotRange {
  uint32_t begin = 0, count = 0;
};
std::optional<std::array<SlotRange, kMaxSlots>> slot_ranges(const FormatRow& format, size_t operand_count);

// The rule of the slot that an operand falls to.
SlotRule rule_of(OpKind kind, size_t operand_count, size_t operand);
// The same for an op of a format without lists, where operand i falls to slot i.
inline SlotRule rule_of(OpKind kind, size_t operand) { return row_of(kind).reads[operand]; }
inline Read read_of(OpKind kind, size_t operand) { return read_of(rule_of(kind, operand).axes); }
// The rule of the first operand, which tells the family of an op that moves, reduces or indexes.
inline AxisRule family_of(OpKind kind) { return row_of(kind).reads[0].axes; }
// The operand whose values are places, or nothing.
std::optional<size_t> index_operand(OpKind kind);

}  // namespace fusebox
