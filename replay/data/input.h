// Makes an argument of an input spec (ir/module/module.h): the same elements on every machine, for every number of
// threads.
//
// Invariants: an element's value depends only on dtype, generator, its parameters, seed and the element's row-major
// index (which counts as 0 on an axis of stride 0). So a tensor has the same elements in every layout. The storage
// between elements holds NaN, −1, or true; in sparse storage 0.
// - Random words: a counter (index and draw) through the finaliser of SplitMix64 (G. L. Steele, D. Lea, C. H. Flood,
//   "Fast Splittable Pseudorandom Number Generators", 2014), keyed by the seed.
// - uniform: low + (high − low) · u, u of 53 bits in [0, 1). Integers: low + ⌊(high − low) · u⌋, u of 64 bits.
// - normal: low + high · z, z the sum of 12 uniform numbers less 6 (mean 0, deviation 1, |z| < 6). It needs no function
//   of a C library.
// - boundary: one of the dtype's boundary values: ±0, ±inf, NaN, subnormals, largest, ties of rounding …
// - constant: `value`, or else low.
// - All but constant make each value of bool with probability ½. Each part of a complex number is drawn for itself. All
//   are rounded once to the dtype. A tensor of a dtype without arithmetic gets random bytes.
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

// With 0 threads, a large tensor is made by as many threads as there are processors.
Argument make_argument(const InputSpec& spec, int threads = 0);

// The boundary values of a dtype, in the order of the table. Tests walk them.
std::vector<ConstantBits> boundary_values(Dtype dtype);

// The meaning of `--input NAME=SPEC`: a spec, or a .npy file.
struct InputOption {
  std::string name;
  std::optional<InputSpec> spec;
  std::string number;  // of a scalar's spec without a dtype, which then takes that of the program's scalar
  std::string file;    // if there is no spec
};
// `x=f32[5,7] uniform -1 1 seed 7`, `x=file.npy`, `s=0.5_f32`, `s=f64 0.5`, `s=0.5`. Throws kBadInputSpec, at the name.
InputOption parse_input_option(std::string_view text);
// The argument that an option stands for. A file's numbers become elements of `dtype`, as read_npy says. A number
// without a dtype becomes a scalar of `dtype`, if that is not complex; 0 and 1 are values of bool.
Argument make_argument(const InputOption& option, Dtype dtype, bool is_scalar);

}  // namespace fusebox
