// Emits what each op computes at one point of its nest.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/infer/scalar_operand.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "passes/lower/kernel_emitter.h"
#include "passes/plan/plan_queries.h"

namespace fusebox {
namespace {

// Whether a kernel's op takes operand `k` as `to` without a cast. The op computes in the dtype that its operands
// promote to. No dtype holds both u64 and a signed integer, and narrow floats are computed in f32.
bool is_taken_as(const Graph& g, const Op& op, size_t k, Dtype to) {
  const Dtype own = g[op.operands[k]].dtype;
  if (own == to) return true;
  const bool any_u64 =
      std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return g[v].dtype == Dtype::kUint64; });
  return !any_u64 && !is_reduced_float(to) && promote(own, to) == to;
}

}  // namespace

Attrs KernelEmitter::hints(const Site& site, ValueId v) const {
  Attrs attrs;
  if (site.op.attrs.has(AttrKey::kCacheOp) && plan_.buffer_of(v).memory == MemoryType::kGlobal)
    attrs.set(AttrKey::kCacheOp, site.op.attrs.integer(AttrKey::kCacheOp));
  return attrs;
}

ValueId KernelEmitter::read(Site& site, size_t operand, ValueId predicate, ValueId otherwise, ValueId loaded) {
  const Access& a = site.plan.reads[operand];
  return kernel_.load(tensor(a.value), emit_form(site.view.algebra, a.index, loaded), predicate, otherwise,
                      hints(site, a.value));
}

ValueId KernelEmitter::operand_value(Site& site, size_t operand) {
  const ValueId v = site.op.operands[operand];
  return g_.is_tensor(v) ? read(site, operand) : scalar(v);
}

void KernelEmitter::write(Site& site, const std::vector<ValueId>& values, MemoryType which) {
  for (size_t i = 0; i < site.plan.writes.size(); ++i) {
    const Access& a = site.plan.writes[i];
    if (which != MemoryType::kUnset && plan_.buffer_of(a.value).memory != which) continue;
    kernel_.store(tensor(a.value), emit_form(site.view.algebra, a.index), values[i], {}, hints(site, a.value));
  }
}

void KernelEmitter::emit_within(Site& site, ValueId index, bool from_end) {
  if (defects().has(Defect::kIndexUnchecked)) return;
  const ValueId v = site.op.operands[0];
  const auto axis = axis_of(g_, site.op);
  const DomainId domain = logical_without_reductions(g_, g_.tensor_of(v))[axis];
  const auto known = kernel_.constant_of(index), length = evaluate_size(g_, domain);
  if (known && length && *known < *length && *known >= (from_end ? -*length : 0)) return;
  const Buffer& b = plan_.buffer_of(v);
  // A tensor parameter brings its own extents, so the check needs no further argument.
  const auto ends = outputs(g_);
  const bool is_given = b.is_parameter && (g_[g_[b.storage].def].kind == OpKind::kInput ||
                                           std::any_of(ends.begin(), ends.end(),
                                                       [&](const OutputRef& out) { return out.value == b.storage; }));
  Attrs attrs;
  if (from_end) attrs.set_flag(AttrKey::kFromEnd);
  if (is_given) {
    attrs.set(AttrKey::kAxis, static_cast<int64_t>(axis));
    kernel_.effect(OpKind::kWithin, {index, {}, tensor(v)}, {}, attrs);
    return;
  }
  DomainValues values(g_, plan_.nest_plan, site.view.symbols, site.view.algebra, g_[v].tensor);
  const ValueId extent = emit_form(site.view.algebra, values.size(domain));
  kernel_.effect(OpKind::kWithin, {index, extent, {}}, {}, attrs);
}

