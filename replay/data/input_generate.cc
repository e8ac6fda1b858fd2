// The generators of input.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "replay/data/input.h"
#include "replay/data/parts.h"

namespace fusebox {
namespace {

constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;
constexpr uint64_t kDrawsPerElement = 16;

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Random {
  uint64_t key;
  explicit Random(uint64_t seed) : key(mix(seed + kGamma)) {}
  uint64_t word(int64_t index, uint64_t draw) const {
    return mix(key + (static_cast<uint64_t>(index) * kDrawsPerElement + draw + 1) * kGamma);
  }
};

double unit(uint64_t word) { return static_cast<double>(word >> 11) * 0x1.0p-53; }

// The sum of 12 uniform numbers of 32 bits, less its mean. It is exact in integers.
double normal(const Random& random, int64_t index, uint64_t draw) {
  int64_t sum = 0;
  for (uint64_t k = 0; k < 6; ++k) {
    const uint64_t w = random.word(index, draw + k);
    sum += static_cast<int64_t>(w & 0xffffffffu) + static_cast<int64_t>(w >> 32);
  }
  // The mean of a 32-bit word is (2^32 − 1)/2.
  return static_cast<double>(sum - 6 * int64_t{0xffffffff}) * 0x1.0p-32;
}

std::vector<double> boundary_reals(Dtype dtype) {
  const Dtype real = real_of(dtype);
  const FloatFormat& format = format_of(real);
  const double largest = format.largest, tiny = to_double(real, {1, 0});
  const double above_one = to_double(real, {from_double(real, 1.0).low + 1, 0});
  const double below_one = to_double(real, {from_double(real, 1.0).low - 1, 0});
  // The smallest normal number has a mantissa of 0 and exponent 1.
  const uint64_t binade = uint64_t{1} << format.mantissa_bits;
  const double smallest_normal = to_double(real, {binade, 0}), largest_subnormal = to_double(real, {binade - 1, 0});
  std::vector<double> values = {
      0.0, 1.0, largest, tiny, smallest_normal, largest_subnormal, above_one, below_one, 0.5, 1.5, 2.5,
      2.0, 3.0, 0.75,    7.0,  100.0,           1.5707963267948966};
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  if (has_infinity(real)) {
    values.push_back(INFINITY);
    values.push_back(-INFINITY);
  }
  if (has_nan(real)) values.push_back(std::nan(""));
  return values;
}

[[noreturn]] void refuse(const InputSpec& spec, const std::string& message) {
  throw Error(ErrorCode::kBadInputSpec, message, "%" + spec.name);
}

// Makes one element from its index.
class Generator {
 public:
  explicit Generator(const InputSpec& spec) : spec_(spec), random_(spec.seed) {
    if (spec.generator == InputGenerator::kBoundary) boundary_ = boundary_values(spec.dtype);
    if (spec.generator == InputGenerator::kConstant)
      constant_ = spec.value == ConstantBits{} && spec.dtype != Dtype::kFloat4E2m1x2 ? from_double(spec.dtype, spec.low)
                                                                                     : spec.value;
    if (spec.generator == InputGenerator::kIntegers && !is_boolean(spec.dtype) && !is_storage_only(spec.dtype))
      prepare_integers();
    if (spec.generator == InputGenerator::kUniform && !(spec.high - spec.low < INFINITY && spec.high >= spec.low))
      refuse(spec, "uniform needs two finite numbers in order; give low and then high");
    if (spec.generator == InputGenerator::kNormal && !(std::isfinite(spec.low) && std::isfinite(spec.high)))
      refuse(spec, "normal needs a finite mean and deviation");
  }

  ConstantBits element(int64_t index) const {
    if (spec_.generator == InputGenerator::kConstant) return constant_;
    if (is_storage_only(spec_.dtype)) return canonical_bits(spec_.dtype, {random_.word(index, 0), 0});
    if (is_boolean(spec_.dtype)) return {random_.word(index, 0) >> 63, 0};
    ConstantBits bits = part(index, 0);
    if (is_complex(spec_.dtype)) bits.high = part(index, kDrawsPerElement / 2).low;
    return bits;
  }

 private:
  void prepare_integers() {
    const double low = std::ceil(spec_.low), high = std::ceil(spec_.high);
    if (!(low < high)) refuse(spec_, "integers needs a low below its high, here none lies in [low, high)");
    // A double cannot hold the ends of the 64-bit ranges. A number a little beyond stands for the end.
    const bool is_unsigned = row_of(spec_.dtype).kind == DtypeKind::kUnsigned;
    const uint64_t first = is_unsigned ? saturate<uint64_t>(low) : static_cast<uint64_t>(saturate<int64_t>(low));
    const bool open = high >= (is_unsigned ? 0x1.0p64 : 0x1.0p63);
    const uint64_t end = is_unsigned ? (open ? 0 : saturate<uint64_t>(high))
                                     : (open ? uint64_t{1} << 63 : static_cast<uint64_t>(saturate<int64_t>(high)));
    first_ = first;
    count_ = end - first;  // 0: all 2^64
    if (is_integer(spec_.dtype) && bits(spec_.dtype) < 64 &&
        !(is_exact(spec_.dtype, low) && is_exact(spec_.dtype, high - 1)))
      refuse(spec_, "integers of " + std::string(text(spec_.dtype)) + " must lie in its range; change low and high");
    if (is_unsigned && low < 0) refuse(spec_, "integers of an unsigned dtype start at 0 or above; change low");
  }

