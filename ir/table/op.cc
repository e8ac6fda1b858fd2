#include "ir/table/op.h"

#include <algorithm>

#include "ir/table/format_parse.h"

namespace fusebox {
namespace {

enum FormatIndex : int {
#define FUSEBOX_FORMAT(name, operands, results, regions) kFormat_##name,
#include "ir/table/format_table.inc"
#undef FUSEBOX_FORMAT
};

constexpr FormatRow kFormats[] = {
#define FUSEBOX_FORMAT(name, operands, results, regions) parse_format(#name, operands, results, regions),
#include "ir/table/format_table.inc"
#undef FUSEBOX_FORMAT
};

// A rule for each slot. The last rule of the row also holds for the slots that follow. A slot of scalars has no rule.
constexpr std::array<SlotRule, kMaxSlots> slot_rules(const FormatRow& format, std::initializer_list<SlotRule> given) {
  std::array<SlotRule, kMaxSlots> rules{};
  if (given.size() == 0) return rules;
  for (int i = 0; i < format.slot_count; ++i) {
    const size_t at = std::min(static_cast<size_t>(i), given.size() - 1);
    if (format.slots[i].kind != 's') rules[static_cast<size_t>(i)] = given.begin()[at];
  }
  return rules;
}

constexpr SlotRule index(AxisRule axes) { return {axes, true}; }

// Lets a row name a rule without braces.
struct Rule : SlotRule {
  constexpr Rule(AxisRule rule) : SlotRule{rule} {}
  constexpr Rule(SlotRule rule) : SlotRule(rule) {}
};
template <class... Rules>
constexpr std::array<SlotRule, kMaxSlots> slot_rules_of(const FormatRow& format, Rules... rules) {
  return slot_rules(format, {Rule(rules)...});
}

using enum AttrKey;
using enum AxisRule;
// Each row's keys need storage of their own: a lambda per row holds it.
#define A(...) std::span<const AttrKey>(KeyList<__VA_ARGS__>::list)
#define D(what) static_cast<uint32_t>(what)
#define R(...) __VA_OPT__(, ) __VA_ARGS__
constexpr OpRow kOps[] = {
#define FUSEBOX_OP(name, text, format, levels, attrs, demands, reads) \
  {OpKind::name,                                                      \
   text,                                                              \
   &kFormats[kFormat_##format],                                       \
   levels,                                                            \
   attrs,                                                             \
   demands,                                                           \
   slot_rules_of(kFormats[kFormat_##format] reads)},
#include "ir/table/op_table.inc"
#undef FUSEBOX_OP
};
#undef A
#undef D
#undef R

// -- checks of the rows

constexpr bool is_by_data(AxisRule rule) { return rule == kSelected || rule == kChosen || rule == kChosenWithin; }
// Whether `demands` and `reads` agree. An indexed op has an index slot and a slot that data choose from. A reduction
// has a reduced slot. A math op that computes or moves elements of tensors relates their axes, and no other op does.
constexpr bool is_consistent(const OpRow& row) {
  bool is_indexed = false, has_index = false, is_reduced = false, has_axes = false;
  for (int i = 0; i < row.format->slot_count; ++i) {
    const SlotRule& r = row.reads[static_cast<size_t>(i)];
    is_indexed |= is_by_data(r.axes);
    has_index |= r.is_index;
    is_reduced |= r.axes == kReduced;
    has_axes |= r.axes != kWhole;
  }
  const bool takes_tensors = row.format->slot_count > 0 && row.format->slots[0].kind != 's';
  const bool is_math = row.levels.find('m') != std::string_view::npos;
  const bool relates =
      (row.demands & (kPointwise | kReduction | kMetadata | kIndexed)) != 0 && is_math && takes_tensors;
  return is_indexed == ((row.demands & kIndexed) != 0) && is_indexed == has_index &&
         is_reduced == ((row.demands & kReduction) != 0) && relates == has_axes;
}
#define FUSEBOX_OP(name, text, format, levels, attrs, demands, reads) \
  static_assert(is_consistent(kOps[static_cast<size_t>(OpKind::name)]), text ": `demands` and `reads` do not agree");
#include "ir/table/op_table.inc"
#undef FUSEBOX_OP

constexpr AttrRow kAttrs[] = {
#define FUSEBOX_ATTR(name, text, kind) {AttrKey::name, text, AttrKind::kind},
#include "ir/table/attr_table.inc"
#undef FUSEBOX_ATTR
};

}  // namespace

Read read_of(AxisRule rule) {
  switch (rule) {
    case kWhole:
      return Read::kWhole;
    case kReduced:
      return Read::kAlong;
    case kSame:
    case kExpanded:
    case kResized:
    case kRegrouped:
    case kMasked:
    case kPlaced:
    case kPermuted:
    case kSqueezed:
    case kJoined:
    case kOnAxis:
      return Read::kElement;
    case kSelected:
    case kChosen:
    case kChosenWithin:
      return Read::kData;
  }
  return Read::kWhole;
}

SlotRule rule_of(OpKind kind, size_t operand_count, size_t operand) {
  const OpRow& row = row_of(kind);
  if (row.format->list_count() == 0) return operand < kMaxSlots ? row.reads[operand] : SlotRule{};
  const auto ranges = slot_ranges(*row.format, operand_count);
  for (size_t i = 0; ranges && i < row.format->all().size(); ++i)
    if (operand >= (*ranges)[i].begin && operand < (*ranges)[i].begin + (*ranges)[i].count) return row.reads[i];
  return {};
}

std::optional<size_t> index_operand(OpKind kind) {
  const OpRow& row = row_of(kind);
  for (size_t i = 0; i < row.format->all().size(); ++i)
    if (row.reads[i].is_index) return i;
  return std::nullopt;
}

int FormatRow::list_count() const {
  return static_cast<int>(std::count_if(all().begin(), all().end(), [](const Slot& s) { return s.list; }));
}

bool OpRow::accepts(AttrKey key) const { return std::find(attrs.begin(), attrs.end(), key) != attrs.end(); }

std::span<const OpRow> op_rows() { return kOps; }
std::span<const FormatRow> format_rows() { return kFormats; }
std::span<const AttrRow> attr_rows() { return kAttrs; }

std::span<const std::string_view> enum_texts_of(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
    case AttrKind::kBool:
    case AttrKind::kInts:
    case AttrKind::kDtype:
    case AttrKind::kString:
      return {};
#define FUSEBOX_TYPE(type) \
  case AttrKind::k##type:  \
    return enum_texts<type>();
      FUSEBOX_ENUM_TYPES(FUSEBOX_TYPE)
#undef FUSEBOX_TYPE
  }
  return {};
}

std::optional<OpKind> parse_op(std::string_view text) {
  for (const OpRow& row : kOps)
    if (row.text == text) return row.kind;
  return std::nullopt;
}

std::optional<std::array<SlotRange, kMaxSlots>> slot_ranges(const FormatRow& format, size_t operand_count) {
  const int lists = format.list_count();
  const size_t fixed = static_cast<size_t>(format.slot_count - lists);
  if (operand_count < fixed) return std::nullopt;
  const size_t rest = operand_count - fixed;
  if (lists == 0 ? rest != 0 : rest % static_cast<size_t>(lists) != 0) return std::nullopt;
  std::array<SlotRange, kMaxSlots> ranges{};
  uint32_t next = 0;
  for (int i = 0; i < format.slot_count; ++i) {
    const uint32_t count = format.slots[i].list ? static_cast<uint32_t>(rest / static_cast<size_t>(lists)) : 1;
    ranges[static_cast<size_t>(i)] = {next, count};
    next += count;
  }
  return ranges;
}

}  // namespace fusebox
