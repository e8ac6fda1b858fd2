// Makes one op of a generated fusion: its operands and attributes. Facts that the table's formats lack are written here by
// op; the rest follows from the row. generate_moves.cc makes the ops that move elements, generate_library.cc those that
// ATen alone computes.
#include <algorithm>

#include "fuzz/generate/fusion_maker.h"
#include "ir/infer/infer.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"

namespace fusebox::fuzz {
namespace {

// The dtypes that an op accepts by the type rules.
const std::vector<Dtype>& accepted(OpKind kind) {
  static const std::vector<std::vector<Dtype>> all = [] {
    std::vector<std::vector<Dtype>> lists(op_rows().size());
    for (const OpRow& op : op_rows())
      for (const DtypeRow& d : dtype_rows())
        if (d.dtype != Dtype::kIndex && accepts_dtype(op.kind, d.dtype))
          lists[static_cast<size_t>(op.kind)].push_back(d.dtype);
    return lists;
  }();
  return all[static_cast<size_t>(kind)];
}

}  // namespace

bool FusionMaker::takes(OpKind kind, Dtype dtype) {
  const auto& list = accepted(kind);
  return std::find(list.begin(), list.end(), dtype) != list.end();
}

Dtype FusionMaker::dtype_for(OpKind kind) {
  if (wanted_ && takes(kind, *wanted_)) return *wanted_;
  constexpr Dtype kUsual[] = {Dtype::kFloat, Dtype::kFloat, Dtype::kBfloat16, Dtype::kHalf, Dtype::kInt32};
  constexpr Dtype kNarrow[] = {Dtype::kInt8, Dtype::kInt16, Dtype::kInt32};
  if (kind == OpKind::kLogicalRightShift && random_.one_in(2)) return random_.pick(kNarrow);
  const Dtype usual = random_.pick(kUsual);
  if (!random_.one_in(2) && takes(kind, usual)) return usual;
  const auto& list = accepted(kind);
  return list.empty() ? usual : random_.pick(list);
}

ValueId FusionMaker::operand(OpKind kind, size_t least_rank) {
  if (first_operand_ && takes(kind, g_[first_operand_].dtype) && rank_of(g_, first_operand_) >= least_rank) {
    const bool has_under =
        under_ && row_of(*under_).format->all().size() == 1 && takes(*under_, g_[first_operand_].dtype);
    return has_under ? unary(g_, *under_, first_operand_) : first_operand_;
  }
  const bool any = !wanted_ && !random_.one_in(4);
  const Dtype wanted = dtype_for(kind);
  std::vector<ValueId> fitting;
  for (ValueId v : made_)
    if ((any ? takes(kind, g_[v].dtype) : g_[v].dtype == wanted) && rank_of(g_, v) >= least_rank) fitting.push_back(v);
  // Often the latest one, so that ops form chains.
  if (!fitting.empty() && !random_.one_in(8)) return random_.one_in(2) ? random_.pick(fitting) : fitting.back();
  if (!made_.empty() && random_.one_in(2) && !is_storage_only(wanted)) {
    const ValueId x = random_.pick(made_);
    if (rank_of(g_, x) >= least_rank && !is_storage_only(g_[x].dtype)) {
      made_.push_back(cast(g_, x, wanted));
      return made_.back();
    }
  }
  if (!made_.empty() && random_.one_in(2))
    if (const ValueId x = random_.pick(made_); rank_of(g_, x) >= least_rank) return input_beside(x, wanted, false);
  Extents extents = draw_extents();
  while (extents.size() < least_rank) extents.push_back(random_.between(1, 3));
  return new_input(wanted, extents);
}

// True if the axes, aligned to the right, have equal extents or are broadcasts.
bool FusionMaker::fits(ValueId x, ValueId y) {
  const auto a = logical_without_reductions(g_, g_.tensor_of(x)), b = logical_without_reductions(g_, g_.tensor_of(y));
  const Extents m = extents_of(x), n = extents_of(y);
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const auto stretches = [&](DomainId d) { return g_[d].iter_type == IterType::kBroadcast && !g_[d].expanded; };
    if (m[m.size() - i] != n[n.size() - i] && !stretches(a[a.size() - i]) && !stretches(b[b.size() - i])) return false;
  }
  return true;
}

