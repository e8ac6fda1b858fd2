// The soundness of the index algebra, at points. Expressions are drawn twice: as forms, and as trees that are evaluated
// here with plain integers. A form must have the tree's value at every point, and what the algebra shows must hold there.
// `oracles_algebra.cc` asks for the rest: that equal forms are spelled alike, and that what holds is shown.
//
//   (2·l + 2) div 3, l in [0, 2): the tree gives 0 and 1, so a form that is 1 at l = 0 is reported as `value`
//   9 - (2·o + t) > 0 shows o < 5, and no more: `prove_nonneg(3 - o, given)` is reported as `claim under a guard`
#pragma once

#include "fuzz/base/random_source.h"
#include "fuzz/oracle/oracle.h"

namespace fusebox::fuzz {

void judge_algebra_at_points(OracleRun& run, RandomSource& random);

}  // namespace fusebox::fuzz
