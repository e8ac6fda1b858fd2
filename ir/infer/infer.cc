#include "ir/infer/infer.h"

#include <algorithm>

#include "ir/domain/axis_relation.h"
#include "ir/domain/domain.h"
#include "ir/infer/infer_rules.h"
#include "ir/infer/scalar_operand.h"
#include "ir/table/families.h"

namespace fusebox {
namespace {

// Fills in null ids for absent optional operands at the end.
void fill_in(OpKind kind, std::vector<ValueId>& operands) {
  const FormatRow& format = *row_of(kind).format;
  if (format.list_count() != 0) return;
  while (operands.size() < format.all().size() && format.slots[operands.size()].optional) operands.push_back({});
}

std::vector<ResultSpec> infer_results(InferContext& c) {
  if (!row_of(c.kind).at(c.g.level))
    fail(c.g, ErrorCode::kWrongLevel,
         op_text(c.kind) + " cannot stand in a program of level " + std::string(text(c.g.level)), c.operand(0));
  fill_in(c.kind, c.operands);
  OpView view = c.view();
  check_format(view);
  check_attrs(view);
  c.slots = view.slots;
  if (c.kind == OpKind::kReshape) return {infer_reshape(c)};
  switch (c.kind) {
    case OpKind::kInput:
      throw Error(ErrorCode::kInternal, "an input's type is not inferred; make it with input()");
    case OpKind::kSize:
      return std::vector<ResultSpec>(c.name_count);
    case OpKind::kOutput:
      check_output(view);
      return {};
    case OpKind::kFull:
    case OpKind::kIota:
    case FUSEBOX_RANDOM_OPS:
      return {infer_factory(c)};
    case OpKind::kTriu:
    case OpKind::kCat:
    case OpKind::kScatter:
    case FUSEBOX_INDEXED_OPS:
      return {infer_indexed(c)};
    case FUSEBOX_SCALAR_OPS:
    case OpKind::kWelfordCombine:
      return infer_pointwise(c);
    case FUSEBOX_REDUCTION_OPS:
    case FUSEBOX_MOMENT_OPS:
      return infer_reduction(c);
    case FUSEBOX_LIBRARY_OPS:
      return infer_library(c);
    case OpKind::kPad:
    case FUSEBOX_VIEW_OPS:
      return {infer_metadata(c)};
    case FUSEBOX_THREAD_OPS:
    case FUSEBOX_HOST_OPS:
    case FUSEBOX_FACT_OPS:
      return infer_low_level(c);
  }
  not_in_family(c.kind, "has no rule for its results");
}

ValueId make_result(Graph& g, const ResultSpec& spec, std::string_view name) {
  if (spec.kind == ValueKind::kTensor) {
    const ValueId v = add_tensor(g, spec.dtype, name);
    make_domains(g, g[v].tensor, spec);
    return v;
  }
  const ValueId v = add_scalar(g, spec.dtype, name);
  g[v].kind = spec.kind;
  return v;
}

void make_regions(Graph& g, Op& op) {
  const bool one = op.kind == OpKind::kFor || op.kind == OpKind::kPost || op.kind == OpKind::kIf;
  if (!one) return;
  const RegionId region = add_region(g);
  op.regions.push_back(region);
  if (op.kind != OpKind::kFor) return;
  const ValueId index = add_scalar(g, Dtype::kIndex, {});
  g[index].index_of = region;
  g[region].index = index;
}

// Whether the operand's axis that becomes this one is symbolic. Then a broadcast before was inferred, and no step made it.
bool is_open(const Graph& g, const Op& op, size_t axis) {
  const auto axes = logical_without_reductions(g, g.tensor_of(op.operands[0]));
  const auto relation = axis_relation(g, op, 0);
  for (size_t i = 0; i < axes.size(); ++i)
    if (relation[i].result == axis) return g[axes[i]].iter_type == IterType::kSymbolic;
  return false;
}

// An axis that was concretized stays so: if inference makes it symbolic again, it takes the type of its old domain. The
// same holds for a broadcast of one element that inference expands again.
void keep_concretized(Graph& g, TensorId tensor, const Op& op, ResultSpec& spec) {
  if (op.kind != OpKind::kExpand && op.kind != OpKind::kBroadcastInDim) return;
  const auto& old = g[tensor].logical;
  if (old.size() != spec.axes.size()) return;
  for (size_t i = 0; i < old.size(); ++i) {
    Axis& axis = spec.axes[i];
    const bool is_broadcast = g[old[i]].iter_type == IterType::kBroadcast;
    // The op stretches this axis to a size that is 1.
    if (is_broadcast && !g[old[i]].expanded && (axis.expanded || axis.type == IterType::kSymbolic))
      axis = broadcast_axis(g);
    if (axis.type != IterType::kSymbolic || is_open(g, op, i)) continue;
    if (g[old[i]].iter_type == IterType::kIteration) axis.type = IterType::kIteration;
    if (is_broadcast) {
      axis.type = IterType::kBroadcast;
      axis.expanded = axis.extent;
      axis.extent = g[old[i]].extent;
    }
  }
}

}  // namespace

OpId add_op(Graph& g, RegionId region, OpKind kind, std::vector<ValueId> operands, Attrs attrs,
            std::vector<std::string> names, std::optional<Dtype> declared) {
  InferContext c{g, region, kind, std::move(operands), attrs, declared, names.size()};
  const std::vector<ResultSpec> specs = infer_results(c);
  check_constants(g, kind, attrs, c.operands);
  if (names.size() > specs.size())
    throw Error(ErrorCode::kOperandCount,
                op_text(kind) + " has " + std::to_string(specs.size()) + " results, not " +
                    std::to_string(names.size()) + "; name as many",
                "%" + names[0]);
  Op op;
  op.kind = kind;
  op.operands = std::move(c.operands);
  op.attrs = std::move(attrs);
  for (size_t i = 0; i < specs.size(); ++i)
    op.results.push_back(make_result(g, specs[i], i < names.size() ? std::string_view(names[i]) : std::string_view()));
  make_regions(g, op);
  return append(g, region, std::move(op));
}

void infer(Graph& g, OpId id, std::optional<Dtype> declared, const Defects& defects) {
  if (g[id].kind == OpKind::kInput || g[id].kind == OpKind::kSize) return;
  const Attrs attrs = g[id].attrs;
  if (!declared && !g[id].results.empty()) declared = g[g[id].results[0]].dtype;
  if (g.level == Level::kMath || g.level == Level::kScheduled) declared.reset();
  InferContext c{g, scalar::Place::before_op(g, id), g[id].kind, g[id].operands, attrs, declared, g[id].results.size()};
  c.defects = defects;
  std::vector<ResultSpec> specs = infer_results(c);
  check_constants(g, c.kind, attrs, c.operands);
  g[id].operands = std::move(c.operands);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (i == g[id].results.size()) {
      const ValueId v = make_result(g, specs[i], {});
      g[id].results.push_back(v);
      g[v].def = id;
      continue;
    }
    const ValueId v = g[id].results[i];
    if (g[v].kind != specs[i].kind)
      throw Error(ErrorCode::kWrongKind, op_text(g[id].kind) + " has a result of another kind than inferred",
                  "%" + g[v].name);
    g[v].dtype = specs[i].dtype;
    if (specs[i].kind != ValueKind::kTensor) continue;
    keep_concretized(g, g[v].tensor, g[id], specs[i]);
    make_domains(g, g[v].tensor, specs[i]);
  }
}

OpKind op_named(std::string_view text) {
  if (const auto kind = parse_op(text)) return *kind;
  static constexpr std::string_view kKnown[] = {"rand_like",
                                                "randn_like",
                                                "nv_block_quantize",
                                                "nv_grouped_block_quantize",
                                                "preprocess_grouped_matmul_input_sf",
                                                "embedding_fwd",
                                                "var",
                                                "var_mean",
                                                "shape"};
  if (std::find(std::begin(kKnown), std::end(kKnown), text) != std::end(kKnown))
    throw Error(ErrorCode::kUnsupportedOp,
                "the op " + std::string(text) + " is not supported yet; build it from others", std::string(text));
  throw Error(ErrorCode::kUnknownOp, "no op has the name " + std::string(text) + "; see the op table",
              std::string(text));
}

}  // namespace fusebox
