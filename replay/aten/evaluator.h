// One run of the reference over a graph (aten_api.h). It computes the values of ops as ATen tensors with their bounds.
//
// evaluator.cc walks the graph, takes arguments in and gives results out. The other files evaluate ops: pointwise.cc those
// on elements, with the functions of complex numbers from complex_functions.h; structure.cc those that move elements;
// reduction.cc those that combine them; random.cc those that draw random numbers; library.cc, attention.cc and scan.cc
// those that no kernel computes.
#pragma once

#include <ATen/ATen.h>
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"
#include "replay/aten/loops.h"
#include "replay/device/aten_api.h"

namespace fusebox::aten {

// How a dtype's elements are carried.
enum class Carrier : uint8_t { kReal, kComplex, kInteger, kBytes };
Carrier carrier_of(Dtype dtype);
at::ScalarType carrier_type(Dtype dtype);
// The dtype of PyTorch in whose memory elements lie.
at::ScalarType storage_type(Dtype dtype);
// The operands of one slot of the op's format.
std::span<const ValueId> operands_in(const Op& op, size_t slot);

// A value. Its elements are in their carrier, in any layout. The bound is double of the same shape, or undefined if
// every element is exact.
struct Carried {
  at::Tensor value;
  at::Tensor bound;
  Dtype dtype = Dtype::kFloat;
  bool zero_sign = true;  // every right implementation gives the same signs of zeros

  bool exact() const { return !bound.defined(); }
};

using Bilinear = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

class Evaluator {
 public:
  Evaluator(const Graph& g, std::span<const Argument> inputs, const EvaluateOptions& options);
  // For single ops, whose operands the friend gives.
  Evaluator(const Graph& g, Bindings bindings, const EvaluateOptions& options);
  Evaluation run();

 private:
  friend class Native;

  // -- evaluator.cc
  Carried take(const Argument& argument) const;
  Evaluated give(ValueId v, const Carried& c) const;
  std::vector<bool> needed_ops(std::span<const ValueId> asked) const;
  void evaluate(OpId id);
  // A tensor, or a scalar as a tensor without axes.
  Carried carried(ValueId v);
  // A scalar that must be known: an extent, a start, a diagonal.
  int64_t integer(ValueId v);
  std::vector<int64_t> integers(const Op& op, size_t slot);
  bool is_by_cuda(const Op& op) const;

  // -- pointwise.cc
  Carried pointwise(const Op& op, Dtype declared, std::vector<Carried> operands);
  Carried real_op(const Op& op, Dtype compute, Dtype declared, std::vector<Carried> operands);
  Carried complex_op(const Op& op, Dtype compute, Dtype declared, std::vector<Carried> operands);
  // Runs a loop into fresh tensors of the operands' broadcast shape.
  Carried into(void (*loop)(const Loop&, const Row&), const Loop& spec, std::span<const Carried> operands,
               at::ScalarType type);
  Carried select(Dtype declared, std::vector<Carried> operands);
  Carried cast(Carried c, Dtype to);
  Carried full(const Op& op, Dtype declared);
  Carried iota(const Op& op, Dtype declared);
  // Rounds a value in place, so no other value may share its tensor. The result has no bound.
  Carried rounded(at::Tensor value, Dtype declared);

  // -- random.cc
  Carried random(const Op& op, Dtype declared);

  // -- structure.cc
  Carried metadata(const Op& op, Carried x);
  Carried pad(const Op& op, Carried x);
  Carried concatenate(const Op& op, Dtype declared);
  Carried indexed(const Op& op);
  Carried scatter(const Op& op);
  Carried upper_triangle(const Op& op, Carried x);
  void check_indices(const at::Tensor& index, int64_t extent, bool from_end, ValueId place) const;

  // -- reduction.cc
  Carried reduce(const Op& op, Dtype declared, Carried x);
  Carried reduce_integers(const Op& op, Dtype declared, const Carried& x, at::IntArrayRef axes);
  Carried sum(Dtype declared, const Carried& x, at::IntArrayRef axes, int64_t count);
  Carried product(Dtype declared, const Carried& x, at::IntArrayRef axes, int64_t count);
  Carried extreme(bool largest, Dtype declared, const Carried& x, at::IntArrayRef axes, int64_t count);
  Carried finish_reduction(at::Tensor value, at::Tensor spread, at::Tensor error, Dtype declared);
  // A sum of real or complex numbers. `rounds`: the result is rounded to its dtype.
  Carried finish_sum(at::Tensor value, const at::Tensor& spread, const at::Tensor& error, Dtype declared, bool rounds);
  std::vector<Carried> moments(const Op& op);
  std::vector<Carried> welford(const Op& op);

