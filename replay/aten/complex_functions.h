// Elementary functions of complex numbers for the reference (FUSEBOX_COMPLEX_FUNCTION_OPS), in double. Values are the C
// library's. Errors are in modulus.
//
// Branch cuts are those of the C standard. Beside a cut a number that may lie on either side may have either value, so
// nothing is known of the result.
#pragma once

#include <complex>

#include "ir/table/op.h"

namespace fusebox::aten {

std::complex<double> complex_function(OpKind kind, const std::complex<double>& z);

// How far f(w) may be from f(z) for any w within b of z: b times the largest derivative between, or infinity if a pole or
// a cut may lie within b.
double complex_function_spread(OpKind kind, const std::complex<double>& z, double b);

// How far an implementation in double may be from y = f(z), before it rounds y to the dtype. Infinity where a part of a
// usual formula overflows although the result does not.
double complex_function_error(OpKind kind, const std::complex<double>& z, const std::complex<double>& y);

}  // namespace fusebox::aten
