// Steps that resolve symbolic axes, once the inputs are known. What reads the tensor is inferred again.
#include <algorithm>

#include "ir/infer.h"
#include "ir/infer_rules.h"
#include "ir/scalar_form.h"
#include "ir/step_rules.h"
#include "ir/verify.h"

namespace fusebox {
namespace {

size_t count_symbolic(const Graph& g, ValueId v) {
  const auto& logical = g.tensor_of(v).logical;
  return static_cast<size_t>(
      std::count_if(logical.begin(), logical.end(), [&](DomainId d) { return g[d].iter_type == IterType::kSymbolic; }));
}

// Everything that is made from the tensor, in order. Throws where an op does not accept what its operand became.
void infer_readers(const StepContext& c, Graph& g, ValueId changed) {
  std::vector<bool> is_changed(g.values.size());
  is_changed[changed.index] = true;
  // Inference may put ops for extents before the one inferred: a copy of the order is walked.
  const std::vector<OpId> order = g[Graph::body()].ops;
  for (OpId op : order) {
    const auto& operands = g[op].operands;
    if (std::none_of(operands.begin(), operands.end(), [&](ValueId v) { return v && v.index < is_changed.size() && is_changed[v.index]; }))
      continue;
    std::vector<size_t> symbolic;
    for (ValueId v : g[op].results) symbolic.push_back(g.is_tensor(v) ? count_symbolic(g, v) : 0);
    infer(g, op);
    for (size_t i = 0; i < g[op].results.size(); ++i) {
      const ValueId v = g[op].results[i];
      if (!g.is_tensor(v)) continue;
      if (count_symbolic(g, v) > symbolic[i])
        c.refuse("this tensor was concretized before what it is made from; concretize in the order of the program", "%" + g[v].name);
      if (v.index < is_changed.size()) is_changed[v.index] = true;
    }
  }
}

// Runs a change on a copy first: it may turn out not to fit further on.
template <class Change>
void try_then_do(const StepContext& c, const Change& change) {
  try {
    Graph tried = c.g;
    change(tried);
    verify(tried);
  } catch (const Error& e) {
    if (static_cast<int>(e.code) / 100 == 3) throw;
    c.refuse(std::string("this does not fit the program: ") + e.what(), e.place);
  }
  if (c.target) change(*c.target);
}

void require_math(const StepContext& c) {
  if (c.g.level != Level::kMath) c.refuse("the program is scheduled already; concretize it before that");
}

// Positions of axes whose size is not the constant 1.
size_t count_open(const Graph& g, const std::vector<Axis>& axes) {
  return static_cast<size_t>(
      std::count_if(axes.begin(), axes.end(), [&](const Axis& a) { return !form_of(g, a.size()).equals(ScalarForm::of(1)); }));
}

}  // namespace

void step_concretize(StepContext& c) {
  require_math(c);
  const DomainId d = c.domain(0);
  const TensorId t = c.g[d].tensor;
  const auto& logical = c.g[t].logical;
  const auto at = std::find(logical.begin(), logical.end(), d);
  if (at == logical.end() || c.g[d].iter_type != IterType::kSymbolic) c.refuse("this domain is not symbolic; nothing is left to decide", c.place(d));
  const ValueId v = c.g[t].value;
  const OpKind kind = c.g[c.g[v].def].kind;
  if (kind == OpKind::kReshape) c.refuse("this axis is a reshape's; use concretize_reshape", c.place(d));
  if (kind != OpKind::kInput && kind != OpKind::kExpand && kind != OpKind::kBroadcastInDim)
    c.refuse("this axis follows from an operand's; concretize that", c.place(d));
  const IterType type = c.step.attrs.enumerator(AttrKey::kIterType, IterType::kSymbolic);
  if (type != IterType::kIteration && type != IterType::kBroadcast)
    c.refuse("a symbolic axis becomes iter or broadcast", c.place(d));
  const size_t index = static_cast<size_t>(at - logical.begin());
  try_then_do(c, [&](Graph& g) {
    const ValueId one = constant_index(g, 1);
    IterDomain& domain = g[d];
    domain.iter_type = type;
    if (type == IterType::kBroadcast) {
      if (kind != OpKind::kInput) domain.expanded = domain.extent;
      domain.extent = one;
      Tensor& tensor = g[t];
      if (tensor.allocation.empty() && index < tensor.contiguity.size()) tensor.contiguity[index] = Contiguity::kNone;
      for (size_t i = 0; i < tensor.allocation.size() && i < tensor.contiguity.size(); ++i)
        if (tensor.allocation[i] == d) tensor.contiguity[i] = Contiguity::kNone;
    }
    infer_readers(c, g, v);
  });
}

void step_concretize_reshape(StepContext& c) {
  require_math(c);
  const TensorId t = c.tensor(0);
  const ValueId v = c.g[t].value;
  const OpId op = c.g[v].def;
  if (!op || c.g[op].kind != OpKind::kReshape) c.refuse("this tensor is not made by a reshape", c.place(t));
  if (count_symbolic(c.g, v) == 0) c.refuse("this reshape has no symbolic axis; nothing is left to decide", c.place(t));
  const auto given = c.step.attrs.ints(AttrKey::kOrder);
  const std::vector<int64_t> groups(given.begin(), given.end());
  if (groups.empty() || groups.size() % 2 != 0) c.refuse("the groups of a reshape are pairs: axes merged, axes split into", c.place(t));
  if (std::any_of(groups.begin(), groups.end(), [](int64_t n) { return n < 0 || n > (1 << 16); }))
    c.refuse("a group of a reshape has 0 or more axes", c.place(t));
  try_then_do(c, [&](Graph& g) {
    InferContext context{g, scalar::Place::before_op(g, op), g[op].kind, g[op].operands, c.step.attrs, {}};
    ResultSpec spec = infer_reshape(context);
    size_t merged = 0, split = 0;
    for (size_t i = 0; i < groups.size(); i += 2) {
      merged += static_cast<size_t>(groups[i]);
      split += static_cast<size_t>(groups[i + 1]);
    }
    const size_t from = count_open(g, spec.root), to = count_open(g, spec.axes);
    if (merged != from || split != to)
      c.refuse("the groups merge " + std::to_string(merged) + " axes into " + std::to_string(split) + ", the reshape has " +
                   std::to_string(from) + " and " + std::to_string(to) + " that are not the constant 1",
               c.place(t));
    for (Axis& a : spec.axes)
      if (a.type == IterType::kSymbolic) a.type = IterType::kIteration;
    spec.groups = groups;
    g[op].operands = context.operands;
    make_domains(g, t, spec);
    infer_readers(c, g, v);
  });
}

}  // namespace fusebox
