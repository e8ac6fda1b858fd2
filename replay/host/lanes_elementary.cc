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
    case FUSEBOX_EXACT_UNARY_OPS:
    case OpKind::kAtan2:
    case FUSEBOX_PLAIN_OPS:
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
