#include "fuzz/generate/argument_ranges.h"

#include "ir/table/type_rule.h"

namespace fusebox::fuzz {
namespace {

struct Row {
  OpKind kind;
  double low, high;
};

constexpr double kHalfPi = 1.5707963267948966;

constexpr Row kRows[] = {
    // Inverse error functions: the series near 0, Newton steps, the tails, and the tail that needs logarithms.
    {OpKind::kErfinv, -2e-9, 2e-9},
    {OpKind::kErfinv, 0.05, 0.15},
    {OpKind::kErfinv, -0.55, -0.45},
    {OpKind::kErfinv, 0.999, 1},
    {OpKind::kErfinv, -1, -1 + 1e-12},
    {OpKind::kErfinv, 1 - 1e-15, 1},
    {OpKind::kErfcinv, 0, 1e-305},
    {OpKind::kErfcinv, 1e-230, 1e-200},
    {OpKind::kErfcinv, 0, 3e-200},
    {OpKind::kErfcinv, 0, 1e-36},
    {OpKind::kErfcinv, 1e-20, 1e-6},
    {OpKind::kErfcinv, 0.49, 0.51},
    {OpKind::kErfcinv, 1 - 1e-9, 1 + 1e-9},
    {OpKind::kErfcinv, 1.49, 1.51},
    {OpKind::kErfcinv, 2 - 1e-12, 2},
    {OpKind::kErf, -1e-8, 1e-8},
    {OpKind::kErf, 2, 6},
    {OpKind::kErfc, -7, -2},
    {OpKind::kErfc, 8, 14},
    {OpKind::kErfc, 24, 28},
    // Logarithms: near 1, near 0, subnormal and large arguments.
    {OpKind::kLog, 0.999, 1.001},
    {OpKind::kLog, 0, 1e-40},
    {OpKind::kLog2, 0.999, 1.001},
    {OpKind::kLog2, 0, 1e-310},
    {OpKind::kLog10, 0.999, 1.001},
    {OpKind::kLog10, 1e30, 3e38},
    {OpKind::kLog1p, -1e-8, 1e-8},
    {OpKind::kLog1p, -1, -0.999},
    {OpKind::kLog1p, 1e299, 1e301},
    {OpKind::kLgamma, 0.9, 1.1},
    {OpKind::kLgamma, 1.9, 2.1},
    {OpKind::kLgamma, -1e-9, 1e-9},
    {OpKind::kLgamma, -6.5, 0},
    {OpKind::kLgamma, 1e30, 3e38},
    // Exponentials: near 0, and where results overflow or become subnormal.
    {OpKind::kExp, -1e-8, 1e-8},
    {OpKind::kExp, 87, 90},
    {OpKind::kExp, 705, 712},
    {OpKind::kExp, -105, -86},
    {OpKind::kExp, -747, -706},
    {OpKind::kExp2, 126, 130},
    {OpKind::kExp2, -152, -124},
    {OpKind::kExp2, -1080, -1020},
    {OpKind::kExpm1, -1e-8, 1e-8},
    {OpKind::kExpm1, -40, -10},
    {OpKind::kExpm1, 85, 90},
    {OpKind::kSigmoid, -110, -80},
    {OpKind::kSigmoid, -750, -690},
    {OpKind::kSigmoid, 10, 40},
    {OpKind::kSilu, -110, -75},
    {OpKind::kSilu, -750, -690},
    {OpKind::kSinh, -1e-8, 1e-8},
    {OpKind::kSinh, 86, 91},
    {OpKind::kSinh, -712, -698},
    {OpKind::kCosh, 86, 91},
    {OpKind::kCosh, 698, 712},
    {OpKind::kTanh, -1e-8, 1e-8},
    {OpKind::kTanh, 8, 25},
    // Angles: near 0, near the poles, and large ones.
    {OpKind::kSin, -1e-8, 1e-8},
    {OpKind::kSin, 1e5, 1e7},
    {OpKind::kSin, 1e20, 1e30},
    {OpKind::kCos, 1.57, 1.5716},
    {OpKind::kCos, 1e5, 1e7},
    {OpKind::kCos, -1e30, -1e20},
    {OpKind::kTan, kHalfPi - 1e-6, kHalfPi + 1e-6},
    {OpKind::kTan, 4.7, 4.72},
    {OpKind::kTan, 1e5, 1e7},
    {OpKind::kTan, 1e20, 1e30},
    {OpKind::kAsin, 0.999, 1},
    {OpKind::kAsin, -1e-8, 1e-8},
    {OpKind::kAcos, 0.999, 1},
    {OpKind::kAcos, -1, -0.999},
    {OpKind::kAtan, -1e-8, 1e-8},
    {OpKind::kAtan, 1e6, 1e20},
    {OpKind::kAsinh, -2e-8, 2e-8},
    {OpKind::kAsinh, 1e8, 1e30},
    {OpKind::kAsinh, 1e149, 1e151},
    {OpKind::kAcosh, 1, 1.0001},
    {OpKind::kAcosh, 1e149, 1e151},
    {OpKind::kAtanh, -1e-8, 1e-8},
    {OpKind::kAtanh, 0.9999, 1},
    // Arguments for which the first term of a series no longer suffices.
    {OpKind::kErfinv, 1e-10, 1e-2},
    {OpKind::kErf, 1e-4, 1e-2},
    {OpKind::kLog1p, 1e-4, 1e-2},
    {OpKind::kExpm1, -1e-2, -1e-4},
    {OpKind::kSinh, 1e-4, 1e-2},
    {OpKind::kTanh, 1e-4, 1e-2},
    {OpKind::kAsinh, 1e-4, 1e-2},
    {OpKind::kAtanh, -1e-2, -1e-4},
    {OpKind::kTan, 1e-4, 1e-2},
    // Roots of subnormal and of large numbers.
    {OpKind::kSqrt, 0, 1e-310},
    {OpKind::kSqrt, 0, 1e-40},
    {OpKind::kRsqrt, 0, 1e-40},
    {OpKind::kRsqrt, 1e30, 3e38},
    {OpKind::kReciprocal, 0, 1e-38},
    {OpKind::kReciprocal, 1e37, 3e38},
    // Ties of rounding, and numbers too large for a fraction.
    {OpKind::kRound, -4.5, 4.5},
    {OpKind::kRound, 4194303, 8388609},
    {OpKind::kTrunc, -1.5, 1.5},
    {OpKind::kFrac, 4194303, 8388609},
};

constexpr OpKind kPairs[] = {OpKind::kPow, OpKind::kAtan2,     OpKind::kFmod,    OpKind::kRemainder, OpKind::kNextafter,
                             OpKind::kDiv, OpKind::kTruediv,   OpKind::kMul,     OpKind::kAdd,       OpKind::kSub,
                             OpKind::kMod, OpKind::kMinimum,   OpKind::kMaximum, OpKind::kEq,        OpKind::kNe,
                             OpKind::kLt,  OpKind::kLogicalAnd};

}  // namespace

const std::vector<ArgumentRange>& argument_ranges() {
  static const std::vector<ArgumentRange> list = [] {
    std::vector<ArgumentRange> all;
    for (const Dtype dtype : {Dtype::kDouble, Dtype::kFloat}) {
      for (const Row& r : kRows) {
        // A float would round all numbers of such a range to 0 or infinity.
        const bool is_lost = dtype == Dtype::kFloat && (r.low > 3.5e38 || (r.high < 1e-44 && r.low >= 0));
        if (!is_lost) all.push_back({r.kind, dtype, r.low, r.high});
      }
      for (OpKind kind : kPairs)
        if (accepts_dtype(kind, dtype)) all.push_back({.kind = kind, .dtype = dtype, .is_pair = true});
    }
    // Pow has more branches than any other function.
    for (const Dtype dtype : {Dtype::kDouble, Dtype::kFloat, Dtype::kHalf, Dtype::kBfloat16})
      for (int i = 0; i < 4; ++i) all.push_back({.kind = OpKind::kPow, .dtype = dtype, .is_pair = true});
    return all;
  }();
  return list;
}

}  // namespace fusebox::fuzz
