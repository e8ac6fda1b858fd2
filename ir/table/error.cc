#include "ir/table/error.h"

#include <algorithm>
#include <array>

namespace fusebox {
namespace {

constexpr ErrorRow kRows[] = {
#define FUSEBOX_ERROR(name, number, outcome, summary) \
  {ErrorCode::name, std::string_view(#name).substr(1), Outcome::outcome, summary},
#include "ir/table/error_table.inc"
#undef FUSEBOX_ERROR
};

}  // namespace

std::span<const ErrorRow> error_rows() { return kRows; }

const ErrorRow& row_of(ErrorCode code) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const ErrorRow& r) { return r.code == code; });
  return row == std::end(kRows) ? kRows[std::size(kRows) - 1] : *row;
}

std::string code_text(ErrorCode code) {
  const auto number = std::to_string(static_cast<unsigned>(code));
  return "E" + std::string(4 - std::min<size_t>(4, number.size()), '0') + number;
}

}  // namespace fusebox
