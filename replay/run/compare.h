// Compares a result with the reference (aten_api.h). They agree if every element lies within its bound.
//
// Rules: NaN agrees with NaN, and an infinity with the same infinity. An infinity and a finite number agree if the
// bound reaches the overflow of the dtype. Signs of zeros do not count. A complex number is judged by the modulus of
// the difference.
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
  int64_t differing = 0;      // elements with another value than the reference, within their bound or not
  int64_t unconstrained = 0;  // elements whose bound is infinite
  int64_t ambiguous = 0;      // bool and integer elements that may have several values
  // At the first element whose error takes the largest part of its bound.
  double max_error = 0;
  double bound = 0;
  std::vector<int64_t> worst;  // its index
  std::string actual, expected;

  // `%y[3, 4] is 1.5, expected 1.25 within 1e-06 (2 of 200 elements differ by more than their bounds)`
  std::string message(const std::string& name) const;
};

// Throws kShapeMismatch or kDtypeMismatch if shape or dtype differ. With 0 threads, large tensors are compared by as
// many threads as there are processors.
Comparison compare(const TensorData& actual, const Evaluated& expected, int threads = 0);

// The reference as a result, in the declared dtype and the reference's layout.
TensorData result_of(const Evaluated& e);

}  // namespace fusebox
