// Shared by the rows of reduction_table.inc: names, so that an edit finds its target after other edits, and functions
// that adapt a case to a change of its fusion or steps. Only for use inside fuzz/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuzz/reduce/reduce.h"
#include "fuzz/reduce/remake.h"

namespace fusebox::fuzz {

#define FUSEBOX_REDUCTION(name, text, joined, summary) std::vector<Edit> name(const Case& c);
#include "fuzz/reduce/reduction_table.inc"
#undef FUSEBOX_REDUCTION

// Remakes the fusion. Inputs keep their specs by name, with a layout for their new shape. New inputs get values of the
// same kind as the others.
bool change_fusion(Case& c, const FusionChange& change);

// Renames domains of logical and root lists in the steps after axes were removed. `removed`: for each tensor, by name,
// which axes of its logical domain.
void rename_domains(std::vector<Step>& steps, const std::map<std::string, std::vector<bool>>& removed);

// Removes steps that do not apply, as far as one can tell without lowering, and names that no longer exist. Ops that no
// step assigns go to a segment. A schedule that applies stays the same, but its assign steps come first. Returns false
// if the segments have no order.
bool fit_steps(Case& c);

std::vector<Step>& steps_of(Case& c);
std::optional<OpId> op_making(const Graph& g, const std::string& name);
InputSpec* spec_of(Case& c, const std::string& name);
// The rank of an input's values by simplicity; 0 is the simplest.
int64_t value_rank(const InputSpec& spec);
// Smaller candidates for a number: the least, 1, 2, 3, half, two less, one less.
std::vector<int64_t> smaller_numbers(int64_t n, int64_t least);
int64_t magnitude(int64_t n);

}  // namespace fusebox::fuzz
