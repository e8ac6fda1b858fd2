// Decides whether 32 bits hold every index of a kernel. It computes the range of each index value over all loop points,
// holes included, from the launch and its sizes.
//
// Ranges are intervals, computed op by op. They may be wider than the values that occur, never narrower. Parameters
// have the launch's values. An index from data lies in its axis, because the kernel says so (`within`). Any other
// unknown index may be anything, and does not fit.
//
//   the kernel computes blockIdx·128 + threadIdx, bindings {n: 2^31}
//   fits_in_32_bits(kernel, launch, bindings, strides) == false
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/scalar/scalar.h"
#include "ir/table/defect.h"

namespace fusebox {

// Strides of input tensors by name: in elements, by logical axis.
using InputStrides = std::map<std::string, std::vector<int64_t>, std::less<>>;

// `bindings` belong to the launch graph's sizes and scalar inputs. False if the launch asks for a stride that is not
// given.
bool fits_in_32_bits(const Graph& kernel, const Graph& launch, const Bindings& bindings, const InputStrides& strides,
                     const Defects& defects = {});

// Whether every loop of a kernel with 64-bit indices ends within 64 bits, as far as the host knows. A schedule may ask for
// more: splits by 2^31, whose parts are merged again.
bool loops_fit_in_64_bits(const Graph& kernel, const Graph& launch, const Bindings& bindings,
                          const InputStrides& strides, const Defects& defects = {});

}  // namespace fusebox
