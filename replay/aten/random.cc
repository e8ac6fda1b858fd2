// Random numbers of the reference: Philox 4x32-10 written from its paper (Salmon and others, SC 2011), and what the ops
// make of its words. The integers are exact, so the bound of a uniform number is that of its last three operations: 0 for
// known operands. A normal number has the bounds of the logarithm, root and cosine that it is made of.
#include <array>
#include <cmath>

#include "ir/table/families.h"
#include "replay/aten/evaluator.h"

namespace fusebox::aten {
namespace {

using Words = std::array<uint32_t, 4>;

// One block of four words.
Words philox_block(uint64_t key, uint64_t block, uint32_t stream) {
  constexpr uint64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
  constexpr uint32_t kWeyl[] = {0x9E3779B9, 0xBB67AE85};
  Words x = {static_cast<uint32_t>(block & 0xffffffff), static_cast<uint32_t>(block >> 32), stream, 0};
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t left = kMultipliers[0] * x[0], right = kMultipliers[1] * x[2];
    const uint32_t first = static_cast<uint32_t>(key) + round * kWeyl[0];
    const uint32_t second = static_cast<uint32_t>(key >> 32) + round * kWeyl[1];
    x = {static_cast<uint32_t>(right >> 32) ^ x[1] ^ first, static_cast<uint32_t>(right),
         static_cast<uint32_t>(left >> 32) ^ x[3] ^ second, static_cast<uint32_t>(left)};
  }
  return x;
}

// The word of each element in one stream, by rows.
std::vector<uint32_t> words_of(uint64_t seed, uint64_t offset, int64_t count, uint32_t stream) {
  std::vector<uint32_t> words(static_cast<size_t>(count));
  for (size_t i = 0; i < words.size(); i += 4) {
    const Words four = philox_block(seed, offset + i / 4, stream);
    for (size_t k = 0; k < 4 && i + k < words.size(); ++k) words[i + k] = four[k];
  }
  return words;
}

// A number of the elements, as a value without a bound.
template <class F>
Carried numbers(const std::vector<int64_t>& shape, Dtype dtype, const F& at) {
  Carried c;
  c.dtype = dtype;
  c.value = at::empty(shape, at::kDouble);
  auto* to = c.value.data_ptr<double>();
  for (int64_t i = 0; i < c.value.numel(); ++i) to[i] = at(static_cast<size_t>(i));
  return c;
}

}  // namespace

Carried Evaluator::random(const Op& op, Dtype declared) {
  const bool is_wide = declared == Dtype::kDouble;
  const Dtype compute = is_wide ? Dtype::kDouble : Dtype::kFloat;
  const std::vector<int64_t> shape = integers(op, 4);
  int64_t count = 1;
  for (int64_t n : shape) {
    if (n < 0) throw Error(ErrorCode::kBadInput, "a random tensor has a negative extent; give 0 or more");
    count *= n;
  }
  const auto seed = static_cast<uint64_t>(integer(op.operands[2]));
  const auto offset = static_cast<uint64_t>(integer(op.operands[3]));
  const auto stream = [&](uint32_t k) { return words_of(seed, offset, count, k); };
  // 53 bits of two words, as a whole number.
  const auto joined = [](uint32_t high, uint32_t low) {
    return static_cast<double>((uint64_t{high} << 32 | low) >> 11);
  };
  const auto apply = [&](OpKind kind, std::vector<Carried> operands) {
    Op step;
    step.kind = kind;
    return real_op(step, compute, compute, std::move(operands));
  };
  const auto constant = [&](double x) {
    Carried c;
    c.dtype = compute;
    c.value = at::scalar_tensor(x, at::kDouble);
    return c;
  };
  const auto parameter = [&](size_t k) {
    Carried c = cast(carried(op.operands[k]), declared);
    c.dtype = compute;  // a wider dtype holds the same number
    return c;
  };
  const std::vector<uint32_t> w0 = stream(0), w1 = is_wide || op.kind == OpKind::kNormal ? stream(1) : w0;

  if (op.kind == OpKind::kUniform) {
    const int digits = declared == Dtype::kHalf ? 11 : declared == Dtype::kBfloat16 ? 8 : 24;
    const Carried u = numbers(shape, compute, [&](size_t i) {
      return is_wide ? joined(w0[i], w1[i]) * 0x1p-53 : std::ldexp(w0[i] >> (32 - digits), -digits);
    });
    const Carried low = parameter(0);
    const Carried width = apply(OpKind::kSub, {parameter(1), low});
    return cast(apply(OpKind::kAdd, {low, apply(OpKind::kMul, {u, width})}), declared);
  }
  if (op.kind != OpKind::kNormal) not_in_family(op.kind, "draws no random numbers");
  const std::vector<uint32_t> w2 = is_wide ? stream(2) : w0, w3 = is_wide ? stream(3) : w0;
  const Carried u1 = numbers(shape, compute, [&](size_t i) -> double {
    if (is_wide) return (joined(w0[i], w1[i]) + 1) * 0x1p-53;
    return static_cast<float>(w0[i]) * 0x1p-32f + 0x1p-33f;
  });
  const Carried u2 = numbers(
      shape, compute, [&](size_t i) { return is_wide ? joined(w2[i], w3[i]) * 0x1p-53 : std::ldexp(w1[i] >> 8, -24); });
  const double two_pi = is_wide ? 2 * M_PI : static_cast<double>(static_cast<float>(2 * M_PI));
  const Carried radius = apply(OpKind::kSqrt, {apply(OpKind::kMul, {constant(-2), apply(OpKind::kLog, {u1})})});
  const Carried z = apply(OpKind::kMul, {radius, apply(OpKind::kCos, {apply(OpKind::kMul, {constant(two_pi), u2})})});
  return cast(apply(OpKind::kAdd, {parameter(0), apply(OpKind::kMul, {parameter(1), z})}), declared);
}

}  // namespace fusebox::aten
