// Elementary functions that codegen/runtime/exact_*.cuh lack: computed in double by SLEEF's deterministic functions (`cinz`),
// which give the same bits on every processor, and rounded once for float.
#include <cmath>
#include <sleef.h>

#include "ir/table/families.h"
#include "replay/host/elementary.h"
#include "replay/host/lane_loops.h"

namespace fusebox::host {
namespace {

template <class T, double (*F)(double)>
inline T by_double(T x) {
  return canonical(static_cast<T>(F(x)));
}
inline double lgamma(double x) { return Sleef_cinz_lgammad1_u10purec(x); }

template <class T>
LaneFunction find_in(OpKind kind) {
  switch (kind) {
    case OpKind::kLgamma:
      return unary_lanes<T, T, by_double<T, lgamma>>;
    case OpKind::kErfinv:
      return unary_lanes<T, T, by_double<T, elementary_erfinv>>;
    case OpKind::kErfcinv:
      return unary_lanes<T, T, by_double<T, elementary_erfcinv>>;
    case OpKind::kPow:
    case OpKind::kAcos:
    case OpKind::kAcosh:
    case OpKind::kAsin:
    case OpKind::kAsinh:
    case OpKind::kAtan:
    case OpKind::kAtan2:
    case OpKind::kAtanh:
    case OpKind::kCos:
    case OpKind::kCosh:
    case OpKind::kErf:
    case OpKind::kErfc:
    case OpKind::kExp:
    case OpKind::kExp2:
    case OpKind::kExpm1:
    case OpKind::kLog:
    case OpKind::kLog10:
    case OpKind::kLog1p:
    case OpKind::kLog2:
    case OpKind::kSigmoid:
    case OpKind::kSilu:
    case OpKind::kSin:
    case OpKind::kSinh:
    case OpKind::kTan:
    case OpKind::kTanh:
    case FUSEBOX_COPY_OPS:
    case OpKind::kCast:
    case OpKind::kWhere:
    case FUSEBOX_ARITHMETIC_OPS:
    case FUSEBOX_FRACTION_OPS:
    case FUSEBOX_ROUNDING_OPS:
    case FUSEBOX_WHOLE_OPS:
    case FUSEBOX_SHIFT_OPS:
    case FUSEBOX_BITWISE_OPS:
    case FUSEBOX_COMPARISON_OPS:
    case FUSEBOX_LOGICAL_OPS:
    case FUSEBOX_TEST_OPS:
    case FUSEBOX_PART_OPS:
    case FUSEBOX_NON_SCALAR_OPS:
      break;
  }
  return nullptr;
}

}  // namespace

LaneFunction find_elementary_math(OpKind kind, Dtype compute) {
  if (const LaneFunction f = find_exact_math(kind, compute)) return f;
  if (compute == Dtype::kFloat) return find_in<float>(kind);
  if (compute == Dtype::kDouble) return find_in<double>(kind);
  return nullptr;
}

}  // namespace fusebox::host
