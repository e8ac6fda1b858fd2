// A focus aims a case at combinations that random draws meet once in many thousand cases. The lists of combinations
// have a fixed order, and a case's seed picks its place in them, so that a campaign walks through them all.
//
// Invariants: two seeds in eight have no focus. Consecutive cases reach all combinations of a list equally often. A
// focus is a wish: a part that does not fit the fusion is skipped.
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
// Ops that a rewrite rule looks for, and ops that a wrong rule would take for them.
enum class FusionForm : uint8_t {
  kNeutralConstant,    // the op of a tensor and a constant that does not change it
  kEqualOperands,      // the op of a tensor and itself
  kExchangedOperands,  // the op of two tensors, and of the same two exchanged
  kUnaryPair,          // the op of the second op's result
  kConstantCondition,  // `where` of a constant and two tensors
  kMove,               // the op, with attributes that move nothing
  kMovesBack,          // the second op, then the op, which undoes it
  kDerivedAxes,        // both ops, with computed extents that they may share
};
struct FormFocus {
  FusionForm form = FusionForm::kNeutralConstant;
  OpKind kind = OpKind::kSet, second = OpKind::kSet;
  bool operator==(const FormFocus&) const = default;
};
struct SwizzleFocus {
  SwizzleType type = SwizzleType::kXor;
  int64_t first = 2, second = 2;  // extents
  bool is_far = false;            // the second domain's stride is so large that 32 bits just hold an index
};
struct TransformFocus {
  TransformKind first = TransformKind::kSplit, second = TransformKind::kSplit;  // transforms a result of the first
};
// An output that overwrites an input, with its circumstances.
struct InPlaceFocus {
  bool in_vectors = false;  // stores in vectors of `width` elements
  int64_t width = 4;
  int64_t offset = 0;  // of the input, in elements
  bool in_segments = false;
};

// An op of a tensor and of scalars of another dtype.
struct ScalarFocus {
  OpKind kind = OpKind::kAdd;
  Dtype tensor = Dtype::kFloat, scalar = Dtype::kFloat;
};
// An op of one operand, applied to the result of another.
struct UnaryFocus {
  OpKind outer = OpKind::kNeg, inner = OpKind::kNeg;
  Dtype dtype = Dtype::kFloat;
};
// A reduction of a three-dimensional tensor; each axis has its own threads.
struct BlockFocus {
  std::array<int64_t, 3> extents = {};
  std::array<ParallelType, 3> types = {};
  std::array<bool, 3> is_reduced = {};
};

// A small program that random draws rarely make, with the schedule, the rewrite or the values that it is made for.
enum class RareFocus : uint8_t {
  kWrappingConstants,   // an op of integer constants that wraps, for folding
  kTimesZero,           // a product or sum of zero with infinities, NaN and zeros
  kTwoRandomOps,        // two random ops of one kernel, each with its own seed
  kDeclaredOrder,       // ATen makes a tensor that has a declared order
  kAddedProduct,        // a 16-bit product that is added, or widened for a sum
  kSumOfAllBlocks,      // a sum over the grid that all blocks read
  kGappedVectors,       // rows with gaps between them, read in vectors
  kLibraryOp,           // an op that ATen alone computes, and nothing else
  kGatheredOp,          // an op that reads by data what a pointwise op of inputs makes
  kFewMoments,          // the mean and the squares of rows with no or few elements
  kStoredOverSegments,  // an output in place that a later segment reads through other moves
  kTwoScopes,           // a barrier of a block between a store to global memory and its read by other blocks
  kTwoClusterSums,      // two sums in clusters, of which a thread keeps different numbers of elements
  kStoredOverGathered,  // an output over an input that another op reads by data
  kTwoWidths,           // an input that is read in vectors of two widths
  kConvertedTwice,      // an integer that loops of unlike extents read as a float
  kRoundedResult,       // a 16-bit result, widened where its kernel still has it in a register
  kResizedAlike,        // an op and its reader in one nest, whose loops are resized alike or nearly so
  kLaterResult,         // a result that is not the first of its op, read alone or with a layout of its own
  kLayoutOfOne,         // an input with a layout of its own, whose axes may turn out to have one element
  kFromTheLesser,       // elements from the lesser of two sizes on, read in vectors
  kStretchedSum,        // a sum that is stretched to another length and reduced, beside a reader of its own length
  kBehindColumns,       // an op behind a sum of columns, beside reduced rows that read the same vector
  kSizesFoundEqual,     // moves by sizes that are equal in another form, behind axes that the inputs resolve
  kLongSum,
};
inline constexpr size_t kRareFoci = static_cast<size_t>(RareFocus::kLongSum) + 1;

struct Focus {
  std::vector<OpFocus> ops;
  std::optional<CastFocus> casts;
  std::optional<FormFocus> form;
  std::vector<ArgumentRange> arguments;  // elementary functions with arguments in these ranges
  bool far_indices = false;              // index scalars near 2^30, 2^31 and 2^32 in arithmetic with small results
  std::optional<SwizzleFocus> swizzle;
  std::optional<TransformFocus> transforms;
  std::optional<InPlaceFocus> in_place;
  // -- made by generate_situations.cc and step_situations.cc
  std::vector<ScalarFocus> scalars;
  std::vector<UnaryFocus> unaries;
  std::vector<OpFocus> integer_pairs;  // ops of two tensors of one integer dtype
  std::vector<OpFocus> equal_scalars;  // ops of a scalar and itself
  bool near_constants = false;         // constants that differ only in one part, one bit or the dtype
  bool computed_sizes = false;         // extents and bounds computed by any op on scalars of any dtype
  std::optional<BlockFocus> block;
  std::optional<ParallelType> shared_in;  // a loop whose iterations each fill a shared tensor and read it
  size_t segments = 0;                    // the number of segments; ops read values made several segments before
  std::optional<RareFocus> rare;
  std::string_view rewrite = {};  // a rewrite that mostly finds something to change
  bool empty() const {
    return ops.empty() && !casts && !form && arguments.empty() && !far_indices && !swizzle && !transforms &&
           !in_place && scalars.empty() && unaries.empty() && integer_pairs.empty() && equal_scalars.empty() &&
           !near_constants && !computed_sizes && !block && !shared_in && segments == 0 && !rare;
  }
};

Focus focus_of(uint64_t seed);

// Every form once, for example `floor of trunc`, `bitwise_or of equal operands`.
std::vector<FormFocus> all_forms();
std::string text(const FormFocus& form);

}  // namespace fusebox::fuzz
