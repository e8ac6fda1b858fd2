// Random fusions of math ops. Operands have shapes that fit for one choice of the sizes, which comes with the fusion.
// The op table drives the generator: a new row of a known format is drawn automatically, on every dtype that
// accepts_dtype allows.
//
// Invariants: the same choices give the same fusion; it verifies; binding its sizes as given succeeds; an index operand
// is an input, so generate_inputs.h can keep its values in range.
//
//   RandomSource random(7);
//   GeneratedFusion f = generate_fusion(random, {.max_ops = 8});
//   f.graph, f.sizes     // f.accepted of f.attempts drawn ops were accepted
#pragma once

#include <string>
#include <vector>

#include "fuzz/base/random_source.h"
#include "fuzz/generate/focus.h"
#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

namespace fusebox::fuzz {

// The weight of each op, by the op's number.
using OpMix = std::vector<uint32_t>;
// Every op that can stand in a fusion. Moves, reductions and casts have larger weights than the many pointwise ops.
OpMix default_mix();
// Only these ops, with equal weights.
OpMix mix_of(const std::vector<OpKind>& kinds);
// The ops of default_mix.
std::vector<OpKind> generated_ops();

struct FusionOptions {
  size_t max_ops = 40;
  size_t max_rank = 6;
  int64_t max_elements = 1024;  // of a tensor
  OpMix mix = default_mix();
  bool aliases = true;   // outputs that overwrite inputs
  bool layouts = true;   // inputs that are permuted or not contiguous
  bool symbolic = true;  // input axes that are symbolic: only the inputs tell whether they are broadcasts
  // Fusions that begin with a sum of up to 2^16 elements, regardless of max_elements; 0: none.
  uint32_t long_sum_one_in = 160;
  // Fusions that are made of norms, gates, losses and updates; 0: none.
  uint32_t model_one_in = 0;
  Focus focus = {};
};

// The values that an input must get: uniform in the range, or boundary values.
struct InputRange {
  ValueId input;
  double low = 0, high = 0;
  bool is_boundary = false;
};

struct GeneratedFusion {
  Graph graph;
  Bindings sizes;  // of the fusion's size symbols
  size_t attempts = 0, accepted = 0;
  size_t neighbours = 0;   // accepted ops that form a pattern for rewrites with other ops
  bool folds = false;      // some ops have only constant operands
  bool sums_many = false;  // it begins with a long sum
  std::vector<InputRange> ranges;
};

GeneratedFusion generate_fusion(RandomSource& random, const FusionOptions& options = {});

}  // namespace fusebox::fuzz
