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

void assume(std::span<const DivisibilityFact> facts, DomainValues& values, Symbols& symbols, IndexAlgebra& algebra) {
  for (const DivisibilityFact& f : facts) {
    const Form divisor = symbols.of(f.divisor);
    const Form extent = values.extent(f.domain);
    if (!algebra.is_constant(extent)) algebra.assume_divides(divisor, extent, f.reason);
  }
}

}  // namespace fusebox
