#include "passes/nest/domain_values.h"

#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/scalar/scalar_form.h"

namespace fusebox {
namespace {

const Form* look_up(const std::vector<std::pair<DomainId, Form>>& list, DomainId d) {
  for (const auto& [domain, form] : list)
    if (domain == d) return &form;
  return nullptr;
}

}  // namespace

Form DomainValues::inner_extent(const Transform& t) { return extent(t.outputs[1]); }

Form DomainValues::elements(std::span<const DomainId> domains) {
  Form product = algebra_.constant(1);
  for (DomainId d : domains) {
    const Form counted = extent(d);
    const bool is_negative = algebra_.constant_value(counted).value_or(0) < 0;
    product = algebra_.mul(product, is_negative ? algebra_.constant(0) : counted);
  }
  return product;
}

Form DomainValues::extent(DomainId d) {
  if (const Form* known = look_up(known_.extents, d)) return *known;
  const IterDomain& domain = g_[d];
  Form result = algebra_.constant(1);
  if (domain.def) {
    const Transform& t = g_[domain.def];
    switch (t.kind) {
      case TransformKind::kSplit: {
        const Form factor = symbols_.of(t.factor);
        // A split of a reshape is exact. Its factor may be 0, and then the quotient of the extent says nothing.
        const auto exact = is_op_quotient(d) ? extent_form(g_, d) : std::nullopt;
        result = (t.outputs[1] == d) == t.inner_split          ? factor
                 : exact                                       ? symbols_.of(*exact)
                 : plan_.defects.has(Defect::kExtentTruncated) ? algebra_.div_mod(extent(t.inputs[0]), factor).quotient
                                                               : algebra_.ceil_div(extent(t.inputs[0]), factor);
        break;
      }
      case TransformKind::kMerge:
        result = algebra_.mul(extent(t.inputs[0]), extent(t.inputs[1]));
        break;
      case TransformKind::kSwizzle:
        result = extent(t.inputs[t.outputs[0] == d ? 0 : 1]);
        break;
      case TransformKind::kResize:
        result = algebra_.add(extent(t.inputs[0]), algebra_.add(symbols_.of(t.factor), symbols_.of(t.right)));
        break;
    }
    result = algebra_.symbol_of(result);
  } else if (const ValueId promoted = plan_.promoted_extent(d)) {
    result = symbols_.of(promoted);
  } else if (domain.iter_type != IterType::kBroadcast && domain.extent) {
    result = algebra_.symbol_of(symbols_.of(domain.extent));
  }
  known_.extents.emplace_back(d, result);
  return result;
}

Form DomainValues::size(DomainId d) {
  return g_[d].expanded ? algebra_.symbol_of(symbols_.of(g_[d].expanded)) : extent(d);
}

const DomainValues::Known* DomainValues::find(DomainId d) const {
  for (const Known& k : known_.values)
    if (k.domain == d) return &k;
  return nullptr;
}

void DomainValues::learn(DomainId d, Form value, CheckReason origin) {
  if (!known(d)) known_.values.push_back({d, value, origin});
}

void DomainValues::set(DomainId d, Form value, CheckReason origin) { learn(d, value, origin); }

CheckReason DomainValues::reason(DomainId d) const {
  const Known* known = find(d);
  return known ? known->origin : CheckReason::kBroadcast;
}

bool DomainValues::known(DomainId d) const { return find(d) != nullptr; }

Form DomainValues::value(DomainId d) const {
  const Known* known = find(d);
  return known ? known->value : Form{};
}

bool DomainValues::up(const Transform& t) {
  for (DomainId d : t.outputs)
    if (!known(d)) return false;
  switch (t.kind) {
    case TransformKind::kSplit: {
      const bool swapped = plan_.defects.has(Defect::kSplitSwapped);
      const Form outer = value(t.outputs[swapped ? 1 : 0]), inner = value(t.outputs[swapped ? 0 : 1]);
      learn(t.inputs[0], algebra_.add(algebra_.mul(outer, inner_extent(t)), inner), CheckReason::kSplitInput);
      known_.climbed.emplace_back(t.inputs[0], g_[t.outputs[0]].def);
      break;
    }
    case TransformKind::kMerge: {
      const bool by_outer = plan_.defects.has(Defect::kMergeOuterExtent);
      const auto parts = algebra_.div_mod(value(t.outputs[0]), extent(t.inputs[by_outer ? 0 : 1]));
      const bool swapped = plan_.defects.has(Defect::kMergeSwapped);
      learn(t.inputs[swapped ? 1 : 0], parts.quotient, CheckReason::kMergeInput);
      learn(t.inputs[swapped ? 0 : 1], parts.remainder, CheckReason::kMergeInput);
      break;
    }
    case TransformKind::kSwizzle: {
      const size_t by = plan_.defects.has(Defect::kSwizzleAxis) ? 1 : 0, moved = 1 - by;
      const Form first = value(t.outputs[by]), second = value(t.outputs[moved]);
      learn(t.inputs[by], first, CheckReason::kSwizzle);
      const Form back = plan_.defects.has(Defect::kSwizzleInverse) ? first : algebra_.neg(first);
      learn(t.inputs[moved],
            t.swizzle == SwizzleType::kXor ? algebra_.bit_xor(second, first)
                                           : algebra_.cyclic(second, back, extent(t.inputs[moved])),
            CheckReason::kSwizzle);
      break;
    }
    case TransformKind::kResize: {
      const bool moved = is_op_resize(t.inputs[0]) || !plan_.defects.has(Defect::kResizeOffsetDropped);
      const Form left = moved ? symbols_.of(t.factor) : Form{};
      learn(t.inputs[0], algebra_.sub(value(t.outputs[0]), left), CheckReason::kResized);
      known_.climbed.emplace_back(t.inputs[0], g_[t.outputs[0]].def);
      break;
    }
  }
  return true;
}

bool DomainValues::down(const Transform& t) {
  for (DomainId d : t.inputs)
    if (!known(d)) return false;
  switch (t.kind) {
    case TransformKind::kSplit: {
      const auto parts = algebra_.div_mod(value(t.inputs[0]), inner_extent(t));
      learn(t.outputs[0], parts.quotient, CheckReason::kSplitOuter);
      learn(t.outputs[1], parts.remainder, CheckReason::kSplitInner);
      break;
    }
    case TransformKind::kMerge:
      learn(t.outputs[0], algebra_.add(algebra_.mul(value(t.inputs[0]), extent(t.inputs[1])), value(t.inputs[1])),
            CheckReason::kMergeOutput);
      break;
    case TransformKind::kSwizzle: {
      const Form first = value(t.inputs[0]), second = value(t.inputs[1]);
      learn(t.outputs[0], first, CheckReason::kSwizzle);
      learn(t.outputs[1],
            t.swizzle == SwizzleType::kXor ? algebra_.bit_xor(second, first)
                                           : algebra_.cyclic(second, first, extent(t.inputs[1])),
            CheckReason::kSwizzle);
      break;
    }
    case TransformKind::kResize:
      learn(t.outputs[0], algebra_.add(value(t.inputs[0]), symbols_.of(t.factor)), CheckReason::kResized);
      known_.descended.push_back(t.outputs[0]);
      break;
  }
  return true;
}

bool DomainValues::step(const Transform& t) {
  const auto all_known = [&](const std::vector<DomainId>& list) {
    return std::all_of(list.begin(), list.end(), [&](DomainId d) { return known(d); });
  };
  const bool inputs_known = all_known(t.inputs), outputs_known = all_known(t.outputs);
  if (inputs_known && outputs_known) return false;
  if (outputs_known) return up(t);
  if (inputs_known) return down(t);
  return false;
}

void DomainValues::propagate() {
  const auto& transforms = g_[tensor_].transforms;
  for (bool changed = true; changed;) {
    changed = false;
    // Upwards first, in reverse order of application: values from loops are preferred to values that follow from them.
    for (size_t i = transforms.size(); i-- > 0;) {
      const Transform& t = g_[transforms[i]];
      const bool outputs_known = std::all_of(t.outputs.begin(), t.outputs.end(), [&](DomainId d) { return known(d); });
      const bool inputs_known = std::all_of(t.inputs.begin(), t.inputs.end(), [&](DomainId d) { return known(d); });
      if (outputs_known && !inputs_known) changed |= up(t);
    }
    for (TransformId id : transforms) changed |= step(g_[id]);
  }
}

bool DomainValues::is_op_resize(DomainId d) const {
  const auto of_op = op_transforms(g_, g_[tensor_]);
  return std::any_of(of_op.begin(), of_op.end(),
                     [&](TransformId id) { return g_[id].inputs[0] == d && g_[id].kind == TransformKind::kResize; });
}

bool DomainValues::is_op_quotient(DomainId d) const {
  const TransformId split = g_[d].def;
  if (!split || g_[split].kind != TransformKind::kSplit) return false;
  const Transform& t = g_[split];
  if ((t.outputs[1] == d) == t.inner_split) return false;
  if (g_.is_constant(t.factor) && !is_op_quotient(t.inputs[0])) return false;
  const auto of_op = op_transforms(g_, g_[tensor_]);
  return std::find(of_op.begin(), of_op.end(), split) != of_op.end();
}

Form DomainValues::checked_value(DomainId d) {
  // The seeded defect takes the value of another outer output with the same root and an equal extent.
  const auto is_outer = [&](DomainId x) {
    const TransformId def = g_[x].def;
    return def && g_[def].kind == TransformKind::kSplit && g_[def].outputs[0] == x;
  };
  if (!is_outer(d) || !plan_.defects.has(Defect::kAlmostExactEqualExtent)) return value(d);
  const auto roots = leaves(g_, d);
  for (const Known& other : known_.values) {
    if (other.domain == d || !is_outer(other.domain)) continue;
    const TransformId above = g_[g_[g_[other.domain].def].inputs[0]].def;
    if (!above || g_[above].kind != TransformKind::kSplit || leaves(g_, other.domain) != roots) continue;
    if (algebra_.equal(extent(other.domain), extent(d))) return other.value;
  }
  return value(d);
}

bool DomainValues::is_divided(DomainId d) {
  const auto it =
      std::find_if(known_.climbed.begin(), known_.climbed.end(), [&](const auto& c) { return c.first == d; });
  if (it == known_.climbed.end() || g_[it->second].kind != TransformKind::kSplit) return false;
  const Transform& t = g_[it->second];
  if (plan_.defects.has(Defect::kSplitTakenExact)) return true;
  const Form outer = extent(t.outputs[0]), inner = extent(t.outputs[1]);
  if (algebra_.equal(algebra_.mul(outer, inner), extent(d))) return true;
  // The quotient of a product that a launch checks as a whole is no form of its own.
  return algebra_.divides(t.inner_split ? inner : outer, extent(d));
}

std::vector<DomainCheck> DomainValues::checks() {
  std::vector<DomainCheck> result;
  const auto add = [&](DomainId d) {
    const Form v = checked_value(d), e = extent(d);
    const bool lower = !algebra_.prove_nonneg(v);
    if (!lower && algebra_.prove_less(v, e)) return;
    if (is_divided(d)) return;
    if (reason(d) == CheckReason::kResized && plan_.defects.has(Defect::kResizeUnchecked)) return;
    const auto is_split = [&](const DomainCheck& c) { return reason(c.domain) == CheckReason::kSplitInput; };
    if (reason(d) == CheckReason::kSplitInput && std::any_of(result.begin(), result.end(), is_split) &&
        plan_.defects.has(Defect::kSplitRelatedChecked))
      return;
    result.push_back({d, v, e, lower});
  };
  // The resize of the op itself makes no hole: a pad guards its own reads.
  for (const auto& [d, transform] : known_.climbed)
    if (!is_op_resize(d)) add(d);
  // A resize that no loop is made from bounds the elements that the tensor has, or those that it has a place for.
  const auto is_laid_out = [&](DomainId d) {
    const auto is_made_of_it = [&](DomainId place) { return follows_from(g_, place, d); };
    const Tensor& t = g_[tensor_];
    return std::ranges::any_of(t.logical, is_made_of_it) || std::ranges::any_of(t.allocation, is_made_of_it);
  };
  for (DomainId d : known_.descended)
    if (is_laid_out(d)) add(d);
  if (!result.empty() && plan_.defects.has(Defect::kPredicateDropped)) result.erase(result.begin());
  return result;
}

std::vector<DomainVerdict> DomainValues::verdicts() {
  std::vector<DomainVerdict> result;
  const auto list = checks();
  for (const Known& k : known_.values) {
    DomainVerdict v{k.domain, false, k.origin};
    v.checked = std::any_of(list.begin(), list.end(), [&](const DomainCheck& c) { return c.domain == k.domain; });
    if (!v.checked) {
      if (k.origin == CheckReason::kSplitInput)
        v.reason = algebra_.prove_nonneg(k.value) && algebra_.prove_less(k.value, extent(k.domain))
                       ? CheckReason::kSplitExact
                       : CheckReason::kSplitDivides;
      if (k.origin == CheckReason::kResized)
        v.reason = is_op_resize(k.domain) ? CheckReason::kPadGuards : CheckReason::kResizeExact;
    }
    result.push_back(v);
  }
  return result;
}

size_t axis_of(const Graph& g, const Op& op) {
  const int64_t axis = op.attrs.integer(AttrKey::kAxis);
  if (axis >= 0) return static_cast<size_t>(axis);
  const size_t rank = std::max(rank_of(g, op.operands[0]), root_of(g.tensor_of(op.results[0])).size());
  return static_cast<size_t>(axis + static_cast<int64_t>(rank));
}

Form cat_offset(const Graph& g, const NestPlan& plan, Symbols& symbols, IndexAlgebra& algebra, const Op& op,
                size_t operand) {
  const size_t axis = axis_of(g, op);
  Form offset = algebra.constant(0);
  for (size_t k = 0; k < operand; ++k) {
    if (k > 0 && plan.defects.has(Defect::kCatOffsetDropped)) break;
    const Tensor& p = g.tensor_of(op.operands[k]);
    DomainValues values(g, plan, symbols, algebra, g[op.operands[k]].tensor);
    offset = algebra.add(offset, values.size(logical_without_reductions(g, p)[axis]));
  }
  return offset;
}

}  // namespace fusebox
