// Tells which ops give the same bits on the host executor and on every GPU (*exact*). The others are *bounded*: each executor
// is within the op's bound (replay/aten/bounds_table.inc), and their bits may differ.
//
//   gives_same_bits(OpKind::kExp)  ->  true: both compute runtime/exact_exponential_*.cuh
//   gives_same_bits(OpKind::kLgamma)  ->  false: CUDA's library there, another one here
#pragma once

#include "ir/table/op.h"

namespace fusebox {

// The version of the numerics of exact ops. It grows when any exact op may give other bits than before; then outputs that
// were recorded with another version are compared within bounds. It is among the compile options, so that bundles and
// keys of binaries have it.
inline constexpr int kNumericsVersion = 4;

// Whether a scalar op of real numbers is exact. A NaN is any NaN. Ops of complex numbers are bounded, except for copies.
bool gives_same_bits(OpKind kind);
// The same for an op with these attributes: a GPU computes a `fast` op by an approximation, and the host executor as if it
// were exact.
bool gives_same_bits(OpKind kind, const Attrs& attrs);

}  // namespace fusebox
