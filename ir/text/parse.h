// Reads the text form. Any bytes give a value or an Error with a code and a place `line:column`. The parser does not
// crash, takes time linear in the text, and keeps to the limits below.
//
// Invariants: names of values are unique in their graph, every used name is defined, and every id is in range. `verify`
// (verify.h) checks the ops. A value may be named before the line that defines it.
// - At math and scheduled level, inference (infer.h) gives a result its domains if its type is missing or has unnamed
//   dimensions. A written type must agree with them, or the error is kTypeAnnotation; `?` agrees with any extent. Types
//   with named dimensions or braces are taken as they stand.
// - `//` to the end of the line is a comment. A statement ends with its line, but a list in brackets may go on.
// - In a list of steps, the word before an enumeration may be left out: `parallelize %y.t block.x`.
//
//   Module m = parse_module("fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %y = exp %x\n  output %y\n}");
#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/module/module.h"
#include "ir/module/step.h"

namespace fusebox {

// A text beyond these limits is refused with kTooLarge.
inline constexpr size_t kMaxTextBytes = size_t{256} << 20;
inline constexpr int kMaxRegionDepth = 64;
inline constexpr size_t kMaxTransformsPerTensor = 1024;
inline constexpr size_t kMaxLoopBroadcasts = 512;

Module parse_module(std::string_view text);
Graph parse_graph(std::string_view text);  // exactly one graph
Step parse_step(std::string_view text);
std::vector<Step> parse_steps(std::string_view text);  // one step a line, or one `steps … { … }`
Segmentation parse_segmentation(std::string_view text);
InputSpecs parse_input_specs(std::string_view text);
// Reads the text after `=`: `f32[5, 7] normal seed 1`, `i64[3] strides [2] integers 0.0 9.0`, `1.5_f32`.
InputSpec parse_input_spec(std::string_view name, std::string_view text);

}  // namespace fusebox
