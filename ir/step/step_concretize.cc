// Steps that resolve symbolic axes once the inputs are known. concretize.h does the work.
#include <algorithm>

#include "ir/infer/concretize.h"
#include "ir/infer/infer.h"
#include "ir/step/step_rules.h"
#include "ir/verify/verify.h"

namespace fusebox {
namespace {

// Whether a step made this tensor less symbolic than its op does. Inferring it again would undo this step. Only ops
// with symbolic axes of their own count. Other ops follow their operands and may become symbolic without undoing a
// step: a pad, for example, whose width a rewrite has folded to 0.
bool is_concretized(const Graph& g, ValueId v) {
  if (!g[v].def || !has_own_symbolic_axes(g[g[v].def].kind)) return false;
  Graph again = g;
  infer(again, g[v].def);
  return symbolic_axes(again, v) > symbolic_axes(g, v);
}

// Drops the aliases of outputs while an axis is symbolic: it is not known yet whether they fit.
void drop_open_aliases(Graph& g) {
  const bool is_open = std::any_of(g.domains.begin(), g.domains.end(),
                                   [](const IterDomain& d) { return d.tensor && d.iter_type == IterType::kSymbolic; });
  for (Op& op : g.ops)
    if (is_open && op.kind == OpKind::kOutput && op.operands.size() > 1) op.operands[1] = ValueId();
}

// Runs a change on a copy first, because it may not fit the tensors that are made from the changed one.
template <class Change>
void try_then_do(const StepContext& c, const Change& change) {
  try {
    Graph tried = c.g;
    change(tried);
    drop_open_aliases(tried);
    verify(tried, c.defects);
    for (size_t i = 0; i < c.g.values.size(); ++i)
      if (const ValueId v(i);
          c.g.is_tensor(v) && symbolic_axes(tried, v) > symbolic_axes(c.g, v) && is_concretized(c.g, v))
        c.refuse("this tensor was concretized before what it is made from; concretize in the order of the program",
                 "%" + c.g[v].name);
  } catch (const Error& e) {
    if (static_cast<int>(e.code) / 100 == 3) throw;
    c.refuse(std::string("this does not fit the program: ") + e.what(), e.place);
  }
  if (c.target) change(*c.target);
}

}  // namespace

void step_concretize(StepContext& c) {
  const DomainId d = c.domain(0);
  if (!c.step.attrs.has(AttrKey::kIterType))
    c.refuse("concretize needs what the axis became: iter or broadcast", c.place(d));
  Resolution to{.type = c.step.attrs.enumerator<IterType>(AttrKey::kIterType)};
  if (c.step.attrs.has(AttrKey::kWidth)) {
    if (c.step.attrs.integer(AttrKey::kWidth) != 1)
      c.refuse("the width of a concretized axis is 1; leave it out if the axis has more elements", c.place(d));
    to.is_one_element = true;
  }
  if (c.g[d].iter_type != IterType::kSymbolic && !(to.is_one_element && is_stretched(c.g, d)))
    c.refuse("this domain is not symbolic; nothing is left to decide", c.place(d));
  try_then_do(c, [&](Graph& g) { concretize_domain(g, d, to, c.defects); });
}

void step_concretize_reshape(StepContext& c) {
  const TensorId t = c.tensor(0);
  if (symbolic_axes(c.g, c.g[t].value) == 0)
    c.refuse("this tensor has no symbolic axis; nothing is left to decide", c.place(t));
  const auto given = c.step.attrs.ints(AttrKey::kOrder);
  const std::vector<int64_t> groups(given.begin(), given.end());
  try_then_do(c, [&](Graph& g) { concretize_reshape(g, t, groups, c.defects); });
}

}  // namespace fusebox
