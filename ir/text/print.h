// Writes the text form. Every level has the same form, made for people first: one op a line, with its type beside it
// and names kept.
//
// Invariants: parse(print(x)) == x, exactly, for every graph, module and step that verifies (parse.h).
// - A type with unnamed dimensions, `f32[%m, 1, 1*%h]`, has an iteration over %m, a broadcast, and a broadcast expanded
//   to %h. At math level, a type that follows from its op (infer.h) is written so. Most types of inputs, and most
//   types at kernel and host level, have unnamed dimensions too.
// - A type with named domains, `f32[i0 iter %m, i1 reduce %n] local { … }`, says everything, as a schedule needs it.
//   The braces hold the other domain lists, the transforms (`o iter, t iter = split i0 by 128 inner`) and the marks.
// - Constants stand in place. `128` has dtype index, `1.5` f64, `true` bool; others carry their dtype, as `1.5_f32`
//   does. A hexadecimal number is bits, `0x7fc00001_f32`. `c64(1.0, -0.0)` is complex.
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

// Parts, for messages, comments and tables.
std::string print_type(const Graph& g, ValueId value);  // `f32[%m, %n]`, as a user sees it
std::string print_op(const Graph& g, OpId op);  // one line without regions, with types as print_type writes them
std::string print_domain(const Graph& g, DomainId domain);  // `%x.i0`

}  // namespace fusebox
