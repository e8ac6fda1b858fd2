// Loops over real numbers.
#include <algorithm>
#include <array>
#include <cmath>

#include "ir/table/families.h"
#include "replay/aten/image.h"
#include "replay/aten/loops.h"

namespace fusebox::aten {
namespace {

constexpr int kMostOperands = 4;

// Reads the operands of an element.
class Operands {
 public:
  explicit Operands(const Loop& loop) : count_(loop.operands.size()) {
    for (size_t k = 0; k < count_; ++k) {
      overflow_[k] =
          is_floating(loop.operands[k].dtype) ? overflow_of(loop.operands[k].dtype) : overflow_of(Dtype::kDouble);
      zero_sign_[k] = loop.operands[k].zero_sign;
    }
  }
  std::span<const Operand> read(const Row& row, int64_t i) {
    exact = true;
    free = false;
    for (size_t k = 0; k < count_; ++k) {
      const double b = row.at<const double>(static_cast<int>(2 * k + 3), i);
      o_[k] = operand(row.at<const double>(static_cast<int>(2 * k + 2), i), b, overflow_[k], zero_sign_[k]);
      exact &= b == 0;
      free |= b == kInfinity;
    }
    return {o_.data(), count_};
  }

  bool exact = true;  // all operands are
  bool free = false;  // one may be anything

