// Rewrite passes turn a fusion of level math into one that gives the same output bits (a NaN stays a NaN), or, where the
// table says so, outputs within the same bounds. They run as `rewrite` steps, through apply_steps.h.
//
// Invariants of every pass:
// - The signature stays: sizes, inputs, outputs, aliases.
// - A remaining value keeps its name. An output keeps its name, dtype and axes, and also its op, but for `finest_axes`,
//   which lets a reshape make it.
// - The graph verifies before and after, and inference accepts it as it did before.
// - A pass does not change again what it has changed.
// - Passes let readers read another value. Only `dead_code` removes ops, so names last until it runs.
//
//   rewrite name "identity_moves"
//   rewrite name "dead_code" options "limit=3"
//
//   // %p = permute %x dims [1, 0]; %q = permute %p dims [1, 0]; %y = neg %q      identity_moves: %y = neg %x
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph/graph.h"
#include "ir/module/step.h"
#include "ir/table/defect.h"

namespace fusebox {

struct RewriteOptions {
#define FUSEBOX_REWRITE_OPTION(name, initial, summary) int64_t name = initial;
#include "passes/rewrite/rewrite_table.inc"
#undef FUSEBOX_REWRITE_OPTION
  Defects defects = {};  // seeded; no step's text sets them
  bool operator==(const RewriteOptions&) const = default;
};

// True means changed.
#define FUSEBOX_REWRITE(name, outputs, summary) bool name(Graph& g, const RewriteOptions& options = {});
#include "passes/rewrite/rewrite_table.inc"
#undef FUSEBOX_REWRITE

// What becomes of the outputs.
enum class RewrittenOutputs { kKeepsBits, kWithinBounds };

struct RewriteRow {
  std::string_view name;
  RewrittenOutputs outputs;
  bool (*run)(Graph&, const RewriteOptions&);
  std::string_view summary;
};
std::span<const RewriteRow> rewrite_rows();
const RewriteRow* find_rewrite(std::string_view name);

struct RewriteOptionRow {
  std::string_view name;
  int64_t RewriteOptions::* field;
  std::string_view summary;
};
std::span<const RewriteOptionRow> rewrite_option_rows();

// A parsed `rewrite` step. In its options commas separate, and `limit=3` sets a field. parse_rewrite throws
// kStepNotApplicable and names the wrong part.
struct ParsedRewrite {
  const RewriteRow* pass = nullptr;
  RewriteOptions options;
};
ParsedRewrite parse_rewrite(const Step& step);
Step rewrite_step(std::string_view pass, std::string_view options = {});

}  // namespace fusebox
