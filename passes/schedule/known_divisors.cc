#include "passes/schedule/known_divisors.h"

#include <algorithm>

#include "ir/domain/domain.h"

namespace fusebox {

const MemoryClass& KnownDivisors::memory_of(ValueId tensor) const {
  const auto it = view_.memory.find(g_[tensor].name);
  return it == view_.memory.end() ? contiguous_ : it->second;
}

std::optional<int64_t> KnownDivisors::of_stride(ValueId tensor, DomainId axis) const {
  const auto& divisors = memory_of(tensor).stride_divisors;
  const size_t i = position_in(logical_without_reductions(g_, g_.tensor_of(tensor)), axis);
  if (i >= divisors.size()) return std::nullopt;
  return divisors[i];
}

bool KnownDivisors::holds(const Divisibility& d) const {
  int64_t product = 1;
  for (const ScalarParameter& p : d.product) product = std::min<int64_t>(product * divisor(p), d.divisor);
  return product % d.divisor == 0;
}

// The classes of the fusion's scalars are found by their ids.
int64_t KnownDivisors::divisor(const ScalarParameter& p) const {
  if (p.scalar) return view_.sizes.of(p.scalar).divisor;
  const auto order = allocation_of(g_, g_.tensor_of(p.stride_of));
  if (p.axis >= order.size()) return 1;
  if (has_strides(p.stride_of)) return of_stride(p.stride_of, order[p.axis]).value_or(1);
  // The tensor is contiguous: its stride is the product of the extents behind the axis.
  int64_t product = 1;
  for (size_t i = p.axis + 1; i < order.size(); ++i)
    product = std::min<int64_t>(product * view_.sizes.of(order[i]).divisor, kVectorBytes);
  return product;
}

}  // namespace fusebox
