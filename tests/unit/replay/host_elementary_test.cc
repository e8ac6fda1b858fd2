// Scalar functions of one operand on many values: results are within bounds.
#include <bit>
#include <random>

#include "ir/step/apply.h"
#include "replay/host/lanes.h"
#include "tests/unit/replay/host_math_reference.h"
#include "tests/unit/replay/host_runner.h"

namespace fusebox {
namespace {

using host::find_math;
using host::LaneCall;
using host::LaneFunction;
using testing::float_reference;
using testing::FloatReference;

// Random bits, and numbers of all magnitudes that matter to the functions.
template <class T>
std::vector<T> samples(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(n);
  for (size_t i = 0; i < n; ++i) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const auto unit = static_cast<double>(random() >> 11) * 0x1p-53;
    switch (i % 4) {
      case 0:
        values[i] = std::bit_cast<T>(static_cast<Bits>(random()));
        break;
      case 1:
        values[i] = static_cast<T>(unit * 2 - 1);
        break;
      case 2:
        values[i] = static_cast<T>((unit * 2 - 1) * 100);
        break;
      default:
        values[i] = static_cast<T>((unit * 2 - 1) * std::exp2(static_cast<double>(random() % 80) - 60));
        break;
    }
  }
  return values;
}

template <class T>
std::vector<T> apply(OpKind kind, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  LaneCall c;
  c.to = y.data();
  c.from[0] = x.data();
  c.stride[0] = 1;
  c.end = static_cast<int32_t>(x.size());
  const LaneFunction f = find_math(kind, sizeof(T) == 4 ? Dtype::kFloat : Dtype::kDouble, 64);
  f(c);
  return y;
}

template <class T>
double units_off(T got, long double want) {
  const T near = static_cast<T>(want);
  if (std::isnan(got) || std::isnan(near)) return std::isnan(got) == std::isnan(near) ? 0 : 1e30;
  if (got == near) return 0;
  if (std::isinf(got) || std::isinf(near))
    return std::isinf(got) && std::isinf(near)                                                                 ? 1e30
           : std::abs(got) == std::numeric_limits<T>::max() || std::abs(near) == std::numeric_limits<T>::max() ? 1
                                                                                                               : 1e30;
  const T step = std::nextafter(std::abs(near), std::numeric_limits<T>::infinity()) - std::abs(near);
  return static_cast<double>(fabsl(static_cast<long double>(got) - want) / step);
}

template <class T>
void check_bounds(size_t count) {
  const std::vector<T> x = samples<T>(count, 11);
  for (const OpRow& row : op_rows()) {
    if (row.format->slot_count != 1 || !row.at(Level::kKernel) || !(row.demands & kPointwise) ||
        row.kind == OpKind::kCast)
      continue;
    if (!find_math(row.kind, sizeof(T) == 4 ? Dtype::kFloat : Dtype::kDouble, 64)) continue;
    const FloatReference kind = float_reference<T>(row.kind, T{1}, T{1}, T{1}, T{1});
    if (kind.ulps <= 0) continue;  // other tests compare exact ones
    const std::vector<T> y = apply(row.kind, x);
    const bool is_slow = row.kind == OpKind::kErfinv || row.kind == OpKind::kErfcinv;
    double worst = 0;
    for (size_t i = 0; i < x.size(); i += is_slow ? 41 : 1) {
      const FloatReference want = float_reference<T>(row.kind, x[i], T{0}, T{0}, T{0});
      double off = units_off(y[i], want.value);
      if (want.absolute > 0 && fabsl(static_cast<long double>(y[i]) - want.value) <= want.absolute) off = 0;
      worst = std::max(worst, off);
      EXPECT_LE(off, want.ulps) << row.text << "(" << x[i] << ") gives " << y[i] << ", not "
                                << static_cast<T>(want.value);
    }
    ::testing::Test::RecordProperty("worst_ulp_" + std::string(row.text), std::to_string(worst));
  }
}
TEST(HostElementary, FloatsAreWithinTheirBounds) { check_bounds<float>(20000); }
TEST(HostElementary, DoublesAreWithinTheirBounds) { check_bounds<double>(20000); }

}  // namespace
}  // namespace fusebox
