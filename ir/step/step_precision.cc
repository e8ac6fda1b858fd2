// The step `precision`: which ops a GPU may compute by the hardware's approximation.
#include "ir/step/step_rules.h"

namespace fusebox {
namespace {

bool has_fast_form(const Graph& g, OpId op) {
  return op && row_of(g[op].kind).accepts(AttrKey::kFast) && has_fast_dtype(g[g[op].results[0]].dtype);
}

// The op that makes a tensor that the step lists.
OpId listed_op(const StepContext& c, TensorId t) {
  const OpId op = c.g[c.g[t].value].def;
  if (!op || !row_of(c.g[op].kind).accepts(AttrKey::kFast))
    c.refuse((op ? std::string(row_of(c.g[op].kind).text) + " has" : "this tensor has") +
                 " no fast form; leave it out of the list",
             c.place(t));
  if (!has_fast_form(c.g, op))
    c.refuse("there are fast forms of f32 and narrower floats alone; leave this tensor out of the list", c.place(t));
  return op;
}

}  // namespace

bool has_fast_dtype(Dtype d) { return is_floating(d) && d != Dtype::kDouble && !is_storage_only(d); }

void step_precision(StepContext& c) {
  const bool is_fast = c.step.attrs.flag(AttrKey::kFast);
  if (is_fast == c.step.attrs.flag(AttrKey::kExact)) c.refuse("precision says either `fast` or `exact`; write one");
  std::vector<OpId> ops;
  for (TensorId t : c.tensors_from(0)) ops.push_back(listed_op(c, t));
  if (c.step.operands.empty())
    for (OpId op : c.g[Graph::body()].ops)
      if (!c.g[op].results.empty() && c.g.is_tensor(c.g[op].results[0]) && has_fast_form(c.g, op)) ops.push_back(op);
  if (!c.target) return;
  if (c.defects.has(Defect::kPrecisionFirstOnly) && ops.size() > 1) ops.resize(1);
  for (OpId id : ops) {
    Op& op = (*c.target)[id];
    if (is_fast)
      op.attrs.set_flag(AttrKey::kFast);
    else if (!c.defects.has(Defect::kPrecisionExactIgnored))
      op.attrs.erase(AttrKey::kFast);
  }
}

}  // namespace fusebox
