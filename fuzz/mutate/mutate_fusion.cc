// Mutations of a fusion's ops. An op is edited in place, and everything that depends on it is inferred again.
#include <algorithm>
#include <charconv>

#include "fuzz/generate/constants.h"
#include "fuzz/mutate/mutate_rules.h"
#include "ir/infer/infer.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"

namespace fusebox::fuzz {
namespace {

// Whether the op can be exchanged with another of its format.
bool is_exchangeable(OpKind kind) {
  return demands(kind, kPointwise) && kind != OpKind::kCast && kind != OpKind::kWhere && kind != OpKind::kFull &&
         kind != OpKind::kIota && kind != OpKind::kTriu && row_of(kind).at(Level::kMath);
}

void replace_reads(Graph& g, ValueId from, ValueId to, OpId except = {}) {
  for (size_t i = 0; i < g.ops.size(); ++i)
    if (OpId(i) != except) std::replace(g.ops[i].operands.begin(), g.ops[i].operands.end(), from, to);
}

void infer_again(Graph& g) {
  const std::vector<OpId> ops = tensor_ops(g);
  for (OpId id : ops) infer(g, id);
  g = compact(g);
}

// The op that makes the tensor of that name; nothing for an input.
std::optional<OpId> op_of(const Graph& g, const std::string& name) {
  const auto v = find_value(g, name);
  if (!v || !g.is_tensor(*v) || !g[*v].def || demands(g[g[*v].def].kind, kSignature)) return std::nullopt;
  return g[*v].def;
}

size_t position_of(const Graph& g, OpId op) {
  const auto& body = g[Graph::body()].ops;
  return static_cast<size_t>(std::find(body.begin(), body.end(), op) - body.begin());
}

// A constant as text: a number for dtype index, the spec of a scalar input for other dtypes.
std::string constant_text(Dtype dtype, ConstantBits bits) {
  if (dtype == Dtype::kIndex) return std::to_string(static_cast<int64_t>(bits.low));
  InputSpec spec;
  spec.name = "x";
  spec.is_scalar = true;
  spec.dtype = dtype;
  spec.value = bits;
  const std::string line = print(spec);
  return line.substr(line.find("= ") + 2);
}

std::optional<ConstantBits> constant_of_text(Dtype dtype, const std::string& text) {
  if (dtype == Dtype::kIndex) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return ConstantBits{static_cast<uint64_t>(value), 0};
  }
  const InputSpec spec = parse_input_spec("x", text);
  return spec.is_scalar && spec.dtype == dtype ? std::optional(spec.value) : std::nullopt;
}

}  // namespace

std::vector<OpId> tensor_ops(const Graph& g) {
  std::vector<OpId> ops;
  for (OpId id : g[Graph::body()].ops)
    if (!demands(g[id].kind, kSignature) && !g[id].results.empty() && g.is_tensor(g[id].results[0])) ops.push_back(id);
  return ops;
}

