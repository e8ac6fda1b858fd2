// Recognises gelu written out in ops, in its form by tanh:
//
//   gelu(x) = x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) / 2
//
// Each op is a polynomial in x and in t, the tanh. The ops are gelu if the last one is x/2 + x·t/2, in whatever order they
// multiply and add.
//
//   // %x2 = mul %x, %x; %x3 = mul %x2, %x; … %y = mul %h, %t1
//   GeluForm f = *find_gelu(g, ops, x);     // f.result: %y, f.ops: all of them
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

struct GeluForm {
  ValueId result;
  OpId tanh;              // of the form by erf: its erf
  std::vector<OpId> ops;  // in the order of the body; all that the result needs from x on
};

struct GeluOptions {
  bool by_erf = false;  // also finds x · (1 + erf(x / √2)) / 2
};

// The gelu of x among ops in the order of the body. Constants may differ from the exact ones by a millionth.
std::optional<GeluForm> find_gelu(const Graph& g, std::span<const OpId> ops, ValueId x,
                                  const GeluOptions& options = {});

}  // namespace fusebox
