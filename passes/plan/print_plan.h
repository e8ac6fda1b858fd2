// Prints and parses kernel plans. The text follows the order of the loop tree.
//
// Law: parse_plan(g, print_plan(p)) is a plan of the same text, from which the same kernel is emitted.
//
//   plan @k {
//     threads [grid.x exact, block.x exact 128]
//     buffer %x global parameter
//     buffer %y global parameter
//     for 0 grid.x %y.o {
//       for 1 block.x %y.t {
//         statement 0 %y main at [0, 1] {
//           if 128*o#0 + t#1 < %n because split-input of %y.i0
//           read 0 %x at 128*o#0 + t#1
//           write 0 %y at 128*o#0 + t#1
//         }
//       }
//     }
//   }
//
// In a form, NAME#NODE is a loop, %NAME a scalar and stride(%x.i0) the stride of an axis. `loaded` is a scalar that the
// kernel loads. div(f, d) is the quotient of f by d, and digit(f, d, e) is that quotient's remainder by e. A form in
// parentheses counts as one factor.
#pragma once

#include <string>
#include <string_view>

#include "ir/canonical/digest.h"
#include "passes/plan/kernel_plan.h"

namespace fusebox {

std::string print_plan(const KernelPlan& plan);
// The digest of the text without its names. Plans of one graph in canonical order have one digest.
Digest digest(const KernelPlan& plan);
// A form of one view's algebra.
std::string print_form(const KernelPlan& plan, IndexAlgebra& algebra, Form form);
// Throws kSyntax at `line N` if the text is not a plan of the graph.
KernelPlan parse_plan(const Graph& scheduled, std::string_view text, const PlanOptions& options = {});

}  // namespace fusebox
