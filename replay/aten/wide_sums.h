// Forbids cuBLAS to round partial sums to 16 bits, while one lives. The options belong to the whole process, so threads
// share the count of those that live: the first one keeps and changes them, the last one puts them back.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <mutex>

namespace fusebox::aten {

class WideSums {
 public:
  // Where it does not matter, the options stay as they are: see sums_in_16_bits.
  explicit WideSums(bool matters) : counts_(matters) {
    if (!counts_) return;
    Shared& s = shared();
    const std::lock_guard lock(s.mutex);
    if (s.living++ > 0) return;
    at::Context& context = at::globalContext();
    s.half = context.allowFP16ReductionCuBLAS();
    s.bfloat16 = context.allowBF16ReductionCuBLAS();
    context.setAllowFP16ReductionCuBLAS(false);
    context.setAllowBF16ReductionCuBLAS(false);
  }
  ~WideSums() {
    if (!counts_) return;
    Shared& s = shared();
    const std::lock_guard lock(s.mutex);
    if (--s.living > 0) return;
    at::Context& context = at::globalContext();
    restore(s.half, [&](bool allowed, bool split) { context.setAllowFP16ReductionCuBLAS(allowed, split); });
    restore(s.bfloat16, [&](bool allowed, bool split) { context.setAllowBF16ReductionCuBLAS(allowed, split); });
  }
  WideSums(const WideSums&) = delete;
  WideSums& operator=(const WideSums&) = delete;

 private:
  struct Shared {
    std::mutex mutex;
    int living = 0;
    at::CuBLASReductionOption half{}, bfloat16{};  // as they were before the first one
  };
  static Shared& shared() {
    static Shared all;
    return all;
  }
  template <class F>
  static void restore(at::CuBLASReductionOption before, F&& set) {
    set(before == at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK,
        before != at::CuBLASReductionOption::DisallowReducedPrecisionDisallowSplitK);
  }

  const bool counts_;
};

// Whether cuBLAS may round partial sums of products of this tensor to 16 bits.
inline bool sums_in_16_bits(const at::Tensor& t) {
  return t.is_cuda() && (t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16);
}

}  // namespace fusebox::aten
