// Fusions as models have them: a state of rows and columns goes through norms, gates, biases, losses and updates.
// Schedulers are made for these.
#include "fuzz/generate/fusion_maker.h"
#include "ir/build/composite.h"

namespace fusebox::fuzz {

namespace {

constexpr Dtype kStored[] = {Dtype::kFloat, Dtype::kBfloat16, Dtype::kHalf};

bool is_whole(const OpMix& mix) {
  for (OpKind kind : {OpKind::kExp, OpKind::kSum, OpKind::kMax, OpKind::kWelford, OpKind::kBroadcast, OpKind::kCast,
                      OpKind::kCat, OpKind::kSlice, OpKind::kPermute, OpKind::kWhere})
    if (mix[static_cast<size_t>(kind)] == 0) return false;
  return true;
}

}  // namespace

bool FusionMaker::begin_model(GeneratedFusion& result) {
  if (!is_whole(options_.mix) || options_.max_rank < 3) return false;
  constexpr int64_t kColumns[] = {1, 2, 4, 5, 8, 16, 24, 32, 33, 40, 64, 96, 128, 133};
  Extents extents = {random_.between(1, 9), random_.pick(kColumns)};
  if (random_.one_in(5)) extents.insert(extents.begin(), random_.between(1, 3));
  ValueId state = new_input(random_.pick(kStored), extents);
  state = cast(g_, state, Dtype::kFloat);
  size_t parts = 1 + random_.below(random_.one_in(6) ? 24 : 5);
  while (parts-- > 0) {
    ++result.attempts;
    const bool is_made = attempt([&]() -> std::vector<ValueId> {
      const std::vector<ValueId> made = model_part(state);
      return made;
    });
    result.accepted += is_made;
    if (is_made && rank_of(g_, made_.back()) == rank_of(g_, state) && g_[made_.back()].dtype == Dtype::kFloat)
      state = made_.back();
  }
  made_.push_back(random_.one_in(3) ? state : cast(g_, state, random_.pick(kStored)));
  return true;
}

// An input of the extents of the state's last axis, or of all axes but the last, as a float beside the state.
ValueId FusionMaker::model_vector(ValueId state, bool is_row) {
  Extents extents = extents_of(state);
  std::vector<bool> is_new(extents.size(), is_row);
  is_new.back() = !is_row;
  extents = is_row ? Extents{extents.back()} : Extents(extents.begin(), extents.end() - 1);
  const ValueId v = cast(g_, new_input(random_.pick(kStored), extents), Dtype::kFloat);
  return broadcast(g_, v, is_new);
}

ValueId FusionMaker::model_tensor(ValueId state) {
  return cast(g_, new_input(random_.pick(kStored), extents_of(state)), Dtype::kFloat);
}

// A sum over the first axis, before which a vector is subtracted, and behind which it is added again; and rows from which
// their sums are subtracted.
std::vector<ValueId> FusionMaker::behind_columns(ValueId x) {
  Extents extents = extents_of(x);
  std::vector<bool> is_new(extents.size());
  is_new[0] = true;
  extents.erase(extents.begin());
  const ValueId v = cast(g_, new_input(random_.pick(kStored), extents), Dtype::kFloat);
  const bool keeps = random_.one_in(3);
  const ValueId each = broadcast(g_, v, is_new);
  const ValueId sum = reduce(g_, OpKind::kSum, pointwise(g_, OpKind::kSub, {x, each}), {0}, {.keepdim = keeps});
  const ValueId end = add(g_, unary(g_, OpKind::kNeg, sum), keeps ? each : v);
  const auto last = static_cast<int64_t>(is_new.size()) - 1;
  return {end, pointwise(g_, OpKind::kSub, {x, reduce(g_, OpKind::kSum, x, {last}, {.keepdim = true})})};
}

// Parts of each row, divided by the largest of each; and these scales, without the axis of the parts. Their length is given, or
// their number: then the length is a quotient of sizes.
std::vector<ValueId> FusionMaker::scaled_parts(ValueId x) {
  constexpr int64_t kParts[] = {2, 4, 8, 16, 32, 3, 12};
  const Extents extents = extents_of(x);
  const int64_t part = random_.pick(kParts), last = static_cast<int64_t>(extents.size());
  if (extents.back() % part != 0) return {};
  const bool is_number = random_.one_in(2);
  Shape whole, split;
  for (int64_t e : extents) {
    whole.emplace_back(e);
    split.emplace_back(e);
  }
  split.back() = Scalar(is_number ? part : extents.back() / part);
  split.emplace_back(is_number ? -1 : part);
  const ValueId y = reshape(g_, x, split);
  const ValueId most = reduce(g_, OpKind::kMax, unary(g_, OpKind::kAbs, y), {last});
  const ValueId scale = add(g_, most, constant_of(g_, Dtype::kFloat, 1e-3));
  std::vector<bool> is_new(extents.size() + 1);
  is_new.back() = true;
  return {scale, reshape(g_, pointwise(g_, OpKind::kTruediv, {y, broadcast(g_, scale, is_new)}), whole)};
}

// The next values: the last of them goes on as the state if it has the state's shape.
std::vector<ValueId> FusionMaker::model_part(ValueId x) {
  const auto number = [&](double value) { return constant_of(g_, Dtype::kFloat, value); };
  const auto last = static_cast<int64_t>(rank_of(g_, x)) - 1;
  const auto sum_of_squares = [&] { return reduce(g_, OpKind::kSum, mul(g_, x, x), {last}, {.keepdim = true}); };
  switch (random_.below(23)) {
    case 0:
      return {layer_norm(g_, x, 1)};
    case 1:
      return {rms_norm(g_, x, 1)};
    case 2:
      return {softmax(g_, x, random_.one_in(6) ? 0 : last)};
    case 3:
      return {mul(g_, unary(g_, OpKind::kSilu, x), model_tensor(x))};
    case 4:
      return {add(g_, x, model_vector(x, true))};
    case 5: {
      const ValueId sum = add(g_, x, model_tensor(x));
      return {sum};
    }
    case 6: {
      const ValueId cube = mul(g_, mul(g_, x, x), x);
      const ValueId inner = mul(g_, add(g_, x, mul(g_, cube, number(0.044715))), number(0.7978845608));
      return {mul(g_, mul(g_, x, number(0.5)), add(g_, unary(g_, OpKind::kTanh, inner), number(1)))};
    }
    case 7: {
      const ValueId kept = new_input(Dtype::kBool, extents_of(x));
      return {where(g_, kept, mul(g_, x, number(1.25)), number(0))};
    }
    case 8:
      return {mul(g_, x, model_vector(x, false))};
    case 9:
      return {mul(g_, x, unary(g_, OpKind::kRsqrt, add(g_, sum_of_squares(), number(1e-3))))};
    case 10: {
      // The halves of each row change places, one of them negated.
      const Extents extents = extents_of(x);
      const int64_t half = extents.back() / 2;
      if (half == 0 || extents.back() % 2 != 0) return {};
      const auto part = [&](int64_t from) {
        Shape starts(extents.size(), Scalar(0)), stops;
        for (int64_t e : extents) stops.emplace_back(e);
        starts.back() = Scalar(from);
        stops.back() = Scalar(from + half);
        return slice(g_, x, starts, stops);
      };
      const ValueId turned = cat(g_, {unary(g_, OpKind::kNeg, part(half)), part(0)}, last);
      return {add(g_, mul(g_, x, model_tensor(x)), mul(g_, turned, model_tensor(x)))};
    }
    case 11:
      return {reduce(g_, random_.one_in(2) ? OpKind::kSum : OpKind::kMax, x, {last})};
    case 12: {
      const VarMean v = var_mean(g_, x, {random_.one_in(3) ? 0 : last}, {.correction = 0});
      return {v.var, v.mean};
    }
    case 13:
      return {reduce(g_, OpKind::kSum, x, {0})};
    case 14: {
      const ValueId m = add(g_, mul(g_, model_tensor(x), number(0.9)), mul(g_, x, number(0.1)));
      const ValueId v = add(g_, mul(g_, model_tensor(x), number(0.99)), mul(g_, mul(g_, x, x), number(0.01)));
      const ValueId scale = add(g_, unary(g_, OpKind::kSqrt, unary(g_, OpKind::kAbs, v)), number(1e-2));
      return {m, v, pointwise(g_, OpKind::kSub, {model_tensor(x), pointwise(g_, OpKind::kTruediv, {m, scale})})};
    }
    case 15:
    case 16:
    case 17:
    case 18:
      return projection(random_.one_in(3) ? x : cast(g_, x, random_.pick(kStored)), true);
    case 19:
      return behind_columns(x);
    case 20:
    case 21:
      return scaled_parts(random_.one_in(3) ? x : rms_norm(g_, x, 1));
    default: {
      Axes dims(rank_of(g_, x));
      for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
      if (dims.size() > 1) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
      return {permute(g_, x, dims)};
    }
  }
}

}  // namespace fusebox::fuzz
