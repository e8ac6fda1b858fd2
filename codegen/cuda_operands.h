// The operands of one op of a kernel, by their slots.
//
//   Operands(op).one("if")  // the predicate of a load, or a null id
#pragma once

#include <span>
#include <string_view>

#include "ir/graph/graph.h"
#include "ir/table/error.h"

namespace fusebox {

// The operands of one op by the keyword (or the place) of their slot.
class Operands {
 public:
  explicit Operands(const Op& op) : op_(op), format_(*row_of(op.kind).format) {
    const auto ranges = slot_ranges(format_, op.operands.size());
    if (!ranges)
      throw Error(ErrorCode::kOperandCount,
                  "the op " + std::string(row_of(op.kind).text) + " has the wrong number of operands");
    ranges_ = *ranges;
  }
  std::span<const ValueId> of(std::string_view keyword) const {
    for (size_t i = 0; i < format_.all().size(); ++i)
      if (format_.slots[i].keyword == keyword)
        return std::span(op_.operands).subspan(ranges_[i].begin, ranges_[i].count);
    return {};
  }
  ValueId one(std::string_view keyword) const {
    const auto all = of(keyword);
    return all.empty() ? ValueId() : all[0];
  }

 private:
  const Op& op_;
  const FormatRow& format_;
  std::array<SlotRange, kMaxSlots> ranges_;
};

}  // namespace fusebox
