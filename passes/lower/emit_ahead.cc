// Emits loads that run ahead of their loop (passes/plan/ahead.h). A load for iteration k is the loop's own statement with
// k for the loop's index, so its conditions are those of that iteration.
#include <algorithm>
#include <utility>

#include "passes/lower/kernel_emitter.h"
#include "passes/plan/ahead.h"

namespace fusebox {

void KernelEmitter::begin_ahead(uint32_t node, ValueId end) {
  const auto tensors = tensors_ahead(plan_, node);
  if (tensors.empty()) return;
  Ahead& ahead = ahead_[node];
  ahead = {end, children_ahead(plan_, node), {}};
  // A loop of few iterations needs no buffers for more.
  const int64_t depth = std::min(g_.tensor_of(tensors[0]).circular_depth, kernel_.constant_of(end).value_or(INT64_MAX));
  for (int64_t stage = 1; stage < std::max<int64_t>(depth, 2); ++stage) {
    auto& buffers = ahead.stages.emplace_back();
    for (const ValueId v : tensors) {
      allocate_local(plan_.buffer_of(v));
      buffers[v] = tensor(v);
    }
  }
  if (defects().has(Defect::kAheadNotFilled)) return;
  for (size_t stage = 0; stage < ahead.stages.size(); ++stage)
    fill_ahead(node, ahead.stages[stage], kernel_.index(static_cast<int64_t>(stage)));
}

bool KernelEmitter::is_ahead(uint32_t node, size_t child) const {
  const auto ahead = ahead_.find(node);
  return ahead != ahead_.end() && std::ranges::count(ahead->second.children, child) > 0;
}

void KernelEmitter::emit_ahead(uint32_t node) {
  const auto it = ahead_.find(node);
  if (it == ahead_.end()) return;
  const auto& stages = it->second.stages;
  const ValueId now = node_index_[node];
  const auto later = [&](size_t k) { return kernel_.add(now, kernel_.index(static_cast<int64_t>(k))); };
  loaded_before_ = stages[0];
  emit_children_ahead(node);
  for (size_t k = 1; k < stages.size(); ++k) {
    loaded_before_ = stages[k];
    fill_ahead(node, stages[k - 1], later(k));
  }
  loaded_before_.clear();
  fill_ahead(node, stages.back(), defects().has(Defect::kAheadSameIteration) ? now : later(stages.size()));
}

void KernelEmitter::fill_ahead(uint32_t node, const std::map<ValueId, ValueId>& buffers, ValueId at) {
  std::map<ValueId, ValueId> own;
  for (const auto& [v, buffer] : buffers) own[v] = std::exchange(tensors_[v.index], buffer);
  const ValueId index = std::exchange(node_index_[node], at);
  const ValueId is_there = kernel_.compare(OpKind::kLt, at, ahead_.at(node).end);
  guarded(defects().has(Defect::kAheadUnguarded) ? kernel_.bit(true) : is_there, [&] { emit_children_ahead(node); });
  node_index_[node] = index;
  for (const auto& [v, buffer] : own) tensors_[v.index] = buffer;
}

void KernelEmitter::emit_children_ahead(uint32_t node) {
  for (const size_t child : ahead_.at(node).children) emit_child(plan_.tree.children[node][child]);
}

}  // namespace fusebox
