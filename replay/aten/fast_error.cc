// The error of ops that a GPU computes by approximations of its hardware.
#include <array>
#include <cmath>

#include "replay/aten/image.h"

namespace fusebox::aten {
namespace {

struct Fast {
  double ulps = 0, ulps_by_operand = 0, absolute = 0, from = 0, to = 0;
  bool known = false;
};
constexpr std::array<Fast, kOpKinds> kFast = [] {
  std::array<Fast, kOpKinds> rows{};
#define FUSEBOX_FAST(op, ulps, ulps_by_operand, absolute, from, to, source) \
  rows[static_cast<size_t>(OpKind::op)] = {ulps, ulps_by_operand, absolute, from, to, true};
#include "replay/aten/fast_table.inc"
#undef FUSEBOX_FAST
  return rows;
}();

constexpr double kLeastNormal = 0x1p-126;
constexpr double kMostDivisor = 0x1p126;

double reach(const Operand& x) { return std::max(std::abs(x.lo), std::abs(x.hi)); }
// The least magnitude of the operand, without 0 itself.
double least(const Operand& x) {
  if (x.exact()) return x.v == 0 ? kLeastNormal : std::abs(x.v);
  return x.contains(0) ? 0 : std::min(std::abs(x.lo), std::abs(x.hi));
}
bool is_angle(OpKind kind) { return kind == OpKind::kSin || kind == OpKind::kCos; }
bool is_quotient(OpKind kind) { return kind == OpKind::kDiv || kind == OpKind::kTruediv; }
// Whether an operand that counts as 0 changes the result by more than a few subnormal numbers.
bool is_steep_at_zero(OpKind kind) {
  return kind == OpKind::kReciprocal || kind == OpKind::kRsqrt || kind == OpKind::kSqrt || kind == OpKind::kLog ||
         kind == OpKind::kLog2 || kind == OpKind::kLog10;
}

}  // namespace

bool has_fast_error(OpKind kind, Dtype compute) {
  return compute == Dtype::kFloat && kFast[static_cast<size_t>(kind)].known;
}

double fast_error(OpKind kind, double y, const Image& image, std::span<const Operand> o) {
  const Fast& row = kFast[static_cast<size_t>(kind)];
  const Operand& steep = is_quotient(kind) ? o[1] : o[0];
  const double x = reach(o[0]);
  if (is_quotient(kind) || is_steep_at_zero(kind))
    if (least(steep) < kLeastNormal) return kInfinity;
  // The reciprocal of so large a divisor is subnormal.
  if ((is_quotient(kind) || kind == OpKind::kReciprocal) && reach(steep) > kMostDivisor && std::isfinite(steep.v))
    return kind == OpKind::kReciprocal ? kLeastNormal : kInfinity;
  if (kind == OpKind::kSilu && !std::isfinite(x)) return kInfinity;
  if (is_angle(kind) && std::isfinite(x) && x > row.to) {
    // PTX gives 2^-14.7 up to 100 pi and nothing beyond. The result never leaves [-1, 1].
    return x < 314 ? 0x1p-14 : 2;
  }
  const double most = std::max({std::abs(y), std::abs(image.lo), std::abs(image.hi)});
  if (!(most < kInfinity)) return 0;
  double error = (row.ulps + row.ulps_by_operand * (std::isfinite(x) ? x : 0)) * ulp_of(Dtype::kFloat, most);
  if (row.absolute > 0 && x >= row.from && least(o[0]) <= row.to) error = std::max(error, row.absolute);
  // Subnormal results may be 0. The sigmoid inside a silu is then multiplied by the operand.
  return error + kLeastNormal * (kind == OpKind::kSilu ? 1 + x : 1);
}

}  // namespace fusebox::aten
