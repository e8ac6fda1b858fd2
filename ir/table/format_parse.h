// Reads table rows at compile time. An operand format such as "t, from s*, to s*" becomes slots; attribute keys become
// a list that outlives the row. Only the files that hold tables include this header.
#pragma once

#include <array>
#include <string_view>

#include "ir/table/op.h"

namespace fusebox {

constexpr FormatRow parse_format(std::string_view name, std::string_view spec, int results, int regions) {
  FormatRow row;
  row.name = name;
  row.results = results;
  row.regions = regions;
  while (!spec.empty()) {
    const size_t comma = spec.find(',');
    std::string_view slot_text = spec.substr(0, comma);
    spec = comma == std::string_view::npos ? std::string_view() : spec.substr(comma + 1);
    while (slot_text.front() == ' ') slot_text.remove_prefix(1);
    Slot slot;
    if (const size_t space = slot_text.find(' '); space != std::string_view::npos) {
      slot.keyword = slot_text.substr(0, space);
      slot_text = slot_text.substr(space + 1);
    }
    slot.kind = slot_text[0];
    slot.optional = slot_text.size() > 1 && slot_text[1] == '?';
    slot.list = slot_text.size() > 1 && slot_text[1] == '*';
    row.slots[row.slot_count++] = slot;
  }
  return row;
}

template <AttrKey... keys>
struct KeyList {
  static constexpr std::array<AttrKey, sizeof...(keys)> list = {keys...};
};

}  // namespace fusebox
