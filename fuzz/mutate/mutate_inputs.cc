// Mutations of extents, layouts and values.
#include <algorithm>

#include "fuzz/mutate/mutate_rules.h"
#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"

namespace fusebox::fuzz {
namespace {

std::vector<ValueId> size_symbols(const Graph& g) {
  std::vector<ValueId> symbols;
  for (OpId id : g[Graph::body()].ops)
    if (g[id].kind == OpKind::kSize) symbols.insert(symbols.end(), g[id].results.begin(), g[id].results.end());
  return symbols;
}

// The part of a spec's line after the `=`.
std::string spec_text(const InputSpec& spec) {
  const std::string line = print(spec);
  const size_t at = line.find("= ");
  return at == std::string::npos ? line : line.substr(at + 2);
}

InputSpec* find_spec(Case& c, const std::string& name) {
  for (InputSpec& s : c.module.input_specs[0].specs)
    if (s.name == name) return &s;
  return nullptr;
}

constexpr int64_t kNearNumbers = 64;

// Sets a size symbol for all inputs; draws a new layout for each input whose shape changed.
bool set_extent(Case& c, const std::string& name, int64_t extent) {
  const Graph& g = c.fusion();
  const auto symbol = find_value(g, name);
  if (!symbol || !g[*symbol].def || g[g[*symbol].def].kind != OpKind::kSize) return false;
  InputSpecs& inputs = c.module.input_specs[0];
  Bindings sizes = sizes_of(g, inputs);
  sizes[symbol->index] = ConstantBits{static_cast<uint64_t>(extent), 0};
  // Keep only symbols bound; the other sizes are computed again.
  const auto symbols = size_symbols(g);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (std::find(symbols.begin(), symbols.end(), ValueId(i)) == symbols.end()) sizes[i].reset();
  RandomSource first(std::span<const uint8_t>{});
  const auto given = fusebox::inputs(g);
  for (size_t i = 0; i < given.size(); ++i) {
    InputSpec& spec = inputs.specs[i];
    if (spec.is_scalar) continue;
    const auto shape = evaluate_shape(g, given[i], sizes);
    if (!shape) return false;
    if (*shape == spec.shape) continue;
    spec.shape = *shape;
    spec.strides = draw_strides(first, g, given[i], spec.shape);
  }
  return true;
}

}  // namespace

bool draw_for_inputs(RandomSource& random, MutationKind kind, const Case& from, Parameters& p) {
  const Graph& g = from.fusion();
  if (kind == MutationKind::kExtent) {
    const auto symbols = size_symbols(g);
    if (symbols.empty()) return false;
    p = {g[random.pick(symbols)].name, std::to_string(random.pick(kBoundaryExtents))};
    return true;
  }
  const auto& specs = from.inputs().specs;
  if (specs.empty()) return false;
  const size_t at = random.below(specs.size());
  InputSpec spec = specs[at];
  if (spec.is_scalar) {
    // A number near the old one: it is mostly a bound, a width or a place.
    if (kind != MutationKind::kValues || !is_integer(spec.dtype)) return false;
    const int64_t now = to_int64(spec.dtype, spec.value);
    if (now < -kNearNumbers || now > kNearNumbers) return false;
    spec.value = from_int64(spec.dtype, now + random.between(-4, 4));
  } else if (kind == MutationKind::kLayout) {
    spec.strides = draw_strides(random, g, fusebox::inputs(g)[at], spec.shape);
    spec.offset = random.one_in(2) ? random.between(1, 9) : 0;
  } else {
    spec.seed = random.below(1 << 16);
    if (random.one_in(3)) spec.generator = InputGenerator::kBoundary;
  }
  p = {spec.name, spec_text(spec)};
  return true;
}

bool apply_to_inputs(Case& c, MutationKind kind, const Parameters& p) {
  if (p.size() != 2) return false;
  if (kind == MutationKind::kExtent) {
    const auto extent = parse_position(p[1], 1 << 12);
    return extent && set_extent(c, p[0], static_cast<int64_t>(*extent));
  }
  InputSpec* spec = find_spec(c, p[0]);
  if (!spec) return false;
  const InputSpec changed = parse_input_spec(p[0], p[1]);
  if (changed.dtype != spec->dtype || changed.is_scalar != spec->is_scalar || changed == *spec) return false;
  *spec = changed;
  return true;
}

}  // namespace fusebox::fuzz