ValueId KernelEmitter::compute_scatter(Site& site) {
  // Every element searches for the last index that chooses it. That is slow, but the result is always the same.
  const Op& op = site.op;
  IndexAlgebra& algebra = site.view.algebra;
  const size_t axis = axis_of(g_, op);
  const Dtype dtype = data_dtype(g_[op.results[0]].dtype);
  const auto& root = root_of(g_.tensor_of(op.results[0]));
  const auto index_axes = logical_without_reductions(g_, g_.tensor_of(op.operands[1]));
  DomainValues extents(g_, plan_.nest_plan, site.view.symbols, algebra, g_[op.operands[1]].tensor);
  const ValueId chosen = kernel_.allocate(dtype, MemoryType::kLocal, kernel_.index(1), {}, 0, "chosen");
  const ValueId here = emit_form(algebra, site.view.place(root[axis]));
  kernel_.store(chosen, kernel_.index(0), read(site, 0));
  ValueId inside = kernel_.bit(true);
  for (size_t i = 0; i < index_axes.size(); ++i)
    if (const Form at = site.view.place(root[i]), end = extents.size(index_axes[i]);
        i != axis && !algebra.prove_less(at, end))
      inside =
          kernel_.logical_and(inside, kernel_.compare(OpKind::kLt, emit_form(algebra, at), emit_form(algebra, end)));
  const bool is_loop = scatter_count(plan_, site.view) != 1;
  const ValueId along = is_loop
                            ? kernel_.begin_for(kernel_.index(0), emit_form(algebra, scatter_extent(plan_, site.view)),
                                                kernel_.index(1), false)
                            : ValueId();
  const ValueId index = read(site, 1, inside, {}, along);
  emit_within(site, index);
  const ValueId position = kernel_.op(OpKind::kCast, {index}, Dtype::kIndex);
  const ValueId hit = kernel_.logical_and(inside, kernel_.compare(OpKind::kEq, position, here));
  kernel_.begin_if(hit);
  kernel_.store(chosen, kernel_.index(0), cast_to(read(site, 2, {}, {}, along), dtype));
  kernel_.end();
  if (is_loop) kernel_.end();
  return kernel_.load(chosen, kernel_.index(0));
}

ValueId KernelEmitter::compute_iota(Site& site) {
  const Op& op = site.op;
  const Dtype dtype = data_dtype(g_[op.results[0]].dtype);
  // Narrow floats are rounded once, at the end.
  const Dtype computed = is_reduced_float(dtype) ? Dtype::kFloat : dtype;
  const auto operand = [&](size_t k) { return cast_to(cast_to(scalar(op.operands[k]), dtype), computed); };
  const ValueId i = emit_form(site.view.algebra, site.view.own.value(g_.tensor_of(op.results[0]).logical[0]));
  ValueId v = kernel_.op(OpKind::kCast, {i}, computed);
  const bool has_start = op.operands.size() > 1 && op.operands[1];
  const bool has_step = op.operands.size() > 2 && op.operands[2];
  const bool is_scaled = has_start && has_step && defects().has(Defect::kIotaStartScaled);
  if (is_scaled) v = kernel_.op(OpKind::kAdd, {operand(1), v}, computed);
  if (has_step) v = kernel_.op(OpKind::kMul, {v, operand(2)}, computed);
  if (is_scaled) return cast_to(v, dtype);
  if (has_start)
    v = kernel_.op(OpKind::kAdd, {operand(1), v}, computed);
  else if (is_floating(computed))
    v = kernel_.op(OpKind::kAdd, {kernel_.constant(computed, {}), v}, computed);  // 0 by a negative step is 0, not -0
  return cast_to(v, dtype);
}

