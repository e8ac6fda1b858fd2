#include <algorithm>

#include "ir/module/step.h"
#include "ir/table/format_parse.h"

namespace fusebox {
namespace {

constexpr FormatRow kFormats[] = {
#define FUSEBOX_STEP(name, text, operands, results, attrs, summary) parse_format(#name, operands, -1, 0),
#include "ir/module/step_table.inc"
#undef FUSEBOX_STEP
};

using enum AttrKey;
#define A(...) std::span<const AttrKey>(KeyList<__VA_ARGS__>::list)
constexpr StepRow kSteps[] = {
#define FUSEBOX_STEP(name, text, operands, results, attrs, summary) \
  {StepKind::name, text, &kFormats[static_cast<size_t>(StepKind::name)], results, attrs, summary},
#include "ir/module/step_table.inc"
#undef FUSEBOX_STEP
};
#undef A

}  // namespace

bool StepRow::accepts(AttrKey key) const { return std::find(attrs.begin(), attrs.end(), key) != attrs.end(); }

std::span<const StepRow> step_rows() { return kSteps; }

std::optional<StepKind> parse_step_kind(std::string_view text) {
  for (const StepRow& row : kSteps)
    if (row.text == text) return row.kind;
  return std::nullopt;
}

}  // namespace fusebox
