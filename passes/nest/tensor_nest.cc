#include "passes/nest/tensor_nest.h"

#include "passes/nest/facts.h"

namespace fusebox {
namespace {

IndexAlgebra& cleared(IndexAlgebra& algebra) {
  algebra.clear();
  return algebra;
}

}  // namespace

TensorNest::TensorNest(const Graph& g, const NestPlan& plan, const ExtentClasses& extents, IndexAlgebra& algebra,
                       TensorId t)
    : tensor(t), algebra(cleared(algebra)), symbols(g, extents, algebra), values(g, plan, symbols, algebra, t) {
  const auto& loop = loop_of(g[t]);
  // Symbols and facts come first, then all extents: a fact learnt later does not simplify forms that exist already.
  assume(facts_of(g, t), values, symbols, algebra);
  std::vector<Form> sizes;
  sizes.reserve(loop.size());
  for (DomainId d : loop) sizes.push_back(values.extent(d));
  for (size_t i = 0; i < loop.size(); ++i)
    values.set(loop[i], algebra.declare_loop(static_cast<int>(i), g[loop[i]].name, sizes[i]));
  values.propagate();
}

}  // namespace fusebox
