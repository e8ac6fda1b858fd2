#include "passes/schedule/column_ends.h"

#include <algorithm>
#include <set>

#include "ir/domain/domain.h"

namespace fusebox {

using Names = StepDraft::Names;

// Sorts the tensors into groups: that of the rows, and one for each sum with the ops behind it.
class ColumnEndsFinder {
 public:
  ColumnEndsFinder(const Graph& g, const ReductionSpace& space, FreshNames& names, StepDraft& steps)
      : g_(g),
        space_(space),
        names_(names),
        steps_(steps),
        readers_(uses(g)),
        joined_(g.values.size()),
        sums_(g.values.size()),
        instances_(g.ops.size()) {
    for (uint32_t i = 0; i < joined_.size(); ++i) joined_[i] = ValueId(i);
  }

  std::optional<ColumnEnds> run(const std::map<std::string, std::string>& cached) {
    ColumnEnds ends;
    find_sums();
    const auto ops = tensor_ops(g_);
    for (size_t i = ops.size(); i-- > 0;) {
      const Op& op = g_[ops[i]];
      const ValueId v = op.results[0];
      if (!has_loops(v)) continue;
      auto& own = instances_[ops[i].index];
      if (is_end(v) || std::ranges::count(space_.columns, v) > 0)
        own = {{g_[v].name, sums_[v.index]}};
      else
        own = instances_of(v, g_[v].name);
      sort(own, ends);
    }
    for (ValueId v : inputs(g_)) {
      if (!g_.is_tensor(v)) continue;
      const auto it = cached.find(g_[v].name);
      if (it == cached.end()) {
        is_read_by_both_ = is_read_by_both_ || (has_loops(v) && has_readers_of_both(v));
        continue;
      }
      const Instances own = instances_of(v, it->second);
      sort(own, ends);
      for (const Instance& instance : own) ends.copies_[it->first].push_back(instance.name);
    }
    if (are_too_many_) return std::nullopt;
    ends.are_needed_ = is_read_by_both_;
    return ends;
  }

 private:
  // A tensor, or a copy of one, and the sum from which its loops come: none for those of the rows.
  struct Instance {
    std::string name;
    ValueId sum;
  };
  using Instances = std::vector<Instance>;

  // Others are computed by every thread that needs them.
  bool has_loops(ValueId v) const { return !g_.tensor_of(v).logical.empty(); }
  // Whether the tensor depends on a column sum, and is none.
  bool is_end(ValueId v) const { return space_.is_of_columns(v) && std::ranges::count(space_.columns, v) == 0; }

  ValueId root(ValueId v) {
    while (joined_[v.index] != v) v = joined_[v.index] = joined_[joined_[v.index].index];
    return v;
  }

  // Finds the sum of each tensor behind one, and joins the others with what they read: their loops come from one another.
  void find_sums() {
    for (ValueId sum : space_.columns) sums_[sum.index] = sum;
    for (OpId id : tensor_ops(g_)) {
      const Op& op = g_[id];
      if (!is_end(op.results[0])) {
        for (ValueId v : op.results) joined_[root(v).index] = root(op.results[0]);
        for (ValueId v : op.operands)
          if (v && g_.is_tensor(v) && has_loops(v)) joined_[root(v).index] = root(op.results[0]);
        continue;
      }
      for (ValueId v : op.operands)
        if (v && g_.is_tensor(v) && space_.is_of_columns(v))
          for (ValueId result : op.results) sums_[result.index] = sums_[v.index];
    }
    for (ValueId sum : space_.columns) sums_[sum.index] = {};
  }

  // The sum from which the loops of a tensor come that depends on none: only if nothing joins it to the rows.
  ValueId group_of(ValueId v) {
    if (root(v) == root(space_.reference)) return {};
    for (OpId id : tensor_ops(g_))
      if (is_end(g_[id].results[0]))
        for (ValueId from : g_[id].operands)
          if (from && g_.is_tensor(from) && !space_.is_of_columns(from) && root(from) == root(v))
            return sums_[g_[id].results[0].index];
    return {};
  }

