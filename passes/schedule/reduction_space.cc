#include "passes/schedule/reduction_space.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/infer/is_library.h"
#include "ir/scalar/scalar_form.h"

namespace fusebox {

namespace {

// Classes of the axes that ops read at the same place.
class Classes {
 public:
  explicit Classes(const Graph& g) : parent_(g.domains.size()) {
    for (uint32_t i = 0; i < parent_.size(); ++i) parent_[i] = i;
    for (OpId id : tensor_ops(g)) {
      const Op& op = g[id];
      for (size_t k = 0; k < op.operands.size(); ++k)
        for (DomainPair pair : map_producer_to_consumer(g, id, k)) unite(pair.producer, pair.consumer);
      // The results of one op have the same axes.
      const auto& first = g.tensor_of(op.results[0]).logical;
      for (ValueId v : op.results)
        for (size_t i = 0; i < first.size(); ++i) unite(first[i], g.tensor_of(v).logical[i]);
    }
  }

  uint32_t of(DomainId d) const {
    uint32_t i = d.index;
    while (parent_[i] != i) i = parent_[i];
    return i;
  }

 private:
  void unite(DomainId a, DomainId b) { parent_[std::max(of(a), of(b))] = std::min(of(a), of(b)); }

  std::vector<uint32_t> parent_;
};

std::string place(const Graph& g, ValueId v) { return "%" + g[v].name; }

bool is_counted(const Graph& g, DomainId d) {
  return g[d].iter_type == IterType::kIteration || g[d].iter_type == IterType::kReduction;
}

// Why an op cannot stand in a kernel of reductions; empty if it can.
std::string refused_op(const Graph& g, OpId id) {
  const Op& op = g[id];
  const ValueId v = op.results[0];
  switch (family_of(op.kind)) {
    case AxisRule::kRegrouped:
    case AxisRule::kResized:
    case AxisRule::kJoined:
      return place(g, v) + " is a " + std::string(row_of(op.kind).text) + ", which changes the axes";
    case AxisRule::kWhole:
    case AxisRule::kSame:
    case AxisRule::kReduced:
    case AxisRule::kExpanded:
    case AxisRule::kMasked:
    case AxisRule::kPlaced:
    case AxisRule::kPermuted:
    case AxisRule::kSqueezed:
    case AxisRule::kSelected:
    case AxisRule::kChosen:
    case AxisRule::kChosenWithin:
    case AxisRule::kOnAxis:
      break;
  }
  if (is_library(g, op))
    return place(g, v) + " is a " + std::string(row_of(op.kind).text) + ", which ATen alone computes";
  if (op.kind == OpKind::kScatter) return place(g, v) + " is a scatter, whose places data decide";
  if (!g.tensor_of(v).devices.empty()) return place(g, v) + " is spread over devices";
  for (size_t k = 0; k < op.operands.size(); ++k)
    if (op.operands[k] && g.is_tensor(op.operands[k]) && reads_by_data(g, op, k) &&
        g[g[op.operands[k]].def].kind != OpKind::kInput)
      return place(g, op.operands[k]) + " is read where data tell, so it must be in memory first";
  return {};
}

}  // namespace

bool reads_by_loops(const Graph& g, OpId op, ValueId tensor) {
  for (size_t k = 0; k < g[op].operands.size(); ++k)
    if (g[op].operands[k] == tensor && !reads_by_data(g, g[op], k)) return true;
  return false;
}

std::vector<OpId> tensor_ops(const Graph& g) {
  std::vector<OpId> result;
  for (OpId id : g[Graph::body()].ops)
    if (g[id].kind != OpKind::kInput && !g[id].results.empty() && g.is_tensor(g[id].results[0])) result.push_back(id);
  return result;
}

bool are_brought_together(const Graph& g, const std::vector<ValueId>& reductions) {
  std::vector<ValueId> of(g.values.size());  // by value: the reduction on which it depends
  for (OpId id : tensor_ops(g)) {
    const Op& op = g[id];
    ValueId source;
    if (std::ranges::count(reductions, op.results[0]) > 0) {
      source = op.results[0];
    } else {
      for (ValueId v : op.operands) {
        if (!v || !of[v.index]) continue;
        if (source && source != of[v.index]) return true;
        source = of[v.index];
      }
    }
    for (ValueId v : op.results) of[v.index] = source;
  }
  return false;
}

namespace {

// Whether an op behind a reduction reads a tensor whose loops come from the rows, because it is joined to them: in
// `log sum exp(x - m) + m`, the last op has the loops of `x - m`.
bool read_what_rows_read(const Graph& g, const ReductionSpace& space) {
  const auto ops = tensor_ops(g);
  const auto has_loops = [&](ValueId v) { return v && g.is_tensor(v) && !g.tensor_of(v).logical.empty(); };
  std::vector<bool> is_of_rows(g.values.size());
  bool is_done = false;
  const auto visit = [&](OpId id) {
    const Op& op = g[id];
    const ValueId v = op.results[0];
    const bool is_reduction = demands(op.kind, kReduction);
    if (space.depth_of(v) > 0 && !is_reduction) return;
    const auto is_marked = [&](ValueId from) {
      return has_loops(from) && is_of_rows[from.index] && reads_by_loops(g, id, from);
    };
    if (!is_reduction && !space.is_full(v) && !is_of_rows[v.index] && std::ranges::none_of(op.operands, is_marked))
      return;
    const auto mark = [&](ValueId of) {
      if (!has_loops(of) || is_of_rows[of.index]) return;
      is_of_rows[of.index] = true;
      is_done = false;
    };
    if (!is_reduction) mark(v);
    for (ValueId from : op.operands)
      if (from && reads_by_loops(g, id, from)) mark(from);
  };
  // In both orders, so that a chain takes one round.
  while (!is_done) {
    is_done = true;
    std::ranges::for_each(ops | std::views::reverse, visit);
    std::ranges::for_each(ops, visit);
  }
  return std::ranges::any_of(ops, [&](OpId id) {
    return space.depth_of(g[id].results[0]) > 0 && !demands(g[id].kind, kReduction) &&
           std::ranges::any_of(g[id].operands, [&](ValueId v) { return has_loops(v) && is_of_rows[v.index]; });
  });
}

}  // namespace

bool are_awaited(const Graph& g, const ReductionSpace& space) {
  if (are_brought_together(g, space.reductions) || read_what_rows_read(g, space)) return true;
  return std::ranges::any_of(tensor_ops(g), [&](OpId id) {
    const ValueId v = g[id].results[0];
    return space.depth_of(v) > 0 && std::ranges::any_of(logical_without_reductions(g, g.tensor_of(v)), [&](DomainId d) {
             const DomainId axis = space.axis_of(d);
             return axis && space.is_reduced(axis);
           });
  });
}

bool stores_rows(const Graph& g, const ReductionSpace& space) {
  return std::ranges::any_of(outputs(g),
                             [&](const OutputRef& out) { return g.is_tensor(out.value) && space.is_full(out.value); });
}

bool has_moments(const Graph& g, const ReductionSpace& space) {
  return std::ranges::any_of(space.reductions, [&](ValueId v) { return g[g[v].def].kind == OpKind::kWelford; });
}

int64_t most_of(const SizeClasses& sizes, const std::vector<DomainId>& domains) {
  int64_t result = 1;
  for (DomainId d : domains)
    if (__builtin_mul_overflow(result, std::max<int64_t>(sizes.of(d).most, 1), &result))
      return std::numeric_limits<int64_t>::max();
  return result;
}

int64_t least_of(const SizeClasses& sizes, const std::vector<DomainId>& domains) {
  return domains.size() == 1 ? below_class(sizes.of(domains[0])) + 1 : 0;
}

bool ReductionSpace::is_reduced(DomainId axis) const { return std::ranges::count(reduced, axis) > 0; }

std::vector<ValueId> ReductionSpace::full_inputs(const Graph& g) const {
  std::vector<ValueId> result = inputs(g);
  std::erase_if(result, [&](ValueId v) { return !g.is_tensor(v) || !is_full(v); });
  return result;
}

bool ReductionSpace::differs_by_row(const Graph& g, ValueId v) const {
  return std::ranges::any_of(g.tensor_of(v).logical, [&](DomainId d) {
    return g[d].iter_type == IterType::kIteration && axis_of(d) && !is_reduced(axis_of(d));
  });
}

namespace {

// The first result of each reduction. Empty if there is none, or if some op cannot stand in a kernel of reductions.
std::vector<ValueId> reductions_of(const Graph& g, std::string& why) {
  std::vector<ValueId> result;
  for (OpId id : tensor_ops(g)) {
    if (why = refused_op(g, id); !why.empty()) return {};
    if (demands(g[id].kind, kReduction)) result.push_back(g[id].results[0]);
  }
  if (result.empty()) why = "nothing is reduced";
  return result;
}

}  // namespace

std::optional<ReductionSpace> ReductionSpace::find(const Graph& g, std::string& why) {
  return find_beside(g, Others::kNone, why);
}

std::optional<ReductionSpace> ReductionSpace::find_with_parts(const Graph& g, std::string& why) {
  return find_beside(g, Others::kParts, why);
}

std::optional<ReductionSpace> ReductionSpace::find_beside(const Graph& g, Others others, std::string& why) {
  ReductionSpace space;
  space.reductions = reductions_of(g, why);
  if (space.reductions.empty()) return std::nullopt;
  // The reference has the most axes. Beside parts it reduces the most, as a part keeps what it does not reduce.
  const auto axes_of = [&](ValueId v) {
    return std::ranges::count_if(g.tensor_of(v).logical, [&](DomainId d) {
      return others == Others::kParts ? g[d].iter_type == IterType::kReduction : is_counted(g, d);
    });
  };
  const ValueId main = *std::ranges::max_element(space.reductions, {}, axes_of);
  if (!space.find_axes_of(g, main, others, why) || !space.sort_tensors(g, why)) return std::nullopt;
  space.is_of_columns_.assign(g.values.size(), false);
  space.find_passes(g);
  return space;
}

std::optional<ReductionSpace> ReductionSpace::find_with_columns(const Graph& g, std::string& why) {
  std::vector<ValueId> all = reductions_of(g, why);
  std::ranges::stable_partition(all, [&](ValueId v) {
    const auto& axes = g.tensor_of(v).logical;
    return !axes.empty() && g[axes.back()].iter_type == IterType::kReduction;
  });
  std::string first_why;
  for (ValueId main : all) {
    ReductionSpace space;
    space.reductions = all;
    if (space.find_axes_of(g, main, Others::kColumns, why) && space.sort_tensors(g, why) &&
        space.sort_columns(g, why)) {
      space.find_passes(g);
      return space;
    }
    if (first_why.empty()) first_why = why;
  }
  if (!first_why.empty()) why = first_why;
  return std::nullopt;
}

bool ReductionSpace::find_axes_of(const Graph& g, ValueId main, Others others, std::string& why) {
  const Classes classes(g);
  reference = main;
  std::vector<DomainId> by_class(g.domains.size());
  for (DomainId d : g.tensor_of(reference).logical) {
    if (!is_counted(g, d)) continue;
    if (by_class[classes.of(d)]) {
      why = place(g, reference) + " reads two of its axes at the same place of another tensor";
      return false;
    }
    by_class[classes.of(d)] = d;
    (g[d].iter_type == IterType::kReduction ? reduced : kept).push_back(d);
  }
  if (reduced.empty()) {
    why = place(g, reference) + " reduces axes of one element alone";
    return false;
  }
  by_domain_.resize(g.domains.size());
  for (uint32_t i = 0; i < g.domains.size(); ++i) by_domain_[i] = by_class[classes.of(DomainId(i))];
  const std::set<DomainId> rows(reduced.begin(), reduced.end()), columns_of(kept.begin(), kept.end());
  std::set<DomainId> part;
  for (ValueId v : reductions) {
    std::set<DomainId> own;
    for (DomainId d : g.tensor_of(v).logical)
      if (g[d].iter_type == IterType::kReduction) own.insert(axis_of(d));
    if (own == rows) continue;
    const bool is_column = others == Others::kColumns && !own.empty() && own == columns_of;
    const bool is_part =
        others == Others::kParts && !own.empty() && std::ranges::includes(rows, own) && (part.empty() || own == part);
    if (!is_column && !is_part) {
      why = place(g, v) + " reduces other axes than " + place(g, reference);
      return false;
    }
    if (is_part) part = own;
    (is_part ? parts : columns).push_back(v);
  }
  std::erase_if(reductions,
                [&](ValueId v) { return std::ranges::count(columns, v) + std::ranges::count(parts, v) > 0; });
  if (others == Others::kColumns && columns.empty()) {
    why = "nothing is reduced over the axes that " + place(g, reference) + " keeps";
    return false;
  }
  if (others == Others::kParts && parts.empty()) {
    why = "no part of what " + place(g, reference) + " reduces is reduced by itself";
    return false;
  }
  return true;
}

bool ReductionSpace::sort_columns(const Graph& g, std::string& why) {
  is_of_columns_.assign(g.values.size(), false);
  for (ValueId v : columns)
    for (DomainId axis : reduced)
      if (std::ranges::none_of(g.tensor_of(v).logical, [&](DomainId d) {
            return g[d].iter_type == IterType::kIteration && axis_of(d) == axis;
          })) {
        why = place(g, v) + " lacks an axis that " + place(g, reference) + " reduces";
        return false;
      }
  for (OpId id : tensor_ops(g)) {
    const ValueId v = g[id].results[0];
    const bool is_column = std::ranges::count(columns, v) > 0;
    const bool depends = std::ranges::any_of(
        g[id].operands, [&](ValueId from) { return from && g.is_tensor(from) && is_of_columns_[from.index]; });
    if (!is_column && !depends) continue;
    for (ValueId result : g[id].results) is_of_columns_[result.index] = true;
    if (!depends) continue;
    if (differs_by_row(g, v) || demands(g[id].kind, kReduction)) {
      why = place(g, v) + " depends on a sum of columns";
      return false;
    }
  }
  return true;
}

namespace {

// Whether an axis is as long as another one of its class. One that a broadcast alone joins to it need not be: a reduced row
// stands beside what was reduced and beside what was gathered of it.
class Lengths {
 public:
  explicit Lengths(const Graph& g) : g_(g) {}

