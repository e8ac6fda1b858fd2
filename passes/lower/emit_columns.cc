// Emits loops over the columns of a thread, each of which the threads of the block reduce. Such a loop is cut in two, so
// that the values of several columns are exchanged at once, behind the same barriers (CudaEmitter::exchanged_together):
//
//   for v < 4 { init; main; final }   →   for v < 4 { init; main }   4 x block_reduce   for v < 4 { store }
//
// The bits are those of the loop: each value is combined as it would be alone.
#include <algorithm>

#include "passes/lower/kernel_emitter.h"

namespace fusebox {

int64_t KernelEmitter::at_once(OpId op) const {
  constexpr int64_t kBytes = 16;  // of a list for each thread (KernelPlan::block_workspaces)
  int64_t widest = 1;
  for (ValueId v : g_[op].results) widest = std::max(widest, size_bytes(accumulator_dtype(g_[v].dtype)));
  return kBytes / widest;
}

std::optional<KernelEmitter::Columns> KernelEmitter::columns_of(uint32_t node) {
  constexpr int64_t kMostCount = 16;
  const LoopNode& loop = plan_.tree.nodes[node];
  if (is_thread(loop.parallel) || plan_.strips.contains(node) || plan_.unswitched.contains(node)) return std::nullopt;
  const auto& children = plan_.tree.children[node];
  size_t finals = children.size();
  while (finals > 0 && reduces_in_block(children[finals - 1])) --finals;
  if (finals == children.size()) return std::nullopt;
  for (size_t i = 0; i < children.size(); ++i)
    if (children[i].is_node || is_synchronized(node, i) || is_ahead(node, i) ||
        plan_.statements[children[i].index].vector)
      return std::nullopt;
  for (size_t i = finals; i < children.size(); ++i)
    if (at_once(plan_.tree.statements[children[i].index].op) == 1) return std::nullopt;
  const auto count = constant_count(node);
  if (!count || *count < 2 || *count > kMostCount) return std::nullopt;
  return Columns{*count, finals};
}

bool KernelEmitter::has_columns() {
  for (uint32_t n = 0; n < plan_.tree.nodes.size(); ++n)
    if (columns_of(n)) return true;
  return false;
}

void KernelEmitter::emit_columns(uint32_t node, const Columns& columns) {
  const auto& children = plan_.tree.children[node];
  const auto finals = std::span(children).subspan(columns.finals);
  const ValueId count = kernel_.index(columns.count);
  // What a thread has of each column, and then the results: by final statement, then result.
  std::vector<std::vector<ValueId>> arrays;
  for (const TreeChild& child : finals) {
    auto& list = arrays.emplace_back();
    for (ValueId v : g_[plan_.tree.statements[child.index].op].results)
      list.push_back(kernel_.allocate(accumulator_dtype(g_[v].dtype), MemoryType::kLocal, count, {}, 0,
                                      "T" + std::to_string(g_[v].tensor.index) + "_columns"));
  }
  const auto load = [&](const std::vector<ValueId>& list, ValueId at) {
    std::vector<ValueId> values;
    for (ValueId array : list) values.push_back(kernel_.load(array, at));
    return values;
  };
  const auto store = [&](const std::vector<ValueId>& list, ValueId at, const std::vector<ValueId>& values) {
    for (size_t i = 0; i < list.size(); ++i) kernel_.store(list[i], at, values[i]);
  };
  allocate_at(node);  // both loops may use it
  node_index_[node] = kernel_.begin_for(kernel_.index(0), count, kernel_.index(1), true);
  for (size_t i = 0; i < columns.finals; ++i) emit_child(children[i]);
  for (size_t i = 0; i < finals.size(); ++i) {
    Site site = site_of(finals[i].index);
    store(arrays[i], node_index_[node],
          emit_totals(site.place.op, emit_form(site.view.algebra, accumulator_place(site))));
  }
  kernel_.end();
  for (size_t i = 0; i < finals.size(); ++i) {
    const OpId op = plan_.tree.statements[finals[i].index].op;
    std::vector<std::vector<ValueId>> values;
    for (int64_t k = 0; k < columns.count; ++k) values.push_back(load(arrays[i], kernel_.index(k)));
    for (auto& list : values) list = emit_block_reduce(g_[op], list, plan_.exchanges.at(op), at_once(op));
    if (defects().has(Defect::kColumnsTurned)) std::ranges::reverse(values);
    for (int64_t k = 0; k < columns.count; ++k) store(arrays[i], kernel_.index(k), values[static_cast<size_t>(k)]);
  }
  node_index_[node] = kernel_.begin_for(kernel_.index(0), count, kernel_.index(1), true);
  for (size_t i = 0; i < finals.size(); ++i) {
    Site site = site_of(finals[i].index);
    write_result(site, [&] { return load(arrays[i], node_index_[node]); });
  }
  kernel_.end();
}

}  // namespace fusebox
