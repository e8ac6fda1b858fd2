// A lowered kernel with one thing changed, as a slip of lowering would change it: a barrier that is missing or stands
// elsewhere, a condition that is true, a store that is left out, an access at another place, a loop that runs too far.
#pragma once

#include <string_view>

#include "fuzz/base/random_source.h"
#include "ir/graph/graph.h"

namespace fusebox::fuzz {

// Changes the kernel, which stays one that verifies, and says what was changed: `no barrier`. Empty: nothing was found
// to change, and the kernel is as it was.
std::string_view plant(RandomSource& random, Graph& kernel);

}  // namespace fusebox::fuzz