bool draw_for_fusion(RandomSource& random, MutationKind kind, const Case& from, Parameters& p) {
  const Graph& g = from.fusion();
  const auto ops = tensor_ops(g);
  if (ops.empty()) return false;
  const OpId id = random.pick(ops);
  const Op& op = g[id];
  const std::string& name = g[op.results[0]].name;
  const auto other_kind = [&](const FormatRow* format, bool rewritten) -> std::optional<OpKind> {
    std::vector<OpKind> kinds;
    for (const OpRow& row : op_rows())
      if (row.format == format && (!rewritten || row.kind != op.kind) && is_exchangeable(row.kind))
        kinds.push_back(row.kind);
    return kinds.empty() ? std::nullopt : std::optional(random.pick(kinds));
  };
  switch (kind) {
    case MutationKind::kReplaceOp: {
      const auto other = is_exchangeable(op.kind) ? other_kind(row_of(op.kind).format, true) : std::nullopt;
      if (!other) return false;
      p = {name, std::string(row_of(*other).text)};
      return true;
    }
    case MutationKind::kRetargetOp: {
      if (op.operands.empty()) return false;
      const size_t at = random.below(op.operands.size());
      if (!op.operands[at] || !g.is_tensor(op.operands[at])) return false;
      std::vector<ValueId> fitting;
      for (OpId before : g[Graph::body()].ops) {
        if (before == id) break;
        for (ValueId v : g[before].results)
          if (g.is_tensor(v) && v != op.operands[at] && rank_of(g, v) == rank_of(g, op.operands[at]))
            fitting.push_back(v);
      }
      if (fitting.empty()) return false;
      p = {name, std::to_string(at), g[random.pick(fitting)].name};
      return true;
    }
    case MutationKind::kDeleteOp: {
      std::vector<ValueId> fitting;
      for (ValueId v : op.operands)
        if (v && g.is_tensor(v) && rank_of(g, v) == rank_of(g, op.results[0])) fitting.push_back(v);
      if (fitting.empty()) return false;
      p = {name, g[random.pick(fitting)].name};
      return true;
    }
    case MutationKind::kInsertOp: {
      const auto unary = other_kind(row_of(OpKind::kNeg).format, false);
      if (!unary) return false;
      p = {name, std::string(row_of(*unary).text)};
      return true;
    }
    case MutationKind::kReplaceConstant: {
      std::vector<std::pair<OpId, size_t>> constants;
      for (OpId o : ops)
        for (size_t i = 0; i < g[o].operands.size(); ++i)
          if (const ValueId v = g[o].operands[i]; v && g.is_constant(v) && !is_storage_only(g[v].dtype))
            constants.emplace_back(o, i);
      if (constants.empty()) return false;
      const auto [reader, at] = random.pick(constants);
      const Value& was = g[g[reader].operands[at]];
      ConstantBits bits;
      if (was.dtype == Dtype::kIndex)
        bits.low = was.constant->low + static_cast<uint64_t>(random.between(-2, 2));
      else
        bits = draw_constant(random, was.dtype);
      if (bits == *was.constant) return false;
      p = {g[g[reader].results[0]].name, std::to_string(at), constant_text(was.dtype, bits)};
      return true;
    }
    case FUSEBOX_STEP_MUTATIONS:
    case FUSEBOX_INPUT_MUTATIONS:
      return false;
  }
  return false;
}

bool apply_to_fusion(Case& c, MutationKind kind, const Parameters& p) {
  Graph& g = c.module.graphs[0];
  if (p.size() < 2) return false;
  const auto id = op_of(g, p[0]);
  if (!id) return false;
  switch (kind) {
    case MutationKind::kReplaceOp: {
      const OpKind other = op_named(p[1]);
      if (!is_exchangeable(other) || !is_exchangeable(g[*id].kind) ||
          row_of(other).format != row_of(g[*id].kind).format)
        return false;
      g[*id].kind = other;
      g[*id].attrs = {};
      break;
    }
    case MutationKind::kRetargetOp: {
      const auto at = parse_position(p[1], g[*id].operands.size());
      const auto v = p.size() == 3 ? find_value(g, p[2]) : std::nullopt;
      if (!at || !v || !g.is_tensor(*v) || !g[*v].def || position_of(g, g[*v].def) >= position_of(g, *id)) return false;
      g[*id].operands[*at] = *v;
      break;
    }
    case MutationKind::kDeleteOp: {
      const auto v = find_value(g, p[1]);
      const auto& operands = g[*id].operands;
      if (!v || std::find(operands.begin(), operands.end(), *v) == operands.end() || !g.is_tensor(*v)) return false;
      replace_reads(g, g[*id].results[0], *v, *id);
      std::erase(g[Graph::body()].ops, *id);
      break;
    }
    case MutationKind::kInsertOp: {
      const OpKind unary = op_named(p[1]);
      if (!is_exchangeable(unary) || row_of(unary).format != row_of(OpKind::kNeg).format) return false;
      const ValueId v = *find_value(g, p[0]);
      Op op;
      op.kind = unary;
      op.operands = {v};
      const OpId added = insert_after(g, *id, std::move(op));
      infer(g, added);
      replace_reads(g, v, g[added].results[0], added);
      break;
    }
    case MutationKind::kReplaceConstant: {
      const auto at = parse_position(p[1], g[*id].operands.size());
      const ValueId was = at ? g[*id].operands[*at] : ValueId();
      const auto bits =
          was && p.size() == 3 && g.is_constant(was) ? constant_of_text(g[was].dtype, p[2]) : std::nullopt;
      if (!bits) return false;
      g[*id].operands[*at] = constant(g, g[was].dtype, *bits);
      break;
    }
    case FUSEBOX_STEP_MUTATIONS:
    case FUSEBOX_INPUT_MUTATIONS:
      return false;
  }
  infer_again(g);
  return true;
}

}  // namespace fusebox::fuzz
