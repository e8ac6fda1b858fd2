// From an input spec (ir/module/module.h) to an argument: the same elements on every machine, for every number of
// threads.
//
// Invariants: an element's value depends on dtype, generator, its parameters, seed and its row-major index alone (on an
// axis of stride 0 the index counts as 0), so a tensor has the same elements in every layout. What lies between
// elements is NaN, −1, or true; 0 in sparse storage.
// - random words: a counter (index and draw) through the finaliser of SplitMix64 (G. L. Steele, D. Lea, C. H. Flood,
// "Fast
//   Splittable Pseudorandom Number Generators", 2014), keyed by the seed;
// - uniform: low + (high − low) · u, u of 53 bits in [0, 1); integers: low + ⌊(high − low) · u⌋, u of 64 bits;
// - normal: low + high · z, z the sum of 12 uniform numbers less 6 (mean 0, deviation 1, |z| < 6): no function of a C
// library;
// - boundary: one of the dtype's boundary values: ±0, ±inf, NaN, subnormals, largest, ties of rounding …;
// - constant: `value`, or else low. bool: each value with probability ½, but for constant. Complex: each part for
// itself. All are rounded once to the dtype. A tensor of a dtype without arithmetic gets random bytes.
//
//   Argument x = make_argument(parse_input_spec("x", "f32[5, 7] strides [14, 2] offset 3 uniform -1.0 1.0 seed 7"));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module/module.h"
#include "replay/data/tensor_data.h"

namespace fusebox {

// `threads` 0: as many as there are processors, for large tensors.
Argument make_argument(const InputSpec& spec, int threads = 0);

// The boundary values of a dtype, in the order of the table, for tests that want each of them.
std::vector<ConstantBits> boundary_values(Dtype dtype);

// What `--input NAME=SPEC` says: a spec, or a .npy file.
struct InputOption {
  std::string name;
  std::optional<InputSpec> spec;
  std::string file;  // where there is no spec
};
// `x=f32[5,7] uniform -1 1 seed 7`, `x=file.npy`, `s=0.5_f32`, `s=f64 0.5`. Throws kBadInputSpec, at the name.
InputOption parse_input_option(std::string_view text);
// The argument that an option stands for; a file's numbers become elements of `dtype`, as read_npy says.
Argument make_argument(const InputOption& option, Dtype dtype, bool is_scalar);

}  // namespace fusebox
