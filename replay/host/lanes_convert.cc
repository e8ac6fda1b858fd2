// Conversions between register dtypes and between registers and memory, by the rules of ir/scalar/numeric.h: floats
// round once to nearest, a float that does not fit an integer saturates, integers wrap, any number but zero is true.
#include <bit>
#include <cstring>
#include <type_traits>

#include "codegen/bytecode.h"
#include "ir/scalar/numeric.h"
#include "replay/host/lane_loops.h"

namespace fusebox::host {
namespace {

struct Truth {};  // bool, a byte in a register

template <class To, class From>
inline auto convert_one(From x) {
  if constexpr (std::is_same_v<To, Truth>) {
    if constexpr (std::is_arithmetic_v<From>)
      return static_cast<uint8_t>(x != From{0});
    else
      return static_cast<uint8_t>(x.re != 0 || x.im != 0);
  } else if constexpr (!std::is_arithmetic_v<To>) {
    using Part = decltype(To::re);
    if constexpr (std::is_arithmetic_v<From>)
      return To{static_cast<Part>(x), Part{0}};
    else
      return To{static_cast<Part>(x.re), static_cast<Part>(x.im)};
  } else if constexpr (!std::is_arithmetic_v<From>) {
    return convert_one<To>(x.re);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
void convert_lanes(LaneCall& c) {
  auto* __restrict to = static_cast<decltype(convert_one<To>(From{}))*>(c.to);
  const From* __restrict a = static_cast<const From*>(c.from[0]);
  for (int32_t l = c.begin; l < c.end; ++l) to[l] = convert_one<To>(a[l]);
}

// -- the four reduced floats, as struct { memory type, from float }
struct Half {
  using Memory = uint16_t;
  // A NaN keeps its bits when loaded and stored, also a signalling one.
  static float load(uint16_t m) {
    const auto w = static_cast<uint32_t>(m);
    const uint32_t special = (w & 0x8000u) << 16 | 0x7f800000u | (w & 0x3ffu) << 13;
    return std::bit_cast<float>((w & 0x7c00u) == 0x7c00u ? special : std::bit_cast<uint32_t>(half_to_float(m)));
  }
  // Stores a float that a half can hold.
  static uint16_t store(float x) {
    const uint32_t w = std::bit_cast<uint32_t>(x);
    const auto nan = static_cast<uint16_t>((w >> 16 & 0x8000u) | 0x7c00u | (w >> 13 & 0x3ffu));
    return x == x ? float_to_half(x) : nan;
  }
  static float round(float x) { return half_to_float(float_to_half(x)); }
};
struct Bfloat16 {
  using Memory = uint16_t;
  static float load(uint16_t m) { return bfloat16_to_float(m); }
  static uint16_t store(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }
  static float round(float x) { return bfloat16_to_float(float_to_bfloat16(x)); }
};
struct Float8E4m3 {
  using Memory = uint8_t;
  static float load(uint8_t m) { return float8_e4m3_to_float(m); }
  static uint8_t store(float x) { return float_to_float8_e4m3(x); }
  static float round(float x) { return float8_e4m3_to_float(float_to_float8_e4m3(x)); }
};
struct Float8E5m2 {
  using Memory = uint8_t;
  static float load(uint8_t m) { return float8_e5m2_to_float(m); }
  static uint8_t store(float x) { return float_to_float8_e5m2(x); }
  static float round(float x) { return float8_e5m2_to_float(float_to_float8_e5m2(x)); }
};

// A float on the way to a reduced one. A wider number is rounded to odd, so that the result is rounded once.
template <class From>
inline float widest_float(From x) {
  if constexpr (!std::is_arithmetic_v<From>) {
    return widest_float(x.re);
  } else if constexpr (std::is_same_v<From, double>) {
    return float_round_to_odd(x);
  } else if constexpr (std::is_same_v<From, int64_t> || std::is_same_v<From, uint64_t>) {
    return float_round_to_odd(double_round_to_odd(x));
  } else if constexpr (sizeof(From) == 4 && std::is_integral_v<From>) {
    return float_round_to_odd(static_cast<double>(x));
  } else {
    return static_cast<float>(x);
  }
}

template <class Format, class From>
void convert_reduced_lanes(LaneCall& c) {
  float* __restrict to = static_cast<float*>(c.to);
  const From* __restrict a = static_cast<const From*>(c.from[0]);
  for (int32_t l = c.begin; l < c.end; ++l) to[l] = Format::round(widest_float(a[l]));
}
// Works in place too: the loop reads and writes one lane at a time.
template <class Format>
void round_lanes(LaneCall& c) {
  float* to = static_cast<float*>(c.to);
  const float* a = static_cast<const float*>(c.from[0]);
  if (to == a)
    for (int32_t l = c.begin; l < c.end; ++l) to[l] = Format::round(to[l]);
  else
    convert_reduced_lanes<Format, float>(c);
}

template <class To>
struct Converting {
  template <class From>
  static constexpr LaneFunction of() {
    return convert_lanes<To, From>;
  }
};
template <class Format>
struct Reducing {
  template <class From>
  static constexpr LaneFunction of() {
    if constexpr (std::is_same_v<From, float>)
      return round_lanes<Format>;
    else
      return convert_reduced_lanes<Format, From>;
  }
};

// `Lanes::of<From>()` is the conversion of a register of that type.
template <class Lanes>
LaneFunction find_from(Dtype from) {
  switch (from) {
    case Dtype::kBool:
    case Dtype::kUint8:
      return Lanes::template of<uint8_t>();
    case Dtype::kInt8:
      return Lanes::template of<int8_t>();
    case Dtype::kInt16:
      return Lanes::template of<int16_t>();
    case Dtype::kInt32:
      return Lanes::template of<int32_t>();
    case Dtype::kInt64:
      return Lanes::template of<int64_t>();
    case Dtype::kUint16:
      return Lanes::template of<uint16_t>();
    case Dtype::kUint32:
      return Lanes::template of<uint32_t>();
    case Dtype::kUint64:
      return Lanes::template of<uint64_t>();
    case Dtype::kFloat:
      return Lanes::template of<float>();
    case Dtype::kDouble:
      return Lanes::template of<double>();
    case Dtype::kComplexFloat:
      return Lanes::template of<Complex<float>>();
    case Dtype::kComplexDouble:
      return Lanes::template of<Complex<double>>();
    case Dtype::kIndex:
    case Dtype::kHalf:
    case Dtype::kBfloat16:
    case Dtype::kFloat8E4m3:
    case Dtype::kFloat8E5m2:
    case Dtype::kFloat8E8m0:
    case Dtype::kFloat4E2m1:
    case Dtype::kFloat4E2m1x2:
      break;  // no dtype of a register
  }
  return nullptr;
}

}  // namespace

LaneFunction find_conversion(Dtype from, Dtype to) {
  if (is_storage_only(from) || is_storage_only(to)) return nullptr;
  const Dtype have = register_dtype(from);
  switch (to) {
    case Dtype::kBool:
      return find_from<Converting<Truth>>(have);
    case Dtype::kInt8:
      return find_from<Converting<int8_t>>(have);
    case Dtype::kInt16:
      return find_from<Converting<int16_t>>(have);
    case Dtype::kInt32:
      return find_from<Converting<int32_t>>(have);
    case Dtype::kInt64:
    case Dtype::kIndex:
      return find_from<Converting<int64_t>>(have);
    case Dtype::kUint8:
      return find_from<Converting<uint8_t>>(have);
    case Dtype::kUint16:
      return find_from<Converting<uint16_t>>(have);
    case Dtype::kUint32:
      return find_from<Converting<uint32_t>>(have);
    case Dtype::kUint64:
      return find_from<Converting<uint64_t>>(have);
    case Dtype::kHalf:
      return find_from<Reducing<Half>>(have);
    case Dtype::kBfloat16:
      return find_from<Reducing<Bfloat16>>(have);
    case Dtype::kFloat8E4m3:
      return find_from<Reducing<Float8E4m3>>(have);
    case Dtype::kFloat8E5m2:
      return find_from<Reducing<Float8E5m2>>(have);
    case Dtype::kFloat:
      return find_from<Converting<float>>(have);
    case Dtype::kDouble:
      return find_from<Converting<double>>(have);
    case Dtype::kComplexFloat:
      return find_from<Converting<Complex<float>>>(have);
    case Dtype::kComplexDouble:
      return find_from<Converting<Complex<double>>>(have);
    case Dtype::kFloat8E8m0:
    case Dtype::kFloat4E2m1:
    case Dtype::kFloat4E2m1x2:
      return nullptr;
  }
  return nullptr;
}

// -- memory
namespace {

template <class T>
struct Plain {
  using Memory = T;
  static T load(T m) { return m; }
  static T store(T x) { return x; }
};
struct Boolean {
  using Memory = uint8_t;
  static uint8_t load(uint8_t m) { return m != 0; }
  static uint8_t store(uint8_t x) { return x; }
};

template <class F>
struct Access {
  using M = typename F::Memory;
  using R = decltype(F::load(M{}));

  static M read(const std::byte* from, int64_t element) {
    M m;
    std::memcpy(&m, from + element * static_cast<int64_t>(sizeof(M)), sizeof(M));
    return m;
  }
  static void load(void* to, const std::byte* from, int64_t count) {
    R* __restrict out = static_cast<R*>(to);
    for (int64_t k = 0; k < count; ++k) out[k] = F::load(read(from, k));
  }
  static void store(std::byte* to, const void* from, int64_t count) {
    const R* __restrict in = static_cast<const R*>(from);
    for (int64_t k = 0; k < count; ++k) {
      const M m = F::store(in[k]);
      std::memcpy(to + k * static_cast<int64_t>(sizeof(M)), &m, sizeof(M));
    }
  }
  static void gather(void* to, const std::byte* from, const int64_t* index, const uint8_t* mask, int32_t begin,
                     int32_t end) {
    R* __restrict out = static_cast<R*>(to);
    for (int32_t l = begin; l < end; ++l) out[l] = mask[l] != 0 ? F::load(read(from, index[l])) : R{};
  }
  static void scatter(std::byte* to, const int64_t* index, uint8_t index_stride, const void* from, uint8_t from_stride,
                      const uint8_t* mask, int32_t begin, int32_t end) {
    const R* in = static_cast<const R*>(from);
    for (int32_t l = begin; l < end; ++l) {
      if (mask[l] == 0) continue;
      const M m = F::store(in[static_cast<ptrdiff_t>(l) * from_stride]);
      std::memcpy(to + index[static_cast<ptrdiff_t>(l) * index_stride] * static_cast<int64_t>(sizeof(M)), &m,
                  sizeof(M));
    }
  }
  static void fill(void* to, const void* value, int64_t count) {
    const R x = *static_cast<const R*>(value);
    R* out = static_cast<R*>(to);
    for (int64_t k = 0; k < count; ++k) out[k] = x;
  }
  static void merge(void* to, const void* from, uint8_t stride, const uint8_t* keep, int32_t begin, int32_t end) {
    R* __restrict out = static_cast<R*>(to);
    const R* __restrict in = static_cast<const R*>(from);
    for (int32_t l = begin; l < end; ++l)
      if (keep[l] == 0) out[l] = in[static_cast<ptrdiff_t>(l) * stride];
  }
  static constexpr MemoryFunctions kFunctions = {load, store, gather, scatter, fill, merge, sizeof(R)};
};

}  // namespace

const MemoryFunctions& memory_functions(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBool:
      return Access<Boolean>::kFunctions;
    case Dtype::kInt8:
      return Access<Plain<int8_t>>::kFunctions;
    case Dtype::kInt16:
      return Access<Plain<int16_t>>::kFunctions;
    case Dtype::kInt32:
      return Access<Plain<int32_t>>::kFunctions;
    case Dtype::kInt64:
    case Dtype::kIndex:
      return Access<Plain<int64_t>>::kFunctions;
    case Dtype::kUint8:
    case Dtype::kFloat8E8m0:
    case Dtype::kFloat4E2m1:
    case Dtype::kFloat4E2m1x2:
      return Access<Plain<uint8_t>>::kFunctions;
    case Dtype::kUint16:
      return Access<Plain<uint16_t>>::kFunctions;
    case Dtype::kUint32:
      return Access<Plain<uint32_t>>::kFunctions;
    case Dtype::kUint64:
      return Access<Plain<uint64_t>>::kFunctions;
    case Dtype::kHalf:
      return Access<Half>::kFunctions;
    case Dtype::kBfloat16:
      return Access<Bfloat16>::kFunctions;
    case Dtype::kFloat:
      return Access<Plain<float>>::kFunctions;
    case Dtype::kDouble:
      return Access<Plain<double>>::kFunctions;
    case Dtype::kComplexFloat:
      return Access<Plain<Complex<float>>>::kFunctions;
    case Dtype::kComplexDouble:
      return Access<Plain<Complex<double>>>::kFunctions;
    case Dtype::kFloat8E4m3:
      return Access<Float8E4m3>::kFunctions;
    case Dtype::kFloat8E5m2:
      return Access<Float8E5m2>::kFunctions;
  }
  return Access<Plain<uint8_t>>::kFunctions;
}

}  // namespace fusebox::host
