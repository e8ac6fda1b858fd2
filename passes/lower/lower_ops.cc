// What each op computes at one point of its nest.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/infer/scalar_operand.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "passes/lower/lowering.h"

namespace fusebox::lowering {
namespace {

// Whether a kernel's op, which computes in what all its operands are promoted to, takes operand `k` as `to` anyway. No
// dtype holds both u64 and a signed integer, and narrow floats are computed in f32.
bool is_taken_as(const Graph& g, const Op& op, size_t k, Dtype to) {
  const Dtype own = g[op.operands[k]].dtype;
  if (own == to) return true;
  const bool any_u64 =
      std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return g[v].dtype == Dtype::kUint64; });
  return !any_u64 && !is_reduced_float(to) && promote(own, to) == to;
}

}  // namespace

void Lowering::guarded(ValueId predicate, const std::function<void()>& emit) {
  const auto known = kernel.constant_of(predicate);
  if (known && *known != 0) {
    emit();
    return;
  }
  const OpId last = kernel.last();
  // The neighbour's `if`, where it is the same: nothing but pure scalars may stand between, and none does.
  if (last && kernel.graph()[last].kind == OpKind::kIf && kernel.graph()[last].operands[0] == predicate &&
      kernel.graph()[last].regions.size() == 1)
    kernel.reopen_if();
  else
    kernel.begin_if(predicate);
  emit();
  kernel.end();
}

ValueId Lowering::read(OpView& view, size_t operand, ValueId predicate, ValueId otherwise) {
  const ValueId v = g[view.statement.op].operands[operand];
  DomainValues values = view.feed(operand);
  const Buffer& b = buffers[v.index];
  return kernel.load(b.kernel_value, emit_form(view.index_of(b, values)), predicate, otherwise);
}

ValueId Lowering::operand_value(OpView& view, size_t operand) {
  const ValueId v = g[view.statement.op].operands[operand];
  return g.is_tensor(v) ? read(view, operand) : scalar(v);
}

void Lowering::write(OpView& view, const std::vector<ValueId>& values, MemoryType which) {
  const Op& op = g[view.statement.op];
  for (size_t i = 0; i < op.results.size(); ++i) {
    const Buffer& b = buffers[op.results[i].index];
    if (which != MemoryType::kUnset && b.memory != which) continue;
    DomainValues* at = &view.own;
    std::optional<DomainValues> sibling;
    if (i > 0 && b.memory == MemoryType::kGlobal) {
      sibling.emplace(g, plan, view.symbols, algebra, g[op.results[i]].tensor);
      const auto pass_on = [&](const std::vector<DomainId>& from, const std::vector<DomainId>& to) {
        for (size_t k = 0; k < to.size(); ++k)
          if (view.own.known(from[k])) sibling->set(to[k], view.own.value(from[k]));
      };
      const Tensor &leader = g.tensor_of(op.results[0]), &own = g.tensor_of(op.results[i]);
      pass_on(root_of(leader), root_of(own));
      // Behind the loops of a reduction that an rfactor split, what is left of the axis is known, and the axis is not.
      pass_on(logical_without_reductions(g, leader), logical_without_reductions(g, own));
      sibling->propagate();
      at = &*sibling;
    }
    kernel.store(b.kernel_value, emit_form(view.index_of(b, *at)), values[i]);
  }
}

