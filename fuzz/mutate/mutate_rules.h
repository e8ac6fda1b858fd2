// What mutate.h is made of: for the steps, the inputs and the fusion of a case, drawing the parameters of a record and
// applying one. Not for use outside fuzz/.
//
// A rule that applies changes the case and returns true; false, or an Error, means that the record does not fit. No
// rule trusts a parameter: a record may come from a file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuzz/mutate/mutate.h"

namespace fusebox::fuzz {

using Parameters = std::vector<std::string>;

// A decimal number below `end`.
std::optional<size_t> parse_position(const std::string& text, size_t end);

bool draw_for_steps(RandomSource& random, MutationKind kind, const Case& from, const Case& other, Parameters& p);
bool apply_to_steps(Case& c, MutationKind kind, const Parameters& p);

bool draw_for_inputs(RandomSource& random, MutationKind kind, const Case& from, Parameters& p);
bool apply_to_inputs(Case& c, MutationKind kind, const Parameters& p);

bool draw_for_fusion(RandomSource& random, MutationKind kind, const Case& from, Parameters& p);
bool apply_to_fusion(Case& c, MutationKind kind, const Parameters& p);

// The ops that make tensors, in order.
std::vector<OpId> tensor_ops(const Graph& g);

// Whether a case that was edited verifies, binds its inputs and is small; keeps what an index reads in range. Throws
// what binding the sizes throws. `is_fusion_edited`: the fusion is not what it was when it verified last. `size`: the
// elements that its largest tensor may have.
inline constexpr int64_t kUsualSize = 1 << 12;  // what is wrong with many elements is nearly always wrong with few
bool settle(Case& c, bool is_fusion_edited = true, int64_t size = kUsualSize);
// For what is edited from a case: the usual size, or that of a larger one.
int64_t size_limit(const Case& c);

}  // namespace fusebox::fuzz
