// Shared memory: which buffers lie on one another, and where each begins.
//
// A buffer lives from the first statement that touches it to the last, in the order of the tree; a serial loop that
// holds some of these statements, and not all, is part of its life as a whole. Two buffers whose lives do not meet may
// take one slot: synchronisation (lower_sync.cc) then puts a barrier between the last access to the one and the first
// to the other. Slots stand one after another, each at a multiple of 128 bytes, which serves every vector width and
// swizzle.
#include <algorithm>

#include "passes/lower/lowering.h"

namespace fusebox::lowering {
namespace {

struct Life {
  size_t first = SIZE_MAX, last = 0;
  void take(size_t from, size_t to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
  bool meets(const Life& other) const { return first <= other.last && other.first <= last; }
};

class LifePlanner {
 public:
  explicit LifePlanner(const Lowering& l) : l_(l), lives_(l.g.values.size()) {
    for (const Statement& s : l.tree.statements)
      for (ValueId v : shared_of(s)) ++totals_[v];
    walk(l.tree.top);
  }

  const Life& of(ValueId v) const { return lives_[v.index]; }

 private:
  // The buffers that a range of statements touches, and how often.
  using Touched = std::map<ValueId, size_t>;

  Touched walk(const std::vector<TreeChild>& children) {
    Touched all;
    for (const TreeChild& c : children) {
      const size_t from = next_;
      const Touched inside = c.is_node ? walk(l_.tree.children[c.index]) : touch(l_.tree.statements[c.index]);
      const bool repeats = c.is_node && is_real_loop(l_.tree.nodes[c.index].parallel);
      for (const auto& [v, count] : inside) {
        all[v] += count;
        if (repeats && count < totals_[v]) lives_[v.index].take(from, next_ - 1);
      }
    }
    return all;
  }

  Touched touch(const Statement& s) {
    Touched result;
    for (ValueId v : shared_of(s)) {
      ++result[v];
      lives_[v.index].take(next_, next_);
    }
    ++next_;
    return result;
  }

  std::vector<ValueId> shared_of(const Statement& s) const {
    std::vector<ValueId> result;
    for (const auto* list : {&l_.g[s.op].operands, &l_.g[s.op].results})
      for (ValueId v : *list)
        if (v && l_.g.is_tensor(v) && l_.buffers[v.index].memory == MemoryType::kShared)
          if (list == &l_.g[s.op].results || !l_.options.defects.has(Defect::kSharedReusedEarly)) result.push_back(v);
    return result;
  }

  const Lowering& l_;
  std::vector<Life> lives_;
  Touched totals_;
  size_t next_ = 0;
};

}  // namespace

void Lowering::plan_shared_slots() {
  std::vector<ValueId> shared;
  for (const Nest& nest : plan.nests)
    for (ValueId v : g[nest.op].results)
      if (!buffers[v.index].is_parameter && buffers[v.index].memory == MemoryType::kShared) shared.push_back(v);
  if (shared.empty()) return;
  const LifePlanner lives(*this);
  for (ValueId v : shared) {
    const auto fits = [&](const std::vector<ValueId>& slot) {
      return std::none_of(slot.begin(), slot.end(), [&](ValueId other) { return lives.of(v).meets(lives.of(other)); });
    };
    auto slot = std::find_if(shared_slots.begin(), shared_slots.end(), fits);
    if (slot == shared_slots.end()) slot = shared_slots.insert(slot, std::vector<ValueId>());
    buffers[v.index].slot = static_cast<uint32_t>(slot - shared_slots.begin());
    slot->push_back(v);
  }
}

void Lowering::allocate_shared() {
  for (const auto& slot : shared_slots) {
    ValueId size;
    for (ValueId v : slot) {
      Buffer& b = buffers[v.index];
      // As the host computes it, where nothing is known of a nest: that its loops run is no fact out here.
      algebra.clear();
      Symbols symbols(g, classes, algebra);
      const ValueId count = emit_form(elements_of(symbols, b));
      const ValueId bytes = kernel.mul(count, kernel.index(size_bytes(g[v].dtype)));
      const ValueId rounded = kernel.mul(kernel.ceil_div(bytes, kernel.index(128)), kernel.index(128));
      size = size ? kernel.maximum(size, rounded) : rounded;
      b.kernel_value = kernel.allocate(data_dtype(g[v].dtype), MemoryType::kShared, count, shared_end, 16,
                                       "T" + std::to_string(g[v].tensor.index));
    }
    shared_end = kernel.add(shared_end, size);
  }
}

}  // namespace fusebox::lowering