  ConstantBits part(int64_t index, uint64_t draw) const {
    const Dtype real = real_of(spec_.dtype);
    switch (spec_.generator) {
      case InputGenerator::kNormal:
        return rounded(spec_.low + spec_.high * normal(random_, index, draw));
      case InputGenerator::kUniform:
        return rounded(spec_.low + (spec_.high - spec_.low) * unit(random_.word(index, draw)));
      case InputGenerator::kIntegers: {
        const uint64_t w = random_.word(index, draw);
        const uint64_t v =
            first_ + (count_ == 0 ? w : static_cast<uint64_t>((static_cast<unsigned __int128>(w) * count_) >> 64));
        return row_of(real).kind == DtypeKind::kUnsigned ? from_uint64(real, v)
                                                         : from_int64(real, static_cast<int64_t>(v));
      }
      case InputGenerator::kBoundary: {
        const uint64_t w = random_.word(index, draw);
        const size_t k = static_cast<size_t>((static_cast<unsigned __int128>(w) * boundary_.size()) >> 64);
        return {boundary_[k].low, 0};
      }
      case InputGenerator::kConstant:
        break;
    }
    return constant_;
  }
  // Rounds to the nearest integer for an integer dtype, where a cast would cut off.
  ConstantBits rounded(double v) const {
    return from_double(real_of(spec_.dtype), is_integer(spec_.dtype) ? std::nearbyint(v) : v);
  }

  const InputSpec& spec_;
  Random random_;
  std::vector<ConstantBits> boundary_;
  ConstantBits constant_;
  uint64_t first_ = 0, count_ = 0;
};

// Fills rows [begin, end) of the tensor; a row runs along the last axis.
void fill_rows(const Generator& generator, const TensorData& t, std::span<const int64_t> index_strides, int64_t begin,
               int64_t end) {
  const size_t outer = t.shape.empty() ? 0 : t.shape.size() - 1;
  const int64_t count = t.shape.empty() ? 1 : t.shape.back();
  const int64_t stride = t.shape.empty() ? 1 : t.strides.back();
  const int64_t index_stride = t.shape.empty() ? 1 : index_strides.back();
  for (int64_t row = begin; row < end; ++row) {
    int64_t rest = row, position = t.offset, index = 0;
    for (size_t a = outer; a-- > 0;) {
      const int64_t i = rest % t.shape[a];
      rest /= t.shape[a];
      position += i * t.strides[a];
      index += i * index_strides[a];
    }
    // An axis of stride 0 has one element.
    const int64_t written = stride == 0 ? 1 : count;
    for (int64_t i = 0; i < written; ++i)
      store_element(t, position + i * stride, generator.element(index + i * index_stride));
  }
}

}  // namespace

std::vector<ConstantBits> boundary_values(Dtype dtype) {
  std::vector<ConstantBits> values;
  if (is_storage_only(dtype)) {
    for (uint64_t b = 0; b < (uint64_t{1} << bits(dtype)); ++b) values.push_back({b, 0});
    return values;
  }
  if (is_boolean(dtype)) return {{0, 0}, {1, 0}};
  if (is_integer(dtype)) {
    const int width = bits(dtype);
    const uint64_t top = uint64_t{1} << (width - 1);
    for (uint64_t v :
         {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, top, top - 1, top + 1, uint64_t{2}, ~uint64_t{1}, uint64_t{7},
          ~uint64_t{6}, static_cast<uint64_t>(width), static_cast<uint64_t>(width - 1), uint64_t{100}, uint64_t{3}}) {
      const ConstantBits b = canonical_bits(dtype, {v, 0});
      if (std::find(values.begin(), values.end(), b) == values.end()) values.push_back(b);
    }
    return values;
  }
  for (double v : boundary_reals(dtype)) values.push_back(from_double(dtype, v));
  return values;
}

Argument make_argument(const InputSpec& spec, int threads) {
  if (spec.is_scalar) return Argument::scalar(spec.dtype, spec.value);
  TensorData t;
  try {
    t = allocate_tensor(spec.dtype, spec.shape, spec.strides, spec.offset);
  } catch (Error& e) {
    e.place = "%" + spec.name;
    throw;
  }
  const Generator generator(spec);
  const int64_t count = element_count(t.shape);
  if (!is_sparse(t) && t.storage_elems > (overlaps(t.shape, t.strides) ? 0 : count))
    std::memset(t.storage.get(), is_boolean(t.dtype) ? 1 : 0xff,
                static_cast<size_t>(t.storage_elems * size_bytes(t.dtype)));
  if (count == 0) return Argument::of(std::move(t));

  std::vector<int64_t> index_strides = contiguous_strides(t.shape);
  for (size_t a = 0; a < t.shape.size(); ++a)
    if (t.strides[a] == 0) index_strides[a] = 0;
  const int64_t rows = t.shape.empty() ? 1 : count / t.shape.back();
  if (threads <= 0)
    threads = count < (1 << 18) ? 1 : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  // If elements share positions, the last one in row-major order stays, which needs one thread.
  if (overlaps(t.shape, t.strides)) threads = 1;
  threads = static_cast<int>(std::min<int64_t>(threads, rows));
  run_parts(threads,
            [&](int k) { fill_rows(generator, t, index_strides, rows * k / threads, rows * (k + 1) / threads); });
  return Argument::of(std::move(t));
}

}  // namespace fusebox
