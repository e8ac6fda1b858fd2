// What a case is aimed at, besides what it draws: combinations that the default draw meets once in many thousand cases.
// They stand in a fixed order, and the cases of a campaign walk through it: a case's seed says which are its own.
//
// Invariants: three seeds in eight have none; cases in the order of their numbers come to every combination of a list
// as often as to every other. A focus is a wish: what does not fit the fusion is left out.
//
//   Focus focus = focus_of(seed);
//   focus.ops       // remainder of bf16, sum of u8: made before any other op
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/generate/argument_ranges.h"
#include "ir/table/enums.h"
#include "ir/table/op.h"

namespace fusebox::fuzz {

struct OpFocus {
  OpKind kind = OpKind::kSet;
  Dtype dtype = Dtype::kFloat;
};
// A cast of a cast of a tensor.
struct CastFocus {
  Dtype from = Dtype::kInt32, through = Dtype::kFloat, to = Dtype::kInt32;
};
// Ops that a rewrite rule looks for, and what looks like them to a rule that is wrong.
enum class FusionForm : uint8_t {
  kNeutralConstant,    // the op of a tensor and a constant that leaves it as it is
  kEqualOperands,      // the op of a tensor and the same tensor
  kExchangedOperands,  // the op of two tensors, and of the two in the other order
  kUnaryPair,          // the op of the second op's result
  kConstantCondition,  // `where` of a constant and two tensors
  kMove,               // the op, with attributes that move nothing
  kMovesBack,          // the second op, then the op, which undoes it
  kDerivedAxes,        // both ops, with extents that are computed, and that the two may share
};
struct FormFocus {
  FusionForm form = FusionForm::kNeutralConstant;
  OpKind kind = OpKind::kSet, second = OpKind::kSet;
  bool operator==(const FormFocus&) const = default;
};
struct SwizzleFocus {
  SwizzleType type = SwizzleType::kXor;
  int64_t first = 2, second = 2;  // extents
  bool is_far = false;            // the elements of the second domain lie so far apart that 32 bits just hold an index
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

// An op of a tensor and scalars of a dtype.
struct ScalarFocus {
  OpKind kind = OpKind::kAdd;
  Dtype tensor = Dtype::kFloat, scalar = Dtype::kFloat;
};
// An op of one operand, of the result of another.
struct UnaryFocus {
  OpKind outer = OpKind::kNeg, inner = OpKind::kNeg;
  Dtype dtype = Dtype::kFloat;
};
// A reduction of a tensor of three axes, each on threads of its own.
struct BlockFocus {
  std::array<int64_t, 3> extents = {};
  std::array<ParallelType, 3> types = {};
  std::array<bool, 3> is_reduced = {};
};

struct Focus {
  std::vector<OpFocus> ops;
  std::optional<CastFocus> casts;
  std::optional<FormFocus> form;
  std::vector<ArgumentRange> arguments;  // elementary functions of numbers of these ranges
  bool far_indices = false;              // index scalars near 2^30, 2^31 and 2^32, in arithmetic that gives small ones
  std::optional<SwizzleFocus> swizzle;
  std::optional<TransformFocus> transforms;
  std::optional<InPlaceFocus> in_place;
  // -- made by generate_situations.cc and step_situations.cc
  std::vector<ScalarFocus> scalars;
  std::vector<UnaryFocus> unaries;
  std::vector<OpFocus> integer_pairs;  // ops of two tensors of one integer dtype
  std::vector<OpFocus> equal_scalars;  // ops of a scalar and the same scalar
  bool near_constants = false;         // constants that differ in one part, one bit or the dtype alone
  bool computed_sizes = false;         // extents and bounds computed by any op on scalars of any dtype
  std::optional<BlockFocus> block;
  std::optional<ParallelType> shared_in;  // a loop that makes a tensor in shared memory in each iteration, and reads it
  size_t segments = 0;                    // as many, of ops that read what was made several segments before
  std::string_view rewrite = {};          // one that finds something, mostly
  bool empty() const {
    return ops.empty() && !casts && !form && arguments.empty() && !far_indices && !swizzle && !transforms &&
           !in_place && scalars.empty() && unaries.empty() && integer_pairs.empty() && equal_scalars.empty() &&
           !near_constants && !computed_sizes && !block && !shared_in && segments == 0;
  }
};

Focus focus_of(uint64_t seed);

// Every form, once; `floor of trunc`, `bitwise_or of equal operands`.
std::vector<FormFocus> all_forms();
std::string text(const FormFocus& form);

}  // namespace fusebox::fuzz
