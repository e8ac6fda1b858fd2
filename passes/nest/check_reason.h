// The reasons why a domain has a check, or has none: rows of a table, for `show --why`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fusebox {

enum class CheckReason : uint8_t {
#define FUSEBOX_CHECK_REASON(name, text, says) name,
#include "passes/nest/check_reason_table.inc"
#undef FUSEBOX_CHECK_REASON
};

struct CheckReasonRow {
  CheckReason reason;
  std::string_view text;
  std::string_view says;
};

inline std::span<const CheckReasonRow> check_reason_rows() {
  static constexpr CheckReasonRow kRows[] = {
#define FUSEBOX_CHECK_REASON(name, text, says) {CheckReason::name, text, says},
#include "passes/nest/check_reason_table.inc"
#undef FUSEBOX_CHECK_REASON
  };
  return kRows;
}
inline const CheckReasonRow& row_of(CheckReason r) { return check_reason_rows()[static_cast<size_t>(r)]; }

}  // namespace fusebox
