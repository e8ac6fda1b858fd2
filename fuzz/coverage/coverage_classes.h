// Classes of a fusion or of a schedule, for the rows of coverage.h. Each function returns the classes that occur, as
// positions in the list of names beside it, once for each occurrence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/generate/case.h"

namespace fusebox::fuzz {

// Bounds of slices. Classes that compare with the extent count only constant extents.
inline constexpr std::string_view kSliceClasses[] = {
    "start from the end",   "start before the first", "start beyond the end", "start of a symbol",
    "stop from the end",    "stop before the first",  "stop beyond the end",  "stop of a symbol",
    "stop at 2^62 or more", "stop before the start"};
std::vector<size_t> slice_classes(const Graph& g);

// Ops of scalars that a rewrite may fold.
inline constexpr std::string_view kFoldClasses[] = {"of constants", "of a constant and what is not"};
std::vector<size_t> fold_classes(const Graph& g);

// A cast of a cast.
inline constexpr std::string_view kCastClasses[] = {"integer, float, integer", "float, integer, float",
                                                    "float, narrower, float", "integer, narrower, integer", "others"};
std::vector<size_t> cast_classes(const Graph& g);

// The forms that rewrite rules look for, as positions in all_forms() of focus.h.
std::vector<size_t> form_classes(const Graph& g);

// Inputs whose values were drawn for a function that reads them, as positions in function_names().
std::vector<std::string> function_names();
std::vector<size_t> function_classes(const Case& c);

// Index scalars by their value, and places of `select`.
inline constexpr std::string_view kIndexClasses[] = {"near 2^30",
                                                     "near 2^31",
                                                     "near 2^32",
                                                     "small, of large ones",
                                                     "select from the end, constant",
                                                     "select from the end, of what an op makes",
                                                     "far apart by a swizzled loop"};
std::vector<size_t> index_classes(const Case& c);

// Properties of tensors besides their axes.
inline constexpr std::string_view kTensorClasses[] = {"input on a mesh", "result on a mesh", "expanded input",
                                                      "squeezed, though expanded"};
std::vector<size_t> tensor_classes(const Graph& g);

// The parts of a step or an op: each attribute, each operand that may be missing and each list that may be empty, as
// positions in the names.
std::vector<std::string> step_part_names();
std::vector<size_t> step_part_classes(const Step& step);
std::vector<std::string> op_part_names();
std::vector<size_t> op_part_classes(const Graph& g);

inline constexpr std::string_view kOutputClasses[] = {"is an input",
                                                      "is an input over itself",
                                                      "is an input over another",
                                                      "is an input exchanged with another",
                                                      "over an input",
                                                      "over a permuted input",
                                                      "over an input with gaps",
                                                      "over an input with a broadcast axis",
                                                      "over an input, across segments",
                                                      "over an input, in vectors"};
std::vector<size_t> output_classes(const Case& c);

// The situations that the lists of focus_situations.h aim at.
inline constexpr std::string_view kSituationClasses[] = {"a scalar of a higher class beside a tensor",
                                                         "an op of equal scalars",
                                                         "constants that differ in one part",
                                                         "a size from another dtype",
                                                         "an integer power of -1 by a negative odd number",
                                                         "shared memory made in an unrolled loop",
                                                         "a layout read two segments later",
                                                         "a reduction over some dimensions of a block",
                                                         "a reduction over whole warps, though not along x"};
std::vector<size_t> situation_classes(const Case& c);

inline constexpr std::string_view kSwizzleClasses[] = {"xor of equal extents", "xor, the first shorter",
                                                       "cyclic of equal extents", "cyclic, the first shorter",
                                                       "cyclic, the first longer"};
std::vector<size_t> swizzle_classes(const Graph& scheduled);

}  // namespace fusebox::fuzz