ValueId FusionMaker::partner(OpKind kind, ValueId x) {
  if (partner_ == Partner::kConstant) return neutral_constant(g_[x].dtype);
  if (partner_ == Partner::kReduction) return over_its_operand(reduction_);
  const Dtype dtype = random_.one_in(4) ? dtype_for(kind) : g_[x].dtype;
  // Shift by at most the dtype's width; larger shifts lose all bits.
  const bool is_shift =
      kind == OpKind::kBitwiseLeftShift || kind == OpKind::kBitwiseRightShift || kind == OpKind::kLogicalRightShift;
  if (is_shift && random_.one_in(2))
    return constant_of(g_, random_.one_in(2) ? Dtype::kInt64 : g_[x].dtype,
                       static_cast<double>(random_.between(0, bits(g_[x].dtype))));
  switch (random_.below(8)) {
    case 0:
      return x;
    case 1:
    case 5:
      return scalar_operand(dtype, g_[x].dtype);
    case 2:
      return is_storage_only(dtype) || !random_.one_in(3) ? scalar_constant(g_[x].dtype) : input_scalar(g_, "", dtype);
    case 3:
    case 4:
      return input_beside(x, dtype, true);
    default: {
      std::vector<ValueId> fitting;
      for (ValueId v : made_)
        if (takes(kind, g_[v].dtype) && fits(x, v)) fitting.push_back(v);
      return fitting.empty() ? x : random_.pick(fitting);
    }
  }
}

// Operands of different classes. No dtype holds both u64 and signed integers, so the signed one is a scalar.
void FusionMaker::add_mixed(OpKind kind, std::vector<ValueId>& operands, size_t count) {
  std::vector<Dtype> classes = {Dtype::kUint64, Dtype::kInt32, Dtype::kFloat, Dtype::kComplexFloat, Dtype::kBool};
  std::erase_if(classes, [&](Dtype d) { return !takes(kind, d); });
  random_.shuffle(classes);
  for (size_t i = 0; i < classes.size() && operands.size() < count; ++i)
    // A negative constant cannot become u64; a scalar input can.
    operands.push_back(classes[i] == Dtype::kInt32
                           ? (random_.one_in(2) ? input_scalar(g_, "", classes[i]) : constant_of(g_, classes[i], -1))
                       : random_.one_in(4) ? scalar_constant(classes[i], g_[operands[0]].dtype)
                                           : input_beside(operands[0], classes[i], true));
}

