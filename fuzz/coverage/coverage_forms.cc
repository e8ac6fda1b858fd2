// The classes that cases are aimed at (focus.h).
#include <algorithm>

#include "fuzz/coverage/coverage_classes.h"
#include "fuzz/generate/argument_ranges.h"
#include "fuzz/generate/focus.h"
#include "ir/build/builder.h"
#include "ir/domain/domain.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar.h"
#include "ir/table/families.h"

namespace fusebox::fuzz {
namespace {

// The op that makes a value; nullptr for an input or a constant.
const Op* maker(const Graph& g, ValueId v) {
  return v && g[v].def && g[g[v].def].kind != OpKind::kInput ? &g[g[v].def] : nullptr;
}

// True for a constant that leaves the other operand unchanged.
bool is_neutral(const Graph& g, OpKind kind, ValueId v) {
  if (!v || !g.is_constant(v) || is_complex(g[v].dtype) || is_storage_only(g[v].dtype)) return false;
  const Dtype d = g[v].dtype;
  const double value = to_double(d, *g[v].constant);
  switch (kind) {
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kTruediv:
    case OpKind::kLogicalAnd:
      return value == 1;
    case OpKind::kBitwiseAnd:
      return *g[v].constant == canonical_bits(d, {~uint64_t{0}, 0});
    case OpKind::kMinimum:
      return value == (has_infinity(d) ? HUGE_VAL : 127);
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kBitwiseOr:
    case OpKind::kBitwiseXor:
    case FUSEBOX_SHIFT_OPS:
      return value == 0;
    default:  // any other: no form with a constant is asked of it
      not_in_family(kind, "has no neutral constant");
  }
}

bool has_computed_axis(const Graph& g, ValueId v) {
  return std::ranges::any_of(g.tensor_of(v).logical, [&](DomainId d) { return !evaluate_extent(g, d); });
}

// True if every axis has the extent of the operand's axis at the same place and none is moved.
bool moves_nothing(const Graph& g, const Op& op) {
  const ValueId x = op.operands[0], y = op.results[0];
  if (op.kind == OpKind::kSet) return op.attrs.empty();
  if (op.kind == OpKind::kCast) return g[x].dtype == g[y].dtype;
  const auto from = logical_without_reductions(g, g.tensor_of(x)), to = logical_without_reductions(g, g.tensor_of(y));
  if (from.size() != to.size()) return false;
  if (op.kind == OpKind::kPermute) return std::ranges::is_sorted(op.attrs.ints(AttrKey::kDims));
  for (size_t i = 0; i < to.size(); ++i) {
    const auto m = evaluate_size(g, from[i]), n = evaluate_size(g, to[i]);
    if (m || n ? m != n : g[from[i]].extent && g[to[i]].extent && g[from[i]].extent != g[to[i]].extent) return false;
  }
  if (op.kind != OpKind::kSlice) return true;
  return std::all_of(op.operands.begin() + 1, op.operands.begin() + 1 + static_cast<std::ptrdiff_t>(from.size()),
                     [&](ValueId v) { return constant_integer(g, v) == 0; });
}

bool is_form(const Graph& g, const Op& op, const FormFocus& f) {
  const ValueId x = op.operands[0];
  const Op* before = maker(g, x);
  switch (f.form) {
    case FusionForm::kNeutralConstant:
      return op.operands.size() == 2 && (is_neutral(g, op.kind, op.operands[1]) || is_neutral(g, op.kind, x));
    case FusionForm::kEqualOperands:
      return op.operands.size() >= 2 && op.operands.back() == op.operands[op.operands.size() - 2];
    case FusionForm::kExchangedOperands:
      return op.operands.size() == 2 && op.operands[0] != op.operands[1] &&
             std::ranges::any_of(g.ops, [&](const Op& o) {
               return o.kind == op.kind && o.operands == std::vector{op.operands[1], op.operands[0]};
             });
    case FusionForm::kConstantCondition:
      return x && g.is_constant(x);
    case FusionForm::kMove:
      return moves_nothing(g, op);
    case FusionForm::kUnaryPair:
    case FusionForm::kMovesBack:
      return before != nullptr && before->kind == f.second;
    case FusionForm::kDerivedAxes:
      return before != nullptr && before->kind == f.second && has_computed_axis(g, x) &&
             has_computed_axis(g, op.results[0]);
  }
  return false;
}

}  // namespace

std::vector<size_t> form_classes(const Graph& g) {
  static const std::vector<FormFocus> forms = all_forms();
  static const std::vector<std::vector<size_t>> of_kind = [] {
    std::vector<std::vector<size_t>> lists(op_rows().size());
    for (size_t i = 0; i < forms.size(); ++i) lists[static_cast<size_t>(forms[i].kind)].push_back(i);
    return lists;
  }();
  std::vector<size_t> classes;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.operands.empty() || op.results.empty() || !g.is_tensor(op.results[0])) continue;
    for (size_t i : of_kind[static_cast<size_t>(op.kind)])
      if (is_form(g, op, forms[i])) classes.push_back(i);
  }
  return classes;
}

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const ArgumentRange& r : argument_ranges()) {
    std::string name(row_of(r.kind).text);
    if (r.is_pair) name += " of boundary values";
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::vector<size_t> function_classes(const Case& c) {
  static const std::vector<std::string> names = function_names();
  const Graph& g = c.fusion();
  const auto in = inputs(g);
  const auto spec_of = [&](ValueId v) -> const InputSpec* {
    const auto it = std::find(in.begin(), in.end(), v);
    const auto i = static_cast<size_t>(it - in.begin());
    return it == in.end() || i >= c.inputs().specs.size() ? nullptr : &c.inputs().specs[i];
  };
  const auto has_boundary = [&](ValueId v) {
    const InputSpec* s = spec_of(v);
    return s != nullptr && s->generator == InputGenerator::kBoundary;
  };
  std::vector<size_t> classes;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.operands.empty() || op.results.empty()) continue;
    const bool is_pair = op.operands.size() == 2 && has_boundary(op.operands[0]) && has_boundary(op.operands[1]);
    const InputSpec* s = op.operands.size() == 1 ? spec_of(op.operands[0]) : nullptr;
    const bool is_in_range = s != nullptr && s->generator == InputGenerator::kUniform &&
                             std::ranges::any_of(argument_ranges(), [&](const ArgumentRange& r) {
                               return r.kind == op.kind && r.dtype == s->dtype && r.low == s->low && r.high == s->high;
                             });
    if (!is_pair && !is_in_range) continue;
    const std::string name = std::string(row_of(op.kind).text) + (is_pair ? " of boundary values" : "");
    const auto at = std::find(names.begin(), names.end(), name);
    if (at != names.end()) classes.push_back(static_cast<size_t>(at - names.begin()));
  }
  return classes;
}

