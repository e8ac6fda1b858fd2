// Counts of a kernel's instructions besides its arithmetic: fewer is simpler.
#pragma once

#include "ir/graph/graph.h"

namespace fusebox::fuzz {

struct KernelCounts {
  int conditions = 0;  // comparisons of indices
  int quotients = 0;   // and remainders
  int prepared = 0;    // divisions that the launch prepares
  int barriers = 0;    // of a block or the grid
  int loops = 0;
};

KernelCounts counts_of(const Graph& kernel);

}  // namespace fusebox::fuzz
