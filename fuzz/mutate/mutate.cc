#include "fuzz/mutate/mutate.h"

#include <algorithm>

#include "fuzz/mutate/mutate_rules.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "replay/run/aten_segment.h"

namespace fusebox::fuzz {
namespace {

constexpr MutationRow kRows[] = {
#define FUSEBOX_MUTATION(name, text, summary) {MutationKind::name, text, summary},
#include "fuzz/mutate/mutation_table.inc"
#undef FUSEBOX_MUTATION
};

const MutationRow& row_named(std::string_view name) {
  for (const MutationRow& row : kRows)
    if (row.text == name) return row;
  throw Error(ErrorCode::kUnknownName, "no mutation has this name; see mutation_table.inc", std::string(name));
}

// True if every constant index lies inside its axis. A select without elements takes any index.
bool constant_indices_fit(const Graph& g, const Bindings& sizes) {
  for (const Op& op : g.ops) {
    const auto at = index_operand(op.kind);
    if (!at || !op.operands[*at]) continue;
    if (op.kind == OpKind::kSelect)
      if (const auto made = evaluate_shape(g, op.results[0], sizes); made && std::ranges::count(*made, 0) > 0) continue;
    const auto index = constant_integer(g, op.operands[*at]);
    const auto shape = evaluate_shape(g, op.operands[0], sizes);
    if (!index || !shape || shape->empty()) continue;
    const int64_t axis = op.attrs.integer(AttrKey::kAxis);
    const int64_t extent = (*shape)[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape->size()) : axis)];
    if (*index >= extent || *index < -extent) return false;
  }
  return true;
}

// True for a maximum or minimum over no elements, and for a pad that cuts more than there is.
bool takes_from_nothing(const Graph& g, const Bindings& sizes) {
  for (const Op& op : g.ops) {
    if (op.kind == OpKind::kPad) {
      const auto shape = evaluate_shape(g, op.operands[0], sizes);
      for (size_t i = 2; shape && i < op.operands.size(); ++i) {
        const auto width = constant_integer(g, op.operands[i]);
        if (width && (*shape)[shape->size() - 1 - (i - 2) / 2] < -*width) return true;
      }
    }
    if (op.kind != OpKind::kMax && op.kind != OpKind::kMin) continue;
    const auto shape = evaluate_shape(g, op.operands[0], sizes);
    for (int64_t axis : op.attrs.ints(AttrKey::kAxes))
      if (shape && (*shape)[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape->size()) : axis)] == 0)
        return true;
  }
  return false;
}

// The number of elements of the largest tensor; empty if it overflows.
std::optional<int64_t> most_elements(const Graph& g, const Bindings& sizes) {
  int64_t most = 0;
  for (size_t i = 0; i < g.values.size(); ++i) {
    if (!g.is_tensor(ValueId(i))) continue;
    const auto shape = evaluate_shape(g, ValueId(i), sizes);
    int64_t elements = 1;
    for (size_t k = 0; shape && k < shape->size(); ++k)
      if (__builtin_mul_overflow(elements, std::max<int64_t>((*shape)[k], 1), &elements)) return std::nullopt;
    most = std::max(most, elements);
  }
  return most;
}

enum class Edited : uint8_t { kSteps, kInputs, kFusion };

Edited edited_by(MutationKind kind) {
  switch (kind) {
    case FUSEBOX_STEP_MUTATIONS:
      return Edited::kSteps;
    case FUSEBOX_INPUT_MUTATIONS:
      return Edited::kInputs;
    case FUSEBOX_FUSION_MUTATIONS:
      return Edited::kFusion;
  }
  return Edited::kFusion;
}

bool apply_to(Case& c, MutationKind kind, const std::vector<std::string>& p) {
  switch (edited_by(kind)) {
    case Edited::kSteps:
      return apply_to_steps(c, kind, p);
    case Edited::kInputs:
      return apply_to_inputs(c, kind, p);
    case Edited::kFusion:
      return apply_to_fusion(c, kind, p);
  }
  return false;
}

}  // namespace

