// Every scalar op on every dtype that it accepts, at boundary values, compared with a plain reference.
#include <algorithm>
#include <bit>
#include <set>

#include "tests/unit/replay/host_math_reference.h"
#include "tests/unit/replay/host_runner.h"

namespace fusebox {
namespace {

using namespace testing;

std::vector<double> boundary_numbers(Dtype d) {
  const int width = bits(d);
  if (is_boolean(d)) return {0, 1};
  if (is_integer(d)) return {};
  const bool is_half = d == Dtype::kHalf;
  const double tiny = d == Dtype::kDouble       ? 0x1p-1022
                      : is_half                 ? 0x1p-14
                      : d == Dtype::kFloat8E4m3 ? 0x1p-6
                      : d == Dtype::kFloat8E5m2 ? 0x1p-14
                                                : 0x1p-126;
  const double huge = d == Dtype::kDouble       ? 0x1.fffffffffffffp1023
                      : d == Dtype::kFloat      ? 0x1.fffffep127
                      : d == Dtype::kBfloat16   ? 0x1.fep127
                      : d == Dtype::kFloat8E4m3 ? 448.0
                      : d == Dtype::kFloat8E5m2 ? 57344.0
                      : is_half                 ? 65504.0
                                                : 1.0;
  std::vector<double> values = {
      0,    1,   0.5,  0.75, 1.5,  2,     3,     7,      0.1,   0.7,    0.99,   1.01, 10,   20.5,     44.25, 88.25,
      88.7, 89,  90,   103,  104,  127,   128,   709.25, 710,   744.25, 1e-3,   1e-5, 1e-9, 1e5,      1e10,  3.1415926,
      1e18, 2.5, 1e38, 3e38, 4e15, 1e-38, 1e-40, 1e200,  1e300, 1e-300, 1.9999, 0.25, tiny, tiny / 4, huge};
  if (has_infinity(d)) values.push_back(std::numeric_limits<double>::infinity());
  for (size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  (void)width;
  return values;
}

std::vector<ConstantBits> boundary_values(Dtype d) {
  std::vector<ConstantBits> result;
  const auto add = [&](ConstantBits b) {
    if (std::find(result.begin(), result.end(), b) == result.end()) result.push_back(b);
  };
  if (is_integer(d)) {
    const int width = d == Dtype::kIndex ? 31 : bits(d);  // overflowing index arithmetic is a finding
    const int64_t top = is_signed(d) ? (width == 64 ? INT64_MAX : (int64_t{1} << (width - 1)) - 1) : -1;
    for (const int64_t v : {int64_t{0},
                            int64_t{1},
                            int64_t{2},
                            int64_t{3},
                            int64_t{5},
                            int64_t{7},
                            int64_t{8},
                            int64_t{12},
                            int64_t{31},
                            int64_t{32},
                            int64_t{63},
                            int64_t{64},
                            int64_t{100},
                            int64_t{-1},
                            int64_t{-2},
                            int64_t{-3},
                            int64_t{-7},
                            int64_t{-8},
                            int64_t{-100},
                            top,
                            top - 1,
                            is_signed(d) ? -top - 1 : 1,
                            is_signed(d) ? -top : 1})
      add(from_int64(d, v));
    return result;
  }
  if (is_complex(d)) {
    const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    for (const double re : {0.0, -0.0, 1.0, -2.5, 1e-3, 3e18, inf, nan})
      for (const double im : {0.0, 1.0, -0.75, 4e17, -inf, nan}) add(from_complex(d, {re, im}));
    return result;
  }
  for (const double v : boundary_numbers(d)) add(from_double(d, v));
  return result;
}

ConstantBits bits_at(const std::byte* data, Dtype d, int64_t element) {
  ConstantBits b;
  const auto size = static_cast<size_t>(size_bytes(d));
  const std::byte* at = data + static_cast<size_t>(element) * size;
  if (is_complex(d)) {
    std::memcpy(&b.low, at, size / 2);
    std::memcpy(&b.high, at + size / 2, size / 2);
  } else {
    std::memcpy(&b.low, at, size);
    if (is_signed(d) && size < 8)
      b.low = static_cast<uint64_t>(static_cast<int64_t>(b.low << (64 - 8 * size)) >> (64 - 8 * size));
  }
  return b;
}
void put_at(std::byte* data, Dtype d, int64_t element, ConstantBits b) {
  const auto size = static_cast<size_t>(size_bytes(d));
  std::byte* at = data + static_cast<size_t>(element) * size;
  if (is_complex(d)) {
    std::memcpy(at, &b.low, size / 2);
    std::memcpy(at + size / 2, &b.high, size / 2);
  } else {
    std::memcpy(at, &b.low, size);
  }
}

// Maps floats in order to integers; neighbours differ by one.
int64_t ordinal(Dtype d, ConstantBits b) {
  const int width = bits(d);
  const uint64_t sign = uint64_t{1} << (width - 1);
  return (b.low & sign) != 0 ? -static_cast<int64_t>(b.low & (sign - 1)) : static_cast<int64_t>(b.low);
}
bool is_nan_value(Dtype d, ConstantBits b) { return std::isnan(to_double(d, b)); }

struct Sweep {
  ScalarOps ops;
  std::vector<ConstantBits> operands[4];
  std::vector<uint8_t> truth;
  std::vector<std::vector<std::byte>> results;  // for each output
  int64_t elements = 0;
};

// Runs a kernel of kernel_cases.h on all pairs of boundary values.
Sweep sweep(ScalarOps ops, Dtype d) {
  Sweep s;
  s.ops = std::move(ops);
  const std::vector<ConstantBits> values = boundary_values(d);
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = 0; j < values.size(); ++j) {
      s.operands[0].push_back(values[i]);
      s.operands[1].push_back(values[j]);
      s.operands[2].push_back(values[(i * 7 + j * 3 + 1) % values.size()]);
      s.operands[3].push_back(values[(i * 5 + j * 11 + 2) % values.size()]);
      s.truth.push_back((i + j) % 3 != 0);
    }
  s.elements = static_cast<int64_t>(s.truth.size());
  const auto n = static_cast<size_t>(s.elements);
  std::vector<std::vector<std::byte>> memory(4, std::vector<std::byte>(n * static_cast<size_t>(size_bytes(d))));
  std::vector<HostArgument> args;
  for (size_t k = 0; k < 4; ++k) {
    for (size_t e = 0; e < n; ++e) put_at(memory[k].data(), d, static_cast<int64_t>(e), s.operands[k][e]);
    args.push_back(HostArgument::memory(d, memory[k].data(), s.elements));
  }
  args.push_back(HostArgument::memory(Dtype::kBool, s.truth.data(), s.elements));
  std::vector<std::vector<uint8_t>> written(s.ops.outputs.size(), std::vector<uint8_t>(n, 0));
  for (size_t o = 0; o < s.ops.outputs.size(); ++o) {
    const Dtype to = s.ops.outputs[o].dtype;
    s.results.emplace_back(n * static_cast<size_t>(size_bytes(to)));
    args.push_back(HostArgument::memory(to, s.results[o].data(), s.elements, written[o]));
  }
  args.push_back(HostArgument::scalar(Dtype::kIndex, from_int64(Dtype::kIndex, s.elements)));
  const HostResult r = run_kernel(compile_bytecode(s.ops.kernel),
                                  {.grid = {(s.elements + 127) / 128, 1, 1}, .block = {128, 1, 1}}, args);
  expect_clean(r);
  for (const auto& w : written) EXPECT_EQ(std::count(w.begin(), w.end(), 1), s.elements);
  return s;
}

std::string case_text(const Sweep& s, size_t o, size_t e, Dtype d) {
  std::string t = std::string(row_of(s.ops.outputs[o].kind).text) + "(";
  for (int k = 0; k < s.ops.outputs[o].operands; ++k) {
    const std::complex<double> z = to_complex(d, s.operands[k][e]);
    t += (k ? ", " : "") + std::to_string(z.real()) + (is_complex(d) ? "+" + std::to_string(z.imag()) + "i" : "");
    char hex[40];
    std::snprintf(hex, sizeof hex, " [%a]", z.real());
    t += hex;
  }
  return t + ") of " + std::string(text(d));
}

void expect_near(const Sweep& s, size_t o, size_t e, Dtype operand_dtype, const FloatReference& reference) {
  const Dtype d = s.ops.outputs[o].dtype;
  ASSERT_GE(reference.ulps, 0) << "no reference for " << case_text(s, o, e, operand_dtype);
  const ConstantBits got = bits_at(s.results[o].data(), d, static_cast<int64_t>(e));
  const ConstantBits want = from_double(d, static_cast<double>(reference.value));
  if (is_nan_value(d, want) || is_nan_value(d, got)) {
    EXPECT_EQ(is_nan_value(d, want), is_nan_value(d, got))
        << case_text(s, o, e, operand_dtype) << " gives " << to_double(d, got);
    return;
  }
  const bool is_zero_pair = to_double(d, got) == 0 && to_double(d, want) == 0;
  const int64_t distance = std::abs(ordinal(d, got) - ordinal(d, want));
  // A result within b ulp of the exact value is at most ⌈b⌉ places from the rounded one. If it is computed in float and
  // rounded to a narrower dtype, it is at most 1 place off.
  const double allowed = reference.ulps == 0 ? 0 : is_reduced_float(d) ? 1 : std::ceil(reference.ulps);
  if (is_zero_pair || distance <= allowed) return;
  if (std::abs(to_double(d, got) - static_cast<double>(reference.value)) <= reference.absolute) return;
  ADD_FAILURE() << case_text(s, o, e, operand_dtype) << " gives " << to_double(d, got) << ", not " << to_double(d, want)
                << ", " << distance << " ulp off";
}

class HostMath : public ::testing::TestWithParam<Dtype> {};

template <class C>
void check_floats(const Sweep& s, Dtype d) {
  for (size_t o = 0; o < s.ops.outputs.size(); ++o) {
    const ScalarOutput& out = s.ops.outputs[o];
    for (size_t e = 0; e < s.truth.size() && !::testing::Test::HasFailure(); ++e) {
      C x[4];
      for (size_t k = 0; k < 4; ++k) x[k] = static_cast<C>(to_double(d, s.operands[k][e]));
      const ConstantBits got = bits_at(s.results[o].data(), out.dtype, static_cast<int64_t>(e));
      if (out.kind == OpKind::kWhere) {
        EXPECT_EQ(got, s.operands[s.truth[e] ? 0 : 1][e]) << case_text(s, o, e, d);
      } else if (out.dtype == Dtype::kBool) {
        EXPECT_EQ(to_bool(Dtype::kBool, got), truth_reference<C>(out.kind, x[0], x[1])) << case_text(s, o, e, d);
      } else if (is_complex(out.dtype)) {
        const ConstantBits want = {s.operands[0][e].low, s.operands[1][e].low};
        EXPECT_EQ(got, want) << case_text(s, o, e, d);
      } else {
        expect_near(s, o, e, d, float_reference<C>(out.kind, x[0], x[1], x[2], x[3]));
      }
    }
  }
}

void check_integers(const Sweep& s, Dtype d) {
  for (size_t o = 0; o < s.ops.outputs.size(); ++o) {
    const ScalarOutput& out = s.ops.outputs[o];
    for (size_t e = 0; e < s.truth.size() && !::testing::Test::HasFailure(); ++e) {
      Wide x[4];
      for (size_t k = 0; k < 4; ++k) x[k] = wide_of(d, s.operands[k][e]);
      const ConstantBits got = bits_at(s.results[o].data(), out.dtype, static_cast<int64_t>(e));
      if (out.kind == OpKind::kWhere) {
        EXPECT_EQ(got, s.operands[s.truth[e] ? 0 : 1][e]) << case_text(s, o, e, d);
      } else if (is_floating(out.dtype)) {
        float f[4];
        for (size_t k = 0; k < 4; ++k) f[k] = static_cast<float>(static_cast<long double>(x[k]));
        expect_near(s, o, e, d, float_reference<float>(out.kind, f[0], f[1], f[2], f[3]));
      } else if (out.dtype == Dtype::kBool && !is_boolean(d)) {
        EXPECT_EQ(to_bool(Dtype::kBool, got), truth_reference<Wide>(out.kind, x[0], x[1])) << case_text(s, o, e, d);
      } else if (is_boolean(d)) {
        const bool is_test = row_of(out.kind).text.starts_with("is") || row_of(out.kind).text.starts_with("logical") ||
                             out.kind == OpKind::kSignbit || (out.kind >= OpKind::kEq && out.kind <= OpKind::kGe);
        const bool want = is_test ? truth_reference<Wide>(out.kind, x[0], x[1])
                          : out.kind == OpKind::kBitwiseNot
                              ? x[0] == 0
                              : integer_reference(out.kind, x[0], x[1], x[2], x[3], 32, true) != 0;
        EXPECT_EQ(to_int64(out.dtype, got), want) << case_text(s, o, e, d);
      } else {
        const Wide want = integer_reference(out.kind, x[0], x[1], x[2], x[3], bits(d), is_signed(d));
        EXPECT_EQ(got, from_int64(out.dtype, static_cast<int64_t>(want))) << case_text(s, o, e, d);
      }
    }
  }
}

template <class T>
void check_complex(const Sweep& s, Dtype d) {
  for (size_t o = 0; o < s.ops.outputs.size(); ++o) {
    const ScalarOutput& out = s.ops.outputs[o];
    for (size_t e = 0; e < s.truth.size() && !::testing::Test::HasFailure(); ++e) {
      std::complex<T> x[4];
      for (size_t k = 0; k < 4; ++k) {
        const std::complex<double> z = to_complex(d, s.operands[k][e]);
        x[k] = {static_cast<T>(z.real()), static_cast<T>(z.imag())};
      }
      const auto mul = [](std::complex<T> a, std::complex<T> b) {
        return std::complex<T>(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
      };
      const ConstantBits got = bits_at(s.results[o].data(), out.dtype, static_cast<int64_t>(e));
      const bool any_nan = std::isnan(x[0].real()) || std::isnan(x[0].imag());
      const bool is_infinite = std::isinf(x[0].real()) || std::isinf(x[0].imag());
      const auto same = [&](std::complex<T> want) {
        const std::complex<double> z = to_complex(d, got);
        const auto part = [](double g, T w) { return std::isnan(w) ? std::isnan(g) : g == static_cast<double>(w); };
        EXPECT_TRUE(part(z.real(), want.real()) && part(z.imag(), want.imag()))
            << case_text(s, o, e, d) << " gives " << z;
      };
      // Normwise, if no intermediate result overflows.
      const auto close = [&](std::complex<T> a, std::complex<T> b) {
        const std::complex<long double> want = std::complex<long double>(a) / std::complex<long double>(b);
        const long double size = std::abs(want);
        if (!(size < std::numeric_limits<T>::max() && size > std::numeric_limits<T>::min() &&
              std::isfinite(std::abs(b)) && std::isfinite(std::abs(a))))
          return;
        const std::complex<double> z = to_complex(d, got);
        EXPECT_LE(std::abs(std::complex<long double>(z) - want), 8 * std::numeric_limits<T>::epsilon() * size)
            << case_text(s, o, e, d);
      };
      switch (out.kind) {
        case OpKind::kSet:
          EXPECT_EQ(got, s.operands[0][e]);
          break;
        case OpKind::kWhere:
          EXPECT_EQ(got, s.operands[s.truth[e] ? 0 : 1][e]);
          break;
        case OpKind::kReal:
          EXPECT_EQ(got.low, s.operands[0][e].low);
          break;
        case OpKind::kImag:
          EXPECT_EQ(got.low, s.operands[0][e].high);
          break;
        case OpKind::kAbs:
          expect_near(s, o, e, d, {hypotl(x[0].real(), x[0].imag()), 1, 0});
          break;
        case OpKind::kNeg:
          same(-x[0]);
          break;
        case OpKind::kAdd:
          same({x[0].real() + x[1].real(), x[0].imag() + x[1].imag()});
          break;
        case OpKind::kSub:
          same({x[0].real() - x[1].real(), x[0].imag() - x[1].imag()});
          break;
        case OpKind::kMul:
          same(mul(x[0], x[1]));
          break;
        case OpKind::kAddcmul: {
          const std::complex<T> product = mul(mul(x[3], x[1]), x[2]);
          same({x[0].real() + product.real(), x[0].imag() + product.imag()});
          break;
        }
        case OpKind::kDiv:
        case OpKind::kTruediv:
          close(x[0], x[1]);
          break;
        case OpKind::kReciprocal:
          close(std::complex<T>(1), x[0]);
          break;
        case OpKind::kEq:
        case OpKind::kNe:
          EXPECT_EQ(to_bool(Dtype::kBool, got), (x[0] == x[1]) == (out.kind == OpKind::kEq));
          break;
        case OpKind::kLogicalNot:
          EXPECT_EQ(to_bool(Dtype::kBool, got), x[0] == std::complex<T>(0));
          break;
        case OpKind::kLogicalAnd:
          EXPECT_EQ(to_bool(Dtype::kBool, got), x[0] != std::complex<T>(0) && x[1] != std::complex<T>(0));
          break;
        case OpKind::kLogicalOr:
          EXPECT_EQ(to_bool(Dtype::kBool, got), x[0] != std::complex<T>(0) || x[1] != std::complex<T>(0));
          break;
        case OpKind::kIsnan:
          EXPECT_EQ(to_bool(Dtype::kBool, got), any_nan);
          break;
        case OpKind::kIsinf:
          EXPECT_EQ(to_bool(Dtype::kBool, got), is_infinite);
          break;
        case OpKind::kIsfinite:
          EXPECT_EQ(to_bool(Dtype::kBool, got), !is_infinite && !any_nan);
          break;
        case OpKind::kIsreal:
          EXPECT_EQ(to_bool(Dtype::kBool, got), x[0].imag() == 0);
          break;
        default:  // any other: fails
          ADD_FAILURE() << "no reference for " << case_text(s, o, e, d);
      }
    }
  }
}

TEST_P(HostMath, EveryOpAtBoundaryValues) {
  const Dtype d = GetParam();
  const Sweep s = sweep(scalar_ops(d), d);
  EXPECT_GT(s.ops.outputs.size(), 10u);
  if (d == Dtype::kDouble)
    check_floats<double>(s, d);
  else if (is_floating(d))
    check_floats<float>(s, d);
  else if (d == Dtype::kComplexFloat)
    check_complex<float>(s, d);
  else if (d == Dtype::kComplexDouble)
    check_complex<double>(s, d);
  else
    check_integers(s, d);
}

TEST_P(HostMath, EveryCastAtBoundaryValues) {
  const Dtype d = GetParam();
  const Sweep s = sweep(scalar_casts(d), d);
  for (size_t o = 0; o < s.ops.outputs.size(); ++o)
    for (size_t e = 0; e < s.truth.size(); e += 3) {
      const Dtype to = s.ops.outputs[o].dtype;
      const ConstantBits got = bits_at(s.results[o].data(), to, static_cast<int64_t>(e));
      const ConstantBits want = convert(d, s.operands[0][e], to);
      const bool both_nan =
          (is_floating(to) || is_complex(to)) && std::isnan(to_double(to, got)) && std::isnan(to_double(to, want));
      if (!both_nan) {
        ASSERT_EQ(got, want) << case_text(s, o, e, d) << " to " << text(to);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, HostMath, ::testing::ValuesIn(arithmetic_dtypes()),
                         [](const auto& info) { return std::string(text(info.param)); });

// Data-only dtypes keep their bits; arithmetic on them is refused.
TEST(HostMathRefusals, StorageOnlyDtypes) {
  HostKernel k;
  const ValueId x = k.input<uint8_t>("x", {0x12, 0xff, 0x80, 7}, Dtype::kFloat8E8m0);
  const ValueId y = k.output<uint8_t>("y", 4, Dtype::kFloat8E8m0);
  const ValueId t = k.thread_x();
  k.store(y, t, k.op(OpKind::kSet, {k.load(x, t)}, Dtype::kFloat8E8m0));
  expect_clean(k.run({.block = {4, 1, 1}}));
  EXPECT_EQ(k.values<uint8_t>("y"), (std::vector<uint8_t>{0x12, 0xff, 0x80, 7}));
  for (const auto& [kind, to] :
       {std::pair{OpKind::kAdd, Dtype::kFloat8E8m0}, std::pair{OpKind::kCast, Dtype::kFloat}}) {
    HostKernel bad;
    const ValueId z = bad.input<uint8_t>("z", {1}, Dtype::kFloat8E8m0);
    const ValueId v = bad.load(z, bad.index(0));
    bad.op(kind, kind == OpKind::kCast ? std::vector<ValueId>{v} : std::vector<ValueId>{v, v}, to);
    try {
      bad.run({});
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::kUnsupportedDtype);
      EXPECT_FALSE(e.place.empty());
    }
  }
}

// As in ATen on a CPU, and in the CUDA text.
TEST(HostMath, ReluKeepsANegativeZero) {
  HostKernel k;
  const ValueId x = k.input<float>("x", {-0.0f, 0.0f, -1.0f, 2.0f});
  const ValueId y = k.output<float>("y", 4), z = k.output<uint16_t>("z", 4);
  const ValueId t = k.thread_x();
  const ValueId v = k.load(x, t), narrow = k.op(OpKind::kCast, {v}, Dtype::kBfloat16);
  k.store(y, t, k.op(OpKind::kRelu, {v}, Dtype::kFloat));
  k.store(z, t, k.op(OpKind::kRelu, {narrow}, Dtype::kBfloat16));
  expect_clean(k.run({.block = {4, 1, 1}}));
  std::vector<uint32_t> bits;
  for (const float f : k.values<float>("y")) bits.push_back(std::bit_cast<uint32_t>(f));
  EXPECT_EQ(bits, (std::vector<uint32_t>{0x80000000u, 0, 0, 0x40000000u}));
  EXPECT_EQ(k.values<uint16_t>("z"), (std::vector<uint16_t>{0x8000, 0, 0, 0x4000}));
}

}  // namespace
}  // namespace fusebox
