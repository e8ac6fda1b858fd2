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

using enum AttrKey;
// Each row's keys need storage of their own: a lambda per row holds it.
#define A(...) std::span<const AttrKey>(KeyList<__VA_ARGS__>::list)
#define D(what) static_cast<uint32_t>(what)
constexpr OpRow kOps[] = {
#define FUSEBOX_OP(name, text, format, levels, attrs, demands) \
  {OpKind::name, text, &kFormats[kFormat_##format], levels, attrs, demands},
#include "ir/table/op_table.inc"
#undef FUSEBOX_OP
};
#undef A
#undef D

constexpr AttrRow kAttrs[] = {
#define FUSEBOX_ATTR(name, text, kind) {AttrKey::name, text, AttrKind::kind},
#include "ir/table/attr_table.inc"
#undef FUSEBOX_ATTR
};

}  // namespace

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
