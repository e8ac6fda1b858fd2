#include "ir/module/module.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "ir/table/error.h"

namespace fusebox {

bool InputSpec::operator==(const InputSpec& other) const {
  const auto members = [](const InputSpec& s) {
    const auto& [name, dtype, is_scalar, shape, strides, offset, generator, seed, low, high, value] = s;
    const auto number = [](double x) {
      return std::bit_cast<uint64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x);
    };
    return std::make_tuple(std::cref(name), dtype, is_scalar, std::cref(shape), std::cref(strides), offset, generator,
                           seed, number(low), number(high), std::cref(value));
  };
  return members(*this) == members(other);
}

const Graph* find_graph(const Module& m, std::string_view name) {
  const auto it = std::find_if(m.graphs.begin(), m.graphs.end(), [&](const Graph& g) { return g.name == name; });
  return it == m.graphs.end() ? nullptr : &*it;
}

const Graph& main_graph(const Module& m) {
  if (m.graphs.empty())
    throw Error(ErrorCode::kInvalidGraph, "the module holds no program; add a fusion", "module.graphs");
  const auto it =
      std::find_if(m.graphs.begin(), m.graphs.end(), [](const Graph& g) { return g.level == Level::kMath; });
  return it == m.graphs.end() ? m.graphs.front() : *it;
}

const StepList* find_steps(const Module& m, std::string_view graph, std::string_view name) {
  for (const StepList& list : m.step_lists)
    if (list.graph == graph && (name.empty() || list.name == name)) return &list;
  return nullptr;
}

const InputSpecs* find_input_specs(const Module& m, std::string_view graph, std::string_view where) {
  for (const InputSpecs& specs : m.input_specs)
    if (specs.graph == graph && specs.where == where) return &specs;
  return nullptr;
}

}  // namespace fusebox
