// Which ops are one call of a library: a product of matrices and what follows it, its epilogue. Libraries multiply by a
// number, add a bias to each row and apply an activation while they store the product, so none of it takes memory or a
// launch of its own.
//
//   result = activation(scale · (a × b) + bias), rounded once
//
// | part | form |
// |---|---|
// | product | `linear` or `matmul` of f16, bf16 or f32; the second operand has rank 2 |
// | cast up | to f32, before the parts that compute in f32 |
// | scale | a number that is not 0, if no bias comes before it |
// | bias | a tensor of the product's dtype and rank 1, as long as a row, with its casts and broadcasts; or linear's own |
// | activation | `relu`; or gelu in its form by tanh (gelu_form.h), whose tanh is fast, as libraries approximate it |
// | cast down | back to the product's dtype |
//
// A product without bias that is cast up, and nothing else, is one call too: the library stores f32. A cast to the same
// dtype changes nothing, so it may stand between any two parts.
//
// Invariants: only the product's own rounding is left out. A value of 16 bits between two other parts is rounded by the
// program, so it ends an epilogue, except before relu, which gives the same either way. `may_stay_wide` tells a reference
// which roundings a plan may leave out. The decision is a pure function of the ops: a planner, a run of the plan and a
// report find the same call.
//
//   // %y = linear %x, %w, %b : bf16[%m, %n];  %z = relu %y;  output %z
//   ProductCall c = *product_call(segment);   // c.bias: %b, c.activation: kRelu, c.result: %z
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

enum class Activation : uint8_t { kNone, kRelu, kGelu };

struct ProductCall {
  OpId product;
  ValueId scale;  // a scalar, or none
  ValueId bias;   // of rank 1, or none
  Activation activation = Activation::kNone;
  ValueId result;
  bool operator==(const ProductCall&) const = default;
};

struct ProductMatch {
  std::optional<ProductCall> call;
  std::string why;  // without a call: a lower-case clause that names the tensor where the ops differ from one
};

// Whether these ops, in the order of the body, are one call that makes one tensor that others need. `needed` goes by
// value: the op's results that others read, or that are outputs.
ProductMatch match_product_call(const Graph& g, std::span<const OpId> ops, const std::vector<bool>& needed,
                                const Defects& defects = {});
// The call that a segment of several ops is, as a fusion. None for one op.
std::optional<ProductCall> product_call(const Graph& segment, const Defects& defects = {});
// Why the op that reads a product is not computed with it: a clause as above. Empty if nothing but an output reads the
// product, if it is no product, or if an epilogue is possible. The graph is in canonical order, and `readers` is uses(g).
std::string why_no_epilogue(const Graph& g, OpId product, const std::vector<std::vector<OpId>>& readers);
// What the library computes behind the product: "scale bias relu cast".
std::string epilogue_text(const Graph& g, const ProductCall& call);

// The numbers by which a plan may scale this product while the library still adds it up: behind the product, its casts, and
// ops that a rewrite may leave out.
std::vector<ValueId> scales_of(const Graph& g, OpId product);
// Whether a plan may hand this product on without rounding it to its dtype.
bool may_stay_wide(const Graph& g, OpId product);

}  // namespace fusebox
