// The reference's elementary functions of complex numbers: their values against long double, and their bounds against
// numbers beside the operand.
#include <array>
#include <cmath>
#include <complex>
#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/scalar/numeric.h"
#include "ir/table/type_rule.h"
#include "ir/text/parse.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/compare.h"

namespace fusebox {
namespace {

Argument drawn(Dtype d, int64_t count, const std::string& generator) {
  return make_argument(parse_input_spec("x", std::string(text(d)) + "[" + std::to_string(count) + "] " + generator));
}

Evaluated evaluated(OpKind kind, const TensorData& x) {
  Graph g = fusion("f");
  output(g, unary(g, kind, input(g, "x", x.dtype, {size(g, "n")}), "y"));
  const std::array<Argument, 1> given = {Argument::of(x)};
  return find_aten()->evaluate(g, given).outputs.at(0);
}

// The functions of complex numbers, at z and beside it. The error of each value is the difference to long double.
TEST(ComplexFunctions, AgreeWithLongDouble) {
  if (find_aten() == nullptr) GTEST_SKIP() << "PyTorch is not there";
  using Long = std::complex<long double>;
  const std::vector<std::pair<OpKind, Long (*)(const Long&)>> functions = {
      {OpKind::kAcos, [](const Long& z) { return std::acos(z); }},
      {OpKind::kAcosh, [](const Long& z) { return std::acosh(z); }},
      {OpKind::kAsin, [](const Long& z) { return std::asin(z); }},
      {OpKind::kAsinh, [](const Long& z) { return std::asinh(z); }},
      {OpKind::kAtan, [](const Long& z) { return std::atan(z); }},
      {OpKind::kAtanh, [](const Long& z) { return std::atanh(z); }},
      {OpKind::kCos, [](const Long& z) { return std::cos(z); }},
      {OpKind::kCosh, [](const Long& z) { return std::cosh(z); }},
      {OpKind::kExp, [](const Long& z) { return std::exp(z); }},
      {OpKind::kLog, [](const Long& z) { return std::log(z); }},
      {OpKind::kRsqrt, [](const Long& z) { return Long(1) / std::sqrt(z); }},
      {OpKind::kSigmoid, [](const Long& z) { return Long(1) / (Long(1) + std::exp(-z)); }},
      {OpKind::kSin, [](const Long& z) { return std::sin(z); }},
      {OpKind::kSinh, [](const Long& z) { return std::sinh(z); }},
      {OpKind::kSqrt, [](const Long& z) { return std::sqrt(z); }},
      {OpKind::kTan, [](const Long& z) { return std::tan(z); }},
      {OpKind::kTanh, [](const Long& z) { return std::tanh(z); }},
  };
  for (const auto& [kind, f] : functions)
    for (const Dtype d : {Dtype::kComplexFloat, Dtype::kComplexDouble}) {
      const TensorData x = drawn(d, 400, "normal 0.0 2.0 seed 7").tensor;
      const Evaluated e = evaluated(kind, x);
      const Dtype part = real_of(d);
      ASSERT_FALSE(e.is_exact());
      TensorData right = allocate_tensor(d, {400}), wrong = allocate_tensor(d, {400});
      int64_t free = 0;
      for (int64_t i = 0; i < 400; ++i) {
        const auto z = to_complex(d, load_element(x, i));
        const Long y = f(Long(z.real(), z.imag()));
        const std::complex<double> near(static_cast<double>(y.real()), static_cast<double>(y.imag()));
        const double b = to_double(Dtype::kDouble, load_element(e.bound, i));
        const double ulp = std::abs(near) * (part == Dtype::kFloat ? 0x1p-23 : 0x1p-52);
        free += b == INFINITY;
        // Beside a pole of tan, and beside the zero of log, formulas in double lose digits.
        const double lost = 0x1p-48 * (1 + std::norm(near)) * (1 + std::abs(near));
        EXPECT_LE(b, 40 * ulp + lost) << row_of(kind).text << " " << text(d) << " of " << z.real() << " " << z.imag();
        store_element(right, i, from_complex(d, near));
        store_element(wrong, i, from_complex(d, near * (1 + (part == Dtype::kFloat ? 0x1p-15 : 0x1p-40))));
      }
      EXPECT_EQ(free, 0) << row_of(kind).text;
      const Comparison good = compare(right, e);
      EXPECT_TRUE(good.ok) << row_of(kind).text << " " << text(d) << ": " << good.message("y");
      EXPECT_GE(compare(wrong, e).failed, 390) << row_of(kind).text << " " << text(d);
    }
}

// If an operand is off, the result's bound covers the function's values at every number nearby.
TEST(ComplexFunctions, BoundWhatAnOperandBesideGives) {
  if (find_aten() == nullptr) GTEST_SKIP() << "PyTorch is not there";
  for (const OpRow& row : op_rows()) {
    if (!is_library(row.kind, Dtype::kComplexDouble) || demands(row.kind, kLibrary)) continue;
    // %z = %x · %y is off by a rounding of c64; its function is taken in c64.
    Graph g = fusion("f");
    const ValueId n = size(g, "n"), x = input(g, "x", Dtype::kComplexFloat, {n}),
                  y = input(g, "y", Dtype::kComplexFloat, {n});
    output(g, unary(g, row.kind, mul(g, x, y), "z"));
    const std::array<Argument, 2> arguments = {drawn(Dtype::kComplexFloat, 300, "normal 0.0 1.5 seed 3"),
                                               drawn(Dtype::kComplexFloat, 300, "normal 0.0 1.5 seed 4")};
    const Evaluated e = find_aten()->evaluate(g, arguments).outputs[0];
    int64_t free = 0;
    for (int64_t i = 0; i < 300; ++i) {
      const auto a = to_complex(Dtype::kComplexFloat, load_element(arguments[0].tensor, i)),
                 b = to_complex(Dtype::kComplexFloat, load_element(arguments[1].tensor, i));
      const std::complex<double> product = a * b;
      const double bound = to_double(Dtype::kDouble, load_element(e.bound, i));
      free += bound == INFINITY;
      if (bound == INFINITY) continue;
      const auto middle = to_complex(Dtype::kComplexDouble, load_element(e.reference, i));
      for (int k = 0; k < 8; ++k) {
        const std::complex<double> beside = product + std::polar(std::abs(product) * 0x1p-24, 0.7853981633974483 * k);
        TensorData one = allocate_tensor(Dtype::kComplexDouble, {1});
        store_element(one, 0, from_complex(Dtype::kComplexDouble, beside));
        const Evaluated near = evaluated(row.kind, one);
        const auto value = to_complex(Dtype::kComplexDouble, load_element(near.reference, 0));
        EXPECT_LE(std::abs(value - middle), bound) << row.text << " of " << product.real() << " " << product.imag();
      }
    }
    EXPECT_LE(free, 15) << row.text;
  }
}

}  // namespace
}  // namespace fusebox
