// ATen, behind an interface that needs no ATen: the module libfusebox_aten.so, which module_loader.h loads. It is two
// things. One is the math-level reference: the value of a program, op by op, and how far a right implementation may be
// from it. The other runs the ATen segments of a program by ATen's own kernels, and says before any data how their outputs
// will lie in memory.
//
// Each op is evaluated in double (complex double; integers exactly) and rounded to its declared dtype. Each element has
// a bound: the operands' bounds carried through the op as intervals, plus the op's own error in its computation dtype
// (bounds_table.inc), plus rounding. A reduction's bound depends on the number of elements. If an interval straddles a
// jump (a comparison, a floor, a cast to an integer), the bound covers both sides, and the element is counted. With a
// bound of infinity any value passes. Signs of zeros do not count. Inputs are only read: an output that overwrites an
// input gets memory of its own.
//
//   const AtenApi& aten = load_aten();                              // module_loader.h
//   Evaluation e = aten.evaluate(fusion, arguments);
//   Comparison c = compare(actual, e.outputs[0]);                   // compare.h
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/bind.h"
#include "ir/infer/product_call.h"
#include "ir/infer/tensor_layout.h"
#include "replay/data/tensor_data.h"

namespace fusebox {

struct Evaluated {
  std::string name;
  Dtype dtype = Dtype::kFloat;  // declared
  bool is_scalar = false;       // without axes
  // The values: f64 for floats, c128 for complex, i64 for bool and integers, u64 for u64, the bytes as u8 for dtypes
  // without arithmetic. An expanded axis keeps its stride of 0.
  TensorData reference;
  TensorData bound;       // f64, of the same shape; without storage every element is exact
  int64_t ambiguous = 0;  // elements where this value's own op straddles a jump

  bool is_exact() const { return !bound.storage; }
};

struct EvaluateOptions {
  bool bounds = true;                      // false: values alone, in half the time
  std::vector<std::string> intermediates;  // names of values to give back beside the outputs
  std::vector<std::string> by_cuda =
      {};  // names of values that ATen computes on a GPU, by the functions of CUDA's library
};

struct Evaluation {
  std::vector<Evaluated> outputs;        // in order, in-place ones too
  std::vector<Evaluated> intermediates;  // in the order asked for
  int64_t ambiguous = 0;                 // over all ops
};

// Where a segment runs: on the CPU, or on a stream of a GPU.
struct AtenPlace {
  bool is_gpu = false;
  int ordinal = 0;
  void* stream = nullptr;  // of the driver; null: the default one
};

// A scalar, or a tensor in the memory of the place.
struct AtenValue {
  bool is_scalar = false;
  Dtype dtype = Dtype::kFloat;
  ConstantBits bits = {};
  TensorLayout layout = {};
  void* data = nullptr;                    // element (0, 0, …)
  std::shared_ptr<void> keeper = nullptr;  // keeps the memory alive; for a result, its at::Tensor
};

// A segment as AtenApi takes it (run/aten_segment.h: `aten_form`), and the one call that its ops are, if they are one.
struct AtenForm {
  Graph graph;
  std::optional<ProductCall> call;

  const ProductCall* one_call() const { return call ? &*call : nullptr; }
};

class AtenApi {
 public:
  // Runs a segment (run/aten_segment.h: `aten_form`) by ATen's kernels on the place's stream, without waiting. Its scalars
  // and tensors are given in order. The results have ATen's own strides, and memory of their own. Ops and dtypes that ATen
  // has no kernels for are computed by the reference, and are contiguous. Throws kIndexOutOfRange, kOutOfMemory, and
  // kDeviceFailure for an op that ATen refuses. With `call`, which is of this segment, one call computes all its ops;
  // without it each op is a call.
  virtual std::vector<AtenValue> run(const Graph& segment, std::span<const AtenValue> given, const AtenPlace& place,
                                     const ProductCall* call = nullptr) const = 0;
  // The layouts of the results that `run` would give, from layouts alone: by ATen's meta device, without Python. Throws
  // kNoLayout.
  virtual std::vector<TensorLayout> infer(const Graph& segment, std::span<const BoundInput> given,
                                          const ProductCall* call = nullptr) const = 0;
  // The names of the segment's tensors that no kernel of ATen's computes, so that the reference computes them on the CPU,
  // also between kernels of a GPU.
  virtual std::vector<std::string> referred(const Graph& segment, std::span<const BoundInput> given) const = 0;
  // A copy of a tensor with other strides, without waiting.
  virtual AtenValue copied(const AtenValue& from, std::span<const int64_t> strides, const AtenPlace& place) const = 0;
  // Whether this PyTorch runs on GPUs.
  virtual bool has_gpu() const = 0;

  // Evaluates a fusion, scheduled or not. Throws the errors of bind_sizes, kBadInput for an argument of the wrong
  // dtype, kIndexOutOfRange for an index outside its axis, kUnknownName for an unknown intermediate, kOutOfMemory.
  virtual Evaluation evaluate(const Graph& fusion, std::span<const Argument> inputs,
                              const EvaluateOptions& options = {}) const = 0;
  // PyTorch's version.
  virtual std::string version() const = 0;

 protected:
  ~AtenApi() = default;
};

// The module's one entry point: `extern "C" const fusebox::AtenApi* fusebox_aten()`.
using AtenEntry = const AtenApi* (*)();
inline constexpr const char* kAtenEntryName = "fusebox_aten";

}  // namespace fusebox
