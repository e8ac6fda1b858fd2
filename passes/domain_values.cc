#include "passes/domain_values.h"

#include <algorithm>

#include "ir/domain.h"

namespace fusebox {
namespace {

const Form* look_up(const std::vector<std::pair<DomainId, Form>>& list, DomainId d) {
  for (const auto& [domain, form] : list)
    if (domain == d) return &form;
  return nullptr;
}

}  // namespace

Form DomainValues::inner_extent(const Transform& t) { return extent(t.outputs[1]); }

Form DomainValues::extent(DomainId d) {
  if (const Form* known = look_up(extents_, d)) return *known;
  const IterDomain& domain = g_[d];
  Form result = algebra_.constant(1);
  if (domain.def) {
    const Transform& t = g_[domain.def];
    switch (t.kind) {
      case TransformKind::kSplit: {
        const Form factor = symbols_.of(t.factor);
        const bool is_inner = t.outputs[1] == d;
        result = is_inner == t.inner_split ? factor : algebra_.ceil_div(extent(t.inputs[0]), factor);
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
  } else if (const auto it = plan_.promoted.find(d); it != plan_.promoted.end()) {
    result = symbols_.of(it->second);
  } else if (domain.iter_type != IterType::kBroadcast && domain.extent) {
    result = algebra_.symbol_of(symbols_.of(domain.extent));
  }
  extents_.emplace_back(d, result);
  return result;
}

void DomainValues::set(DomainId d, Form value) {
  if (!known(d)) values_.emplace_back(d, value);
}

bool DomainValues::known(DomainId d) const { return look_up(values_, d) != nullptr; }

Form DomainValues::value(DomainId d) const {
  const Form* known = look_up(values_, d);
  return known ? *known : Form{};
}

bool DomainValues::up(const Transform& t) {
  for (DomainId d : t.outputs)
    if (!known(d)) return false;
  switch (t.kind) {
    case TransformKind::kSplit:
      set(t.inputs[0], algebra_.add(algebra_.mul(value(t.outputs[0]), inner_extent(t)), value(t.outputs[1])));
      climbed_.push_back(t.inputs[0]);
      break;
    case TransformKind::kMerge: {
      const auto parts = algebra_.div_mod(value(t.outputs[0]), extent(t.inputs[1]));
      set(t.inputs[0], parts.quotient);
      set(t.inputs[1], parts.remainder);
      break;
    }
    case TransformKind::kSwizzle: {
      const Form first = value(t.outputs[0]), second = value(t.outputs[1]);
      set(t.inputs[0], first);
      set(t.inputs[1], t.swizzle == SwizzleType::kXor
                           ? algebra_.bit_xor(second, first)
                           : algebra_.cyclic(second, algebra_.neg(first), extent(t.inputs[1])));
      break;
    }
    case TransformKind::kResize:
      set(t.inputs[0], algebra_.sub(value(t.outputs[0]), symbols_.of(t.factor)));
      climbed_.push_back(t.inputs[0]);
      break;
  }
  return true;
}

bool DomainValues::down(const Transform& t) {
  for (DomainId d : t.inputs)
    if (!known(d)) return false;
  switch (t.kind) {
    case TransformKind::kSplit: {
      const auto parts = algebra_.div_mod(value(t.inputs[0]), inner_extent(t));
      set(t.outputs[0], parts.quotient);
      set(t.outputs[1], parts.remainder);
      break;
    }
    case TransformKind::kMerge:
      set(t.outputs[0], algebra_.add(algebra_.mul(value(t.inputs[0]), extent(t.inputs[1])), value(t.inputs[1])));
      break;
    case TransformKind::kSwizzle: {
      const Form first = value(t.inputs[0]), second = value(t.inputs[1]);
      set(t.outputs[0], first);
      set(t.outputs[1], t.swizzle == SwizzleType::kXor ? algebra_.bit_xor(second, first)
                                                       : algebra_.cyclic(second, first, extent(t.inputs[1])));
      break;
    }
    case TransformKind::kResize:
      set(t.outputs[0], algebra_.add(value(t.inputs[0]), symbols_.of(t.factor)));
      descended_.push_back(t.outputs[0]);
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
    // Upwards first, in reverse order of application: what loops give is preferred to what follows from it.
    for (size_t i = transforms.size(); i-- > 0;) {
      const Transform& t = g_[transforms[i]];
      const bool outputs_known = std::all_of(t.outputs.begin(), t.outputs.end(), [&](DomainId d) { return known(d); });
      const bool inputs_known = std::all_of(t.inputs.begin(), t.inputs.end(), [&](DomainId d) { return known(d); });
      if (outputs_known && !inputs_known) changed |= up(t);
    }
    for (TransformId id : transforms) changed |= step(g_[id]);
  }
}

std::vector<DomainCheck> DomainValues::checks() {
  std::vector<DomainCheck> result;
  const auto add = [&](DomainId d, bool may_be_negative) {
    const Form v = value(d), e = extent(d);
    const bool lower = may_be_negative && !algebra_.prove_nonneg(v);
    if (!lower && algebra_.prove_less(v, e)) return;
    result.push_back({d, v, e, lower});
  };
  const Tensor& t = g_[tensor_];
  const auto of_op = op_transforms(g_, t);
  for (DomainId d : climbed_) {
    // What pad does from root to logical is no hole: it guards its own reads.
    const bool op_resize = std::any_of(of_op.begin(), of_op.end(), [&](TransformId id) {
      return g_[id].inputs[0] == d && g_[id].kind == TransformKind::kResize;
    });
    if (!op_resize) add(d, true);
  }
  for (DomainId d : descended_) add(d, true);
  return result;
}

}  // namespace fusebox
