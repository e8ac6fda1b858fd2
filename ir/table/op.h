// The op table: one record per op (op_table.inc), few operand formats (format_table.inc). Printing, parsing, encoding,
// hashing and generation are generic over these rows; what must be written per op is a `switch` over OpKind without a
// default (families.h).
//
//   row_of(OpKind::kSum).text == "sum";  parse_op("sum") == OpKind::kSum;  row_of(OpKind::kSum).demands & kReduction
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/table/attr.h"

namespace fusebox {

enum class OpKind : uint16_t {
#define FUSEBOX_OP(name, text, format, levels, attrs, demands) name,
#include "ir/table/op_table.inc"
#undef FUSEBOX_OP
};

// How many rows the table has.
inline constexpr size_t kOpKinds = 0
#define FUSEBOX_OP(name, text, format, levels, attrs, demands) +1
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

}  // namespace fusebox
