// Reductions of a fusion: outputs, ops, sizes, dtypes.
#include <algorithm>

#include "fuzz/mutate/mutate_rules.h"
#include "fuzz/reduce/reduce_rules.h"

namespace fusebox::fuzz {
namespace {

std::optional<OpId> output_of(const Graph& g, const std::string& name) {
  for (OpId id : g[Graph::body()].ops)
    if (g[id].kind == OpKind::kOutput && g[g[id].operands[0]].name == name) return id;
  return std::nullopt;
}

const std::string& name_of(const Graph& g, OpId op) { return g[g[op].results[0]].name; }

// The op that computes a scalar.
std::optional<OpId> scalar_op(const Graph& g, const std::string& name) {
  const auto v = find_value(g, name);
  if (!v || g.is_tensor(*v) || !g[*v].def || g[g[*v].def].operands.empty()) return std::nullopt;
  return g[*v].def;
}

}  // namespace

std::vector<Edit> delete_outputs(const Case& c) {
  std::vector<Edit> edits;
  for (const OutputRef& o : outputs(c.fusion()))
    edits.push_back([name = c.fusion()[o.value].name](Case& to) {
      const auto id = output_of(to.fusion(), name);
      if (!id || outputs(to.fusion()).size() < 2) return false;
      FusionChange change;
      change.dropped.insert(*id);
      return change_fusion(to, change);
    });
  return edits;
}

std::vector<Edit> cut_ops(const Case& c) {
  std::vector<Edit> edits;
  for (OpId id : tensor_ops(c.fusion()))
    edits.push_back([name = name_of(c.fusion(), id)](Case& to) {
      const auto op = op_making(to.fusion(), name);
      if (!op) return false;
      // The results become inputs, so the steps on them go.
      std::vector<std::string> made;
      for (ValueId v : to.fusion()[*op].results) made.push_back(to.fusion()[v].name);
      if (to.steps())
        std::erase_if(steps_of(to), [&](const Step& s) {
          return s.kind != StepKind::kCacheAfter && s.operands.size() > 0 && s.kind != StepKind::kAssign &&
                 std::find(made.begin(), made.end(), s.operands[0].value) != made.end();
        });
      FusionChange change;
      change.cut.insert(*op);
      return change_fusion(to, change);
    });
  return edits;
}

std::vector<Edit> bypass_ops(const Case& c) {
  std::vector<Edit> edits;
  const Graph& g = c.fusion();
  for (OpId id : tensor_ops(g)) {
    if (g[id].results.size() != 1) continue;
    for (ValueId v : g[id].operands)
      if (v && g.is_tensor(v) && rank_of(g, v) == rank_of(g, g[id].results[0]))
        edits.push_back([name = name_of(g, id), other = g[v].name](Case& to) {
          const auto op = op_making(to.fusion(), name);
          const auto instead = find_value(to.fusion(), other);
          if (!op || !instead) return false;
          const auto& operands = to.fusion()[*op].operands;
          if (std::find(operands.begin(), operands.end(), *instead) == operands.end()) return false;
          FusionChange change;
          change.replaced[*op] = *instead;
          return change_fusion(to, change);
        });
  }
  return edits;
}

std::vector<Edit> fold_scalars(const Case& c) {
  std::vector<Edit> edits;
  const Graph& g = c.fusion();
  for (OpId id : ops_in_order(g)) {
    if (g[id].results.size() != 1 || !scalar_op(g, name_of(g, id))) continue;
    edits.push_back([name = name_of(g, id)](Case& to) {
      const auto op = scalar_op(to.fusion(), name);
      if (!op) return false;
      FusionChange change;
      change.folded.insert(*op);
      return change_fusion(to, change);
    });
    for (size_t k = 0; k < g[id].operands.size(); ++k)
      edits.push_back([name = name_of(g, id), k](Case& to) {
        const auto op = scalar_op(to.fusion(), name);
        if (!op || k >= to.fusion()[*op].operands.size()) return false;
        FusionChange change;
        change.replaced[*op] = to.fusion()[*op].operands[k];
        return change_fusion(to, change);
      });
  }
  return edits;
}

std::vector<Edit> delete_unread(const Case& c) {
  std::vector<Edit> edits;
  const Graph& g = c.fusion();
  const std::set<std::string> unread = unread_values(g);
  for (OpId id : g[Graph::body()].ops) {
    std::set<std::string> names;
    for (ValueId v : g[id].results)
      if (unread.contains(g[v].name)) names.insert(g[v].name);
    // A size may go alone; the results of an op go together.
    if (names.empty() || (g[id].kind != OpKind::kSize && names.size() < g[id].results.size())) continue;
    edits.push_back([names](Case& to) {
      FusionChange change;
      change.swept = names;
      return change_fusion(to, change);
    });
  }
  return edits;
}

std::vector<Edit> name_no_sizes(const Case& c) {
  std::vector<Edit> edits;
  const Graph& g = c.fusion();
  for (OpId id : g[Graph::body()].ops) {
    if (g[id].kind != OpKind::kSize) continue;
    for (ValueId v : g[id].results)
      edits.push_back([name = g[v].name](Case& to) {
        const auto symbol = find_value(to.fusion(), name);
        if (!symbol) return false;
        const auto extent = evaluate_integer(to.fusion(), *symbol, sizes_of(to.fusion(), to.inputs()));
        if (!extent) return false;
        FusionChange change;
        change.constants[*symbol] = *extent;
        return change_fusion(to, change);
      });
  }
  return edits;
}

std::vector<Edit> delete_aliases(const Case& c) {
  std::vector<Edit> edits;
  for (const OutputRef& o : outputs(c.fusion()))
    if (o.alias)
      edits.push_back([name = c.fusion()[o.value].name](Case& to) {
        const auto id = output_of(to.fusion(), name);
        if (!id) return false;
        FusionChange change;
        change.patched[*id] = {{to.fusion()[*id].operands[0]}, {}};
        return change_fusion(to, change);
      });
  return edits;
}

std::vector<Edit> simple_dtypes(const Case& c) {
  std::vector<Edit> edits;
  std::set<Dtype> dtypes;
  const Graph& g = c.fusion();
  for (const Value& v : g.values)
    if (v.dtype != Dtype::kIndex && v.dtype != Dtype::kFloat) dtypes.insert(v.dtype);
  for (Dtype d : dtypes)
    for (Dtype simple : {Dtype::kFloat, Dtype::kInt64}) {
      if (simple == d) continue;
      edits.push_back([d, simple](Case& to) {
        FusionChange change;
        change.dtypes[d] = simple;
        return change_fusion(to, change);
      });
    }
  return edits;
}

}  // namespace fusebox::fuzz