bool settle(Case& c, bool is_fusion_edited, int64_t size) {
  const Graph& g = c.fusion();
  if (is_fusion_edited && find_error(g)) return false;
  InputSpecs& inputs = c.module.input_specs[0];
  const Bindings sizes = sizes_of(g, inputs);
  if (!constant_indices_fit(g, sizes) || takes_from_nothing(g, sizes)) return false;
  const auto limits = index_limits(g, sizes);
  for (size_t i = 0; i < limits.size(); ++i) {
    if (!limits[i]) continue;
    InputSpec& spec = inputs.specs[i];
    const bool is_empty = std::find(spec.shape.begin(), spec.shape.end(), 0) != spec.shape.end();
    if (spec.is_scalar || (*limits[i] == 0 && !is_empty)) return false;
    make_index(spec, std::max<int64_t>(*limits[i], 1));
  }
  const auto most = most_elements(g, sizes);
  return most && *most <= size;
}

int64_t size_limit(const Case& c) {
  return std::max(kUsualSize, most_elements(c.fusion(), sizes_of(c.fusion(), c.inputs())).value_or(0));
}

std::span<const MutationRow> mutation_rows() { return kRows; }

std::optional<size_t> parse_position(const std::string& text, size_t end) {
  size_t value = 0;
  if (text.empty() || text.size() > 9) return std::nullopt;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<size_t>(c - '0');
  }
  return value < end ? std::optional(value) : std::nullopt;
}

std::optional<Mutation> draw_mutation(RandomSource& random, MutationKind kind, const Case& from, const Case& other) {
  Mutation m{std::string(kRows[static_cast<size_t>(kind)].text), {}};
  bool drawn = false;
  switch (edited_by(kind)) {
    case Edited::kSteps:
      drawn = draw_for_steps(random, kind, from, other, m.parameters);
      break;
    case Edited::kInputs:
      drawn = draw_for_inputs(random, kind, from, m.parameters);
      break;
    case Edited::kFusion:
      drawn = draw_for_fusion(random, kind, from, m.parameters);
      break;
  }
  return drawn ? std::optional(std::move(m)) : std::nullopt;
}

std::optional<Case> apply_mutation(const Case& from, const Mutation& mutation) {
  const MutationKind kind = row_named(mutation.name).kind;
  Case c{from.module, from.seed, from.lineage, std::nullopt};
  try {
    if (!apply_to(c, kind, mutation.parameters) || !settle(c, edited_by(kind) == Edited::kFusion)) return std::nullopt;
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal) throw;
    return std::nullopt;
  }
  c.lineage.push_back(mutation);
  return c;
}

std::optional<Case> mutate(RandomSource& random, const Case& from, const Case& other, const MutateOptions& options) {
  std::optional<Case> best;
  const size_t wanted = 1 + random.below(3);
  for (size_t tries = 0, done = 0; tries < options.tries && done < wanted; ++tries) {
    const Case& base = best ? *best : from;
    const auto m = draw_mutation(random, static_cast<MutationKind>(random.below(std::size(kRows))), base, other);
    if (!m) continue;
    std::optional<Case> c = apply_mutation(base, *m);
    if (!c) continue;
    if (options.compiles && !options.compiles()) return c;
    try {
      CompileOptions compile_options{
          .inputs = bound_inputs(c->inputs()), .defects = options.defects, .infer = infer_by_aten()};
      if (c->steps()) compile_options.steps = *c->steps();
      if (base.compiled) compile_options.known = &*base.compiled;
      c->compiled = compile(c->fusion(), sizes_of(c->fusion(), c->inputs()), compile_options);
    } catch (const Error& e) {
      if (row_of(e.code).outcome == Outcome::kInternal) return c;  // the oracles will meet it too
      continue;
    }
    best = std::move(c);
    ++done;
  }
  return best;
}

}  // namespace fusebox::fuzz
