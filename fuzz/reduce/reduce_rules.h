// What the rows of reduction_table.inc share: naming things so that an edit finds them again after others, and putting
// a case in order after its fusion or its steps were changed. Not for use outside fuzz/.
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

// Makes the fusion again; inputs keep their specs by name, with a layout for what became of their shape, and what was
// cut gets values of the kind that the others have.
bool change_fusion(Case& c, const FusionChange& change);

// After axes went: domains of logical and root lists that steps name have other names. `removed`: of a tensor's logical
// domain, by its name.
void rename_domains(std::vector<Step>& steps, const std::map<std::string, std::vector<bool>>& removed);

// Takes out the steps that do not apply, as far as one can tell without lowering, and names that are gone; ops that no
// step assigns to a segment go to one. A schedule that applies stays as it is, its assign steps before the others.
// False where its segments have no order any more.
bool fit_steps(Case& c);

std::vector<Step>& steps_of(Case& c);
std::optional<OpId> op_making(const Graph& g, const std::string& name);
InputSpec* spec_of(Case& c, const std::string& name);
// How far from the simplest the values of an input are: 0 is the simplest.
int64_t value_rank(const InputSpec& spec);
// Numbers below a number: the least, 1, 2, 3, half, two less, one less.
std::vector<int64_t> smaller_numbers(int64_t n, int64_t least);
int64_t magnitude(int64_t n);

}  // namespace fusebox::fuzz
