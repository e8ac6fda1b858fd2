// Elementary functions against the C library's, which compute with more bits: every number of float, or one of each
// `stride`, and random numbers and boundaries of double. The loops with and without fused multiply-add instructions give
// the same bits.
//
// FUSEBOX_ELEMENTARY_STRIDE=1 tests every number of float, in minutes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "replay/host/lanes.h"

namespace fusebox {
namespace {

using host::ExactLanes;
using host::LaneCall;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
// The references of float results, and of double ones.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;
template <class T>
constexpr Dtype kDtype = sizeof(T) == 4 ? Dtype::kFloat : Dtype::kDouble;

template <class W>
W sigmoid(W x) {
  return 1 / (1 + std::exp(-x));
}
template <class W>
W silu(W x) {
  return x / (1 + std::exp(-x));
}

// The bounds in units in the last place, for float (largest error of all numbers, rounded up) and double.
template <class W>
struct Function {
  OpKind kind;
  W (*reference)(W);
  double in_float, in_double;
};
template <class W>
std::vector<Function<W>> functions() {
  return {
      {OpKind::kExp, std::exp, 1.7, 1.0},     {OpKind::kExp2, std::exp2, 1.3, 1.0},
      {OpKind::kExpm1, std::expm1, 1.5, 1.9}, {OpKind::kSigmoid, sigmoid<W>, 2.0, 2.0},
      {OpKind::kSilu, silu<W>, 2.5, 2.5},     {OpKind::kTanh, std::tanh, 1.8, 1.9},
      {OpKind::kSinh, std::sinh, 1.5, 1.5},   {OpKind::kCosh, std::cosh, 1.6, 1.6},
      {OpKind::kLog, std::log, 1.0, 1.0},     {OpKind::kLog2, std::log2, 1.1, 1.0},
      {OpKind::kLog10, std::log10, 1.0, 1.0}, {OpKind::kLog1p, std::log1p, 1.5, 1.5},
      {OpKind::kSin, std::sin, 1.6, 1.6},     {OpKind::kCos, std::cos, 1.6, 1.6},
      {OpKind::kTan, std::tan, 1.0, 1.0},     {OpKind::kErf, std::erf, 1.3, 1.2},
      {OpKind::kErfc, std::erfc, 2.1, 2.2},   {OpKind::kAsin, std::asin, 1.2, 1.2},
      {OpKind::kAcos, std::acos, 1.2, 1.2},   {OpKind::kAtan, std::atan, 1.4, 1.6},
      {OpKind::kAsinh, std::asinh, 1.9, 1.9}, {OpKind::kAcosh, std::acosh, 2.0, 1.8},
      {OpKind::kAtanh, std::atanh, 1.9, 1.8},
  };
}

template <class T>
std::vector<T> apply(OpKind kind, const std::vector<T>& x, const std::vector<T>& y, ExactLanes lanes) {
  std::vector<T> result(x.size());
  LaneCall c;
  c.to = result.data();
  c.from[0] = x.data();
  c.from[1] = y.data();
  c.stride[0] = c.stride[1] = 1;
  c.end = static_cast<int32_t>(x.size());
  host::find_exact_math(kind, kDtype<T>, lanes)(c);
  return result;
}

// The distance in units in the last place of the exact value; infinite for a wrong NaN, infinity or sign.
template <class T>
double distance(T got, Wide<T> want) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  const T near = static_cast<T>(want);
  if (want != want) return std::bit_cast<Bits<T>>(got) == static_cast<Bits<T>>(~Bits<T>{0} >> 1) ? 0 : kWrong;
  if (got != got || std::signbit(got) != std::signbit(near)) return kWrong;
  if (got == near && (got == 0 || std::isinf(got))) return 0;
  if (std::isinf(got) || std::isinf(near)) {
    // One place beside the largest number.
    const T other = std::isinf(got) ? near : got;
    return std::fabs(other) == std::numeric_limits<T>::max() ? 1 : kWrong;
  }
  const Wide<T> step = std::max(std::ldexp(Wide<T>{1}, std::ilogb(want) - std::numeric_limits<T>::digits + 1),
                                Wide<T>{std::numeric_limits<T>::denorm_min()});
  return static_cast<double>(std::fabs(got - want) / step);
}

struct Worst {
  double distance = 0;
  std::string at;
};

template <class T, class Reference>
void compare(OpKind kind, const std::vector<T>& x, const std::vector<T>& y, Reference reference, Worst& worst) {
  const std::vector<T> got = apply(kind, x, y, ExactLanes::kFastest);
  for (size_t i = 0; i < x.size(); ++i) {
    const double off = distance<T>(got[i], reference(x[i], y[i]));
    if (off <= worst.distance) continue;
    char text[200];
    std::snprintf(text, sizeof text, "%a, %a gives %a", double{x[i]}, double{y[i]}, double{got[i]});
    worst = {off, text};
  }
}

uint64_t stride() {
  const char* given = std::getenv("FUSEBOX_ELEMENTARY_STRIDE");
  return given ? std::strtoull(given, nullptr, 10) : 4093;  // a prime number: no bit stays
}

constexpr size_t kChunk = 4096;

// Random bits, magnitudes that matter, and neighbours of multiples of 1/16 and of π/4.
template <class T>
std::vector<T> samples(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values = {0,
                           1,
                           2,
                           10,
                           std::numeric_limits<T>::max(),
                           std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::denorm_min(),
                           std::numeric_limits<T>::infinity(),
                           std::numeric_limits<T>::quiet_NaN()};
  for (int i = 0; i < 400; ++i)
    for (const double unit : {0.0625, 0.78539816339744831, 0.34657359027997264}) {
      const T at = static_cast<T>(i * unit);
      values.insert(values.end(), {at, std::nextafter(at, T{0}), std::nextafter(at, T{1000})});
    }
  for (size_t i = 0; i < count; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    switch (i % 5) {
      case 0:
        values.push_back(std::bit_cast<T>(static_cast<Bits<T>>(random())));
        break;
      case 1:
        values.push_back(static_cast<T>(unit));
        break;
      case 2:
        values.push_back(static_cast<T>(unit * 30));
        break;
      case 3:
        values.push_back(static_cast<T>(unit * (sizeof(T) == 4 ? 110 : 760)));
        break;
      default:
        values.push_back(static_cast<T>((unit + 1) * std::exp2(static_cast<double>(random() % 120) - 80)));
        break;
    }
  }
  for (size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  return values;
}

// What a function reaches at infinity it keeps from the first number on that gives it.
template <class T>
void expect_limit(OpKind kind, T limit, T from) {
  SCOPED_TRACE(std::string(row_of(kind).text) + " of " + std::string(text(kDtype<T>)));
  std::vector<T> x;
  for (T v = from; v < 2000; v *= T{1} + T{1} / 512) x.push_back(v);
  x.insert(x.end(), {std::numeric_limits<T>::max(), std::numeric_limits<T>::infinity()});
  const std::vector<T> y = apply(kind, x, x, ExactLanes::kFastest);
  EXPECT_EQ(y.back(), limit);
  const size_t first = static_cast<size_t>(std::find(y.begin(), y.end(), limit) - y.begin());
  EXPECT_LT(x[first], 200) << "the limit is reached late";
  for (size_t i = first; i < y.size(); ++i) ASSERT_EQ(y[i], limit) << x[i];
}

TEST(ElementaryBounds, LimitsAreKept) {
  for (const OpKind kind : {OpKind::kErf, OpKind::kTanh}) {
    expect_limit<float>(kind, 1.0F, 1.0F);
    expect_limit<double>(kind, 1.0, 1.0);
  }
  expect_limit<float>(OpKind::kErfc, 0.0F, 1.0F);
  expect_limit<double>(OpKind::kErfc, 0.0, 1.0);
}

TEST(ElementaryBounds, EveryNumberOfFloat) {
  const std::vector<float> boundaries = samples<float>(2000, 1);
  for (const auto& f : functions<double>()) {
    Worst worst;
    compare<float>(f.kind, boundaries, boundaries, [&](float a, float) { return f.reference(a); }, worst);
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32);) {
      std::vector<float> x;
      for (; bits < (uint64_t{1} << 32) && x.size() < kChunk; bits += stride())
        x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
      compare<float>(f.kind, x, x, [&](float a, float) { return f.reference(a); }, worst);
    }
    EXPECT_LE(worst.distance, f.in_float) << row_of(f.kind).text << "(" << worst.at;
    RecordProperty("worst_ulp_" + std::string(row_of(f.kind).text), std::to_string(worst.distance));
  }
}

