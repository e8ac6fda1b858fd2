// Element loops over strided memory: what each op does to values and bounds. These files use no ATen. pointwise.cc runs
// the loops through ATen's TensorIterator, which gives one pointer and one stride in bytes for each tensor.
//
// Tensors are carried as double (floats), complex double, or int64 (bool and integers; u64 as its bits); bounds are
// double.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/table/dtype.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "ir/table/op.h"
#include "replay/aten/image.h"

namespace fusebox::aten {

// Ends a switch: a loop without a row for an op must not take another op's row.
[[noreturn]] inline void no_loop(OpKind kind, const char* what) {
  throw Error(ErrorCode::kInternal,
              "no loop of the reference gives " + std::string(what) + " for " + std::string(row_of(kind).text));
}

struct LoopOperand {
  Dtype dtype = Dtype::kFloat;
  bool zero_sign = true;  // the sign of a zero is known
};

struct Loop {
  OpKind kind;
  Dtype compute;   // computation dtype
  Dtype declared;  // of the result
  std::vector<LoopOperand> operands;
  std::atomic<int64_t>* ambiguous;
  bool is_fast = false;  // a GPU may approximate the op
  bool by_cuda = false;  // a function of CUDA's library may compute it
  // Set where a zero is certain, but not its sign: a product of 0 and an operand that may have either sign.
  std::atomic<bool>* unsure_zero = nullptr;

  bool has_error() const { return has_own_error(kind) || (is_fast && has_fast_error(kind, compute)); }
};

// Whether a result is rounded to the computation dtype first and then to its own.
inline bool rounds_twice(const Loop& loop) {
  return is_floating(loop.compute) && loop.compute != loop.declared && !loop.has_error() && loop.kind != OpKind::kCast;
}

// Strided memory: one row of `n` elements.
struct Row {
  char* const* data;
  const int64_t* strides;
  int64_t n;

  template <class T>
  T& at(int tensor, int64_t i) const {
    return *reinterpret_cast<T*>(data[tensor] + i * strides[tensor]);
  }
};

// In each loop the result's tensors come first (value, bound), then value and bound of each operand.

// On entry the value tensor holds the op's value in double; the loop rounds it in place.
void real_loop(const Loop& loop, const Row& row);
// Rounds a value in place, without bounds.
void round_loop(Dtype declared, const Row& row);
// Computes values for which ATen has no function or no reliable one: sqrt, asinh, cosh, sinh, log1p, fmod, remainder,
// threshold. Writes the value only.
void real_value_loop(const Loop& loop, const Row& row);
// Comparisons, tests, logic and casts of real numbers: the value is int64.
void real_to_integer_loop(const Loop& loop, const Row& row);
// Every op on bool and integers whose result is bool or an integer.
void integer_loop(const Loop& loop, const Row& row);
// An integer to a real dtype: the value is double.
void integer_to_real_loop(const Loop& loop, const Row& row);
// A choice by the first operand, between values with the same carrier.
void where_real_loop(const Loop& loop, const Row& row);
void where_integer_loop(const Loop& loop, const Row& row);
void where_complex_loop(const Loop& loop, const Row& row);
// On entry the value tensor holds the op's value in complex double; the loop rounds it in place.
void complex_loop(const Loop& loop, const Row& row);
void complex_round_loop(Dtype declared, const Row& row);
// Elementary functions of complex numbers. Writes the value only.
void complex_value_loop(const Loop& loop, const Row& row);
// Complex to real: abs, real, imag; the value is double.
void complex_to_real_loop(const Loop& loop, const Row& row);
// Complex to bool: eq, ne, logic, isnan …
void complex_to_integer_loop(const Loop& loop, const Row& row);

// Finishes a reduction of reals. Tensors: value in double (rounded in place), bound, the sum of the operands' bounds,
// and the error of the implementation, infinite where nothing is known.
void reduction_loop(Dtype declared, const Row& row);
// How far the elements start + i·step move where both move by their bounds.
struct Spread {
  double start = 0, step = 0;

  bool is_zero() const { return start == 0 && step == 0; }
  double at(int64_t i) const { return step == 0 ? start : start + static_cast<double>(i) * step; }
};
// start + i·step as a kernel computes it, each step rounded. Tensors: value (in: i), bound.
void iota_loop(Dtype declared, double start, double step, const Spread& spread, const Row& row);

// One element of an op on integers and bool of one dtype, exactly. It wraps at the dtype's width; the op table defines
// x/0 and the like.
int64_t integer_op(OpKind kind, Dtype compute, const int64_t* operands);
// Keeps the bits of an integer that an integer dtype or bool has, and extends them.
class Wrap {
 public:
  explicit Wrap(Dtype dtype);
  int64_t operator()(int64_t value) const {
    const uint64_t high = static_cast<uint64_t>(value) << unused_;
    return is_signed_ ? static_cast<int64_t>(high) >> unused_ : static_cast<int64_t>(high >> unused_);
  }

 private:
  int unused_;  // high bits
  bool is_signed_;
};

}  // namespace fusebox::aten
