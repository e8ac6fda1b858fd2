// The step that assigns ops to a segment.
//
//   assign_step({"y", "z"}, "f_0", SegmentExecutor::kKernel)   →   assign of [%y, %z] name "f_0" by kernel
#pragma once

#include <string>
#include <vector>

#include "ir/module/module.h"

namespace fusebox {

// `ops`: their first results, by name.
inline Step assign_step(const std::vector<std::string>& ops, const std::string& name, SegmentExecutor executor) {
  Step step{StepKind::kAssign, {}, {}, {}};
  for (const std::string& op : ops) step.operands.push_back(StepOperand::of(op));
  step.attrs.set(AttrKey::kName, name);
  step.attrs.set_enum(AttrKey::kExecutor, executor);
  return step;
}

}  // namespace fusebox
