// Forbids cuBLAS to round partial sums to 16 bits, while it lives.
#pragma once

#include <ATen/Context.h>

namespace fusebox::aten {

class WideSums {
 public:
  WideSums() {
    context_.setAllowFP16ReductionCuBLAS(false);
    context_.setAllowBF16ReductionCuBLAS(false);
  }
  ~WideSums() {
    restore(half_, [&](bool allowed, bool split) { context_.setAllowFP16ReductionCuBLAS(allowed, split); });
    restore(bfloat16_, [&](bool allowed, bool split) { context_.setAllowBF16ReductionCuBLAS(allowed, split); });
  }
  WideSums(const WideSums&) = delete;
  WideSums& operator=(const WideSums&) = delete;

 private:
  template <class F>
  static void restore(at::CuBLASReductionOption before, F&& set) {
    set(before == at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK,
        before != at::CuBLASReductionOption::DisallowReducedPrecisionDisallowSplitK);
  }

  at::Context& context_ = at::globalContext();
  const at::CuBLASReductionOption half_ = context_.allowFP16ReductionCuBLAS();
  const at::CuBLASReductionOption bfloat16_ = context_.allowBF16ReductionCuBLAS();
};

}  // namespace fusebox::aten
