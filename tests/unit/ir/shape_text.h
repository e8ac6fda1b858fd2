// A type as tests of inference print it: `f32[%m, 1, 1*%n, reduce %k, ?%s]` has a plain axis, a broadcast, an expanded
// one, a reduction and a symbolic axis. A derived axis shows its transform: `split(…)`.
#pragma once

#include <string>

#include "ir/build/builder.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"

namespace fusebox {

// The code and place of the error that `f` throws, or `accepted`.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& e) {
    return code_text(e.code) + " " + e.place;
  }
  return "accepted";
}

inline std::string scalar_text(const Graph& g, ValueId v) {
  if (!v) return "none";
  if (const auto n = constant_integer(g, v)) return std::to_string(*n);
  return g.is_constant(v) ? "constant" : "%" + g[v].name;
}

// A scalar as the expression of the ops that make it: `(%m*%n)`.
inline std::string expression_text(const Graph& g, ValueId v) {
  if (!v || g.is_constant(v) || !g[v].def) return scalar_text(g, v);
  const Op& op = g[g[v].def];
  if (op.kind == OpKind::kSize || op.kind == OpKind::kInput) return scalar_text(g, v);
  const std::string sign = op.kind == OpKind::kAdd   ? "+"
                           : op.kind == OpKind::kSub ? "-"
                           : op.kind == OpKind::kMul ? "*"
                                                     : "";
  if (!sign.empty()) return "(" + expression_text(g, op.operands[0]) + sign + expression_text(g, op.operands[1]) + ")";
  std::string text = std::string(row_of(op.kind).text) + "(";
  for (size_t i = 0; i < op.operands.size(); ++i) text += (i ? "," : "") + expression_text(g, op.operands[i]);
  return text + ")";
}

inline std::string domain_text(const Graph& g, DomainId d) {
  const IterDomain& domain = g[d];
  if (domain.def) {
    const Transform& t = g[domain.def];
    std::string text = std::string(fusebox::text(t.kind)) + "(";
    for (size_t i = 0; i < t.inputs.size(); ++i) text += (i ? "," : "") + g[t.inputs[i]].name;
    if (t.factor) text += " by " + expression_text(g, t.factor);
    if (t.right) text += "," + expression_text(g, t.right);
    text += ")";
    if (t.outputs.size() > 1) text += t.outputs[0] == d ? ".outer" : ".inner";
    return text;
  }
  const std::string extent = expression_text(g, domain.extent);
  if (domain.expanded) return extent + "*" + expression_text(g, domain.expanded);
  if (domain.iter_type == IterType::kReduction) return "reduce " + extent;
  if (domain.iter_type == IterType::kSymbolic) return "?" + extent;
  if (domain.iter_type == IterType::kBroadcast || extent != "1") return extent;
  return "iter 1";
}

inline std::string shape_text(const Graph& g, ValueId v) {
  std::string text(fusebox::text(g[v].dtype));
  if (!g.is_tensor(v)) return text;
  text += "[";
  const Tensor& t = g.tensor_of(v);
  for (size_t i = 0; i < t.logical.size(); ++i) text += (i ? ", " : "") + domain_text(g, t.logical[i]);
  return text + "]";
}

// A fusion with three sizes, for fixtures.
struct SizedFusion {
  Graph g = fusion("f");
  ValueId m = size(g, "m"), n = size(g, "n"), k = size(g, "k");
};

inline std::string root_text(const Graph& g, ValueId v) {
  std::string text;
  for (DomainId d : root_of(g.tensor_of(v))) text += (text.empty() ? "" : ", ") + g[d].name + ":" + domain_text(g, d);
  return text;
}

}  // namespace fusebox
