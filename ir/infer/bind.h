// Binds the sizes and scalars of a program to what it is given.
//
//   bind_sizes(g, {{.shape = {4, 8}}})   // %m of f32[%m, %n] is 4, %n is 8, and every scalar of them is evaluated
#pragma once

#include <span>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

namespace fusebox {

// What a program is given for one input: a scalar's bits (of its dtype), or a tensor's shape and strides in elements.
struct BoundInput {
  bool is_scalar = false;
  ConstantBits bits = {};
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};  // empty: contiguous
};

// Binds the sizes and scalar inputs of a program to its inputs and evaluates every scalar of its body. Throws, naming
// input and axis: kMissingInput (too few inputs, or a size that no input has), kBadInput (rank, constants, broadcasts,
// contiguity, negative extents), kSizeMismatch (a symbol bound twice, operands that differ in an extent, a slice or
// reshape that does not fit).
Bindings bind_sizes(const Graph& g, std::span<const BoundInput> given);
// The last part of it: extents and bounds of every op that can be checked, given the sizes. Useful again after
// concretization.
void check_sizes(const Graph& g, const Bindings& bindings);

}  // namespace fusebox
