// The parts of mutate.h. For a case's steps, inputs and fusion: one function draws the parameters of a record, another
// applies them. Only for use inside fuzz/.
//
// Applying a rule changes the case and returns true. False, or an Error, means that the record does not fit. No rule
// trusts its parameters, because a record may come from a file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuzz/mutate/mutate.h"

namespace fusebox::fuzz {

// The mutations of a case's steps, inputs and fusion, as labels that stand after `case`.
// clang-format off
#define FUSEBOX_STEP_MUTATIONS \
  MutationKind::kInsertStep: case MutationKind::kDeleteStep: case MutationKind::kSwapSteps: \
  case MutationKind::kReplaceStep: case MutationKind::kSplice
#define FUSEBOX_INPUT_MUTATIONS MutationKind::kExtent: case MutationKind::kLayout: case MutationKind::kValues
#define FUSEBOX_FUSION_MUTATIONS \
  MutationKind::kReplaceOp: case MutationKind::kRetargetOp: case MutationKind::kDeleteOp: \
  case MutationKind::kInsertOp: case MutationKind::kReplaceConstant
// clang-format on

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

// Whether an edited case verifies, binds its inputs and is small. Also brings index values back into range. Throws what
// binding the sizes throws. `is_fusion_edited`: the fusion has changed since it last verified. `size`: the most
// elements a tensor may have.
inline constexpr int64_t kUsualSize = 1 << 12;  // bugs with many elements nearly always show with few
bool settle(Case& c, bool is_fusion_edited = true, int64_t size = kUsualSize);
// The limit for edits of a case: the usual size, or the case's own if it is larger.
int64_t size_limit(const Case& c);

}  // namespace fusebox::fuzz