  bool are_same(DomainId a, DomainId b) {
    const ValueId m = g_[a].extent, n = g_[b].extent;
    if (m == n) return true;
    if (m && n && form_of(g_, m).equals(form_of(g_, n))) return true;
    if (!exact_) exact_.emplace(g_, AxisClassKind::kExact);
    return exact_->same(a, b);
  }

 private:
  const Graph& g_;
  std::optional<AxisClasses> exact_;
};

}  // namespace

bool ReductionSpace::sort_tensors(const Graph& g, std::string& why) {
  Lengths lengths(g);
  is_full_.assign(g.values.size(), false);
  depth_.assign(g.values.size(), 0);
  for (uint32_t i = 0; i < g.values.size(); ++i) {
    const ValueId v(i);
    // Values of ops that nothing reaches have no part in the program.
    if (!g.is_tensor(v) || !g[v].def) continue;
    std::set<DomainId> own;
    for (DomainId d : g.tensor_of(v).logical) {
      if (!is_counted(g, d)) continue;
      const DomainId axis = axis_of(d);
      if (!axis && g[g[v].def].kind == OpKind::kInput) continue;  // data choose along it
      if (!axis) {
        why = place(g, v) + " has an axis that " + place(g, reference) + " lacks";
        return false;
      }
      if (!own.insert(axis).second) {
        why = place(g, v) + " has an axis of " + place(g, reference) + " twice";
        return false;
      }
      const bool is_iterated = g[d].iter_type == IterType::kIteration;
      if (!is_iterated && g[d].iter_type != IterType::kReduction) continue;
      if (is_iterated && is_reduced(axis) && constant_integer(g, g[axis].extent) == 1 &&
          constant_integer(g, g[d].extent) != 1) {
        why = place(g, v) + " stretches an axis of one element that " + place(g, reference) + " reduces";
        return false;
      }
      if (!lengths.are_same(axis, d)) {
        why = place(g, v) + " stretches a broadcast to another length than " + place(g, reference) + " has there";
        return false;
      }
      if (is_iterated && is_reduced(axis)) is_full_[i] = true;
    }
  }
  return true;
}

void ReductionSpace::find_passes(const Graph& g) {
  const auto ops = tensor_ops(g);
  for (OpId id : ops) {
    int depth = 0;
    for (ValueId v : g[id].operands)
      if (v && g.is_tensor(v)) depth = std::max(depth, depth_[v.index]);
    if (demands(g[id].kind, kReduction)) ++depth;
    for (ValueId v : g[id].results) depth_[v.index] = depth;
  }
  passes_of_.assign(g.values.size(), {});
  for (const OutputRef& out : outputs(g))
    if (g.is_tensor(out.value) && is_full(out.value)) passes_of_[out.value.index].insert(depth_of(out.value));
  for (size_t i = ops.size(); i-- > 0;) {
    const Op& op = g[ops[i]];
    for (ValueId v : op.operands) {
      if (!v || !g.is_tensor(v) || !is_full(v)) continue;
      auto& own = passes_of_[v.index];
      if (demands(op.kind, kReduction))
        own.insert(depth_of(op.results[0]) - 1);
      else
        own.insert(passes_of_[op.results[0].index].begin(), passes_of_[op.results[0].index].end());
    }
  }
  for (const auto& own : passes_of_)
    if (!own.empty()) passes = std::max(passes, *own.rbegin() + 1);
}

}  // namespace fusebox