ValueId KernelEmitter::compute_pad(Site& site) {
  const Op& op = site.op;
  const Dtype dtype = data_dtype(g_[op.results[0]].dtype);
  ValueId inside = kernel_.bit(true);
  for (const Condition& c : site.plan.reads[0].inside)
    inside = kernel_.logical_and(inside, emit_condition(site.view.algebra, c, site.place.op));
  const bool has_value = op.operands.size() > 1 && op.operands[1];
  const bool is_whole = has_value && defects().has(Defect::kPadValueTruncated);
  const ValueId otherwise = is_whole    ? cast_to(cast_to(scalar(op.operands[1]), Dtype::kInt64), dtype)
                            : has_value ? cast_to(scalar(op.operands[1]), dtype)
                                        : kernel_.constant(dtype, {});
  const bool anywhere = kernel_.constant_of(inside) != 1 && defects().has(Defect::kPadUnchecked);
  return read(site, 0, anywhere ? kernel_.bit(true) : inside, otherwise);
}

ValueId KernelEmitter::compute_cat(Site& site) {
  const Dtype dtype = data_dtype(g_[site.op.results[0]].dtype);
  ValueId result;
  for (size_t k = site.op.operands.size(); k-- > 0;) {
    const Access& a = site.plan.reads[k];
    emit_form(site.view.algebra, *a.position);
    ValueId inside = kernel_.bit(true);
    for (const Condition& c : a.inside)
      inside = kernel_.logical_and(inside, emit_condition(site.view.algebra, c, site.place.op));
    const ValueId v = cast_to(read(site, k, kernel_.constant_of(inside) == 1 ? ValueId() : inside), dtype);
    result = result ? kernel_.op(OpKind::kWhere, {inside, v, result}, dtype) : v;
  }
  return result;
}

ValueId KernelEmitter::compute_select(Site& site) {
  // A negative index counts from the end, as in ATen.
  const Op& op = site.op;
  const ValueId given = operand_value(site, 1);
  emit_within(site, given, true);
  const ValueId index = cast_to(given, Dtype::kIndex);
  if (defects().has(Defect::kSelectNotWrapped)) return read(site, 0, {}, {}, index);
  DomainValues values(g_, plan_.nest_plan, site.view.symbols, site.view.algebra, g_[op.operands[0]].tensor);
  const DomainId axis = logical_without_reductions(g_, g_.tensor_of(op.operands[0]))[axis_of(g_, op)];
  const ValueId from_end = kernel_.add(index, emit_form(site.view.algebra, values.size(axis)));
  const ValueId negative = kernel_.compare(OpKind::kLt, index, kernel_.index(0));
  return read(site, 0, {}, {}, kernel_.where(negative, from_end, index));
}

ValueId KernelEmitter::compute_triu(Site& site) {
  const Op& op = site.op;
  const Dtype dtype = data_dtype(g_[op.results[0]].dtype);
  const auto& logical = g_.tensor_of(op.results[0]).logical;
  const size_t rank = logical.size();
  const ValueId row = emit_form(site.view.algebra, site.view.place(logical[rank - 2]));
  const ValueId column = emit_form(site.view.algebra, site.view.place(logical[rank - 1]));
  const bool has_diagonal = op.operands.size() > 1 && op.operands[1];
  const bool is_negated = has_diagonal && defects().has(Defect::kTriuDiagonal);
  constexpr int64_t kFar = int64_t{1} << 31;
  const auto known = has_diagonal ? constant_integer(g_, op.operands[1]) : std::optional<int64_t>(0);
  const ValueId diagonal = has_diagonal ? cast_to(scalar(op.operands[1]), Dtype::kIndex) : ValueId();
  const auto is_kept = [&] {
    if (is_negated) return kernel_.compare(OpKind::kGe, column, kernel_.sub(row, diagonal));
    // The sum of a row and a diagonal may overflow an index. A column minus a row cannot.
    if (!known || *known > kFar || *known < -kFar)
      return kernel_.compare(OpKind::kGe, kernel_.sub(column, row), diagonal);
    return kernel_.compare(OpKind::kGe, column, has_diagonal ? kernel_.add(row, diagonal) : row);
  };
  const ValueId keep = is_kept();
  return kernel_.op(OpKind::kWhere, {keep, read(site, 0), kernel_.constant(dtype, {})}, dtype);
}

