// Binds the sizes and scalars of a program to its inputs.
//
//   bind_sizes(g, {{.shape = {4, 8}}})   // for %x : f32[%m, %n]: binds %m to 4 and %n to 8
#pragma once

#include <span>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

namespace fusebox {

// The argument for one input: the bits of a scalar (in its dtype), or the shape of a tensor and its strides in
// elements.
struct BoundInput {
  bool is_scalar = false;
  ConstantBits bits = {};
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};  // empty: contiguous
  int64_t align = 0;                  // a power of two that divides the address of element (0, 0, …); 0: not known
};

// Whether two elements of a tensor of these strides surely lie at one place. What needs three axes is seen in tensors of up
// to 65,536 elements.
bool meets_itself(std::span<const int64_t> shape, std::span<const int64_t> strides);
constexpr const char* kMeetsItself =
    "an output overwrites this input, but several elements of it lie at one place; copy it to memory where they lie "
    "apart";

// Binds a fusion's sizes and scalar inputs, evaluates every scalar of the body, and checks the sizes. Throws kWrongLevel
// for another program, and, with an input or axis as the place:
// - kMissingInput: too few inputs, or a size that no input has;
// - kBadInput: a rank, constant extent, broadcast or stride that does not fit, a negative extent, a slice beyond its
//   axis, an input that is overwritten and meets itself;
// - kSizeMismatch: a symbol with two values, operands that differ in an extent, a reshape that does not fit;
// - kIndexOutOfRange: a scalar index of select outside its axis.
Bindings bind_sizes(const Graph& g, std::span<const BoundInput> given);
// bind_sizes without its last part, also for a host program.
Bindings bind_inputs(const Graph& g, std::span<const BoundInput> given);
// The last part of bind_sizes: checks the extents and bounds of every op as far as the bindings tell. A concretized
// program can be checked again.
void check_sizes(const Graph& g, const Bindings& bindings);
// The same for one op.
void check_sizes(const Graph& g, OpId op, const Bindings& bindings);

}  // namespace fusebox
