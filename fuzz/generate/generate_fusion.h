// Random fusions of math ops that mean something: the shapes of operands fit for one choice of the sizes, which comes
// with the program. Driven by the op table: a new row of a known format turns up by itself, on every dtype that
// accepts_dtype allows.
//
// Invariants: the same choices give the same fusion; it verifies; binding its sizes as given succeeds; an index operand
// is an input, so that its values can be kept in range (generate_inputs.h).
//
//   RandomSource random(7);
//   GeneratedFusion f = generate_fusion(random, {.max_ops = 8});
//   f.graph, f.sizes     // and how many draws of ops were taken: f.accepted of f.attempts
#pragma once

#include <string>
#include <vector>

#include "fuzz/base/random_source.h"
#include "fuzz/generate/focus.h"
#include "ir/graph/graph.h"
#include "ir/scalar/scalar.h"

namespace fusebox::fuzz {

// How often each op is drawn, by its number.
using OpMix = std::vector<uint32_t>;
// Every op that can stand in a fusion. What moves elements, reduces or casts is drawn more often than one of the many
// pointwise ops.
OpMix default_mix();
// These alone, equally often.
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
  bool symbolic = true;  // input axes of which it is not known whether they are broadcasts
  uint32_t long_sum_one_in =
      160;  // fusions that begin with a sum of up to 2^16 elements, whatever max_elements; 0: none
  Focus focus = {};
};

// The numbers that an input is to have: uniform, or boundary values.
struct InputRange {
  ValueId input;
  double low = 0, high = 0;
  bool is_boundary = false;
};

struct GeneratedFusion {
  Graph graph;
  Bindings sizes;  // of the fusion's size symbols
  size_t attempts = 0, accepted = 0;
  size_t neighbours = 0;   // of the accepted ops, those made beside another for a rewrite to find
  bool folds = false;      // there are ops of constants alone
  bool sums_many = false;  // it begins with a long sum
  std::vector<InputRange> ranges;
};

GeneratedFusion generate_fusion(RandomSource& random, const FusionOptions& options = {});

}  // namespace fusebox::fuzz
