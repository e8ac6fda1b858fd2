// The divisors of sizes, strides and addresses, as the classes of a view show them. A scheduler asks them how wide an
// access may be.
//
//   // x is bf16[m, n] and aligned to 16 bytes; its rows are apart by a multiple of 8; 8 divides n
//   KnownDivisors known(view, view.fusion);
//   known.is_aligned(x, 16)   // true
//   known.of_stride(x, m)     // 8
#pragma once

#include <optional>

#include "passes/plan/kernel_plan.h"
#include "passes/schedule/schedule_view.h"

namespace fusebox {

constexpr int64_t kVectorBytes = 16;  // that one access can move

class KnownDivisors {
 public:
  // `g` is the view's fusion, or that fusion with steps applied: they add values behind its own.
  KnownDivisors(const ScheduleView& view, const Graph& g) : view_(view), g_(g) {}

  bool is_aligned(ValueId tensor, int64_t bytes) const { return bytes <= memory_of(tensor).align; }
  // Whether the tensor's class tells its strides; otherwise the tensor is contiguous.
  bool has_strides(ValueId tensor) const { return !memory_of(tensor).stride_divisors.empty(); }
  // A divisor of the stride of an axis in the tensor's memory, in elements. Nothing if the class has no such axis.
  std::optional<int64_t> of_stride(ValueId tensor, DomainId axis) const;
  // Whether the divisor divides the product. The launch will check it.
  bool holds(const Divisibility& d) const;

 private:
  const MemoryClass& memory_of(ValueId tensor) const;
  int64_t divisor(const ScalarParameter& p) const;

  const ScheduleView& view_;
  const Graph& g_;
  const MemoryClass contiguous_;
};

}  // namespace fusebox
