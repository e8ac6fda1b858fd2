// The shapes of a PythonProgram: its inputs, the extents that follow from theirs, and symbolic axes.
#include <algorithm>

#include "ir/canonical/canonical.h"
#include "ir/domain/domain.h"
#include "ir/infer/bind.h"
#include "ir/infer/is_library.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"
#include "passes/schedule/apply_steps.h"
#include "replay/python/program.h"

namespace fusebox::python {
namespace {

std::string_view family(const OpRow& row) {
  const auto slots = row.format->all();
  const bool plain =
      std::all_of(slots.begin(), slots.end(), [](const Slot& s) { return s.kind == 'a' && !s.list && !s.optional; });
  if (row.kind == OpKind::kCast) return "cast";
  if ((row.demands & kPointwise) != 0) return plain ? "pointwise" : "other";
  if ((row.demands & kReduction) != 0) return "reduction";
  if ((row.demands & kLibrary) != 0) return "library";
  return (row.demands & kMetadata) != 0 ? "metadata" : "indexed";
}

// The strides of an input of this shape without gaps, in its declared order. Empty for another rank.
std::vector<int64_t> plain_strides(const Graph& g, ValueId input, const std::vector<int64_t>& shape) {
  const Tensor& t = g.tensor_of(input);
  if (shape.size() != t.logical.size()) return {};
  std::vector<int64_t> strides(shape.size(), 1);
  int64_t next = 1;
  const auto order = allocation_of(g, t);
  for (size_t k = order.size(); k > 0; --k) {
    const size_t axis = position_in(t.logical, order[k - 1]);
    strides[axis] = g[order[k - 1]].expanded ? 0 : next;
    if (g[order[k - 1]].iter_type != IterType::kBroadcast) next *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

}  // namespace

std::vector<std::tuple<std::string, std::string, int, std::vector<std::string>>> op_table() {
  std::vector<std::tuple<std::string, std::string, int, std::vector<std::string>>> table;
  for (const OpRow& row : op_rows()) {
    // Euclidean division is only for sizes.
    const bool of_sizes =
        row.kind == OpKind::kFloorDiv || row.kind == OpKind::kFloorMod || row.kind == OpKind::kCeilDiv;
    if (!row.at(Level::kMath) || (row.demands & kSignature) != 0 || of_sizes) continue;
    std::vector<std::string> dtypes;
    for (const DtypeRow& d : dtype_rows())
      if (d.dtype != Dtype::kIndex && accepts_dtype(row.kind, d.dtype)) dtypes.emplace_back(fusebox::text(d.dtype));
    table.emplace_back(row.text, family(row), row.format->slot_count, std::move(dtypes));
  }
  return table;
}

std::vector<InputInfo> PythonProgram::input_infos() const {
  std::vector<InputInfo> result;
  for (ValueId v : inputs(graph)) {
    InputInfo info{.name = graph[v].name,
                   .dtype = std::string(fusebox::text(graph[v].dtype)),
                   .is_tensor = graph.is_tensor(v),
                   .extents = {},
                   .iter_types = {},
                   .expanded = {},
                   .order = {},
                   .contiguity = {},
                   .is_overwritten = false,
                   .indexes = {}};
    if (info.is_tensor) {
      const Tensor& t = graph.tensor_of(v);
      for (DomainId d : t.logical) {
        info.extents.push_back(evaluate_size(graph, d).value_or(-1));
        info.iter_types.emplace_back(fusebox::text(graph[d].iter_type));
        info.expanded.push_back(static_cast<bool>(graph[d].expanded));
      }
      for (DomainId d : allocation_of(graph, t)) info.order.push_back(static_cast<int64_t>(position_in(t.logical, d)));
      for (Contiguity c : contiguity_of(graph, t))
        info.contiguity.emplace_back(c == Contiguity::kTrue ? "true" : c == Contiguity::kFalse ? "false" : "none");
    }
    for (const OutputRef& o : outputs(graph)) info.is_overwritten |= o.alias == v;
    for (OpId id : graph[Graph::body()].ops) {
      const Op& op = graph[id];
      // Rows are added along the first axis; there is no attribute of it.
      const auto index = adds_at_places(op.kind) ? std::optional<size_t>(1) : index_operand(op.kind);
      if (index && op.operands[*index] == v)
        info.indexes.emplace_back(wrap(op.operands[0]), op.attrs.integer(AttrKey::kAxis));
    }
    result.push_back(std::move(info));
  }
  return result;
}

std::vector<LoopInfo> PythonProgram::axes(const Value& v) const {
  std::vector<LoopInfo> result;
  for (DomainId d : logical_without_reductions(graph, graph.tensor_of(id(v))))
    result.push_back({graph[d].name, std::string(fusebox::text(graph[d].iter_type)), ""});
  return result;
}

bool PythonProgram::has_library_ops() const {
  return std::any_of(graph.ops.begin(), graph.ops.end(), [&](const Op& op) { return is_library(graph, op); });
}

std::vector<bool> PythonProgram::expanded(const Value& v) const {
  std::vector<bool> result;
  for (DomainId d : logical_without_reductions(graph, graph.tensor_of(id(v))))
    result.push_back(static_cast<bool>(graph[d].expanded));
  return result;
}

Bindings PythonProgram::sizes(const std::vector<std::vector<int64_t>>& shapes) const {
  std::vector<BoundInput> given;
  size_t next = 0;
  for (ValueId v : inputs(graph)) {
    BoundInput input;
    input.is_scalar = !graph.is_tensor(v);
    if (input.is_scalar) {
      // Callers ask only for results that do not depend on a scalar.
      given.push_back(std::move(input));
      continue;
    }
    if (next == shapes.size())
      throw Error(ErrorCode::kMissingInput, "a shape is needed for each tensor that is an input", "%" + graph[v].name);
    input.shape = shapes[next++];
    input.strides = plain_strides(graph, v, input.shape);
    given.push_back(std::move(input));
  }
  return bind_sizes(graph, given);
}

std::vector<int64_t> PythonProgram::extents_of(const Value& v, const std::vector<std::vector<int64_t>>& shapes) const {
  const auto extents = evaluate_shape(graph, id(v), sizes(shapes));
  if (!extents)
    throw Error(ErrorCode::kNotConcretized, "an extent of this tensor does not follow from the inputs' shapes",
                "%" + v.name);
  return *extents;
}

void PythonProgram::concretize(const std::vector<std::vector<int64_t>>& shapes) {
  const size_t taken = steps.size() - waiting_;
  if (taken != leading_rewrites(steps) || is_concretized_)
    throw Error(ErrorCode::kStepNotApplicable, "a schedule step has been taken; decide symbolic axes before it",
                "@" + graph.name);
  Graph next = current();
  apply(next, plan_resolution(graph, sizes(shapes), next));
  const std::optional<Graph> before = std::exchange(scheduled, canonical_order(next));
  is_concretized_ = true;
  if (waiting_ == 0) return;
  const std::vector<Step> all = steps;
  try {
    steps.resize(taken);
    waiting_ = 0;
    take_schedule(std::span(all).subspan(taken));
  } catch (const Error&) {
    scheduled = before;
    segments_.clear();
    is_concretized_ = false;
    steps = all;
    waiting_ = all.size() - taken;
    throw;
  }
}

std::unique_ptr<PythonProgram> PythonProgram::copy() const {
  auto other = std::make_unique<PythonProgram>(graph.name);
  other->graph = graph;
  other->scheduled = scheduled;
  other->steps = steps;
  other->defects = defects;
  other->unfused = unfused;
  other->is_fast = is_fast;
  other->is_concretized_ = is_concretized_;
  other->segments_ = segments_;
  other->waiting_ = waiting_;
  other->originals_ = originals_;
  other->originals_[serial_] = graph.values.size();
  return other;
}

}  // namespace fusebox::python
