#include "fuzz/generate/constants.h"

#include <cmath>
#include <limits>

#include "ir/scalar/numeric.h"
#include "replay/data/input.h"

namespace fusebox::fuzz {
namespace {

// The bits of infinity: all of the exponent, none of the mantissa. The mantissa's lowest bit is bit 0.
uint64_t infinity_bits(Dtype real) { return from_double(real, INFINITY).low; }

ConstantBits integer_constant(RandomSource& random, Dtype dtype) {
  const int width = bits(dtype);
  switch (random.below(6)) {
    case 0:
    case 1: {
      // A power of two that the dtype holds, or a neighbour; up to 2^63 if unsigned.
      const size_t powers = static_cast<size_t>(is_signed(dtype) ? width - 1 : width);
      const uint64_t power = uint64_t{1} << random.below(powers);
      const uint64_t near = power + random.below(3) - 1;
      return canonical_bits(dtype, {is_signed(dtype) && random.one_in(3) ? 0 - near : near, 0});
    }
    case 2: {
      // The sizes from which doubles, or floats, no longer hold every integer.
      const uint64_t power = uint64_t{1} << (width == 64 ? 53 : width == 32 ? 24 : width - 2);
      return canonical_bits(dtype, {power + random.below(3) - 1, 0});
    }
    case 3:
      return canonical_bits(dtype, {random.next(), 0});
    default: {
      const std::vector<ConstantBits> all = boundary_values(dtype);
      return random.pick(all);
    }
  }
}

ConstantBits real_constant(RandomSource& random, Dtype dtype) {
  const size_t way = random.below(12);
  if (way < 6) {
    // All the digits of a double, in a range in which products do not overflow.
    const double digits = 1 + std::ldexp(static_cast<double>(random.next() >> 12), -52);
    const int power = static_cast<int>(random.between(-4, 4));
    return from_double(dtype, std::ldexp(random.one_in(3) ? -digits : digits, power));
  }
  if (way < 8) {
    const double power = std::ldexp(1, random.one_in(2) ? 24 : 53);
    return from_double(dtype, power + static_cast<double>(random.between(-1, 1)));
  }
  if (way == 11 && has_nan(dtype) && !has_infinity(dtype))
    return from_double(dtype, std::numeric_limits<double>::quiet_NaN());
  if (way == 11 && has_nan(dtype)) {
    const uint64_t infinity = infinity_bits(dtype), sign = uint64_t{1} << (bits(dtype) - 1);
    if (random.one_in(2)) return {infinity | (random.one_in(2) ? sign : 0), 0};
    if (random.one_in(2)) return from_double(dtype, std::numeric_limits<double>::quiet_NaN());
    // Any sign and payload. The NaN is quiet, as conversions make it.
    const uint64_t quiet = infinity | (from_double(dtype, std::numeric_limits<double>::quiet_NaN()).low & ~sign);
    const uint64_t payload = random.next() & ((quiet ^ infinity) - 1);
    return {quiet | payload | (random.one_in(2) ? sign : 0), 0};
  }
  std::vector<ConstantBits> finite;
  for (ConstantBits b : boundary_values(dtype))
    if (std::isfinite(to_double(dtype, b))) finite.push_back(b);
  return random.pick(finite);
}

}  // namespace

ConstantBits small_constant(Dtype dtype, double value) {
  if (is_boolean(dtype)) value = value != 0;
  if (is_integer(dtype) && (value != std::floor(value) || (value < 0 && !is_signed(dtype)))) value = 1;
  return from_double(dtype, value);
}

ConstantBits draw_small_constant(RandomSource& random, Dtype dtype) {
  constexpr double kValues[] = {1, 0, 2, 3, -1, -0.0, 0.5, 1.0 / 3};
  return small_constant(dtype, random.pick(kValues));
}

ConstantBits draw_constant(RandomSource& random, Dtype dtype) {
  if (is_boolean(dtype) || random.one_in(2)) return draw_small_constant(random, dtype);
  if (is_integer(dtype)) return integer_constant(random, dtype);
  if (!is_complex(dtype)) return real_constant(random, dtype);
  const Dtype real = real_of(dtype);
  const auto part = [&] { return random.one_in(2) ? draw_small_constant(random, real) : real_constant(random, real); };
  const ConstantBits re = part(), im = part();
  return {re.low, im.low};
}

ConstantClass constant_class(Dtype dtype, ConstantBits b) {
  if (is_boolean(dtype)) return ConstantClass::kSmall;
  if (is_complex(dtype)) {
    if (to_complex(dtype, b).imag() != 0) return ConstantClass::kImaginary;
    return constant_class(real_of(dtype), {b.low, 0});
  }
  if (is_integer(dtype)) {
    const int width = bits(dtype);
    const uint64_t most = ~uint64_t{0} >> (64 - width + (is_signed(dtype) ? 1 : 0));
    if (b == canonical_bits(dtype, {most, 0})) return ConstantClass::kLargest;
    if (is_signed(dtype) && b == canonical_bits(dtype, {most + 1, 0})) return ConstantClass::kLeast;
    const auto signed_value = static_cast<int64_t>(b.low);
    const uint64_t size = is_signed(dtype) && signed_value < 0 ? 0 - b.low : b.low;
    for (uint64_t near : {size - 1, size, size + 1})
      if (near >= (uint64_t{1} << 24) && (near & (near - 1)) == 0) return ConstantClass::kNearPower;
    return ConstantClass::kSmall;
  }
  const double value = to_double(dtype, b);
  if (std::isnan(value))
    return b == from_double(dtype, std::numeric_limits<double>::quiet_NaN()) ? ConstantClass::kNan
                                                                             : ConstantClass::kNanWithBits;
  if (std::isinf(value)) return ConstantClass::kInfinite;
  const uint64_t size = b.low & ~(uint64_t{1} << (bits(dtype) - 1));
  const FloatFormat& format = format_of(dtype);
  if (size == from_double(dtype, format.largest).low)
    return value < 0 ? ConstantClass::kLeast : ConstantClass::kLargest;
  if (value != 0 && size >> format.mantissa_bits == 0) return ConstantClass::kSubnormal;
  for (double near : {std::abs(value) - 1, std::abs(value), std::abs(value) + 1})
    if (near == 0x1p24 || near == 0x1p53) return ConstantClass::kNearPower;
  return is_exact(Dtype::kHalf, value) ? ConstantClass::kSmall : ConstantClass::kManyDigits;
}

}  // namespace fusebox::fuzz
