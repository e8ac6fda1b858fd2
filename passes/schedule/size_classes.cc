#include "passes/schedule/size_classes.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "ir/graph/graph.h"
#include "ir/table/families.h"
#include "passes/plan/vector_copy.h"

namespace fusebox {

namespace {
constexpr int64_t kMostAlign = 16;  // bytes of the widest access
constexpr SizeClass kUnknown = {std::numeric_limits<int64_t>::max(), 1};
}  // namespace

int64_t power_of_two_in(int64_t number, int64_t most) {
  int64_t result = 1;
  while (result < most && number % (result * 2) == 0) result *= 2;
  return result;
}

SizeClass class_of_size(int64_t size, const Defects& defects) {
  // A negative number is no size, but a slice may begin there: nothing is known to divide it.
  if (size < 0) return {.most = 0, .divisor = 1};
  SizeClass c{size, power_of_two_in(size, kMostDivisor)};
  if (defects.has(Defect::kClassDivisorDouble)) c.divisor = std::min(2 * c.divisor, kMostDivisor);
  if (size <= 4) return c;
  const int shift = std::bit_width(static_cast<uint64_t>(size)) - 3;
  const int64_t unit = int64_t{1} << shift;
  int64_t up = 0;
  // The bound of the last class does not fit.
  c.most = __builtin_add_overflow(size, unit - 1, &up) ? std::numeric_limits<int64_t>::max() : up & ~(unit - 1);
  if (defects.has(Defect::kClassBelowSize)) c.most -= unit;
  return c;
}

int64_t below_class(SizeClass c) {
  if (c.most == kUnknown.most) return 0;
  if (c.most <= 5) return std::max<int64_t>(c.most - 1, 0);
  return c.most - (int64_t{1} << (std::bit_width(static_cast<uint64_t>(c.most - 1)) - 3));
}

std::vector<bool> shaping_scalars(const Graph& g) {
  std::vector<bool> shapes(g.values.size());
  std::vector<ValueId> open;
  const auto add = [&](ValueId v) {
    if (!v || g.is_tensor(v) || shapes[v.index]) return;
    shapes[v.index] = true;
    open.push_back(v);
  };
  for (const IterDomain& d : g.domains) add(d.extent), add(d.expanded);
  for (const Transform& t : g.transforms) add(t.factor), add(t.right);
  for (const Op& op : g.ops) {
    const bool makes_tensor = !op.results.empty() && g.is_tensor(op.results[0]);
    const bool reads_data = demands(op.kind, kPointwise) || is_random(op.kind) || op.kind == OpKind::kFull;
    if (op.kind == OpKind::kAssume || (makes_tensor && !reads_data))
      for (ValueId v : op.operands) add(v);
  }
  while (!open.empty()) {
    const OpId def = g[open.back()].def;
    open.pop_back();
    if (def)
      for (ValueId v : g[def].operands) add(v);
  }
  return shapes;
}

SizeClasses::SizeClasses(const Graph& g, const Bindings& bindings, const Defects& defects) {
  by_value_.assign(g.values.size(), kUnknown);
  const std::vector<bool> shapes = shaping_scalars(g);
  for (uint32_t i = 0; i < g.values.size(); ++i)
    if (shapes[i])
      if (const auto known = evaluate_integer(g, ValueId(i), bindings)) by_value_[i] = class_of_size(*known, defects);
  by_domain_.assign(g.domains.size(), kUnknown);
  for (uint32_t i = 0; i < g.domains.size(); ++i)
    if (const auto known = evaluate_extent(g, DomainId(i), bindings)) by_domain_[i] = class_of_size(*known, defects);
}

SizeClass SizeClasses::of(ValueId v) const { return v && v.index < by_value_.size() ? by_value_[v.index] : kUnknown; }
SizeClass SizeClasses::of(DomainId d) const {
  return d && d.index < by_domain_.size() ? by_domain_[d.index] : kUnknown;
}

double bytes_at_most(const Graph& g, ValueId tensor, const SizeClasses& sizes) {
  double result = static_cast<double>(bits(g[tensor].dtype)) / 8;
  for (DomainId d : logical_without_reductions(g, g.tensor_of(tensor))) result *= static_cast<double>(sizes.of(d).most);
  return result;
}

MemoryClasses memory_classes(const Graph& fusion, std::span<const BoundInput> given, const Defects& defects) {
  MemoryClasses result;
  const auto names = inputs(fusion);
  for (size_t i = 0; i < names.size() && i < given.size(); ++i) {
    if (!fusion.is_tensor(names[i])) continue;
    MemoryClass& c = result[fusion[names[i]].name];
    const size_t of = i > 0 && defects.has(Defect::kClassOfOtherInput) ? i - 1 : i;
    if (given[of].align > 0 && !defects.has(Defect::kClassAligned))
      c.align = power_of_two_in(given[of].align, kMostAlign);
    for (int64_t stride : given[of].strides)
      c.stride_divisors.push_back(power_of_two_in(defects.has(Defect::kClassStrides) ? 0 : stride, kMostDivisor));
  }
  return result;
}

}  // namespace fusebox
