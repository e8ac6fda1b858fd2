// Builds situations that take several ops (focus.h): scalars with tensors, constants that are nearly equal, computed
// sizes, and small programs for schedules of a certain kind.
#include <algorithm>

#include "fuzz/generate/constants.h"
#include "fuzz/generate/fusion_maker.h"
#include "ir/scalar/numeric.h"

namespace fusebox::fuzz {

bool FusionMaker::begin_situation(GeneratedFusion& result) {
  const Focus& focus = options_.focus;
  const auto aim = [&](std::initializer_list<OpKind> kinds, const std::function<std::vector<ValueId>()>& made) {
    if (!std::all_of(kinds.begin(), kinds.end(), [&](OpKind kind) { return is_offered(kind); })) return false;
    ++result.attempts;
    const bool is_accepted = attempt(made);
    result.accepted += is_accepted;
    wanted_.reset();
    return is_accepted;
  };
  for (const ScalarFocus& s : focus.scalars)
    // Some constants are refused with some tensors.
    for (int tries = 0; tries < 2 && !aim({s.kind}, [&] { return beside_scalars(s); }); ++tries) continue;
  for (const UnaryFocus& u : focus.unaries)
    aim({u.outer, u.inner}, [&]() -> std::vector<ValueId> {
      const ValueId inner = unary(g_, u.inner, new_input(u.dtype, {random_.between(5, 24)}));
      if (!takes(u.outer, g_[inner].dtype)) return {};
      ++result.neighbours;
      return with_reader({unary(g_, u.outer, inner)});
    });
  for (const OpFocus& o : focus.integer_pairs)
    aim({o.kind}, [&]() -> std::vector<ValueId> {
      const ValueId x = new_input(o.dtype, {random_.between(16, 40)}), y = input_beside(x, o.dtype, false);
      return {pointwise(g_, o.kind, {x, y})};
    });
  for (const OpFocus& o : focus.equal_scalars) aim({o.kind}, [&] { return of_equal_scalars(o); });
  if (focus.near_constants)
    for (int i = 0; i < 2; ++i) aim({}, [&] { return of_near_constants(); });
  if (focus.computed_sizes)
    for (int i = 0; i < 3; ++i) aim({}, [&] { return of_computed_size(); });
  // These programs fit their schedules. Another op may spoil that.
  bool is_whole = false;
  if (focus.block)
    is_whole = aim({OpKind::kSum}, [&] { return reduced_by_blocks(*focus.block); }) && !random_.one_in(4);
  if (focus.shared_in)
    is_whole = aim({OpKind::kNeg, OpKind::kAdd, OpKind::kSum}, [&] { return read_by_others(); }) && !random_.one_in(4);
  if (focus.segments > 0)
    is_whole =
        aim({OpKind::kNeg, OpKind::kAdd}, [&] { return chain_over_segments(focus.segments); }) && random_.one_in(2);
  return !is_whole;
}

// The op of a tensor and scalars of the given dtype, on either side.
std::vector<ValueId> FusionMaker::beside_scalars(const ScalarFocus& focus) {
  wanted_ = focus.tensor;
  const ValueId x = operand(focus.kind);
  const auto scalar = [&] {
    if (focus.scalar != Dtype::kIndex)
      return random_.one_in(4) ? input_scalar(g_, "", focus.scalar) : scalar_operand(focus.scalar, g_[x].dtype);
    return rank_of(g_, x) > 0 && random_.one_in(2) ? size_of(g_, x, static_cast<int64_t>(axis_of(x)))
                                                   : constant_index(g_, random_.between(-1, 4));
  };
  std::vector<ValueId> operands(row_of(focus.kind).format->all().size());
  const size_t at = focus.kind == OpKind::kWhere ? 1 + random_.below(2) : random_.below(operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    operands[i] = i == at                                     ? x
                  : operands.size() == 2 || random_.one_in(2) ? scalar()
                                                              : input_beside(x, g_[x].dtype, true);
  if (focus.kind == OpKind::kWhere) operands[0] = condition(x);
  return {pointwise(g_, focus.kind, operands)};
}

// The scalar is the size of an axis with no, one or more elements, a scalar input or a constant. The result fills a
// tensor, is an operand or is a size.
std::vector<ValueId> FusionMaker::of_equal_scalars(const OpFocus& focus) {
  folds_ = true;
  const auto drawn = [&]() -> ValueId {
    if (focus.dtype != Dtype::kIndex)
      return random_.one_in(2) ? input_scalar(g_, "", focus.dtype) : scalar_constant(focus.dtype);
    constexpr int64_t kSizes[] = {0, 0, 1, 2, 5};
    const int64_t extent = random_.pick(kSizes);
    if (random_.one_in(4)) return index_input(extent);
    // A symbol must be the size of an input.
    const ValueId size = symbol(extent);
    made_.push_back(input(g_, "", Dtype::kFloat, {Scalar(size)}));
    return size;
  };
  const ValueId x = drawn();
  std::vector<ValueId> operands(row_of(focus.kind).format->all().size(), x);
  if (operands.size() > 2)
    operands[random_.below(3)] = focus.kind == OpKind::kWhere ? input_scalar(g_, "", Dtype::kBool) : drawn();
  const ValueId y = pointwise(g_, focus.kind, operands);
  const Dtype dtype = g_[y].dtype;
  if (is_integer(dtype) && random_.one_in(4)) {
    sizes_.resize(g_.values.size());
    const ValueId length = moved_to(dtype == Dtype::kIndex ? y : cast(g_, y, Dtype::kIndex), random_.between(0, 5));
    if (length) return {iota(g_, Scalar(length))};
  }
  const Dtype filled = dtype == Dtype::kIndex ? Dtype::kInt64 : dtype;
  if (random_.one_in(2)) return {full(g_, {Scalar(random_.between(1, 5))}, y, filled)};
  return {pointwise(g_, OpKind::kAdd, {new_input(filled, {random_.between(1, 5)}), y})};
}

// A constant that differs minimally: in one part, in the last bit, in the sign, or only in its dtype.
ValueId FusionMaker::near_constant(Dtype dtype, ConstantBits value) {
  switch (is_complex(dtype) && random_.one_in(2) ? 0 : random_.below(4)) {
    case 0:
      if (is_complex(dtype)) {
        const Dtype real = real_of(dtype);
        const uint64_t other = draw_constant(random_, real).low;
        return constant(g_, dtype,
                        random_.one_in(2) ? ConstantBits{value.low, other} : ConstantBits{other, value.high});
      }
      break;
    case 1: {
      // The same value, or the same bits, in another dtype.
      std::vector<Dtype> others;
      for (const DtypeRow& d : dtype_rows())
        if (d.dtype != Dtype::kIndex && d.dtype != dtype && !is_storage_only(d.dtype) && !is_boolean(d.dtype) &&
            !is_complex(d.dtype) && !is_complex(dtype))
          others.push_back(d.dtype);
      if (others.empty()) break;
      const Dtype other = random_.pick(others);
      return bits(other) == bits(dtype) && random_.one_in(2) ? constant(g_, other, canonical_bits(other, value))
                                                             : constant(g_, other, convert(dtype, value, other));
    }
    case 2:
      if (is_boolean(dtype)) break;
      // Flips the sign; in a complex number, that of the real part.
      return constant(
          g_, dtype,
          canonical_bits(dtype, {value.low ^ uint64_t{1} << (is_complex(dtype) ? bits(dtype) / 2 - 1 : bits(dtype) - 1),
                                 value.high}));
    default:
      break;
  }
  if (is_complex(dtype) && random_.one_in(2)) return constant(g_, dtype, {value.low, value.high ^ 1});
  return constant(g_, dtype, canonical_bits(dtype, {value.low ^ 1, value.high}));
}

std::vector<ValueId> FusionMaker::of_near_constants() {
  constexpr OpKind kKinds[] = {OpKind::kAdd, OpKind::kMul, OpKind::kSub, OpKind::kEq, OpKind::kMaximum};
  const Dtype dtype =
      random_.one_in(2) ? (random_.one_in(2) ? Dtype::kComplexFloat : Dtype::kComplexDouble) : dtype_for(OpKind::kAdd);
  if (!takes(OpKind::kAdd, dtype)) return {};
  const ConstantBits value = draw_constant(random_, dtype);
  const ValueId a = constant(g_, dtype, value), b = near_constant(dtype, value);
  wanted_ = dtype;
  const ValueId x = operand(OpKind::kAdd);
  const auto of = [&](ValueId y, ValueId c) {
    const OpKind kind = random_.pick(kKinds);
    if (random_.one_in(4)) return full(g_, {Scalar(random_.between(1, 4))}, c, g_[c].dtype);
    return pointwise(g_, takes(kind, dtype) && is_offered(kind) ? kind : OpKind::kAdd, {y, c});
  };
  if (random_.one_in(4) && takes(OpKind::kWhere, dtype) && is_offered(OpKind::kWhere))
    return {where(g_, condition(x), a, b)};
  const ValueId first = of(x, a);
  return {first, of(random_.one_in(2) ? first : x, b)};
}

std::vector<ValueId> FusionMaker::of_computed_size() {
  constexpr OpKind kKinds[] = {OpKind::kSlice,  OpKind::kPad,     OpKind::kFull,  OpKind::kIota,
                               OpKind::kExpand, OpKind::kReshape, OpKind::kSelect};
  const OpKind kind = random_.pick(kKinds);
  if (!is_offered(kind)) return {};
  if (kind == OpKind::kFull) {
    Shape shape;
    for (size_t rank = 1 + random_.below(2); rank > 0; --rank) shape.push_back(index_scalar(random_.between(0, 5)));
    const Dtype dtype = dtype_for(kind);
    return {full(g_, shape, small_constant(dtype), dtype)};
  }
  if (kind != OpKind::kReshape) return op(kind);
  const ValueId x = operand(kind, 1);
  int64_t elements = 1;
  for (int64_t e : extents_of(x)) elements *= e;
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= elements && d <= 64; ++d)
    if (elements % d == 0) divisors.push_back(d);
  const int64_t d = divisors.empty() ? 0 : random_.pick(divisors);
  return {reshape(g_, x, {index_scalar(d), index_scalar(d == 0 ? 1 : elements / d)})};
}

std::vector<ValueId> FusionMaker::reduced_by_blocks(const BlockFocus& block) {
  constexpr OpKind kKinds[] = {OpKind::kSum, OpKind::kSum, OpKind::kProd, OpKind::kMax, OpKind::kMin, OpKind::kWelford};
  OpKind kind = random_.pick(kKinds);
  if (!is_offered(kind)) kind = OpKind::kSum;
  Axes axes;
  for (size_t i = 0; i < 3; ++i)
    if (block.is_reduced[i]) axes.push_back(static_cast<int64_t>(i));
  ValueId x = new_input(dtype_for(kind), {block.extents.begin(), block.extents.end()});
  if (random_.one_in(3) && takes(OpKind::kNeg, g_[x].dtype)) x = unary(g_, OpKind::kNeg, x);
  if (kind == OpKind::kWelford) {
    const WelfordResult w = welford(g_, x, axes);
    return {w.avg, w.var_sum, w.n};
  }
  const ValueId y = reduce(g_, kind, x, axes);
  if (!random_.one_in(4)) return {y};
  return {y, pointwise(g_, OpKind::kAdd, {over_its_operand(y), x})};
}

// A tensor whose elements are read together with others: with their sum, with a neighbour, or alone.
std::vector<ValueId> FusionMaker::read_by_others() {
  Extents extents = {random_.between(2, 5), random_.between(3, 33)};
  if (random_.one_in(3)) extents.insert(extents.begin() + 1, random_.between(2, 4));
  const ValueId x = new_input(dtype_for(OpKind::kNeg), extents);
  const ValueId made = unary(g_, OpKind::kNeg, x);
  const auto last = static_cast<int64_t>(extents.size()) - 1;
  switch (random_.below(4)) {
    case 0: {
      const ValueId reduced = reduce(g_, OpKind::kSum, made, {last});
      return {made, pointwise(g_, OpKind::kAdd, {over_its_operand(reduced), x})};
    }
    case 1: {
      Shape widths(2 * extents.size(), Scalar(0));
      widths[random_.below(2)] = Scalar(1);
      widths[0].number == 1 ? widths[1] = Scalar(-1) : widths[0] = Scalar(-1);
      return {made, pointwise(g_, OpKind::kAdd, {pad(g_, made, widths), made})};
    }
    case 2: {
      // All readers use a copy.
      const ValueId copy = unary(g_, OpKind::kSet, made);
      const ValueId reduced = reduce(g_, OpKind::kSum, copy, {last});
      return {made, pointwise(g_, OpKind::kAdd, {over_its_operand(reduced), x})};
    }
    default:
      return {made, pointwise(g_, OpKind::kAdd, {made, x})};
  }
}

// Each op reads the previous one, and some also an earlier one: values made early are read late.
std::vector<ValueId> FusionMaker::chain_over_segments(size_t segments) {
  Extents extents = {random_.between(2, 5), random_.between(2, 7)};
  if (random_.one_in(3)) extents.push_back(random_.between(2, 4));
  const ValueId x = new_input(dtype_for(OpKind::kAdd), extents);
  std::vector<ValueId> all = {pointwise(g_, OpKind::kAdd, {x, x})};
  for (size_t i = random_.below(2); i < segments; ++i) {
    const bool is_one = takes(OpKind::kNeg, g_[x].dtype) && random_.one_in(3);
    all.push_back(is_one ? unary(g_, OpKind::kNeg, random_.one_in(2) ? x : all.back())
                         : pointwise(g_, OpKind::kAdd, {all.back(), random_.one_in(2) ? x : random_.pick(all)}));
  }
  all.push_back(pointwise(g_, OpKind::kAdd, {all.back(), all.front()}));
  return all;
}

}  // namespace fusebox::fuzz