// A reduction's result, with the reduced axes as broadcasts.
ValueId FusionMaker::over_its_operand(ValueId reduced) {
  const Op& op = g_[g_[reduced].def];
  const size_t rank = rank_of(g_, op.operands[0]);
  if (rank_of(g_, reduced) == rank) return reduced;
  std::vector<bool> mask(rank);
  for (int64_t axis : op.attrs.ints(AttrKey::kAxes))
    mask[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
  return broadcast(g_, reduced, mask);
}

ValueId FusionMaker::condition(ValueId x) {
  for (ValueId v : made_)
    if (g_[v].dtype == Dtype::kBool && fits(x, v) && !random_.one_in(2)) return v;
  return input_beside(x, Dtype::kBool, true);
}

Axes FusionMaker::permutation(size_t rank) {
  Axes dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(static_cast<int64_t>(i));
  random_.shuffle(dims);
  return dims;
}

Axes FusionMaker::some_axes(size_t rank) {
  Axes axes;
  for (size_t i = 0; i < rank; ++i)
    if (random_.one_in(2)) axes.push_back(written(i, rank));
  if (axes.empty() && rank > 0) axes.push_back(written(random_.below(rank), rank));
  return axes;
}

std::vector<ValueId> FusionMaker::make(OpKind kind) {
  switch (neighbour_) {
    case Neighbour::kNone:
      return op(kind);
    case Neighbour::kAgain:
      return with_reader(make_again(Op(g_[twin_]), random_.one_in(2)));
    case Neighbour::kThereAndBack:
      return with_reader({there_and_back(first_operand_)});
    case Neighbour::kAlongEqualAxes:
      return with_reader(along_equal_axes(kind));
    case Neighbour::kCasts:
      return cast_chain(casts_);
    case Neighbour::kForm:
      return form_of(form_);
    case Neighbour::kArguments:
      return function_of(arguments_);
    case Neighbour::kOp:
      break;
  }
  return with_reader(op(kind));
}

std::vector<ValueId> FusionMaker::with_reader(std::vector<ValueId> results) {
  const bool is_offered = options_.mix[static_cast<size_t>(OpKind::kNeg)] > 0;
  if (!results.empty() && is_offered && takes(OpKind::kNeg, g_[results.back()].dtype) && random_.one_in(2))
    results.push_back(unary(g_, OpKind::kNeg, results.back()));
  return results;
}

std::vector<ValueId> FusionMaker::op(OpKind kind) {
  switch (kind) {
    case OpKind::kFull:
    case OpKind::kIota:
    case FUSEBOX_RANDOM_OPS:
      return factory(kind);
    case OpKind::kTriu: {
      // The diagonal is a constant, or known at the run only, and then it may be so far that a row and it leave 64 bits.
      const ValueId x = operand(kind, 2);
      if (!options_.symbolic || !random_.one_in(3)) return {triu(g_, x, random_.between(-2, 3))};
      constexpr int64_t kFar[] = {INT64_MAX, INT64_MAX - 2, INT64_MIN, INT64_MIN + 2, INT32_MAX, INT32_MIN};
      const Scalar diagonal =
          random_.one_in(2) ? Scalar(index_input(random_.pick(kFar))) : index_scalar(random_.between(-2, 3));
      return g_[add_op(g_, Graph::body(), kind, {x, scalar_of(g_, diagonal)})].results;
    }
    case FUSEBOX_REDUCTION_OPS:
    case FUSEBOX_MOMENT_OPS:
      return reduction(kind);
    case OpKind::kPad:
    case OpKind::kCat:
    case FUSEBOX_VIEW_OPS:
      return move(kind);
    case OpKind::kScatter:
    case FUSEBOX_INDEXED_OPS:
      return indexed(kind);
    case FUSEBOX_SCALAR_OPS:
      return pointwise_op(kind);
    case FUSEBOX_LIBRARY_OPS:
      return library(kind);
    case FUSEBOX_STATEMENT_OPS:
      break;
  }
  not_in_family(kind, "stands in no fusion");
}

namespace {

void exchange(Attrs& attrs, int64_t rank, std::pair<int64_t, int64_t> pair) {
  const auto exchanged = [&](int64_t axis) {
    const int64_t i = axis < 0 ? axis + rank : axis;
    return i == pair.first ? pair.second : i == pair.second ? pair.first : axis;
  };
  if (attrs.has(AttrKey::kAxis)) attrs.set(AttrKey::kAxis, exchanged(attrs.integer(AttrKey::kAxis)));
  for (AttrKey key : {AttrKey::kAxes, AttrKey::kDims}) {
    if (!attrs.has(key)) continue;
    const auto given = attrs.ints(key);
    Axes axes(given.begin(), given.end());
    std::transform(axes.begin(), axes.end(), axes.begin(), exchanged);
    if (key == AttrKey::kAxes) std::sort(axes.begin(), axes.end());
    attrs.set(key, axes);
  }
}

}  // namespace

std::vector<ValueId> FusionMaker::make_again(const Op& op, bool exchanges) {
  Attrs attrs = op.attrs;
  if (const ValueId x = op.operands.empty() ? ValueId() : op.operands[0]; exchanges && x && g_.is_tensor(x))
    if (const auto pairs = equal_axes(x); !pairs.empty())
      exchange(attrs, static_cast<int64_t>(rank_of(g_, x)), random_.pick(pairs));
  return g_[add_op(g_, Graph::body(), op.kind, op.operands, attrs)].results;
}

std::vector<ValueId> FusionMaker::along_equal_axes(OpKind kind) {
  Extents extents(2, random_.between(2, 5));
  if (random_.one_in(2)) extents.push_back(random_.between(1, 5));
  random_.shuffle(extents);
  first_operand_ = new_input(dtype_for(kind), extents);
  std::vector<ValueId> results = op(kind);
  if (results.empty()) return results;
  for (ValueId v : make_again(Op(g_[g_[results[0]].def]), true)) results.push_back(v);
  return results;
}

std::vector<ValueId> FusionMaker::cast_chain(const CastFocus& casts) {
  wanted_ = casts.from;
  const ValueId x = operand(OpKind::kCast);
  wanted_.reset();
  const ValueId from = g_[x].dtype == casts.from ? x : cast(g_, x, casts.from);
  return {cast(g_, cast(g_, from, casts.through), casts.to)};
}

std::vector<ValueId> FusionMaker::pointwise_op(OpKind kind) {
  const ValueId x = operand(kind);
  if (kind == OpKind::kCast) {
    Dtype to = static_cast<Dtype>(random_.below(dtype_rows().size()));
    // Sometimes back to the dtype before the last cast.
    if (const Op& made = g_[g_[x].def]; made.kind == OpKind::kCast && random_.one_in(2))
      to = g_[made.operands[0]].dtype;
    return {cast(g_, x, to == Dtype::kIndex ? Dtype::kInt64 : to)};
  }
  // A copy with attributes that tell how to copy.
  if (kind == OpKind::kSet && random_.one_in(6)) {
    Attrs attrs;
    attrs.set_enum(AttrKey::kCacheOp, random_.pick<CacheOp>());
    if (random_.one_in(2)) attrs.set_enum(AttrKey::kCopyKind, CopyKind::kSet);
    return {pointwise(g_, kind, {x}, "", attrs)};
  }
  std::vector<ValueId> operands = {x};
  const size_t count = row_of(kind).format->all().size();
  if (count > 2 && random_.one_in(4)) add_mixed(kind, operands, count);
  while (operands.size() < count) operands.push_back(partner(kind, x));
  if (kind == OpKind::kWhere) operands = {condition(x), operands[0], operands[1]};
  // Puts x on either side.
  else if (count == 2 && random_.one_in(3))
    std::swap(operands[0], operands[1]);
  // The check of sizes lets an axis of one element pass that is not resolved, and not each of them will stretch.
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (g_.is_tensor(operands[i]) && g_.is_tensor(operands[j]) && !fits(operands[i], operands[j])) return {};
  const ValueId made = pointwise(g_, kind, operands);
  // Only what is computed in f32 has a fast form.
  const Dtype dtype = g_[made].dtype;
  if (row_of(kind).accepts(AttrKey::kFast) && is_floating(dtype) && dtype != Dtype::kDouble &&
      !is_storage_only(dtype) && random_.one_in(10))
    g_[g_[made].def].attrs.set_flag(AttrKey::kFast);
  return {made};
}

std::vector<ValueId> FusionMaker::reduction(OpKind kind) {
  const ValueId x = operand(kind, 1);
  const Axes axes = some_axes(rank_of(g_, x));
  // A maximum over no elements is not defined.
  const auto rank = static_cast<int64_t>(rank_of(g_, x));
  if (kind == OpKind::kMax || kind == OpKind::kMin)
    for (int64_t axis : axes)
      if (extent_of(x, static_cast<size_t>(axis < 0 ? axis + rank : axis)) == 0) return {};
  if (is_moment(kind)) return moments(g_, kind, x, axes);
  ReductionOptions options{.keepdim = random_.one_in(4)};
  if (row_of(kind).accepts(AttrKey::kDtypeAttr) && random_.one_in(6)) options.dtype = dtype_for(kind);
  return {reduce(g_, kind, x, axes, options)};
}

std::vector<ValueId> FusionMaker::factory(OpKind kind) {
  const Dtype dtype = dtype_for(kind);
  if (kind == OpKind::kIota) {
    const int64_t length = random_.pick(kBoundaryExtents);
    const auto some = [&] { return is_integer(dtype) ? scalar_constant(dtype) : small_constant(dtype); };
    const ValueId start = random_.one_in(2) ? some() : ValueId();
    return {iota(g_, index_scalar(length), start, random_.one_in(2) ? some() : ValueId(), dtype)};
  }
  Shape shape;
  if (!made_.empty()) {
    const ValueId x = random_.pick(made_);
    for (size_t i = 0; i < rank_of(g_, x); ++i) shape.push_back(size_of(g_, x, static_cast<int64_t>(i)));
  } else {
    shape = {index_scalar(random_.between(0, 5)), index_scalar(random_.between(1, 5))};
  }
  if (is_random(kind)) {
    // Of the dtype itself, or of another one, whose numbers the op rounds first.
    const auto parameter = [&] {
      constexpr Dtype kOthers[] = {Dtype::kFloat, Dtype::kDouble, Dtype::kInt32};
      const Dtype other = random_.one_in(3) ? random_.pick(kOthers) : dtype;
      if (random_.one_in(6)) return input_scalar(g_, "", other);
      if (other == dtype || is_integer(other)) return small_constant(other);
      return constant_of(g_, other, static_cast<double>(random_.between(-4000, 4000)) / 7);
    };
    const ValueId a = parameter(), b = parameter(), seed = random_word();
    return {random(g_, kind, shape, a, b, seed, random_word(), dtype)};
  }
  return {full(g_, shape, scalar_constant(dtype), dtype)};
}

// A seed or an offset: any word, one at an end of its halves, or a new input of any integer dtype.
ValueId FusionMaker::random_word() {
  constexpr Dtype kDtypes[] = {Dtype::kInt64, Dtype::kUint64, Dtype::kInt32, Dtype::kUint8};
  if (random_.one_in(4)) return input_scalar(g_, "", random_.pick(kDtypes));
  constexpr uint64_t kEdges[] = {0, 1, 0xffffffff, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}};
  const uint64_t word = random_.one_in(2) ? random_.pick(kEdges) : random_.next();
  return constant(g_, random_.one_in(2) ? Dtype::kUint64 : Dtype::kInt64, {word, 0});
}

