// What the compiler makes of programs, as short digests: one line for each program of a module, with a digest for each state.
// Any change of a state shows, also one that leaves the results right: a weaker proof, another choice, another word.
//
//   @f: scheduled 5f0c11d2, kernels 8a41b7e0, …, automatic 91c0aa35 pointwise, …
#pragma once

#include <string>

#include "ir/module/module.h"

namespace fusebox::fuzz {

// Needs inputs `host` for each fusion. A state that is refused stands there as its error, with a digest of the sentence.
std::string digests_of(const Module& m);

}  // namespace fusebox::fuzz