  // -- library.cc
  std::vector<Carried> library(const Op& op);
  // What a right implementation may do with a product.
  struct Freedom {
    bool stays_wide = false;  // leave out the rounding to the dtype
    double scale = 1;         // multiply parts of the sum by so much before it adds them up
  };
  // The sum of products f(a, b), f linear in both; each element adds `terms` products, and the addend if there is one.
  Carried product(const Bilinear& f, const Carried& a, const Carried& b, const Carried* addend, int64_t terms,
                  const Freedom& freedom);
  Freedom freedom_of(const Op& op);
  Carried matmul(const Op& op);
  Carried linear(const Op& op);
  Carried grouped_mm(const Op& op);
  Carried scaled_mm(const Op& op);

  // -- attention.cc
  std::vector<Carried> attention(const Op& op);
  std::vector<Carried> attention_gradient(const Op& op);

  // -- scan.cc
  Carried scan(const Op& op);
  Carried scan_integers(const Op& op, Carried x, int64_t axis, Dtype declared);
  Carried scan_products(const Carried& x, int64_t axis, Dtype declared);
  std::vector<Carried> scan_extremes(const Op& op);
  std::vector<Carried> sorted(const Op& op);
  Carried add_at(const Op& op);

  const Graph& g_;
  std::span<const Argument> inputs_;
  const EvaluateOptions& options_;
  Bindings bindings_;
  std::vector<std::optional<Carried>> values_;
  std::atomic<int64_t> ambiguous_{0};
};

// Applies the same view to value and bound.
template <class F>
Carried viewed(const Carried& c, F&& f) {
  Carried r = c;
  r.value = f(c.value);
  if (c.bound.defined()) r.bound = f(c.bound);
  return r;
}

// Whether the slice at one place of the axis has no elements. Then every place is right, as in bind_sizes.
bool is_slice_empty(const at::Tensor& t, int64_t axis);
// The slice at a place of the axis, which ATen would refuse for some of the right places.
at::Tensor slice_at(const at::Tensor& t, int64_t axis, int64_t index);
// Throws kIndexOutOfRange if the end of a group lies before its beginning or beyond the extent.
void check_group_end(const Graph& g, ValueId ends, int64_t begin, int64_t end, int64_t extent);
// Throws kSizeMismatch if an axis has fewer elements than are asked for.
void check_topk_count(const Graph& g, const Op& op, int64_t count, int64_t extent);

// The magnitudes of finite elements, 0 for others. A complex number counts the sum of its finite parts.
at::Tensor finite_sizes(const at::Tensor& x);
// The magnitudes of all elements, for sums of bounds. Infinities stay, so that a bound times an infinity is infinite. NaN
// counts nothing: its result is NaN in any case.
at::Tensor magnitudes(const at::Tensor& x);
// 64-bit carriers read as unsigned numbers.
at::Tensor unsigned_values(const at::Tensor& bits);
// The bound of integers that wrap: infinite where an element may leave the dtype's range.
at::Tensor free_where_it_wraps(Dtype d, const at::Tensor& value, const at::Tensor& bound);
// A zero: the bound of exact elements.
const at::Tensor& no_bound();
// A bound that is infinite where the condition holds, and 0 elsewhere.
at::Tensor free_where(const at::Tensor& condition);
// Runs a loop over tensors of one broadcast shape, outputs first. The loop may read an output's contents.
void run_loop(std::span<const at::Tensor> outputs, std::span<const at::Tensor> inputs,
              const std::function<void(const Row&)>& f);

// The inputs with the strides that their types ask for. A tensor that crosses segments may lie otherwise, for
// example a broadcast that ATen has stored. The evaluation reads it as it lies; only its sizes are bound.
std::vector<BoundInput> as_declared(const Graph& g, std::span<const BoundInput> given);

}  // namespace fusebox::aten
