// Steps: decisions as data. One table (step_table.inc) gives each kind of step its slots, result names and attributes.
//
// Invariants: a step refers to tensors and domains by name, never by position. Deleting a step therefore does not
// change the meaning of another.
//
//   split %y.i1 by 128 -> o, t
//   Step{StepKind::kSplit, {StepOperand::domain_of("y", "i1"), StepOperand::number(128)}, {"o", "t"}, {}}
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

enum class StepKind : uint8_t {
#define FUSEBOX_STEP(name, text, operands, results, attrs, summary) name,
#include "ir/module/step_table.inc"
#undef FUSEBOX_STEP
};

struct StepRow {
  StepKind kind;
  std::string_view text;
  const FormatRow* format;   // its slots have the kinds t d x v
  std::string_view results;  // as the table writes them
  std::span<const AttrKey> attrs;
  std::string_view summary;

  bool accepts(AttrKey key) const;
  bool makes_tensors() const { return results.starts_with('t'); }
};
std::span<const StepRow> step_rows();
inline const StepRow& row_of(StepKind kind) { return step_rows()[static_cast<size_t>(kind)]; }
std::optional<StepKind> parse_step_kind(std::string_view text);

// A tensor or scalar `%value`, a domain `%value.domain`, or an integer.
struct StepOperand {
  std::string value;
  std::string domain;
  int64_t integer = 0;

  static StepOperand of(std::string_view value) { return {std::string(value), {}, 0}; }
  static StepOperand domain_of(std::string_view value, std::string_view domain) {
    return {std::string(value), std::string(domain), 0};
  }
  static StepOperand number(int64_t integer) { return {{}, {}, integer}; }
  bool is_integer() const { return value.empty(); }
  bool operator==(const StepOperand&) const = default;
};

struct Step {
  StepKind kind = StepKind::kSplit;
  std::vector<StepOperand> operands;  // `slot_ranges` divides them among the slots
  std::vector<std::string> results;
  Attrs attrs;
  bool operator==(const Step&) const = default;
};

}  // namespace fusebox