TEST(ElementaryBounds, RandomNumbersOfDouble) {
  const std::vector<double> x = samples<double>(200'000, 3);
  for (const auto& f : functions<long double>()) {
    if (!host::find_exact_math(f.kind, Dtype::kDouble)) continue;
    Worst worst;
    compare<double>(f.kind, x, x, [&](double a, double) { return f.reference(a); }, worst);
    EXPECT_LE(worst.distance, f.in_double) << row_of(f.kind).text << "(" << worst.at;
    RecordProperty("worst_ulp_" + std::string(row_of(f.kind).text), std::to_string(worst.distance));
  }
}

// All pairs of boundaries, random pairs, and powers that neither overflow nor vanish.
template <class T>
void check_pairs(OpKind kind, Wide<T> (*reference)(Wide<T>, Wide<T>), double bound) {
  if (!host::find_exact_math(kind, kDtype<T>)) return;
  std::vector<T> x, y;
  for (const T a : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 16777215.0, 16777216.0, 9007199254740991.0, 1e30,
                    double{std::numeric_limits<T>::max()}, double{std::numeric_limits<T>::denorm_min()},
                    std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (const T b : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 16777215.0, 16777216.0, 9007199254740991.0, 1e30,
                      double{std::numeric_limits<T>::max()}, double{std::numeric_limits<T>::denorm_min()},
                      std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
      for (const T s : {1, -1})
        for (const T t : {1, -1}) {
          x.push_back(s * a);
          y.push_back(t * b);
        }
  std::mt19937_64 random(9);
  const std::vector<T> some = samples<T>(200'000, 5);
  for (size_t i = 0; i < some.size(); ++i) {
    x.push_back(some[i]);
    y.push_back(some[random() % some.size()]);
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    const T base = i % 2 ? std::fabs(some[i]) : static_cast<T>(0.5 + unit * 1.5);
    const double top = std::numeric_limits<T>::max_exponent;
    const auto log = std::log2(static_cast<double>(base));
    if (log == 0 || !std::isfinite(log)) continue;
    x.push_back(base);
    y.push_back(static_cast<T>((static_cast<double>(random() >> 11) * 0x1p-53 * 2.2 - 1.2) * top / log));
  }
  Worst worst;
  compare<T>(kind, x, y, reference, worst);
  EXPECT_LE(worst.distance, bound) << row_of(kind).text << "(" << worst.at;
  ::testing::Test::RecordProperty("worst_ulp_" + std::string(row_of(kind).text), std::to_string(worst.distance));
}
TEST(ElementaryBounds, PairsOfFloat) {
  check_pairs<float>(OpKind::kPow, std::pow, 1.0);
  check_pairs<float>(OpKind::kAtan2, std::atan2, 1.5);
}
TEST(ElementaryBounds, PairsOfDouble) {
  check_pairs<double>(OpKind::kPow, std::pow, 1.1);
  check_pairs<double>(OpKind::kAtan2, std::atan2, 1.7);
}

template <class T>
void expect_same_bits() {
  const std::vector<T> x = samples<T>(20'000, 7);
  std::vector<T> y = x;
  std::shuffle(y.begin(), y.end(), std::mt19937_64(1));
  for (const OpRow& row : op_rows()) {
    if (!host::find_exact_math(row.kind, kDtype<T>)) continue;
    const std::vector<T> fast = apply(row.kind, x, y, ExactLanes::kFastest),
                         plain = apply(row.kind, x, y, ExactLanes::kPlain);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(std::bit_cast<Bits<T>>(fast[i]), std::bit_cast<Bits<T>>(plain[i]))
          << row.text << "(" << x[i] << ", " << y[i] << ")";
  }
}
TEST(ElementaryBounds, EveryProcessorGivesTheSameBits) {
  expect_same_bits<float>();
  expect_same_bits<double>();
}

}  // namespace
}  // namespace fusebox