 private:
  size_t count_;
  std::array<Operand, kMostOperands> o_;
  std::array<double, kMostOperands> overflow_;
  std::array<bool, kMostOperands> zero_sign_;
};

struct Truth {
  bool value;
  bool sure;
};

Truth compare_reals(OpKind kind, const Operand& a, const Operand& b) {
  const bool sure = (a.exact() && b.exact()) || is_certain_nan(a) || is_certain_nan(b);
  switch (kind) {
    case OpKind::kEq:
      return {a.v == b.v, sure || a.hi < b.lo || b.hi < a.lo};
    case OpKind::kNe:
      return {a.v != b.v, sure || a.hi < b.lo || b.hi < a.lo};
    case OpKind::kLt:
      return {a.v < b.v, sure || a.hi < b.lo || a.lo >= b.hi};
    case OpKind::kLe:
      return {a.v <= b.v, sure || a.hi <= b.lo || a.lo > b.hi};
    case OpKind::kGt:
      return {a.v > b.v, sure || a.lo > b.hi || a.hi <= b.lo};
    case OpKind::kGe:
      return {a.v >= b.v, sure || a.lo >= b.hi || a.hi < b.lo};
    case FUSEBOX_NUMBER_OPS:
    case FUSEBOX_LOGICAL_OPS:
    case FUSEBOX_TEST_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  no_loop(kind, "a comparison");
}

// Whether the number is not zero; NaN is not zero.
Truth truth_of(const Operand& a) { return {a.v != 0, a.exact() || !a.contains(0)}; }

Truth test(OpKind kind, const Operand& a) {
  const bool may_be_finite = a.exact() || a.lo < kInfinity || a.hi > -kInfinity;
  switch (kind) {
    case OpKind::kIsfinite:
      return {std::isfinite(a.v), a.exact() || (std::isfinite(a.lo) && std::isfinite(a.hi)) || !may_be_finite};
    case OpKind::kIsinf:
      return {std::isinf(a.v), a.exact() || (std::isfinite(a.lo) && std::isfinite(a.hi))};
    case OpKind::kIsnan:
      return {a.v != a.v, true};
    case OpKind::kIsposinf:
      return {a.v == kInfinity, a.exact() || a.hi < kInfinity};
    case OpKind::kIsneginf:
      return {a.v == -kInfinity, a.exact() || a.lo > -kInfinity};
    case OpKind::kSignbit:
      // A NaN's sign is not part of its value: processors give the NaN of 0 / 0 different signs.
      if (a.v != a.v) return {false, true};
      return {std::signbit(a.v), a.exact() ? a.v != 0 || a.zero_sign : !a.contains(0)};
    case OpKind::kIsreal:
      return {true, true};
    case FUSEBOX_NUMBER_OPS:
    case FUSEBOX_COMPARISON_OPS:
    case FUSEBOX_LOGICAL_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  no_loop(kind, "a test");
}

Truth truth(OpKind kind, std::span<const Operand> o) {
  switch (kind) {
    case OpKind::kLogicalNot: {
      const Truth t = truth_of(o[0]);
      return {!t.value, t.sure};
    }
    case OpKind::kLogicalAnd: {
      const Truth s = truth_of(o[0]), t = truth_of(o[1]);
      return {s.value && t.value, (s.sure && t.sure) || (s.sure && !s.value) || (t.sure && !t.value)};
    }
    case OpKind::kLogicalOr: {
      const Truth s = truth_of(o[0]), t = truth_of(o[1]);
      return {s.value || t.value, (s.sure && t.sure) || (s.sure && s.value) || (t.sure && t.value)};
    }
    case OpKind::kCast:
      return truth_of(o[0]);
    case FUSEBOX_COMPARISON_OPS:
      return compare_reals(kind, o[0], o[1]);
    default:  // any other: a test, which refuses what it does not know
      return test(kind, o[0]);
  }
}

// Whether another right result may be a zero of the other sign.
bool is_zero_unsure(OpKind kind, std::span<const Operand> o) {
  const bool by_distance = kind == OpKind::kAdd || kind == OpKind::kSub;
  return kind != OpKind::kAbs &&
         std::ranges::any_of(o, [&](const Operand& x) { return !x.exact() && (by_distance || x.contains(0)); });
}

// Values for which ATen has no function, or no exact one.
double value_of(OpKind kind, std::span<const Operand> o) {
  switch (kind) {
    case OpKind::kSqrt:
      return std::sqrt(o[0].v);
    // ATen's functions overflow before their results do.
    case OpKind::kAsinh:
      return std::asinh(o[0].v);
    case OpKind::kCosh:
      return std::cosh(o[0].v);
    case OpKind::kSinh:
      return std::sinh(o[0].v);
    case OpKind::kLog1p:
      return std::log1p(o[0].v);
    case OpKind::kPow:
      return std::pow(o[0].v, o[1].v);
    case OpKind::kFmod:
      return std::fmod(o[0].v, o[1].v);
    case OpKind::kRemainder: {
      const double r = std::fmod(o[0].v, o[1].v);
      return r != 0 && (r < 0) != (o[1].v < 0) ? r + o[1].v : r;
    }
    case OpKind::kThreshold:
      return o[0].v <= o[1].v ? o[2].v : o[0].v;
    default:  // any other: of no known value
      no_loop(kind, "a value");
  }
}

}  // namespace

void real_loop(const Loop& loop, const Row& row) {
  Operands operands(loop);
  const double overflow = overflow_of(loop.declared);
  const bool has_error = has_own_error(loop.kind), is_fast = loop.is_fast && has_fast_error(loop.kind, loop.compute);
  const bool is_rounded_twice = rounds_twice(loop);
  int64_t ambiguous = 0;
  bool unsure_zero = false;
  for (int64_t i = 0; i < row.n; ++i) {
    double& y = row.at<double>(0, i);
    double& bound = row.at<double>(1, i);
    const auto o = operands.read(row, i);
    if (operands.free) {
      y = round_to(loop.declared, y);
      bound = kInfinity;
      continue;
    }
    if (depends_on_zero_sign(loop.kind, o)) {
      ++ambiguous;
      y = round_to(loop.declared, y);
      bound = kInfinity;
      continue;
    }
    Image image = operands.exact ? Image{y, y} : image_of(loop.kind, y, o);
    if (is_rounded_twice) {
      image.lo = round_to(loop.compute, image.lo);
      image.hi = round_to(loop.compute, image.hi);
    }
    double error = has_error ? own_error(loop.kind, loop.compute, y, image, o, loop.by_cuda) : 0.0;
    if (is_fast) error = std::max(error, fast_error(loop.kind, y, image, o));
    // The logarithm of a negative subnormal number is −inf where it counts as −0.
    if (y != y && error == kInfinity) {
      bound = kInfinity;
      continue;
    }
    // A step of nextafter may go either way.
    if (loop.kind == OpKind::kNextafter && !operands.exact)
      error = 2 * ulp_of(loop.declared, std::max(std::abs(image.lo), std::abs(image.hi)));
    const Rounded r = finish(loop.declared, overflow, y, image, error, operands.exact);
    ambiguous += image.jump;
    y = r.value;
    bound = r.bound;
    if (y == 0 && bound == 0 && !operands.exact) unsure_zero |= is_zero_unsure(loop.kind, o);
  }
  if (ambiguous > 0) *loop.ambiguous += ambiguous;
  if (unsure_zero && loop.unsure_zero) *loop.unsure_zero = true;
}

void round_loop(Dtype declared, const Row& row) {
  if (declared == Dtype::kFloat) {
    for (int64_t i = 0; i < row.n; ++i) row.at<double>(0, i) = static_cast<float>(row.at<double>(0, i));
    return;
  }
  for (int64_t i = 0; i < row.n; ++i) row.at<double>(0, i) = round_to(declared, row.at<double>(0, i));
}

void real_value_loop(const Loop& loop, const Row& row) {
  Operands operands(loop);
  for (int64_t i = 0; i < row.n; ++i) row.at<double>(0, i) = value_of(loop.kind, operands.read(row, i));
}

void real_to_integer_loop(const Loop& loop, const Row& row) {
  Operands operands(loop);
  int64_t ambiguous = 0;
  for (int64_t i = 0; i < row.n; ++i) {
    int64_t& value = row.at<int64_t>(0, i);
    double& bound = row.at<double>(1, i);
    const auto o = operands.read(row, i);
    if (!is_boolean(loop.declared)) {
      // A cast to an integer.
      const auto cast = [&](double x) { return static_cast<int64_t>(from_double(loop.declared, x).low); };
      value = cast(o[0].v);
      if (operands.exact) {
        bound = 0;
        continue;
      }
      if (operands.free) {
        bound = kInfinity;
        ++ambiguous;
        continue;
      }
      const int64_t lo = cast(o[0].lo), hi = cast(o[0].hi);
      const bool is_unsigned = loop.declared == Dtype::kUint64;
      const auto distance = [&](int64_t a, int64_t b) {
        const uint64_t d = static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
        const bool above = is_unsigned ? static_cast<uint64_t>(a) > static_cast<uint64_t>(b) : a > b;
        return above ? static_cast<double>(d) : 0.0;
      };
      bound = std::max(distance(hi, value), distance(value, lo));
      ambiguous += bound > 0;
      continue;
    }
    Truth t = truth(loop.kind, o);
    if (operands.free && loop.kind != OpKind::kIsreal) t.sure = false;
    value = t.value;
    bound = t.sure ? 0 : 1;
    ambiguous += !t.sure;
  }
  if (ambiguous > 0) *loop.ambiguous += ambiguous;
}

void where_real_loop(const Loop& loop, const Row& row) {
  const double overflow = overflow_of(loop.declared);
  for (int64_t i = 0; i < row.n; ++i) {
    const bool condition = row.at<const int64_t>(2, i) != 0;
    const bool sure = row.at<const double>(3, i) == 0;
    const int chosen = condition ? 4 : 6, other = condition ? 6 : 4;
    const double v = row.at<const double>(chosen, i), b = row.at<const double>(chosen + 1, i);
    row.at<double>(0, i) = v;
    double& bound = row.at<double>(1, i);
    bound = b;
    if (sure) continue;
    const double w = row.at<const double>(other, i), c = row.at<const double>(other + 1, i);
    if (v != v && w != w && b == 0 && c == 0) continue;
    double distance = std::abs(notional(v, overflow) - notional(w, overflow));
    if (distance == 0 && v != w) distance = kLastDouble;
    if (v == 0 && w == 0 && std::signbit(v) != std::signbit(w) && loop.unsure_zero) *loop.unsure_zero = true;
    bound = distance == distance ? std::max(b, distance + c) * (1 + 0x1p-50) : kInfinity;
  }
}

void reduction_loop(Dtype declared, const Row& row) {
  const double overflow = overflow_of(declared);
  for (int64_t i = 0; i < row.n; ++i) {
    double& y = row.at<double>(0, i);
    double& bound = row.at<double>(1, i);
    const double spread = row.at<const double>(2, i), error = row.at<const double>(3, i);
    // If the error is unknown, a NaN is only one of many possible values.
    if (!(spread < kInfinity) || error == kInfinity) {
      y = round_to(declared, y);
      bound = kInfinity;
      continue;
    }
    const Rounded r = finish(declared, overflow, y, {y - spread, y + spread}, error, spread == 0);
    y = r.value;
    bound = r.bound;
  }
}

void iota_loop(Dtype declared, double start, double step, const Spread& spread, const Row& row) {
  const double overflow = overflow_of(declared);
  for (int64_t i = 0; i < row.n; ++i) {
    double& y = row.at<double>(0, i);
    const double at = y, moved = at * step, by = spread.at(static_cast<int64_t>(at));
    y = start + moved;
    double error = by < kInfinity ? 0 : kInfinity;
    if (round_to(declared, at) != at) error += ulp_of(declared, at) * std::abs(step);
    if (round_to(declared, moved) != moved) error += ulp_of(declared, moved);
    const Rounded r = finish(declared, overflow, y, {y - by, y + by}, error, spread.is_zero());
    y = r.value;
    row.at<double>(1, i) = r.bound;
  }
}

}  // namespace fusebox::aten
