// The text form, written. One form for every level, read by people first: one op a line, its type beside it, names
// kept.
//
// Law: parse(print(x)) == x, exactly, for every graph, module and step that verifies (parse.h says what is read).
// What a type says:
// - `f32[%m, 1, 1*%h]`: unnamed dimensions: iteration over %m, broadcast, broadcast expanded to %h. At math level this
// is what a user
//   sees of a type that follows from the op (infer.h); inputs, and kernel and host level, have no more to say.
// - `f32[i0 iter %m, i1 reduce %n] local { … }`: named domains: everything there is, as a tensor of a schedule needs.
// In the braces
//   stand the other domain lists, the transforms (`o iter, t iter = split i0 by 128 inner`), and the marks.
// - constants stand in place: `128` is of dtype index, `1.5` f64, `true` bool; others carry their dtype, `1.5_f32`; a
// hexadecimal
//   number is bits, `0x7fc00001_f32`; `c64(1.0, -0.0)` is complex.
//
//   print(g) == "fusion @g {\n  %n = size\n  %x = input f32[%n] contiguous\n  %y = exp %x : f32[%n]\n  output %y\n}\n"
#pragma once

#include <span>
#include <string>

#include "ir/graph/graph.h"
#include "ir/module/module.h"
#include "ir/module/step.h"
#include "ir/table/defect.h"
#include "ir/token/literal.h"

namespace fusebox {

std::string print(const Graph& g, const Defects& defects = {});
std::string print(const Module& m, const Defects& defects = {});
std::string print(const Step& step);  // one line, without its end
// One step a line.
std::string print_steps(std::span<const Step> steps);
std::string print(const StepList& list, const Defects& defects = {});
std::string print(const Segmentation& segmentation, const Defects& defects = {});
std::string print(const InputSpecs& specs, const Defects& defects = {});
std::string print(const InputSpec& spec);  // `%x = f32[5, 7] normal seed 1`

// Parts, as messages, comments and tables want them.
std::string print_type(const Graph& g, ValueId value);      // `f32[%m, %n]`, what a user sees of it
std::string print_op(const Graph& g, OpId op);              // one line without the regions, in the types of print_type
std::string print_domain(const Graph& g, DomainId domain);  // `%x.i0`

}  // namespace fusebox
