#include "passes/rewrite/rewrite.h"

#include <charconv>

#include "ir/table/error.h"

namespace fusebox {
namespace {

constexpr RewriteRow kRows[] = {
#define FUSEBOX_REWRITE(name, outputs, summary) {#name, RewrittenOutputs::outputs, name, summary},
#include "passes/rewrite/rewrite_table.inc"
#undef FUSEBOX_REWRITE
};

constexpr RewriteOptionRow kOptions[] = {
#define FUSEBOX_REWRITE_OPTION(name, initial, summary) {#name, &RewriteOptions::name, summary},
#include "passes/rewrite/rewrite_table.inc"
#undef FUSEBOX_REWRITE_OPTION
};

[[noreturn]] void refuse(const std::string& message, std::string_view place) {
  throw Error(ErrorCode::kStepNotApplicable, message, std::string(place));
}

template <class Row>
std::string names_of(std::span<const Row> rows) {
  std::string all;
  for (const Row& r : rows) all += (all.empty() ? "" : ", ") + std::string(r.name);
  return all;
}

const std::string* string_attr(const Step& step, AttrKey key) {
  const AttrValue* value = step.attrs.find(key);
  if (value == nullptr) return nullptr;
  const auto* text = std::get_if<std::string>(value);
  if (text == nullptr) refuse("this attribute of a rewrite is a string", row_of(key).text);
  return text;
}

// Sets one option: `name=number`.
void set_option(RewriteOptions& options, std::string_view word) {
  const size_t equal = word.find('=');
  const std::string_view name = word.substr(0, equal);
  for (const RewriteOptionRow& row : kOptions) {
    if (row.name != name) continue;
    const std::string_view number = equal == word.npos ? std::string_view() : word.substr(equal + 1);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || value < 0)
      refuse("an option of a rewrite is a name, =, and a number from 0, such as limit=3", word);
    options.*row.field = value;
    return;
  }
  refuse("a rewrite has no option of this name; it has " + names_of(rewrite_option_rows()), name);
}

}  // namespace

std::span<const RewriteRow> rewrite_rows() { return kRows; }
std::span<const RewriteOptionRow> rewrite_option_rows() { return kOptions; }

const RewriteRow* find_rewrite(std::string_view name) {
  for (const RewriteRow& row : kRows)
    if (row.name == name) return &row;
  return nullptr;
}

ParsedRewrite parse_rewrite(const Step& step) {
  if (step.kind != StepKind::kRewrite) refuse("this step is no rewrite", row_of(step.kind).text);
  if (!step.operands.empty() || !step.results.empty())
    refuse("a rewrite takes a name and options, and no operands or results", row_of(step.kind).text);
  for (const Attr& a : step.attrs.list())
    if (!row_of(step.kind).accepts(a.key)) refuse("a rewrite takes no attribute of this name", row_of(a.key).text);
  const std::string* name = string_attr(step, AttrKey::kName);
  if (name == nullptr) refuse("a rewrite needs the name of a pass: " + names_of(rewrite_rows()), "name");
  ParsedRewrite parsed;
  parsed.pass = find_rewrite(*name);
  if (parsed.pass == nullptr) refuse("no rewrite has this name; there are " + names_of(rewrite_rows()), *name);
  const std::string* options = string_attr(step, AttrKey::kOptions);
  for (std::string_view rest = options ? std::string_view(*options) : std::string_view(); !rest.empty();) {
    const size_t comma = rest.find(',');
    set_option(parsed.options, rest.substr(0, comma));
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return parsed;
}

Step rewrite_step(std::string_view pass, std::string_view options) {
  Step step{StepKind::kRewrite, {}, {}, {}};
  step.attrs.set(AttrKey::kName, std::string(pass));
  if (!options.empty()) step.attrs.set(AttrKey::kOptions, std::string(options));
  return step;
}

}  // namespace fusebox
