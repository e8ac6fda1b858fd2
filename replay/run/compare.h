// Whether a result agrees with the reference (aten_api.h): every element within its bound.
//
// Rules: NaN agrees with NaN, an infinity with the same infinity; an infinity also with a finite number whose bound
// reaches the overflow of the dtype, and the other way round; signs of zeros do not count; a complex number is judged
// by the modulus of the difference.
//
//   Comparison c = compare(y, evaluation.outputs[0]);
//   if (!c.ok) … "largest error " + std::to_string(c.max_error) + " against " + std::to_string(c.bound)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/device/aten_api.h"

namespace fusebox {

struct Comparison {
  bool ok = true;
  int64_t count = 0;  // elements
  int64_t failed = 0;
  int64_t differing = 0;      // elements that are not the reference's, within their bound or not
  int64_t unconstrained = 0;  // elements whose bound is infinite
  int64_t ambiguous = 0;      // bool and integer elements that may have several values
  // At the element where the error takes the largest part of its bound; the first such.
  double max_error = 0;
  double bound = 0;
  std::vector<int64_t> worst;  // its index
  std::string actual, expected;

  // `%y[3, 4] is 1.5, expected 1.25 within 1e-06 (2 of 200 elements differ by more than their bounds)`
  std::string message(const std::string& name) const;
};

// Throws kShapeMismatch or kDtypeMismatch when they are not of one shape and dtype. `threads` 0: as many as there are
// processors, for large tensors.
Comparison compare(const TensorData& actual, const Evaluated& expected, int threads = 0);

// The reference as a result: of the declared dtype, in the reference's layout.
TensorData result_of(const Evaluated& e);

}  // namespace fusebox