void Lowering::emit_within(OpView& view, ValueId index, bool from_end) {
  if (options.defects.has(Defect::kIndexUnchecked)) return;
  const Op& op = g[view.statement.op];
  const ValueId v = op.operands[0];
  const auto axis = axis_of(g, op);
  const DomainId domain = logical_without_reductions(g, g.tensor_of(v))[axis];
  const auto known = kernel.constant_of(index), length = evaluate_size(g, domain);
  if (known && length && *known < *length && *known >= (from_end ? -*length : 0)) return;
  const Buffer& b = buffers[v.index];
  // What the kernel is given has the extent beside it: the kernel takes no more arguments for the check.
  const auto ends = outputs(g);
  const bool is_given = b.is_parameter && (g[g[b.storage].def].kind == OpKind::kInput ||
                                           std::any_of(ends.begin(), ends.end(),
                                                       [&](const OutputRef& out) { return out.value == b.storage; }));
  Attrs attrs;
  if (from_end) attrs.set_flag(AttrKey::kFromEnd);
  if (is_given) {
    attrs.set(AttrKey::kAxis, static_cast<int64_t>(axis));
    kernel.effect(OpKind::kWithin, {index, {}, b.kernel_value}, {}, attrs);
    return;
  }
  DomainValues values(g, plan, view.symbols, algebra, g[v].tensor);
  const ValueId extent = emit_form(values.size(domain));
  kernel.effect(OpKind::kWithin, {index, extent, {}}, {}, attrs);
}

ValueId Lowering::emit_scatter(OpView& view, const Op& op) {
  // Every element looks for the last index that chooses it: slow, and the same every time.
  const size_t axis = axis_of(g, op);
  const Dtype dtype = data_dtype(g[op.results[0]].dtype);
  const auto& root = root_of(g.tensor_of(op.results[0]));
  const auto index_axes = logical_without_reductions(g, g.tensor_of(op.operands[1]));
  DomainValues extents(g, plan, view.symbols, algebra, g[op.operands[1]].tensor);
  const ValueId chosen = kernel.allocate(dtype, MemoryType::kLocal, kernel.index(1), {}, 0, "chosen");
  const ValueId here = emit_form(view.place(root[axis]));
  kernel.store(chosen, kernel.index(0), read(view, 0));
  ValueId inside = kernel.bit(true);
  for (size_t i = 0; i < index_axes.size(); ++i)
    if (const Form at = view.place(root[i]), end = extents.size(index_axes[i]);
        i != axis && !algebra.prove_less(at, end))
      inside = kernel.logical_and(inside, kernel.compare(OpKind::kLt, emit_form(at), emit_form(end)));
  const Form count = extents.size(index_axes[axis]);
  const bool is_loop = algebra.constant_value(count) != 1;
  Form along = algebra.constant(0);
  if (is_loop)
    along = view.run_time_symbol(kernel.begin_for(kernel.index(0), emit_form(count), kernel.index(1), false));
  const auto at = [&](size_t operand) {
    DomainValues values = view.feed(operand, along);
    return emit_form(view.index_of(buffers[op.operands[operand].index], values));
  };
  const ValueId index = kernel.load(buffer_of(op.operands[1]), at(1), inside);
  emit_within(view, index);
  const ValueId position = kernel.op(OpKind::kCast, {index}, Dtype::kIndex);
  const ValueId hit = kernel.logical_and(inside, kernel.compare(OpKind::kEq, position, here));
  kernel.begin_if(hit);
  kernel.store(chosen, kernel.index(0), cast_to(kernel.load(buffer_of(op.operands[2]), at(2)), dtype));
  kernel.end();
  if (is_loop) kernel.end();
  return kernel.load(chosen, kernel.index(0));
}

