// Elementary functions of codegen/runtime/exact_*.cuh, which give a GPU's bits. Their text is compiled twice, with and
// without instructions for fused multiply-add: without them a library computes each `fma`, slowly and as exactly.
#include <cmath>

#include "codegen/runtime/exact_error_double.cuh"
#include "codegen/runtime/exact_error_float.cuh"
#include "codegen/runtime/exact_exponential_double.cuh"
#include "codegen/runtime/exact_exponential_float.cuh"
#include "codegen/runtime/exact_inverse_double.cuh"
#include "codegen/runtime/exact_inverse_float.cuh"
#include "codegen/runtime/exact_logarithm_double.cuh"
#include "codegen/runtime/exact_logarithm_float.cuh"
#include "codegen/runtime/exact_power_double.cuh"
#include "codegen/runtime/exact_power_float.cuh"
#include "codegen/runtime/exact_trigonometry_double.cuh"
#include "codegen/runtime/exact_trigonometry_float.cuh"
#include "ir/table/families.h"
#include "replay/host/lane_loops.h"

namespace fusebox::host {
namespace {

#define FUSEBOX_UNARY(name)          \
  struct name {                      \
    template <class T>               \
    static FUSEBOX_EXACT T of(T x) { \
      return ::exact::name(x);       \
    }                                \
  }
FUSEBOX_UNARY(acos);
FUSEBOX_UNARY(acosh);
FUSEBOX_UNARY(asin);
FUSEBOX_UNARY(asinh);
FUSEBOX_UNARY(atan);
FUSEBOX_UNARY(atanh);
FUSEBOX_UNARY(cosh);
FUSEBOX_UNARY(erf);
FUSEBOX_UNARY(erfc);
FUSEBOX_UNARY(exp);
FUSEBOX_UNARY(exp2);
FUSEBOX_UNARY(expm1);
FUSEBOX_UNARY(log);
FUSEBOX_UNARY(log10);
FUSEBOX_UNARY(log1p);
FUSEBOX_UNARY(log2);
FUSEBOX_UNARY(sigmoid);
FUSEBOX_UNARY(silu);
FUSEBOX_UNARY(sinh);
FUSEBOX_UNARY(tanh);
#undef FUSEBOX_UNARY

// Functions of an angle: `near` is right up to `limit` and takes no branch.
#define FUSEBOX_ANGLE(name)            \
  struct name {                        \
    template <class T>                 \
    static FUSEBOX_EXACT T near(T x) { \
      return ::exact::near_##name(x);  \
    }                                  \
    template <class T>                 \
    static FUSEBOX_EXACT T of(T x) {   \
      return ::exact::name(x);         \
    }                                  \
  }
FUSEBOX_ANGLE(cos);
FUSEBOX_ANGLE(sin);
FUSEBOX_ANGLE(tan);
#undef FUSEBOX_ANGLE

#define FUSEBOX_BINARY(name)              \
  struct name {                           \
    template <class T>                    \
    static FUSEBOX_EXACT T of(T x, T y) { \
      return ::exact::name(x, y);         \
    }                                     \
  }
FUSEBOX_BINARY(atan2);
FUSEBOX_BINARY(pow);
#undef FUSEBOX_BINARY

template <class T, class F>
FUSEBOX_EXACT void unary(LaneCall& c) {
  T* __restrict to = static_cast<T*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  for (int32_t l = c.begin; l < c.end; ++l) to[l] = F::of(a[l]);
}
// The few operands that are far from zero take a second loop, so that the first has no branch.
template <class T, class F>
FUSEBOX_EXACT void angles(LaneCall& c) {
  T* __restrict to = static_cast<T*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  int any_far = 0;
  for (int32_t l = c.begin; l < c.end; ++l) {
    to[l] = F::near(a[l]);
    any_far |= ::exact::is_far_angle(a[l]);
  }
  if (any_far == 0) return;
  for (int32_t l = c.begin; l < c.end; ++l)
    if (::exact::is_far_angle(a[l])) to[l] = F::of(a[l]);
}
template <class T, class F>
FUSEBOX_EXACT void binary(LaneCall& c) {
  T* __restrict to = static_cast<T*>(c.to);
  const T* __restrict a = static_cast<const T*>(c.from[0]);
  const T* __restrict b = static_cast<const T*>(c.from[1]);
  if (c.stride[0] != 0 && c.stride[1] != 0) {
    for (int32_t l = c.begin; l < c.end; ++l) to[l] = F::of(a[l], b[l]);
  } else if (c.stride[0] != 0) {
    const T y = b[0];
    for (int32_t l = c.begin; l < c.end; ++l) to[l] = F::of(a[l], y);
  } else {
    const T x = a[0];
    for (int32_t l = c.begin; l < c.end; ++l) to[l] = F::of(x, b[l * c.stride[1]]);
  }
}

// One loop as two functions for two kinds of processors.
template <void loop(LaneCall&)>
void plain(LaneCall& c) {
  loop(c);
}
#if defined(__x86_64__)
template <void loop(LaneCall&)>
__attribute__((target("avx2,fma"))) void fused(LaneCall& c) {
  loop(c);
}
template <void loop(LaneCall&)>
LaneFunction choose(bool may_fuse) {
  return may_fuse ? fused<loop> : plain<loop>;
}
bool has_fused() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
#else
template <void loop(LaneCall&)>
LaneFunction choose(bool) {
  return plain<loop>;
}
bool has_fused() { return false; }
#endif

template <class T>
LaneFunction find_in(OpKind kind, bool may_fuse) {
  switch (kind) {
    case OpKind::kAcos:
      return choose<unary<T, acos>>(may_fuse);
    case OpKind::kAcosh:
      return choose<unary<T, acosh>>(may_fuse);
    case OpKind::kAsin:
      return choose<unary<T, asin>>(may_fuse);
    case OpKind::kAsinh:
      return choose<unary<T, asinh>>(may_fuse);
    case OpKind::kAtan:
      return choose<unary<T, atan>>(may_fuse);
    case OpKind::kAtan2:
      return choose<binary<T, atan2>>(may_fuse);
    case OpKind::kAtanh:
      return choose<unary<T, atanh>>(may_fuse);
    case OpKind::kCos:
      return choose<angles<T, cos>>(may_fuse);
    case OpKind::kCosh:
      return choose<unary<T, cosh>>(may_fuse);
    case OpKind::kErf:
      return choose<unary<T, erf>>(may_fuse);
    case OpKind::kErfc:
      return choose<unary<T, erfc>>(may_fuse);
    case OpKind::kExp:
      return choose<unary<T, exp>>(may_fuse);
    case OpKind::kExp2:
      return choose<unary<T, exp2>>(may_fuse);
    case OpKind::kExpm1:
      return choose<unary<T, expm1>>(may_fuse);
    case OpKind::kLog:
      return choose<unary<T, log>>(may_fuse);
    case OpKind::kLog10:
      return choose<unary<T, log10>>(may_fuse);
    case OpKind::kLog1p:
      return choose<unary<T, log1p>>(may_fuse);
    case OpKind::kLog2:
      return choose<unary<T, log2>>(may_fuse);
    case OpKind::kPow:
      return choose<binary<T, pow>>(may_fuse);
    case OpKind::kSigmoid:
      return choose<unary<T, sigmoid>>(may_fuse);
    case OpKind::kSilu:
      return choose<unary<T, silu>>(may_fuse);
    case OpKind::kSin:
      return choose<angles<T, sin>>(may_fuse);
    case OpKind::kSinh:
      return choose<unary<T, sinh>>(may_fuse);
    case OpKind::kTan:
      return choose<angles<T, tan>>(may_fuse);
    case OpKind::kTanh:
      return choose<unary<T, tanh>>(may_fuse);
    case FUSEBOX_BOUNDED_UNARY_OPS:
    case FUSEBOX_PLAIN_OPS:
      break;  // the caller looks further
  }
  return nullptr;
}

}  // namespace

LaneFunction find_exact_math(OpKind kind, Dtype compute, ExactLanes lanes) {
  const bool may_fuse = lanes == ExactLanes::kFastest && has_fused();
  if (compute == Dtype::kFloat) return find_in<float>(kind, may_fuse);
  if (compute == Dtype::kDouble) return find_in<double>(kind, may_fuse);
  return nullptr;
}

}  // namespace fusebox::host
