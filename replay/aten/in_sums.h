// Values as operands of ops that combine elements: sums, products, matrix products, scans, moments, attention
// (reduction.cc, scan.cc, library.cc, attention.cc).
//
// There a bound is not enough once it reaches infinity. An infinity makes NaN with another one and with a zero, and a
// factor does not make it smaller. So an element is free, that is, its bound is infinite, if its interval holds both
// numbers and an infinity: if |value| + bound reaches the overflow of the dtype.
//
//   f16: -21824 within 87360, where an infinity may stand  ->  within infinity
//   f16: -21824 within 40000                               ->  as it was
#pragma once

#include "replay/aten/evaluator.h"

namespace fusebox::aten {

Carried in_sums(Carried c);
// The largest magnitude that each element may have.
at::Tensor most_of(const Carried& x);
// Logarithms to base 2, 0 for a 0 and for NaN.
at::Tensor logarithms_of(const at::Tensor& sizes);
// Rows added to rows at places, on a CPU. ATen multiplies what it adds to a row of one number by 1. As a complex number
// that makes NaN of infinity, so parts are added alone.
at::Tensor added_rows(const at::Tensor& to, const at::Tensor& places, const at::Tensor& rows);

}  // namespace fusebox::aten
