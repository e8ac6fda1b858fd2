// What views must be, whoever makes them: the elements of their op, by enumeration; the layout and the alignment that planning
// takes them to have; and no view of memory that is overwritten. A part of the oracle `meta`.
#pragma once

#include "fuzz/oracle/oracle.h"

namespace fusebox::fuzz {

void judge_views(OracleRun& run);

}  // namespace fusebox::fuzz
