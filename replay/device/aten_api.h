// The math-level reference: the value of a program, op by op, and how far a right implementation may be from it. It
// lives in a module (libfusebox_aten.so) that module_loader.h loads; nothing here needs ATen.
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
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/bind.h"
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
};

struct Evaluation {
  std::vector<Evaluated> outputs;        // in order, in-place ones too
  std::vector<Evaluated> intermediates;  // in the order asked for
  int64_t ambiguous = 0;                 // over all ops
};

class AtenApi {
 public:
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
