// Steps of a Program: each is applied to the scheduled copy at once, so that a mistake is reported where it is made.
#include <algorithm>

#include "ir/error.h"
#include "passes/apply_steps.h"
#include "replay/python/program.h"

namespace fusebox::python {
namespace {

AttrValue attr_value(AttrKey key, const py::handle& given) {
  const AttrKind kind = row_of(key).kind;
  if (key == AttrKey::kThreads) {
    std::vector<int64_t> ids;
    for (const std::string& word : given.cast<std::vector<std::string>>()) {
      const auto p = parse_enum<ParallelType>(word);
      if (!p) throw Error(ErrorCode::kBadAttribute, "no parallel type has this name; use one of ParallelType", word);
      ids.push_back(static_cast<int64_t>(*p));
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  if (kind == AttrKind::kInts) return given.cast<std::vector<int64_t>>();
  if (kind == AttrKind::kInt || kind == AttrKind::kBool) return given.cast<int64_t>();
  const auto word = given.cast<std::string>();
  if (kind == AttrKind::kString) return word;
  if (kind == AttrKind::kDtype) return dtype_named(word);
  const auto texts = enum_texts_of(kind);
  const auto it = std::find(texts.begin(), texts.end(), word);
  if (it == texts.end())
    throw Error(ErrorCode::kBadAttribute, "the attribute `" + std::string(row_of(key).text) + "` has no such value",
                word);
  return static_cast<int64_t>(it - texts.begin());
}

Attrs attrs_of(const py::dict& given) {
  Attrs attrs;
  for (const auto& [name, value] : given) {
    const auto word = name.cast<std::string>();
    const auto rows = attr_rows();
    const auto it = std::find_if(rows.begin(), rows.end(), [&](const AttrRow& r) { return r.text == word; });
    if (it == rows.end()) throw Error(ErrorCode::kBadAttribute, "no attribute has this name", word);
    attrs.set(it->key, attr_value(it->key, value));
  }
  return attrs;
}

const Tensor& tensor_named(const Graph& g, const std::string& name) {
  const auto v = find_value(g, name);
  if (!v || !g.is_tensor(*v))
    throw Error(ErrorCode::kStepReferent, "no tensor of the fusion has this name", "%" + name);
  return g.tensor_of(*v);
}

void check_assign(const Graph& g, const Step& s) {
  for (const StepOperand& v : s.operands) tensor_named(g, v.value);
}

}  // namespace

void Program::step(const std::string& kind, const std::vector<StepWord>& operands,
                   const std::vector<std::string>& results, const py::dict& attrs) {
  const auto parsed = parse_step_kind(kind);
  if (!parsed) throw Error(ErrorCode::kStepNotApplicable, "no step has this name; see the step table", kind);
  Step s{*parsed, {}, results, attrs_of(attrs)};
  for (const StepWord& word : operands) {
    if (const auto* n = std::get_if<int64_t>(&word)) {
      s.operands.push_back(StepOperand::number(*n));
    } else {
      const auto& [value, domain] = std::get<1>(word);
      s.operands.push_back(StepOperand::domain_of(value, domain));
    }
  }
  std::vector<Step> list = steps;
  list.push_back(s);
  leading_rewrites(list);
  Graph next = current();
  // Segments are made when the program is compiled; until then the steps are tried on the whole fusion.
  if (s.kind == StepKind::kAssign)
    check_assign(next, s);
  else
    apply_step(next, s);
  scheduled = std::move(next);
  steps = std::move(list);
  plans_.clear();
}

std::vector<LoopInfo> Program::loops(const std::string& tensor) const {
  const Graph& g = current();
  std::vector<LoopInfo> result;
  for (DomainId d : loop_of(tensor_named(g, tensor)))
    result.push_back(
        {g[d].name, std::string(fusebox::text(g[d].iter_type)), std::string(fusebox::text(g[d].parallel))});
  return result;
}

std::vector<std::string> Program::tensors() const {
  const Graph& g = current();
  std::vector<std::string> names;
  for (OpId op : ops_in_order(g))
    for (ValueId v : g[op].results)
      if (g.is_tensor(v)) names.push_back(g[v].name);
  return names;
}

bool Program::is_reduction(const std::string& tensor) const {
  const Graph& g = current();
  const auto& logical = tensor_named(g, tensor).logical;
  return std::any_of(logical.begin(), logical.end(),
                     [&](DomainId d) { return g[d].iter_type == IterType::kReduction; });
}

// Whether steps may inline it: an op makes it, and another than `output` reads it.
bool Program::is_read(const std::string& tensor) const {
  const Graph& g = current();
  const ValueId v = tensor_named(g, tensor).value;
  if (g[g[v].def].kind == OpKind::kInput) return false;
  const auto readers = uses(g)[v.index];
  return std::any_of(readers.begin(), readers.end(), [&](OpId op) { return g[op].kind != OpKind::kOutput; });
}

std::string Program::fresh_loop(const std::string& tensor, const std::string& wanted) const {
  const Graph& g = current();
  const TensorId t = g[tensor_named(g, tensor).value].tensor;
  std::string name = wanted;
  for (int n = 1; find_domain(g, t, name); ++n) name = wanted + std::to_string(n);
  return name;
}

Value Program::value_named(const std::string& name) const {
  const Graph& g = current();
  const ValueId v = tensor_named(g, name).value;
  const auto original = find_value(graph, name);
  return {original ? *original : ValueId(), name, g.is_tensor(v)};
}

}  // namespace fusebox::python
