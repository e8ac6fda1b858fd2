// Finds how many elements a copy can move at once, by the classes of sizes and of memory. The launch will check what the
// kernel plan asks of sizes, strides and addresses; a width is taken only if its classes say that the checks hold.
//
//   // x[m, n] is bf16, contiguous and aligned to 16 bytes; its copy is looped over n in chunks of 8; 8 divides n
//   VectorWidths(view, scheduled).of({"x_in"})   // {8}
#pragma once

#include <span>
#include <string>
#include <vector>

#include "passes/plan/kernel_plan.h"
#include "passes/schedule/known_divisors.h"

namespace fusebox {

// `scheduled` is the view's fusion with its loops set, inlined outside of the innermost loops of the copies. A copy is a
// `set` whose innermost loop has a constant extent. The view and the graph must outlive this. All functions throw what the kernel plan throws.
class VectorWidths {
 public:
  VectorWidths(const ScheduleView& view, const Graph& scheduled);
  // By copy: the largest power of two that the innermost loop's extent and 16 bytes allow; 1 if nothing larger is shown to
  // be right.
  std::vector<int64_t> of(std::span<const std::string> copies) const;
  // To be called when steps behind the schedule have stated facts: they may show larger widths.
  void learn_facts();
  const std::shared_ptr<KernelPlan::Views>& views() const { return plan_.views; }

 private:
  const ScheduleView& view_;
  const Graph& scheduled_;
  KernelPlan plan_;
};

// Whether the classes show that the launch's checks of vectors hold. `plan` is that of the view's fusion with its schedule.
bool shows_vectors(const ScheduleView& view, const KernelPlan& plan);

}  // namespace fusebox