// The index is a new input; generate_inputs keeps its values inside the axis.
std::vector<ValueId> FusionMaker::indexed(OpKind kind) {
  const ValueId x = operand(kind, 1);
  const size_t axis = axis_of(x);
  const int64_t dim = written(axis, rank_of(g_, x));
  Extents extents = extents_of(x);
  const int64_t extent = extents[axis];
  // A select without elements takes any index.
  const bool takes_any = family_of(kind) == AxisRule::kSelected && !random_.one_in(4) &&
                         std::ranges::count(extents, 0) > (extent == 0 ? 1 : 0);
  if (takes_any) {
    Attrs attrs;
    attrs.set(AttrKey::kAxis, dim);
    return g_[add_op(g_, Graph::body(), kind, {x, scalar_of(g_, index_scalar(random_.between(-2, 9)))}, attrs)].results;
  }
  if (extent == 0) return {};
  const Dtype by = random_.one_in(2) ? Dtype::kInt32 : Dtype::kInt64;
  const auto without_broadcasts = [&](const Extents& e) {
    const auto axes = logical_without_reductions(g_, g_.tensor_of(x));
    std::vector<bool> broadcast(e.size());
    for (size_t i = 0; i < e.size(); ++i)
      broadcast[i] = i != axis && g_[axes[i]].iter_type == IterType::kBroadcast && !g_[axes[i]].expanded;
    return broadcast;
  };
  const auto make = [&](std::vector<ValueId> operands) {
    Attrs attrs;
    attrs.set(AttrKey::kAxis, dim);
    return g_[add_op(g_, Graph::body(), kind, std::move(operands), attrs)].results;
  };
  if (family_of(kind) == AxisRule::kSelected) {
    if (random_.one_in(4)) return make({x, new_input(by, {})});
    const Scalar index = random_.one_in(3) ? Scalar(-1) : index_scalar(random_.between(0, extent - 1));
    return make({x, scalar_of(g_, index)});
  }
  if (rule_of(kind, 1).axes == AxisRule::kOnAxis) return make({x, new_input(by, {random_.between(0, 9)}, {false})});
  if (row_of(kind).format->slot_count == 2) {
    extents[axis] = random_.between(0, 9);
    return make({x, new_input(by, extents, without_broadcasts(extents))});
  }
  // Only one source for each place, because the winner among several is not defined.
  extents[axis] = 1;
  const std::vector<bool> none(extents.size());
  const ValueId index = new_input(by, extents, none);
  return make({x, index, new_input(g_[x].dtype, extents, none)});
}

}  // namespace fusebox::fuzz
