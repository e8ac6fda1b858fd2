// The results of ops that ATen alone computes (FUSEBOX_LIBRARY_OPS): their dtypes, and where the extent of each axis comes
// from. Inference, the verifier and the check of sizes all follow this one description. Shapes and dtypes are PyTorch's.
//
// Invariants: an axis of a result has the extent of the operands' axes in `from`, which broadcast against each other, or
// of the scalar operand `extent`. Axes that must agree besides, such as the contracted ones, are pairs in `equal`.
//
//   const LibraryShape s = library_shape(view);   // %y = matmul %a, %b : f32[%m, %k] and f32[%k, %n]
//   s.results[0].axes[0].from[0]                  // operand 0, axis 0
//   s.equal[0]                                    // operand 0 axis 1, operand 1 axis 0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ir/infer/infer_rules.h"

namespace fusebox {

struct OperandPlace {
  size_t operand = 0, axis = 0;
};

struct LibraryAxis {
  std::vector<OperandPlace> from;
  size_t extent = 0;  // the scalar operand that is the extent, if `from` is empty
};

struct LibraryResult {
  Dtype dtype = Dtype::kFloat;
  std::vector<LibraryAxis> axes;
};

struct LibraryShape {
  std::vector<LibraryResult> results;
  std::vector<std::pair<OperandPlace, OperandPlace>> equal;
  std::vector<std::pair<size_t, OperandPlace>> at_most;  // a scalar operand is no larger than the extent of an axis
  std::vector<std::pair<OperandPlace, OperandPlace>> within;  // the first axis is no longer than the second
};

// The view has passed check_format and check_attrs. Throws kRankMismatch, kDtypeMismatch, kUnsupportedDtype, kBadAxis and
// kBadAttribute.
LibraryShape library_shape(const OpView& op);

// The domain of an operand's axis.
DomainId domain_at(const Graph& g, std::span<const ValueId> operands, OperandPlace place);

}  // namespace fusebox