  // The instances of a tensor whose readers have theirs. It stays in its group, or in that of all its readers. A reader
  // of another group gets its own.
  Instances instances_of(ValueId v, const std::string& name) {
    if (are_too_many_) return {};
    Instances users;
    bool is_output = false;
    for (OpId reader : readers_[v.index]) {
      is_output = is_output || g_[reader].kind == OpKind::kOutput;
      if (reads_by_loops(g_, reader, v))
        users.insert(users.end(), instances_[reader.index].begin(), instances_[reader.index].end());
    }
    // An output that is an input as well is stored from the input, not from its copy.
    const bool may_move = !is_output || g_[g_[v].def].kind == OpKind::kInput;
    if (may_move && !users.empty() &&
        std::ranges::all_of(users, [&](const Instance& user) { return user.sum == users[0].sum; }))
      return {{name, users[0].sum}};
    Instances result{{name, group_of(v)}};
    for (const Instance& user : users) {
      if (user.sum == result[0].sum) continue;
      constexpr int kMostCopies = 16;
      is_read_by_both_ = true;
      are_too_many_ = ++copies_ > kMostCopies || demands(g_[g_[v].def].kind, kReduction);
      if (are_too_many_) return {};
      result.push_back({names_.tensor(name), user.sum});
      steps_.recompute(name, user.name, result.back().name);
    }
    return result;
  }

  bool has_readers_of_both(ValueId v) const {
    std::set<ValueId> groups;
    for (OpId reader : readers_[v.index])
      for (const Instance& user : instances_[reader.index]) groups.insert(user.sum);
    return groups.size() > 1;
  }

  void sort(const Instances& instances, ColumnEnds& ends) const {
    for (const Instance& instance : instances)
      (instance.sum ? ends.ends_[g_[instance.sum].name] : ends.rows_).push_back(instance.name);
  }

  const Graph& g_;
  const ReductionSpace& space_;
  FreshNames& names_;
  StepDraft& steps_;
  const std::vector<std::vector<OpId>> readers_;
  std::vector<ValueId> joined_;       // by value: another value whose loops come from where its own do, or itself
  std::vector<ValueId> sums_;         // by value: the column sum that it is behind
  std::vector<Instances> instances_;  // by op
  int copies_ = 0;
  bool is_read_by_both_ = false, are_too_many_ = false;
};

std::optional<ColumnEnds> ColumnEnds::split_off(const Graph& fusion, const ReductionSpace& space,
                                                const std::map<std::string, std::string>& cached, FreshNames& names,
                                                StepDraft& steps) {
  return ColumnEndsFinder(fusion, space, names, steps).run(cached);
}

bool ColumnEnds::are_few(const Graph& fusion, const ReductionSpace& space) {
  std::map<std::string, std::string> cached;  // all that may be
  for (ValueId v : inputs(fusion)) cached.emplace(fusion[v].name, fusion[v].name);
  FreshNames names(fusion);
  StepDraft steps;
  return split_off(fusion, space, cached, names, steps).has_value();
}

void ColumnEnds::each(const std::string& reference, StepDraft& steps, Like like) const {
  // Copies of outputs are behind what they copy, or in front of it.
  std::map<std::string, std::string> beside;
  for (const Step& step : steps.steps())
    if (step.kind == StepKind::kCacheBefore || step.kind == StepKind::kCacheFork)
      beside[step.operands[0].value] = step.results[0];
  const auto all_of = [&](const Names& tensors) {
    Names result;
    for (const std::string& name : tensors) {
      if (name != reference) result.push_back(name);
      if (const auto it = beside.find(name); it != beside.end() && it->second != reference)
        result.push_back(it->second);
    }
    return result;
  };
  (steps.*like)(reference, all_of(rows_));
  for (const auto& [sum, tensors] : ends_) (steps.*like)(sum, all_of(tensors));
}

void ColumnEnds::transform(const std::string& reference, StepDraft& steps) const {
  each(reference, steps, &StepDraft::transform_like);
}

void ColumnEnds::parallelize(const std::string& reference, StepDraft& steps) const {
  each(reference, steps, &StepDraft::parallelize_like);
}

}  // namespace fusebox
