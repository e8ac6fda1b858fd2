#include "passes/schedule/reduction_passes.h"

#include <algorithm>

namespace fusebox {

namespace {

// A tensor op, or a copy of one, in the pass for which it computes.
struct Instance {
  std::string name;  // of its first result
  int pass = 0;
};

class PassSplitter {
 public:
  PassSplitter(const Graph& g, const ReductionSpace& space, FreshNames& names, StepDraft& steps)
      : g_(g), space_(space), names_(names), steps_(steps), readers_(uses(g)), instances_(g.ops.size()) {}

  std::map<std::string, std::vector<std::string>> run(const std::map<std::string, std::string>& cached,
                                                      bool keeps_inputs) {
    const auto ops = tensor_ops(g_);
    for (size_t i = ops.size(); i-- > 0;) {
      const Op& op = g_[ops[i]];
      const ValueId v = op.results[0];
      if (demands(op.kind, kReduction))
        instances_[ops[i].index] = {{g_[v].name, space_.depth_of(v) - 1}};
      else if (space_.is_full(v))
        instances_[ops[i].index] = instances_of(v, g_[v].name);
    }
    std::map<std::string, std::vector<std::string>> copies;
    for (ValueId v : inputs(g_)) {
      const auto it = cached.find(g_[v].name);
      if (it == cached.end()) continue;
      auto& own = copies[it->first];
      if (!keeps_inputs)
        for (const Instance& instance : instances_of(v, it->second)) own.push_back(instance.name);
      if (own.empty()) own.push_back(it->second);
    }
    return copies;
  }

 private:
  // The instances of a tensor whose readers have theirs: one stays for the pass with the most readers, and every
  // reader in another pass gets its own.
  std::vector<Instance> instances_of(ValueId v, const std::string& name) {
    std::map<int, std::vector<Instance>> by_pass;
    bool is_output = false;
    for (OpId reader : readers_[v.index]) {
      if (g_[reader].kind == OpKind::kOutput) is_output = true;
      if (!reads_by_loops(g_, reader, v)) continue;  // it reads the input itself
      for (const Instance& instance : instances_[reader.index]) by_pass[instance.pass].push_back(instance);
    }
    int kept = 0;
    if (is_output)
      kept = space_.depth_of(v);
    else if (!by_pass.empty())
      kept = std::ranges::max_element(by_pass, {}, [](const auto& pass) { return pass.second.size(); })->first;
    else
      return {};
    std::vector<Instance> result{{name, kept}};
    for (const auto& [pass, users] : by_pass) {
      if (pass == kept) continue;
      for (const Instance& user : users) {
        result.push_back({names_.tensor(name), pass});
        steps_.recompute(name, user.name, result.back().name);
      }
    }
    return result;
  }

  const Graph& g_;
  const ReductionSpace& space_;
  FreshNames& names_;
  StepDraft& steps_;
  const std::vector<std::vector<OpId>> readers_;
  std::vector<std::vector<Instance>> instances_;  // by op
};

// Tensors with the pass in which they are computed, in groups that loops spread over.
class Groups {
 public:
  using Node = std::pair<ValueId, int>;
  void add(Node node) { parents_.try_emplace(node, node); }
  void unite(Node a, Node b) {
    add(a);
    add(b);
    parents_[first(a)] = first(b);
  }
  bool is_one() const {
    return std::ranges::all_of(parents_,
                               [&](const auto& p) { return first(p.first) == first(parents_.begin()->first); });
  }

 private:
  Node first(Node node) const {
    for (Node next = parents_.at(node); next != node; next = parents_.at(node)) node = next;
    return node;
  }
  std::map<Node, Node> parents_;
};

bool has_all_reduced_axes(const Graph& g, const ReductionSpace& space, ValueId v) {
  const auto& axes = g.tensor_of(v).logical;
  return std::ranges::all_of(space.reduced, [&](DomainId axis) {
    return std::ranges::any_of(
        axes, [&](DomainId d) { return g[d].iter_type == IterType::kIteration && space.axis_of(d) == axis; });
  });
}

}  // namespace

bool are_passes_connected(const Graph& g, const ReductionSpace& space) {
  Groups groups;
  for (OpId id : tensor_ops(g)) {
    const Op& op = g[id];
    const ValueId v = op.results[0];
    std::set<int> passes;
    if (demands(op.kind, kReduction))
      passes = {space.depth_of(v) - 1};
    else if (space.is_full(v))
      passes = space.passes_of(v);
    for (int pass : passes) {
      groups.add({v, pass});
      for (ValueId from : op.operands) {
        if (!from || !g.is_tensor(from) || !space.is_full(from)) continue;
        const OpId def = g[from].def;
        if (g[def].kind != OpKind::kInput)
          groups.unite({v, pass}, {g[def].results[0], pass});
        else if (reads_by_loops(g, id, from) && has_all_reduced_axes(g, space, from))
          groups.unite({v, pass}, {from, 0});
      }
    }
  }
  return groups.is_one();
}

std::map<std::string, std::vector<std::string>> split_passes(const Graph& g, const ReductionSpace& space,
                                                             const std::map<std::string, std::string>& cached,
                                                             bool keeps_inputs, FreshNames& names, StepDraft& steps) {
  return PassSplitter(g, space, names, steps).run(cached, keeps_inputs);
}

}  // namespace fusebox
