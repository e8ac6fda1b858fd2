#include "passes/nest/facts.h"

#include "ir/domain/domain.h"

namespace fusebox {
namespace {

std::string name_of(const Graph& g, ValueId v) {
  const auto number = constant_integer(g, v);
  return number ? std::to_string(*number) : "%" + g[v].name;
}

}  // namespace

std::vector<DivisibilityFact> facts_of(const Graph& g, TensorId t) {
  std::vector<DivisibilityFact> facts;
  const ValueId v = g[t].value;
  const OpId def = g[v].def;
  if (!def) return facts;
  const auto add = [&](ValueId divisor, DomainId d, const char* why) {
    facts.push_back(
        {divisor, d, name_of(g, divisor) + " divides the extent of %" + g[v].name + "." + g[d].name + ": " + why});
  };
  if (g[def].kind == OpKind::kReshape) {
    const auto& logical = g[t].logical;
    const auto& operands = g[def].operands;
    for (TransformId id : op_transforms(g, g[t])) {
      const Transform& split = g[id];
      if (split.kind != TransformKind::kSplit) continue;
      add(split.factor, split.inputs[0], "a reshape keeps every element");
      // The shape gives the extent of the other output.
      const size_t i = position_in(logical, split.outputs[split.inner_split ? 0 : 1]);
      if (i < logical.size() && operands.size() == logical.size() + 1 && constant_integer(g, operands[i + 1]) != -1)
        add(operands[i + 1], split.inputs[0], "a reshape keeps every element");
    }
  }
  const auto& loop = loop_of(g[t]);
  if (g[def].kind == OpKind::kSet && !loop.empty() && g[loop.back()].parallel == ParallelType::kVectorize) {
    const TransformId split = g[loop.back()].def;
    if (split && g[split].kind == TransformKind::kSplit && g[split].inner_split && g[split].outputs[1] == loop.back() &&
        constant_integer(g, g[split].factor))
      add(g[split].factor, g[split].inputs[0],
          "a vector never reaches over the end, which is proved or checked by the launch");
  }
  return facts;
}

std::string_view text(StatedFact::Kind kind) {
  constexpr std::string_view kTexts[] = {"multiple of", "at most", "below", "equal to"};
  return kTexts[static_cast<size_t>(kind)];
}

std::vector<StatedFact> stated_facts(const Graph& g) {
  std::vector<StatedFact> facts;
  for (OpId id : g[Graph::body()].ops) {
    if (g[id].kind != OpKind::kAssume) continue;
    const OpId holds = g[g[id].operands[0]].def;
    if (!holds || g[holds].operands.size() != 2) continue;
    const ValueId a = g[holds].operands[0], b = g[holds].operands[1];
    if (g[a].dtype != Dtype::kIndex || g[b].dtype != Dtype::kIndex) continue;
    const auto add = [&](StatedFact::Kind kind, ValueId value, ValueId bound) {
      facts.push_back({kind, value, bound, "the launch checks that " + std::string(g[id].attrs.string(AttrKey::kWhy))});
    };
    const OpKind kind = g[holds].kind;
    const OpId rest = g[a].def;
    if (kind == OpKind::kLe) add(StatedFact::Kind::kAtMost, a, b);
    if (kind == OpKind::kLt) add(StatedFact::Kind::kBelow, a, b);
    if (kind != OpKind::kEq) continue;
    if (rest && g[rest].kind == OpKind::kFloorMod && constant_integer(g, b) == 0)
      add(StatedFact::Kind::kMultiple, g[rest].operands[0], g[rest].operands[1]);
    else
      add(StatedFact::Kind::kEqual, a, b);
  }
  return facts;
}

namespace {

// Another size of the graph than the value. Only a defect uses it.
ValueId other_size(const Graph& g, ValueId value) {
  for (OpId id : g[Graph::body()].ops)
    if (g[id].kind == OpKind::kSize)
      for (ValueId v : g[id].results)
        if (v != value) return v;
  return value;
}

}  // namespace

void assume(std::span<const StatedFact> facts, Symbols& symbols, IndexAlgebra& algebra, const Defects& defects) {
  for (const StatedFact& f : facts) {
    const bool is_other = f.kind == StatedFact::Kind::kMultiple && defects.has(Defect::kMultipleOfOther);
    const Form value = symbols.of(is_other ? other_size(symbols.graph(), f.value) : f.value);
    const Form bound = symbols.of(f.bound);
    switch (f.kind) {
      case StatedFact::Kind::kMultiple:
        if (!algebra.is_constant(value)) algebra.assume_divides(bound, value, f.reason);
        break;
      case StatedFact::Kind::kAtMost:
        if (!defects.has(Defect::kAtMostTakenBelow)) {
          algebra.assume_le(value, bound, f.reason);
          break;
        }
        [[fallthrough]];
      case StatedFact::Kind::kBelow:
        algebra.assume_le(algebra.add(value, algebra.constant(1)), bound, f.reason);
        break;
      case StatedFact::Kind::kEqual:
        if (value == bound) break;
        algebra.assume_le(value, bound, f.reason);
        algebra.assume_le(bound, value, f.reason);
        break;
    }
  }
}

void assume(std::span<const DivisibilityFact> facts, DomainValues& values, Symbols& symbols, IndexAlgebra& algebra) {
  for (const DivisibilityFact& f : facts) {
    const Form divisor = symbols.of(f.divisor);
    const Form extent = values.extent(f.domain);
    if (!algebra.is_constant(extent)) algebra.assume_divides(divisor, extent, f.reason);
  }
}

}  // namespace fusebox