std::vector<size_t> index_classes(const Case& c) {
  enum : size_t { kNear30, kNear31, kNear32, kOfLarge, kSelectEnd, kSelectMadeEnd, kFarSwizzle };
  const Graph& g = c.fusion();
  std::vector<size_t> classes;
  std::vector<std::optional<int64_t>> known(g.values.size());
  const auto is_large = [&](ValueId v) { return v && known[v.index] && std::abs(*known[v.index]) >= (1 << 29); };
  const Bindings sizes = c.inputs().specs.empty() ? Bindings() : sizes_of(g, c.inputs());
  for (size_t i = 0; i < g.values.size(); ++i) {
    const Value& v = g.values[i];
    if (v.kind == ValueKind::kTensor || v.dtype != Dtype::kIndex) continue;
    known[i] = evaluate_integer(g, ValueId(i), sizes);
    if (!known[i]) continue;
    for (int power : {30, 31, 32})
      if (std::abs(std::abs(*known[i]) - (int64_t{1} << power)) < 8)
        classes.push_back(static_cast<size_t>(power - 30) + kNear30);
  }
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.results.empty()) continue;
    const auto& result = known[op.results[0].index];
    if (result && !is_large(op.results[0]) && std::ranges::any_of(op.operands, is_large)) classes.push_back(kOfLarge);
    if (op.kind != OpKind::kSelect) continue;
    const auto index = constant_integer(g, op.operands[1]);
    if (index && *index < 0) classes.push_back(maker(g, op.operands[0]) == nullptr ? kSelectEnd : kSelectMadeEnd);
  }
  const bool is_far = std::ranges::any_of(c.inputs().specs, [](const InputSpec& s) {
    return std::ranges::any_of(s.strides, [](int64_t n) { return n > (1 << 27); });
  });
  if (is_far && c.compiled)
    for (const Graph& s : c.compiled->scheduled)
      if (!swizzle_classes(s).empty()) classes.push_back(kFarSwizzle);
  return classes;
}