ValueId Lowering::compute(OpView& view, const Op& op) {
  const Dtype dtype = data_dtype(g[op.results[0]].dtype);
  const size_t axis = op.attrs.has(AttrKey::kAxis) ? axis_of(g, op) : 0;
  const auto& logical = g.tensor_of(op.results[0]).logical;
  const auto& root = root_of(g.tensor_of(op.results[0]));
  const auto cast = [&](ValueId v) { return cast_to(v, dtype); };
  const auto as_index = [&](ValueId v) { return cast_to(v, Dtype::kIndex); };
  // Reads the first operand where `index` is on the axis.
  const auto read_at = [&](ValueId index) {
    DomainValues values = view.feed(0, view.run_time_symbol(index));
    const Buffer& b = buffers[op.operands[0].index];
    return kernel.load(b.kernel_value, emit_form(view.index_of(b, values)));
  };
  switch (op.kind) {
    case OpKind::kBroadcast:
    case OpKind::kBroadcastInDim:
    case OpKind::kReshape:
    case OpKind::kPermute:
    case OpKind::kExpand:
    case OpKind::kSqueeze:
    case OpKind::kSlice:
    case OpKind::kStrideOrder:
    case OpKind::kSet:
    case OpKind::kSegmentSet:
      return operand_value(view, 0);
    case OpKind::kFull:
      return cast(scalar(op.operands[0]));
    case OpKind::kIota: {
      // Narrow floats are rounded once, when the number is there.
      const Dtype computed = is_reduced_float(dtype) ? Dtype::kFloat : dtype;
      const auto operand = [&](size_t k) { return cast_to(cast(scalar(op.operands[k])), computed); };
      const ValueId i = emit_form(view.own.value(logical[0]));
      ValueId v = kernel.op(OpKind::kCast, {i}, computed);
      const bool has_start = op.operands.size() > 1 && op.operands[1];
      const bool has_step = op.operands.size() > 2 && op.operands[2];
      const bool is_scaled = has_start && has_step && options.defects.has(Defect::kIotaStartScaled);
      if (is_scaled) v = kernel.op(OpKind::kAdd, {operand(1), v}, computed);
      if (has_step) v = kernel.op(OpKind::kMul, {v, operand(2)}, computed);
      if (is_scaled) return cast(v);
      if (has_start)
        v = kernel.op(OpKind::kAdd, {operand(1), v}, computed);
      else if (is_floating(computed))
        v = kernel.op(OpKind::kAdd, {kernel.constant(computed, {}), v}, computed);  // 0 by a negative step is 0, not -0
      return cast(v);
    }
    case OpKind::kPad: {
      ValueId inside = kernel.bit(true);
      for (DomainId d : root) {
        if (!view.own.known(d)) continue;
        const Form v = view.place(d), e = view.own.extent(d);
        if (!algebra.prove_nonneg(v))
          inside = kernel.logical_and(inside, kernel.compare(OpKind::kGe, emit_form(v), kernel.index(0)));
        if (!algebra.prove_less(v, e))
          inside = kernel.logical_and(inside, kernel.compare(OpKind::kLt, emit_form(v), emit_form(e)));
      }
      const bool has_value = op.operands.size() > 1 && op.operands[1];
      const bool is_whole = has_value && options.defects.has(Defect::kPadValueTruncated);
      const ValueId otherwise = is_whole    ? cast(cast_to(scalar(op.operands[1]), Dtype::kInt64))
                                : has_value ? cast(scalar(op.operands[1]))
                                            : kernel.constant(dtype, {});
      const bool anywhere = kernel.constant_of(inside) != 1 && options.defects.has(Defect::kPadUnchecked);
      return read(view, 0, anywhere ? kernel.bit(true) : inside, otherwise);
    }
    case OpKind::kCat: {
      ValueId result;
      for (size_t k = op.operands.size(); k-- > 0;) {
        const Form at = algebra.sub(view.place(root[axis]), view.cat_offset(k));
        DomainValues values(g, plan, view.symbols, algebra, g[op.operands[k]].tensor);
        const Form extent = values.size(logical_without_reductions(g, g.tensor_of(op.operands[k]))[axis]);
        const ValueId position = emit_form(at);
        ValueId inside = kernel.bit(true);
        if (!algebra.prove_less(at, extent)) inside = kernel.compare(OpKind::kLt, position, emit_form(extent));
        if (!algebra.prove_nonneg(at) && !options.defects.has(Defect::kCatLowerUnchecked))
          inside = kernel.logical_and(inside, kernel.compare(OpKind::kGe, position, kernel.index(0)));
        const ValueId v = cast(read(view, k, kernel.constant_of(inside) == 1 ? ValueId() : inside));
        result = result ? kernel.op(OpKind::kWhere, {inside, v, result}, dtype) : v;
      }
      return result;
    }
    case OpKind::kSelect: {
      // A negative index counts from the end, as ATen's.
      const ValueId given = operand_value(view, 1);
      emit_within(view, given, true);
      const ValueId index = as_index(given);
      if (options.defects.has(Defect::kSelectNotWrapped)) return read_at(index);
      DomainValues values(g, plan, view.symbols, algebra, g[op.operands[0]].tensor);
      const ValueId extent = emit_form(values.size(logical_without_reductions(g, g.tensor_of(op.operands[0]))[axis]));
      const ValueId from_end = kernel.add(index, extent);
      const ValueId negative = kernel.compare(OpKind::kLt, index, kernel.index(0));
      return read_at(kernel.where(negative, from_end, index));
    }
    case OpKind::kIndexSelect: {
      DomainValues values = view.feed(1);
      const Buffer& b = buffers[op.operands[1].index];
      const ValueId index = kernel.load(b.kernel_value, emit_form(view.index_of(b, values)));
      emit_within(view, index);
      return read_at(as_index(index));
    }
    case OpKind::kGather:
    case OpKind::kTakeAlongAxis: {
      // The index is read at the result's place; on a broadcast axis at 0.
      DomainValues values = view.feed(1, view.own.value(root[axis]));
      const Buffer& b = buffers[op.operands[1].index];
      const ValueId index = kernel.load(b.kernel_value, emit_form(view.index_of(b, values)));
      emit_within(view, index);
      return read_at(as_index(index));
    }
    case OpKind::kScatter:
      return emit_scatter(view, op);
    case OpKind::kTriu: {
      const size_t rank = logical.size();
      const ValueId row = emit_form(view.place(logical[rank - 2]));
      const ValueId column = emit_form(view.place(logical[rank - 1]));
      const bool has_diagonal = op.operands.size() > 1 && op.operands[1];
      const bool is_negated = has_diagonal && options.defects.has(Defect::kTriuDiagonal);
      constexpr int64_t kFar = int64_t{1} << 31;
      const auto known = has_diagonal ? constant_integer(g, op.operands[1]) : std::optional<int64_t>(0);
      const ValueId diagonal = has_diagonal ? as_index(scalar(op.operands[1])) : ValueId();
      const auto is_kept = [&] {
        if (is_negated) return kernel.compare(OpKind::kGe, column, kernel.sub(row, diagonal));
        // A row and a diagonal may be too much for an index; a column less a row is not.
        if (!known || *known > kFar || *known < -kFar)
          return kernel.compare(OpKind::kGe, kernel.sub(column, row), diagonal);
        return kernel.compare(OpKind::kGe, column, has_diagonal ? kernel.add(row, diagonal) : row);
      };
      const ValueId keep = is_kept();
      return kernel.op(OpKind::kWhere, {keep, read(view, 0), kernel.constant(dtype, {})}, dtype);
    }
    default: {
      check_internal(demands(op.kind, kPointwise), "an op that is neither pointwise nor listed here");
      std::vector<ValueId> operands;
      for (size_t k = 0; k < op.operands.size(); ++k) {
        operands.push_back(operand_value(view, k));
        const auto to = scalar_dtype(g, op.kind, op.operands, k);
        if (!to || is_taken_as(g, op, k, *to) || options.defects.has(Defect::kScalarNotConverted)) continue;
        const Value& own = g[op.operands[k]];
        operands.back() =
            own.constant ? kernel.constant(*to, convert(own.dtype, *own.constant, *to)) : cast_to(operands.back(), *to);
      }
      Attrs attrs = op.attrs;
      attrs.erase(AttrKey::kDtypeAttr);
      return kernel.op(op.kind, operands, dtype, attrs);
    }
  }
}

void Lowering::emit_pointwise(OpView& view) {
  const Op& op = g[view.statement.op];
  guarded(emit_conditions(view), [&] { write(view, {compute(view, op)}); });
}

}  // namespace fusebox::lowering
