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
        sums_(g.values.size()),
        instances_(g.ops.size()) {}

  std::optional<ColumnEnds> run(const std::map<std::string, std::string>& cached) {
    ColumnEnds ends;
    find_sums();
    const auto ops = tensor_ops(g_);
    for (size_t i = ops.size(); i-- > 0;) {
      const Op& op = g_[ops[i]];
      const ValueId v = op.results[0];
      if (!has_loops(v)) continue;
      auto& own = instances_[ops[i].index];
      if (space_.is_of_columns(v))
        own = {{g_[v].name, sums_[v.index]}};
      else
        own = instances_of(v, g_[v].name);
      sort(own, ends);
    }
    for (ValueId v : inputs(g_)) {
      if (!g_.is_tensor(v) || !has_loops(v)) continue;
      const auto it = cached.find(g_[v].name);
      if (it == cached.end()) {
        is_read_by_both_ = is_read_by_both_ || has_readers_of_both(v);
        continue;
      }
      const Instances& own = copies_of_inputs_[v] = instances_of(v, it->second);
      sort(own, ends);
      for (const Instance& instance : own) ends.copies_[it->first].push_back(instance.name);
    }
    if (are_too_many_ || (is_read_by_both_ && !are_rows_joined(cached))) return std::nullopt;
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

  // Finds the sum of each tensor behind one.
  void find_sums() {
    for (ValueId sum : space_.columns)
      for (ValueId result : g_[g_[sum].def].results) sums_[result.index] = sum;
    for (OpId id : tensor_ops(g_))
      if (is_end(g_[id].results[0]))
        for (ValueId v : g_[id].operands)
          if (v && g_.is_tensor(v) && sums_[v.index])
            for (ValueId result : g_[id].results) sums_[result.index] = sums_[v.index];
    for (ValueId sum : space_.columns)
      for (ValueId result : g_[g_[sum].def].results) sums_[result.index] = {};
  }

  // The instances of a tensor whose readers have theirs. It stays with the rows if one of these reads it, or none does, and
  // goes to the sum of its first reader otherwise. A reader of another group gets its own.
  Instances instances_of(ValueId v, const std::string& name) {
    if (are_too_many_) return {};
    Instances users;
    for (OpId reader : readers_[v.index])
      if (reads_by_loops(g_, reader, v))
        users.insert(users.end(), instances_[reader.index].begin(), instances_[reader.index].end());
    const bool is_of_rows = users.empty() || std::ranges::any_of(users, [](const Instance& user) { return !user.sum; });
    Instances result{{name, is_of_rows ? ValueId() : users[0].sum}};
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

  // Whether each tensor of the rows is joined to the reference by others of them, or by inputs that have no copy.
  bool are_rows_joined(const std::map<std::string, std::string>& cached) const {
    std::vector<ValueId> parents(g_.values.size());
    for (uint32_t i = 0; i < parents.size(); ++i) parents[i] = ValueId(i);
    const auto root = [&](ValueId v) {
      while (parents[v.index] != v) v = parents[v.index] = parents[parents[v.index].index];
      return v;
    };
    const auto is_input = [&](ValueId v) { return g_[g_[v].def].kind == OpKind::kInput; };
    const auto is_of_rows = [&](ValueId v) {
      if (!has_loops(v)) return false;
      if (is_input(v) && !cached.contains(g_[v].name)) return true;
      const Instances& own = is_input(v) ? copies_of_inputs_.at(v) : instances_[g_[v].def.index];
      return std::ranges::any_of(own, [](const Instance& instance) { return !instance.sum; });
    };
    const auto ops = tensor_ops(g_);
    for (OpId id : ops) {
      if (!is_of_rows(g_[id].results[0])) continue;
      for (ValueId v : g_[id].operands)
        if (v && g_.is_tensor(v) && reads_by_loops(g_, id, v) && is_of_rows(v))
          parents[root(g_[g_[v].def].results[0]).index] = root(g_[id].results[0]);
    }
    return std::ranges::all_of(ops, [&](OpId id) {
      const ValueId v = g_[id].results[0];
      return !is_of_rows(v) || root(v) == root(g_[g_[space_.reference].def].results[0]);
    });
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
  std::vector<ValueId> sums_;         // by value: the column sum that it is behind
  std::vector<Instances> instances_;  // by op
  std::map<ValueId, Instances> copies_of_inputs_;
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
