// What a case is aimed at, besides what it draws: combinations that the default draw meets once in many thousand cases.
// They stand in a fixed order, and the cases of a campaign walk through it: a case's seed says which are its own.
//
// Invariants: half of the seeds have none; cases in the order of their numbers come to every combination of a list as
// often as to every other. A focus is a wish: what does not fit the fusion is left out.
//
//   Focus focus = focus_of(seed);
//   focus.ops       // remainder of bf16, sum of u8: made before any other op
#pragma once

#include <optional>
#include <vector>

#include "ir/enums.h"
#include "ir/op.h"

namespace fusebox::fuzz {

struct OpFocus {
  OpKind kind = OpKind::kSet;
  Dtype dtype = Dtype::kFloat;
};
// A cast of a cast of a tensor.
struct CastFocus {
  Dtype from = Dtype::kInt32, through = Dtype::kFloat, to = Dtype::kInt32;
};
struct SwizzleFocus {
  SwizzleType type = SwizzleType::kXor;
  int64_t first = 2, second = 2;  // extents
};
struct TransformFocus {
  TransformKind first = TransformKind::kSplit, second = TransformKind::kSplit;  // of a result of the first
};
// An output that overwrites an input, and what stands about it.
struct InPlaceFocus {
  bool in_vectors = false;  // the store, of the given number of elements
  int64_t width = 4;
  int64_t offset = 0;  // of the input, in elements
  bool in_segments = false;
};

struct Focus {
  std::vector<OpFocus> ops;
  std::optional<CastFocus> casts;
  std::optional<SwizzleFocus> swizzle;
  std::optional<TransformFocus> transforms;
  std::optional<InPlaceFocus> in_place;
  bool empty() const { return ops.empty() && !casts && !swizzle && !transforms && !in_place; }
};

Focus focus_of(uint64_t seed);

}  // namespace fusebox::fuzz
