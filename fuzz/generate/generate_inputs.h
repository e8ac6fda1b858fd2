// Inputs for a fusion: shapes from its sizes, layouts that its contiguity allows, and values of one of two kinds.
// Ordinary numbers let results be compared closely; the other kind is the boundary values of the dtype.
//
// Invariants: if the sizes are valid, bind_sizes accepts the inputs; the values of an index operand lie inside the axis
// that they index.
//
//   InputSpecs specs = generate_inputs(random, f.graph, f.sizes);
//   make_argument(specs.specs[0])
#pragma once

#include <span>
#include <vector>

#include "fuzz/base/random_source.h"
#include "fuzz/generate/generate_fusion.h"
#include "ir/infer/bind.h"
#include "ir/module/module.h"
#include "ir/scalar/scalar.h"

namespace fusebox::fuzz {

struct InputsOptions {
  bool special = false;   // boundary values: ±0, ±inf, NaN, subnormals, the largest
  bool integers = false;  // whole numbers, also for floats: sums are exact in any order
  bool shifted = false;   // most begin at an address that suits narrow vectors alone
  bool strides = true;    // gaps, offsets and strides of 0 where contiguity permits them
  int64_t offset = 0;     // of overwritten inputs; 0: drawn
  bool is_far = false;    // strides so large, if the layout permits, that 32 bits just hold a position
  std::span<const InputRange> ranges = {};  // values that some inputs must get
};

// Specs of the fusion's scalars and tensors, in order. `sizes`: the values of its symbols.
InputSpecs generate_inputs(RandomSource& random, const Graph& fusion, const Bindings& sizes,
                           const InputsOptions& options = {});

// Draws a new layout for one input, given its shape.
std::vector<int64_t> draw_strides(RandomSource& random, const Graph& fusion, ValueId input,
                                  std::span<const int64_t> shape, bool is_far = false);

// For each input that an op reads as an index: the extent of the indexed axis, the smallest if there are several. Empty
// for other inputs.
std::vector<std::optional<int64_t>> index_limits(const Graph& fusion, const Bindings& sizes);

// Sets values in [0, limit), as far as the dtype can hold them.
void make_index(InputSpec& spec, int64_t limit);

// Shapes, strides and scalars in the form that `compile` takes.
std::vector<BoundInput> bound_inputs(const InputSpecs& specs);
// The sizes that follow from a list of specs. Throws what bind_sizes throws.
Bindings sizes_of(const Graph& fusion, const InputSpecs& specs);

}  // namespace fusebox::fuzz
