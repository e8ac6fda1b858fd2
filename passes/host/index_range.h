// Whether 32 bits hold every index of a kernel: the range of each index value over all loop points, holes included,
// from the launch and the sizes that it is given.
//
// Ranges are intervals, computed op by op: they may be wider than what is reached, never narrower. Parameters have the
// launch's values. An index that data give is known to lie in its axis, because the kernel says so (`within`); any
// other index that is not known may be anything, and does not fit.
//
//   fits_in_32_bits(kernel, launch, bindings, strides)   // {n: 2^31}: false, where the kernel computes blockIdx·128 +
//   threadIdx
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/scalar/scalar.h"
#include "ir/table/defect.h"

namespace fusebox {

// By the name of an input tensor: its strides in elements, by logical axis.
using InputStrides = std::map<std::string, std::vector<int64_t>, std::less<>>;

// `bindings`: of the launch graph's sizes and scalar inputs. A stride that is not given, and is asked for, does not
// fit.
bool fits_in_32_bits(const Graph& kernel, const Graph& launch, const Bindings& bindings, const InputStrides& strides,
                     const Defects& defects = {});

}  // namespace fusebox
