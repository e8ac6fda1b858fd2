#include "passes/facts.h"

#include "ir/domain.h"

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
  const auto add = [&](const Transform& split, const char* why) {
    const DomainId d = split.inputs[0];
    facts.push_back({split.factor, d,
                     name_of(g, split.factor) + " divides the extent of %" + g[v].name + "." + g[d].name + ": " + why});
  };
  if (g[def].kind == OpKind::kReshape)
    for (TransformId id : op_transforms(g, g[t]))
      if (g[id].kind == TransformKind::kSplit) add(g[id], "a reshape keeps every element");
  const auto& loop = loop_of(g[t]);
  if (g[def].kind == OpKind::kSet && !loop.empty() && g[loop.back()].parallel == ParallelType::kVectorize) {
    const TransformId split = g[loop.back()].def;
    if (split && g[split].kind == TransformKind::kSplit && g[split].inner_split && g[split].outputs[1] == loop.back() &&
        constant_integer(g, g[split].factor))
      add(g[split], "a vector never reaches over the end, which is proved or checked by the launch");
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