ValueId KernelEmitter::compute(Site& site) {
  const Op& op = site.op;
  const Dtype dtype = data_dtype(g_[op.results[0]].dtype);
  switch (op.kind) {
    case FUSEBOX_VIEW_OPS:
    case FUSEBOX_COPY_OPS:
      return operand_value(site, 0);
    case OpKind::kFull:
      return cast_to(scalar(op.operands[0]), dtype);
    case OpKind::kIota:
      return compute_iota(site);
    case OpKind::kPad:
      return compute_pad(site);
    case OpKind::kCat:
      return compute_cat(site);
    case OpKind::kSelect:
      return compute_select(site);
    case FUSEBOX_GATHERING_OPS: {
      const ValueId index = read(site, 1);
      emit_within(site, index);
      return read(site, 0, {}, {}, cast_to(index, Dtype::kIndex));
    }
    case OpKind::kScatter:
      return compute_scatter(site);
    case OpKind::kTriu:
      return compute_triu(site);
    case FUSEBOX_RANDOM_OPS:
      return compute_random(site);
    case FUSEBOX_MATH_OPS: {
      std::vector<ValueId> operands;
      for (size_t k = 0; k < op.operands.size(); ++k) {
        operands.push_back(operand_value(site, k));
        const auto to = scalar_dtype(g_, op.kind, op.operands, k);
        if (!to || is_taken_as(g_, op, k, *to) || defects().has(Defect::kScalarNotConverted)) continue;
        const Value& own = g_[op.operands[k]];
        operands.back() = own.constant ? kernel_.constant(*to, convert(own.dtype, *own.constant, *to))
                                       : cast_to(operands.back(), *to);
      }
      Attrs attrs = op.attrs;
      attrs.erase(AttrKey::kDtypeAttr);
      if (attrs.has(AttrKey::kFast) && defects().has(Defect::kPrecisionNotLowered)) attrs.erase(AttrKey::kFast);
      return kernel_.op(op.kind, operands, dtype, attrs);
    }
    case FUSEBOX_REDUCTION_OPS:
    case FUSEBOX_MOMENT_OPS:
    case FUSEBOX_LIBRARY_OPS:
    case FUSEBOX_STATEMENT_OPS:
      break;
  }
  not_in_family(op.kind, "is not computed element by element");
}

void KernelEmitter::emit_pointwise(Site& site) {
  guarded(emit_conditions(site), [&] {
    const auto loaded = loaded_before_.find(site.op.results[0]);
    if (loaded == loaded_before_.end()) return write(site, {compute(site)});
    write(site, {kernel_.load(loaded->second, emit_form(site.view.algebra, site.plan.writes[0].index))});
  });
}

void KernelEmitter::emit_vector_copy(Site& site) {
  const VectorCopy& copy = *site.plan.vector;
  const ValueId predicate = emit_conditions(site);
  Attrs attrs;
  attrs.set(AttrKey::kWidth, copy.width);
  for (AttrKey key : {AttrKey::kCopyKind, AttrKey::kCacheOp})
    if (site.op.attrs.has(key)) attrs.set(key, site.op.attrs.integer(key));
  guarded(predicate, [&] {
    const ValueId at = emit_form(site.view.algebra, copy.target);
    if (const auto loaded = loaded_before_.find(site.op.results[0]); loaded != loaded_before_.end()) {
      Attrs width;
      width.set(AttrKey::kWidth, copy.width);
      kernel_.effect(OpKind::kCopy, {tensor(site.op.results[0]), at, loaded->second, at, ValueId()}, {}, width);
      return;
    }
    const ValueId from = emit_form(site.view.algebra, copy.source);
    kernel_.effect(OpKind::kCopy, {tensor(site.op.results[0]), at, tensor(site.op.operands[0]), from, ValueId()}, {},
                   attrs);
  });
}

}  // namespace fusebox
