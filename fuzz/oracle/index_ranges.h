// A part of the oracle `algebra`: where the host is told that 32 bits hold a kernel's indices, they hold what a loop by
// loop evaluation with plain integers reaches, also what a loop adds behind its last iteration.
#pragma once

#include "fuzz/base/random_source.h"
#include "fuzz/oracle/oracle.h"

namespace fusebox::fuzz {

void check_index_ranges(OracleRun& run, RandomSource& random);

}  // namespace fusebox::fuzz
