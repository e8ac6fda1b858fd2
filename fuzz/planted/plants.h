// Changes one thing in a lowered kernel, as a mistake in lowering would: a barrier is missing or misplaced, a condition
// is always true, a store is missing, an access goes to another place, a loop runs too far.
#pragma once

#include <string_view>

#include "fuzz/base/random_source.h"
#include "ir/graph/graph.h"

namespace fusebox::fuzz {

// Changes the kernel, which still verifies, and returns the change, for example `no barrier`. An empty result means
// that nothing could be changed and the kernel is as before.
std::string_view plant(RandomSource& random, Graph& kernel);

}  // namespace fusebox::fuzz