std::vector<size_t> tensor_classes(const Graph& g) {
  enum : size_t { kInputOnMesh, kResultOnMesh, kExpanded, kSqueezed };
  std::vector<size_t> classes;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.results.empty() || !g.is_tensor(op.results[0])) continue;
    const bool is_input = op.kind == OpKind::kInput;
    const Tensor& t = g.tensor_of(op.results[0]);
    const auto is_expanded = [&](DomainId d) { return bool(g[d].expanded); };
    if (!t.devices.empty()) classes.push_back(is_input ? kInputOnMesh : kResultOnMesh);
    if (is_input && std::ranges::any_of(t.logical, is_expanded)) classes.push_back(kExpanded);
    if (op.kind == OpKind::kSelect && constant_integer(g, op.operands[1]) == 0) {
      const auto axes = logical_without_reductions(g, g.tensor_of(op.operands[0]));
      int64_t axis = op.attrs.integer(AttrKey::kAxis);
      if (axis < 0) axis += static_cast<int64_t>(axes.size());
      if (is_expanded(axes[static_cast<size_t>(axis)])) classes.push_back(kSqueezed);
    }
  }
  return classes;
}

namespace {

// A part of a row: an attribute, an operand that may be missing, or a list that may be empty.
template <class Kind>
struct Part {
  Kind kind;
  std::optional<AttrKey> attr;
  size_t slot = 0;
};

template <class Kind, class Row>
void add_parts(const Row& row, std::vector<Part<Kind>>& all) {
  for (const AttrRow& attr : attr_rows())
    if (row.accepts(attr.key)) all.push_back({row.kind, attr.key});
  const auto slots = row.format->all();
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].list || slots[i].optional) all.push_back({row.kind, std::nullopt, i});
}

template <class Kind>
std::vector<std::string> names_of(const std::vector<Part<Kind>>& parts) {
  std::vector<std::string> names;
  for (const auto& p : parts) {
    const auto& row = row_of(p.kind);
    std::string what;
    if (p.attr)
      what = row_of(*p.attr).text;
    else
      what = (row.format->all()[p.slot].list ? "list " : "operand ") + std::to_string(p.slot);
    names.push_back(std::string(row.text) + ", " + what);
  }
  return names;
}

// `has_operand` tells whether the slot has an operand.
template <class Kind, class Subject, class HasOperand>
std::vector<size_t> classes_of(const std::vector<Part<Kind>>& parts, const Subject& x, HasOperand has_operand) {
  std::vector<size_t> classes;
  const auto is_before = [](const Part<Kind>& p, Kind kind) { return p.kind < kind; };
  auto it = std::lower_bound(parts.begin(), parts.end(), x.kind, is_before);
  for (; it != parts.end() && it->kind == x.kind; ++it)
    if (it->attr ? x.attrs.has(*it->attr) : has_operand(it->slot))
      classes.push_back(static_cast<size_t>(it - parts.begin()));
  return classes;
}

const std::vector<Part<StepKind>>& step_parts() {
  static const std::vector<Part<StepKind>> list = [] {
    std::vector<Part<StepKind>> all;
    for (const StepRow& row : step_rows()) add_parts(row, all);
    return all;
  }();
  return list;
}

const std::vector<Part<OpKind>>& op_parts() {
  static const std::vector<Part<OpKind>> list = [] {
    std::vector<Part<OpKind>> all;
    for (OpKind kind : generated_ops()) add_parts(row_of(kind), all);
    return all;
  }();
  return list;
}

// The number of operands in a slot.
size_t operands_in(const FormatRow& format, size_t slot, size_t operands) {
  const auto ranges = slot_ranges(format, operands);
  return ranges ? (*ranges)[slot].count : 0;
}

}  // namespace

std::vector<std::string> step_part_names() { return names_of(step_parts()); }

std::vector<size_t> step_part_classes(const Step& step) {
  return classes_of(step_parts(), step, [&](size_t slot) {
    return operands_in(*row_of(step.kind).format, slot, step.operands.size()) > 0;
  });
}

std::vector<std::string> op_part_names() { return names_of(op_parts()); }

std::vector<size_t> op_part_classes(const Graph& g) {
  std::vector<size_t> classes;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (op.results.empty() || !g.is_tensor(op.results[0])) continue;
    const auto ranges = slot_ranges(*row_of(op.kind).format, op.operands.size());
    const auto has_operand = [&](size_t slot) {
      return ranges && (*ranges)[slot].count > 0 && op.operands[(*ranges)[slot].begin];
    };
    const auto its = classes_of(op_parts(), op, has_operand);
    classes.insert(classes.end(), its.begin(), its.end());
  }
  return classes;
}

}  // namespace fusebox::fuzz
