// Extents and sizes of domains, derived ones included.
#include "ir/scalar/scalar.h"
#include "ir/scalar/scalar_form.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

// Limits the transforms that one extent looks through, because there may be many more paths to a domain than
// transforms.
constexpr int kMaxVisits = 1024;

// The size that a reshape names for an axis of its result. Its splits and merges give the same size, unless an extent
// is 0.
ValueId reshape_size(const Graph& g, DomainId d) {
  const IterDomain& domain = g[d];
  if (!domain.tensor) return {};
  const Tensor& t = g[domain.tensor];
  if (!t.value || !g[t.value].def) return {};
  const Op& op = g[g[t.value].def];
  if (op.kind != OpKind::kReshape) return {};
  for (size_t i = 0; i < t.logical.size() && i + 1 < op.operands.size(); ++i)
    if (t.logical[i] == d) return op.operands[i + 1];
  return {};
}

ValueId known_extent(const Graph& g, DomainId d) { return g[d].def ? reshape_size(g, d) : g[d].extent; }

std::optional<ScalarForm> extent_form_within(const Graph& g, DomainId d, int& visits) {
  if (const ValueId v = known_extent(g, d)) return form_of(g, v);
  if (!g[d].def || --visits < 0) return std::nullopt;
  const Transform& t = g[g[d].def];
  const auto input = [&](size_t i) { return extent_form_within(g, t.inputs[i], visits); };
  switch (t.kind) {
    case TransformKind::kSplit: {
      const bool is_inner = t.outputs[1] == d;
      if (is_inner == t.inner_split) return form_of(g, t.factor);
      const auto e = input(0);
      const ScalarForm factor = form_of(g, t.factor);
      // Only a constant divides: a symbolic factor may be 0.
      if (!e || !factor.is_constant() || factor.constant < 1) return std::nullopt;
      if (e->is_constant()) return ScalarForm::of((e->constant + factor.constant - 1) / factor.constant);
      return divide_exactly(*e, factor);
    }
    case TransformKind::kMerge: {
      const auto a = input(0), b = input(1);
      return a && b ? mul(*a, *b) : std::nullopt;
    }
    case TransformKind::kSwizzle:
      return input(t.outputs[0] == d ? 0 : 1);
    case TransformKind::kResize: {
      const auto e = input(0);
      if (!e) return std::nullopt;
      const auto left = add(*e, form_of(g, t.factor));
      return left ? add(*left, form_of(g, t.right)) : std::nullopt;
    }
  }
  return std::nullopt;
}

ValueId emit_extent_within(Graph& g, scalar::Place place, DomainId d, int& visits) {
  if (const ValueId v = known_extent(g, d)) return v;
  if (const auto form = extent_form(g, d)) return emit_form(g, place, *form);
  if (!g[d].def)
    throw Error(ErrorCode::kInvalidGraph, "a domain has neither extent nor definition; give it one", "." + g[d].name);
  if (--visits < 0)
    throw Error(ErrorCode::kTooLarge, "a domain has too many transforms behind it; schedule it with fewer",
                "." + g[d].name);
  const Transform t = g[g[d].def];
  const auto input = [&](size_t i) { return emit_extent_within(g, place, t.inputs[i], visits); };
  switch (t.kind) {
    case TransformKind::kSplit: {
      const bool is_inner = t.outputs[1] == d;
      return is_inner == t.inner_split ? t.factor : scalar::ceil_div(g, place, input(0), t.factor);
    }
    case TransformKind::kMerge: {
      const ValueId outer = input(0);
      return scalar::mul(g, place, outer, input(1));
    }
    case TransformKind::kSwizzle:
      return input(t.outputs[0] == d ? 0 : 1);
    case TransformKind::kResize:
      return scalar::add(g, place, scalar::add(g, place, input(0), t.factor), t.right);
  }
  return {};
}

std::optional<int64_t> evaluate_extent_within(const Graph& g, DomainId d, const Bindings& b, int& visits) {
  if (const ValueId v = known_extent(g, d)) {
    // The shape of a reshape may hold −1 until inference replaces it.
    return evaluate_integer(g, v, b);
  }
  if (!g[d].def || --visits < 0) return std::nullopt;
  const Transform& t = g[g[d].def];
  const auto input = [&](size_t i) { return evaluate_extent_within(g, t.inputs[i], b, visits); };
  const auto fold = [&](OpKind kind, std::optional<int64_t> x, std::optional<int64_t> y) -> std::optional<int64_t> {
    if (!x || !y) return std::nullopt;
    const TypedBits operands[] = {{Dtype::kIndex, {static_cast<uint64_t>(*x), 0}},
                                  {Dtype::kIndex, {static_cast<uint64_t>(*y), 0}}};
    return static_cast<int64_t>(evaluate_op(kind, Dtype::kIndex, operands)->low);
  };
  switch (t.kind) {
    case TransformKind::kSplit: {
      const bool is_inner = t.outputs[1] == d;
      const auto factor = evaluate_integer(g, t.factor, b);
      return is_inner == t.inner_split ? factor : fold(OpKind::kCeilDiv, input(0), factor);
    }
    case TransformKind::kMerge:
      return fold(OpKind::kMul, input(0), input(1));
    case TransformKind::kSwizzle:
      return input(t.outputs[0] == d ? 0 : 1);
    case TransformKind::kResize:
      return fold(OpKind::kAdd, fold(OpKind::kAdd, input(0), evaluate_integer(g, t.factor, b)),
                  evaluate_integer(g, t.right, b));
  }
  return std::nullopt;
}

}  // namespace

std::optional<ScalarForm> extent_form(const Graph& g, DomainId d) {
  int visits = kMaxVisits;
  return extent_form_within(g, d, visits);
}

std::optional<ScalarForm> size_form(const Graph& g, DomainId d) {
  return g[d].expanded ? form_of(g, g[d].expanded) : extent_form(g, d);
}

std::optional<int64_t> constant_extent(const Graph& g, DomainId d) {
  const auto form = extent_form(g, d);
  return form && form->is_constant() ? std::optional(form->constant) : std::nullopt;
}

ValueId emit_extent(Graph& g, scalar::Place place, DomainId d) {
  int visits = kMaxVisits;
  return emit_extent_within(g, place, d, visits);
}

ValueId emit_size(Graph& g, scalar::Place place, DomainId d) {
  return g[d].expanded ? g[d].expanded : emit_extent(g, place, d);
}

std::optional<int64_t> evaluate_extent(const Graph& g, DomainId d, const Bindings& bindings) {
  int visits = kMaxVisits;
  return evaluate_extent_within(g, d, bindings, visits);
}

std::optional<int64_t> evaluate_size(const Graph& g, DomainId d, const Bindings& bindings) {
  return g[d].expanded ? evaluate_integer(g, g[d].expanded, bindings) : evaluate_extent(g, d, bindings);
}

std::optional<std::vector<int64_t>> evaluate_shape(const Graph& g, ValueId tensor, const Bindings& bindings) {
  std::vector<int64_t> shape;
  for (DomainId d : g.tensor_of(tensor).logical) {
    if (g[d].iter_type == IterType::kReduction) continue;
    const auto size = evaluate_size(g, d, bindings);
    if (!size) return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}

}  // namespace fusebox
