// Checks of every op before its types: its format, its attributes, an output's alias.
#include <algorithm>

#include "ir/infer/infer_rules.h"

namespace fusebox {
namespace {

void check_slot(const Graph& g, OpKind kind, const Slot& slot, ValueId v) {
  if (!v) {
    if (!slot.optional) fail(g, ErrorCode::kOperandCount, op_text(kind) + " lacks an operand that it needs", {});
    return;
  }
  if (v.index >= g.values.size())
    throw Error(ErrorCode::kInvalidGraph, op_text(kind) + " has an operand that does not exist");
  const ValueKind k = g[v].kind;
  const bool tensor = k == ValueKind::kTensor, scalar = k == ValueKind::kScalar;
  const bool right = slot.kind == 't' ? tensor : slot.kind == 's' ? scalar : slot.kind == 'a' ? tensor || scalar : true;
  if (right) return;
  const std::string wanted = slot.kind == 't' ? "a tensor" : slot.kind == 's' ? "a scalar" : "a tensor or scalar";
  fail(g, ErrorCode::kWrongKind, op_text(kind) + " needs " + wanted + " here, not a " + std::string(text(k)), v);
}

}  // namespace

void check_format(OpView& c) {
  const OpRow& row = row_of(c.kind);
  const auto ranges = slot_ranges(*row.format, c.operands.size());
  if (!ranges)
    fail(c.g, ErrorCode::kOperandCount,
         op_text(c.kind) + " has " + std::to_string(c.operands.size()) + " operands, which its form does not take",
         c.operands.empty() || c.operands[0].index >= c.g.values.size() ? ValueId() : c.operands[0]);
  c.slots = *ranges;
  for (size_t s = 0; s < row.format->all().size(); ++s)
    for (ValueId v : c.slot(s)) check_slot(c.g, c.kind, row.format->slots[s], v);
}

void check_attrs(const OpView& c) {
  const OpRow& row = row_of(c.kind);
  for (const Attr& a : c.attrs.list()) {
    const std::string word(row_of(a.key).text);
    if (!row.accepts(a.key))
      fail(c.g, ErrorCode::kBadAttribute, op_text(c.kind) + " takes no attribute `" + word + "`; leave it out",
           c.operand(0));
    const AttrKind kind = row_of(a.key).kind;
    const size_t wanted = kind == AttrKind::kDtype    ? 1
                          : kind == AttrKind::kString ? 2
                          : kind == AttrKind::kInts   ? 3
                                                      : 0;
    const auto texts = enum_texts_of(kind);
    const bool in_range =
        a.value.index() != 0 || texts.empty() ||
        (std::get<int64_t>(a.value) >= 0 && std::get<int64_t>(a.value) < static_cast<int64_t>(texts.size()));
    if (a.value.index() != wanted || !in_range)
      fail(c.g, ErrorCode::kBadAttribute,
           "attribute `" + word + "` of " + op_text(c.kind) + " has a value of another kind", c.operand(0));
  }
}

void check_output(const OpView& c) {
  const ValueId value = c.operands[0], alias = c.operand(1);
  const Graph& g = c.g;
  if (!alias) return;
  if (!g.is_tensor(value) || !g.is_tensor(alias) || !g[alias].def || g[g[alias].def].kind != OpKind::kInput)
    fail(g, ErrorCode::kBadAlias, "an output overwrites a tensor that is an input; name one", alias);
  if (g[alias].dtype != g[value].dtype)
    fail(g, ErrorCode::kBadAlias,
         "an output of " + std::string(text(g[value].dtype)) + " cannot overwrite an input of " +
             std::string(text(g[alias].dtype)) + "; cast it first",
         alias);
  // Each op is checked alone, so another may be without operands.
  for (OpId other : g[Graph::body()].ops)
    if (g[other].kind == OpKind::kOutput && g[other].operands.size() > 1 && g[other].operands[1] == alias &&
        g[other].operands[0] != value)
      fail(g, ErrorCode::kBadAlias, "two outputs overwrite this input; leave out the alias of one", alias);
  const auto from = logical_without_reductions(g, g.tensor_of(value)),
             to = logical_without_reductions(g, g.tensor_of(alias));
  // A symbolic axis may turn out to be expanded, and then it is too late to refuse the alias.
  const auto is_symbolic = [&](DomainId d) { return g[d].iter_type == IterType::kSymbolic; };
  const auto& root = root_of(g.tensor_of(value));
  if (std::any_of(from.begin(), from.end(), is_symbolic) || std::any_of(root.begin(), root.end(), is_symbolic))
    fail(g, ErrorCode::kBadAlias, "an output with symbolic axes cannot overwrite an input; leave out its alias", alias);
  bool fits = from.size() == to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    const auto a = evaluate_size(g, from[i]), b = evaluate_size(g, to[i]);
    // An expanded axis holds one element for many places: such an input cannot be stored to, and such an output does
    // not fill an input.
    fits = (!a || !b || *a == *b) && !g[to[i]].expanded && !g[from[i]].expanded;
  }
  if (!fits)
    fail(g, ErrorCode::kBadAlias, "an output can overwrite only an input of its own shape, neither of them expanded",
         alias);
}

}  // namespace fusebox
