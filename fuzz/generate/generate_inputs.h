// Inputs for a fusion: shapes from its sizes, layouts that its contiguity allows, and values of one of two tracks:
// plain numbers, on which results can be compared closely, or the boundary values of the dtype.
//
// Invariants: bind_sizes accepts what was drawn from sizes that it accepts; the values of an index operand lie inside
// the axis that they index.
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
  bool special = false;   // ±0, ±inf, NaN, subnormals, largest
  bool integers = false;  // floats too: sums are exact in any order
  bool strides = true;    // gaps, offsets and strides of 0 where the contiguity is free
  int64_t offset = 0;     // of inputs that are overwritten; 0: drawn
  bool is_far = false;    // elements lie so far apart, where the layout allows it, that 32 bits just hold a position
  std::span<const InputRange> ranges = {};  // numbers that some inputs are to have
};

// Of the scalars and tensors of a fusion, in order. `sizes`: of its symbols.
InputSpecs generate_inputs(RandomSource& random, const Graph& fusion, const Bindings& sizes,
                           const InputsOptions& options = {});

// The layout of one input again, for a shape.
std::vector<int64_t> draw_strides(RandomSource& random, const Graph& fusion, ValueId input,
                                  std::span<const int64_t> shape, bool is_far = false);

// For each input that an op reads as an index, the extent that its values must stay below: the smallest of the axes.
// Nothing for other inputs.
std::vector<std::optional<int64_t>> index_limits(const Graph& fusion, const Bindings& sizes);

// Values in [0, limit), as far as the dtype goes.
void make_index(InputSpec& spec, int64_t limit);

// Shapes, strides and scalars, for `compile`.
std::vector<BoundInput> bound_inputs(const InputSpecs& specs);
// The sizes that a list of specs gives. Throws what bind_sizes throws.
Bindings sizes_of(const Graph& fusion, const InputSpecs& specs);

}  // namespace fusebox::fuzz
